"""A coarsening as a folder: everything needed to use it elsewhere, or nothing."""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from pyg_pool.coarsen.read import content_hash
from pyg_pool.errors import check_choice, require

if TYPE_CHECKING:
    from pyg_pool.coarsen.coarsening import Coarsening

__all__ = ["OUTPUTS", "lift_values", "write_folder", "write_graph", "write_values"]

Array = NDArray[Any]
OUTPUTS = ("npz", "pt", "metis", "parquet", "mtx")
NAMES = {
    "npz": "coarse.npz",
    "pt": "coarse.pt",
    "metis": "coarse.graph",
    "parquet": "coarse.parquet",
    "mtx": "coarse.mtx",
}
VERSION = 1
PACKAGES = ("pyg_pool", "torch", "torch-geometric", "numpy", "scipy", "numba")


def write_folder(
    coarsening: Coarsening,
    out: Path,
    *,
    source: Path | None = None,
    formats: tuple[str, ...] = ("npz",),
    figures: dict[str, Any] | None = None,
    extra: Callable[[Path], None] | None = None,
    overwrite: bool = False,
) -> None:
    """Writes clusters, coarse graph, figures and a manifest; complete or not at all.

    Args:
        coarsening: What to write.
        out: Folder to make.
        source: File that the graph was read from, for its hash.
        formats: Formats of the coarse graph.
        figures: Quality figures to store.
        extra: Called with the folder before it gets its name, to add files.
        overwrite: Whether an existing folder of this kind is replaced.

    Raises:
        ValueError: If the folder exists, or a format is unknown.
    """
    check_formats("formats", formats)
    check_free(out, overwrite)
    part = out.with_name(f"{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        coarsening.save(part / "coarsening.npz")
        ids = coarsening.ids
        names = np.arange(coarsening.num_nodes) if ids is None else np.asarray(ids)
        write_values(part, "clusters", names, coarsening.cluster.numpy(), "cluster")
        for form in formats:
            write_graph(coarsening, part / NAMES[form], form)
        if figures is not None:
            text = json.dumps(figures, indent=2)
            (part / "quality.json").write_text(text, encoding="utf-8")
        if extra is not None:
            extra(part)
        manifest = _manifest(coarsening, source, figures)
        manifest["files"] = {
            file.name: content_hash(file) for file in sorted(part.iterdir())
        }
        text = json.dumps(manifest, indent=2)
        (part / "manifest.json").write_text(text, encoding="utf-8")
        if out.exists():
            shutil.rmtree(out)
        part.rename(out)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def check_formats(option: str, formats: tuple[str, ...]) -> None:
    """Raises unless graphs can be written in these formats here."""
    for form in formats:
        check_choice("coarsen", option, form, OUTPUTS)
    if "parquet" in formats:
        require("pyarrow", "coarsen")


def check_free(out: Path, overwrite: bool) -> None:
    """Raises unless a folder may be made there."""
    if not out.exists():
        return
    if not overwrite:
        raise ValueError(
            f"{out} exists, expected a new folder; choose another name, or allow to "
            f"replace it with overwrite (--overwrite on the command line)."
        )
    if not (out / "manifest.json").is_file():
        raise ValueError(
            f"{out} exists and is no coarsening, expected one to overwrite; choose "
            f"another name."
        )


def write_graph(coarsening: Coarsening, path: Path, form: str) -> None:
    """Writes the coarse graph with summed edges, self loops left out.

    Args:
        coarsening: Whose graph to write.
        path: File to write.
        form: ``"npz"`` (SciPy), ``"pt"`` (tensors of a PyG ``Data``), ``"metis"``,
            ``"parquet"`` or ``"mtx"``.
    """
    data = coarsening.graph()
    row, col = data.edge_index.numpy()
    weight, n = data.edge_weight.numpy(), coarsening.num_clusters
    if form == "pt":
        torch.save({k: v for k, v in data.to_dict().items() if v is not None}, path)
    elif form == "parquet":
        table = require("pyarrow", "coarsen").table
        columns = table({"src": row, "dst": col, "weight": weight})
        require("pyarrow.parquet", "coarsen").write_table(
            columns, path, compression="zstd"
        )
    else:
        from scipy.io import mmwrite
        from scipy.sparse import coo_matrix, save_npz

        rows = coo_matrix((weight, (row, col)), (n, n)).tocsr()
        if form == "npz":
            save_npz(path, rows)
        elif form == "mtx":
            mmwrite(path, rows, symmetry="symmetric")
        else:
            _write_metis(path, rows)


def _write_metis(path: Path, rows: Any) -> None:
    """One line of neighbours and integer weights per node, as METIS wants them."""
    rows.sort_indices()
    rounded = np.maximum(np.rint(rows.data), 1).astype(np.int64)
    with path.open("w", encoding="ascii") as file:
        file.write(f"{rows.shape[0]} {rows.nnz // 2} 1\n")
        for i in range(rows.shape[0]):
            span = slice(rows.indptr[i], rows.indptr[i + 1])
            pairs = zip(rows.indices[span], rounded[span], strict=True)
            file.write(" ".join(f"{j + 1} {w}" for j, w in pairs) + "\n")


def write_values(
    folder: Path, stem: str, names: Array, values: Array, title: str, form: str = ""
) -> Path:
    """A table of node names and values: Parquet with pyarrow, else compressed CSV.

    Args:
        folder: Where to write.
        stem: Name of the file without its suffix.
        names: Of the nodes.
        values: One for each node.
        title: Heading of the values.
        form: ``".parquet"`` or ``".csv.gz"``; empty goes by what is installed.
    """
    if form != ".csv.gz":
        try:
            arrow = require("pyarrow", "coarsen")
        except ImportError:
            if form:
                raise
            form = ".csv.gz"
    if form == ".csv.gz":
        import gzip

        path = folder / f"{stem}.csv.gz"
        with gzip.open(path, "wt", encoding="utf-8") as file:
            file.write(f"node,{title}\n")
            file.writelines(
                f"{name},{value}\n" for name, value in zip(names, values, strict=True)
            )
        return path
    path = folder / f"{stem}.parquet"
    plain = names.tolist() if names.dtype.kind in "OU" else names
    table = arrow.table({"node": plain, title: values})
    require("pyarrow.parquet", "coarsen").write_table(table, path, compression="zstd")
    return path


def lift_values(folder: Path, values: Path, out: Path) -> int:
    """Gives every original node the value of its cluster and writes a table.

    Args:
        folder: What :func:`write_folder` wrote.
        values: ``.npy`` or text with one value per cluster, in order.
        out: Table to write, ``.parquet`` (needs pyarrow) or ``.csv.gz``.

    Returns:
        The number of rows.

    Raises:
        FileNotFoundError: If the folder is none or the values are not there.
        ValueError: If there is not one value per cluster, or ``out`` has another
            suffix.
    """
    from pyg_pool.coarsen.coarsening import Coarsening

    forms = [form for form in (".parquet", ".csv.gz") if out.name.endswith(form)]
    if not forms:
        raise ValueError(
            f"lift_values got out={str(out)!r}, expected a name that ends in .parquet "
            f"or .csv.gz; add one of them."
        )
    if not (folder / "coarsening.npz").is_file():
        raise FileNotFoundError(
            f"lift_values got {str(folder)!r}, expected the folder of a coarsening; "
            f"make it first with coarsen."
        )
    if not values.is_file():
        raise FileNotFoundError(
            f"lift_values got {str(values)!r}, expected an existing file with one "
            f"value per cluster; check the path."
        )
    found = Coarsening.load(folder / "coarsening.npz")
    try:
        table = (
            np.load(values, allow_pickle=False)
            if values.suffix == ".npy"
            else np.loadtxt(values, dtype=str, ndmin=1, delimiter=",")
        )
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{values} cannot be read ({error}), expected .npy or one value a line; "
            f"write it again."
        ) from error
    if table.dtype.kind == "U":
        numbers = all(t.lstrip("-").isdigit() for t in table.ravel())
        table = table.astype(np.int64) if numbers else table
    if table.shape != (found.num_clusters,):
        raise ValueError(
            f"{values} holds an array of shape {list(table.shape)}, expected "
            f"[{found.num_clusters}], one value per cluster; write it in their order."
        )
    ids = found.ids
    names = np.arange(found.num_nodes) if ids is None else np.asarray(ids)
    out.parent.mkdir(parents=True, exist_ok=True)
    stem = f"{out.name.removesuffix(forms[0])}.part"
    try:
        part = write_values(
            out.parent, stem, names, table[found.cluster], "value", forms[0]
        )
        part.replace(out)
    finally:
        (out.parent / f"{stem}{forms[0]}").unlink(missing_ok=True)
    return found.num_nodes


def _manifest(
    coarsening: Coarsening, source: Path | None, figures: dict[str, Any] | None
) -> dict[str, Any]:
    """What was made from what, with which options and programs."""
    versions = {name: _version(name) for name in PACKAGES}
    versions["python"] = platform.python_version()
    facts = coarsening.source.facts
    return {
        "kind": "coarsening",
        "version": VERSION,
        "input": None
        if source is None
        else {"name": source.name, "sha256": content_hash(source), **facts},
        "options": coarsening.options,
        "kernel": coarsening.kernel,
        "nodes": [coarsening.num_nodes, *coarsening.sizes],
        "figures": figures,
        "software": versions,
    }


def _version(package: str) -> str:
    """The installed version of a package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"

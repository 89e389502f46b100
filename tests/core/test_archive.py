"""Files of tensors: what comes back, and what a broken one says."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from pyg_pool.core import archive
from pyg_pool.core.archive import load_tensors, save_tensors

TENSORS = {
    "double": torch.tensor([[1.5, float("nan")]], dtype=torch.double),
    "half": torch.tensor([1.5, -2.0]).half(),
    "brain": torch.tensor([[1.5], [3.0]], dtype=torch.bfloat16),
    "scalar brain": torch.tensor(2.0, dtype=torch.bfloat16),
    "long": torch.tensor([2**40, -1]),
    "flag": torch.tensor([True, False]),
    "complex": torch.tensor([1 + 2j]),
    "nothing": torch.empty(0, 3),
    "scalar": torch.tensor(7),
    "strided": torch.arange(6).view(2, 3).t(),
    "file": torch.tensor([1]),  # also the name of an argument of NumPy's
}


def test_everything_comes_back(tmp_path: Path) -> None:
    header = {"words": ["a", None], "size": 3}
    save_tensors(tmp_path / "a.npz", "Thing", TENSORS, header)
    tensors, again = load_tensors(tmp_path / "a.npz", "Thing")
    assert again == header
    assert list(tensors) == list(TENSORS)
    for name, tensor in TENSORS.items():
        torch.testing.assert_close(
            tensors[name], tensor, rtol=0, atol=0, equal_nan=True
        )
    tensors["long"].add_(1)  # writable, of its own memory


def test_gradients_are_left_behind(tmp_path: Path) -> None:
    save_tensors(tmp_path / "a", "Thing", {"x": torch.ones(2, requires_grad=True)}, {})
    assert not load_tensors(tmp_path / "a", "Thing")[0]["x"].requires_grad


def test_file_has_no_pickle_and_says_its_version(tmp_path: Path) -> None:
    save_tensors(tmp_path / "a.npz", "Thing", TENSORS, {})
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        header = json.loads(file["header"].tobytes())
    assert (header["kind"], header["version"]) == ("Thing", archive.VERSION)


def changed(path: Path, **values: object) -> Path:
    """A copy of the file with another header."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    header = {**json.loads(arrays["header"].tobytes()), **values}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    out = path.with_name("changed.npz")
    np.savez(out, **arrays)
    return out


def test_other_kind_and_newer_version_are_explained(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    save_tensors(path, "Thing", {"x": torch.ones(1)}, {})
    with pytest.raises(ValueError, match="holds 'Thing' in version 1, expected 'Leaf'"):
        load_tensors(path, "Leaf")
    newer = changed(path, version=2, types="stored otherwise", header="too")
    with pytest.raises(ValueError, match=r"version 2, .*or with a newer pyg_pool"):
        load_tensors(newer, "Thing")


def test_missing_file_stays_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_tensors(tmp_path / "none.npz", "Thing")


def foreign(name: str) -> bytes:
    out = io.BytesIO()
    if name == "npy":
        np.save(out, np.ones(3))
    elif name == "npz":
        np.savez(out, a=np.ones(3))
    elif name == "zip":
        with zipfile.ZipFile(out, "w") as file:
            file.writestr("header", "[]")
    elif name == "list":
        np.savez(out, header=np.frombuffer(b"[1]", dtype=np.uint8))
    elif name == "pickle":
        np.savez(out, header=np.array([{}], dtype=object))
    elif name == "words":
        out.write(b"node,cluster\n0,1\n")
    return out.getvalue()


@pytest.mark.parametrize(
    "name", ["npy", "npz", "zip", "list", "pickle", "words", "empty"]
)
def test_foreign_files_are_explained(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(foreign(name))
    with pytest.raises(ValueError, match="is not a complete file of this library"):
        load_tensors(path, "Thing")


def test_truncated_files_are_explained(tmp_path: Path) -> None:
    path, cut = tmp_path / "a.npz", tmp_path / "cut.npz"
    save_tensors(path, "Thing", {"x": torch.arange(5)}, {"size": 1})
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        cut.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="is not a complete file"):
            load_tensors(cut, "Thing")


def test_altered_files_are_explained_or_harmless(tmp_path: Path) -> None:
    """A changed byte is found, unless it changes nothing that is read."""
    path, bad = tmp_path / "a.npz", tmp_path / "bad.npz"
    save_tensors(path, "Thing", {"x": torch.arange(5)}, {"size": 1})
    whole = path.read_bytes()
    found = 0
    for place in range(0, len(whole), 5):
        bad.write_bytes(whole[:place] + bytes([whole[place] ^ 85]) + whole[place + 1 :])
        try:
            tensors, header = load_tensors(bad, "Thing")
        except ValueError:
            found += 1
        else:
            assert tensors["x"].equal(torch.arange(5))
            assert header == {"size": 1}
    assert found > len(whole) // 20


def test_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.npz"
    save_tensors(path, "Thing", {"x": torch.ones(1)}, {})

    def fail(file: io.BytesIO, **_: object) -> None:
        file.write(b"half of it")
        raise OSError("no space left")

    monkeypatch.setattr(archive.np, "savez", fail)
    with pytest.raises(OSError, match="no space"):
        save_tensors(path, "Thing", {"x": torch.zeros(1)}, {})
    assert load_tensors(path, "Thing")[0]["x"].tolist() == [1.0]
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


@pytest.mark.skipif(sys.platform == "win32", reason="open files cannot be replaced")
def test_reader_of_the_old_file_is_not_disturbed(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    save_tensors(path, "Thing", {"x": torch.ones(1)}, {})
    before = path.read_bytes()
    with path.open("rb") as reader:
        save_tensors(path, "Thing", {"x": torch.zeros(9)}, {})
        assert reader.read() == before
    assert load_tensors(path, "Thing")[0]["x"].numel() == 9


KILLED = """
import os, runpy, signal, sys
import numpy as np
import torch
source, path = sys.argv[1:]
save_tensors = runpy.run_path(source)["save_tensors"]  # without all of PyG
save_tensors(path, "Thing", {"x": torch.ones(1)}, {})
write = np.savez
def stop(file, **arrays):
    write(file, **arrays)
    file.truncate(40)
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
np.savez = stop
save_tensors(path, "Thing", {"x": torch.zeros(1)}, {})
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KILLED, archive.__file__, str(path)],
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert load_tensors(path, "Thing")[0]["x"].tolist() == [1.0]


def test_types_of_tensors_are_not_mixed_up(tmp_path: Path) -> None:
    bits: Tensor = torch.tensor([1.0], dtype=torch.bfloat16).view(torch.int16)
    save_tensors(tmp_path / "a", "Thing", {"bits": bits}, {})
    assert load_tensors(tmp_path / "a", "Thing")[0]["bits"].dtype == torch.int16

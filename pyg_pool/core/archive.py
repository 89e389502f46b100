"""Files of named tensors: ``.npz`` without pickle, versioned, written atomically."""

from __future__ import annotations

import json
import os
import threading
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

VERSION = 1
# What reading a truncated, altered or foreign file may raise.
DAMAGES = (
    zipfile.BadZipFile,
    AttributeError,
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    TypeError,
    ValueError,
    zlib.error,
)


def save_tensors(
    path: str | os.PathLike[str],
    kind: str,
    tensors: Mapping[str, Tensor],
    header: Mapping[str, Any],
) -> None:
    """Writes tensors and a JSON header to ``path``; nothing is left half written.

    Args:
        path: File to write; an existing one is replaced at the end.
        kind: What the file holds, checked on reading.
        tensors: Tensors by name, any dtype and device.
        header: JSON values stored beside them.
    """
    arrays, types = {}, {}
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        types[name] = str(plain.dtype).removeprefix("torch.")
        if plain.dtype == torch.bfloat16:  # NumPy has no such type: keep the bits
            plain = plain.view(torch.int16)
        arrays[f"tensor:{name}"] = plain.numpy()
    text = json.dumps(
        {"kind": kind, "version": VERSION, "types": types, "header": dict(header)}
    )
    arrays["header"] = np.frombuffer(text.encode(), dtype=np.uint8)
    target = Path(path)
    part = target.with_name(f"{target.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        with part.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def load_tensors(
    path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads what :func:`save_tensors` wrote.

    Args:
        path: File to read.
        kind: What it must hold.

    Returns:
        The tensors by name and the header.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is damaged, of another kind or of a newer version.
    """
    with Path(path).open("rb") as raw:
        try:
            found, version, tensors, header = _read(raw, kind)
        except DAMAGES as error:
            raise ValueError(
                f"{path} is not a complete file of this library ({error}), expected a "
                f"{kind} written by its save(); write it again."
            ) from error
    if found != kind or version > VERSION:
        raise ValueError(
            f"{path} holds {found!r} in version {version}, expected {kind!r} up to "
            f"version {VERSION}; read it with the matching class, or with a newer "
            f"pyg_pool."
        )
    return tensors, header


def _read(
    raw: BinaryIO, kind: str
) -> tuple[str, int, dict[str, Tensor], dict[str, Any]]:
    """Kind, version, tensors and header; the last two only where they are known."""
    with np.load(raw, allow_pickle=False) as file:
        text = json.loads(file["header"].tobytes().decode())
        found, version = text["kind"], text["version"]
        if found != kind or version > VERSION:
            return found, version, {}, {}
        tensors = {
            name: _tensor(file[f"tensor:{name}"], dtype)
            for name, dtype in text["types"].items()
        }
        return found, version, tensors, dict(text["header"])


def _tensor(array: NDArray[Any], dtype: str) -> Tensor:
    """The tensor of a stored array; NumPy keeps bfloat16 as bits."""
    tensor = torch.from_numpy(np.array(array))
    return tensor.view(torch.bfloat16) if dtype == "bfloat16" else tensor

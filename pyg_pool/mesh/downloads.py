"""Fetching an archive of meshes and unpacking it, all or nothing."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

from tqdm import tqdm

__all__ = ["fetch_archive"]


def fetch_archive(url: str, target: Path, *, progress: bool = False) -> None:
    """Downloads an archive and unpacks it to a folder that does not exist yet.

    Args:
        url: Address of a ``.tar.gz`` or ``.zip``.
        target: Folder that will hold the content; the one folder at the top of an
            archive is left out.
        progress: Whether to show a bar.

    Raises:
        ConnectionError: If the address cannot be reached.
        ValueError: If the archive is damaged or would write outside the folder.

    Note:
        Everything happens in a folder beside the target, which is renamed at the
        end: an interrupted download leaves nothing that looks complete.
    """
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as name:
        folder = Path(name)
        archive, content = folder / "archive", folder / "content"
        _download(url, archive, progress)
        _unpack(url, archive, content)
        inside = [path for path in content.iterdir() if path.name != "__MACOSX"]
        top = inside[0] if len(inside) == 1 and inside[0].is_dir() else content
        try:
            top.rename(target)
        except OSError:
            # Another process was faster: its copy is as good.
            if not target.is_dir():
                raise


def _download(url: str, file: Path, progress: bool) -> None:
    """Copies the content of an address to a file."""
    try:
        with urllib.request.urlopen(url, timeout=60) as source, file.open("wb") as out:
            size = int(source.headers.get("Content-Length") or 0)
            bar = tqdm(
                total=size or None, unit="B", unit_scale=True, disable=not progress
            )
            with bar:
                while block := source.read(1 << 18):
                    out.write(block)
                    bar.update(len(block))
        if size and file.stat().st_size != size:
            raise OSError(f"{file.stat().st_size} of {size} bytes came")
    except (OSError, urllib.error.URLError) as error:
        raise ConnectionError(
            f"The address {url} cannot be read ({error}), expected an archive of "
            f"meshes; get it by other means and lay it out under root."
        ) from error


def _unpack(url: str, archive: Path, content: Path) -> None:
    """Unpacks a tar or zip file, refusing members that lead outside."""
    content.mkdir()
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as packed:
                _refuse_escapes([member.filename for member in packed.infolist()])
                packed.extractall(content)
        else:
            with tarfile.open(archive) as packed_tar:
                members = packed_tar.getmembers()
                _refuse_escapes([member.name for member in members])
                for member in members:
                    # Links and devices have no place among meshes.
                    source = packed_tar.extractfile(member) if member.isfile() else None
                    if source is not None:
                        path = content / member.name
                        path.parent.mkdir(parents=True, exist_ok=True)
                        with path.open("wb") as out:
                            shutil.copyfileobj(source, out)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise ValueError(
            f"The file of {url} cannot be unpacked ({error}), expected a complete "
            f".tar.gz or .zip; try again, or lay the data out under root by hand."
        ) from error


def _refuse_escapes(names: list[str]) -> None:
    """Raises ``ValueError`` for members with absolute or climbing paths."""
    for name in names:
        parts = Path(name.replace("\\", "/")).parts
        if os.path.isabs(name) or ".." in parts:  # noqa: PTH117
            raise ValueError(
                f"The archive holds {name!r}, expected only names inside it; do not "
                f"trust this file."
            )

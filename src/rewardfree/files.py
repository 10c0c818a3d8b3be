"""Files that are written whole or not at all, and arrays in them: npz without pickle."""

from __future__ import annotations

import os
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

#: What a damaged archive has been seen to raise, beside OSError.
_DAMAGE = (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, tokenize.TokenError, RuntimeError)


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file to write to that becomes `path` at the end; an interrupted write leaves the old one alone."""
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} for {path.name}")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(0o666 & ~_umask())  # mkstemp's own files are private
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_arrays(path: str | os.PathLike[str], kind: str, version: int, arrays: Mapping[str, Any]) -> None:
    """Write named arrays under a kind and a version; an interrupted write leaves the old file alone."""
    path = Path(path)
    content: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in content.items():
        if array.dtype.hasobject:
            raise ValueError(f"{name} must be an array of numbers or text, got {array.dtype}")
    with written_whole(path) as part, part.open("wb") as file:
        np.savez_compressed(file, kind=np.array(kind), version=np.array(version), **content)


def kind_of(path: str | os.PathLike[str]) -> str:
    """The kind that a file was written under; "foreign" if it is none of ours."""
    with Path(path).open("rb") as file:
        try:
            return str(_archive(file)["kind"])
        except (*_DAMAGE, OSError, TypeError):
            return "foreign"


def read_arrays(path: str | os.PathLike[str], kind: str, version: int) -> dict[str, Any]:
    """The arrays of a file of that kind, no newer than `version`; nothing in it is ever executed."""
    with Path(path).open("rb") as file:  # ours: NumPy leaves it open when it fails
        try:
            archive = _archive(file)
            arrays = {name: archive[name] for name in archive.files}
            found = str(arrays.pop("kind", "foreign"))
            written = int(arrays.pop("version", 0))
        except (*_DAMAGE, OSError, TypeError) as error:
            raise ValueError(f"{path} is not a {kind} file, or is damaged: {error}") from error
    if found != kind:
        raise ValueError(f"{path} is a {found} file, a {kind} file was wanted")
    if written > version:
        raise ValueError(
            f"{path} has version {written} of the {kind} format, and only {version} is known here: "
            "update rewardfree"
        )
    return arrays


def _archive(file: Any) -> Any:
    archive = np.load(file, allow_pickle=False)
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ValueError("not an npz archive")
    return archive


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

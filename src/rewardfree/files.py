"""Files that are replaced in one step or not at all, and named arrays in them: npz without pickle."""

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

#: What NumPy has been seen to raise on damaged archives.
_DAMAGE = (
    ValueError, KeyError, TypeError, EOFError, OSError, RuntimeError,
    zipfile.BadZipFile, zlib.error, tokenize.TokenError,
)  # fmt: skip


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file that becomes `path` at the end. An interrupted write leaves the old file alone."""
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} for {path.name}")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(0o666 & ~_umask())  # mkstemp makes files private
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_arrays(path: str | os.PathLike[str], kind: str, version: int, arrays: Mapping[str, Any]) -> None:
    """Write named arrays under a kind and a version. An interrupted write leaves the old file alone."""
    content: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in content.items():
        if array.dtype.hasobject:
            raise ValueError(f"{name} must be an array of numbers or text, got {array.dtype}")
    with written_whole(path) as part, part.open("wb") as file:
        np.savez_compressed(file, kind=np.array(kind), version=np.array(version), **content)


def kind_of(path: str | os.PathLike[str]) -> str:
    """The kind that a file was written under; "foreign" if rewardfree did not write it."""
    with Path(path).open("rb") as file:
        try:
            return str(_archive(file)["kind"])
        except _DAMAGE:
            return "foreign"


def read_arrays(path: str | os.PathLike[str], kind: str, version: int) -> dict[str, Any]:
    """The arrays of a file of this kind, no newer than `version`. Nothing in the file is executed."""
    with Path(path).open("rb") as file:  # opened here, because NumPy leaves a file open when it fails
        try:
            archive = _archive(file)
            arrays = {name: archive[name] for name in archive.files}
            stored_kind = str(arrays.pop("kind", "foreign"))
            stored_version = int(arrays.pop("version", 0))
        except _DAMAGE as error:
            raise ValueError(f"{path} is not a {kind} file, or is damaged: {error}") from error
    if stored_kind != kind:
        raise ValueError(f"{path} is a {stored_kind} file, a {kind} file was wanted")
    if stored_version > version:
        raise ValueError(
            f"{path} has version {stored_version} of the {kind} format, and only {version} is known here: "
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

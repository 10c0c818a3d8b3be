"""Arrays in a file and back: npz without pickle, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def write_arrays(path: str | os.PathLike[str], kind: str, version: int, arrays: Mapping[str, Any]) -> None:
    """Write named arrays under a kind and a version; an interrupted write leaves the old file alone."""
    path = Path(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, kind=np.array(kind), version=np.array(version), **arrays)
        part.chmod(0o666 & ~_umask())  # mkstemp's own files are private
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def read_arrays(path: str | os.PathLike[str], kind: str, version: int) -> dict[str, Any]:
    """The arrays of a file of that kind, no newer than `version`; nothing in it is ever executed."""
    try:
        with np.load(path, allow_pickle=False) as file:
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError("not an npz archive")
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise
    except (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile, NotImplementedError) as error:
        raise ValueError(f"{path} is not a {kind} file, or is damaged: {error}") from error
    found = str(arrays.pop("kind", "foreign"))
    if found != kind:
        raise ValueError(f"{path} is a {found} file, a {kind} file was wanted")
    newer = int(arrays.pop("version", version + 1))
    if newer > version:
        raise ValueError(
            f"{path} has version {newer} of the {kind} format, and only {version} is known here: "
            "update rewardfree"
        )
    return arrays


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

"""Files that are replaced in one step or not at all, and named arrays in them: npz without pickle."""

import io
import math
import os
import re
import stat
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

if sys.platform != "win32":
    import fcntl

#: The memory that reading a file may take: this many bytes, or this multiple of the file's size.
ROOM, TIMES = 64 * 2**20, 20
#: Methods that need no memory of their own; others of the zip format may ask for gigabytes.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: The bytes of a zip's list of its members. It is read whole, takes many times as much memory, and a while.
_DIRECTORY = 2**20
#: The bytes of a name, a kind or a version that are read.
_SHORT = 1000
#: Bytes that a file system takes for a name, and those that tempfile adds to a prefix, with our ending.
_LONGEST_NAME, _ADDED = 255, 8 + len(".part")


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file that becomes `path` at the end. An interrupted write leaves the old file alone.

    A link is followed, and a file keeps its mode. What is no regular file is refused.
    """
    target = _target(path)
    _remove_stale_parts(target)
    lock, part = _new_part(target)
    try:
        yield part
        part.chmod(_mode(target))
        _sync(part)
        part.replace(target)
        with suppress(OSError):  # some file systems cannot sync a folder
            _sync(target.parent)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            raise OSError(error.errno, error.strerror, str(path)) from error  # a full disk names no file
        raise
    finally:
        os.close(lock)


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse, before a long run, a path that `written_whole` could not write to."""
    lock, part = _new_part(_target(path))
    part.unlink()
    os.close(lock)


def _target(path: str | os.PathLike[str]) -> Path:
    """Where links lead. Only there can a file be replaced without replacing a link."""
    parent = Path(path).parent
    if not parent.is_dir():
        raise FileNotFoundError(f"there is no folder {parent} for {Path(path).name}")
    target = Path(os.path.realpath(path))
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        if not target.parent.is_dir():
            raise FileNotFoundError(f"{path} is a link into {target.parent}, which is no folder") from None
        return target
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a device, a pipe or a link that leads to itself"
        raise OSError(f"{path} is {kind}, where a file is to be written: name another")
    return target


def _mode(target: Path) -> int:
    """Mode of the existing file, or the default mode for a new one (mkstemp's is private)."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync(path: Path) -> None:
    """Wait until it is on the disk: a rename may get there first."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _new_part(target: Path) -> tuple[int, Path]:
    """An empty file beside the target, and the descriptor that holds its lock until it is closed."""
    while True:
        try:
            lock, name = tempfile.mkstemp(dir=target.parent, prefix=_part_prefix(target), suffix=".part")
        except OSError as error:
            raise OSError(error.errno, f"no file can be made there: {error.strerror}", str(target)) from error
        part = Path(name)
        with suppress(BlockingIOError):  # it was taken for a stale one just now
            _lock(lock)
            if part.exists():
                return lock, part
        os.close(lock)


def _part_prefix(target: Path) -> str:
    """Its name, cut where the whole would be too long for a file system."""
    return os.fsencode(target.name)[: _LONGEST_NAME - _ADDED].decode(errors="ignore")


def _remove_stale_parts(target: Path) -> None:
    """Remove what killed writers left. Whoever still writes holds a lock."""
    pattern = re.compile(re.escape(_part_prefix(target)) + r"[a-z0-9_]{8}\.part")
    for part in [path for path in target.parent.iterdir() if pattern.fullmatch(path.name)]:
        if part.is_symlink() or not part.is_file():
            continue
        with suppress(OSError):  # somebody else's, or in use
            descriptor = os.open(part, os.O_RDONLY)
            try:
                if _lock(descriptor):
                    part.unlink()
            finally:
                os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Lock an open file, or say that there are no locks here. BlockingIOError: another has it."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


# Named arrays


def write_arrays(path: str | os.PathLike[str], kind: str, version: int, arrays: Mapping[str, Any]) -> None:
    """Write named arrays under a kind and a version. An interrupted write leaves the old file alone."""
    content: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in content.items():
        if array.dtype.hasobject:
            raise ValueError(f"{name} must be an array of numbers or text, got {array.dtype}")
    labelled: Any = {"kind": np.array(kind), "version": np.array(version), **content}
    with written_whole(path) as part:
        with part.open("wb") as file:
            np.savez_compressed(file, **labelled)
        if sum(array.nbytes for array in content.values()) > _room(part.stat().st_size):
            with part.open("wb") as file:  # so that its size says what it takes to read it
                np.savez(file, **labelled)


class _Opened(io.BufferedReader):
    """A file to read, at first no more than `_DIRECTORY` bytes at once."""

    whole = False

    def read(self, size: int | None = -1, /) -> bytes:
        if not self.whole and size is not None and size > _DIRECTORY:
            raise ValueError(f"its list of members has {size:,} bytes, and may have {_DIRECTORY:,}")
        return super().read(size)


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[_Opened]:
    """A file to read; of a device or a pipe there may be no end."""
    if not stat.S_ISREG(Path(path).stat().st_mode):
        raise OSError(f"{path} is no file: name one that was saved")
    with _Opened(io.FileIO(path)) as file:
        yield file


@contextmanager
def _archive(file: _Opened) -> Iterator[zipfile.ZipFile]:
    """Its members, of which so far only the list was read."""
    with zipfile.ZipFile(file) as archive:
        file.whole = True
        yield archive


def kind_of(path: str | os.PathLike[str]) -> str:
    """The kind that a file was written under; "foreign" if rewardfree did not write it."""
    with _opened(path) as file:
        try:
            with _archive(file) as archive:
                return _label(archive, "kind", "foreign")
        except Exception:  # see read_arrays
            return "foreign"


def read_arrays(path: str | os.PathLike[str], kind: str, version: int, names: str = ".*") -> dict[str, Any]:
    """The arrays of a file of this kind, no newer than `version`, whose names match; the rest is not read.

    Nothing in the file is executed, and nothing is read before its size is known.
    """
    with _opened(path) as file:
        try:
            with _archive(file) as archive:
                stored_kind = _label(archive, "kind", "foreign")
                stored_version = int(_label(archive, "version", "0"))
                arrays = {} if stored_kind != kind or stored_version > version else _read(archive, names)
        except Exception as error:  # of a dozen kinds: what zipfile, zlib and NumPy say of damage
            raise ValueError(f"{path} is not a {kind} file, or is damaged: {error}") from error
    if stored_kind != kind:
        raise ValueError(f"{path} is a {stored_kind} file, a {kind} file was wanted")
    if stored_version > version:
        raise ValueError(
            f"{path} has version {stored_version} of the {kind} format, and only {version} is known here: "
            "update rewardfree"
        )
    return arrays


@contextmanager
def content_of(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Name the file in any error of the block, which reads its content."""
    try:
        yield
    except Exception as error:  # a value of a file may be anything, and break anything
        raise ValueError(f"{path} does not hold {what}: {error}") from error


def _room(size: int) -> int:
    """How many bytes may be read of a file of that size."""
    return max(ROOM, TIMES * size)


def _label(archive: zipfile.ZipFile, name: str, missing: str) -> str:
    """A kind or a version."""
    member = f"{name}.npy"
    if member not in archive.NameToInfo:
        return missing
    return str(_array(archive, archive.getinfo(member), _SHORT)[()])


def _read(archive: zipfile.ZipFile, names: str) -> dict[str, Any]:
    wanted = {
        name: member
        for member in archive.infolist()
        if member.filename.endswith(".npy")
        and (name := member.filename.removesuffix(".npy")) not in ("kind", "version")
        and re.fullmatch(names, name)
    }
    assert archive.fp is not None
    room = _room(archive.fp.seek(0, os.SEEK_END))
    whole = sum(member.file_size for member in wanted.values())
    if whole > room:
        raise ValueError(f"it would take {whole:,} bytes of memory, and a file of its size at most {room:,}")
    return {name: _array(archive, member, room) for name, member in wanted.items()}


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, room: int) -> Any:
    """A member as an array that cannot be changed. Its head is believed only where the zip says the same."""
    name = member.filename
    if member.file_size > room or member.compress_type not in _METHODS:
        raise ValueError(f"{name} is too large, or compressed in a way that is not used here")
    with archive.open(member) as file:
        form = np.lib.format.read_magic(file)
        if form not in ((1, 0), (2, 0)):
            raise ValueError(f"{name} has form {form} of npy, which is not used here")
        head = np.lib.format.read_array_header_1_0 if form == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = head(file)
        if dtype.kind not in "biufU":
            raise ValueError(f"Object arrays and records are never read, and {name} holds {dtype}")
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or size != member.file_size - file.tell():
            raise ValueError(f"{name} says that it holds {size:,} bytes, and does not")
        data = file.read()
    array = np.frombuffer(data, dtype) if size else np.empty(0, dtype)
    array = array.reshape(shape, order="F" if by_columns else "C")
    if dtype.kind == "b":  # any byte but 0 is True, and is to be that to everyone
        array = np.asarray(array.view(np.uint8) != 0)
    array.flags.writeable = False
    return array

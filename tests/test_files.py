"""Arrays in a file and back: whole or not at all, and nothing that could be executed."""

import gc
import io
import os
import pickle
import signal
import stat
import subprocess
import sys
import tempfile
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import rewardfree.files as files
from rewardfree.files import check_target, kind_of, read_arrays, write_arrays, written_whole

DTYPES = st.sampled_from([np.float64, np.float32, np.int64, np.uint8, np.bool_, np.dtype("<U4")])
ARRAYS = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
NAMES = st.text("abcXYZ_'0 ", min_size=1, max_size=6).filter(lambda name: name not in ("kind", "version"))
SOME = {"P": np.arange(24.0).reshape(2, 3, 4), "flags": np.array([True, False]), "name": np.array("x")}


class Raises:
    """An array that cannot be had: numpy asks for it after it has written those before it."""

    def __init__(self, error):
        self.error = error

    def __array__(self, dtype=None, copy=None):
        raise self.error


def same(one, other):
    return one.keys() == other.keys() and all(
        np.array_equal(one[name], other[name], equal_nan=one[name].dtype.kind == "f")
        and one[name].dtype == other[name].dtype
        for name in one
    )


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "some.npz"
    write_arrays(path, "Thing", 1, SOME)
    return path


@settings(max_examples=25)
@given(st.dictionaries(NAMES, ARRAYS, max_size=4))
def test_arrays_come_back_as_they_went(arrays):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "some.npz")
        write_arrays(path, "Thing", 1, arrays)
        assert same(read_arrays(path, "Thing", 1), arrays)
        assert os.listdir(folder) == ["some.npz"]  # noqa: PTH208  names, not paths


def test_the_file_is_a_plain_npz(written):
    with np.load(written, allow_pickle=False) as file:
        assert sorted(file.files) == sorted([*SOME, "kind", "version"])
        assert str(file["kind"]) == "Thing" and int(file["version"]) == 1
        assert np.array_equal(file["P"], SOME["P"])


def test_lists_and_numbers_are_written_as_arrays(tmp_path):
    write_arrays(tmp_path / "x", "Thing", 1, {"horizon": 4, "start": [0.5, 0.5]})
    found = read_arrays(tmp_path / "x", "Thing", 1)
    assert found["horizon"].shape == () and int(found["horizon"]) == 4
    assert found["start"].tolist() == [0.5, 0.5]


def test_the_name_of_the_file_is_kept(tmp_path):
    for name in ("world", "world.npz", "a world.dat"):
        write_arrays(tmp_path / name, "Thing", 1, SOME)
        write_arrays(str(tmp_path / f"{name}2"), "Thing", 1, SOME)
    names = ("world", "world.npz", "a world.dat")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, *(f"{n}2" for n in names)])


def test_a_relative_path_is_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_arrays("some.npz", "Thing", 1, SOME)
    assert same(read_arrays("some.npz", "Thing", 1), SOME)


def test_writing_again_replaces(written):
    write_arrays(written, "Thing", 1, {"x": np.ones(2)})
    assert list(read_arrays(written, "Thing", 1)) == ["x"]


@pytest.mark.skipif(os.name != "posix", reason="POSIX modes")
def test_others_may_read_what_the_umask_lets_them(tmp_path):
    before = os.umask(0o027)
    try:
        write_arrays(tmp_path / "x", "Thing", 1, SOME)
        assert os.umask(0o027) == 0o027  # put back
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("error", [RuntimeError("no"), KeyboardInterrupt(), MemoryError()], ids=repr)
def test_an_interrupted_write_leaves_the_old_file(written, error):
    before = written.read_bytes()
    with pytest.raises(type(error)):
        write_arrays(written, "Thing", 1, {"large": np.zeros(10_000), "bad": Raises(error)})
    assert written.read_bytes() == before
    assert list(written.parent.iterdir()) == [written]


def test_an_interrupted_first_write_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError):
        write_arrays(tmp_path / "x.npz", "Thing", 1, {"bad": Raises(RuntimeError("no"))})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_the_way_is_left_alone(tmp_path):
    folder = tmp_path / "x.npz"
    folder.mkdir()
    with pytest.raises(OSError):
        write_arrays(folder, "Thing", 1, SOME)
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits")
@pytest.mark.parametrize("killed", [True, False], ids=["killed", "disk full"])
def test_a_writer_stopped_halfway_leaves_the_old_file(written, killed):
    """No file may grow beyond 50,000 bytes: the kernel kills the writer there, or tells it."""
    before = written.read_bytes()
    source = f"""
import resource, signal, sys
import numpy as np
from rewardfree.files import write_arrays

many = np.random.default_rng(0).random(100_000)
signal.signal(signal.SIGXFSZ, signal.{"SIG_DFL" if killed else "SIG_IGN"})
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
write_arrays(sys.argv[1], "Thing", 1, {{"many": many}})
"""
    command = [sys.executable, "-B", "-c", source, str(written)]
    done = subprocess.run(command, timeout=60, check=False, capture_output=True, text=True)
    assert written.read_bytes() == before
    parts = [path for path in written.parent.iterdir() if path != written]
    if killed:  # what it had written lies beside the file, until the next one is written
        assert done.returncode == -signal.SIGXFSZ
        assert [(part.suffix, part.stat().st_size) for part in parts] == [(".part", 50_000)]
        write_arrays(written, "Thing", 1, {"x": np.ones(2)})
        assert list(read_arrays(written, "Thing", 1)) == ["x"]
        assert list(written.parent.iterdir()) == [written]
    else:
        assert "OSError: [Errno 27] File too large" in done.stderr
        assert parts == []


def test_a_file_cut_short_anywhere_is_refused(written):
    whole = written.read_bytes()
    for length in range(len(whole)):
        written.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"some\.npz is not a Thing file, or is damaged"):
            read_arrays(written, "Thing", 1)


def test_a_changed_byte_is_refused_or_harmless(written):
    """zlib.error, tokenize.TokenError and RuntimeError come through: none of them is a ValueError."""
    whole = written.read_bytes()
    for place in range(len(whole)):
        for bit in (1, 16, 128):
            changed = bytearray(whole)
            changed[place] ^= bit
            written.write_bytes(bytes(changed))
            try:
                found = read_arrays(written, "Thing", 1)
            except ValueError:
                continue
            # A change of the zip's own directory may lose an array, which its reader will miss.
            assert same(found, {name: SOME[name] for name in found}), place


def test_a_damaged_file_is_closed_again(written):
    written.write_bytes(written.read_bytes()[:-10])
    gc.collect()  # what others left open is theirs
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with pytest.raises(ValueError):
            read_arrays(written, "Thing", 1)
        gc.collect()
    assert said == []


def test_a_missing_file_is_called_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.npz"):
        read_arrays(tmp_path / "nowhere.npz", "Thing", 1)


def test_another_kind_of_file_is_refused(written):
    with pytest.raises(ValueError, match=r"some\.npz is a Thing file, a FiniteWorld file was wanted"):
        read_arrays(written, "FiniteWorld", 1)


def test_somebody_elses_npz_is_refused(tmp_path):
    np.savez(tmp_path / "x.npz", P=np.ones(3))
    with pytest.raises(ValueError, match=r"x\.npz is a foreign file, a Thing file was wanted"):
        read_arrays(tmp_path / "x.npz", "Thing", 1)


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04", b"\x93NUMPY", pickle.dumps([1, 2])])
def test_what_is_no_npz_is_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ValueError, match="x is not a Thing file, or is damaged"):
        read_arrays(tmp_path / "x", "Thing", 1)


def test_a_zip_of_texts_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as file:
        file.writestr("readme.txt", "hello")
        file.writestr("kind.npy", "Thing")
    with pytest.raises(ValueError, match=r"x\.npz is "):
        read_arrays(tmp_path / "x.npz", "Thing", 1)


def test_a_single_npy_array_is_refused(tmp_path):
    """np.load returns an array, which is no context manager: a TypeError comes through."""
    np.save(tmp_path / "x.npy", np.ones(3))
    with pytest.raises(ValueError, match=r"x\.npy is not a Thing file"):
        read_arrays(tmp_path / "x.npy", "Thing", 1)


@pytest.mark.parametrize("known", [1, 2, 3])
@pytest.mark.parametrize("written_with", [1, 2, 3])
def test_older_versions_are_read_and_newer_ones_refused(tmp_path, written_with, known):
    path = tmp_path / "x.npz"
    write_arrays(path, "Thing", written_with, SOME)
    if written_with <= known:
        assert same(read_arrays(path, "Thing", known), SOME)
    else:
        said = f"x.npz has version {written_with} of the Thing format, and only {known} is known here: update"
        with pytest.raises(ValueError, match=said):
            read_arrays(path, "Thing", known)


@pytest.mark.parametrize("version", [np.array("new"), np.array([1, 2]), np.array(np.nan)], ids=repr)
def test_a_version_that_is_no_number_is_damage(tmp_path, version):
    np.savez(tmp_path / "x.npz", kind=np.array("Thing"), version=version)
    with pytest.raises(ValueError, match=r"x\.npz"):
        read_arrays(tmp_path / "x.npz", "Thing", 1)


class Malice:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_pickled_objects_are_refused_and_not_run(tmp_path):
    victim, path = tmp_path / "victim", tmp_path / "x.npz"
    np.savez(path, kind=np.array("Thing"), version=np.array(1), P=np.array([Malice(victim)], dtype=object))
    with pytest.raises(ValueError, match=r"x\.npz is not a Thing file, or is damaged: Object arrays"):
        read_arrays(path, "Thing", 1)
    assert not victim.exists()
    np.load(path, allow_pickle=True)["P"]  # it would have been run
    assert victim.exists()


def test_objects_are_not_written_either(tmp_path):
    """numpy pickles them by default, into a file that nobody here can read again."""
    with pytest.raises(ValueError):
        write_arrays(tmp_path / "x.npz", "Thing", 1, {"P": np.array([{}], dtype=object)})
    assert list(tmp_path.iterdir()) == []


# --- files of any kind ---


def test_a_file_takes_its_place_at_the_end(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("old")
    with written_whole(path) as part:
        part.write_text("new")
        assert path.read_text() == "old" and part.parent == tmp_path and part != path
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]
    with written_whole(str(tmp_path / "first.txt")) as part:
        part.write_text("first")
        assert not (tmp_path / "first.txt").exists()
    assert (tmp_path / "first.txt").read_text() == "first"


@pytest.mark.parametrize("error", [RuntimeError("no"), KeyboardInterrupt(), SystemExit(3)], ids=repr)
@pytest.mark.parametrize("there", [True, False], ids=["old", "first"])
def test_a_writer_that_fails_leaves_what_was_there(tmp_path, error, there):
    path = tmp_path / "table.txt"
    if there:
        path.write_text("old")
    with pytest.raises(type(error)), written_whole(path) as part:
        part.write_text("half of")
        raise error
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("table.txt", "old")] * there


def test_a_writer_that_writes_to_no_file_leaves_an_empty_one(tmp_path):
    with written_whole(tmp_path / "table.txt"):
        pass
    assert (tmp_path / "table.txt").read_bytes() == b"" and len(list(tmp_path.iterdir())) == 1


def test_two_writers_of_one_file_do_not_meet(tmp_path):
    path = tmp_path / "table.txt"
    with written_whole(path) as first, written_whole(path) as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first" and list(tmp_path.iterdir()) == [path]  # which ended last


def test_a_missing_folder_is_named_and_not_made(tmp_path):
    with (
        pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere for table\.txt"),
        written_whole(tmp_path / "nowhere" / "table.txt"),
    ):
        pytest.fail("nothing can be written there")
    assert list(tmp_path.iterdir()) == []


def wrote(path, text):
    with written_whole(path) as part:
        part.write_text(text)


@pytest.mark.skipif(os.name != "posix", reason="links and pipes")
def test_a_link_is_followed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for target, link in (("there.txt", "link.txt"), ("not there yet.txt", "empty link.txt")):
        Path(link).symlink_to(target)
        Path("there.txt").write_text("old")
        wrote(link, "new")
        assert Path(link).is_symlink() and Path(target).read_text() == "new"
        assert not Path(target).is_symlink()
    Path("lost.txt").symlink_to("nowhere/x.txt")
    with pytest.raises(FileNotFoundError, match=r"lost\.txt is a link into .*nowhere, which is no folder"):
        wrote("lost.txt", "new")


@pytest.mark.skipif(os.name != "posix", reason="links and pipes")
def test_what_is_no_file_is_refused_and_left_alone(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    with suppress(PermissionError):  # who is not root makes no devices
        os.mknod(tmp_path / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    before = {path.name: path.lstat().st_mode for path in tmp_path.iterdir()}
    kinds = {"pipe": "a device, a pipe", "loop": "a link", "folder": "a folder", "null": "a device"}
    for name, kind in ((name, kinds[name]) for name in before):
        for attempt in (check_target, lambda path: wrote(path, "new")):
            with pytest.raises(OSError, match=rf"{name} is .*{kind}.*: name another"):
                attempt(tmp_path / name)
    assert {path.name: path.lstat().st_mode for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("name", ["x" * 249, "x" * 255, "ä" * 127], ids=len)
def test_names_may_be_as_long_as_the_disk_takes_them(tmp_path, name):
    check_target(tmp_path / name)
    wrote(tmp_path / name, "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "new")]


@pytest.mark.skipif(os.name != "posix", reason="POSIX modes")
def test_a_private_file_stays_private(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("old")
    path.chmod(0o600)
    wrote(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(os.name != "posix", reason="locks")
def test_what_killed_writers_left_is_removed_and_living_ones_are_not_touched(tmp_path):
    path = tmp_path / "x.txt"
    others = [tmp_path / name for name in ("x.txt.part", "x.txt.mine.part", "y.txtabcdefgh.part", "x.txtabc")]
    for other in others:
        other.write_text("mine")
    (tmp_path / "x.txtabcdefgh.part").write_text("half of")
    with written_whole(path) as first:
        assert not (tmp_path / "x.txtabcdefgh.part").exists()
        wrote(path, "second")
        assert first.exists()
    assert {each.name for each in tmp_path.iterdir()} == {"x.txt", *(other.name for other in others)}


def test_a_file_is_on_the_disk_before_it_takes_its_place(tmp_path, monkeypatch):
    def sync(descriptor):
        happened.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        assert (tmp_path / "x.txt").exists() == (happened[-1] == "folder")

    happened = []
    monkeypatch.setattr(os, "fsync", sync)
    wrote(tmp_path / "x.txt", "new")
    assert happened == ["file", "folder"]


def test_a_path_is_tried_before_a_long_run(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("old")
    check_target(path)
    check_target(tmp_path / "new.txt")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("x.txt", "old")]
    for wrong in (tmp_path / "nowhere" / "x.txt", tmp_path / ("x" * 256), tmp_path):
        with pytest.raises(OSError):
            check_target(wrong)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match=r"no file can be made there.*x\.txt"):
        check_target(tmp_path / "x.txt")
    tmp_path.chmod(0o700)


# --- what is read of an archive ---


@pytest.mark.skipif(os.name != "posix", reason="pipes")
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_not_read(tmp_path, make):
    """A pipe would be waited for, and /dev/zero fill the memory."""
    make(tmp_path / "x.npz")
    for attempt in (kind_of, lambda path: read_arrays(path, "Thing", 1)):
        with pytest.raises(OSError, match=r"x\.npz is no file"):
            attempt(tmp_path / "x.npz")


def repacked(path, **members):
    """Those members in an archive more, or in the place of its own; bytes are taken as they are."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    for name, value in members.items():
        if not isinstance(value, bytes):
            file = io.BytesIO()
            np.lib.format.write_array(file, np.asarray(value))
            value = file.getvalue()
        content[f"{name}.npy"] = value
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in content.items():
            archive.writestr(name, value)


def headed(head, content=b"", version=b"\x01\x00"):
    size = 2 if version[0] == 1 else 4
    return b"\x93NUMPY" + version + (len(head) + 1).to_bytes(size, "little") + head.encode() + b"\n" + content


def test_only_what_was_asked_for_is_read(written, monkeypatch):
    repacked(written, unknown=np.zeros(20_000_000), P=SOME["P"])
    opened, real = [], zipfile.ZipFile.open

    def watched(archive, member, *rest, **more):
        opened.append(member.filename)
        return real(archive, member, *rest, **more)

    monkeypatch.setattr(zipfile.ZipFile, "open", watched)
    assert kind_of(written) == "Thing" and set(opened) == {"kind.npy"}
    found = read_arrays(written, "Thing", 1, "P|fla.s")
    assert same(found, {name: SOME[name] for name in ("P", "flags")})
    assert set(opened) == {"kind.npy", "version.npy", "P.npy", "flags.npy"}


def test_a_small_file_does_not_fill_the_memory(written):
    """A zip makes zeros a thousand times smaller: this one is 160 kB."""
    repacked(written, P=np.zeros(20_000_000))
    assert written.stat().st_size < 300_000
    with pytest.raises(ValueError, match=r"it would take 160,\d+,\d+ bytes of memory, .* at most 67,108,864"):
        read_arrays(written, "Thing", 1, "P")
    repacked(written, kind=np.zeros(20_000_000))
    assert kind_of(written) == "foreign"
    with pytest.raises(ValueError, match=r"kind\.npy is too large"):
        read_arrays(written, "Thing", 1)


def test_what_is_written_can_always_be_read(tmp_path, monkeypatch):
    """A world of almost only zeros: where compression would look like an attack it is left out."""
    monkeypatch.setattr(files, "ROOM", 10_000)
    zeros, path = {"P": np.zeros((100, 100, 10))}, tmp_path / "x.npz"
    write_arrays(path, "Thing", 1, zeros)
    assert same(read_arrays(path, "Thing", 1), zeros) and path.stat().st_size > 800_000
    write_arrays(path, "Thing", 1, {"P": np.zeros(1000)})
    assert path.stat().st_size < 1000


@pytest.mark.parametrize(
    "member",
    [
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (1" + 30 * "0" + ",), }"),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (10**9,), }"),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000,), }"),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }", bytes(8)),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 1" + 30 * "0" + "), }"),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", bytes(16)),
        headed("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }", bytes(8)),
        headed("{'descr': '<c16', 'fortran_order': False, 'shape': (1,), }", bytes(16)),
        headed("(" * 5000),
        headed("~" + "-" * 5000 + "1"),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", bytes(8), b"\x03\x00"),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", bytes(8), b"\xff\xff"),
        b"\x80NUMPY\x01\x00", b"", b"PK",
    ],
    ids=range(15),
)  # fmt: skip
def test_a_head_that_lies_is_refused(written, member):
    repacked(written, P=member)
    with pytest.raises(ValueError, match=r"some\.npz is not a Thing file, or is damaged"):
        read_arrays(written, "Thing", 1)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(written, method):
    """Their own memory is what the file says it is."""
    with zipfile.ZipFile(written, "a", method) as archive:
        archive.writestr("more.npy", b"\x93NUMPY")
    with pytest.raises(ValueError, match="compressed in a way that is not used here"):
        read_arrays(written, "Thing", 1)


def test_what_is_read_cannot_be_changed(written):
    for array in read_arrays(written, "Thing", 1).values():
        assert not array.flags.writeable


def test_a_flag_is_true_or_false(written):
    """Its byte may be any other than 0 and 1 in a file: sums would count it so often."""
    head = headed("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", b"\x00\x07")
    repacked(written, flags=head)
    flags = read_arrays(written, "Thing", 1)["flags"]
    assert flags.tolist() == [False, True] and flags.view(np.uint8).tolist() == [0, 1]

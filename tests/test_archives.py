"""What is read of an archive of arrays."""

import io
import os
import zipfile

import numpy as np
import pytest

import rewardfree.files as files
from archive_cases import SOME, same
from rewardfree.files import kind_of, read_arrays, write_arrays


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "some.npz"
    write_arrays(path, "Thing", 1, SOME)
    return path


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


def test_a_long_list_of_members_is_not_read(written):
    """An entry of 60 bytes becomes an object of 600; a file of 14 MB took a second and a half."""
    with zipfile.ZipFile(written, "a") as archive:
        for number in range(20_000):
            archive.writestr(zipfile.ZipInfo(f"{number:012}"), b"")
    assert kind_of(written) == "foreign"
    with pytest.raises(ValueError, match=r"its list of members has 1,\d+,\d+ bytes, and may have 1,048,576"):
        read_arrays(written, "Thing", 1)


def test_large_arrays_are_read_however_they_are_stored(tmp_path):
    large = {"P": np.random.default_rng(0).random(300_000), "zeros": np.zeros(300_000)}
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "x.npz", kind="Thing", version=1, **large)
        assert same(read_arrays(tmp_path / "x.npz", "Thing", 1), large)


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

"""Units whose records are files: the same bytes each time, clocks beside them, damage is named."""

import re
import time
from dataclasses import dataclass

import pytest

from rewardfree.experiments.baselines import BaselineUnit
from rewardfree.experiments.unitfiles import is_stored, read_stored, run_stored


@dataclass(frozen=True)
class Timed:
    """Says a number, and a time that is another one in every run."""

    number: int

    @property
    def key(self):
        return f"timed-{self.number}"

    @property
    def names(self):
        return "timed", "none", str(self.number)

    def run(self, allow_imports=False):
        return [{"n": self.number, "seconds": {"plan": time.perf_counter_ns()}}, {"n": -self.number}]


def stored(folder, *units):
    list(run_stored(units, folder, jobs=1))
    return {path.name: path.read_bytes() for path in folder.iterdir() if "seconds" not in path.name}


def test_records_come_back_with_their_seconds(tmp_path):
    stored(tmp_path, Timed(4))
    first, second = read_stored([Timed(4)], tmp_path)
    assert first == {"n": 4, "seconds": {"plan": first["seconds"]["plan"]}}
    assert second == {"n": -4, "seconds": {}}


def test_records_are_the_same_bytes_whatever_the_clock_says(tmp_path):
    units = [Timed(1), Timed(2)]
    once, again = stored(tmp_path / "once", *units), stored(tmp_path / "again", *units)
    assert once == again and len(once) == 2
    seconds = [read_stored(units, tmp_path / name)[0]["seconds"] for name in ("once", "again")]
    assert seconds[0] != seconds[1]


def test_a_real_comparison_leaves_the_same_bytes(tmp_path):
    unit = BaselineUnit("riverswim", 11, quick=True)
    once, again = stored(tmp_path / "once", unit), stored(tmp_path / "again", unit)
    assert once == again and len(once) == 1
    assert all(each["seconds"]["explore"] >= 0.0 for each in read_stored([unit], tmp_path / "once"))


@pytest.mark.parametrize("lost", ["timed-1.json", "timed-1.seconds.json"])
def test_a_unit_without_one_of_its_files_is_run_again(lost, tmp_path):
    stored(tmp_path, Timed(1))
    (tmp_path / lost).unlink()
    assert not is_stored(Timed(1), tmp_path) and read_stored([Timed(1)], tmp_path) == []
    stored(tmp_path, Timed(1))
    assert len(read_stored([Timed(1)], tmp_path)) == 2


@pytest.mark.parametrize("name", ["timed-1.json", "timed-1.seconds.json"])
@pytest.mark.parametrize("content", [b'[{"n":', b"", b"\xff\xfe", b"{}", b"[1, 2]", b"[{}]"])
def test_a_damaged_file_is_named(name, content, tmp_path):
    stored(tmp_path, Timed(1))
    (tmp_path / name).write_bytes(content)
    either = content == b"[{}]"  # whole, but not as long as the other
    said = r"timed-1\.json or .*timed-1\.seconds\.json" if either else rf"/{re.escape(name)}"
    with pytest.raises(ValueError, match=f"{said} is damaged: remove it"):
        read_stored([Timed(1)], tmp_path)

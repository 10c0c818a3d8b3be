"""A short run of tools/fuzz.py, which anyone can run longer: `make fuzz`."""

import importlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[1] / "tools" / "fuzz.py"
pytestmark = pytest.mark.skipif(not FUZZ.exists(), reason="tools/ is not here")


def fuzz(tmp_path, *arguments):
    command = [sys.executable, str(FUZZ), "--keep", str(tmp_path / "kept"), *map(str, arguments)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def test_damaged_files_and_odd_formulas_are_read_or_refused(tmp_path):
    done = fuzz(tmp_path, "--files", 600, "--formulas", 1500, "--seed", 1)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("\n0 faults\n") and not (tmp_path / "kept").exists()
    files, *kinds, formulas, _ = done.stdout.splitlines()
    for counts in (files, formulas):
        accepted, refused = re.search(r"([\d,]+) accepted, ([\d,]+) refused", counts).groups()
        assert int(accepted.replace(",", "")) > 20 and int(refused.replace(",", "")) > 200
    assert len(kinds) == 20 and all("refused" in kind for kind in kinds)


def forever():
    while True:
        pass


def evil():
    import evilmod  # noqa: F401


@pytest.mark.parametrize(
    ("read", "fault"),
    [
        (lambda: {}["no"], "a traceback: KeyError: 'no'"),
        (forever, "more than 1 s of CPU"),
        (lambda: len(b"x" * 300_000_000), r"\d+ MB of memory"),
        (evil, "code was run"),
        (lambda: "other", "damage that gave other content"),
        (lambda: "said", "None"),
        (lambda: int("x"), "None"),
        (lambda: Path("nowhere").read_text(), "None"),
    ],
)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc")
def test_faults_are_seen(tmp_path, monkeypatch, read, fault):
    monkeypatch.syspath_prepend(FUZZ.parent)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "evilmod.py").touch()
    watch = importlib.import_module("fuzz").Watch(tmp_path)
    before = signal.getsignal(signal.SIGPROF)
    try:
        assert re.fullmatch(fault, str(watch.tried("case", read, "said")))
    finally:
        signal.signal(signal.SIGPROF, before)
    assert len(watch.faults) == (fault != "None")

"""Settings that all tests share."""

import sys

import pytest
from hypothesis import settings

from rewardfree.cli import main
from rewardfree.threads import one_blas_thread

# A slow machine must not turn a right answer into a failure; the examples are the same on every run.
settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("repeatable")


@pytest.fixture(scope="module")
def one_thread():
    """One BLAS thread: the matrices here are small, and a second thread makes them slower."""
    with one_blas_thread():
        yield


@pytest.fixture
def cli(monkeypatch, capsys):
    """What `rewardfree ...` ends with and prints, in this process: exit code, lines of stdout, of stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["rewardfree", *map(str, arguments)])
        with pytest.raises(SystemExit) as done:
            main()
        said = capsys.readouterr()
        return done.value.code or 0, said.out.splitlines(), said.err.splitlines()

    return run

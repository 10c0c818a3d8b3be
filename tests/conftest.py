"""Settings that all tests share."""

import pytest
from hypothesis import settings

from rewardfree.threads import one_blas_thread

# A slow machine must not turn a right answer into a failure; the examples are the same on every run.
settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("repeatable")


@pytest.fixture(scope="module")
def one_thread():
    """One BLAS thread: the matrices here are small, and a second thread makes them slower."""
    with one_blas_thread():
        yield

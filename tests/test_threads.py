"""One BLAS thread while the engine works, the user's number before and after."""

import os
import threading

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  so that its BLAS is counted too
from threadpoolctl import threadpool_info, threadpool_limits

import rewardfree as rf

Z = np.random.default_rng(0).random((30, 2))


@pytest.fixture(autouse=True)
def two_threads():
    """A setting that is not 1 anywhere, also on a machine with one core."""
    with threadpool_limits(2, user_api="blas"):
        assert threads() == {2}
        yield
        assert threads() == {2}


def threads():
    """The numbers of threads that the loaded BLAS libraries are set to."""
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_one_inside_the_earlier_number_after():
    with rf.threads.one_blas_thread():
        assert threads() == {1}
    assert threads() == {2}


def test_number_is_back_after_an_exception():
    with pytest.raises(KeyError), rf.threads.one_blas_thread():
        assert threads() == {1}
        raise KeyError
    assert threads() == {2}


def test_nested_blocks_end_with_the_outer_one():
    with rf.threads.one_blas_thread():
        with rf.threads.one_blas_thread():
            assert threads() == {1}
        assert threads() == {1}
        with pytest.raises(KeyError), rf.threads.one_blas_thread():
            raise KeyError
        assert threads() == {1}
    assert threads() == {2}


def test_blocks_can_follow_each_other():
    for _ in range(3):
        with rf.threads.one_blas_thread():
            assert threads() == {1}
        assert threads() == {2}


def test_exception_in_a_nested_block_passes_both():
    with pytest.raises(KeyError), rf.threads.one_blas_thread(), rf.threads.one_blas_thread():
        raise KeyError
    assert threads() == {2}
    with rf.threads.one_blas_thread():
        assert threads() == {1}


def test_another_setting_comes_back_too():
    with threadpool_limits(3, user_api="blas"):
        with rf.threads.one_blas_thread():
            assert threads() == {1}
        assert threads() == {3}


def test_block_works_as_a_decorator():
    assert rf.threads.one_blas_thread()(threads)() == {1}
    assert threads() == {2}


def watched(seen):
    """A kernel that notes the number of BLAS threads whenever its matrix is asked for."""

    def kernel(x, y):
        seen.append(threads())
        return rf.Matern(1.5, 0.3)(x, y)

    kernel.diag = rf.Matern(1.5, 0.3).diag
    return kernel


def test_design_leaves_the_setting():
    seen = []
    design = rf.posterior.Design(watched(seen), ridge=0.1)
    for call in [
        lambda: design.extend(Z[:4]),
        lambda: design.extend(Z[4:5]),
        lambda: design.mean(np.ones(5), Z),
        lambda: design.mean(np.ones((5, 2)), Z),
        lambda: design.std(Z),
        lambda: design.information_gain(),
    ]:
        call()
        assert threads() == {2}
    seen.clear()
    design.mean(np.ones(5), Z)
    assert seen[-1] == {1}  # while it worked; the check at the door may come before


def test_lattice_leaves_the_setting():
    lattice = rf.posterior.Lattice(rf.Matern(1.5, 0.3), Z, ridge=0.1, designs=2)
    assert threads() == {2}
    for call in [
        lambda: lattice.append(None, [0, 1]),
        lambda: lattice.extend(Z[:3]),
        lambda: lattice.mean(np.ones((2, 4))),
        lambda: lattice.mean(np.ones((2, 4)), rows=[0, 1]),
        lambda: lattice.std(),
        lambda: lattice.information_gain(),
    ]:
        call()
        assert threads() == {2}


@pytest.mark.parametrize("bad", ["points", "targets"])
def test_a_refused_call_leaves_the_setting(bad):
    design = rf.posterior.Design(rf.Matern(1.5, 0.3), ridge=0.1)
    design.extend(Z)
    with pytest.raises(ValueError, match=bad):
        if bad == "points":
            design.extend([[np.nan, 0.0]])
        else:
            design.mean([1.0], Z)
    assert threads() == {2}


def test_a_failing_kernel_leaves_the_setting():
    def kernel(x, y):
        raise ArithmeticError

    kernel.diag = rf.kernels.Delta().diag
    with pytest.raises(ArithmeticError):
        rf.posterior.Design(kernel, ridge=0.1).extend(Z)
    assert threads() == {2}


def test_query_plan_leaves_the_setting():
    model = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1)
    plan = rf.query_plan(model, Z, 5)
    assert threads() == {2}
    rf.strategies.uncertainty_path(model, Z, plan)
    assert threads() == {2}


def test_every_question_works_with_one_thread():
    seen = []
    kernel = watched(seen)
    design, lattice = (
        rf.posterior.Design(kernel, ridge=0.1),
        rf.posterior.Lattice(kernel, Z, ridge=0.1, designs=2, capacity=4),
    )
    for call in [
        lambda: design.extend(Z[:4]),
        lambda: design.mean(np.ones(4), Z),
        lambda: design.std(Z),
        lambda: (lattice.append(None, [0, 1]), lattice.std()),
        lambda: (lattice.append(None, [2, 3]), lattice.mean(np.ones((2, 2)))),
        lambda: (lattice.append(None, [4, 5]), lattice.append(None, [6, 7])),
    ]:
        seen.clear()
        call()
        assert seen[-1] == {1}


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # newer Pythons warn of any thread at all
def test_a_forked_child_starts_afresh():
    """It leaves the block in which its parent forked, and can open and leave others."""
    with rf.threads.one_blas_thread():
        child = os.fork()
        held = threads()
    after = threads()
    if child == 0:
        with rf.threads.one_blas_thread():
            again = threads()
        os._exit(0 if (held, after, again, threads()) == ({1}, {2}, {1}, {2}) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_the_threads_it_lost():
    inside, leave = threading.Event(), threading.Event()

    def other():
        with rf.threads.one_blas_thread():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        before = threads()
        with rf.threads.one_blas_thread():
            again = threads()
        os._exit(0 if (before, again, threads()) == ({2}, {1}, {2}) else 1)
    leave.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_that_overlap_share_the_limit():
    inside, leave = threading.Event(), threading.Event()

    def other():
        with rf.threads.one_blas_thread():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with rf.threads.one_blas_thread():
        thread.start()
        inside.wait()
    assert threads() == {1}
    leave.set()
    thread.join()
    assert threads() == {2}

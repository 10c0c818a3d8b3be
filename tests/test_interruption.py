"""Interruptions that wait until nothing can swallow them, and those that come twice."""

import signal
import threading
from contextlib import nullcontext, suppress

import pytest
from gymnasium.envs.classic_control.pendulum import PendulumEnv

import rewardfree as rf
from rewardfree.interruption import (
    ENDING,
    interrupted_later,
    interrupted_once,
    signal_of,
    terminated_as_interrupted,
)
from rewardfree.strategies.world_run import WorldRun


@pytest.mark.parametrize("number", [signal.SIGINT, *ENDING])
def test_an_interruption_waits_for_the_end_of_the_block(number):
    before, done = signal.getsignal(number), []
    with terminated_as_interrupted(), pytest.raises(KeyboardInterrupt) as reason, interrupted_later():
        signal.raise_signal(number)
        done.append("the rest of the block")
    assert done == ["the rest of the block"]
    assert reason.value.args == (() if number == signal.SIGINT else (number.name,))
    assert signal_of(reason.value) == number
    assert signal.getsignal(number) is before


def test_an_interruption_counts_for_more_than_what_failed_meanwhile():
    with pytest.raises(KeyboardInterrupt), interrupted_later():
        signal.raise_signal(signal.SIGINT)
        raise ValueError("which was on its way")


def test_a_termination_that_would_end_the_process_is_left_alone():
    with interrupted_later():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler


def test_other_threads_have_no_signals_to_keep():
    def work():
        with interrupted_later():
            handlers.append(signal.getsignal(signal.SIGINT))

    handlers = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no SIGHUP")
def test_a_closed_terminal_is_an_interruption_but_not_under_nohup():
    assert ENDING == [signal.SIGTERM, signal.SIGHUP]
    before = signal.getsignal(signal.SIGHUP)
    with pytest.raises(KeyboardInterrupt, match="SIGHUP"), terminated_as_interrupted():
        signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is before
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with terminated_as_interrupted():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_interruption_that_says_something_else_is_ctrl_c():
    assert signal_of(KeyboardInterrupt("enough")) == signal.SIGINT


@pytest.mark.parametrize("number", [signal.SIGINT, *ENDING])
def test_one_interruption_is_enough(number):
    """A closed terminal sends SIGHUP twice."""
    before, done = {each: signal.getsignal(each) for each in (signal.SIGINT, *ENDING)}, []
    with interrupted_once() as outer:
        with interrupted_once() as inner:
            try:
                signal.raise_signal(number)
            except KeyboardInterrupt as reason:
                assert signal_of(reason) == number
                signal.raise_signal(number)
                signal.raise_signal(signal.SIGTERM)
        with interrupted_later():
            signal.raise_signal(signal.SIGINT)
        done.append("the end of both blocks")
    assert done and inner is outer and outer.received
    assert {each: signal.getsignal(each) for each in before} == before


def test_a_users_own_ctrl_c_and_what_is_ignored_are_left_alone():
    before, heard = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}, []
    signal.signal(signal.SIGINT, lambda *_: heard.append("Ctrl-C"))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with interrupted_once() as once:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
        assert heard == ["Ctrl-C"] and not once.received
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@pytest.fixture
def signalled(monkeypatch):
    """The sixtieth step of a pendulum hears a signal, as a context manager says."""

    def at_sixty(number, hearing):
        def stepped(self, action):
            made.append(1)
            if len(made) == 60:
                with hearing:
                    signal.raise_signal(number)
            return step(self, action)

        monkeypatch.setattr(PendulumEnv, "step", stepped)

    step, made = PendulumEnv.step, []
    return at_sixty


@pytest.mark.parametrize("number", [signal.SIGINT, *ENDING])
def test_a_second_signal_loses_no_data(cli, monkeypatch, signalled, tmp_path, number):
    def again(self, *fitted):
        signal.raise_signal(number)
        return collected(self, *fitted)

    collected, out = WorldRun._collected, tmp_path / "data.npz"
    monkeypatch.setattr(WorldRun, "_collected", again)
    signalled(number, nullcontext())
    code, _, complaints = cli("explore", "Pendulum-v1", "--strategy", "uniform", "--out", out)
    assert code == 130 and f"rewardfree: interrupted; go on with --resume {out}" in complaints
    assert len(rf.load(out)) == 59


def test_a_world_that_swallows_ctrl_c_is_left_after_its_step(signalled):
    signalled(signal.SIGINT, suppress(KeyboardInterrupt))
    data = rf.explore("Pendulum-v1", strategy=rf.Uniform(), transitions=1000)
    assert data.stopped_by == "interrupted" and len(data) == 60

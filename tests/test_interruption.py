"""Interruptions that wait until nothing can swallow them."""

import signal
import threading

import pytest

from rewardfree.interruption import ENDING, interrupted_later, signal_of, terminated_as_interrupted


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

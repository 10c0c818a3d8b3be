"""Named random streams: equal names give equal numbers, other names others."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rewardfree.streams import stream

NAMES = st.lists(st.one_of(st.text(max_size=3), st.integers(-3, 12)), max_size=3).map(tuple)


def by_hand(seed, *names):
    """A PCG64 whose spawn key is the 16-byte BLAKE2b digest of the names, in words of 32 bits."""
    digest = hashlib.blake2b(repr(names).encode(), digest_size=16).digest()
    words = np.frombuffer(digest, "<u4").tolist()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=words)))


@settings(max_examples=30)
@given(st.integers(0, 2**70), NAMES)
def test_a_stream_is_its_seed_and_its_names(seed, names):
    first, second = stream(seed, *names), stream(seed, *names)
    assert first is not second
    numbers = first.random(4)
    assert numbers.tolist() == second.random(4).tolist() == by_hand(seed, *names).random(4).tolist()


def test_numbers_of_a_name_never_change():
    # Recorded once: if these move, every world and every run of every user does.
    assert stream(0).random() == 0.6221130488691166
    assert stream(7, "reward").random(2).tolist() == [0.23990449062740016, 0.041940530547203037]
    assert stream(7, "run", 3).integers(0, 100, 4).tolist() == [91, 86, 94, 19]


@settings(max_examples=60)
@given(st.tuples(st.integers(0, 4), NAMES), st.tuples(st.integers(0, 4), NAMES))
def test_other_seeds_or_names_give_other_numbers(one, other):
    same = stream(one[0], *one[1]).random(3).tolist() == stream(other[0], *other[1]).random(3).tolist()
    assert same == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b"), ("ab",)),
        (("a", "b"), ("b", "a")),
        (("a",), ("a", "a")),
        ((), ("",)),
        ((1,), ("1",)),
        (("run", 1, 2), ("run", 12)),
    ],
)
def test_names_that_look_alike_are_apart(one, other):
    assert stream(5, *one).random() != stream(5, *other).random()


def test_many_streams_are_one_uniform_sample():
    """First numbers of 2000 neighbouring streams: a road that seed + i would not survive as well."""
    by_name = np.array([stream(0, "run", i).random() for i in range(1000)])
    by_seed = np.array([stream(i, "run").random() for i in range(1000)])
    for numbers in (by_name, by_seed):
        assert stats.kstest(numbers, "uniform").pvalue > 0.01
        assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 4 / np.sqrt(1000)
    assert abs(np.corrcoef(by_name, by_seed)[0, 1]) < 4 / np.sqrt(1000)


def test_fewer_rounds_are_the_beginning_of_more():
    few, many = (stream(3, "transitions").random((rounds, 7)) for rounds in (4, 9))
    assert np.array_equal(few, many[:4])


def test_the_global_state_is_left_alone():
    before = repr(np.random.get_state(legacy=False))  # noqa: NPY002  the global state is what is looked at
    stream(3, "run").random(10)
    assert repr(np.random.get_state(legacy=False)) == before  # noqa: NPY002


@pytest.mark.parametrize("seed", [np.int64(7), np.uint8(7), 7.0, np.array(7)])
def test_a_whole_number_may_come_from_numpy(seed):
    assert stream(seed, "x").random() == stream(7, "x").random()


def test_a_name_may_come_from_numpy():
    """np.arange gives such numbers; repr(np.int64(3)) is not repr(3), nor the same in NumPy 1 and 2."""
    assert stream(0, "run", np.int64(3)).random() == stream(0, "run", 3).random()


@pytest.mark.parametrize("seed", [-1, 1.5, True, "3", None, np.nan, np.inf, [1, 2]])
def test_seed_must_be_a_whole_number(seed):
    with pytest.raises(ValueError, match="seed must be a whole number"):
        stream(seed, "x")

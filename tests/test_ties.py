"""Ties at random, and ties that a clip makes; tests/test_arrays.py has those that go to the lowest index."""

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_runs import pick
from rewardfree.estimates import best_of_clipped
from rewardfree.ties import argmax_tied, check_ties

NAMESPACES = [np, array_api_strict]
#: Values of few levels, some a rounding apart, so that ties are common.
LEVELS = st.sampled_from([-2.0, -1e-300, 0.0, 0.3, 1.0, 1.0 + 4e-13, 1.0 + 3e-12, 3.9, 4.0, 4.0 + 1e-12, 7.0])
UNIFORMS = st.floats(0.0, 1.0, exclude_max=True)


def evenly(n):
    """n uniform numbers, one in the middle of each of n equal parts."""
    return (np.arange(n) + 0.5) / n


# --- random ties ---


@pytest.mark.parametrize(
    ("values", "tied"),
    [
        ([1.0, 3.0, 3.0, 2.0, 3.0], [1, 2, 4]),
        ([0.0, 0.0, 0.0, 0.0], [0, 1, 2, 3]),
        ([1.0, 1.0 + 5e-13, 0.0], [0, 1]),
        ([-1.0, -1.0 - 5e-13, -2.0], [0, 1]),
        ([1.0, 1.0 + 2e-12, 0.0], [1]),
        ([5.0], [0]),
    ],
)
def test_every_tie_is_as_likely_as_any_other(values, tied):
    """Sixty evenly spread numbers: each tie gets its share exactly."""
    chosen = argmax_tied(np.tile(values, (60, 1)), evenly(60))
    assert np.bincount(chosen, minlength=len(values)).tolist() == [
        60 // len(tied) if i in tied else 0 for i in range(len(values))
    ]


def test_ties_come_in_the_order_of_the_numbers():
    values = np.array([2.0, 0.0, 2.0, 2.0])
    chosen = [int(argmax_tied(values, np.array(u))) for u in (0.0, 0.33, 0.34, 0.66, 0.67, 1.0 - 2.0**-53)]
    assert chosen == [0, 0, 2, 2, 3, 3]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 30, 1000, 10**5])
def test_the_largest_number_below_one_is_the_last_tie(n):
    assert int(argmax_tied(np.zeros(n), np.array(1.0 - 2.0**-53))) == n - 1


def test_each_row_has_its_own_number():
    values = np.zeros((2, 3, 4))
    uniform = np.arange(6).reshape(2, 3) / 6
    assert argmax_tied(values, uniform).tolist() == [[0, 0, 1], [2, 2, 3]]


def test_numbers_may_be_shared_between_batches():
    """As those of a planner are, by runs and rewards."""
    values = np.zeros((2, 3, 4))
    assert argmax_tied(values, np.array([0.0, 0.5, 0.9])).tolist() == [[0, 2, 3]] * 2


@settings(max_examples=100)
@given(st.lists(LEVELS, min_size=1, max_size=7), UNIFORMS)
def test_a_random_tie_is_the_textbooks(values, uniform):
    assert int(argmax_tied(np.array(values), np.array(uniform))) == pick(values, uniform)
    assert int(argmax_tied(np.array(values))) == pick(values)


def test_without_ties_the_numbers_do_not_matter():
    values = np.random.default_rng(0).random((50, 6))
    chosen = argmax_tied(values, np.random.default_rng(1).random(50))
    assert chosen.tolist() == values.argmax(axis=1).tolist()


# --- best_of_clipped ---


CLIPS = {
    "values": st.lists(LEVELS, min_size=1, max_size=7),
    "low": st.sampled_from([0.0, -1.0, 0.5]),
    "span": st.sampled_from([0.0, 1.0, 4.0]),
}


@pytest.mark.parametrize("xp", NAMESPACES)
@settings(max_examples=100)
@given(**CLIPS)
def test_the_best_of_clipped_is_clip_then_argmax(xp, values, low, span):
    clipped = [min(max(value, low), low + span) for value in values]
    largest, chosen = best_of_clipped(xp.asarray(values), low, low + span)
    assert (float(largest), int(chosen)) == (max(clipped), pick(clipped))


@settings(max_examples=100)
@given(**CLIPS, uniform=UNIFORMS)
def test_random_ties_of_clipped_are_clip_then_argmax(values, low, span, uniform):
    clipped = [min(max(value, low), low + span) for value in values]
    largest, chosen = best_of_clipped(np.array(values), low, low + span, np.array(uniform))
    assert (float(largest), int(chosen)) == (max(clipped), pick(clipped, uniform))


@pytest.mark.parametrize(
    ("values", "largest", "winner"),
    [
        ([1.0, 3.0, 2.0], 3.0, 1),
        ([1.0, 5.0, 9.0], 4.0, 1),
        ([4.0, 5.0, 9.0], 4.0, 0),
        ([3.0, 4.0 - 1e-12, 9.0], 4.0, 1),
        ([-1.0, -2.0, -3.0], 0.0, 0),
        ([-3.0, -2.0, 0.0], 0.0, 0),
        ([-3.0, -2.0, 1e-300], 1e-300, 2),
        ([-3.0, 0.5, 0.5], 0.5, 1),
    ],
)
def test_what_the_clip_makes_equal_is_tied(values, largest, winner):
    found = best_of_clipped(np.array(values), 0.0, 4.0)
    assert (float(found[0]), int(found[1])) == (largest, winner)


def test_batches_are_row_by_row():
    rng = np.random.default_rng(3)
    values, uniform = rng.integers(-3, 8, (4, 5, 6)).astype(float), rng.random((4, 5))
    for numbers in (None, uniform):
        largest, chosen = best_of_clipped(values, 0.0, 4.0, numbers)
        assert largest.shape == chosen.shape == (4, 5)
        for i in np.ndindex(4, 5):
            clipped = np.clip(values[i], 0.0, 4.0).tolist()
            assert largest[i] == max(clipped)
            assert chosen[i] == pick(clipped, None if numbers is None else numbers[i])


def test_single_precision_keeps_its_type():
    largest, chosen = best_of_clipped(np.array([[1.0, 9.0, 9.0]], np.float32), 0.0, 4.0, np.array([0.9]))
    assert largest.dtype == np.float32 and chosen.tolist() == [2]


def test_the_values_are_left_alone():
    values = np.array([[1.0, 9.0, -9.0]])
    best_of_clipped(values, 0.0, 4.0)
    argmax_tied(values, np.array([0.5]))
    assert values.tolist() == [[1.0, 9.0, -9.0]]


@pytest.mark.parametrize("ties", ["highest", "", None, 0, "Random"])
def test_rules_that_are_unknown_are_refused(ties):
    with pytest.raises(ValueError, match='ties must be "lowest" or "random", got'):
        check_ties(ties)
    assert check_ties("lowest") is check_ties("random") is None

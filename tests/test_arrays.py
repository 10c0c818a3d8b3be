"""What the checks at the door let in and what they refuse, and which of nearly equal values wins."""

from dataclasses import dataclass
from typing import Any

import array_api_compat.numpy
import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardfree.arrays import (
    as_array,
    as_number,
    as_points,
    check_fields,
    check_finite,
    count,
    namespace,
    non_negative,
    positive,
    to_numpy,
)
from rewardfree.ties import RELATIVE, argmax_tied

NAMESPACES = [np, array_api_strict]


# --- namespace, to_numpy ---


def test_numpy_arrays_share_the_compat_namespace():
    assert namespace(np.ones(2), np.ones((1, 3))) is array_api_compat.numpy


def test_numpy_subclass_has_the_compat_namespace():
    assert namespace(np.ones((1, 2)).view(np.matrix)) is array_api_compat.numpy


def test_strict_arrays_share_the_strict_namespace():
    assert namespace(array_api_strict.ones(2), array_api_strict.ones(3)) is array_api_strict


def test_mixed_arrays_share_no_namespace():
    with pytest.raises(TypeError):
        namespace(np.ones(2), array_api_strict.ones(2))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("xp", NAMESPACES)
def test_to_numpy_keeps_values_and_dtype(xp, dtype):
    back = to_numpy(xp.asarray([[0, 1], [1, 1]], dtype=getattr(xp, dtype)))
    assert type(back) is np.ndarray
    assert back.dtype == np.dtype(dtype)
    assert back.tolist() == [[0, 1], [1, 1]]


# --- as_array ---


@pytest.mark.parametrize("values", [[[1, 2]], [[1.0, 2.0]], ((1, 2),), [[True, 2]], [np.array([1, 2])]])
def test_lists_become_numpy_float64(values):
    array = as_array(values, "x")
    assert type(array) is np.ndarray
    assert array.dtype == np.float64
    assert array.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64", "bool"])
@pytest.mark.parametrize("xp", NAMESPACES)
def test_whole_numbers_become_float64_of_their_own_kind(xp, dtype):
    given = xp.asarray([1, 0, 1], dtype=getattr(xp, dtype))
    array = as_array(given, "x")
    assert type(array) is type(given)
    assert array.dtype == xp.float64
    assert to_numpy(array).tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("xp", NAMESPACES)
def test_floats_pass_untouched(xp, dtype):
    given = xp.asarray([1.0, 2.0], dtype=getattr(xp, dtype))
    assert as_array(given, "x") is given


def test_number_becomes_a_scalar_array():
    assert as_array(3, "x").shape == ()


@pytest.mark.parametrize("values", ["abc", ["a", "b"], [[1.0], [2.0, 3.0]], [1j], {"a": 1}, object()])
def test_what_is_not_numbers_is_refused_by_name(values):
    with pytest.raises(ValueError, match="rewards must be an array of numbers, got <class"):
        as_array(values, "rewards")


@pytest.mark.parametrize(
    "values",
    [
        np.ones(2, dtype=np.complex128),
        np.ones(2, dtype=np.float16),
        np.ones(2, dtype=object),
        np.array(["a", "b"]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        array_api_strict.ones(2, dtype=array_api_strict.complex64),
    ],
    ids=lambda values: str(values.dtype),
)
def test_other_dtypes_are_refused_by_name(values):
    with pytest.raises(ValueError, match="rewards must be float64 or float32, got"):
        as_array(values, "rewards")


# --- check_finite ---


@pytest.mark.parametrize("shape", [(0,), (3,), (2, 3), ()])
@pytest.mark.parametrize("xp", NAMESPACES)
def test_finite_values_pass(xp, shape):
    assert check_finite(xp.ones(shape), "x") is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("xp", NAMESPACES)
def test_non_finite_values_are_counted(xp, dtype):
    values = xp.asarray([[1.0, float("nan")], [float("inf"), -float("inf")]], dtype=getattr(xp, dtype))
    with pytest.raises(ValueError, match="x must be finite, got 3 NaN or infinite of 4 values"):
        check_finite(values, "x")


def test_the_largest_float_is_finite():
    assert check_finite(np.array([np.finfo(float).max, -np.finfo(float).max]), "x") is None


# --- as_points ---


@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (0, 4)])
@pytest.mark.parametrize("dim", [None, "same"])
@pytest.mark.parametrize("xp", NAMESPACES)
def test_points_pass_untouched(xp, dim, shape):
    points = xp.zeros(shape)
    assert as_points(points, dim=shape[1] if dim else None) is points


def test_list_of_points_is_taken():
    assert as_points([[1, 2], [3, 4]]).tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 2.0], r"x must have shape \(n, d\), got \(2,\): .* use x.reshape\(-1, 1\)"),
        (1.0, r"x must have shape \(n, d\), got \(\)"),
        (np.zeros((1, 2, 3)), r"x must have shape \(n, d\), got \(1, 2, 3\)"),
        (np.zeros((4, 0)), r"x must have at least one coordinate, got shape \(4, 0\)"),
        ([[]], r"x must have at least one coordinate, got shape \(1, 0\)"),
        (np.zeros((4, 2)), "x must have 3 coordinates, got 2"),
        ([[0.0, 1.0, np.nan]], "x must be finite, got 1 NaN or infinite of 3 values"),
        ("abc", "x must be an array of numbers"),
        (np.zeros((1, 3), dtype=complex), "x must be float64 or float32, got complex128"),
    ],
)
def test_what_is_not_points_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        as_points(values, "x", dim=3)


def test_points_are_called_points_by_default():
    with pytest.raises(ValueError, match=r"^points must"):
        as_points([1.0])


# --- numbers ---


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.float64(2), np.int64(2), np.array(2.0)])
@pytest.mark.parametrize("check", [as_number, positive, non_negative, count])
def test_two_is_a_number_however_it_is_written(check, value):
    number = check(value, "x")
    assert number == 2
    assert type(number) is (int if check is count else float)


@pytest.mark.parametrize("value", [None, "two", [1.0, 2.0], 1j, object()])
@pytest.mark.parametrize("check", [as_number, positive, non_negative])
def test_what_is_not_a_number_is_refused(check, value):
    with pytest.raises(ValueError, match="ridge must be a number, got"):
        check(value, "ridge")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, np.float32(np.inf)])
@pytest.mark.parametrize("check", [as_number, positive, non_negative])
def test_number_that_is_not_finite_is_refused(check, value):
    with pytest.raises(ValueError, match="ridge must be finite, got"):
        check(value, "ridge")


@pytest.mark.parametrize("value", [0, 0.0, -0.0, -1, -5e-324])
def test_positive_refuses_zero_and_below(value):
    with pytest.raises(ValueError, match=f"ridge must be positive, got {value}"):
        positive(value, "ridge")


def test_positive_takes_the_smallest_float():
    assert positive(5e-324, "ridge") == 5e-324


@pytest.mark.parametrize("value", [0, 0.0, -0.0])
def test_non_negative_takes_zero(value):
    assert non_negative(value, "bias") == 0.0


@pytest.mark.parametrize("value", [-1, -5e-324])
def test_non_negative_refuses_below_zero(value):
    with pytest.raises(ValueError, match=f"bias must be at least 0, got {value}"):
        non_negative(value, "bias")


@pytest.mark.parametrize("value", [-3, 0, -0.5])
def test_any_sign_is_a_number(value):
    assert as_number(value, "x") == value


@pytest.mark.parametrize(("value", "at_least"), [(1, 1), (0, 0), (-2, -2), (10**12, 1), (7.0, 3)])
def test_count_takes_whole_numbers_from_the_least_on(value, at_least):
    assert count(value, "depth", at_least) == value


@pytest.mark.parametrize("value", [None, "three", [1, 2], 1j, np.nan, np.inf])
def test_count_refuses_what_is_no_number(value):
    with pytest.raises(ValueError, match="depth must be a whole number, got"):
        count(value, "depth")


@pytest.mark.parametrize(("value", "at_least"), [(0, 1), (-1, 1), (1.5, 1), ("3", 1), (True, 1), (2, 3)])
def test_count_refuses_fractions_text_truth_values_and_too_few(value, at_least):
    with pytest.raises(ValueError, match=f"depth must be a whole number of at least {at_least}, got"):
        count(value, "depth", at_least)


# --- argmax_tied ---


@pytest.mark.parametrize(
    ("values", "winner"),
    [
        ([3.0], 0),
        ([1.0, 3.0, 2.0], 1),
        ([2.0, 2.0, 1.0], 0),
        ([1.0, 1.0 + 5e-13, 0.0], 0),
        ([1.0, 1.0 + 2e-12, 0.0], 1),
        ([1e6, 1e6 * (1 + 5e-13)], 0),
        ([1e6, 1e6 * (1 + 2e-12)], 1),
        ([1e-300, 1.5e-300], 1),
        ([0.0, 1.0 - 5e-13, 1.0], 1),
        ([-1.0 - 5e-13, -1.0], 0),
        ([-1.0 - 2e-12, -1.0], 1),
        ([-3.0, -2.0, -2.0], 1),
        ([0.0, 0.0], 0),
        ([-0.0, 0.0], 0),
        ([-1e-300, 0.0], 1),
        ([-1.0, 0.0, 0.0], 1),
        ([-np.inf, -5.0, -5.0], 1),
        ([-np.inf, -np.inf], 0),
    ],
)
@pytest.mark.parametrize("xp", NAMESPACES)
def test_ties_go_to_the_lowest_index(xp, values, winner):
    assert int(argmax_tied(xp.asarray(values, dtype=xp.float64))) == winner


@pytest.mark.parametrize(
    ("values", "winner"),
    [([1.0, 3.0, 3.0], 1), ([-2.0, -2.0], 0), ([1.0, 1.0 + 2.0**-23], 1), ([0.0, 0.0], 0), ([-1.0, 0.0], 1)],
)
@pytest.mark.parametrize("xp", NAMESPACES)
def test_float32_ties_are_exact_ties(xp, values, winner):
    # One ulp of float32 is 1.2e-7, far more than the tie width of 1e-12.
    assert int(argmax_tied(xp.asarray(values, dtype=xp.float32))) == winner


@pytest.mark.parametrize("shape", [(5,), (4, 5), (2, 3, 5), (0, 5)])
def test_batch_axes_are_kept(shape):
    values = np.random.default_rng(0).integers(0, 3, shape).astype(float)
    winners = argmax_tied(values)
    assert winners.shape == shape[:-1]
    # Whole numbers tie exactly or not at all, and NumPy's argmax takes the first.
    np.testing.assert_array_equal(winners, np.argmax(values, axis=-1))


def test_each_row_of_a_batch_has_its_own_tie_width():
    values = np.array([[1.0, 1.0 + 1e-9], [1e6, 1e6 + 1e-9]])
    assert argmax_tied(values).tolist() == [1, 0]


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8))
def test_winner_is_the_first_within_the_tie_width(values):
    largest = max(values)
    expected = next(i for i, value in enumerate(values) if value >= largest - RELATIVE * abs(largest))
    assert int(argmax_tied(np.array(values))) == expected


@settings(deadline=None, derandomize=True, max_examples=100)
@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=8), st.lists(st.floats(-1, 1), min_size=8, max_size=8)
)
def test_rounding_noise_does_not_move_the_winner(values, noise):
    clean = np.array(values, dtype=float)
    noisy = clean * (1.0 + 2e-16 * np.array(noise[: len(values)]))
    assert int(argmax_tied(noisy)) == int(argmax_tied(clean))


def test_fields_are_checked_and_none_stays_where_it_is_the_default():
    @dataclass(frozen=True)
    class Options:
        beta: Any
        rounds: Any = None

        def __post_init__(self):
            check_fields(self, beta=positive, rounds=count, elsewhere=positive)

    assert vars(Options(1)) == {"beta": 1.0, "rounds": None} and Options(1, 2.0).rounds == 2
    for options, said in (
        ((None,), "beta must be a number, got None"),
        ((1, 0.5), "rounds must be a whole number"),
    ):
        with pytest.raises(ValueError, match=said):
            Options(*options)

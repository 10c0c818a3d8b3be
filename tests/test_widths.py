"""Widths: every formula by hand, its limits and its growth, nets, norms of estimates."""

import inspect
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rewardfree as rf
from reference_spectrum import spectrum_of
from reference_theory import scattered, theorem_1_by_hand
from rewardfree.theory import spectrum as spectra
from rewardfree.theory import width as widths

few = settings(deadline=None, max_examples=40)

pytestmark = pytest.mark.usefixtures("one_thread")


ONE = spectra.mercer_spectrum(rf.Matern(1.5, 0.3), spectra.gauss_legendre(1, 40))
THEOREM_1 = [widths.theorem_1_printed, widths.theorem_1_corrected, widths.theorem_1_tight]


@given(
    B1=st.floats(0.0, 50.0),
    B2=st.floats(0.01, 50.0),
    ridge=st.floats(0.001, 10.0),
    n=st.integers(0, 10**6),
    delta=st.floats(0.001, 0.9),
)
@few
def test_theorem_1_is_the_smallest_over_all_numbers_of_eigenfunctions(B1, B2, ridge, n, delta):
    every = np.array(list(theorem_1_by_hand(ONE, B1, B2, ridge, n, delta)))
    assert np.all(every[:, 2] <= every[:, 1] * (1 + 1e-14))
    for formula, column in zip(THEOREM_1, every.T, strict=True):
        got = formula(ONE, B1, B2, ridge, n, delta)
        # The tail after many eigenvalues is a difference of sums near 1: 1e-15, and its root 3e-8, times n.
        slack = 1e-10 * got.b + 2 * B2 * 3.0 / math.sqrt(ridge) * math.sqrt(n * 1e-14)
        assert got.b == pytest.approx(column.min(), abs=slack)
        assert column[got.eigenfunctions - 1] == pytest.approx(got.b, abs=slack)


def test_theorem_1_takes_more_eigenfunctions_for_more_data():
    for formula in THEOREM_1:
        chosen = [formula(ONE, 1.0, 1.0, 0.5, n, 0.1).eigenfunctions for n in (0, 10, 1000, 10**5)]
        assert chosen[0] == 1
        assert chosen == sorted(chosen)
        assert chosen[0] < chosen[1] < chosen[2]


@given(
    head=st.floats(0.01, 20.0),
    delta=st.floats(0.001, 0.9),
    B2=st.floats(0.1, 9.0),
    ridge=st.floats(0.01, 9.0),
)
@few
def test_the_printed_theorem_1_is_smaller_exactly_where_the_sum_of_eigenvalues_is(head, delta, B2, ridge):
    # With one eigenvalue, head sqrt(log(1/delta)) stands against sqrt(head log(2/delta)).
    spectrum = spectrum_of([head])
    printed, corrected = (
        f(spectrum, 1.0, B2, ridge, 5, delta).b
        for f in (widths.theorem_1_printed, widths.theorem_1_corrected)
    )
    turn = math.log(2.0 / delta) / math.log(1.0 / delta)
    assert turn > 1.0  # so a kernel of trace 1 always makes the printed one too small
    if abs(head / turn - 1.0) > 1e-9:
        assert (printed < corrected) == (head < turn)


def test_generative_width_of_the_example():
    noise = 10.0 * math.sqrt(math.log(2 * 10**4 * 9 / 0.1) / (2 * 0.5))
    total, root = (
        widths.generative_width(10.0, 10.0, 0.5, 10**4, 9, 0.1, joined=joined).b for joined in (False, True)
    )
    assert total == pytest.approx(10.0 + noise, rel=1e-14)
    assert root == pytest.approx(math.sqrt(100.0 + noise**2), rel=1e-14)
    assert (total, root) == pytest.approx((47.95, 39.25), abs=0.005)


def test_every_reward_costs_two_and_a_half_times_the_noise_at_a_hundred_states():
    one = widths.generative_width(0.0, 10.0, 0.5, 10**4, 9, 0.1).b
    every = widths.every_reward_width(0.0, 10.0, 0.5, 10**4, 100, 9, 0.1).b
    by_hand = 10.0 * math.sqrt(math.log(9 * 10**4 * (2**100 - 2) / 0.1))
    assert every == pytest.approx(by_hand, rel=1e-13)
    assert every / one == pytest.approx(2.4, abs=0.01)
    # Two states have one pair of corners with noise, which is one V: the two formulas must meet.
    assert widths.every_reward_width(3.0, 10.0, 0.5, 50, 2, 4, 0.1).b == pytest.approx(
        widths.generative_width(3.0, 10.0, 0.5, 50, 4, 0.1).b, rel=1e-14
    )


def test_adaptive_widths_by_hand():
    adaptive = widths.adaptive_width(3.0, 10.0, 0.5, 7.0, 5, 4, 0.1).b
    inside = 2 * 7.0 + 2 * math.log(4 * (2**4 - 1) / 0.1)
    assert adaptive == pytest.approx(3.0 + 10.0 / (2 * math.sqrt(0.5)) * math.sqrt(inside), rel=1e-13)
    one = widths.self_normalised_width(3.0, 10.0, 0.5, 7.0, 0.1).b
    inside = 2 * 7.0 + 2 * math.log(10.0)
    assert one == pytest.approx(3.0 + 10.0 / (2 * math.sqrt(0.5)) * math.sqrt(inside), rel=1e-13)
    # Two states: one pair of corners.
    assert widths.adaptive_width(3.0, 10.0, 0.5, 7.0, 2, 1, 0.1).b == pytest.approx(one, rel=1e-14)
    for gain in (0.0, 100.0):
        assert widths.adaptive_width(3.0, 10.0, 0.5, gain, 5, 4, 0.999).b >= 3.0
    assert math.isfinite(widths.every_reward_width(1.0, 1.0, 0.5, 10, 10**5, 1, 0.1).b)


def test_spectrum_free_by_hand():
    got = widths.spectrum_free(3.0, 2.0, 4.0, 0.5, 0.1).b
    assert got**2 == pytest.approx(9.0 + 4.0 * 4.0 / 0.5 * (1 + math.sqrt(2 * math.log(10))) ** 2, rel=1e-13)


ARGUMENTS = {
    "B1": (0.0, 30.0, 1),
    "B2": (0.0, 30.0, 1),
    "R": (0.0, 30.0, 1),
    "ridge": (0.001, 10.0, -1),
    "delta": (0.001, 0.999, -1),
    "n": (0, 10**6, 1),
    "points": (1, 10**6, 1),
    "states": (2, 300, 1),
    "steps": (1, 50, 1),
    "designs": (1, 50, 1),
    "gain": (0.0, 100.0, 1),
    "prior": (0.1, 4.0, 1),
}
EVERY_WIDTH = [
    *THEOREM_1,
    widths.spectrum_free,
    widths.generative_width,
    widths.every_reward_width,
    widths.adaptive_width,
    widths.self_normalised_width,
]


@pytest.mark.parametrize("formula", EVERY_WIDTH, ids=lambda f: f.__name__)
@given(data=st.data())
@few
def test_widths_grow_with_every_argument_that_makes_things_harder(formula, data):
    names = [name for name in inspect.signature(formula).parameters if name in ARGUMENTS]
    drawn = {}
    for name in names:
        low, high, _ = ARGUMENTS[name]
        numbers = st.integers(low, high) if isinstance(low, int) else st.floats(low, high)
        drawn[name] = data.draw(numbers, name)
    name = data.draw(st.sampled_from(names), "which")
    low, high, sign = ARGUMENTS[name]
    other = data.draw(st.integers(low, high) if isinstance(low, int) else st.floats(low, high), "other")
    leading = (ONE,) if formula in THEOREM_1 else ()

    def b(value):
        return formula(*leading, **(drawn | {name: value})).b

    first, second = sorted([drawn[name], other])
    # A tail that rounding makes a little smaller or larger is scaled by n: see the test above.
    assert sign * (b(second) - b(first)) >= -1e-9 * b(second)
    assert b(first) >= drawn.get("B1", 0.0) * (1 - 1e-15) if name != "B1" else b(first) >= first * (1 - 1e-15)


@pytest.mark.parametrize("formula", EVERY_WIDTH, ids=lambda f: f.__name__)
def test_widths_move_with_every_argument(formula):
    start = {name: low + (high - low) // 3 for name, (low, high, _) in ARGUMENTS.items()}
    start |= {"delta": 0.2, "ridge": 0.5, "n": 200, "prior": 1.0}
    names = [name for name in inspect.signature(formula).parameters if name in ARGUMENTS]
    leading, start = (ONE,) if formula in THEOREM_1 else (), {name: start[name] for name in names}
    for name in names:
        moved = start | {name: 2 * start[name]}
        change = formula(*leading, **moved).b / formula(*leading, **start).b - 1.0
        assert ARGUMENTS[name][2] * change > 1e-4


def test_limits_of_widths():
    almost = 1.0 - 1e-12
    # One point, one step, delta to 1: two signs are left.
    one = widths.generative_width(0.0, 2.0, 0.5, 1, 1, almost).b
    assert one == pytest.approx(2.0 * math.sqrt(math.log(2.0)), rel=1e-9)
    assert widths.generative_width(3.0, 0.0, 0.5, 10, 2, 0.1).b == 3.0
    assert widths.every_reward_width(3.0, 0.0, 0.5, 10, 5, 2, 0.1).b == 3.0
    assert widths.adaptive_width(3.0, 0.0, 0.5, 5.0, 5, 2, 0.1).b == 3.0
    assert widths.self_normalised_width(3.0, 2.0, 0.5, 0.0, almost).b == pytest.approx(3.0, abs=1e-5)
    assert widths.spectrum_free(0.0, 2.0, 1.0, 0.25, almost).b == pytest.approx(4.0, rel=1e-5)
    for formula in THEOREM_1:
        assert formula(ONE, 3.0, 0.0, 0.5, 100, 0.1).b == 3.0
        no_data = formula(ONE, 0.0, 1.0, 1.0, 0, 0.1)
        # Without data there is no tail, so one eigenfunction is enough.
        assert no_data.eigenfunctions == 1
        power = 1.0 if formula is widths.theorem_1_printed else 0.5
        signs = 1.0 if formula is widths.theorem_1_printed else 2.0
        expected = ONE.psi_max(40) * ONE.eigenvalues[0] ** power * math.sqrt(2 * math.log(signs / 0.1))
        assert no_data.b == pytest.approx(expected, rel=1e-12)


def test_what_a_net_adds():
    width = widths.continuous_width(7.0, 3.0, 2.0, 0.5, 100, change=0.05)
    slack = (3.0 + 2.0 * math.sqrt(100) / (2.0 * math.sqrt(0.5))) * 0.05
    assert (width.b, width.change) == (7.0, 0.05)
    assert width.slack == pytest.approx(slack, rel=1e-13)
    assert width.added == pytest.approx(7.0 * 0.05 + slack, rel=1e-13)


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("radius", [0.07, 0.13, 0.4, 2.0])
def test_a_net_of_that_size_is_within_its_radius_and_one_less_an_axis_is_not(dim, radius):
    side = round(math.exp(widths.net_log_size(radius, dim) / dim))
    for sides, covers in ((side, True), (side - 1, False)):
        if sides:
            # The middles of equal cubes; what is furthest from them is a corner.
            middles = np.array(list(itertools.product((np.arange(sides) + 0.5) / sides, repeat=dim)))
            furthest = np.linalg.norm(middles, axis=1).min()
            assert (furthest <= radius) == covers


SMOOTH = [rf.SquaredExponential(0.1), rf.Matern(1.5, 0.1), rf.Matern(2.5, 0.1), rf.Matern(1.2, 0.1)]


@pytest.mark.parametrize("kernel", SMOOTH, ids=str)
@pytest.mark.parametrize("radius", [1e-3, 1e-2, 0.05, 0.2, 1.0, 10.0])
def test_kernel_change_is_above_every_change_within_its_radius(kernel, radius):
    r = np.linspace(0.0, radius, 2001)[:, None]
    sup = np.sqrt(2.0 - 2.0 * kernel(r, [[0.0]])).max()
    change = widths.kernel_change(kernel, radius)
    # 2 - 2k is good to 4e-16, which is 2e-12 of the root at the smallest radius.
    assert sup <= change * (1 + 1e-11)
    if radius <= 1e-3 and kernel.__class__ is not rf.Matern:
        assert change == pytest.approx(sup, rel=1e-3)
    if isinstance(kernel, rf.Matern) and kernel.nu == 2.5 and radius <= 1e-3:
        assert change == pytest.approx(sup, rel=0.01)  # the next term is cubic in nu > 1.5
    if radius >= 10.0:
        assert change == math.sqrt(2.0)


def test_kernel_change_of_unequal_lengthscales_is_that_of_the_shortest():
    kernel = rf.SquaredExponential((0.5, 0.2))
    steps = scattered(4000, seed=1) - 0.5
    steps *= 0.05 / np.linalg.norm(steps, axis=1, keepdims=True)
    sup = np.sqrt(2.0 - 2.0 * kernel(steps, [[0.0, 0.0]])).max()
    assert sup <= widths.kernel_change(kernel, 0.05) <= 1.02 * sup


@pytest.mark.parametrize(
    "kernel", [rf.Matern(0.5), rf.Matern(1.0), rf.NeuralTangent(1), rf.kernels.Delta()], ids=str
)
def test_kernels_with_a_kink_have_no_linear_change(kernel):
    with pytest.raises(ValueError, match="Matern with nu > 1"):
        widths.kernel_change(kernel, 0.1)


def test_kernel_change_of_a_matern_of_infinite_order_is_that_of_the_squared_exponential():
    got = widths.kernel_change(rf.Matern(math.inf, 0.1), 0.02)
    assert got == widths.kernel_change(rf.SquaredExponential(0.1), 0.02)


@given(n=st.integers(1, 12), ridge=st.floats(1e-4, 10.0), R=st.floats(0.1, 10.0), seed=st.integers(0, 10**6))
@few
def test_the_norm_of_an_estimate_is_bounded_for_any_design_and_targets(n, ridge, R, seed):
    rng = np.random.default_rng(seed)
    points = rng.uniform(size=(n, 2)).round(1)  # some of them equal
    K = rf.Matern(1.5, rng.uniform(0.1, 2.0))(points)
    bound = widths.estimate_norm(R, ridge, n)
    for low, high, factor in ((0.0, R, 1.0), (-R, R, 1.0), (-0.5 * R, 0.5 * R, 0.5)):
        y = rng.choice([low, high], size=n)
        weights = np.linalg.solve(K + ridge * np.eye(n), y)
        assert math.sqrt(max(weights @ K @ weights, 0.0)) <= factor * bound * (1 + 1e-10)


def test_the_norm_of_an_estimate_reaches_its_bound_and_needs_values_within_R():
    # n copies of one point with y = V: ||f^|| = n V/(n + ridge), at ridge = n half of V.
    for n in (1, 9):
        assert widths.estimate_norm(3.0, float(n), n) == pytest.approx(n * 3.0 / (n + n))
    assert n * (3.0 + 1.0) / (n + n) > widths.estimate_norm(3.0, float(n), n)  # V in [1, 4], of range 3
    assert widths.estimate_norm(3.0, 0.5, 0) == 0.0


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: widths.generative_width(-1.0, 1.0, 0.5, 10, 1, 0.1), "B1 must be at least 0"),
        (lambda: widths.generative_width(1.0, 1.0, 0.0, 10, 1, 0.1), "ridge must be positive"),
        (lambda: widths.generative_width(1.0, 1.0, 0.5, 0, 1, 0.1), "points must be a whole number"),
        (lambda: widths.generative_width(1.0, 1.0, 0.5, 10, 1, 1.0), "delta must lie strictly between"),
        (lambda: widths.every_reward_width(1.0, 1.0, 0.5, 10, 1, 1, 0.1), "states must be a whole number"),
        (lambda: widths.adaptive_width(1.0, 1.0, 0.5, -1.0, 5, 1, 0.1), "gain must be at least 0"),
        (lambda: widths.spectrum_free(1.0, 1.0, 0.0, 0.5, 0.1), "prior must be positive"),
        (lambda: widths.theorem_1_tight(ONE, 1.0, 1.0, 0.5, -1, 0.1), "n must be a whole number"),
        (lambda: widths.theorem_1_printed(ONE, 1.0, math.nan, 0.5, 1, 0.1), "B2 must be finite"),
        (lambda: widths.kernel_change(rf.Matern(1.5), 0.0), "radius must be positive"),
        (lambda: widths.net_log_size(0.1, 0), "dim must be a whole number"),
    ],
)
def test_widths_refuse_what_makes_no_sense(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()

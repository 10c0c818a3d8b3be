"""Sample complexities: gaps by the steps of the proofs, and every N tried where it is small."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rewardfree as rf
from reference_theory import gap_2, grid
from rewardfree.theory import complexity
from rewardfree.theory import gain as gains
from rewardfree.theory import width as widths

few = settings(deadline=None, max_examples=40)
DELTA = 0.1

pytestmark = pytest.mark.usefixtures("one_thread")


def power_law(last=60.0, p=3.5, n=160):
    return gains.rate_law(gains.GreedyGain(0.5, np.linspace(0.0, last, n + 1), *np.ones((2, n + 1))), p, 2)


def gap_3(n, b, gain, H, ridge, delta):
    """Step 9b of the proof, summed over n and times 2/N, and the planning slack that the proof drops."""
    pairs = sum(range(1, H + 1))  # h <= h0 <= H
    sigmas = math.sqrt(n * 2.0 * gain / math.log((1.0 + ridge) / ridge))
    rounds = 3.0 * b * sigmas + 4.0 * b * 2.0 * math.sqrt(n) + 4.0 * (1.0 + math.log(n))
    azuma = math.sqrt(2.0 * (n * pairs) * H**2 * math.log(2.0 / delta))  # each of two martingales
    return 2.0 / n * (pairs * rounds + 2.0 * azuma) + 2.0 * H * (2.0 * b / math.sqrt(n) + 2.0 / n)


def gap_repaired(n, b, gain, H, ridge, delta):
    """u_h <= x + 2 (u_1 + ... + u_{h-1}) for what can be reached at step h, and gap <= 2b (u_1 + ... )."""
    sigmas = math.sqrt(n * 2.0 * gain / math.log((1.0 + ridge) / ridge))
    x, total = (sigmas + math.sqrt(0.5 * n * math.log(H / delta))) / n, 0.0
    for _ in range(H - 1):
        total += x + 2.0 * total
    return 2.0 * b * total


def gap_3_printed(n, b, gain, H, ridge, delta):
    """As Theorem 3 stands in the paper."""
    rate = math.sqrt(2.0 * gain / (n * math.log(1.0 + 1.0 / ridge)))
    first = 3 * H * (H + 1) * b * rate + 8 * b * H * (H + 1) / math.sqrt(n)
    return (
        first + 4 * H * (H + 1) * (math.log(n) + 1) / n + 2 * H * math.sqrt(n * (H + 1) * math.log(2 / delta))
    )


READINGS = {
    "two": (lambda b, law, H, r, e: complexity.theorem_2_samples(b, law, H, r, e), gap_2, ()),
    "corrected": (
        lambda b, law, H, r, e: complexity.theorem_3_samples("corrected", b, law, H, r, e, DELTA),
        gap_3,
        (DELTA,),
    ),
    "repaired": (
        lambda b, law, H, r, e: complexity.theorem_3_samples("repaired", b, law, H, r, e, DELTA),
        gap_repaired,
        (DELTA,),
    ),
}
b_values, horizons = st.floats(1e-3, 100.0), st.integers(1, 10)
epsilons, powers = st.floats(1e-2, 1.0), st.floats(2.0, 6.0)
ridges = st.floats(0.01, 10.0)


@pytest.mark.parametrize("reading", READINGS)
@given(b=b_values, H=horizons, ridge=ridges, share=epsilons, p=powers)
@few
def test_n0_passes_and_one_less_does_not(reading, b, H, ridge, share, p):
    samples, gap, more = READINGS[reading]
    law, epsilon = power_law(p=p), share * H
    n = samples(b, law, H, ridge, epsilon)
    assert n is not None
    # The gap falls by 1/(2n) relative from one n to the next, and both formulas are good to some 1e-15.
    assert gap(n, b, law(n), H, ridge, *more) <= epsilon * (1 + 1e-14)
    if n > 1:
        assert gap(n - 1, b, law(n - 1), H, ridge, *more) > epsilon * (1 - 1e-14)


@pytest.mark.parametrize("reading", READINGS)
@given(b=st.floats(0.0, 0.5), H=st.integers(1, 3), share=st.floats(0.5, 1.0))
@few
def test_n0_is_the_first_of_all_where_it_is_small(reading, b, H, share):
    samples, gap, more = READINGS[reading]
    law = power_law(last=3.0)
    n = samples(b, law, H, 0.5, share * H)
    first = (i for i in range(1, 20_000) if gap(i, b, law(i), H, 0.5, *more) <= share * H)
    assert min(n, 20_000) == next(first, 20_000)


@pytest.mark.parametrize("reading", READINGS)
def test_gaps_are_those_of_the_proofs(reading):
    formula = {
        "two": complexity.theorem_2_gap,
        "corrected": complexity.theorem_3_corrected_gap,
        "repaired": complexity.theorem_3_repaired_gap,
    }[reading]
    _, gap, more = READINGS[reading]
    for n, b, gain, H, ridge in [
        (1, 0.0, 1.0, 1, 0.5),
        (160, 48.0, 60.0, 10, 0.5),
        (10**9, 1.0, 500.0, 4, 0.01),
    ]:
        assert formula(n, b, gain, H, ridge, *more) == pytest.approx(
            gap(n, b, gain, H, ridge, *more), rel=1e-12
        )


@given(b=st.floats(0.0, 1e3), H=st.integers(1, 50), ridge=ridges, share=st.floats(1e-6, 1.0), delta=epsilons)
@few
def test_no_n_satisfies_the_printed_theorem_3(b, H, ridge, share, delta):
    delta = min(delta, 0.999)
    assert complexity.theorem_3_samples("printed", b, power_law(), H, ridge, share * H, delta) is None
    # Its last term alone is 2H sqrt(2 log 2) > 2.3 H at the first N already.
    assert complexity.theorem_3_printed_gap(1, b, 1.0, H, ridge, delta) > 2.3 * H


@pytest.mark.parametrize("b", [0.0, 0.5, 3.0, 5.0, 20.0])
def test_the_printed_theorem_3_has_an_n_only_for_absurd_epsilon(b):
    law = power_law(last=5.0)
    values = [gap_3_printed(n, b, law(n), 1, 0.5, DELTA) for n in range(1, 3000)]
    # It falls and then grows: just above its minimum one N passes, and no other; below, none.
    for epsilon in (0.999 * min(values), min(values) * (1 + 1e-12), 1.1 * min(values), 2.0 * min(values)):
        passing = (n for n, value in enumerate(values, 1) if value <= epsilon)
        got = complexity.theorem_3_samples("printed", b, law, 1, 0.5, epsilon, DELTA)
        assert got == next(passing, None)


@pytest.mark.parametrize("reading", READINGS)
@given(b=b_values, H=horizons, share=epsilons, factor=st.floats(1.0, 10.0))
@few
def test_smaller_epsilon_wider_b_and_longer_horizons_need_more(reading, b, H, share, factor):
    samples, law = READINGS[reading][0], power_law()

    def n(b=b, H=H, epsilon=share):
        return samples(b, law, H, 0.5, epsilon)

    start = n()
    assert start <= n(epsilon=share / factor)
    assert start <= n(b=b * factor)
    assert start <= n(H=H + 1)


def test_the_corrected_theorem_3_asks_for_more_than_theorem_2():
    for H in (1, 2, 10):
        generative = complexity.theorem_2_samples(1.0, power_law(), H, 0.5, 0.5)
        online = complexity.theorem_3_samples("corrected", 1.0, power_law(), H, 0.5, 0.5, DELTA)
        assert online > generative


@pytest.fixture(scope="module")
def published():
    """640 greedy queries on the paper's 100 x 100 grid, Matern 2.5."""
    return gains.greedy_gain(rf.Matern(2.5, 0.1), grid(100, 2), 0.5, 640)


def test_sample_complexity_of_the_example(published):
    law = gains.rate_law(published, 3.5, 2)
    b = widths.generative_width(10.0, 10.0, 0.5, 10**4, 9, 0.1, joined=False).b
    wide, narrow = (complexity.theorem_2_samples(width, law, 10, 0.5, 1.0) for width in (b, 1.0))
    assert 0.5e11 < wide < 2e11
    assert narrow == pytest.approx(1.8e6, rel=0.1)


def test_the_rate_through_half_the_queries_tells_the_rest_within_a_few_percent(published):
    half = published.first(320)
    # Logarithms and edges are not in the law; it is 10% low at twice the queries.
    assert gains.rate_law(half, 3.5, 2)(640) == pytest.approx(published.gains[640], rel=0.1)
    assert gains.fit_growth(published).exponent < 0.8


def test_one_step_needs_no_data_once_repaired():
    for b in (0.0, 1.0, 50.0):
        assert complexity.theorem_3_samples("repaired", b, power_law(), 1, 0.5, 1e-6, DELTA) == 1
    # Without width only 4H/N <= eps is left.
    assert complexity.theorem_2_samples(0.0, power_law(), 1, 0.5, 0.3) == math.ceil(4 / 0.3)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize(
    "law", [power_law(), power_law(p=math.inf), power_law(p=1.01)], ids=["p", "inf", "low"]
)
def test_extremes_do_not_overflow(reading, law):
    samples = READINGS[reading][0]
    for b, H, epsilon in itertools.product((0.0, 1e-9, 1e6), (1, 1000), (1e-8, 1e3)):
        n = samples(b, law, H, 0.5, epsilon)
        assert n is None or (isinstance(n, int) and 1 <= n <= 2 * complexity.MOST)


def test_a_bound_on_gamma_serves_as_a_law():
    residuals = gains.residual_diagonal(rf.Matern(2.5, 0.3), grid(10, 2), 60)
    law = gains.low_rank_law(residuals, 0.5, 100)
    n = complexity.theorem_2_samples(10.0, law, 10, 0.5, 1.0)
    assert gap_2(n, 10.0, law(n), 10, 0.5) <= 1.0 < gap_2(n - 1, 10.0, law(n - 1), 10, 0.5)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: complexity.theorem_2_samples(-1.0, power_law(), 10, 0.5, 1.0), "b must be at least 0"),
        (lambda: complexity.theorem_2_samples(1.0, power_law(), 0, 0.5, 1.0), "horizon must be a whole"),
        (lambda: complexity.theorem_2_samples(1.0, power_law(), 1, 0.5, 0.0), "epsilon must be positive"),
        (
            lambda: complexity.theorem_3_samples("best", 1.0, power_law(), 1, 0.5, 1.0, 0.1),
            "reading must be one of printed, corrected, repaired, got 'best'",
        ),
        (
            lambda: complexity.theorem_3_samples("printed", 1.0, power_law(), 1, 0.5, 1.0, 0.0),
            "delta must lie strictly",
        ),
    ],
)
def test_complexities_refuse_what_makes_no_sense(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()

"""What the theory says about one problem: every reading of every formula, and whether it is vacuous."""

import math
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from rewardfree.arrays import count, even_points, non_negative, positive, probability
from rewardfree.kernels import Kernel, as_kernel
from rewardfree.theory import complexity, gain, width
from rewardfree.theory.spectrum import (
    Decay,
    Spectrum,
    fit_decay,
    gauss_legendre,
    known_exponent,
    trusted_spectrum,
)

#: Gamma is computed on a grid of [0,1]^d with at most this many points.
MOST_CANDIDATES = 10_000
#: Greedy queries behind the extrapolation of Gamma, and the rank behind its bound.
QUERIES, RANK = 640, 400
#: The readings of Theorem 1.
THEOREM_1 = {
    "printed": width.theorem_1_printed,
    "corrected": width.theorem_1_corrected,
    "tight": width.theorem_1_tight,
}


@dataclass(frozen=True)
class Result:
    """One quantity of the theory. If `value` is None there is no such number, and `sentence` says why."""

    name: str
    reading: str  # the form of the formula: printed, corrected, ...
    value: float | None
    assumptions: tuple[str, ...]
    vacuous: bool
    sentence: str


@dataclass(frozen=True)
class Problem:
    """A kernel on [0,1]^dim, a horizon and an accuracy. ||[PV]|| <= B1 and ||V|| <= B2, both H by default."""

    kernel: Kernel
    dim: int = 2
    horizon: int = 10
    epsilon: float = 0.5
    delta: float = 0.1
    ridge: float = 0.5
    samples: int = 160  # n of the widths and gains
    points: int | None = None  # |Z|; 100^dim by default
    states: int = 100  # S, for bounds over every V
    B1: float | None = None
    B2: float | None = None
    value_kernel: Kernel | None = None  # k_psi on the states; by default the kernel of z
    state_dim: int = 1

    def __post_init__(self) -> None:
        as_kernel(self.kernel)
        for name, least in (("dim", 1), ("horizon", 1), ("samples", 1), ("states", 2), ("state_dim", 1)):
            count(getattr(self, name), name, at_least=least)
        positive(self.epsilon, "epsilon")
        probability(self.delta, "delta")
        positive(self.ridge, "ridge")
        for name in ("B1", "B2"):
            if getattr(self, name) is not None:
                non_negative(getattr(self, name), name)
        if self.points is not None:
            count(self.points, "points")
        prior = float(self.priors.max())
        if prior > 1.0 + 1e-12:
            raise ValueError(f"the theorems need k(z,z) <= 1, got {prior:g}: scale the kernel down")
        self.kernel_of_values.diag(even_points(2, self.state_dim))  # raises if it cannot take states

    @property
    def size(self) -> int:
        """|Z|."""
        return 100**self.dim if self.points is None else self.points

    @property
    def norm(self) -> float:
        return float(self.horizon) if self.B1 is None else self.B1

    @property
    def value_norm(self) -> float:
        return float(self.horizon) if self.B2 is None else self.B2

    @property
    def steps(self) -> int:
        """The number of regressions that matter: V_{H+1} = 0, so that of the last step does not."""
        return max(self.horizon - 1, 1)

    @cached_property
    def candidates(self) -> Any:
        """An even grid of [0,1]^d with |Z| points, at most MOST_CANDIDATES."""
        if 2**self.dim > MOST_CANDIDATES:
            raise ValueError(f"dim must be at most {int(math.log2(MOST_CANDIDATES))}, got {self.dim}")
        # A little more than the root, which may have been rounded down from a whole number.
        return even_points(max(2, int(min(self.size, MOST_CANDIDATES) ** (1.0 / self.dim) + 1e-9)), self.dim)

    @cached_property
    def priors(self) -> Any:
        """k(z,z) at the candidates."""
        return np.asarray(self.kernel.diag(self.candidates))

    @property
    def kernel_of_values(self) -> Kernel:
        """k_psi; by default the kernel of z with the lengthscales of its first coordinates."""
        if self.value_kernel is not None:
            return as_kernel(self.value_kernel)
        lengthscale = getattr(self.kernel, "lengthscale", None)
        if isinstance(lengthscale, tuple) and len(lengthscale) > self.state_dim:
            return cast(Kernel, replace(cast(Any, self.kernel), lengthscale=lengthscale[: self.state_dim]))
        return self.kernel

    @cached_property
    def spectrum(self) -> Spectrum:
        """The eigenvalues that two rules agree on."""
        return trusted_spectrum(self.kernel, self.dim)

    @cached_property
    def value_spectrum(self) -> Spectrum:
        return trusted_spectrum(self.kernel_of_values, self.state_dim)

    @cached_property
    def greedy(self) -> gain.GreedyGain:
        return gain.greedy_gain(self.kernel, self.candidates, self.ridge, max(QUERIES, self.samples))

    @cached_property
    def low_rank(self) -> gain.Law:
        residuals = gain.residual_diagonal(self.kernel, self.candidates, RANK)
        return gain.low_rank_law(residuals, self.ridge, len(self.candidates))

    def laws(self) -> dict[str, gain.Law]:
        """Laws that continue Gamma beyond the greedy queries.

        The low-rank law is a bound for the candidates; if these are not all of Z, it only extrapolates.
        """
        complete = len(self.candidates) >= self.size
        name = f"low-rank {'bound' if complete else 'law'} on {len(self.candidates)} candidates"
        p = known_exponent(self.kernel, self.dim)
        if p is None:
            return {name: self.low_rank}
        rate = gain.rate_law(self.greedy, p, self.dim)
        text = "log(n)^(d+1)" if math.isinf(p) else f"n^(1/p), p = {p:g}"
        text = f"rate {text}, through I_{self.greedy.n}"
        if not complete:
            return {text: rate}
        return {
            f"{text}, at most the low-rank bound": gain.smaller_law(rate, self.low_rank),
            name: self.low_rank,
        }

    def gain_at(self, n: int) -> gain.GreedyGain:
        """The greedy gain of the first n queries."""
        return self.greedy.first(n)

    def gain_bound(self, n: int) -> float:
        """An upper bound on Gamma(n) on the candidates."""
        return min(gain.greedy_upper(self.gain_at(n)), gain.variance_upper(self.greedy, n))

    def adaptive_widths(self, n: int) -> tuple[float, float]:
        """Widths after n adaptive samples: for one V, as Qiu et al. need it, and for every reward."""
        B1, R, upper = self.norm, float(self.horizon), self.gain_bound(n)
        one = width.self_normalised_width(B1, R, self.ridge, upper, self.delta / self.steps)
        every = width.adaptive_width(B1, R, self.ridge, upper, self.states, self.steps, self.delta)
        return one.b, every.b


def widths(problem: Problem) -> list[Result]:
    """Every width b after n samples."""
    B1, B2, R, ridge = problem.norm, problem.value_norm, float(problem.horizon), problem.ridge
    n, size, steps, delta = problem.samples, problem.size, problem.steps, problem.delta
    share, spectrum = delta / (size * steps), problem.value_spectrum  # the share of one z at one step
    norm = f"||[PV]|| <= B1 = {B1:g}"
    ball = (norm, f"||V|| <= B2 = {B2:g}", "|psi| <= psi_max")
    fixed = (norm, "reward and ridge fixed before the data", "one random stream for each step")
    rows: list[tuple[str, str, float, tuple[str, ...]]] = []
    for label, part, points in (("one z", delta, "one z"), ("all of Z", share, f"{size} z, {steps} steps")):
        for reading, formula in THEOREM_1.items():
            b, M = astuple(formula(spectrum, B1, B2, ridge, n, part))
            rows.append((f"Theorem 1, {label}", f"{reading}, M = {M}", b, (*ball, points)))
    largest = float(np.max(problem.kernel_of_values.diag(even_points(50, problem.state_dim))))
    free = width.spectrum_free(B1, B2, largest, ridge, share).b
    rows.append(("spectrum-free, all of Z", "McDiarmid", free, ball[:2]))
    for reading, joined in (("sum form", False), ("root form", True)):
        b = width.generative_width(B1, R, ridge, size, steps, delta, joined=joined).b
        rows.append(("generative data, one reward", reading, b, fixed))
    every = width.every_reward_width(B1, R, ridge, size, problem.states, steps, delta).b
    one, adaptive = problem.adaptive_widths(n)
    further = [
        ("independent data, every reward", "corners of [0,H]^S", every, fixed[:1]),
        ("adaptive data, every reward", "self-normalised, Gamma(n)", adaptive, fixed[:1]),
        ("adaptive data, one V (Qiu et al.)", "self-normalised, Gamma(n)", one, fixed[:1]),
    ]
    estimate, sentence = width.estimate_norm(R, ridge, n), "for any data, if |V| <= H"
    return [
        *(_width(problem, *row) for row in rows),
        *_continuous(problem, ball, fixed),
        *(_width(problem, *row) for row in further),
        Result("norm of the estimate at most", "always", estimate, ("V in [0, H]",), False, sentence),
    ]


def _continuous(problem: Problem, ball: tuple[str, ...], fixed: tuple[str, ...]) -> list[Result]:
    """Widths for all z, by a net between whose points functions change by about 1/n, as in the paper."""
    n, B1, R, ridge = problem.samples, problem.norm, float(problem.horizon), problem.ridge
    radius = float(np.min(np.asarray(getattr(problem.kernel, "lengthscale", 1.0)))) / n
    name, reading = "Corollary 1, all of [0,1]^d", f"root form, net of radius {radius:.2g}"
    try:
        change = width.kernel_change(problem.kernel, radius)
    except ValueError as error:
        return [Result(name, reading, None, ball, True, str(error))]
    share = problem.delta / (math.exp(width.net_log_size(radius, problem.dim)) * problem.steps)
    theorem = width.theorem_1_tight(problem.value_spectrum, B1, problem.value_norm, ridge, n, share)
    generative = width.generative_width(B1, R, ridge, 1, 1, share)
    results = []
    for title, on_net, assumptions in (
        (name, theorem, ball),
        ("generative data, all of [0,1]^d", generative, fixed),
    ):
        added = width.continuous_width(on_net.b, B1, R, ridge, n, change).added
        result = _width(problem, title, reading, on_net.b, assumptions)
        results.append(replace(result, sentence=f"{result.sentence}; adds {added:.3g} everywhere"))
    return results


def _width(problem: Problem, name: str, reading: str, b: float, assumptions: tuple[str, ...]) -> Result:
    """Vacuous if, after n samples of Alg 2, it bounds [PV] at no point better than [0, H] does."""
    least = math.sqrt(float(problem.greedy.smallest[problem.samples]))
    needed = problem.horizon / b if b > 0 else math.inf
    reached = f"Alg 2 has {least:.3g} at best after {problem.samples} samples"
    sentence = f"informative where sigma is below {needed:.3g}; {reached}"
    return Result(name, reading, b, assumptions, least >= needed, sentence)


def gains(problem: Problem) -> list[Result]:
    """Information gain after n samples, from below and from above, and how it grows."""
    n, ridge, greedy = problem.samples, problem.ridge, problem.gain_at(problem.samples)
    assumptions = (
        f"{len(problem.candidates)} candidates on a grid of [0,1]^{problem.dim}",
        f"ridge = {ridge:g}",
    )
    by_share, by_variance = gain.greedy_upper(greedy), gain.variance_upper(problem.greedy, n)
    low_rank, spectral = problem.low_rank(n), gain.spectral_law(problem.spectrum, ridge)(n)
    potential = gain.potential_bound(min(by_share, by_variance, low_rank), ridge)
    independent = 0.5 * n * math.log1p(1.0 / ridge)
    rows = [
        ("greedy I_n", "Alg 2's own queries", float(greedy.gains[-1]), math.inf, "a lower bound on Gamma(n)"),
        ("Gamma(n) at most", "greedy/(1 - (1-1/n)^n)", by_share, independent, "by submodularity"),
        ("Gamma(n) at most", "variance after j queries", by_variance, independent, "smallest over j"),
        ("Gamma(n) at most", "pivoted Cholesky", low_rank, independent, "smallest over ranks"),
        ("Gamma(n) at most", "Mercer spectrum", spectral, independent, "psi_max estimated on the nodes"),
        ("sum of sigma^2 at most", "elliptical potential", potential, float(n), "needs k(z,z) <= 1"),
    ]  # fmt: skip
    results = []
    for name, reading, value, trivial, sentence in rows:
        vacuous = value >= trivial * (1.0 - 1e-9)
        reason = f"; {n} independent queries would have {trivial:.4g}" if vacuous else ""
        results.append(Result(name, reading, value, assumptions, vacuous, sentence + reason))
    growth, p = gain.fit_growth(problem.greedy), known_exponent(problem.kernel, problem.dim)
    theory = "" if p is None else f"; theory: {0.0 if math.isinf(p) else 1.0 / p:.3g} up to logarithms"
    fit = f"n^{growth.exponent:.3g} fits the upper half of {problem.greedy.n} greedy queries"
    sentence = f"{fit} (R^2 {growth.r_squared:.4f}){theory}"
    return [*results, Result("growth exponent", "fitted", growth.exponent, assumptions, False, sentence)]


def spectra(problem: Problem) -> list[Result]:
    """The Mercer spectrum under the uniform measure on [0,1]^d."""
    spectrum, trusted = problem.spectrum, len(problem.spectrum.eigenvalues)
    nodes = len(gauss_legendre(problem.dim).nodes[0])
    rows: list[tuple[str, str, float | None, str]] = [
        (f"lambda_{m}", "Nystrom", float(spectrum.eigenvalues[m - 1]), "two rules agree to 2%")
        for m in (1, 2, 5, 10, 20, 50, 100, 200)
        if m <= trusted
    ]
    rows += [
        ("trusted", "two rules", float(trusted), "eigenvalues that two rules agree on; only they are used"),
        ("sum of all", "integral of k(z,z)", spectrum.trace, "exact up to the rule"),
        ("sum of the others", "integral less those trusted", spectrum.tail(trusted), "the tail in Theorem 1"),
        ("psi_max", "of those trusted", spectrum.psi_max(trusted), "from below, on the nodes"),
    ]  # fmt: skip
    if trusted >= 8:
        law = fit_decay(spectrum.eigenvalues, problem.dim)
        rows.append(("eigendecay", law.kind, law.rate, _law_text(law)))
    p = known_exponent(problem.kernel, problem.dim)
    if p is not None and math.isinf(p):
        rows.append(("eigendecay p", "known", None, "exponential: faster than any power"))
    elif p is not None:
        rows.append(("eigendecay p", "known", p, "lambda_m ~ m^-p, p = 1 + 2 nu/d, for large m"))
    assumptions = (f"uniform measure on [0,1]^{problem.dim}", f"{nodes} Gauss-Legendre nodes an axis")
    return [
        Result(name, reading, value, assumptions, False, sentence) for name, reading, value, sentence in rows
    ]


def _law_text(law: Decay) -> str:
    form = f"m^-{law.rate:.3g}" if law.kind == "polynomial" else f"exp(-{law.rate:.3g} m^(1/d))"
    return f"{form} fits lambda_{law.first} to lambda_{law.last} with R^2 {law.r_squared:.4f}"


def complexities(problem: Problem) -> list[Result]:
    """The smallest N of Theorems 2 and 3 for each law of Gamma.

    The printed and corrected readings have the width of generative data, as in the paper. The repaired one
    has a width that holds for Alg 3: for every V, and for all rounds up to N.
    """
    H, eps, ridge, delta = problem.horizon, problem.epsilon, problem.ridge, problem.delta
    B1, size, steps = problem.norm, problem.size, problem.steps
    b = width.generative_width(B1, float(H), ridge, size, steps, delta, joined=False).b

    def uniform(n: float) -> float:
        """The width for every V and round, with half of delta."""
        designs = steps * int(n)
        return width.every_reward_width(B1, float(H), ridge, size, problem.states, designs, 0.5 * delta).b

    results = []
    for law_name, law in problem.laws().items():
        assumptions = (f"b = {b:.3g} (B1 = {B1:g}, sum form)", f"delta = {delta:g}", f"Gamma: {law_name}")
        n = complexity.theorem_2_samples(b, law, H, ridge, eps)
        results.append(_samples(problem, "Theorem 2", "printed", n, assumptions))
        for reading in ("printed", "corrected"):
            n = complexity.theorem_3_samples(reading, b, law, H, ridge, eps, delta)
            results.append(_samples(problem, "Theorem 3", reading, n, assumptions))
        n = complexity.smallest_n(_repaired(problem, uniform, law), eps)
        bound = "b" if n is None else f"b = {uniform(n):.3g}"
        every = (f"{bound} for every V and round (B1 = {B1:g})", *assumptions[1:], "a fixed start")
        results.append(_samples(problem, "Theorem 3", "repaired", n, every))
    return results


def _repaired(problem: Problem, b: Callable[[float], float], law: gain.Law) -> Callable[[float], float]:
    H, ridge, delta = problem.horizon, problem.ridge, 0.5 * problem.delta  # the width has the other half
    return lambda n: complexity.theorem_3_repaired_gap(n, b(n), law(n), H, ridge, delta)


def _samples(
    problem: Problem, theorem: str, reading: str, n: int | None, assumptions: tuple[str, ...]
) -> Result:
    """N per step, with the episodes and environment steps that it takes: Theorem 3 is for Alg 3."""
    name, H, online = f"{theorem}, N per step", problem.horizon, theorem == "Theorem 3"
    if n is None:
        impossible = online and reading == "printed"
        sentence = "no N satisfies it" if impossible else f"no N below {complexity.MOST:.0e} satisfies it"
        return Result(name, reading, None, assumptions, True, sentence)
    episodes, steps = (n * H, n * H * (H + 1) // 2) if online else (n, n * H)
    unit = "episodes" if online else "rounds of H queries"
    vacuous = n > 1e6 or problem.epsilon >= H
    sentence = f"{episodes:.3g} {unit}, {steps:.3g} environment steps"
    if problem.epsilon >= H:
        sentence += "; epsilon is no smaller than H, so every policy would do"
    elif vacuous:
        sentence += "; the experiments in the paper use 160"
    if reading == "corrected":
        sentence += "; its step 10b bounds points that Alg 3 discards"
    return Result(name, reading, float(n), assumptions, vacuous, sentence)


def table_1(problem: Problem) -> list[Result]:
    """Table 1 as numbers, with constants set to 1 and the coordinates of z as features of the linear row."""
    d, p, how = problem.dim, known_exponent(problem.kernel, problem.dim), ""
    if p is None and len(problem.spectrum.eigenvalues) >= 8:
        p, how = fit_decay(problem.spectrum.eigenvalues, d, "polynomial").rate, " (fitted)"
    actions = max(1, round(problem.size / problem.states))
    table = complexity.Rates(
        problem.horizon, problem.epsilon, problem.states, actions, features=d, dim=d, p=p
    ).table()
    decay = "too few eigenvalues for p" if p is None else f"p = {p:g}{how}"
    assumptions = ("constants set to 1", decay, f"S = {problem.states}, A = {actions}")
    results = []
    for setting, value in table.items():
        source, rate = complexity.PRINTED[setting]
        sentence = "does not apply to this kernel" if value is None else f"{source}: {rate}"
        if setting == "linear":
            sentence += f" with d = {d}, the coordinates of z as features"
        vacuous = value is not None and value > 1e6
        sentence += "; far beyond any experiment" if vacuous else ""
        number = None if value is None or math.isinf(value) else value
        results.append(Result(setting, "printed", number, assumptions, vacuous, sentence))
    return results

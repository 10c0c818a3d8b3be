"""What the theory says about one problem, with its readings, and a plain word when it is vacuous."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from rewardfree.arrays import count, even_points, non_negative, positive, probability
from rewardfree.kernels import Kernel, as_kernel
from rewardfree.theory import complexity, gain, rates, width
from rewardfree.theory.result import Result
from rewardfree.theory.spectrum import (
    Decay,
    Spectrum,
    fit_decay,
    gauss_legendre,
    known_exponent,
    trusted_spectrum,
)

#: The candidates on which Gamma is computed: a grid of at most so many points of [0,1]^d.
MOST_CANDIDATES = 10_000
#: Greedy queries behind the extrapolation of Gamma, and the rank behind its bound.
QUERIES, RANK = 640, 400
_NORMS = "||[PV]|| <= B1 = {:g}"


@dataclass(frozen=True)
class Problem:
    """A kernel on [0,1]^dim, a horizon and an accuracy. B1 bounds ||[PV]||, B2 bounds ||V||; H by default."""

    kernel: Kernel
    dim: int = 2
    horizon: int = 10
    epsilon: float = 0.5
    delta: float = 0.1
    ridge: float = 0.5
    samples: int = 160  # n at which widths and gains are given
    points: int | None = None  # |Z|; 100^dim by default
    states: int = 100  # S, for bounds over every V
    B1: float | None = None
    B2: float | None = None
    value_kernel: Kernel | None = None  # k_psi on the states; the same kernel by default
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
        self.kernel_of_values.diag(even_points(2, self.state_dim))  # does it take the states?

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
        """How many regressions matter: V_{H+1} = 0, so the last step's does not."""
        return max(self.horizon - 1, 1)

    @cached_property
    def candidates(self) -> Any:
        """An even grid of [0,1]^d, of |Z| points or as many as are practical."""
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
        """k_psi; by default z's own kernel, with the lengthscales of its first coordinates."""
        if self.value_kernel is not None:
            return as_kernel(self.value_kernel)
        lengthscale = getattr(self.kernel, "lengthscale", None)
        if isinstance(lengthscale, tuple) and len(lengthscale) > self.state_dim:
            return cast(Kernel, replace(cast(Any, self.kernel), lengthscale=lengthscale[: self.state_dim]))
        return self.kernel

    @cached_property
    def spectrum(self) -> Spectrum:
        """As far as it is to be trusted."""
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
        """Ways to continue Gamma beyond what was computed.

        The low-rank law is a bound for the candidates; if these are not all of Z, it only extrapolates.
        """
        whole = len(self.candidates) >= self.size
        name = f"low-rank {'bound' if whole else 'law'} on {len(self.candidates)} candidates"
        p = known_exponent(self.kernel, self.dim)
        if p is None:
            return {name: self.low_rank}
        rate = gain.rate_law(self.greedy, p, self.dim)
        text = "log(n)^(d+1)" if math.isinf(p) else f"n^(1/p), p = {p:g}"
        text = f"rate {text}, through I_{self.greedy.n}"
        if not whole:
            return {text: rate}
        return {
            f"{text}, at most the low-rank bound": gain.smaller_law(rate, self.low_rank),
            name: self.low_rank,
        }

    def gain_at(self, n: int) -> gain.GreedyGain:
        """The greedy gain of n queries."""
        return self.greedy.first(n)

    def gain_bound(self, n: int) -> float:
        """At least Gamma(n), on the candidates."""
        return min(gain.greedy_upper(self.gain_at(n)), gain.variance_upper(self.greedy, n))

    def adaptive_widths(self, n: int) -> tuple[float, float]:
        """After n adaptive samples, for one V as Qiu et al. need it, and for every reward."""
        about, gained = (self.norm, float(self.horizon), self.ridge), self.gain_bound(n)
        one = width.self_normalised_width(*about, gained, self.delta / self.steps)
        return one.b, width.adaptive_width(*about, gained, self.states, self.steps, self.delta).b


def widths(problem: Problem) -> list[Result]:
    """Every width b after n samples."""
    B1, B2, R, ridge, n = (
        problem.norm, problem.value_norm, float(problem.horizon), problem.ridge, problem.samples,
    )  # fmt: skip
    delta, each = problem.delta, problem.delta / (problem.size * problem.steps)
    spectrum, first = problem.value_spectrum, (_NORMS.format(B1), f"||V|| <= B2 = {B2:g}", "|psi| <= psi_max")
    fixed = (_NORMS.format(B1), "reward and ridge fixed before the data", "a stream of its own for each step")
    found = []
    for label, d, where in (
        ("one z", delta, "one z"),
        ("all of Z", each, f"{problem.size} z, {problem.steps} steps"),
    ):
        for reading, formula in (
            ("printed", width.theorem_1_printed),
            ("corrected", width.theorem_1_corrected),
            ("tight", width.theorem_1_tight),
        ):
            own = formula(spectrum, B1, B2, ridge, n, d)
            found.append(
                _width(
                    problem,
                    f"Theorem 1, {label}",
                    f"{reading}, M = {own.eigenfunctions}",
                    own.b,
                    (*first, where),
                )
            )
    largest = float(np.max(problem.kernel_of_values.diag(even_points(50, problem.state_dim))))
    free = width.spectrum_free(B1, B2, largest, ridge, each).b
    found.append(_width(problem, "spectrum-free, all of Z", "McDiarmid", free, first[:2]))
    args = (B1, R, ridge, problem.size, problem.steps, delta)
    for reading, joined in (("sum form", False), ("root form", True)):
        b = width.generative_width(*args, joined=joined).b
        found.append(_width(problem, "generative data, one reward", reading, b, fixed))
    found += _continuous(problem, first, fixed)
    every = width.every_reward_width(B1, R, ridge, problem.size, problem.states, problem.steps, delta).b
    found.append(_width(problem, "independent data, every reward", "corners of [0,H]^S", every, fixed[:1]))
    self_normalised = "self-normalised, Gamma(n)"
    one, adaptive = problem.adaptive_widths(n)
    found.append(_width(problem, "adaptive data, every reward", self_normalised, adaptive, fixed[:1]))
    found.append(_width(problem, "adaptive data, one V (Qiu et al.)", self_normalised, one, fixed[:1]))
    norm, said = width.estimate_norm(R, ridge, n), "for any data, if |V| <= H"
    found.append(Result("norm of the estimate at most", "always", norm, ("V in [0, H]",), False, said))
    return found


def _continuous(problem: Problem, ball: tuple[str, ...], fixed: tuple[str, ...]) -> list[Result]:
    """On a net that is as fine as the paper's, between whose points functions move by about 1/n: all z."""
    n, B1, R, ridge = problem.samples, problem.norm, float(problem.horizon), problem.ridge
    radius = float(np.min(np.asarray(getattr(problem.kernel, "lengthscale", 1.0)))) / n
    name, reading = "Corollary 1, all of [0,1]^d", f"root form, net of radius {radius:.2g}"
    try:
        change = width.kernel_change(problem.kernel, radius)
    except ValueError as error:
        return [Result(name, reading, None, ball, True, str(error))]
    net = math.exp(width.net_log_size(radius, problem.dim))
    each = problem.delta / (net * problem.steps)
    found = []
    for title, b, given in (
        (name, width.theorem_1_tight(problem.value_spectrum, B1, problem.value_norm, ridge, n, each).b, ball),
        ("generative data, all of [0,1]^d", width.generative_width(B1, R, ridge, 1, 1, each).b, fixed),
    ):
        own, base = (
            width.continuous_width(b, B1, R, ridge, n, change),
            _width(problem, title, reading, b, given),
        )
        found.append(replace(base, sentence=f"{base.sentence}; adds {own.added:.3g} everywhere"))
    return found


def _width(problem: Problem, name: str, reading: str, b: float, assumptions: tuple[str, ...]) -> Result:
    """Vacuous: after n samples of Alg 2 it says of no point more than that [PV] is in [0, H]."""
    least = math.sqrt(float(problem.greedy.smallest[problem.samples]))
    needed = problem.horizon / b if b > 0 else math.inf
    vacuous = least >= needed
    where = f"Alg 2 has {least:.3g} at best after {problem.samples} samples"
    sentence = f"says something where sigma is below {needed:.3g}; {where}"
    return Result(name, reading, b, assumptions, vacuous, sentence)


def gains(problem: Problem) -> list[Result]:
    """Information gain after n samples, from below and from above, and how it grows."""
    n, greedy = problem.samples, problem.gain_at(problem.samples)
    about = (
        f"{len(problem.candidates)} candidates on a grid of [0,1]^{problem.dim}",
        f"ridge = {problem.ridge:g}",
    )
    spectral = gain.spectral_law(problem.spectrum, problem.ridge)(n)
    upper = min(gain.greedy_upper(greedy), gain.variance_upper(problem.greedy, n), problem.low_rank(n))
    potential = gain.potential_bound(upper, problem.ridge)
    most = 0.5 * n * math.log1p(1.0 / problem.ridge)
    rows = [
        ("greedy I_n", "Alg 2's own queries", float(greedy.gains[-1]), "at most Gamma(n); what Alg 2 gains"),
        ("Gamma(n) at most", "greedy/(1 - (1-1/n)^n)", gain.greedy_upper(greedy), "by submodularity"),
        ("Gamma(n) at most", "variance after j queries", gain.variance_upper(problem.greedy, n), "best j"),
        ("Gamma(n) at most", "pivoted Cholesky", problem.low_rank(n), "best rank"),
        ("Gamma(n) at most", "Mercer spectrum", spectral, "with psi_max as estimated on the nodes"),
        ("sum of sigma^2 at most", "elliptical potential", potential, "needs k(z,z) <= 1"),
    ]  # fmt: skip
    found = []
    for name, reading, value, sentence in rows:
        trivial = {"Gamma(n) at most": most, "sum of sigma^2 at most": float(n)}.get(name, math.inf)
        vacuous = value >= trivial * (1.0 - 1e-9)
        more = f"; {n} queries that know nothing of each other would have {trivial:.4g}" if vacuous else ""
        found.append(Result(name, reading, value, about, vacuous, sentence + more))
    growth, p = gain.fit_growth(problem.greedy), known_exponent(problem.kernel, problem.dim)
    theory = "" if p is None else f"; theory: {0.0 if math.isinf(p) else 1.0 / p:.3g} up to logarithms"
    fit = f"n^{growth.exponent:.3g} fits the upper half of {problem.greedy.n} greedy queries"
    sentence = f"{fit} (R^2 {growth.r_squared:.4f}){theory}"
    found.append(Result("growth exponent", "fitted", growth.exponent, about, False, sentence))
    return found


def spectra(problem: Problem) -> list[Result]:
    """The Mercer spectrum under the uniform measure on [0,1]^d."""
    own = problem.spectrum
    trusted = len(own.eigenvalues)
    nodes = len(gauss_legendre(problem.dim).nodes[0])
    about = (f"uniform measure on [0,1]^{problem.dim}", f"{nodes} Gauss-Legendre nodes an axis")
    sentence = "two rules agree to 2%"
    found = [
        Result(f"lambda_{m}", "Nystrom", float(own.eigenvalues[m - 1]), about, False, sentence)
        for m in (1, 2, 5, 10, 20, 50, 100, 200)
        if m <= trusted
    ]
    sentence = "eigenvalues that two rules agree on to 2%; the others are not used"
    found += [
        Result("trusted", "two rules", float(trusted), about, False, sentence),
        Result("sum of all", "integral of k(z,z)", own.trace, about, False, "exact up to the rule"),
        Result("left after those", "integral", own.tail(trusted), about, False, "the tail in Theorem 1"),
        Result("psi_max", "of those", own.psi_max(trusted), about, False, "from below, on the nodes"),
    ]
    if trusted >= 8:
        law = fit_decay(own.eigenvalues, problem.dim)
        found.append(Result("eigendecay", law.kind, law.rate, about, False, _law_text(law)))
    p = known_exponent(problem.kernel, problem.dim)
    if p is not None:
        powers = "lambda_m ~ m^-p, p = 1 + 2 nu/d, for large m"
        text = "exponential: faster than any power" if math.isinf(p) else powers
        found.append(Result("eigendecay p", "known", None if math.isinf(p) else p, about, False, text))
    return found


def _law_text(law: Decay) -> str:
    form = f"m^-{law.rate:.3g}" if law.kind == "polynomial" else f"exp(-{law.rate:.3g} m^(1/d))"
    return f"{form} fits lambda_{law.first} to lambda_{law.last} with R^2 {law.r_squared:.4f}"


def complexities(problem: Problem) -> list[Result]:
    """The smallest N of Theorems 2 and 3 for each law of Gamma.

    As printed and corrected with the width of generative data, as the paper does; repaired with one that
    holds for Alg 3: for every V, and for all rounds up to N.
    """
    H, eps, ridge, delta = problem.horizon, problem.epsilon, problem.ridge, problem.delta
    B1, size, steps = problem.norm, problem.size, problem.steps
    b = width.generative_width(B1, float(H), ridge, size, steps, delta, joined=False).b

    def uniform(n: float) -> float:
        designs = steps * int(n)
        return width.every_reward_width(B1, float(H), ridge, size, problem.states, designs, 0.5 * delta).b

    found = []
    for law_name, law in problem.laws().items():
        about = (f"b = {b:.3g} (B1 = {B1:g}, sum form)", f"delta = {delta:g}", f"Gamma: {law_name}")
        n = complexity.theorem_2_samples(b, law, H, ridge, eps)
        found.append(_samples(problem, "Theorem 2, N per step", "printed", n, about, online=False))
        for reading in ("printed", "corrected"):
            n = complexity.theorem_3_samples(reading, b, law, H, ridge, eps, delta)
            found.append(_samples(problem, "Theorem 3, N per step", reading, n, about, online=True))
        n = complexity.smallest_n(_repaired(problem, uniform, law), eps)
        wide = "b" if n is None else f"b = {uniform(n):.3g}"
        given = (f"{wide} for every V and round (B1 = {B1:g})", *about[1:], "a fixed start")
        found.append(_samples(problem, "Theorem 3, N per step", "repaired", n, given, online=True))
    return found


def _repaired(problem: Problem, b: Callable[[float], float], law: gain.Law) -> Callable[[float], float]:
    H, ridge, delta = problem.horizon, problem.ridge, 0.5 * problem.delta  # the other half is the width's
    return lambda n: complexity.theorem_3_repaired_gap(n, b(n), law(n), H, ridge, delta)


def _samples(
    problem: Problem, name: str, reading: str, n: int | None, about: tuple[str, ...], online: bool
) -> Result:
    if n is None:
        impossible = online and reading == "printed"
        sentence = "no N satisfies it" if impossible else f"no N below {complexity.MOST:.0e} satisfies it"
        return Result(name, reading, None, about, True, sentence)
    H = problem.horizon
    episodes, steps = (n * H, n * H * (H + 1) // 2) if online else (n, n * H)
    word = "episodes" if online else "rounds of H queries"
    vacuous = n > 1e6 or problem.epsilon >= H
    said = f"{episodes:.3g} {word}, {steps:.3g} environment steps"
    if problem.epsilon >= H:
        said += "; epsilon is no smaller than H, so every policy would do"
    elif vacuous:
        said += "; the paper's own experiments use 160"
    if reading == "corrected":
        said += "; its step 10b bounds points that Alg 3 discards"
    return Result(name, reading, float(n), about, vacuous, said)


def table_1(problem: Problem) -> list[Result]:
    """Table 1 as numbers, with every constant set to 1."""
    p, how = known_exponent(problem.kernel, problem.dim), ""
    if p is None and len(problem.spectrum.eigenvalues) >= 8:
        p, how = fit_decay(problem.spectrum.eigenvalues, problem.dim, "polynomial").rate, " (fitted)"
    actions = max(1, round(problem.size / problem.states))
    own = rates.Rates(
        problem.horizon, problem.epsilon, problem.states, actions, problem.dim, problem.dim, p
    )  # fmt: skip
    decay = "no eigendecay to be seen" if p is None else f"p = {p:g}{how}"
    about = ("constants set to 1", decay, f"S = {problem.states}, A = {actions}")
    found = []
    for setting, value in own.table().items():
        who, formula = rates.PRINTED[setting]
        sentence = "does not apply to this kernel" if value is None else f"{who}: {formula}"
        vacuous = value is not None and value > 1e6
        sentence += "; far beyond any experiment" if vacuous else ""
        found.append(
            Result(
                setting,
                "printed",
                None if value is None or math.isinf(value) else value,
                about,
                vacuous,
                sentence,
            )
        )
    return found

"""What the theory says about a problem: the formulas put together, and refusals."""

import dataclasses
import importlib
import inspect
import math
import pkgutil

import numpy as np
import pytest

import rewardfree as rf
from reference_spectrum import exponential_eigenpairs
from reference_theory import gain_of, gap_2, grid, theorem_1_by_hand
from rewardfree import theory
from rewardfree.theory import answers, complexity
from rewardfree.theory import gain as gains
from rewardfree.theory import spectrum as spectra
from rewardfree.theory import width as widths

pytestmark = pytest.mark.usefixtures("one_thread")


ANSWERS = [theory.widths, theory.gains, theory.spectra, theory.complexities, theory.table_1]


@pytest.fixture
def small(monkeypatch):
    """Fewer nodes and queries: the same code in a tenth of the time."""
    monkeypatch.setattr(spectra, "NODES", 196)
    monkeypatch.setattr(answers, "QUERIES", 60)
    monkeypatch.setattr(answers, "RANK", 40)

    def make(kernel=rf.Matern(1.5, 0.3), **fields):  # noqa: B008  a kernel is a frozen value
        return theory.Problem(kernel, **({"points": 400, "samples": 20, "states": 20} | fields))

    return make


def matching(results, name, reading=""):
    return [result for result in results if result.name.startswith(name) and reading in result.reading]


def check_results(results):
    assert results
    for result in results:
        assert isinstance(result, theory.Result)
        assert result.value is None or (isinstance(result.value, float) and math.isfinite(result.value))
        assert result.value is None or result.value >= 0.0
        assert result.assumptions
        assert all(isinstance(text, str) and text for text in result.assumptions)
        assert len(result.sentence) > 3
        assert result.name
        assert result.reading
    return results


WORLDS = [
    {},
    {"kernel": rf.SquaredExponential(0.3)},
    {"kernel": rf.Matern(2.5, 0.2), "horizon": 1, "dim": 1, "points": 30},
    {"kernel": rf.Matern(0.5, 0.5), "dim": 3, "epsilon": 20.0, "samples": 70},
    {"kernel": rf.NeuralTangent(1)},
    {"kernel": rf.NeuralTangent(2, bias=0.1), "samples": 8, "delta": 0.9},
    {"kernel": 0.5 * rf.Matern(1.5, 0.2), "B1": 0.0, "B2": 0.0},
]


@pytest.mark.parametrize("fields", WORLDS, ids=str)
@pytest.mark.parametrize("ask", ANSWERS, ids=lambda f: f.__name__)
def test_answers_are_numbers_or_none_with_a_sentence(small, ask, fields):
    check_results(ask(small(**fields)))


def test_a_kernel_of_few_eigenvalues_has_answers(small):
    problem = small(0.5 * rf.Linear())
    for ask in ANSWERS[:-1]:
        check_results(ask(problem))
    assert matching(theory.spectra(problem), "sum of all")[0].value == pytest.approx(1 / 3)
    corollary = matching(theory.widths(problem), "Corollary 1")[0]
    assert corollary.value is None
    assert corollary.vacuous
    assert "smooth at 0" in corollary.sentence


def test_a_kernel_of_few_eigenvalues_has_a_table(small):
    check_results(theory.table_1(small(0.5 * rf.Linear())))


def test_widths_are_those_of_their_formulas(small):
    problem = small(B1=4.0, B2=3.0)
    results = check_results(theory.widths(problem))
    noise = 10.0 * math.sqrt(math.log(2 * 400 * 9 / 0.1))
    assert matching(results, "generative", "sum")[0].value == pytest.approx(4.0 + noise)
    assert matching(results, "generative", "root")[0].value == pytest.approx(math.hypot(4.0, noise))
    every = 10.0 * math.sqrt(math.log(9 * 400 * (2**20 - 2) / 0.1))
    assert matching(results, "independent data")[0].value == pytest.approx(math.hypot(4.0, every))
    free = 3.0 / math.sqrt(0.5) * (1.0 + math.sqrt(2.0 * math.log(400 * 9 / 0.1)))
    assert matching(results, "spectrum-free")[0].value == pytest.approx(math.hypot(4.0, free))
    plan = rf.query_plan(rf.Model(problem.kernel, ridge=0.5), problem.candidates, 20)
    by_share = gain_of(problem.kernel, problem.candidates[plan], 0.5) / (1.0 - (1.0 - 1.0 / 20) ** 20)
    most = min(by_share, gains.variance_upper(problem.greedy, 20))
    inside = 2.0 * most + 2.0 * math.log(9 * (2**19 - 1) / 0.1)
    adaptive = 4.0 + 5.0 * math.sqrt(inside / 0.5)
    assert matching(results, "adaptive data, every")[0].value == pytest.approx(adaptive, rel=1e-3)
    one_v = 4.0 + 5.0 * math.sqrt((2.0 * most + 2.0 * math.log(9 / 0.1)) / 0.5)
    assert matching(results, "adaptive data, one V")[0].value == pytest.approx(one_v, rel=1e-3)
    value_spectrum = spectra.trusted_spectrum(problem.kernel, 1)
    for label, delta in (("one z", 0.1), ("all of Z", 0.1 / 3600)):
        by_hand = np.array(list(theorem_1_by_hand(value_spectrum, 4.0, 3.0, 0.5, 20, delta))).min(axis=0)
        for reading, expected in zip(("printed", "corrected", "tight"), by_hand, strict=True):
            got = matching(results, f"Theorem 1, {label}", reading)
            assert [result.value for result in got] == pytest.approx([expected], rel=1e-6)
    for name in ("Theorem 1, one z", "Theorem 1, all of Z"):
        assert matching(results, name, "tight")[0].value <= matching(results, name, "corrected")[0].value


def test_vacuous_widths_are_those_that_no_point_can_use(small):
    problem = small(samples=20)
    plan = rf.query_plan(rf.Model(problem.kernel, ridge=0.5), problem.candidates, 20)
    design = rf.posterior.Design(problem.kernel, ridge=0.5)
    design.extend(problem.candidates[plan])
    least = float(design.std(at=problem.candidates).min())
    for result in (row for row in theory.widths(problem) if "norm" not in row.name):
        assert result.vacuous == (result.value * least >= 10.0)
        assert f"Alg 2 has {least:.3g} at best" in result.sentence
    sharp = theory.widths(small(samples=60, ridge=1e-3, B1=0.1, B2=0.1, epsilon=0.1))
    assert not all(result.vacuous for result in sharp)


def test_gains_enclose_what_is_greedy(small):
    problem = small()
    results = check_results(theory.gains(problem))
    greedy = matching(results, "greedy")[0].value
    uppers = [result.value for result in matching(results, "Gamma(n) at most")]
    assert len(uppers) == 4
    assert greedy <= min(uppers)
    assert matching(results, "sum of sigma^2")[0].value <= 20.0 * 1.5
    independent = 10.0 * math.log1p(1.0 / 0.5)
    for result in matching(results, "Gamma(n) at most"):
        assert result.vacuous == (result.value >= independent)


def test_spectra_say_what_is_to_be_trusted(small):
    results = check_results(theory.spectra(small(dim=1, points=100)))
    assert matching(results, "sum of all")[0].value == pytest.approx(1.0)
    trusted = matching(results, "trusted")[0].value
    for result in matching(results, "lambda_"):
        m = int(result.name.removeprefix("lambda_"))
        assert m <= trusted
    assert matching(results, "eigendecay p", "known")[0].value == 4.0
    assert matching(results, "eigendecay", "polynomial")[0].value == pytest.approx(4.0, rel=0.1)
    assert matching(results, "psi_max")[0].value >= 1.0
    smooth = theory.spectra(small(rf.SquaredExponential(0.3)))
    assert matching(smooth, "eigendecay p", "known")[0].value is None


def test_complexities_name_their_readings_and_laws(small):
    results = check_results(theory.complexities(small()))
    two, three = matching(results, "Theorem 2"), matching(results, "Theorem 3")
    assert len(two) == 2  # a rate and a bound
    assert [result.reading for result in three] == ["printed", "corrected", "repaired"] * 2
    for result in three:
        assert (result.value is None) == (result.reading == "printed")
    assert all("b = " in result.assumptions[0] for result in results)
    problem = small()
    b = widths.generative_width(10.0, 10.0, 0.5, 400, 9, 0.1, joined=False).b
    rate = gains.rate_law(problem.greedy, 1.0 + 3.0 / 2.0, 2)

    def law(n):
        return min(rate(n), problem.low_rank(n))

    assert two[0].value == complexity.theorem_2_samples(b, law, 10, 0.5, 0.5)
    assert gap_2(two[0].value, b, law(two[0].value), 10, 0.5) <= 0.5
    assert all(result.vacuous and result.sentence for result in results if (result.value or math.inf) > 1e6)


def test_an_epsilon_no_smaller_than_the_horizon_is_vacuous_however_few_samples_it_asks_for(small):
    results = theory.complexities(small(horizon=1, epsilon=1.0, B1=0.0, ridge=100.0))
    assert min(result.value for result in matching(results, "Theorem 2")) < 1000
    for result in results:
        assert result.vacuous
        assert result.value is None or "every policy would do" in result.sentence


def test_table_1_is_that_of_the_problem(small):
    rows = {result.name: result for result in check_results(theory.table_1(small(states=20)))}
    assert rows["tabular"].value == pytest.approx(20**2 * 20 * 1e5 * 4)
    assert rows["kernel, polynomial eigendecay"].value == pytest.approx(
        2000.0 ** complexity.eps_exponent(1.5, 2)
    )
    assert rows["linear"].value == pytest.approx(2**3 * 1e6 * 4)
    assert "with d = 2, the coordinates of z as features" in rows["linear"].sentence
    absent = rows["kernel, exponential eigendecay"]
    assert (absent.value, absent.sentence) == (None, "does not apply to this kernel")


def test_defaults_are_those_of_the_paper():
    problem = theory.Problem(rf.Matern(2.5, 0.1))
    assert problem.size == 10**4
    assert problem.steps == 9
    assert (problem.norm, problem.value_norm) == (10.0, 10.0)
    np.testing.assert_allclose(problem.candidates, grid(100, 2))
    one = dataclasses.replace(problem, horizon=1, dim=1, B1=2.0, B2=0.0)
    assert (one.size, one.steps, one.norm, one.value_norm) == (100, 1, 2.0, 0.0)
    assert dataclasses.replace(problem, points=450).candidates.shape == (441, 2)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"delta": 0.0}, "delta must lie strictly between 0 and 1"),
        ({"delta": 1.0}, "delta must lie strictly between 0 and 1"),
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"epsilon": -1.0}, "epsilon must be positive"),
        ({"ridge": 0.0}, "ridge must be positive"),
        ({"horizon": 0}, "horizon must be a whole number of at least 1"),
        ({"horizon": 2.5}, "horizon must be a whole number"),
        ({"dim": 0}, "dim must be a whole number"),
        ({"samples": 0}, "samples must be a whole number"),
        ({"states": 1}, "states must be a whole number of at least 2"),
        ({"points": 0}, "points must be a whole number"),
        ({"B1": -1.0}, "B1 must be at least 0"),
        ({"B2": math.nan}, "B2 must be finite"),
        ({"kernel": 2.0 * rf.Matern(1.5)}, r"the theorems need k\(z,z\) <= 1, got 2"),
        ({"kernel": rf.Linear()}, r"the theorems need k\(z,z\) <= 1"),
        ({"kernel": "rbf"}, "a kernel must offer"),
    ],
)
def test_problems_that_make_no_sense_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        theory.Problem(**({"kernel": rf.Matern(1.5, 0.3), "points": 100} | fields))


def test_a_kernel_that_exceeds_one_far_from_the_origin_is_refused():
    with pytest.raises(ValueError, match=r"the theorems need k\(z,z\) <= 1"):
        theory.Problem(rf.Linear(1.2))


def test_unequal_lengthscales_have_widths(small):
    check_results(theory.widths(small(rf.Matern(1.5, (0.3, 0.5)))))


@pytest.mark.parametrize("nu", [0.5, 1.5])
def test_theorem_1_does_not_depend_on_how_finely_its_spectrum_was_computed(small, monkeypatch, nu):
    b_values = []
    for nodes in (150, 300):
        monkeypatch.setattr(spectra, "NODES", nodes)
        results = theory.widths(small(value_kernel=rf.Matern(nu, 0.1), B1=1.0, B2=1.0))
        b_values.append(matching(results, "Theorem 1, one z", "tight")[0].value)
    assert b_values[0] == pytest.approx(b_values[1], rel=0.1)
    if nu == 0.5:
        # No |psi| exceeds sqrt(2): b^2 = B1^2 + psi^2/ridge (2 log(2M/delta) head + 4n tail), n = 20.
        values, tops = exponential_eigenpairs(0.1, 300)
        rest = 1.0 - values.cumsum()
        noise = 2.0 * np.log(20.0 * np.arange(1, 301)) * values.cumsum() + 80.0 * rest
        assert b_values[1] == pytest.approx(math.sqrt(1.0 + tops.max() ** 2 / 0.5 * noise.min()), rel=0.1)


def test_a_larger_value_kernel_makes_the_spectrum_free_width_larger(small):
    one, four = (
        matching(theory.widths(small(B1=1.0, value_kernel=k)), "spectrum-free")[0].value
        for k in (rf.Matern(1.5, 0.3), 4.0 * rf.Matern(1.5, 0.3))
    )
    assert math.sqrt((four**2 - 1.0) / (one**2 - 1.0)) == pytest.approx(2.0)


def test_a_number_beyond_counting_is_not_called_impossible(small):
    results = matching(theory.complexities(small(horizon=60)), "Theorem 3", "repaired")
    assert not any(result.sentence == "no N satisfies it" for result in results)


def test_table_1_of_a_rough_kernel_has_no_infinite_value(small):
    check_results(theory.table_1(small(rf.Matern(0.01, 0.3))))


def test_candidates_are_no_more_than_the_most():
    for dim in (1, 2, 3, 4):
        problem = theory.Problem(rf.Matern(1.5, 0.3), dim=dim)
        assert len(problem.candidates) <= answers.MOST_CANDIDATES


def test_nothing_in_theory_has_an_argument_called_tau():
    """The library says `ridge` for tau^2: one of the two names must not be taken for the other."""
    seen = 0
    names = [info.name for info in pkgutil.iter_modules(theory.__path__)]
    modules = [theory, *(importlib.import_module(f"rewardfree.theory.{name}") for name in names)]
    for module in modules:
        for _, member in inspect.getmembers(module, lambda x: inspect.isfunction(x) or inspect.isclass(x)):
            if not member.__module__.startswith("rewardfree.theory"):
                continue
            methods = inspect.getmembers(member, inspect.isfunction) if inspect.isclass(member) else []
            for call in (member, *(method for _, method in methods)):
                assert "tau" not in inspect.signature(call).parameters
                seen += 1
    assert len(modules) == 7
    assert seen > 60


def test_a_law_on_some_of_the_points_is_no_bound(small, monkeypatch):
    monkeypatch.setattr(answers, "MOST_CANDIDATES", 100)
    assert [name for name in small().laws() if "bound" in name] == []
    assert list(small(rf.NeuralTangent(1)).laws()) == ["low-rank law on 100 candidates"]


@pytest.mark.parametrize(
    "fields",
    [
        {"B1": 1e155},
        {"epsilon": 1e-200},
        {"epsilon": 1e200, "horizon": 1},
        {"ridge": 1e-12},
        {"horizon": 500},
    ],
)
def test_extremes_have_finite_numbers_or_none(small, fields):
    problem = small(**fields)
    for question in (theory.widths, theory.complexities, theory.table_1):
        check_results(question(problem))


def test_too_many_dimensions_are_refused():
    with pytest.raises(ValueError, match="dim must be at most 13, got 20"):
        theory.Problem(rf.Matern(1.5, 0.3), dim=20)

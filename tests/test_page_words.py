"""What a page says in words and in its tables: explanations, what is found, and the best of a column."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from rewardfree.experiments.folder import ResultsFolder
from rewardfree.report.gaps import AXES, Line
from rewardfree.report.tables import MOST_COLUMNS, columns_of, smallest, table_view
from rewardfree.report.view import page_words, quick_view, sweep_view
from rewardfree.report.words import LITTLE, WORDS, finding_without_data, words_in
from rewardfree.studies.paper.betas import beta_label
from rewardfree.studies.paper.claims import NOT_JUDGED, Evidence, judged
from rewardfree.studies.paper.recorded import PLANNED_ALIKE
from rewardfree.studies.paper.study import Betas, Figure1

SAMPLES = (10.0, 40.0)


def line(means, cost=None, runs=3, spread=0.1):
    """Runs whose mean at each checkpoint is that, and whose standard deviation is `spread`."""
    around = np.linspace(-1.0, 1.0, runs) if runs > 1 else np.zeros(1)
    if runs > 1:
        around = around / around.std(ddof=1)
    gaps = np.array(means, float)[None, :] + spread * around[:, None]
    costs = np.array(SAMPLES[: len(means)] if cost is None else cost, float)
    return Line(dict.fromkeys(AXES, costs), {"start": gaps, "mean": gaps, "max": 2 * gaps})


def level(gap):
    zero, gaps = np.zeros(1), np.array([[gap]])
    return Line(dict.fromkeys(AXES, zero), {"start": gaps, "mean": gaps, "max": gaps})


def panel(myopic, random, *means, **options):
    lines = {(name, "mean"): line(values, **options) for name, values in zip("abcdef", means, strict=False)}
    return {("no data", "myopic"): level(myopic), ("no data", "random"): level(random), **lines}


def costing(cost, means=None):
    means = np.linspace(2.0, 1.0, len(cost)) if means is None else means
    return line(means, cost=cost)


# Words


def test_each_word_has_one_sentence_that_uses_no_later_word():
    order = list(WORDS)
    assert order[0] == "gap"  # which every page has in its title
    for i, (word, sentence) in enumerate(WORDS.items()):
        assert word in sentence and sentence.endswith(".") and sentence.count(". ") == 0
        assert not [later for later in order[i + 1 :] if later in sentence]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ([], ["gap"]),
        (["Greedy max variance", "the mean alone"], ["gap"]),
        (["Without a generative model (Alg 3)"], ["gap", "Alg 3"]),
        (["the bonus"], ["gap", "bonus", "β"]),
        (["Alg 2, ties at random", "β = 0.1 is the best width"], ["gap", "Alg 2", "bonus", "β"]),
    ],
)
def test_a_page_explains_the_words_it_uses(texts, words):
    assert list(words_in(texts)) == words


def test_words_of_claims_are_explained_too():
    view = sweep_view({("w", "m"): {("greedy", "mean"): line([1.0, 0.5])}}, "t", "s")
    assert list(view["words"]) == ["gap"]
    claims = [{"claim": "Greedy max variance is close to Alg 3", "rule": "β = 0.1"}]
    assert list(page_words({**view, "claims": claims})) == ["gap", "Alg 3", "bonus", "β"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("online-0.1", "Without a generative model (Alg 3), β = 0.1"),
        ("qiu-100", "Qiu et al. (2021), β = 100"),
        ("optimistic-10", "the bonus, β = 10"),
        ("generative", "With a generative model (Alg 2)"),
        ("mean", "the mean alone"),
        ("uniform-5", "uniform-5"),
    ],
)
def test_the_betas_are_named_in_words(name, text):
    assert beta_label(name) == text
    assert Betas().label(name) == text


# What is found


def test_a_policy_without_data_that_wins_is_said():
    lines = {
        ("one", "m"): panel(0.01, 2.0, [1.5, 0.5]),
        ("two", "m"): panel(0.02, 2.0, [1.5, 0.75], [1.0, 0.9]),
    }
    half = student.ppf(0.975, 2) * 0.1 / np.sqrt(3)
    (sentence,) = finding_without_data(lines, {key: key[0] for key in lines})
    assert sentence.startswith("On one and two a policy without data wins. It is the myopic policy, ")
    assert "its gap at the start is 0.010 and 0.020." in sentence
    assert f"is 0.500 ± {half:.3f} and 0.750 ± {half:.3f}." in sentence
    assert "hardly" not in sentence and sentence.endswith("the world was learned, not that this was needed.")


def test_one_that_wins_where_nothing_was_learned_is_no_praise_of_the_world():
    (sentence,) = finding_without_data({("one", "m"): panel(1.0, 1.2, [1.5, 1.4])})
    assert "a policy without data wins" in sentence and sentence.endswith(
        "learned enough there to do better."
    )
    at_bound = panel(LITTLE * 1.2, 1.2, [1.5, 1.4])
    (sentence,) = finding_without_data({("one", "m"): at_bound})
    assert sentence.endswith("not that this was needed.")


def test_data_that_win_are_said():
    (sentence,) = finding_without_data({("one", "m"): panel(2.0, 3.0, [1.5, 0.5])})
    assert sentence.startswith("On “one, m” data win: the smallest mean gap at the start is 0.500 ± ")
    assert sentence.endswith(
        "is the myopic policy, which takes the action with the largest reward now; its gap is 2.000."
    )


def test_the_best_policy_without_data_may_be_the_random_one():
    (sentence,) = finding_without_data({("one", "m"): panel(2.0, 1.0, [1.5, 0.5])})
    assert sentence.endswith("is the random policy; its gap is 1.000.")


@pytest.mark.parametrize("gap", [0.4, 0.6])
def test_what_lies_in_the_interval_is_left_open(gap):
    (sentence,) = finding_without_data({("one", "m"): panel(gap, 3.0, [1.5, 0.5])})
    assert "it cannot be told whether data win" in sentence


def test_one_run_has_no_interval():
    (sentence,) = finding_without_data({("one", "m"): panel(0.4, 3.0, [1.5, 0.5], runs=1)})
    assert "a policy without data wins" in sentence and "±" not in sentence


def test_many_panels_are_counted():
    lines = {(f"draw {i}", "m"): panel(0.01 * i, 2.0, [1.5, 0.5 + 0.1 * i]) for i in range(1, 7)}
    lines["other", "m"] = panel(2.0, 3.0, [1.5, 0.5])
    many, one = finding_without_data(lines)
    assert many.startswith("On 6 of 7 panels a policy without data wins.")
    assert (
        "is 0.010 to 0.060." in many
        and "is 0.600 to 1.100." in many
        and one.startswith("On “other, m” data win")
    )


def test_without_such_policies_nothing_is_found():
    assert finding_without_data({("one", "m"): {("a", "mean"): line([1.0, 0.5])}}) == []


# Tables


def test_the_best_of_each_column_is_named():
    lines = {"a": line([1.0, 0.9]), "b": line([2.0, 0.5]), "c": line([1.0004, 0.7])}
    table = table_view(lines, {"myopic": level(0.8), "random": level(3.0)}, "samples")
    assert table["columns"] == [10.0, 40.0]
    assert table["best"]["start"] == [["a", "c"], ["b"]]  # 1.000 twice, as it is printed
    assert table["better"]["start"] == [["myopic"], []]
    assert table["best"]["max"] == [["a"], ["b"]]  # 2.000 and 2.001
    assert table["rows"]["b"]["start"][1][0] == 0.5
    assert table["rows"]["b"]["start"][1][1] == pytest.approx(
        student.ppf(0.975, 2) * 0.1 / np.sqrt(3), rel=1e-5
    )


def test_one_run_is_a_mean_only():
    table = table_view({"a": line([1.0, 0.5], runs=1), "b": line([0.9, 0.6])}, {}, "samples")
    assert table["rows"]["a"]["start"] == [[1.0], [0.5]] and len(table["rows"]["b"]["start"][0]) == 3
    assert table["best"]["start"] == [["b"], ["a"]]


def test_a_column_of_one_row_has_no_best():
    lines = {"a": costing([10, 20]), "b": costing([100, 200])}
    table = table_view(lines, {}, "steps")
    assert table["columns"] == [10.0, 20.0, 100.0, 200.0] and table["best"]["start"] == [[], [], [], []]
    assert table["rows"]["a"]["start"][2:] == [None, None] and table["rows"]["b"]["start"][:2] == [None, None]


def test_a_table_by_steps_reads_lines_between_their_checkpoints():
    lines = {"a": costing([10, 1000], [2.0, 1.0]), "b": costing([100, 10000], [5.0, 4.0])}
    table = table_view(lines, {}, "steps")
    assert table["columns"] == [10.0, 100.0, 1000.0, 10000.0]
    row = table["rows"]["a"]
    assert row["start"][1][0] == pytest.approx(1.5) and row["between"] == [False, True, False, True]
    assert row["start"][3] is None and table["best"]["start"] == [[], ["a"], ["a"], []]


def test_what_has_no_episodes_has_no_row_by_episodes():
    free = costing([10, 20])
    free = Line({**free.cost, "episodes": np.zeros(2)}, free.gaps)
    assert list(table_view({"a": free, "b": costing([10, 20])}, {}, "episodes")["rows"]) == ["b"]
    assert table_view({"a": free}, {}, "episodes") is None
    assert list(table_view({"a": free}, {}, "samples")["rows"]) == ["a"]


@given(
    st.lists(
        st.lists(st.floats(1.0, 1e6), min_size=2, max_size=12, unique=True).map(sorted),
        min_size=1,
        max_size=8,
    )
)
def test_columns_are_few_and_every_line_is_in_one(costs):
    lines = [costing(cost) for cost in costs]
    columns = columns_of(lines, "steps")
    assert len(columns) <= MOST_COLUMNS + len(lines) and columns == sorted(set(columns))
    assert set(columns) <= {cost for of_line in costs for cost in of_line}
    assert all(any(cost[0] <= column <= cost[-1] for column in columns) for cost in costs)
    assert columns_of(lines, "samples") == sorted({cost for of_line in costs for cost in of_line})


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.0, 200.0), min_size=1))
def test_the_smallest_is_among_the_smallest(gaps):
    names = smallest(gaps)
    assert min(gaps, key=gaps.get) in names
    assert max(gaps[name] for name in names) - min(gaps.values()) <= (
        1.0 if min(gaps.values()) > 99 else 0.0011
    )


def test_the_view_has_a_table_for_every_choice():
    lines = {("w", "m"): {("a", "mean"): line([1.0, 0.5]), ("b", "optimistic"): line([0.8, 0.7])}}
    mix = {"a": "mean", "b": "optimistic"}
    view = sweep_view(lines, "t", "s", more={"both": mix})
    assert list(view["planners"]) == ["mean", "optimistic", "both"] and view["planner"] == "optimistic"
    assert view["planners"]["both"]["of"] == mix
    (of_panel,) = view["panels"]
    rows = {name: list(tables["steps"]["rows"]) for name, tables in of_panel["tables"].items()}
    assert rows == {"mean": ["a"], "optimistic": ["b"], "both": ["a", "b"]}
    assert of_panel["tables"]["both"]["samples"]["best"]["start"] == [["b"], ["a"]]


def test_an_axis_that_no_line_has_is_no_choice():
    free = line([1.0, 0.5])
    free = Line({**free.cost, "episodes": np.zeros(2)}, free.gaps)
    assert list(sweep_view({("w", "m"): {("a", "mean"): free}}, "t", "s")["axes"]) == ["samples", "steps"]


def test_the_authors_planning_is_a_choice_where_they_recorded_something():
    panel = {("generative", "mean"): line([1.0, 0.5]), ("qiu", "optimistic"): line([1.0, 0.5])}
    assert list(Figure1().choices({("draw", "matern15"): panel}).values()) == [PLANNED_ALIKE]
    assert Figure1().choices({("draw", "other"): panel}) == {}


# Quick


def test_a_quick_view_says_so_and_concludes_nothing():
    view = sweep_view({("w", "m"): panel(0.01, 2.0, [1.5, 0.5])}, "t", "s")
    assert view["quick"] == "" and len(view["finding"]) == 1
    quick = quick_view(view, "rewardfree reproduce figure1")
    assert quick["quick"].startswith("QUICK: ") and quick["quick"].endswith(": rewardfree reproduce figure1")
    assert quick["finding"] == [] and quick["panels"] == view["panels"]


def test_quick_claims_are_not_judged():
    two = {
        (name, "optimistic"): line([1.0, 0.5 + 0.1 * i]) for i, name in enumerate(("generative", "online"))
    }
    lines = {(f"{kernel}, draw 0", kernel): two for kernel in ("se", "matern25", "matern15")}
    claims = judged(Evidence(lines, repeats=lines, quick=True))
    usual = judged(Evidence(lines, repeats=lines))
    assert [claim.claim for claim in claims] == [claim.claim for claim in usual]
    assert {claim.verdict for claim in claims} == {NOT_JUDGED} != {claim.verdict for claim in usual}
    said = "true in|wins|holds"
    assert not [claim.number for claim in claims if re.search(said, claim.number)]
    assert {"6 comparisons", "9 comparisons"} & {claim.number for claim in claims}
    assert sum(bool(re.search(said, claim.number)) for claim in usual) == 2
    assert any("draw by draw" in text for claim in usual for text in claim.found)
    assert not [text for claim in claims for text in claim.found if "draw by draw" in text or "holds" in text]


@pytest.mark.parametrize("quick", [True, False])
def test_the_page_of_a_study_says_what_it_is(tmp_path, quick, monkeypatch):
    lines = {("matern15, draw 0", "matern15"): panel(0.01, 2.0, [1.5, 0.5])}
    folder = ResultsFolder(tmp_path / "figure1")
    monkeypatch.setattr(ResultsFolder, "stored", lambda self: _Stored())
    view = Figure1(kernels=("matern15",), quick=quick).view(lines, folder)
    assert bool(view["quick"]) == quick and len(view["finding"]) == (not quick)
    assert "β" in view["words"] and {claim["verdict"] for claim in view["claims"]} == (
        {""} if quick else {"unknown"}
    )
    if quick:
        assert view["quick"].endswith("The full run: rewardfree reproduce figure1 --kernels matern15")


class _Stored:
    """A store of one run."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def seeds(self):
        return [0]

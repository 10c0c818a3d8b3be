"""The view of stored records: means, intervals, tables and pictures."""

import re

import numpy as np
import pytest
from matplotlib.image import imread
from mpl_toolkits.mplot3d.axes3d import Axes3D
from scipy import stats

from rewardfree.report.gaps import (
    MEASURES,
    checkpoints,
    gap_figure,
    gap_pictures,
    gap_table,
    levels,
    lines_of,
)
from rewardfree.report.labels import label
from rewardfree.report.pictures import DrawingPool, save_as
from rewardfree.report.style import DPI, styled_figure, title_above
from rewardfree.report.theory import curves_figure
from rewardfree.studies.paper.betas import beta_lines, betas_figure, betas_table
from rewardfree.studies.paper.complexities import complexity_table, eps_exponent
from rewardfree.studies.paper.functions import functions_figure
from rewardfree.studies.paper.recorded import (
    PLANNED,
    PLANNED_ALIKE,
    RECORDED,
    Recorded,
    table_beside_recorded,
)
from rewardfree.studies.paper.repeats import by_kernel, draws_of, repeats_figure, table_of_ranges

RNG = np.random.default_rng(0)
GAPS = RNG.random((6, 2, 3))  # run, checkpoint, measure


def rows(strategies=("online", "generative"), runs=6):
    """Records as a store gives them, runs not in order."""
    for strategy in strategies:
        for seed in reversed(range(runs)):
            for i, n in enumerate([10, 40]):
                episodes = 0 if strategy == "generative" else 5 * n
                yield "paper", "matern", strategy, seed, "mean", n, episodes, 8 * n, *GAPS[seed, i]


def test_lines_hold_what_was_stored():
    line = lines_of(rows())["paper", "matern"]["online", "mean"]
    assert line.runs == 6
    assert {name: list(values) for name, values in line.cost.items()} == {
        "samples": [10, 40], "episodes": [50, 200], "steps": [80, 320],
    }  # fmt: skip
    for i, measure in enumerate(["start", "mean", "max"]):
        np.testing.assert_array_equal(line.gaps[measure], GAPS[:, :, i])


def test_intervals_are_students():
    line = lines_of(rows())["paper", "matern"]["online", "mean"]
    low, high = stats.t.interval(
        0.95, 5, loc=GAPS[:, :, 2].mean(axis=0), scale=stats.sem(GAPS[:, :, 2], axis=0)
    )
    np.testing.assert_allclose(line.mean("max") - line.half_width("max"), low, rtol=1e-12)
    np.testing.assert_allclose(line.mean("max") + line.half_width("max"), high, rtol=1e-12)


def test_one_run_has_no_interval():
    line = lines_of(rows(runs=1))["paper", "matern"]["online", "mean"]
    assert line.half_width("start").tolist() == line.deviation("start").tolist() == [0.0, 0.0]


def test_checkpoints_that_some_runs_lack_are_left_out():
    """As in a sweep that was stopped and goes on with other checkpoints."""
    stored = [row for row in rows() if not (row[3] == 2 and row[5] == 40)]
    assert lines_of(stored)["paper", "matern"]["online", "mean"].cost["samples"].tolist() == [10]


def test_the_table_shows_means_intervals_and_deviations():
    text = "\n".join(gap_table(lines_of(rows())))
    start = GAPS[:, 0, 0]
    half = stats.t.ppf(0.975, 5) * stats.sem(start)
    wanted = f"online, mean {start.mean():.3f} +- {half:.3f} ({start.std(ddof=1):.3f})"
    assert wanted in re.sub(r" +", " ", text)
    assert text.count("6 runs") == 2 and "N = 40" in text


@pytest.mark.parametrize(("axis", "drawn"), [("samples", 2), ("steps", 2), ("episodes", 1)])
def test_a_generative_model_has_no_episodes_to_draw(axis, drawn):
    figure = gap_figure(lines_of(rows()), "mean", axis)
    (panel,) = figure.axes
    assert len(panel.lines) == drawn
    np.testing.assert_array_equal(panel.lines[0].get_ydata(), GAPS[:, :, 0].mean(axis=0))


def test_every_figure_is_drawn_and_repeats(tmp_path):
    found = lines_of(rows())
    here, beside = (
        DrawingPool(jobs).draw(gap_pictures(found, tmp_path / str(jobs), ["png", "pdf", "svg"]))()
        for jobs in (1, 2)
    )
    assert len(here) == len(set(here)) == 1 * 3 * 2 * 3
    for path, again in zip(here, beside, strict=True):
        assert path.name == again.name and path.read_bytes() == again.read_bytes()


def test_an_unknown_form_is_refused(tmp_path):
    with pytest.raises(ValueError, match="form must be one of png, pdf, svg, got 'gif'"):
        gap_pictures(lines_of(rows()), tmp_path, ["gif"])
    assert list(tmp_path.iterdir()) == []


def test_a_table_puts_values_under_their_own_size():
    stored = [row for row in rows() if not (row[2] == "online" and row[5] == 10)]
    found = list(gap_table(lines_of(stored)))
    header = next(line for line in found if "N = " in line)
    column = header.index("N = 40") + len("N = 40")
    online = next(line for line in found if "online" in line)
    assert online[:column].rstrip().endswith(f"({GAPS[:, 1, 0].std(ddof=1):.3f})")
    assert online[34 : header.index("N = 10") + len("N = 10")].strip() == ""


def test_one_run_is_printed_without_an_interval():
    text = "\n".join(gap_table(lines_of(rows(runs=1))))
    assert "+-" not in text.split("\n", 1)[1] and "1 run\n" in text + "\n"


# --- what needs no data ---

LEVELS = {"myopic": (0.25, 0.3, 0.4), "random": (1.5, 1.6, 1.7)}  # start, mean, max


def with_levels(found, world="paper", model="matern"):
    """Records, and those of a Reference after the first of them: a store has its own order."""
    yield next(found)
    for planner, gaps in LEVELS.items():
        yield world, model, "no data", 0, planner, 0, 0, 0, *gaps
    yield from found


def by_label(place):
    """The curves of a panel by what its legend calls them; others have names that begin with _."""
    return {each.get_label(): each for each in place.lines if not each.get_label().startswith("_")}


@pytest.mark.parametrize("axis", ["samples", "episodes", "steps"])
@pytest.mark.parametrize(("measure", "place"), [("start", 0), ("mean", 1), ("max", 2)])
def test_what_needs_no_data_is_horizontal(axis, measure, place):
    (panel,) = gap_figure(lines_of(with_levels(rows())), "mean", axis, measure).axes
    found = by_label(panel)
    for name, gaps in LEVELS.items():
        assert list(found[label(name)].get_ydata()) == [gaps[place]] * 2
        assert list(found[label(name)].get_xdata()) == [0, 1]  # of the panel's width
    assert found[label("online")].get_ydata().tolist() == GAPS[:, :, place].mean(axis=0).tolist()


def test_what_needs_no_data_is_no_checkpoint_and_no_planner(tmp_path):
    panel = lines_of(with_levels(rows()))["paper", "matern"]
    assert checkpoints(panel) == [10, 40]
    assert {name: line.mean("max").tolist() for name, line in levels(panel).items()} == {
        "myopic": [0.4], "random": [1.7],
    }  # fmt: skip
    found = gap_pictures({("paper", "matern"): panel}, tmp_path, ["pdf"])
    assert {picture.path.name.rsplit("_", 1)[1] for picture in found} == {"mean"}


def test_the_table_shows_what_needs_no_data_once():
    found = list(gap_table(lines_of(with_levels(rows())), "max"))
    for name, gaps in LEVELS.items():
        (own,) = (row for row in found if name in row)
        assert own.split() == ["no", "data,", name, f"{gaps[2]:.3f}", "at", "any", "N"]
    assert sum("at any N" in row for row in found) == 2 and not any("N = 0" in row for row in found)


def test_panels_are_called_as_they_are_named():
    found, names = lines_of(rows()), {("paper", "matern"): "Rough"}
    assert gap_figure(found, "mean").axes[0].get_title() == "paper, matern"
    assert gap_figure(found, "mean", names=names).axes[0].get_title() == "Rough"
    assert [row.split()[0] for row in gap_table(found, names=names) if "N = 10" in row] == ["Rough"]
    alike = lines_of(("corridor", "corridor", *row[2:]) for row in rows())
    assert gap_figure(alike, "mean").axes[0].get_title() == "corridor"


def test_each_strategy_may_have_a_planner_of_its_own():
    """A strategy that is not named, or not planned so, is left out."""
    stored = [
        (*row[:4], planner, *row[5:8], *(shift + gap for gap in row[8:]))
        for row in rows(("online", "generative", "uniform", "qiu"))
        for planner, shift in [("mean", 0.0), ("optimistic", 10.0)]
        if (row[2], planner) != ("uniform", "mean")
    ]  # fmt: skip
    planned = {"online": "optimistic", "generative": "mean", "uniform": "mean"}
    (panel,) = gap_figure(lines_of(with_levels(iter(stored))), planned).axes
    found, means = by_label(panel), GAPS[:, :, 0].mean(axis=0)
    np.testing.assert_allclose(found[label("online")].get_ydata(), 10.0 + means, rtol=1e-14)
    np.testing.assert_allclose(found[label("generative")].get_ydata(), means, rtol=1e-14)
    assert set(found) == {label(name) for name in ("online", "generative", *LEVELS)}


# --- the authors' ---


def test_the_authors_gaps_are_those_that_they_recorded():
    found = RECORDED
    kernels, algorithms = ("se", "matern25", "matern15"), ("generative", "online", "qiu", "greedy")
    assert set(found) == {(kernel, own) for kernel in kernels for own in algorithms}
    assert {tuple(sorted(each)) for each in found.values()} == {(10, 20, 40, 80, 160)}
    assert {one.runs for each in found.values() for one in each.values()} == {80}
    assert found["matern15", "generative"][10] == Recorded(0.679, 0.0941, 80)
    assert found["matern15", "online"][80] == Recorded(0.5489, 0.124, 80)
    assert found["matern25", "greedy"][20] == Recorded(0.8819, 0.1648, 80)
    assert found["matern25", "qiu"][40] == Recorded(1.9935, 0.0829, 80)
    assert found["se", "generative"][10] == Recorded(2.1809, 0.2037, 80)
    assert found["se", "qiu"][160] == Recorded(0.8929, 0.1392, 80)


def kernel_rows(kernel, strategies, means, seed=0, sizes=(10, 20, 40)):
    """Two runs of each strategy, 0.1 below and above the means; "optimistic" is 5 more than "mean"."""
    for strategy, planner in strategies:
        for run, shift in enumerate((-0.1, 0.1)):
            for n, mean in zip(sizes, means, strict=True):
                gap = mean + shift + (5.0 if planner == "optimistic" else 0.0)
                yield f"{kernel}, draw {seed}", kernel, strategy, run, planner, n, n, n, gap, gap, gap + 1.0


def test_ours_stand_beside_theirs():
    planners = [(own, planner) for own in ("online", "qiu", "uniform") for planner in ("mean", "optimistic")]
    text = list(table_beside_recorded(lines_of(kernel_rows("matern15", planners, (1.0, 2.0, 3.0)))))
    (header,) = (row for row in text if "N = " in row)
    assert re.findall(r"N = (\d+)", header) == ["10", "20", "40", "80", "160"]
    spread = f"({np.std([-0.1, 0.1], ddof=1):.3f})"
    (online,) = (row for row in text if label("online") in row)
    assert online.split(")", 1)[1].split() == [
        "1.000", spread, "/", "1.005", "(0.176)", "2.000", spread, "/", "1.040", "(0.167)",
        "3.000", spread, "/", "0.771", "(0.141)", "-", "/", "0.549", "(0.124)", "-", "/", "0.363", "(0.114)",
    ]  # fmt: skip
    (qiu,) = (row for row in text if label("qiu") in row)
    assert f"6.000 {spread} / 1.126 (0.109)" in qiu  # planned with the bonus, as theirs was
    assert not any(label(name) in row for row in text for name in ("generative", "greedy", "uniform"))


def test_kernels_that_the_authors_did_not_have_stand_beside_nothing():
    text = "\n".join(
        table_beside_recorded(lines_of(kernel_rows("ntk", [("online", "mean")], (1.0, 2.0, 3.0))))
    )
    assert "N = " not in text and "ntk" not in text


# --- betas ---

BETAS = (0.1, 1.0, 100.0)
#: Each pair has a gap of its own, so that a wrong one is seen; the last two are never to be drawn.
PAIRS = {
    pair: 1.0 + i
    for i, pair in enumerate(
        [
            *((f"{own}-{beta:g}", f"optimistic-{beta:g}") for own in ("qiu", "online") for beta in BETAS),
            *((own, f"optimistic-{beta:g}") for own in ("generative", "greedy") for beta in BETAS),
            ("uniform", "mean"),
            ("online-1", "optimistic-100"),
            ("generative", "optimistic-10"),
        ]
    )
}


def beta_panel():
    stored = (
        ("w", "se", strategy, run, planner, n, n, n, gap, gap, 2.0 * gap)
        for (strategy, planner), gap in PAIRS.items() for run in range(2) for n in (4, 8)
    )  # fmt: skip
    return lines_of(with_levels(stored, "w", "se"))["w", "se"]


@pytest.mark.parametrize("algorithm", ["qiu", "online", "generative", "greedy"])
def test_the_lines_of_a_beta_explored_and_planned_with_it(algorithm):
    found = beta_lines(beta_panel(), algorithm, BETAS)
    explored = (
        (lambda beta: f"{algorithm}-{beta:g}") if algorithm in ("qiu", "online") else lambda _: algorithm
    )
    assert {beta: line.mean("start").tolist() for beta, line in found.items()} == {
        beta: 2 * [PAIRS[explored(beta), f"optimistic-{beta:g}"]] for beta in BETAS
    }
    assert list(beta_lines(beta_panel(), algorithm, (1.0, 7.0))) == [1.0]


def test_betas_have_a_panel_for_each_algorithm():
    figure = betas_figure(beta_panel(), BETAS, "Se", "max")
    algorithms = ("qiu", "online", "generative", "greedy")
    assert [place.get_title() for place in figure.axes] == [label(own) for own in algorithms]
    for place, algorithm in zip(figure.axes, algorithms, strict=True):
        drawn = {name: set(line.get_ydata()) for name, line in by_label(place).items()}
        lined = beta_lines(beta_panel(), algorithm, BETAS)
        assert drawn == {
            **{f"β = {beta:g}": {line.mean("max")[0]} for beta, line in lined.items()},
            label("uniform"): {2.0 * PAIRS["uniform", "mean"]},
            **{label(name): {gaps[2]} for name, gaps in LEVELS.items()},
        }
    assert "Se" in figure.get_suptitle()


@pytest.mark.parametrize(("words", "lines"), [(4, 1), (16, 2), (24, 3)])
def test_a_title_is_broken_where_the_figure_ends(words, lines):
    with styled_figure(5.0, 3.0) as figure:
        title_above(figure, " ".join(["words"] * words))
    parts = figure.get_suptitle().split("\n")
    assert len(parts) == lines and " ".join(parts).split(" ") == ["words"] * words
    assert figure._suptitle.get_window_extent().width <= figure.bbox.width
    assert max(map(len, parts)) - min(map(len, parts)) <= 2 * len("words") + 2


def test_the_table_of_betas_has_a_row_for_each():
    header, *found = betas_table(beta_panel(), BETAS)
    assert header.split("start")[1].split() == ["N", "=", "4", "N", "=", "8"]
    assert len(found) == 4 * 3
    (row,) = (row for row in found if label("online") in row and "β = 100 " in row)
    assert row.split()[-2:] == 2 * [f"{PAIRS['online-100', 'optimistic-100']:.3f}"]


# --- repeats ---

#: Mean gaps of Alg 2 on three draws at N = 10, 20, 40; the authors have 2.1809, 1.1211 and 0.9788 there.
DRAWN = np.array([[1.0, 1.2, 1.5], [2.0, 1.1, 1.0], [1.5, 1.0, 1.2]])


def drawn_rows(strategies=(("generative", "mean"),), sizes=(10, 20, 40), kernel="se"):
    for seed, means in enumerate(DRAWN):
        stored = kernel_rows(kernel, strategies, means, seed, sizes)
        yield from with_levels(stored, f"{kernel}, draw {seed}", kernel)


def test_draws_range_from_their_lowest_to_their_highest():
    stored = [*drawn_rows(), *drawn_rows(kernel="matern15")]
    panels = by_kernel(lines_of(stored))
    assert {kernel: len(each) for kernel, each in panels.items()} == {"se": 3, "matern15": 3}
    found = draws_of(panels["se"], PLANNED, "start")
    assert list(found) == ["generative"] and found["generative"].samples.tolist() == [10, 20, 40]
    np.testing.assert_allclose(found["generative"].means, DRAWN, rtol=1e-14)
    np.testing.assert_allclose(found["generative"].lowest, np.min(DRAWN, axis=0), rtol=1e-14)
    np.testing.assert_allclose(found["generative"].highest, np.max(DRAWN, axis=0), rtol=1e-14)
    largest = draws_of(panels["se"], "mean", "max")["generative"]
    np.testing.assert_allclose(largest.means, DRAWN + 1.0, rtol=1e-14)


def test_draws_are_compared_where_all_of_them_are():
    """The second draw has no runs at N = 20, and only the first has uniform data."""
    stored = [row for row in drawn_rows() if (row[0], row[5]) != ("se, draw 1", 20)]
    stored += kernel_rows("se", [("uniform", "mean")], (1.0, 2.0, 3.0))
    found = draws_of(by_kernel(lines_of(stored))["se"], PLANNED_ALIKE, "start")
    assert list(found) == ["generative"] and found["generative"].samples.tolist() == [10, 40]
    np.testing.assert_allclose(found["generative"].means, DRAWN[:, [0, 2]], rtol=1e-14)


def test_the_verdict_counts_what_is_inside_below_and_above():
    """The online runs are planned with the bonus, which the authors' were not: nothing to compare."""
    text = list(table_of_ranges(lines_of(drawn_rows([("generative", "mean"), ("online", "optimistic")]))))
    (own,) = (row for row in text if label("generative") in row)
    assert own.endswith("1 of 3 inside   (N = 10: 2.181, above 2.000; N = 40: 0.979, below 1.000)")
    assert not any(label("online") in row for row in text)
    # Of 4 equal draws, each is one of the middle two with odds 2/4.
    assert text[-1].strip() == (
        "in all 1 of 3 (33%); one more draw like our 3 lies inside their range at 50% of the checkpoints. "
        "The authors' numbers are of one world for each kernel: consistent with ours, which is no test"
    )


def test_the_verdict_is_silent_where_no_checkpoint_is_shared():
    text = list(table_of_ranges(lines_of(drawn_rows(sizes=(4, 8, 16)))))
    assert len(text) == 2 and text[1].endswith("so nothing can be said")
    assert list(table_of_ranges(lines_of(drawn_rows(kernel="ntk")))) == text


@pytest.mark.parametrize(
    ("planned", "measure", "crosses"),
    [(PLANNED_ALIKE, "start", True), (PLANNED_ALIKE, "max", False), ("mean", "start", False)],
)
def test_repeats_draw_every_draw_and_what_can_be_compared(planned, measure, crosses):
    stored = drawn_rows([("generative", "mean"), ("uniform", "mean")])
    (place,) = repeats_figure(lines_of(stored), planned, "Repeats", measure).axes
    shift = {"start": 0.0, "max": 1.0}[measure]
    draws = [line.get_ydata() for line in place.lines if line.get_label().startswith("_")]
    np.testing.assert_allclose(draws, DRAWN + shift, rtol=1e-14)
    found = {name: list(line.get_ydata()) for name, line in by_label(place).items()}
    middle = found["Uniformly random data, median draw"]
    np.testing.assert_allclose(middle, np.median(DRAWN, axis=0) + shift, rtol=1e-14)
    for name, gaps in LEVELS.items():
        assert found[f"{label(name)}, median draw"] == [gaps[0 if measure == "start" else 2]] * 2
    theirs = {"Recorded by the authors' scripts": [2.1809, 1.1211, 0.9788]} if crosses else {}
    assert {name: found[name] for name in found if "authors" in name} == theirs
    assert place.get_title() == label("se")
    assert place.get_ylabel() == f"{label('generative')}\n{MEASURES[measure]}"  # a row says whose it is


# --- Table 1 and the functions ---


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 10.0])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_exponent_of_a_matern_kernel(nu, d):
    assert eps_exponent(nu, d) == pytest.approx(2 + d / nu, rel=1e-13)


def test_table_1_has_the_exponents_of_the_experiments():
    text = "\n".join(complexity_table())
    assert f"{2 + 2 / 2.5:.2f} for nu = 2.5, {2 + 2 / 1.5:.2f} for nu = 1.5" in text
    assert [row.split()[-1] for row in complexity_table() if "this paper" in row] == ["eps^2", "2/(p-1))"]


def a_world(s, a):
    rng = np.random.default_rng(1)
    law = rng.random((s, a, s))
    return (
        np.linspace(0, 1, s),
        np.linspace(0, 1, a),
        rng.random((s, a)),
        law / law.sum(axis=-1, keepdims=True),
    )


def test_functions_are_a_surface_and_six_laws(monkeypatch):
    """100 states and 50 actions: the upper one of the two around 0.5 is 50, and 25."""
    states, actions, reward, law = a_world(100, 50)
    surfaces = []
    monkeypatch.setattr(Axes3D, "plot_surface", lambda self, *grid, **_: surfaces.append(grid))
    figure = functions_figure(states, actions, reward, law, "A world")
    surface, *panels = figure.axes
    assert surface.name == "3d" and len(panels) == 6
    (grid,) = surfaces
    for i, j in [(0, 0), (7, 31), (99, 49)]:
        assert [part[i, j] for part in grid] == [states[i], actions[j], reward[i, j]]
    shown = [(0, 0), (0, 25), (0, 49), (50, 0), (50, 25), (99, 49)]
    for panel, (s, a) in zip(panels, shown, strict=True):
        curve, even = panel.lines
        assert curve.get_xdata().tolist() == states.tolist()
        assert curve.get_ydata().tolist() == law[s, a].tolist()
        assert list(even.get_ydata()) == [0.01, 0.01]
    titles = [panel.get_title() for panel in panels]
    assert titles[3] == "P(s' | s = 0.5051, a = 0)" and titles[1] == "P(s' | s = 0, a = 0.5102)"


def test_the_reward_is_drawn_as_a_surface():
    surface = functions_figure(*a_world(6, 5), "A world").axes[0]
    (patches,) = surface.collections
    reward = a_world(6, 5)[2]
    corners = np.stack([reward[:-1, :-1], reward[:-1, 1:], reward[1:, :-1], reward[1:, 1:]])
    np.testing.assert_allclose(patches.get_array(), corners.mean(axis=0).reshape(-1), rtol=1e-12)


FIGURES = {
    "functions": lambda: functions_figure(*a_world(8, 8), "A world"),
    "betas": lambda: betas_figure(beta_panel(), BETAS, "Se"),
    "repeats": lambda: repeats_figure(lines_of(drawn_rows()), PLANNED_ALIKE, "Repeats"),
    "levels": lambda: gap_figure(lines_of(with_levels(rows())), {"online": "mean"}, names=None),
}


@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES.keys())
def test_the_same_figure_is_the_same_bytes(figure, tmp_path):
    for folder in "ab":
        save_as(figure(), tmp_path / folder / "some.name", ["png", "pdf", "svg"])
    written = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert written == ["some.name.pdf", "some.name.png", "some.name.svg"]
    for name in written:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_ticks_that_are_asked_for_are_plain_numbers_and_the_only_ones():
    figure = curves_figure({"gap": ([10, 40], [1.0, 0.5])}, "N", "gap", "Bounds", ticks=[10, 20, 40])
    (place,) = figure.axes
    assert [text.get_text() for text in place.get_xticklabels()] == ["10", "20", "40"]
    assert len(place.get_xticks(minor=True)) == 0


def test_a_png_has_the_resolution_of_the_style(tmp_path):
    figure = FIGURES["levels"]()
    (path,) = save_as(figure, tmp_path / "some", ["png"])
    width, height = figure.get_size_inches() * DPI
    assert imread(path).shape[:2] == (height, width)

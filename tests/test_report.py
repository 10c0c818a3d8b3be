"""The view of stored records: means, intervals, tables and pictures."""

import re

import numpy as np
import pytest
from scipy import stats

from rewardfree.report.gaps import draw_gaps, gap_figure, gap_table, lines

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
    line = lines(rows())["paper", "matern"]["online", "mean"]
    assert line.runs == 6
    assert {name: list(values) for name, values in line.cost.items()} == {
        "samples": [10, 40], "episodes": [50, 200], "steps": [80, 320],
    }  # fmt: skip
    for i, measure in enumerate(["start", "mean", "max"]):
        np.testing.assert_array_equal(line.gaps[measure], GAPS[:, :, i])


def test_intervals_are_students():
    line = lines(rows())["paper", "matern"]["online", "mean"]
    low, high = stats.t.interval(
        0.95, 5, loc=GAPS[:, :, 2].mean(axis=0), scale=stats.sem(GAPS[:, :, 2], axis=0)
    )
    np.testing.assert_allclose(line.mean("max") - line.half_width("max"), low, rtol=1e-12)
    np.testing.assert_allclose(line.mean("max") + line.half_width("max"), high, rtol=1e-12)


def test_one_run_has_no_interval():
    line = lines(rows(runs=1))["paper", "matern"]["online", "mean"]
    assert line.half_width("start").tolist() == line.deviation("start").tolist() == [0.0, 0.0]


def test_checkpoints_that_some_runs_lack_are_left_out():
    """As in a sweep that was stopped and goes on with other checkpoints."""
    stored = [row for row in rows() if not (row[3] == 2 and row[5] == 40)]
    assert lines(stored)["paper", "matern"]["online", "mean"].cost["samples"].tolist() == [10]


def test_the_table_shows_means_intervals_and_deviations():
    text = "\n".join(gap_table(lines(rows())))
    start = GAPS[:, 0, 0]
    half = stats.t.ppf(0.975, 5) * stats.sem(start)
    wanted = f"online, mean {start.mean():.3f} +- {half:.3f} ({start.std(ddof=1):.3f})"
    assert wanted in re.sub(r" +", " ", text)
    assert text.count("6 runs") == 2 and "N = 40" in text


@pytest.mark.parametrize(("axis", "drawn"), [("samples", 2), ("steps", 2), ("episodes", 1)])
def test_a_generative_model_has_no_episodes_to_draw(axis, drawn):
    figure = gap_figure(lines(rows()), "mean", axis)
    (panel,) = figure.axes
    assert len(panel.lines) == drawn
    np.testing.assert_array_equal(panel.lines[0].get_ydata(), GAPS[:, :, 0].mean(axis=0))


def test_every_figure_is_drawn_and_repeats(tmp_path):
    found = lines(rows())
    written = draw_gaps(found, tmp_path / "a", ["png", "pdf", "svg"])
    assert len(written) == 1 * 3 * 2 * 3
    for path, again in zip(written, draw_gaps(found, tmp_path / "b", ["png", "pdf", "svg"]), strict=True):
        assert path.read_bytes() == again.read_bytes()


def test_an_unknown_form_is_refused(tmp_path):
    with pytest.raises(ValueError, match="form must be one of png, pdf, svg, got 'gif'"):
        draw_gaps(lines(rows()), tmp_path, ["gif"])
    assert list(tmp_path.iterdir()) == []


def test_a_table_puts_values_under_their_own_size():
    stored = [row for row in rows() if not (row[2] == "online" and row[5] == 10)]
    found = list(gap_table(lines(stored)))
    header = next(line for line in found if "N = " in line)
    column = header.index("N = 40") + len("N = 40")
    online = next(line for line in found if "online" in line)
    assert online[:column].rstrip().endswith(f"({GAPS[:, 1, 0].std(ddof=1):.3f})")
    assert online[34 : header.index("N = 10") + len("N = 10")].strip() == ""


def test_one_run_is_printed_without_an_interval():
    text = "\n".join(gap_table(lines(rows(runs=1))))
    assert "+-" not in text.split("\n", 1)[1] and "1 run\n" in text + "\n"

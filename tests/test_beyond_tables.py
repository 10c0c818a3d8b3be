"""What `rewardfree reproduce beyond` prints: each number with its metric, and nothing that was hoped for."""

import pytest

from rewardfree.report.style import COLOURS, curve_styles
from rewardfree.studies.beyond.specification import DEFAULT_WAY, PAPERS_FOUR, PAPERS_WAY
from rewardfree.studies.beyond.study import (
    Beyond,
    ablation_table,
    cross_table,
    curves_figure,
    headline_table,
    paper_table,
)
from rewardfree.studies.problems import Comparison, WorldProfile

WORLDS = ("rooms", "tide")


def record(world, explorer, way, seed, gap, steps=400):
    names = dict(zip(("explorer", "model", "planner"), (explorer, *way), strict=True))
    gaps = {measure: [gap, 2.0 * gap] for measure in ("start", "mean", "max")}
    cost = {"steps": steps, "episodes": steps // 10, "samples_per_step": steps / 10}
    return {"world": world, "seed": seed, **names, **gaps, **cost}


def comparison(worlds=WORLDS, steps=400):
    """Two runs of two rewards: the paper's four have gaps of 0.6 and more, the default 0.1 of V* = 3."""
    levels = {policy: {"start": [1.0, 1.0]} for policy in ("myopic", "random")}
    profiles = [WorldProfile(world, 3.0, 0.9, 5.0, 1.0, levels) for world in worlds]
    gaps = {(name, PAPERS_WAY): 0.6 + 0.1 * i for i, name in enumerate(PAPERS_FOUR)}
    gaps |= {("scout", DEFAULT_WAY): 0.1, ("uniform", DEFAULT_WAY): 0.3, ("uniform", PAPERS_WAY): 1.0}
    records = [
        record(world, name, way, seed, gap + 0.02 * seed, steps)
        for world in worlds
        for (name, way), gap in gaps.items()
        for seed in (0, 1)
    ]
    return Comparison(records, profiles, method=Beyond.method, budget=Beyond.budget)


def test_the_headline_counts_ratios_and_names_its_measure():
    lines = headline_table(comparison(), WORLDS, 400)
    assert lines[0].startswith("gap at the start at 400 environment steps: mean over runs and rewards")
    assert lines[-1] == "against the four: at most 1/3 on 2 of 2, at most 1/5 on 2"
    assert headline_table(comparison(), WORLDS, 400, "max")[0].startswith("largest gap over states")


@pytest.mark.parametrize("table", [ablation_table, lambda *given: cross_table(*given, 400)])
def test_shares_of_the_optimum_are_of_the_gap_at_the_start(table):
    lines = table(comparison(), WORLDS)
    assert "gap at the start / V* in percent" in lines[0]
    assert any(" 5.5" in line for line in lines)  # (0.1 + 0.12) / 2 * 1.5 of 3


def test_the_papers_worlds_have_gaps_and_no_verdict():
    first, head, line = paper_table(comparison(["paper-matern-1.5"]), 400)
    assert first == "the paper's worlds at 400 steps: gap at the start, mean over runs and rewards"
    assert "verdict" not in head and "met" not in line.split()


def test_the_papers_algorithms_have_the_colours_of_figure_1():
    figure = curves_figure(comparison(), "steps")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    drawn = {label: handle.get_color() for label, handle in zip(labels, handles, strict=True)}
    for name, style in curve_styles(PAPERS_FOUR).items():
        assert drawn[f"{name}, as in the paper"] == style["color"]
    assert drawn["scout, default plan"] == COLOURS[5]  # as in the comparison of prior systems

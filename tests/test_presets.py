"""The paper's settings as frozen records, and what its four algorithms become under them."""

from dataclasses import FrozenInstanceError, replace

import pytest

import rewardfree as rf
from rewardfree.presets import LITERAL, PRESETS, PUBLISHED, preset_named
from rewardfree.studies.paper.specification import paper_strategies

SE, MATERN_15, MATERN_25 = rf.SquaredExponential(0.1), rf.Matern(1.5, 0.1), rf.Matern(2.5, 0.1)


def test_published_is_what_the_figures_were_made_with():
    assert [PUBLISHED.ridge(kernel) for kernel in (SE, MATERN_15, MATERN_25)] == [0.01, 0.5, 0.5]
    assert (PUBLISHED.normalisation, PUBLISHED.empty, PUBLISHED.fresh) == ("global", "zero", False)
    assert (PUBLISHED.ties, PUBLISHED.start) == ("lowest", 20)


def test_literal_is_what_the_text_says():
    assert (LITERAL.normalisation, LITERAL.empty, LITERAL.fresh) == ("row", "prior", False)
    assert (LITERAL.ties, LITERAL.start) == ("lowest", 20)


@pytest.mark.parametrize("kernel", [SE, MATERN_15, MATERN_25], ids=repr)
def test_the_text_squares_what_the_scripts_put_on_the_diagonal(kernel):
    assert LITERAL.ridge(kernel) == pytest.approx(PUBLISHED.ridge(kernel) ** 2, rel=1e-15)


def test_names():
    assert PRESETS == {"published": PUBLISHED, "literal": LITERAL}
    assert all(preset.name == name for name, preset in PRESETS.items())
    assert preset_named("literal") is LITERAL and preset_named(PUBLISHED) is PUBLISHED
    own = replace(PUBLISHED, name="own", ridge_matern=0.1)
    assert preset_named(own) is own


@pytest.mark.parametrize("name", ["Published", "paper", "", None, 3])
def test_an_unknown_name_is_told_the_known_ones(name):
    with pytest.raises(ValueError, match="preset must be one of published, literal, got"):
        preset_named(name)


def test_a_preset_is_frozen():
    with pytest.raises(FrozenInstanceError):
        PUBLISHED.fresh = True
    assert isinstance(PUBLISHED, rf.worlds.Preset) and hash(PUBLISHED) == hash(
        replace(LITERAL, **vars(PUBLISHED))
    )


@pytest.mark.parametrize(
    "kernel", [rf.kernels.Delta(), rf.Linear(), rf.NeuralTangent(1), 2.0 * SE, SE + MATERN_15]
)
def test_the_paper_has_no_ridge_for_other_kernels(kernel):
    with pytest.raises(ValueError, match=r"the paper sets no ridge for .*: give ridge="):
        PUBLISHED.ridge(kernel)


def test_four_strategies_of_the_published_figures():
    assert paper_strategies(PUBLISHED) == {
        "generative": rf.Generative(),
        "online": rf.Online(0.1),
        "qiu": rf.Qiu(0.1),
        "greedy": rf.GreedyMaxVariance(),
    }


def test_four_strategies_of_the_text():
    assert paper_strategies(LITERAL, beta=10) == {
        "generative": rf.Generative(),
        "online": rf.Online(10.0, fresh=False, empty="prior"),
        "qiu": rf.Qiu(10.0, empty="prior"),
        "greedy": rf.GreedyMaxVariance(empty="prior"),
    }


def test_every_choice_of_a_preset_arrives():
    own = replace(PUBLISHED, ties="random", fresh=True, empty="prior")
    found = paper_strategies(own, beta=2.0)
    assert found["online"] == rf.Online(2.0, fresh=True, ties="random", empty="prior")
    assert {strategy.ties for strategy in found.values()} == {"random"}
    assert {found[name].empty for name in ("online", "qiu", "greedy")} == {"prior"}

"""The paper's four algorithms under one of its presets."""

from __future__ import annotations

from rewardfree.planning import Mean, Optimistic, Planner
from rewardfree.presets import Preset
from rewardfree.strategies import Generative, GreedyMaxVariance, Online, Qiu, Strategy


def paper_strategies(preset: Preset, beta: float = 0.1) -> dict[str, Strategy]:
    """The four explorers as the preset runs them."""
    return {
        "generative": Generative(ties=preset.ties),
        "online": Online(beta, fresh=preset.fresh, ties=preset.ties, empty=preset.empty),
        "qiu": Qiu(beta, ties=preset.ties, empty=preset.empty),
        "greedy": GreedyMaxVariance(ties=preset.ties, empty=preset.empty),
    }


def paper_planner(preset: Preset, strategy: Strategy, beta: float = 0.1) -> Planner:
    """The planner that the preset applies to the data of a strategy."""
    bonus = type(strategy).__name__ in preset.bonus_for
    return Optimistic(beta, ties=preset.ties) if bonus else Mean(ties=preset.ties)

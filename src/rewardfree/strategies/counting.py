"""What strategies that count visits have in common: their posteriors, and the models that suit them."""

from __future__ import annotations

from typing import Any

from rewardfree.arrays import positive, probability
from rewardfree.kernels import Delta
from rewardfree.model import Model
from rewardfree.posterior import Counts
from rewardfree.ties import check_ties
from rewardfree.worlds.grid import Grid

#: Numbers that a run records for each environment step: where it was, what followed, and three random ones.
RECORDED = 6


class Counting:
    """For finite worlds: P^ is the share of each next state among the visits of (s,a) at a step.

    Of a model only `pooled` matters, whether visits at all steps count together, and `centred`, by which what
    was never visited is worth the middle of all values instead of 0. Counts have no kernel and no ridge.
    """

    generative = False
    cpu_only = True

    def __post_init__(self) -> None:
        for name in ("epsilon", "bonus_scale"):
            if hasattr(self, name):
                object.__setattr__(self, name, positive(getattr(self, name), name))
        if hasattr(self, "delta"):
            object.__setattr__(self, "delta", probability(self.delta, "delta"))
        check_ties(self.ties)  # type: ignore[attr-defined]

    @staticmethod
    def lattice(model: Model, candidates: Any, **options: Any) -> Counts:
        """Visit counts in the place of the model's own posteriors."""
        return Counts(candidates, **options)

    @staticmethod
    def usual_model() -> Model:
        """Counts for each step. They are the delta kernel's estimate for a ridge that vanishes."""
        return Model(Delta(), ridge=1.0)

    def check_model(self, model: Model) -> None:
        """Refuse what counts can make no sense of."""
        if model.automatic or model.timed:
            what = "timed=True" if model.timed else "AutoKernel()"
            raise ValueError(
                f"{type(self).__name__} counts visits, for which {what} means nothing: leave the model out, "
                "or use rf.Model(rf.Delta(), ridge=1.0, pooled=True) to count all steps together"
            )

    def bytes_per_run(self, model: Model, grid: Grid, horizon: int, rounds: int) -> int:
        """What a run takes: its record and its estimate of P."""
        s, a = grid.shape
        return 8 * horizon * (RECORDED * rounds + s * s * a)

"""What strategies that count visits have in common: their posteriors, and the models that suit them."""

from typing import Any, ClassVar

from rewardfree.arrays import check_fields, positive, probability
from rewardfree.kernels import Delta
from rewardfree.model import Model
from rewardfree.posterior import Counts
from rewardfree.strategies.strategy import Strategy
from rewardfree.worlds import FiniteWorld, Grid, World

#: Numbers that a run records for each environment step: where it was, the next state, and three random ones.
RECORDED = 6


class CountingStrategy(Strategy):
    """For finite worlds: P^ is the share of each next state among the visits of (s,a) at a step.

    Of a model only `pooled` matters, whether visits at all steps count together, and `centred`, by which what
    was never visited is worth the middle of all values instead of 0. Counts have no kernel and no ridge.
    """

    cpu_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, epsilon=positive, bonus_scale=positive, delta=probability)

    def posteriors(self, model: Model, inputs: Any, **options: Any) -> Counts:
        """Visit counts in the place of the model's own posteriors."""
        return Counts(inputs, **options)

    def default_model(self, world: FiniteWorld | World) -> Model:
        """Counts for each step. They are the delta kernel's estimate for a ridge that vanishes."""
        return Model(Delta(), ridge=1.0)

    def check_model(self, model: Model) -> None:
        if model.automatic or model.timed:
            what = "timed=True" if model.timed else "AutoKernel()"
            raise ValueError(
                f"{type(self).__name__} counts visits, for which {what} means nothing: leave the model out, "
                "or use rf.Model(rf.kernels.Delta(), ridge=1.0, pooled=True) to count all steps together"
            )

    def bytes_per_run(self, model: Model, grid: Grid, horizon: int, rounds: int) -> int:
        """Bytes of a run's record and of its estimate of P."""
        s, a = grid.shape
        return 8 * horizon * (RECORDED * rounds + s * s * a)

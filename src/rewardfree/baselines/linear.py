"""Reward-free exploration with linear function approximation (Wang et al. 2020)."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from rewardfree.arrays import Array, check_fields, count, positive, probability
from rewardfree.baselines.counting import RECORDED
from rewardfree.estimates.backups import Empty
from rewardfree.kernels import Linear
from rewardfree.model import Model
from rewardfree.posterior import BasisPosterior, FeatureDesign, FeatureLattice, Posteriors
from rewardfree.posterior.feature_maps import check_features, check_table, features_at
from rewardfree.registry import registered
from rewardfree.strategies.qiu import OptimisticStrategy
from rewardfree.ties import Ties
from rewardfree.worlds import FiniteWorld, Grid, World


@registered("strategy")
@dataclass(frozen=True)
class LinearRewardFree(OptimisticStrategy):
    """As `Qiu` with the kernel phi(z)^T phi(z'), computed with d x d matrices.

    `features` is a table (|Z|,d) or (s,a,d) of a finite world, or a function of points (n,d_z) as the kernel
    sees them, such as `PolynomialFeatures(3)`. Of the model it is only asked whether it is pooled or centred:
    the ridge is this one's. `linear_beta` is the theory's beta.
    """

    features: Any
    beta: float
    ridge: float = 1.0
    ties: Ties = "lowest"
    empty: Empty = "zero"
    open_ends: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, features=lambda features, _: check_features(features), ridge=positive)

    def __repr__(self) -> str:
        shown = repr(self.features) if callable(self.features) else f"<table {np.shape(self.features)}>"
        return f"LinearRewardFree({shown}, beta={self.beta:g}, ridge={self.ridge:g})"

    def check_model(self, model: Model) -> None:
        if model.automatic:
            raise ValueError(
                "LinearRewardFree has features in the place of a kernel, so there is none to be fitted: "
                "use rf.Model(rf.Linear(), ridge=1.0)"
            )

    def check_grid(self, grid: Grid) -> None:
        check_table(self.features, grid.shape)

    def default_model(self, world: FiniteWorld | World) -> Model:
        """The one whose kernel is linear too; here features are in its place."""
        return Model(Linear(), ridge=self.ridge)

    def bytes_per_run(self, model: Model, grid: Grid, horizon: int, rounds: int) -> int:
        """What a run takes: A and W of its designs, their points, predictions of one step, and its record."""
        points = model.inputs(grid.points, horizon)
        z, d = features_at(self.features, points).shape
        n = rounds * (horizon if model.pooled else 1)
        designs = model.regressions(horizon) * (2 * d * d + n)
        return int(8 * (designs + d * (2 * z + n) + horizon * (z + RECORDED * rounds)))

    def posteriors(self, model: Model, inputs: Array, **options: Any) -> Posteriors:

        def kind(_: Any, inputs: Array, **options: Any) -> FeatureLattice:
            return FeatureLattice(self.features, inputs, **options)

        return replace(model, kernel=Linear(), ridge=self.ridge).posterior(kind, inputs, **options)

    def posterior(self, model: Model, box: tuple[Any, Any] | None) -> BasisPosterior:
        """A posterior for points anywhere."""
        return FeatureDesign(self.features, ridge=self.ridge)


def linear_beta(d: int, horizon: int, *, epsilon: float, delta: float, c: float = 1.0) -> float:
    """c d H sqrt(log(d H/(delta epsilon))) for d features: the beta of Wang et al. 2020, whose constant c is
    not given there."""
    d, horizon = count(d, "d"), count(horizon, "horizon")
    inside = d * horizon / (probability(delta, "delta") * positive(epsilon, "epsilon"))
    if inside <= 1.0:
        raise ValueError(f"epsilon must be below d H/delta = {inside * epsilon:g}, got {epsilon}")
    return positive(c, "c") * d * horizon * math.sqrt(math.log(inside))

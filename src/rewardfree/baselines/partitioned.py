"""Adaptive domain partitioning (Vakili et al. 2024; pi-KRVI): predictions from a query's own cell."""

import math
from dataclasses import dataclass
from typing import Any, Literal

from rewardfree.arrays import Array
from rewardfree.estimates.backups import Empty
from rewardfree.kernels import Kernel, Matern, Scaled, SquaredExponential
from rewardfree.model import Model
from rewardfree.posterior import BasisPosterior, Partition, PartitionLattice, Posteriors
from rewardfree.posterior.cells import check_alpha, check_drop
from rewardfree.registry import registered
from rewardfree.strategies.qiu import OptimisticStrategy
from rewardfree.ties import Ties


@registered("strategy")
@dataclass(frozen=True)
class Partitioned(OptimisticStrategy):
    """As `Qiu`, but every design keeps a partition: a cell of side rho and N samples splits while
    rho^-alpha < N + 1, and mean and sigma at z use the samples of z's own cell only.

    `alpha` is a number, None or "never" (no splits: `Qiu` exactly), or "kernel": 2 nu of a Matern kernel,
    None of the squared exponential. `drop` forgets what a cell had seen when it splits.
    """

    beta: float
    alpha: float | Literal["kernel", "never"] | None = "kernel"
    drop: bool = False
    ties: Ties = "lowest"
    empty: Empty = "zero"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_drop(self.drop)
        if not isinstance(self.alpha, str):
            object.__setattr__(self, "alpha", check_alpha(self.alpha))
        elif self.alpha == "never":
            object.__setattr__(self, "alpha", None)
        elif self.alpha != "kernel":
            raise ValueError(f'alpha must be a number, "kernel", or "never" (None), got "{self.alpha}"')

    def exponent(self, model: Model) -> float | None:
        """alpha for this model; None: never split."""
        if self.alpha != "kernel":
            return check_alpha(self.alpha)
        if model.automatic:
            raise ValueError(
                "Partitioned takes alpha from a fixed kernel, and this one is still to be fitted: "
                "give a number, such as alpha=3.0 for Matern 1.5, or alpha=None"
            )
        return _exponent_of(model.fixed)

    def check_model(self, model: Model) -> None:
        self.exponent(model)

    def posteriors(self, model: Model, inputs: Array, **options: Any) -> Posteriors:
        """Posteriors on a finite set, whose bounding box is the domain; options as for `Lattice`."""
        alpha = self.exponent(model)
        if alpha is None:
            return model.posteriors(inputs, **options)
        return model.posterior(PartitionLattice, inputs, alpha=alpha, drop=self.drop, **options)

    def needs_box(self, model: Model) -> bool:
        """Only what is split has a domain."""
        return self.exponent(model) is not None

    def posterior(self, model: Model, box: tuple[Any, Any] | None) -> BasisPosterior:
        """A posterior for points of the box, the domain."""
        if box is None:
            return model.design()
        options: dict[str, Any] = {"alpha": self.exponent(model), "drop": self.drop}
        return model.posterior(Partition, low=box[0], high=box[1], **options)


def _exponent_of(kernel: Kernel) -> float | None:
    match kernel:
        case Scaled(kernel=inner):
            return _exponent_of(inner)
        case SquaredExponential():
            return None
        case Matern(nu=nu):
            return None if math.isinf(nu) else 2.0 * nu
    raise ValueError(
        f"alpha is known for Matern kernels (2 nu) and the squared exponential (None), not for {kernel!r}: "
        "give Partitioned a number, alpha=..."
    )

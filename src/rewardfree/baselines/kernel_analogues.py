"""Known explorers with a kernel posterior in the place of counts, or of their own confidence sets."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from rewardfree.arrays import Array
from rewardfree.estimates import Backup, Empty, bellman_q, sigma_gain, variance_gain
from rewardfree.kernels import AutoKernel
from rewardfree.model import Model
from rewardfree.registry import registered
from rewardfree.strategies import OptimisticStrategy, ValueStrategy
from rewardfree.ties import Ties
from rewardfree.worlds import FiniteWorld, World


class KernelErrorBound(ValueStrategy):
    """Greedy in a bound on the error of a value: E_h = clip(growth mean_h[max E_{h+1}] + bonus, 0, most).

    A tabular bound is largest where nothing was tried. So the regression is around what E_{h+1} is where
    nothing is known: around 0, what was seen would look more uncertain than what was not. For kernels whose
    k(z,z) is the same everywhere: where it is 0, nothing can be learnt and the bound stays.
    """

    beta: float

    def backup(self, horizon: int, prior_sigma: Callable[[], float]) -> Backup:
        growth, prior = self._growth(horizon), float(self._bonus(prior_sigma()))
        unknown = [0.0]  # by the steps to go: the bound where sigma is the prior's
        for to_go in range(1, horizon + 1):
            unknown.append(min(self._most(to_go, horizon), bellman_q(prior, unknown[-1], growth)))
        return Backup(
            lambda reward, mean, sigma, to_go: bellman_q(self._bonus(sigma), mean, growth),
            limits=lambda to_go: (0.0, self._most(to_go, horizon)),
            around=lambda to_go: unknown[to_go],
        )

    @abstractmethod
    def _bonus(self, sigma: Array) -> Array:
        """What sigma adds to the bound."""

    @abstractmethod
    def _growth(self, horizon: int) -> float:
        """What the mean is multiplied with."""

    @abstractmethod
    def _most(self, to_go: int, horizon: int) -> float:
        """What the bound is clipped to, `to_go` steps before the end."""


@registered("strategy")
@dataclass(frozen=True)
class KernelRFUCRL(KernelErrorBound):
    """RF-UCRL (Kaufmann et al. 2021) by a kernel: E_h = clip(beta sigma_h + mean_h[max E_{h+1}], 0, H-1-h).

    h counts from 0: rewards are known, so at the last step no value can be wrong, and actions tie there.
    """

    beta: float
    ties: Ties = "lowest"

    def _bonus(self, sigma: Array) -> Array:
        return self.beta * sigma_gain(sigma, 1.0)

    def _growth(self, horizon: int) -> float:
        return 1.0

    def _most(self, to_go: int, horizon: int) -> float:
        return float(to_go - 1)


@registered("strategy")
@dataclass(frozen=True)
class KernelRFExpress(KernelErrorBound):
    """RF-Express (Menard et al. 2021) by a kernel: W_h = clip(beta^2 sigma_h^2 + (1+1/H) mean_h[max W_{h+1}],
    0, H): a squared error, whose bonus falls like 1/n."""

    beta: float
    ties: Ties = "lowest"

    def _bonus(self, sigma: Array) -> Array:
        return self.beta**2 * variance_gain(sigma, 1.0)

    def _growth(self, horizon: int) -> float:
        return 1.0 + 1.0 / horizon

    def _most(self, to_go: int, horizon: int) -> float:
        return float(horizon)


@registered("strategy")
@dataclass(frozen=True)
class MeanEmbedding(OptimisticStrategy):
    """One regression of all steps on plain ridge, as the conditional mean embedding of Chowdhury and Oliveira
    (2023): the estimate of P(.|z) as an element of a space, of which [PV] is the product with V.

    Theirs explores for a reward that it sees; here Qiu's bonus is in its place. Plan with `rf.Mean()`.
    """

    beta: float
    ties: Ties = "lowest"
    empty: Empty = "zero"

    def default_model(self, world: FiniteWorld | World) -> Model:
        """One regression, whose kernel comes from the data."""
        return Model(AutoKernel(), pooled=True)

    def check_model(self, model: Model) -> None:
        if not model.pooled or model.centred or model.timed:
            raise ValueError(
                "MeanEmbedding is one plain regression for all steps: "
                f"use rf.Model(kernel, ridge, pooled=True), neither centred nor timed, got {model!r:.200}"
            )

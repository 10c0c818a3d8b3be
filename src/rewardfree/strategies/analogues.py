"""Known explorers with a kernel posterior in the place of counts, or of their own confidence sets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from rewardfree.arrays import Array
from rewardfree.autokernel import AutoKernel
from rewardfree.model import Model
from rewardfree.objectives import OBJECTIVES
from rewardfree.presets import Empty
from rewardfree.strategies.arena import Arena
from rewardfree.strategies.episodic import OptimisticEpisodes, WholeEpisodes
from rewardfree.strategies.journey import Journey
from rewardfree.strategies.walks import planned_walk
from rewardfree.tables import tabled
from rewardfree.ties import Ties


class ErrorEpisodes(WholeEpisodes, ABC):
    """Greedy in a bound on the error of a value: E_h = clip(growth mean_h[max E_{h+1}] + bonus, 0, most).

    A tabular bound is largest where nothing was tried. So the regression is around what E_{h+1} is where
    nothing is known: around 0, what was seen would look more uncertain than what was not. For kernels whose
    k(z,z) is the same everywhere: where it is 0, nothing can be learnt and the bound stays.
    """

    beta: float

    def travel(self, journey: Journey) -> None:
        H = journey.horizon
        planned_walk(journey, self._bonus, "prior", self._growth(H), lambda to_go: self._most(to_go, H))

    def _prepare(self, arena: Arena) -> dict[int, Array]:
        H = arena.horizon
        return arena.backwards(
            H - 1, self._bonus, "prior", self._growth(H), lambda to_go: self._most(to_go, H)
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


@tabled
@dataclass(frozen=True)
class KernelRFUCRL(ErrorEpisodes):
    """RF-UCRL (Kaufmann et al. 2021) by a kernel: E_h = clip(beta sigma_h + mean_h[max E_{h+1}], 0, H-1-h).

    h counts from 0: rewards are known, so at the last step no value can be wrong, and actions tie there.
    """

    beta: float
    ties: Ties = "lowest"

    def _bonus(self, sigma: Array) -> Array:
        return self.beta * OBJECTIVES["sigma"](sigma, 1.0)

    def _growth(self, horizon: int) -> float:
        return 1.0

    def _most(self, to_go: int, horizon: int) -> float:
        return float(to_go - 1)


@tabled
@dataclass(frozen=True)
class KernelRFExpress(ErrorEpisodes):
    """RF-Express (Menard et al. 2021) by a kernel: W_h = clip(beta^2 sigma_h^2 + (1+1/H) mean_h[max W_{h+1}],
    0, H): a squared error, whose bonus falls like 1/n."""

    beta: float
    ties: Ties = "lowest"

    def _bonus(self, sigma: Array) -> Array:
        return self.beta**2 * OBJECTIVES["variance"](sigma, 1.0)

    def _growth(self, horizon: int) -> float:
        return 1.0 + 1.0 / horizon

    def _most(self, to_go: int, horizon: int) -> float:
        return float(horizon)


@tabled
@dataclass(frozen=True)
class MeanEmbedding(OptimisticEpisodes):
    """One regression of all steps on plain ridge, as the conditional mean embedding of Chowdhury and Oliveira
    (2023): the estimate of P(.|z) as an element of a space, of which [PV] is the product with V.

    Theirs explores for a reward that it sees; here Qiu's bonus is in its place. Plan with `rf.Mean()`.
    """

    beta: float
    ties: Ties = "lowest"
    empty: Empty = "zero"

    @staticmethod
    def usual_model() -> Model:
        """One regression, whose kernel comes from the data."""
        return Model(AutoKernel(), pooled=True)

    def check_model(self, model: Model) -> None:
        if not model.pooled or model.centred or model.timed:
            raise ValueError(
                "MeanEmbedding is one plain regression for all steps: "
                f"use rf.Model(kernel, ridge, pooled=True), neither centred nor timed, got {model!r:.200}"
            )

"""What a planner and a plan are, on finite worlds and on real states."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from rewardfree.arrays import (
    CPU,
    Actions,
    Chosen,
    Floats,
    Placement,
    States,
    Values,
    as_discount,
    as_horizon,
    check_fields,
    check_finite,
    check_kind,
    count,
)
from rewardfree.data import Experience, RunData
from rewardfree.dynamics import GivenTermination
from rewardfree.model import MODEL_POSTERIORS, Model, ModelPosteriors
from rewardfree.progress import Tell, tell_nobody
from rewardfree.rewards import Termination
from rewardfree.worlds import Discrete, Observation, Spaces, World
from rewardfree.worlds.spaces import Space
from rewardfree.worlds.world import TIMED_ON_REAL_STATES

if TYPE_CHECKING:
    from rewardfree.planning.alg1 import ValuePlanner


#: Steps times nodes, states or samples that one plan may take.
MOST_WORK = 10**10


@dataclass(frozen=True, eq=False)
class PlanRequest:
    """The arguments of `plan`: data, rewards and options; checked when it is made."""

    data: RunData
    rewards: Sequence[Any]  # arrays, functions or formulas
    model: Model | None = None  # instead of the one that the data were explored with
    horizon: float | None = None  # steps; infinity: no end, discounted; None: as the data have it
    discount: float | None = None
    terminated: Termination | None = None  # where episodes end, on real states; None: as the data saw it
    starts: States | None = None  # first states (k,d), on real states; None: as the data saw them
    seed: int = 0  # of random ties
    placement: Placement = CPU
    tell: Tell = tell_nobody  # how much is done, from 0 to 1: a planner that takes its time may say so

    def __post_init__(self) -> None:
        check_kind(self.data, RunData, "data", "what rf.explore returns, or rf.load")
        self._check_rewards()
        if self.model is not None:
            check_kind(self.model, Model, "model", "rf.Model(kernel, ridge)")
        seed = count(self.seed, "seed", at_least=0)
        if self.horizon not in (None, math.inf):
            object.__setattr__(self, "horizon", as_horizon(self.horizon))
        check_fields(self, discount=as_discount)
        if self.endless and self.discount in (None, 1.0):
            raise ValueError("horizon=math.inf, no end, needs a discount below 1: give discount=0.98, say")
        if not isinstance(self.data, Experience):
            if self.terminated is not None or self.starts is not None:
                raise ValueError("terminated= and starts= are for real states: a finite world knows its own")
        elif seed:
            raise ValueError("seed= is for finite worlds, where ties are drawn: leave it out")
        elif self.used_model.timed:
            raise ValueError(TIMED_ON_REAL_STATES)

    def _check_rewards(self) -> None:
        if isinstance(self.rewards, str):
            raise ValueError(
                f"rewards must be a list of rewards, got the one formula {self.rewards!r}: use plan"
            )
        if isinstance(self.rewards, Mapping):
            raise ValueError(
                "rewards must be a list of rewards, got a mapping: give list(rewards.values()), "
                "the plans come in the same order"
            )
        if not hasattr(self.rewards, "__len__"):
            raise ValueError(
                f"rewards must be a list of rewards, got {self.rewards!r:.200}: use plan for one"
            )
        if not len(self.rewards):
            raise ValueError("rewards must hold at least one reward, got none")

    @property
    def endless(self) -> bool:
        """Whether the horizon is infinite."""
        return self.horizon == math.inf

    @property
    def counted_discount(self) -> float:
        """The factor on later rewards; 1 if none was given."""
        return 1.0 if self.discount is None else self.discount

    @property
    def data_with_ends(self) -> RunData:
        """The data, with the ends of episodes where `terminated` says."""
        if self.terminated is None or not isinstance(self.data, Experience):
            return self.data
        is_end = GivenTermination.of(self.terminated, self.data.spaces)
        return self.data.ending_at(is_end(self.data.next_state))

    @property
    def used_model(self) -> Model:
        """The model to use, whose kernel may still have to be fitted."""
        return self.data.model if self.model is None else self.model

    @property
    def source(self) -> ModelPosteriors:
        """Who makes the posteriors: the strategy that explored, unless a model was named."""
        return self.data.strategy or MODEL_POSTERIORS if self.model is None else MODEL_POSTERIORS

    @property
    def own_source(self) -> ModelPosteriors | None:
        """That strategy, if its posteriors are not the model's."""
        return self.source if self.source.own_posteriors else None

    @property
    def steps(self) -> int:
        """The horizon; beyond that of the data only a model that is the same at every step can plan."""
        if self.horizon is None:
            return self.data.horizon
        if self.endless:
            raise ValueError(
                "Alg 1 plans a number of steps: horizon=math.inf, no end, is for DynamicsPlanner(), "
                "on up to four real variables"
            )
        stationary = self.used_model.pooled and not self.used_model.timed
        if self.horizon > self.data.horizon and not stationary:
            raise ValueError(
                f"horizon must be at most the {self.data.horizon} steps of these data, got {self.horizon}: "
                "only a pooled model that is not timed can go beyond them"
            )
        return int(self.horizon)

    def header(self, planner: Planner, **made_of: Any) -> dict[str, Any]:
        """Fields of every plan on real states, see `WorldPlan`: its world, and what it was made of."""
        data = self.data
        assert isinstance(data, Experience)
        return {
            "spaces": data.spaces,
            "observation": data.observation,
            "provenance": data.provenance,
            "planner": planner,
            "discount": self.counted_discount,
            **made_of,
        }


def check_work(horizon: int | None, places: int, what: str, remedy: str = "") -> None:
    """Refuse more steps of planning than anybody would wait for."""
    if horizon is not None and horizon * places > MOST_WORK:
        raise ValueError(
            f"horizon must be at most {MOST_WORK // places:,} with {places:,} {what}, got {horizon:,}: "
            f"every step is planned for by itself, give a shorter one{remedy}"
        )


class Planner(ABC):
    """From reward-free data to a policy for each of some rewards."""

    #: Whether it plans on finite worlds, also in sweeps.
    plans_finite: ClassVar[bool] = True
    #: Whether it plans from `starts`, the first states that a user names; else these are refused.
    takes_starts: ClassVar[bool] = False
    #: Whether it plans on real states with a `device` or a `dtype`; else these are refused there.
    takes_device: ClassVar[bool] = False

    def check(self, request: PlanRequest) -> None:
        """Refuse what this planner does not take."""
        if request.starts is not None and not self.takes_starts:
            raise ValueError(
                f"starts= is for DynamicsPlanner(), which compares plans from there: {self!r} does not"
            )
        if isinstance(request.data, Experience) and not (request.placement.default or self.takes_device):
            raise ValueError(
                f"device= and dtype= on real states are for DynamicsPlanner(): {self!r} plans on the CPU, "
                "leave them out"
            )

    @abstractmethod
    def plan(self, request: PlanRequest) -> list[Any]:
        """One `Plan` for each reward; what needs no reward is computed once."""

    @property
    def by_values(self) -> ValuePlanner | None:
        """This planner if it is Alg 1 unchanged: learning curves then plan all checkpoints in one pass."""
        return None

    def plan_runs(self, requests: Sequence[PlanRequest]) -> list[list[Any]]:
        """`plan` for the same rewards on several runs of one finite world: those alike may go together."""
        return [self.plan(request) for request in requests]


class Plan(ABC):
    """A policy, and what it was made of."""

    planner: Planner  # which made it
    chosen_by: Planner | None  # which chose that planner, if a user did not
    #: With the kernel and the ridge that were used; None: it uses none, or no file could hold that kernel.
    model: Model | None
    source: ModelPosteriors | None = None  # the strategy whose posteriors were used; None: the model's own
    transitions: int  # how many samples the estimate rests on
    horizon: int | None  # None: no end, discounted
    discount: float  # of later rewards, in the values
    provenance: Mapping[str, Any]  # of the world; empty where it has none

    @property
    def reward_text(self) -> str | None:
        """The formula that it was planned for; None if it was none, or is not known."""
        return None

    @property
    def drawn_over(self) -> tuple[Floats, Floats] | None:
        """The ends (d,) of the box of states over which its values can be drawn, if there is one."""
        return None

    @abstractmethod
    def choose(self, states: States, h: int) -> Actions:
        """The actions at states (n,d), labels or indices (n,)."""

    @abstractmethod
    def values_at(self, states: States, h: int) -> Floats:
        """The planner's V_h at states (n,d), (n,)."""

    def expects(self, reward: Any, starts: States, discount: float) -> tuple[Floats, Floats] | None:
        """What it expects to return from the first e of some states, and how much that may spread: (e,).

        Later rewards count `discount`. None if it cannot say, or was made for another reward; `rf.rollouts`
        compares it with what episodes return.
        """
        return None

    def act(
        self,
        state: npt.ArrayLike | None = None,
        h: int = 0,
        *,
        observation: npt.ArrayLike | None = None,
    ) -> Chosen:
        """The action at a state, or the actions at states, at step h from 0, or at what is observed.

        A state is an index or a label, or (d,); an action too, or (a,), in the dtype in which the world takes
        it. n states are (n,) or (n,d).
        """
        states, single = self._states(state, observation)
        chosen: Actions = self._as_taken(self.choose(states, self._step(h)))
        if not single:
            return chosen
        return int(chosen[0]) if chosen.ndim == 1 else np.asarray(chosen[0])

    def value(
        self,
        state: npt.ArrayLike | None = None,
        h: int = 0,
        *,
        observation: npt.ArrayLike | None = None,
    ) -> Values:
        """The planner's own V_h at a state or at states, in the reward's own units.

        It is not the policy's true value.
        """
        states, single = self._states(state, observation)
        values = self.values_at(states, self._step(h))
        return float(values[0]) if single else values

    def _states(self, state: Any, observation: Any) -> tuple[Any, bool]:
        """The given state or observation as states (n,...), and whether it was a single one."""
        states = np.asarray(one_given(state, observation, "an index or a label"))
        return (states[None], True) if states.ndim == 0 else (states, False)

    def _as_taken(self, actions: Any) -> Any:
        """The actions as the world takes them."""
        return actions

    def _step(self, h: int) -> int:
        h = count(h, "h", at_least=0)
        if self.horizon is not None and h >= self.horizon:
            raise ValueError(f"h must lie in 0..{self.horizon - 1}, got {h}")
        return h

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as npz, without pickle; `rf.load_plan` reads it."""

    def __repr__(self) -> str:
        chosen = "" if self.chosen_by is None else f" chosen by {self.chosen_by!r}"
        parts = [f"{self.planner!r}{chosen}", *self._details(), f"{self.transitions:,} transitions"]
        instead = "" if self.source is None else f"posteriors of {self.source!r} in the place of "
        parts += [] if self.model is None else [f"{instead}{self.model!r}"]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _details(self) -> list[str]:
        """More parts of the repr: horizon and discount."""
        steps = "no end" if self.horizon is None else f"horizon {self.horizon}"
        if self.discount == 1.0:
            return [steps]
        digits = (f"{self.discount:.{n}g}" for n in range(6, 18))
        return [steps, f"discount {next(text for text in digits if text != '1')}"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WorldPlan(Plan):
    """A policy: `act(state, h)`, or `act(observation=o, h=h)` where the world is seen otherwise."""

    spaces: Spaces
    observation: Observation | None
    horizon: int | None
    discount: float
    planner: Planner
    chosen_by: Planner | None = None
    provenance: Mapping[str, Any]  # of the world
    model: Model | None
    source: ModelPosteriors | None = None
    transitions: int
    expected: float | None = None  # the mean return inside the model, where it was computed

    def check_world(self, world: World, name: str = "the world") -> None:
        """Refuse a world that has other variables than the one that was explored."""
        mine, others = (
            [(type(space), _size(space)) for space in (spaces.state, spaces.action)]
            for spaces in (self.spaces, world.spaces)
        )
        if mine != others:
            raise ValueError(
                f"this plan is for {_with_labels(self.spaces)}, and {name} has {_with_labels(world.spaces)}: "
                "give env= what was explored, or leave it out"
            )

    def _as_taken(self, actions: Any) -> Any:
        return self.spaces.action.as_taken(actions)

    def _states(self, state: Any, observation: Any) -> tuple[Any, bool]:
        """The given state or observation as states (n,d), and whether it was a single one."""
        space, how = self.spaces.state, self.observation
        given = np.asarray(one_given(state, observation, ", ".join(space.names), how))
        if observation is not None and how is not None:
            seen = given.astype(np.float64)
            check_finite(seen, "observation")
            single = seen.ndim == 1
            return how.state(space, seen[None] if single else seen), single
        if how is not None and given.shape[-1:] == (len(how.columns),) != (space.size,):
            raise ValueError(
                f"a state has {space.size} numbers ({', '.join(space.names)}), and this looks like an "
                f"observation ({how}): give it as observation=, such as plan.act(observation=o, h=0)"
            )
        single = given.ndim == (0 if isinstance(space, Discrete) else 1)
        return space.checked(given[None] if single else given, "state"), single


def largest_spread(mean: Floats, low: float, high: float) -> Floats:
    """The largest standard deviation (n,) of returns between two ends, for their means (n,)."""
    return np.sqrt(np.maximum((high - mean) * (mean - low), 0.0))


def _size(space: Space) -> int:
    """How many labels or variables."""
    return space.n if isinstance(space, Discrete) else space.size


def _with_labels(spaces: Spaces) -> str:
    """The names of variables, and of labels how many there are."""
    words = [
        f"{space.name} ({space.n} labels)" if isinstance(space, Discrete) else ", ".join(space.names)
        for space in (spaces.state, spaces.action)
    ]
    return ", ".join(words)


def one_given(state: Any, observation: Any, parts: str, how: Observation | None = None) -> Any:
    """State or observation, whichever was given; `parts` and `how` say what these are."""
    if (state is None) == (observation is None):
        seen = "" if how is None else f" ({how})"
        came = "neither" if state is None else "both"
        raise ValueError(
            f"give a state ({parts}), such as plan.act(state, h=0), or observation={seen}, and not both: "
            f"got {came}"
        )
    return state if observation is None else observation

"""A reward, as a user has it: an array, a function or a formula of states and actions; checked here."""

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rewardfree.arrays import Actions, States, as_array, check_finite, to_numpy
from rewardfree.formulas import Formula
from rewardfree.worlds import Grid, Spaces

#: A reward of a finite world: (s,a), (h,s,a), a function of coordinates (n,d) and (n,e), or a formula.
FiniteReward: TypeAlias = npt.ArrayLike | Callable[[States, Actions], npt.ArrayLike] | str
#: A reward on real states: a function of (n,d), (n,a) and perhaps the next states (n,d), or a formula.
WorldReward: TypeAlias = (
    Callable[[States, Actions], npt.ArrayLike] | Callable[[States, Actions, States], npt.ArrayLike] | str
)
#: Where episodes end: a function of states (n,d), or a formula that is not 0 there.
Termination: TypeAlias = Callable[[States], npt.ArrayLike] | str
#: A min-max that should end at 1 may end a rounding above it.
ROUNDING = 1e-12


def reward_table(reward: Any, grid: Grid, horizon: int) -> Any:
    """r_h(s,a) as an array (h,s,a), where h may have length 1 if every step has the same reward.

    `reward` is an array (s,a) or (h,s,a), a function of the coordinates of states (n,d) and actions (n,e)
    that returns (n,), or a formula over `variables(grid)` and the step h such as "exp(-(s - 0.3)**2) - a".
    """
    s, a = grid.shape
    if isinstance(reward, str):
        reward = _by_formula(reward, grid, horizon)
    if callable(reward) and not hasattr(reward, "shape"):
        reward = _called(reward, grid)
    table = to_numpy(as_array(reward, "reward")).astype(np.float64)
    if table.shape not in ((s, a), (horizon, s, a)):
        raise ValueError(
            f"reward must have shape ({s}, {a}) or ({horizon}, {s}, {a}), states before actions, "
            f"got {table.shape}"
        )
    check_finite(table, "reward")
    return table.reshape(-1, s, a)


def variables(grid: Grid) -> dict[str, Any]:
    """The coordinates (z,) that a formula may name: s and a, or s0, s1, ... and a0, a1, ... if more."""
    coordinates: dict[str, Any] = {}
    d = grid.states.shape[1]
    for letter, columns in (("s", grid.points[:, :d]), ("a", grid.points[:, d:])):
        for i, column in enumerate(columns.T):
            coordinates[letter if columns.shape[1] == 1 else f"{letter}{i}"] = column
    return coordinates


class RewardFunction:
    """A reward on real states: a function of (state, action) or (state, action, next_state), or a formula.

    Functions get states (n,d) with angles in [-pi, pi), and actions (n,a) or labels (n,); they return (n,). A
    formula speaks of `Spaces.names` and the step h.
    """

    def __init__(self, reward: Any, spaces: Spaces) -> None:
        self.spaces, self.text = spaces, None
        self.uses_next, self.uses_step = True, False
        if isinstance(reward, str):
            self.text = reward
            self._formula = Formula(reward, [*spaces.names, "h"])
            self.uses_next = any(name.startswith("next_") for name in self._formula.used)
            self.uses_step = "h" in self._formula.used
        elif callable(reward) and not hasattr(reward, "shape"):
            self._function, self.uses_next = reward, _takes_three(reward)
        else:
            raise ValueError(
                "a reward on real states must be a function of (state, action[, next_state]), "
                f'or a formula such as "-{spaces.state.names[0]}**2", got {type(reward)}'
            )

    def __call__(self, h: int, state: Any, action: Any, next_state: Any) -> Any:
        """r_h for n transitions, (n,)."""
        if self.text is not None:
            variables = self.spaces.variables(state, action, next_state if self.uses_next else None)
            values = np.broadcast_to(self._formula({**variables, "h": float(h)}), len(state))
        else:
            wrapped = self.spaces.state.wrapped
            after = (wrapped(next_state),) if self.uses_next else ()
            # Copies: a function may work in place, and these are the data themselves.
            given = [np.array(values) for values in (wrapped(state), action, *after)]
            values = np.asarray(self._function(*given), np.float64)
        if values.shape != (len(state),):
            raise ValueError(
                f"a reward must return one number for each of {len(state)} steps, got shape {values.shape}"
            )
        check_finite(values, "what the reward returns")
        return values


def ends_of(terminated: Any, spaces: Spaces) -> tuple[Any, str | None]:
    """A function that says which states end an episode, and its text if it was a formula."""
    if not isinstance(terminated, str):
        if not callable(terminated):
            raise ValueError(f"terminated must be a function of states or a formula, got {terminated!r:.200}")
        return terminated, None
    formula = Formula(terminated, spaces.state.names)

    def ended(state: Any) -> Any:
        values = np.broadcast_to(formula(spaces.state.variables(state)), len(state))
        check_finite(values, "what terminated returns")
        return values != 0.0

    return ended, terminated


def _takes_three(reward: Any) -> bool:
    """Whether it wants the next state: as a third argument without a default, or of that name."""
    try:
        parameters = list(inspect.signature(reward).parameters.values())
    except (TypeError, ValueError):  # a built-in that says nothing of itself
        return False
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return True
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    places = [parameter for parameter in parameters if parameter.kind in positional]
    return len(places) > 2 and (
        places[2].default is inspect.Parameter.empty or places[2].name == "next_state"
    )


def check_unit_range(low: float, high: float, planner: Any) -> None:
    """The paper's planners clip values to [0, H], which is only right for rewards in [0, 1]."""
    if low < -ROUNDING or high > 1.0 + ROUNDING:
        shifted = f"(r - {low!r})" if low > 0.0 else f"(r + {-low!r})" if low < 0.0 else "r"
        rescaled = f"{shifted} / {high - low!r}" if high > low else shifted
        name = type(planner).__name__
        raise ValueError(
            f"{name} needs rewards in [0, 1], got {low!r} .. {high!r}: plan for {rescaled}, "
            'which has the same optimal policies, or use clip="range"'
        )


def _by_formula(text: str, grid: Grid, horizon: int) -> Any:
    names = variables(grid)
    formula = Formula(text, [*names, "h"])
    steps = range(horizon if "h" in formula.used else 1)
    tables = [np.broadcast_to(formula({**names, "h": float(h)}), len(grid.points)) for h in steps]
    table = np.stack(tables).reshape(-1, *grid.shape)
    return table if len(table) > 1 or horizon == 1 else table[0]


def _called(reward: Any, grid: Grid) -> Any:
    s, a = grid.shape
    values = reward(np.repeat(grid.states, a, axis=0), np.tile(grid.actions, (s, 1)))
    values = to_numpy(as_array(values, "what reward(state, action) returns"))
    if values.shape != (s * a,):
        raise ValueError(
            f"reward(state, action) must return one number for each of {s * a} pairs, "
            f"got shape {values.shape}"
        )
    return values.reshape(s, a)

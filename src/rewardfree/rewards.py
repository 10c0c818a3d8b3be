"""A reward, as a user has it: an array, a function or a formula of states and actions; checked here."""

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rewardfree.arrays import Actions, States, as_array, check_finite, to_numpy
from rewardfree.formulas import Formula
from rewardfree.worlds import Discrete, Grid, Spaces

#: A reward of a finite world: (s,a), (h,s,a), (s,a,s'), (h,s,a,s'), a function of states, actions and perhaps
#: next states, or a formula.
FiniteReward: TypeAlias = (
    npt.ArrayLike
    | Callable[[States, Actions], npt.ArrayLike]
    | Callable[[States, Actions, States], npt.ArrayLike]
    | str
)
#: A reward on real states: a function of (n,d), (n,a) and perhaps the next states (n,d), or a formula.
WorldReward: TypeAlias = (
    Callable[[States, Actions], npt.ArrayLike] | Callable[[States, Actions, States], npt.ArrayLike] | str
)
#: Where episodes end: a function of states (n,d), or a formula that is not 0 there.
Termination: TypeAlias = Callable[[States], npt.ArrayLike] | str
#: A min-max that should end at 1 may end a rounding above it.
ROUNDING = 1e-12


class TabledReward:
    """r_h(s,a) or r_h(s,a,s') of a finite world, checked.

    `reward` is an array (s,a), (h,s,a), (s,a,s') or (h,s,a,s'); a function of states, actions and perhaps
    next states; or a formula over `variables(grid)`, next_ twins of the states' and the step h, such as
    "exp(-(s - 0.3)**2) - a". Functions get coordinates (n,d) and (n,e), or what the world names: one variable
    (n,) or labels (n,), several (n,k). Where (h,s,a) and (s,a,s') have the same shape, it is the former.
    """

    def __init__(self, reward: Any, grid: Grid, horizon: int) -> None:
        self.grid, self.horizon = grid, horizon
        self._formula: Formula | None = None
        self._table: Any = None  # (h,s,a) or (h,s,a,s'); None: computed step by step, for it is large
        if isinstance(reward, str):
            self._formula = _formula_of(reward, grid)
            self.uses_next = any(name.startswith("next_") for name in self._formula.used)
            self.steps = horizon if "h" in self._formula.used else 1
            if not self.uses_next or self.steps == 1:
                self._table = np.stack([self._of_formula(h) for h in range(self.steps)])
                check_finite(self._table, "reward")
            return
        if callable(reward) and not hasattr(reward, "shape"):
            reward = _called(reward, grid)
        table = to_numpy(as_array(reward, "reward")).astype(np.float64)
        s, a = grid.shape
        self.uses_next = table.shape in ((s, a, s), (1, s, a, s), (horizon, s, a, s))
        if self.uses_next and table.shape == (horizon, s, a):
            self.uses_next = False
        if not self.uses_next and table.shape not in ((s, a), (horizon, s, a)):
            raise ValueError(
                f"reward must have shape ({s}, {a}) or ({horizon}, {s}, {a}), states before actions, "
                f"got {table.shape}; with next states last it is ({s}, {a}, {s})"
            )
        check_finite(table, "reward")
        self._table = table.reshape(-1, *grid.shape, *((s,) if self.uses_next else ()))
        self.steps = len(self._table)

    def at(self, h: int) -> Any:
        """r_h, (s,a), or (s,a,s') if it depends on the next state."""
        if self._table is not None:
            return self._table[h if self.steps > 1 else 0]
        table = self._of_formula(h)
        check_finite(table, "reward")
        return table

    @cached_property
    def ends(self) -> tuple[Any, Any]:
        """The least and the largest reward of every step, (h,) or (1,)."""
        tables = [self.at(h) for h in range(self.steps)]
        return np.array([table.min() for table in tables]), np.array([table.max() for table in tables])

    def table(self) -> Any:
        """r_h(s,a), (h,s,a), where h has length 1 if every step has the same reward."""
        if self.uses_next:
            raise ValueError(
                "this reward depends on the next state: rf.plan, rf.gap and rf.rollouts take it, "
                "learning_curves and sweeps take rewards of state and action"
            )
        return self._table

    def expected(self, law: Callable[[int], Any], stationary: bool) -> Any:
        """r_h(s,a) for the next states of a law (s,a,s') by step, (h,s,a) as in `table`."""
        if not self.uses_next:
            return self._table
        steps = range(self.horizon if self.steps > 1 or not stationary else 1)
        return np.stack([np.einsum("san,san->sa", law(h), self.at(h)) for h in steps])

    def _of_formula(self, h: int) -> Any:
        """The formula's values at step h, (s,a) or (s,a,s')."""
        assert self._formula is not None
        (s, a), grid = self.grid.shape, self.grid
        states, actions = (
            names.columns(slice(None)) for names in (grid.state_variables, grid.action_variables)
        )
        if not self.uses_next:
            values = self._formula({**variables(grid), "h": float(h)})
            return np.broadcast_to(values, (s * a,)).reshape(s, a)
        columns = {name: column[:, None, None] for name, column in states.items()}
        columns |= {name: column[:, None] for name, column in actions.items()}
        columns |= {f"next_{name}": column for name, column in states.items()}
        return np.broadcast_to(self._formula({**columns, "h": np.float64(h)}), (s, a, s))


def reward_table(reward: Any, grid: Grid, horizon: int) -> Any:
    """r_h(s,a) as an array (h,s,a), where h may have length 1 if every step has the same reward.

    `reward` is as for `TabledReward`, and must not depend on the next state.
    """
    return TabledReward(reward, grid, horizon).table()


def variables(grid: Grid) -> dict[str, Any]:
    """The columns (z,) that a formula may name: the grid's names, or s and a (s0, s1, ... if more)."""
    s, a = grid.shape
    states = grid.state_variables.columns(np.repeat(np.arange(s), a))
    return {**states, **grid.action_variables.columns(np.tile(np.arange(a), s))}


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
            self._formula = _of_spaces(reward, [*spaces.names, "h"], spaces)
            self.uses_next = any(name.startswith("next_") for name in self._formula.used)
            self.uses_step = "h" in self._formula.used
        elif callable(reward) and not hasattr(reward, "shape"):
            self._function, self.uses_next = reward, _takes_three(reward)
        else:
            raise ValueError(
                "a reward on real states must be a function of (state, action[, next_state]), "
                f'or a formula such as "-{spaces.state.names[0]}**2", got {type(reward)}'
            )

    def is_made_of(self, reward: Any) -> bool:
        """Whether it is that formula, or that very function."""
        return bool(reward == self.text) if isinstance(reward, str) else vars(self).get("_function") is reward

    def __call__(self, h: int, state: Any, action: Any, next_state: Any) -> Any:
        """r_h for n transitions, (n,)."""
        if self.text is not None:
            variables = self.spaces.variables(state, action, next_state if self.uses_next else None)
            values = np.broadcast_to(self._formula({**variables, "h": float(h)}), len(state))
        else:
            wrapped = self.spaces.state.wrapped
            after = (wrapped(next_state),) if self.uses_next else ()
            values = np.asarray(for_each(self._function, wrapped(state), action, *after), np.float64)
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
    formula = _of_spaces(terminated, spaces.state.names, spaces)

    def ended(state: Any) -> Any:
        values = np.broadcast_to(formula(spaces.state.variables(state)), len(state))
        check_finite(values, "what terminated returns")
        return values != 0.0

    return ended, terminated


def for_each(function: Callable[..., Any], *columns: Any) -> Any:
    """What a function returns for columns of n rows, (n,); a constant one may return its number.

    One number for all must be what the first row and the last one get alone: a sum over rows is a mistake.
    The function gets copies: it may work in place, and the columns may be the data themselves.
    """

    def returned(rows: slice) -> Any:
        return function(*(np.array(column[rows]) for column in columns))

    values, n = returned(slice(None)), len(columns[0])
    if not isinstance(values, (Real, np.bool_)):
        return values
    alone = [returned(row) for row in (slice(1), slice(n - 1, n)) if n > 1]
    constant = all(isinstance(value, (Real, np.bool_)) and value == values for value in alone)
    return np.full(n, values) if constant else values


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


def check_unit_range(low: float, high: float, planner: Any, may_end: bool = False) -> None:
    """The paper's planners clip values to [0, H], which is only right for rewards in [0, 1].

    `may_end`: episodes may end early. There a constant that is added to the reward changes what is optimal.
    """
    if low < -ROUNDING or high > 1.0 + ROUNDING:
        shifted = f"(r - {low!r})" if low > 0.0 else f"(r + {-low!r})" if low < 0.0 else "r"
        rescaled = f"{shifted} / {high - low!r}" if high > low else shifted
        if may_end:
            rescaled = f"r / {high!r}" if low >= 0.0 else ""
        other = f"plan for {rescaled}, which has the same optimal policies, or " if rescaled else ""
        raise ValueError(
            f"{type(planner).__name__} needs rewards in [0, 1], got {low!r} .. {high!r}: "
            f'{other}use clip="range"'
        )


def _of_spaces(text: str, names: Collection[str], spaces: Spaces) -> Formula:
    """A formula over the variables of a world; where some are labels, every refusal says so."""
    labels = [space for space in (spaces.state, spaces.action) if isinstance(space, Discrete)]
    try:
        formula = Formula(text, names)
        check_equalities(formula, {space.name: np.arange(space.n) for space in labels})
    except ValueError as error:
        rule = "; ".join(f"{space.name} is a label, 0 .. {space.n - 1}" for space in labels)
        raise ValueError(f"{error}; {rule}" if rule else str(error)) from None
    return formula


def _formula_of(text: str, grid: Grid) -> Formula:
    """A formula over the grid's variables; every refusal says what these are."""
    states = grid.state_variables.names
    names = (*states, *grid.action_variables.names, *(f"next_{name}" for name in states), "h")
    try:
        formula = Formula(text, names)
        _check_numbers(formula, grid)
    except ValueError as error:
        raise ValueError(f"{error}; {grid.rule}") from None
    return formula


def _check_numbers(formula: Formula, grid: Grid) -> None:
    """Refuse comparing a coordinate with a number it cannot reach, as in s == 15 on [0, 1]."""
    coordinates = (
        *(() if grid.state_names else grid.state_variables.names),
        *(() if grid.action_names else grid.action_variables.names),
    )
    values = {**grid.state_variables.columns(slice(None)), **grid.action_variables.columns(slice(None))}
    check_equalities(formula, values)
    for name, number, _ in formula.set_against():
        column = name.removeprefix("next_")
        if column in coordinates:
            low, high = values[column].min(), values[column].max()
            if low < high and not low - (high - low) <= number <= high + (high - low):
                raise ValueError(
                    f"{formula.text!r:.100} sets {name} against {number:g}, which it never comes near"
                )


def check_equalities(formula: Formula, values: Mapping[str, Any]) -> None:
    """Refuse == or != with a number that none of a variable's values is: it would always be the same."""
    for name, number, equality in formula.set_against():
        column = name.removeprefix("next_")
        if equality and column in values and number not in values[column]:
            raise ValueError(f"{formula.text!r:.100} asks whether {name} is {number:.17g}, which it never is")


def _called(reward: Any, grid: Grid) -> Any:
    """What a function says of every pair, (s,a), or of every pair and next state, (s,a,s')."""
    s, a = grid.shape
    shape = (s, a, s) if _takes_three(reward) else (s, a)
    rows = np.indices(shape).reshape(len(shape), -1)
    states, actions = grid.state_variables, grid.action_variables
    arguments = [names.plain(row) for names, row in zip((states, actions, states), rows, strict=False)]
    if grid.state_names is None:  # coordinates keep their axis
        arguments[::2] = [grid.states[row] for row in rows[::2]]
    if grid.action_names is None:
        arguments[1] = grid.actions[rows[1]]
    called = "reward(state, action, next_state)" if len(shape) > 2 else "reward(state, action)"
    values = to_numpy(as_array(for_each(reward, *arguments), f"what {called} returns"))
    if values.shape != rows.shape[1:]:
        what = "triples" if len(shape) > 2 else "pairs"
        raise ValueError(
            f"{called} must return one number for each of {rows.shape[1]} {what}, got shape {values.shape}; "
            f"it gets states of shape {arguments[0].shape}, actions of shape {arguments[1].shape}: "
            f"{grid.rule}"
        )
    return values.reshape(shape)

"""Checks of the parts of a plan that was read from a file."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rewardfree.arrays import as_discount, as_horizon, as_number, check_finite, check_kind, count
from rewardfree.dynamics import Mesh, MeshDynamics
from rewardfree.dynamics.termination import FAR
from rewardfree.estimates import SampledEstimate
from rewardfree.model import Model, ModelPosteriors
from rewardfree.planning.mesh.values import MeshValues
from rewardfree.planning.planner import Planner
from rewardfree.worlds import Box, Observation, ScaledModel, Space, Spaces


def numbers(arrays: Mapping[str, Any], name: str, *shape: int | None, finite: bool = True) -> Any:
    """An array of real numbers of that shape, in which None stands for any length of at least 1."""
    array = arrays[name]
    fits = array.ndim == len(shape) and all(
        length > 0 if wanted is None else length == wanted
        for length, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits or array.dtype.kind not in "iuf":
        wanted = ", ".join("n" if length is None else str(length) for length in shape)
        raise ValueError(
            f"its {name} have shape {array.shape} of {array.dtype}: numbers ({wanted}) were wanted"
        )
    if finite:
        check_finite(array, f"its {name}")
        largest = float(np.abs(array).max(initial=0.0))
        if largest > FAR:
            raise ValueError(f"its {name} must stay below {FAR:g}, got {largest:g}")
    elif np.isnan(array).any():
        raise ValueError(f"its {name} must be numbers, got NaN")
    return array


def flags(arrays: Mapping[str, Any], name: str, length: int) -> Any:
    """A bool array of that length."""
    array = arrays[name]
    if array.dtype.kind != "b" or array.shape != (length,):
        raise ValueError(f"its {name} must be {length} flags, got {array.dtype} of shape {array.shape}")
    return array


def check_said(fields: Mapping[str, Any]) -> None:
    """Check the fields that every plan stores."""
    check_kind(fields["planner"], Planner, "its planner", "one of rewardfree's")
    optional: tuple[tuple[str, type, str, str], ...] = (
        ("chosen_by", Planner, "what chose its planner", "one of rewardfree's planners"),
        ("model", Model, "its model", "a rewardfree Model"),
        ("source", ModelPosteriors, "its source of posteriors", "one of rewardfree's strategies"),
    )
    for name, kind, part, wanted in optional:
        if fields[name] is not None:
            check_kind(fields[name], kind, part, wanted)
    count(fields["transitions"], "transitions", at_least=0)
    if fields["horizon"] is not None:
        as_horizon(fields["horizon"])


def check_said_of_world(fields: Mapping[str, Any]) -> None:
    """What every plan on real states says about itself."""
    check_said(fields)
    spaces = fields["spaces"]
    check_kind(spaces, Spaces, "its spaces", "a state space and an action space")
    check_kind(fields["provenance"], Mapping, "its provenance", "a table")
    if fields["observation"] is not None:
        check_kind(fields["observation"], Observation, "its observation", "what is observed, or nothing")
        fields["observation"].check(spaces.state)


def check_discount(discount: Any, horizon: int | None) -> None:
    """Refuse a discount outside (0, 1], or of 1 without a horizon."""
    if as_discount(discount) == 1.0 and horizon is None:
        raise ValueError("discount must be below 1 without a horizon, got 1.0")


def check_policy(arrays: Mapping[str, Any], horizon: int, shape: tuple[int, int]) -> None:
    """A policy on finitely many states, or among labels, and its values: (h,s)."""
    s, a = shape
    numbers(arrays, "values", as_horizon(horizon), s)
    actions = numbers(arrays, "actions", horizon, s)
    if actions.dtype.kind == "f" or actions.min() < 0 or actions.max() >= a:
        raise ValueError(f"its actions must be whole numbers of 0..{a - 1}")


def checked_actions(space: Space, values: Any) -> Any:
    """The actions that a plan chooses among, in the form of their space; none lies outside of its bounds.

    Bounds may have been rounded to float32, as Gymnasium has them.
    """
    actions = space.checked(values, "actions")
    if not len(actions):
        raise ValueError("a plan must have at least one action, got none")
    if isinstance(space, Box):
        beyond = np.abs(actions - space.inside(actions)) > np.finfo(np.float32).eps * np.abs(actions)
        if beyond.any():
            row, column = np.argwhere(beyond)[0]
            raise ValueError(
                f"its actions must lie in the action space, and {space.names[column]} in "
                f"{space.low[column]:g}..{space.high[column]:g}, got {actions[row, column]:g}"
            )
    return actions


def check_mesh(arrays: Mapping[str, Any], spaces: Spaces, scaled: ScaledModel) -> None:
    """Learnt dynamics, and a mesh over real states."""
    if not isinstance(spaces.state, Box):
        raise ValueError(f"a mesh is over real states, got {spaces.state!r:.200}")
    scaled.check(spaces)
    d = spaces.state.size
    n = len(numbers(arrays, "points", None, len(spaces.groups)))
    if n < 2:
        raise ValueError(f"dynamics are learnt from at least two transitions, got {n}")
    numbers(arrays, "weights", n, d)
    numbers(arrays, "middle", d)
    if not (numbers(arrays, "unit", d) > 0.0).all():
        raise ValueError("its unit must be positive")
    for low, high in (numbers(arrays, "ends", 2, d, finite=False), _box_of(arrays, d)):
        if not (low <= high).all():
            raise ValueError("the low ends of its boxes must lie below the high ones")
    if "residuals" in arrays:
        k = len(numbers(arrays, "noise_points", None, len(spaces.groups)))
        numbers(arrays, "residuals", k, d)


def _box_of(arrays: Mapping[str, Any], d: int) -> tuple[Any, Any]:
    low, high = numbers(arrays, "low", d), numbers(arrays, "high", d)
    sides = numbers(arrays, "sides", d)
    if sides.dtype.kind == "f" or sides.min() < 2 or (low == high).any():
        raise ValueError(f"its mesh must have at least two nodes a side, got {sides}")
    return low, high


def check_values(values: MeshValues, horizon: int | None) -> None:
    """Tables of values by steps to go."""
    tables, to_go = values.tables, values.to_go
    numbers({"to_go": to_go}, "to_go", None)
    if tables.shape != (len(to_go), values.mesh.size):
        raise ValueError(f"its tables have shape {tables.shape} for {values.mesh.size} nodes")
    numbers({"tables": tables}, "tables", *tables.shape)
    if to_go.dtype.kind == "f" or to_go[0] != 0 or (np.diff(to_go.astype(np.int64)) <= 0).any():
        raise ValueError("its to_go must be whole numbers that ascend from 0")
    check_discount(values.discount, horizon)
    as_number(values.drift, "drift")


def check_table(rewards: Any, going: Any, on_mesh: MeshDynamics) -> None:
    """Rewards and ends at the nodes."""
    mesh: Mesh = on_mesh.mesh
    pairs = len(on_mesh.actions) * mesh.size
    numbers({"rewards": rewards}, "rewards", pairs)
    going = numbers({"going": going}, "going", on_mesh.draws if on_mesh.noisy else 1, pairs)
    if going.min() < 0.0 or going.max() > 1.0:
        raise ValueError(f"its going must lie in [0, 1], got {going.min()}..{going.max()}")


def check_regression(estimate: SampledEstimate, h: int, weights: Any) -> None:
    """The weights of the regression of step h: one for each function of its basis."""
    posterior = estimate.posteriors[estimate.step(h)]
    if weights is None or not len(posterior):
        if weights is not None or len(posterior):
            raise ValueError(f"its weights of step {h} and its samples do not go together")
        return
    samples = estimate.samples(h)
    basis = posterior.basis(estimate.points(samples.state[:1], samples.action[:1]))
    numbers({"weights": weights}, "weights", basis.shape[1])

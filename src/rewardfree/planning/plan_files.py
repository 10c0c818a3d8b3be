"""Plans as files: arrays, and one text of JSON; no pickle, and no code."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from rewardfree.arrays import as_horizon, as_number, check_kind
from rewardfree.data import Samples
from rewardfree.dynamics import Dynamics, GivenTermination, Mesh, MeshDynamics, ObservedTermination
from rewardfree.estimates import SampledEstimate
from rewardfree.files import content_of, kind_of, read_arrays, write_arrays
from rewardfree.model import MODEL_POSTERIORS, Model
from rewardfree.planning.alg1 import ValuePlanner
from rewardfree.planning.counted import LabelPlan
from rewardfree.planning.finite import FinitePlan
from rewardfree.planning.mesh.plan import MeshPlan, TabulatedPlan, as_depth
from rewardfree.planning.mesh.values import MeshValues
from rewardfree.planning.plan_checks import (
    check_discount,
    check_mesh,
    check_policy,
    check_regression,
    check_said,
    check_said_of_world,
    check_table,
    check_values,
    checked_actions,
    flags,
    numbers,
)
from rewardfree.planning.planner import Plan, WorldPlan
from rewardfree.planning.sampled import SampledPlan, recursion_for
from rewardfree.posterior import Sparse
from rewardfree.registry import from_text, to_table, to_text
from rewardfree.rewards import RewardFunction
from rewardfree.worlds import Discrete, ScaledModel, Scaling, Spaces
from rewardfree.worlds.grid import NAMED_ARRAYS, stored_grid

FILE_VERSION = 3
#: Fields stored for every plan, and for every plan on real states.
_PLAN = ("horizon", "planner", "chosen_by", "model", "source", "transitions", "discount")
_WORLD_PLAN = (*_PLAN, "spaces", "observation", "provenance")
#: The columns of the samples that a `SampledPlan` rests on.
_SAMPLES = ("state", "action", "next_state", "terminated")
_ON_MESH = (
    "about|points|weights|middle|unit|ends|centre|scale|low|high|sides|tables|to_go|actions"
    "|residuals|noise_points"
)
#: The names of the arrays of each kind, as patterns.
_ARRAYS = {
    "FinitePlan": f"about|states|coordinates|actions|values|{NAMED_ARRAYS}",
    "LabelPlan": "about|actions|values",
    "MeshPlan": f"{_ON_MESH}|seen|seen_ends",
    "TabulatedPlan": f"{_ON_MESH}|rewards|going",
    "SampledPlan": rf"about|centre|scale|actions|centres|({'|'.join((*_SAMPLES, 'weights', 'inducing'))})\d+",
}


def load_plan(path: str | os.PathLike[str]) -> FinitePlan | WorldPlan:
    """The plan that `save` wrote; a damaged, foreign or newer file is refused."""
    kind = kind_of(path)
    readers: dict[str, Callable[[Any, Any], FinitePlan | WorldPlan]] = {
        "FinitePlan": _finite_plan,
        "MeshPlan": _mesh_plan,
        "TabulatedPlan": _tabulated_plan,
        "SampledPlan": _sampled_plan,
        "LabelPlan": _label_plan,
    }
    if kind in ("Experience", "Transitions"):
        raise ValueError(f"{path} holds data: use rf.load, and rf.plan for a plan")
    if kind not in readers:
        read_arrays(path, "plan", FILE_VERSION)  # which says what is wrong
    arrays = read_arrays(path, kind, FILE_VERSION, _ARRAYS[kind])
    with content_of(path, "a plan"):
        return readers[kind](arrays, from_text(str(arrays.pop("about"))))


def write_finite_plan(path: str | os.PathLike[str], plan: FinitePlan) -> None:
    arrays = {
        "states": plan.grid.states,
        "coordinates": plan.grid.actions,
        "actions": plan.actions,
        "values": plan.values,
        **plan.grid.named_arrays(),
    }
    made_of: dict[str, Any] = {"model": plan.model, "source": plan.source}
    for name, part in made_of.items():
        try:
            to_table(part)
        except ValueError:  # such as a kernel of another library, without which the plan acts as well
            made_of[name] = None
    _write(path, plan, arrays, _PLAN, made_of)


def _finite_plan(arrays: dict[str, Any], fields: dict[str, Any]) -> FinitePlan:
    check_said(fields)
    grid = stored_grid(arrays["states"], arrays["coordinates"], arrays)
    plan = FinitePlan(grid=grid, actions=arrays["actions"], values=arrays["values"], **fields)
    check_policy(arrays, as_horizon(plan.horizon), grid.shape)
    check_discount(plan.discount, plan.horizon)
    return plan


def write_label_plan(path: str | os.PathLike[str], plan: LabelPlan) -> None:
    tables = {"actions": plan.actions, "values": plan.values}
    least, most = (None, None) if plan.returns is None else plan.returns
    _write(path, plan, tables, _WORLD_PLAN, {"reward": plan.text, "least": least, "most": most})


def _label_plan(arrays: dict[str, Any], fields: dict[str, Any]) -> LabelPlan:
    check_said_of_world(fields)
    spaces, horizon, text = fields["spaces"], as_horizon(fields["horizon"]), fields["reward"]
    if not isinstance(spaces.state, Discrete) or not isinstance(spaces.action, Discrete):
        raise ValueError(f"its states and actions must be labels, got {spaces!r:.200}")
    check_policy(arrays, horizon, (spaces.state.n, spaces.action.n))
    check_discount(fields["discount"], horizon)
    if text is not None:
        RewardFunction(text, spaces)  # which refuses what is no formula here
    described = {name: fields[name] for name in _WORLD_PLAN}
    return LabelPlan(
        **described,
        actions=arrays["actions"],
        values=arrays["values"],
        text=text,
        returns=_returns(fields, arrays["values"][0]),
    )


def _returns(fields: dict[str, Any], values: Any) -> tuple[float, float] | None:
    """The least and the largest return, between which its first values lie; older files have none."""
    if fields.get("least") is None and fields.get("most") is None:
        return None
    least, most = (as_number(fields.get(name), name) for name in ("least", "most"))
    rounding = 1e-9 * max(abs(least), abs(most))
    if not (least - rounding <= values.min() and values.max() <= most + rounding):
        raise ValueError(f"its values must lie between its least and largest return, got {least}..{most}")
    return least, most


def write_mesh_plan(path: str | os.PathLike[str], plan: MeshPlan) -> None:
    """A `MeshPlan`, or where its reward or termination is a Python function a `TabulatedPlan` of it."""
    is_end, arrays = plan.on_mesh.is_end, _mesh_arrays(plan)
    numbers = {"depth": plan.depth, "reward": plan.reward.text}
    if plan.reward.text is not None and isinstance(is_end, ObservedTermination):
        seen = {"seen": is_end.next_state, "seen_ends": is_end.terminated}
        _write(path, plan, {**arrays, **seen}, _WORLD_PLAN, numbers | _mesh_numbers(plan))
    elif plan.reward.text is not None and isinstance(is_end, GivenTermination) and is_end.text is not None:
        numbers["terminated"] = is_end.text
        _write(path, plan, arrays, _WORLD_PLAN, numbers | _mesh_numbers(plan))
    else:
        write_tabulated_plan(path, _tabulated(plan))


def write_tabulated_plan(path: str | os.PathLike[str], plan: TabulatedPlan) -> None:
    tables = {"rewards": plan.rewards, "going": plan.going}
    _write(path, plan, {**_mesh_arrays(plan), **tables}, _WORLD_PLAN, _mesh_numbers(plan))


def _tabulated(plan: MeshPlan) -> TabulatedPlan:
    """The plan with its reward and its ends at the nodes of the mesh."""
    if plan.reward.uses_step:
        raise ValueError(
            "a reward that changes with h and a termination that is a function cannot be written: "
            "give terminated as a formula"
        )
    on_mesh = plan.on_mesh
    rewards = [plan.reward(0, *on_mesh.pairs, next_state) for next_state in on_mesh.outcomes]
    return TabulatedPlan(
        **{name: getattr(plan, name) for name in (*_WORLD_PLAN, "on_mesh", "mesh_values", "expected")},
        rewards=np.mean(rewards, axis=0),
        going=np.array(on_mesh.going),
    )


def _mesh_arrays(plan: MeshPlan | TabulatedPlan) -> dict[str, Any]:
    """The learnt dynamics, the mesh and its values."""
    on_mesh, dynamics, values = plan.on_mesh, plan.on_mesh.predictor, plan.mesh_values
    if not isinstance(dynamics, Dynamics):
        raise ValueError("a plan through a simulator cannot be written: plan from data instead")
    arrays: dict[str, Any] = {
        "points": dynamics.basis,
        "weights": dynamics.weights,
        "middle": dynamics.middle,
        "unit": dynamics.unit,
        "ends": np.array(dynamics.ends),
        "centre": dynamics.scaled.scaling.centre,
        "scale": dynamics.scaled.scaling.scale,
        "low": values.mesh.low,
        "high": values.mesh.high,
        "sides": np.array(values.mesh.sides),
        "tables": values.tables,
        "to_go": values.to_go,
        "actions": on_mesh.actions,
    }
    if on_mesh.noisy:
        arrays["noise_points"], arrays["residuals"] = dynamics.noise_sample
    return arrays


def _mesh_numbers(plan: MeshPlan | TabulatedPlan) -> dict[str, Any]:
    values = plan.mesh_values
    return {"drift": values.drift, "expected": plan.expected, "noisy": plan.on_mesh.noisy}


def _mesh_plan(arrays: dict[str, Any], fields: dict[str, Any]) -> MeshPlan:
    check_said_of_world(fields)
    spaces, is_end = fields["spaces"], _ends(arrays, fields)
    parts = _mesh_parts(arrays, fields, is_end)
    return MeshPlan(
        **parts,
        reward=RewardFunction(fields["reward"], spaces),
        depth=as_depth(fields["depth"], len(parts["on_mesh"].actions)),
    )


def _ends(arrays: dict[str, Any], fields: dict[str, Any]) -> GivenTermination | ObservedTermination:
    if "terminated" in fields:
        return GivenTermination.of(fields["terminated"], fields["spaces"])
    space = fields["spaces"].state
    seen = space.checked(numbers(arrays, "seen", None, space.size), "seen")
    return ObservedTermination(space, seen, flags(arrays, "seen_ends", len(seen)))


def _tabulated_plan(arrays: dict[str, Any], fields: dict[str, Any]) -> TabulatedPlan:
    check_said_of_world(fields)
    parts = _mesh_parts(arrays, fields, None)
    check_table(arrays["rewards"], arrays["going"], parts["on_mesh"])
    return TabulatedPlan(**parts, **{name: arrays[name] for name in ("rewards", "going")})


def _mesh_parts(arrays: dict[str, Any], fields: dict[str, Any], is_end: Any) -> dict[str, Any]:
    """The fields that both kinds of plans on a mesh have."""
    spaces, noisy = fields["spaces"], fields["noisy"]
    scaled = _scaled(arrays, fields)
    check_mesh(arrays, spaces, scaled)
    points, weights, middle, unit = (arrays[name] for name in ("points", "weights", "middle", "unit"))
    low, high = arrays["ends"]
    dynamics = Dynamics(spaces, scaled, points, weights, middle, unit, (low, high))
    if noisy not in (True, False) or noisy != ("residuals" in arrays):
        raise ValueError(f"noisy must be True with residuals and False without, got {noisy!r:.100}")
    if noisy:
        dynamics.__dict__["noise_sample"] = arrays["noise_points"], arrays["residuals"]
    mesh = Mesh(arrays["low"], arrays["high"], tuple(map(int, arrays["sides"])), spaces.state.angular)
    values = MeshValues(mesh, arrays["tables"], arrays["to_go"], fields["discount"], fields["drift"])
    check_values(values, fields["horizon"])
    actions = checked_actions(spaces.action, arrays["actions"])
    on_mesh = MeshDynamics(spaces, dynamics, mesh, actions, is_end, dynamics if noisy else None)
    described = {name: fields[name] for name in _WORLD_PLAN}
    expected = as_number(fields["expected"], "expected")
    return {**described, "expected": expected, "on_mesh": on_mesh, "mesh_values": values}


def _scaled(arrays: dict[str, Any], fields: dict[str, Any]) -> ScaledModel:
    check_kind(fields["model"], Model, "its model", "a rewardfree Model")
    return ScaledModel(fields["model"], Scaling(arrays["centre"], arrays["scale"]))


def write_sampled_plan(path: str | os.PathLike[str], plan: SampledPlan) -> None:
    recursion, estimate = plan.recursion, plan.recursion.estimate
    if plan.reward.text is None:
        raise ValueError(
            "this plan's reward is a Python function, which no file can hold: plan with a formula instead, "
            f'such as "-{plan.spaces.state.names[0]}**2"'
        )
    regressions = [recursion.regression(h) for h in range(plan.horizon)]
    arrays: dict[str, Any] = {
        "centre": estimate.scaled.scaling.centre,
        "scale": estimate.scaled.scaling.scale,
        "actions": estimate.actions,
        "centres": np.array([regression.centre for regression in regressions]),
    }
    for h in range(estimate.steps):
        if estimate.count(h):
            samples, posterior = estimate.samples(h), estimate.posteriors[h]
            arrays |= {f"{name}{h}": getattr(samples, name) for name in _SAMPLES}
            if isinstance(posterior, Sparse):  # rounding, and another version, may choose others
                arrays[f"inducing{h}"] = posterior.basis_points
    for h, regression in enumerate(regressions):
        if regression.weights is not None:
            arrays[f"weights{h}"] = regression.weights
    _write(path, plan, arrays, _WORLD_PLAN, {"reward": plan.reward.text})


def _sampled_plan(arrays: dict[str, Any], fields: dict[str, Any]) -> SampledPlan:
    check_said_of_world(fields)
    spaces, horizon, discount = fields["spaces"], as_horizon(fields["horizon"]), fields["discount"]
    check_kind(fields["planner"], ValuePlanner, "its planner", "one that regresses values, such as Mean()")
    check_discount(discount, horizon)
    centres = numbers(arrays, "centres", horizon)
    scaled = _scaled(arrays, fields)
    scaled.check(spaces)
    source = MODEL_POSTERIORS if fields["source"] is None else fields["source"]
    actions = checked_actions(spaces.action, arrays["actions"])
    estimate = SampledEstimate(spaces, scaled, horizon, actions, source)
    for h in range(estimate.steps):
        if f"state{h}" in arrays:
            inducing = f"inducing{h}"
            points = numbers(arrays, inducing, None, len(spaces.groups)) if inducing in arrays else None
            estimate.load(h, _samples(arrays, h, spaces), points)
    reward = RewardFunction(fields["reward"], spaces)
    recursion = recursion_for(estimate, reward, fields["planner"], horizon, discount)
    for h in range(horizon):
        weights = arrays.get(f"weights{h}")
        check_regression(estimate, h, weights)
        recursion.remember(h, weights, float(centres[h]))
    described = {name: fields[name] for name in _WORLD_PLAN}
    return SampledPlan(**described, reward=reward, recursion=recursion)


def _samples(arrays: dict[str, Any], h: int, spaces: Spaces) -> Samples:
    """The samples of step h in a file."""
    state, action, next_state = (arrays[f"{name}{h}"] for name in _SAMPLES[:3])
    samples = Samples(
        spaces.state.checked(state, "state"),
        spaces.action.checked(action, "action"),
        spaces.state.checked(next_state, "next_state"),
        flags(arrays, f"terminated{h}", len(state)),
    )
    if not len(state) == len(action) == len(next_state) > 0:
        raise ValueError(f"its samples of step {h} must have equal lengths above 0")
    return samples


def _write(
    path: str | os.PathLike[str],
    plan: Plan,
    arrays: dict[str, Any],
    names: tuple[str, ...],
    more: dict[str, Any] | None = None,
) -> None:
    text = to_text({name: getattr(plan, name) for name in names} | (more or {}))
    write_arrays(path, type(plan).__name__, FILE_VERSION, {**arrays, "about": np.array(text)})

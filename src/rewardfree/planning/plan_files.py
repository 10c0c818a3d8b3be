"""Plans as files: arrays, and one text of JSON; no pickle, and no code."""

import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from rewardfree.data import Samples
from rewardfree.dynamics import Dynamics, GivenTermination, Mesh, MeshDynamics, ObservedTermination
from rewardfree.estimates import SampledEstimate
from rewardfree.files import kind_of, read_arrays, write_arrays
from rewardfree.model import MODEL_POSTERIORS
from rewardfree.planning.counted import LabelPlan
from rewardfree.planning.finite import FinitePlan
from rewardfree.planning.mesh.plan import MeshPlan, TabulatedPlan
from rewardfree.planning.mesh.values import MeshValues
from rewardfree.planning.planner import Plan, WorldPlan
from rewardfree.planning.sampled import SampledPlan, recursion_for
from rewardfree.registry import from_table, to_table
from rewardfree.rewards import RewardFunction, ends_of
from rewardfree.worlds import ScaledModel, Scaling
from rewardfree.worlds.grid import stored_grid

FILE_VERSION = 3
#: What every plan says about itself, and what every one on real states says besides.
_PLAN = ("horizon", "planner", "chosen_by", "model", "transitions", "discount")
_WORLD_PLAN = (*_PLAN, "spaces", "observation", "provenance")
#: The columns of the samples that a `SampledPlan` rests on.
_SAMPLES = ("state", "action", "next_state", "terminated")


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
    arrays = read_arrays(path, kind, FILE_VERSION)
    try:
        header = json.loads(str(arrays.pop("about")))
        fields = {name: from_table(value) for name, value in header.items()}
        return readers[kind](arrays, fields)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ValueError(f"{path} does not hold a plan: {error}") from error


def write_finite_plan(path: str | os.PathLike[str], plan: FinitePlan) -> None:
    arrays = {
        "states": plan.grid.states,
        "coordinates": plan.grid.actions,
        "actions": plan.actions,
        "values": plan.values,
        **plan.grid.named_arrays(),
    }
    model = plan.model
    try:
        to_table(model)
    except ValueError:  # a kernel of another library, without which the plan acts as well
        model = None
    _write(path, plan, arrays, _PLAN, {"model": model})


def _finite_plan(arrays: dict[str, Any], fields: dict[str, Any]) -> FinitePlan:
    states, coordinates, actions = arrays["states"], arrays["coordinates"], arrays["actions"]
    grid = stored_grid(states, coordinates, arrays)
    if actions.shape != arrays["values"].shape or actions.shape != (fields["horizon"], len(grid.states)):
        raise ValueError(f"its actions have shape {actions.shape}")
    return FinitePlan(grid=grid, actions=actions, values=arrays["values"], **fields)


def write_label_plan(path: str | os.PathLike[str], plan: LabelPlan) -> None:
    tables = {"actions": plan.actions, "values": plan.values}
    _write(path, plan, tables, _WORLD_PLAN, {"reward": plan.text})


def _label_plan(arrays: dict[str, Any], fields: dict[str, Any]) -> LabelPlan:
    actions, values, spaces = arrays["actions"], arrays["values"], fields["spaces"]
    if actions.shape != values.shape or actions.shape != (fields["horizon"], spaces.state.n):
        raise ValueError(f"its actions have shape {actions.shape}")
    spaces.action.checked(actions.reshape(-1), "its actions")
    described = {name: fields[name] for name in _WORLD_PLAN}
    tables = {"actions": actions, "values": values}
    return LabelPlan(**described, **tables, text=fields["reward"])


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
    outcomes = on_mesh.outcomes
    rewards = [plan.reward(0, *on_mesh.pairs, next_state) for next_state in outcomes]
    going = [np.where(on_mesh.is_end(next_state), 0.0, 1.0 / len(outcomes)) for next_state in outcomes]
    return TabulatedPlan(
        **{name: getattr(plan, name) for name in (*_WORLD_PLAN, "on_mesh", "mesh_values", "expected")},
        rewards=np.mean(rewards, axis=0),
        going=np.array(going),
    )


def _mesh_arrays(plan: MeshPlan | TabulatedPlan) -> dict[str, Any]:
    """The learnt dynamics, the mesh and its values."""
    on_mesh, dynamics, values = plan.on_mesh, plan.on_mesh.predictor, plan.mesh_values
    if not isinstance(dynamics, Dynamics):
        raise ValueError("a plan through a simulator cannot be written: plan from data instead")
    arrays: dict[str, Any] = {
        "points": dynamics.points,
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
    return {**arrays, "residuals": dynamics.residuals} if on_mesh.noisy else arrays


def _mesh_numbers(plan: MeshPlan | TabulatedPlan) -> dict[str, Any]:
    values = plan.mesh_values
    return {"drift": values.drift, "expected": plan.expected, "noisy": plan.on_mesh.noisy}


def _mesh_plan(arrays: dict[str, Any], fields: dict[str, Any]) -> MeshPlan:
    spaces = fields["spaces"]
    is_end: Any
    if "terminated" in fields:
        is_end = GivenTermination(spaces.state, *ends_of(fields["terminated"], spaces))
    else:
        is_end = ObservedTermination(spaces.state, arrays["seen"], arrays["seen_ends"])
    return MeshPlan(
        **_mesh_parts(arrays, fields, is_end),
        reward=RewardFunction(fields["reward"], spaces),
        depth=fields["depth"],
    )


def _tabulated_plan(arrays: dict[str, Any], fields: dict[str, Any]) -> TabulatedPlan:
    tables = {name: arrays[name] for name in ("rewards", "going")}
    return TabulatedPlan(**_mesh_parts(arrays, fields, None), **tables)


def _mesh_parts(arrays: dict[str, Any], fields: dict[str, Any], is_end: Any) -> dict[str, Any]:
    """The fields that both kinds of plans on a mesh have."""
    spaces = fields["spaces"]
    scaled = ScaledModel(fields["model"], Scaling(arrays["centre"], arrays["scale"]))
    points, weights, middle, unit = (arrays[name] for name in ("points", "weights", "middle", "unit"))
    low, high = arrays["ends"]
    dynamics = Dynamics(spaces, scaled, points, weights, middle, unit, (low, high))
    if "residuals" in arrays:
        dynamics.__dict__["residuals"] = arrays["residuals"]
    mesh = Mesh(arrays["low"], arrays["high"], tuple(map(int, arrays["sides"])), spaces.state.angular)
    if arrays["tables"].shape != (len(arrays["to_go"]), mesh.size):
        raise ValueError(f"its tables have shape {arrays['tables'].shape} for {mesh.size} nodes")
    values = MeshValues(mesh, arrays["tables"], arrays["to_go"], fields["discount"], fields["drift"])
    on_mesh = MeshDynamics(spaces, dynamics, mesh, arrays["actions"], is_end, fields["noisy"])
    described = {name: fields[name] for name in (*_WORLD_PLAN, "expected")}
    return {**described, "on_mesh": on_mesh, "mesh_values": values}


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
            samples = estimate.samples(h)
            arrays |= {f"{name}{h}": getattr(samples, name) for name in _SAMPLES}
    for h, regression in enumerate(regressions):
        if regression.weights is not None:
            arrays[f"weights{h}"] = regression.weights
    source = estimate.source if estimate.source.own_posteriors else None
    more = {"source": source, "reward": plan.reward.text}
    _write(path, plan, arrays, _WORLD_PLAN, more)


def _sampled_plan(arrays: dict[str, Any], fields: dict[str, Any]) -> SampledPlan:
    spaces, horizon, discount = fields["spaces"], fields["horizon"], fields["discount"]
    scaled = ScaledModel(fields["model"], Scaling(arrays["centre"], arrays["scale"]))
    source = fields["source"] or MODEL_POSTERIORS
    estimate = SampledEstimate(spaces, scaled, horizon, arrays["actions"], source)
    for h in range(estimate.steps):
        if f"state{h}" in arrays:
            estimate.load(h, Samples(*(arrays[f"{name}{h}"] for name in _SAMPLES)))
    reward = RewardFunction(fields["reward"], spaces)
    recursion = recursion_for(estimate, reward, fields["planner"], horizon, discount)
    for h in range(horizon):
        recursion.remember(h, arrays.get(f"weights{h}"), float(arrays["centres"][h]))
    described = {name: fields[name] for name in _WORLD_PLAN}
    return SampledPlan(**described, reward=reward, recursion=recursion)


def _write(
    path: str | os.PathLike[str],
    plan: Plan,
    arrays: dict[str, Any],
    names: tuple[str, ...],
    more: dict[str, Any] | None = None,
) -> None:
    fields = {name: getattr(plan, name) for name in names} | (more or {})
    text = json.dumps({name: to_table(value) for name, value in fields.items()}, sort_keys=True)
    write_arrays(path, type(plan).__name__, FILE_VERSION, {**arrays, "about": np.array(text)})

"""Plans as files: arrays, and one text of JSON; no pickle, and no code."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from rewardfree.data import Fitted
from rewardfree.dynamics import Dynamics, GivenEndings, Mesh, SeenEndings, Transport
from rewardfree.dynamics.observed import Observed, Recursion
from rewardfree.files import kind_of, read_arrays, write_arrays
from rewardfree.planning.finite import Plan
from rewardfree.planning.fitted import FittedPlan, recursion_for
from rewardfree.planning.meshplan import MeshPlan
from rewardfree.planning.tabulated import TabulatedPlan
from rewardfree.planning.values import Values
from rewardfree.rewards import RewardFunction, ends_of
from rewardfree.tables import from_table, table_of
from rewardfree.worlds.grid import Grid
from rewardfree.worlds.scaling import Scaling

FILE_VERSION = 1
_ABOUT = ("spaces", "observation", "horizon", "planner", "provenance")


def load_plan(path: str | os.PathLike[str]) -> Any:
    """The plan that `save` wrote; a damaged, foreign or newer file is refused."""
    kind = kind_of(path)
    readers = {
        "Plan": _finite_plan,
        "MeshPlan": _mesh_plan,
        "TabulatedPlan": _mesh_plan,
        "FittedPlan": _fitted_plan,
    }
    if kind in ("Experience", "Transitions"):
        raise ValueError(f"{path} holds data: use rf.load, and rf.plan for a plan")
    if kind not in readers:
        read_arrays(path, "plan", FILE_VERSION)  # which says what is wrong
    arrays = read_arrays(path, kind, FILE_VERSION)
    try:
        about = {name: from_table(value) for name, value in json.loads(str(arrays.pop("about"))).items()}
        return readers[kind](arrays, about)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ValueError(f"{path} does not hold a plan: {error}") from error


def write_finite_plan(path: str | os.PathLike[str], plan: Plan) -> None:
    arrays = {
        "states": plan.grid.states,
        "coordinates": plan.grid.actions,
        "actions": plan.actions,
        "values": plan.values,
    }
    _write(path, "Plan", arrays, {"horizon": plan.horizon, "planner": plan.planner})


def _finite_plan(arrays: dict[str, Any], about: dict[str, Any]) -> Plan:
    actions = arrays["actions"]
    grid = Grid.of(
        arrays["states"], arrays["coordinates"], (len(arrays["states"]), len(arrays["coordinates"]))
    )
    if actions.shape != arrays["values"].shape or actions.shape != (about["horizon"], len(grid.states)):
        raise ValueError(f"its actions have shape {actions.shape}")
    return Plan(grid, about["horizon"], about["planner"], actions, arrays["values"])


def write_mesh_plan(path: str | os.PathLike[str], plan: MeshPlan) -> None:
    transport, dynamics, values = plan.transport, plan.transport.moves, plan.values
    if not isinstance(dynamics, Dynamics):
        raise ValueError("a plan through a simulator cannot be written: plan from data instead")
    arrays: dict[str, Any] = {
        "points": dynamics.points,
        "weights": dynamics.weights,
        "middle": dynamics.middle,
        "unit": dynamics.unit,
        "ends": np.array(dynamics.ends),
        "centre": dynamics.fitted.scaling.centre,
        "scale": dynamics.fitted.scaling.scale,
        "low": values.mesh.low,
        "high": values.mesh.high,
        "sides": np.array(values.mesh.sides),
        "tables": values.tables,
        "to_go": values.to_go,
        "actions": transport.actions,
    }
    if transport.noisy:
        arrays["residuals"] = dynamics.residuals
    about = {name: getattr(plan, name) for name in _ABOUT} | {
        "model": dynamics.model,
        "discount": values.discount,
        "drift": values.drift,
        "depth": plan.depth,
        "expected": plan.expected,
        "noisy": transport.noisy,
        "reward": plan.reward.text,
    }
    ends = transport.is_end
    if plan.reward.text is not None and isinstance(ends, SeenEndings):
        _write(path, "MeshPlan", {**arrays, "seen": ends.following, "seen_ends": ends.terminated}, about)
    elif plan.reward.text is not None and isinstance(ends, GivenEndings) and ends.text is not None:
        _write(path, "MeshPlan", arrays, {**about, "terminated": ends.text})
    else:
        if plan.reward.uses_step:
            raise ValueError(
                "a reward that changes with h and a termination that is a function cannot be written: "
                "give terminated as a formula"
            )
        outcomes = transport.outcomes
        rewards = [plan.reward(0, *transport.pairs, following) for following in outcomes]
        going = [np.where(ends(following), 0.0, 1.0 / len(outcomes)) for following in outcomes]
        tables = {"rewards": np.mean(rewards, axis=0), "going": np.array(going)}
        _write(path, "TabulatedPlan", {**arrays, **tables}, about)


def _mesh_plan(arrays: dict[str, Any], about: dict[str, Any]) -> MeshPlan | TabulatedPlan:
    spaces = about["spaces"]
    fitted = Fitted(about["model"], Scaling(arrays["centre"], arrays["scale"]))
    points, weights, middle, unit = (arrays[name] for name in ("points", "weights", "middle", "unit"))
    low, high = arrays["ends"]
    dynamics = Dynamics(spaces, fitted, points, weights, middle, unit, (low, high))
    if "residuals" in arrays:
        dynamics.__dict__["residuals"] = arrays["residuals"]
    mesh = Mesh(arrays["low"], arrays["high"], tuple(map(int, arrays["sides"])), spaces.state.angular)
    if arrays["tables"].shape != (len(arrays["to_go"]), mesh.size):
        raise ValueError(f"its tables have shape {arrays['tables'].shape} for {mesh.size} nodes")
    values = Values(mesh, arrays["tables"], arrays["to_go"], about["discount"], about["drift"])
    own = {name: about[name] for name in _ABOUT}
    ends: Any = None
    if "terminated" in about:
        ends = GivenEndings(spaces.state, *ends_of(about["terminated"], spaces))
    elif "seen" in arrays:
        ends = SeenEndings(spaces.state, arrays["seen"], arrays["seen_ends"])
    elif "rewards" not in arrays:
        raise KeyError("terminated")
    transport = Transport(spaces, dynamics, mesh, arrays["actions"], ends, about["noisy"])
    if "rewards" in arrays:
        tables = {"rewards": arrays["rewards"], "going": arrays["going"], "expected": about["expected"]}
        return TabulatedPlan(**own, **tables, transport=transport, values=values)
    reward = RewardFunction(about["reward"], spaces)
    numbers = {name: about[name] for name in ("depth", "expected")}
    return MeshPlan(**own, **numbers, reward=reward, transport=transport, values=values)


def write_fitted_plan(path: str | os.PathLike[str], plan: FittedPlan) -> None:
    recursion, observed = plan.recursion, plan.recursion.observed
    if plan.reward.text is None:
        raise ValueError(
            "this plan's reward is a Python function, which no file can hold: plan with a formula instead, "
            f'such as "-{plan.spaces.state.names[0]}**2"'
        )
    arrays: dict[str, Any] = {
        "centre": observed.fitted.scaling.centre,
        "scale": observed.fitted.scaling.scale,
        "actions": observed.actions,
        "centres": np.array([recursion.learnt(h)[1] for h in range(plan.horizon)]),
    }
    for h in range(len(observed.designs)):
        if observed.count(h):
            names = ("state", "action", "following", "ended")
            arrays |= {f"{name}{h}": column for name, column in zip(names, observed.seen(h), strict=True)}
    for h in range(plan.horizon):
        weights = recursion.learnt(h)[0]
        if weights is not None:
            arrays[f"weights{h}"] = weights
    about = {name: getattr(plan, name) for name in _ABOUT} | {
        "model": observed.fitted.model,
        "designer": observed.designer,
        "discount": recursion.discount,
        "reward": plan.reward.text,
    }
    _write(path, "FittedPlan", arrays, about)


def _fitted_plan(arrays: dict[str, Any], about: dict[str, Any]) -> FittedPlan:
    spaces, horizon = about["spaces"], about["horizon"]
    fitted = Fitted(about["model"], Scaling(arrays["centre"], arrays["scale"]))
    observed = Observed(spaces, fitted, horizon, arrays["actions"], about.get("designer"))
    for h in range(len(observed.designs)):
        if f"state{h}" in arrays:
            observed.load(h, *(arrays[f"{name}{h}"] for name in ("state", "action", "following", "ended")))
    reward = RewardFunction(about["reward"], spaces)
    recursion: Recursion = recursion_for(observed, reward, about["planner"], horizon, about["discount"])
    for h in range(horizon):
        recursion.remember(h, arrays.get(f"weights{h}"), float(arrays["centres"][h]))
    own = {name: about[name] for name in _ABOUT}
    return FittedPlan(**own, reward=reward, recursion=recursion)


def _write(path: str | os.PathLike[str], kind: str, arrays: dict[str, Any], about: dict[str, Any]) -> None:
    text = json.dumps({name: table_of(value) for name, value in about.items()}, sort_keys=True)
    write_arrays(path, kind, FILE_VERSION, {**arrays, "about": np.array(text)})

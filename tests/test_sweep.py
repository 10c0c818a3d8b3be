"""A sweep: from a file to units."""

from dataclasses import replace

import numpy as np
import pytest

import rewardfree as rf
from rewardfree.experiments.sweep import Sweep
from rewardfree.experiments.unit import NO_DATA, InstanceCache, ReferenceUnit
from small_sweep import DELTA, TOML, runs_of, table


@pytest.fixture
def sweep(tmp_path):
    (tmp_path / "small.toml").write_text(TOML)
    return Sweep.load(tmp_path / "small.toml")


# --- from a file to units ---


def test_every_strategy_on_every_world_with_the_models_meant_for_it(sweep):
    assert sweep.name == "small"
    units, pairs = runs_of(sweep), {unit.names for unit in runs_of(sweep)}
    assert len(pairs) == 6 and ("corridor_world", "se", "online") not in pairs
    assert [unit.seeds for unit in units[:3]] == [(0, 1), (2, 3), (4,)]
    assert len({unit.key for unit in units}) == len(units) == 18
    assert len({unit.key for unit in sweep.units}) == len(sweep.units) == 18 + 3


def test_every_panel_has_what_needs_no_data(sweep):
    panels = {unit.names[:2] for unit in runs_of(sweep)}
    references = [unit for unit in sweep.units if isinstance(unit, ReferenceUnit)]
    assert {unit.names for unit in references} == {(*panel, NO_DATA) for panel in panels}
    instance = rf.worlds.corridor_world(states=10, actions=6)
    world, reward = instance.world, instance.reward
    (own,) = [unit for unit in references if unit.names[0] == "corridor_world"]
    myopic, random = own.run(InstanceCache())
    found = rf.describe(world, reward)
    assert (myopic.planner, myopic.start, myopic.max) == ("myopic", found.myopic.start, found.myopic.max)
    assert (random.planner, random.start, random.max) == ("random", found.random.start, found.random.max)
    assert (myopic.samples, myopic.episodes, myopic.steps) == (0, 0, 0)


def test_every_factory_of_worlds_can_be_named(tmp_path):
    kernel, size = {"type": "Matern", "nu": 1.5, "lengthscale": 0.3}, {"states": 5, "actions": 4}
    options = {
        "rkhs_world": {"kernel": kernel, **size},
        "portal_world": {"states": 20},
        "rooms_world": {"side": 3},
        "riverswim_world": {},
        "bump_world": {"world": {"type": "garnet_world", **size}, "width": 0.3},
        "hard_world": {"instance": "rooms", "reward": 4},
    }
    tables = [{"type": name, **options.get(name, size)} for name in rf.worlds.FACTORIES]
    sweep = Sweep.of({**table(worlds=tables, models=[DELTA], runs=1), "samples_per_step": [2]})
    assert {unit.names[0] for unit in sweep.units} == set(rf.worlds.FACTORIES)
    records = [record for unit in sweep.units for record in unit.run(InstanceCache())]
    assert len(records) == len(rf.worlds.FACTORIES) * (2 + 2 * 2)
    assert min(record.start for record in records) >= -1e-12


def test_a_sweep_without_a_name_is_called_as_its_file(tmp_path):
    (tmp_path / "mine.toml").write_text(TOML.replace('name = "small"', ""))
    assert Sweep.load(tmp_path / "mine.toml").name == "mine"


def test_planners_may_be_meant_for_some_strategies():
    planners = [{"type": "Mean"}, {"type": "Pessimistic", "beta": 1.0, "for": ["online"]}]
    found = {
        unit.names[2]: [name for name, _ in unit.planners]
        for unit in runs_of(Sweep.of(table(planners=planners)))
    }
    assert found == {"Generative": ["Mean"], "online": ["Mean", "Pessimistic"]}
    with pytest.raises(ValueError, match="no planner is meant for strategy Generative"):
        Sweep.of(table(planners=planners[1:]))
    with pytest.raises(ValueError, match="planner Mean is meant for qiu, which is no strategy here"):
        Sweep.of(table(planners=[{"type": "Mean", "for": ["qiu"]}]))


def test_a_key_is_its_content(sweep):
    unit = runs_of(sweep)[0]
    again = Sweep.of(dict(reversed(table().items())), "small").units
    assert unit in again
    others = [
        replace(unit, seeds=(0, 1, 2)), replace(unit, dtype="float32"), replace(unit, checkpoints=(3, 7)),
        replace(unit, device="cuda"), replace(unit, planners=unit.planners[:1]),
        replace(unit, world=unit.world.replace("0.5", "0.25")),
    ]  # fmt: skip
    assert len({each.key for each in [unit, *others]}) == 7


def test_a_unit_is_a_learning_curve():
    unit = next(unit for unit in runs_of(Sweep.of(table())) if unit.names == ("paper", "matern", "online"))
    kernel = rf.Matern(1.5, 0.1)
    instance = rf.rkhs_world(kernel, 0.5, states=12, actions=10, coarse=4)
    world, reward = instance.world, instance.reward
    curves = rf.experiments.learning_curves(
        world, rf.Model(kernel, 0.5), rf.Online(0.1), reward, {"mean": rf.Mean()},
        samples_per_step=[3, 6], seeds=[0, 1],
    )["mean"]  # fmt: skip
    records = [record for record in unit.run(InstanceCache()) if record.planner == "mean"]
    assert [(r.seed, r.samples, r.episodes, r.steps) for r in records] == [
        (0, 3, 30, 165), (0, 6, 60, 330), (1, 3, 30, 165), (1, 6, 60, 330),
    ]  # fmt: skip
    np.testing.assert_allclose([r.start for r in records], curves.start.reshape(-1), rtol=0, atol=1e-10)
    np.testing.assert_allclose([r.max for r in records], curves.max.reshape(-1), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"colour": 1}, "unknown settings colour: a sweep has batch, "),
        ({"worlds": []}, r"needs tables \[\[worlds\]\], with two brackets"),
        ({"worlds": {"type": "corridor_world"}}, r"needs tables \[\[worlds\]\], with two brackets"),
        ({"models": [1]}, r"needs tables \[\[models\]\], with two brackets"),
        ({"worlds": [{"type": "corridor_world", "colour": 1}]}, "world corridor_world: .*colour"),
        ({"worlds": [{"type": "river"}]}, "world must be one of bump_world, corridor_world, "),
        ({"models": [DELTA | {"for": "paper"}]}, "`for` must be a list of names of worlds, got 'paper'"),
        ({"models": [DELTA | {"for": 3}]}, "`for` must be a list"),
        ({"strategies": [{"type": "Uniform", "for": ["paper"]}]}, "strategy Uniform: .*for"),
        ({"planners": [{"type": "Mean", "name": "../x"}]}, "a name must be text without slashes"),
        ({"name": ""}, "a name must be text"),
        ({"device": "tpu"}, 'device must be "cpu"'),
        ({"dtype": "int8"}, "dtype must be float64 or float32"),
        ({"seed": 2**63 - 1}, r"seeds must stay below 2\^63"),
        ({"samples_per_step": 5}, "give one list of checkpoints"),
        ({"transitions": [10]}, "give one list of checkpoints"),
        ({"runs": 0}, "runs must be a whole number of at least 1"),
        ({"planners": [{"type": "Mean"}, {"type": "Mean"}]}, "two .* are called 'Mean'"),
        (
            {"planners": [{"type": "Best"}]},
            "planner must be one of CountingPlanner, DefaultPlanner, DynamicsPlanner, Mean, .*, or module",
        ),
        (
            {"planners": [{"type": "DynamicsPlanner"}]},
            "the planner DynamicsPlanner is for real states, a sweep for finite ones",
        ),
        ({"planners": [{"name": "x"}]}, 'must be a table with a type, such as {type = "CountingPlanner"}'),
        ({"strategies": [{"type": "Online"}]}, "strategy Online: .*beta"),
        ({"strategies": [{"type": "Online", "beta": -1}]}, "beta must be at least 0"),
        ({"strategies": [{"type": "os:abort"}]}, "would import and run code of its own: say --allow-imports"),
        ({"models": [{"type": "Model", "kernel": {"type": "Mattern"}}]}, "kernel must be one of"),
        (
            {"models": [{"type": "Model", "kernel": {"type": "Delta"}, "ridge": 1.0, "for": ["x"]}]},
            "meant for",
        ),
    ],
)
def test_mistakes_are_named(changes, said):
    with pytest.raises(ValueError, match=said):
        Sweep.of(table(**changes))


def test_a_mistake_in_a_file_names_the_file(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text("runs = = 3")
    with pytest.raises(ValueError, match=r"bad\.toml: "):
        Sweep.load(path)


def test_own_objects_are_imported_when_allowed(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("from rewardfree import Qiu\n\ndef cautious():\n    return Qiu(0.05)\n")
    monkeypatch.syspath_prepend(tmp_path)
    own = runs_of(Sweep.of(table(strategies=[{"type": "mine:cautious"}]), allow_imports=True))
    same = runs_of(Sweep.of(table(strategies=[{"type": "Qiu", "beta": 0.05}])))
    assert own[0].run(InstanceCache(allow_imports=True)) == same[0].run(InstanceCache())
    with pytest.raises(ValueError, match="'mine:bold' cannot be imported"):
        Sweep.of(table(strategies=[{"type": "mine:bold"}]), allow_imports=True)
    with pytest.raises(ValueError, match=r"the planner mine:cautious must be .*, got Qiu"):
        Sweep.of(table(planners=[{"type": "mine:cautious"}]), allow_imports=True)

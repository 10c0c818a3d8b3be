"""docs/extending.md: a kernel, a strategy, a planner and a world from outside the package."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rewardfree as rf
from rewardfree import registry

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
MODULES = {block.split("\n", 1)[0].removeprefix("# "): block for block in BLOCKS if block.startswith("# my_")}
MOST_LINES = 40
(SWEEP,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.S)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The page's modules, importable, and their objects by name."""
    for name, text in MODULES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in MODULES:
        sys.modules.pop(name.removesuffix(".py"), None)


def from_module(name, thing):
    return getattr(importlib.import_module(name), thing)


def test_the_page_shows_four_modules_that_fit_a_screen():
    assert set(MODULES) == {"my_kernel.py", "my_strategy.py", "my_planner.py", "my_world.py"}
    assert max(len(text.splitlines()) for text in MODULES.values()) <= MOST_LINES


def test_a_kernel(own):
    kernel = from_module("my_kernel", "RationalQuadratic")(lengthscale=0.3, alpha=2.0)
    x = np.random.default_rng(0).random((6, 2))
    expected = [[(1.0 + ((u - v) ** 2).sum() / (4.0 * 0.09)) ** -2.0 for v in x] for u in x]
    np.testing.assert_allclose(kernel(x), expected, rtol=1e-12)
    assert (2.0 * kernel + rf.Linear()).diag(x).shape == (6,)


def test_a_strategy_and_a_planner_on_a_finite_world(own):
    instance = rf.worlds.corridor_world(states=12, actions=5, horizon=4)
    model = rf.Model(from_module("my_kernel", "RationalQuadratic")(), ridge=0.1, pooled=True)
    strategy, planner = from_module("my_strategy", "Wander")(period=3), from_module("my_planner", "Careful")()
    data = rf.explore(instance.world, model, strategy, episodes=10, seed=1)
    runs = rf.explore_many(instance.world, model, strategy, episodes=10, seeds=[0, 1])
    np.testing.assert_array_equal(runs[1].state, data.state)
    plan = rf.plan(data, instance.reward, planner)
    same = rf.plan(data, instance.reward, rf.Pessimistic(10.0 / 40**0.5, clip="range"))
    np.testing.assert_array_equal(plan.actions, same.actions)
    assert plan.chosen_by == planner and "Careful" in repr(plan)


def test_a_world_and_a_strategy_on_real_states(own):
    world = from_module("my_world", "Cart")()
    for strategy in (None, from_module("my_strategy", "Wander")()):
        data = rf.explore(world, strategy=strategy, transitions=120, seed=0)
        plan = rf.plan(data, "-(x - 0.5)**2 - 0.1*push**2")
        score = rf.rollouts(world, plan, "-(x - 0.5)**2 - 0.1*push**2", episodes=3)
        still = -20 * 0.25  # what never pushing gains from the middle
        assert score.mean > still
    careful = rf.plan(data, "where(x > 0, 1, 0)", from_module("my_planner", "Careful")())
    assert isinstance(careful, rf.planning.SampledPlan)


def test_objects_with_a_name_go_through_files(own, tmp_path, monkeypatch):
    """Without one they are refused, with what to do."""
    for known in (registry._MAKERS["kernel"], registry._MAKERS["strategy"], registry._CLASSES):
        for name in ("RationalQuadratic", "Wander"):
            monkeypatch.delitem(known, name, raising=False)  # and again at the end: names last
    kernel, strategy = from_module("my_kernel", "RationalQuadratic"), from_module("my_strategy", "Wander")
    world = rf.worlds.corridor_world(states=12, actions=5, horizon=4).world
    data = rf.explore(world, rf.Model(kernel(0.4), ridge=0.1), strategy(3), samples_per_step=4)
    with pytest.raises(ValueError, match=r"and classes of yours that were given a name"):
        data.save(tmp_path / "data.npz")
    for kind, made in (("kernel", kernel), ("strategy", strategy)):
        monkeypatch.setitem(registry._MAKERS[kind], made.__name__, made)
        monkeypatch.setitem(registry._CLASSES, made.__name__, made)
        assert registry.registered(kind)(made) is made
    data.save(tmp_path / "data.npz")
    again = rf.load(tmp_path / "data.npz")
    assert (again.model, again.strategy) == (data.model, data.strategy)


def test_a_name_that_is_taken_is_refused():
    with pytest.raises(ValueError, match=r"Mean is already the name of .*alg1.Mean.*: choose another one"):

        @registry.registered("planner")
        class Mean(rf.planning.Planner):
            def plan(self, request):
                raise NotImplementedError

    assert registry._MAKERS["planner"]["Mean"] is rf.Mean


def test_all_of_it_in_a_sweep_on_the_command_line(own):
    (own / "sweep.toml").write_text(SWEEP)
    program = Path(sys.executable).parent / "rewardfree"
    command = [program, "sweep", "sweep.toml", "--out", "results", "--jobs", "1"]
    paths = os.pathsep.join([str(own), os.environ.get("PYTHONPATH", "")])
    options = {
        "cwd": own,
        "env": {**os.environ, "PYTHONPATH": paths},
        "capture_output": True,
        "text": True,
    }
    refused = subprocess.run(command, **options)
    assert refused.returncode == 2 and "--allow-imports" in refused.stderr
    done = subprocess.run([*command, "--allow-imports"], **options)
    assert done.returncode == 0, done.stderr
    table = subprocess.run([program, "export", "results"], **options).stdout
    assert table.count("my_planner:Careful") == table.count(",Mean,") == 4  # two runs at two checkpoints

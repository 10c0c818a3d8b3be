"""Plans as files: they come back as they were, and what is no plan is refused."""

import json
import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import rewardfree as rf
from reference_mesh import CLIMB, QUADRATIC, Cliff, H, Linear, Stairs, X, cliff_plan, explored, linear_plan
from reference_runs import small_world
from rewardfree import DynamicsPlanner
from rewardfree.planning import PlanRequest
from rewardfree.planning.mesh.plan import TabulatedPlan
from rewardfree.planning.plan_files import FILE_VERSION
from rewardfree.worlds import LabelledWorld

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(params=["seen ends", "formula", "noisy", "no horizon", "clock", "angles", "settled", "deep"])
def stored(request):
    stairs = explored(Stairs, 80)
    return {
        "seen ends": lambda: rf.plan(stairs, CLIMB, horizon=20),
        "formula": lambda: rf.plan(stairs, CLIMB, horizon=20, terminated="abs(x) >= 3"),
        "noisy": cliff_plan,
        "no horizon": lambda: linear_plan(horizon=math.inf, discount=0.9),
        "clock": lambda: linear_plan("-(1 + h)*x**2 - 0.1*u**2"),
        "settled": lambda: linear_plan(f"{QUADRATIC} + 2", horizon=300),
        "deep": lambda: rf.plan(stairs, CLIMB, DynamicsPlanner(sides=9, depths=(3,)), horizon=20),
        "angles": lambda: rf.plan(
            explored("Pendulum-v1", 60), "-theta**2", DynamicsPlanner(sides=15), horizon=5
        ),
    }[request.param]()


def test_a_plan_for_a_formula_comes_back_exactly(stored, tmp_path):
    stored.save(tmp_path / "plan.npz")
    again = rf.load_plan(tmp_path / "plan.npz")
    assert type(again) is rf.planning.MeshPlan and repr(again) == repr(stored)
    d = stored.spaces.state.size
    state = np.random.default_rng(0).uniform(-1.9, 0.9, (40, d))
    for h in (0, 3):
        np.testing.assert_array_equal(again.act(state, h), stored.act(state, h))
        np.testing.assert_array_equal(again.value(state, h), stored.value(state, h))
    assert again.provenance == stored.provenance and again.observation == stored.observation
    assert again.planner == stored.planner and again.reward.text == stored.reward.text
    again.save(tmp_path / "again.npz")
    np.testing.assert_array_equal(rf.load_plan(tmp_path / "again.npz").act(state), stored.act(state))


def as_function(state, action):
    return -(state[:, 0] ** 2) - 0.1 * action[:, 0] ** 2


def function_plan():
    return rf.plan(explored(), as_function, horizon=H, terminated="abs(x) > 1.9")


@pytest.mark.parametrize("horizon", [H, None])
def test_a_plan_for_a_function_comes_back_as_a_table(tmp_path, horizon):
    plan = rf.plan(explored(), as_function, horizon=horizon, discount=0.95)
    plan.save(tmp_path / "plan.npz")
    again = rf.load_plan(tmp_path / "plan.npz")
    assert type(again) is TabulatedPlan and "TabulatedPlan" in repr(again) and again.discount == 0.95
    np.testing.assert_array_equal(again.value(X), plan.value(X))
    assert isinstance(again.value(X[0]), float)
    first, second = (rf.rollouts(Linear(), one, QUADRATIC, 20).returns for one in (plan, again))
    np.testing.assert_allclose(second, first, rtol=0, atol=0.02)  # of a return of about -0.5
    np.testing.assert_array_equal(again.act(plan.on_mesh.mesh.nodes, 2), plan.act(plan.on_mesh.mesh.nodes, 2))


def test_a_table_can_be_written_again(tmp_path):
    plan = rf.plan(explored(), as_function, horizon=H, discount=0.95)
    plan.save(tmp_path / "plan.npz")
    once = rf.load_plan(tmp_path / "plan.npz")
    once.save(tmp_path / "again.npz")
    twice = rf.load_plan(tmp_path / "again.npz")
    assert type(twice) is TabulatedPlan and repr(twice) == repr(once)
    states = np.random.default_rng(0).uniform(-1.9, 1.9, (40, 1))
    for h in (0, 3, H - 1):
        np.testing.assert_array_equal(twice.act(states, h), once.act(states, h))
        np.testing.assert_array_equal(twice.value(states, h), once.value(states, h))
    first, second = (arrays_of(tmp_path / name) for name in ("plan.npz", "again.npz"))
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(second[name], array, err_msg=name)


PER_STEP = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1)
POOLED = rf.Model(rf.AutoKernel(), pooled=True)


def plan_of(kind, planner):
    """A plan of that kind, made by a planner or, if it is None, by the default."""
    if kind == "finite":
        data = rf.explore(small_world(), PER_STEP, rf.Online(0.5), steps=60)
        return rf.plan(data, "0.1*s", planner)
    if kind == "sampled labels":
        data = rf.explore(LabelledWorld(small_world()), PER_STEP, rf.Online(0.5), steps=60)
        return rf.plan(data, "0.1*s", planner)
    reward = as_function if kind == "table" else QUADRATIC
    data = rf.explore(Linear(), POOLED, rf.Uniform(), steps=60)
    return rf.plan(data, reward, planner)


@pytest.mark.parametrize(
    ("kind", "planner"),
    [
        ("finite", None),
        ("finite", rf.Pessimistic(0.3)),
        ("sampled labels", None),
        ("sampled labels", rf.Optimistic(0.3, clip="range")),
        ("sampled", rf.Pessimistic(0.3, clip="range")),
        ("mesh", None),
        ("mesh", rf.DynamicsPlanner(sides=21)),
        ("table", None),
        ("table", rf.DynamicsPlanner(sides=21)),
    ],
)
def test_a_plan_that_is_read_says_what_it_was_made_of(kind, planner, tmp_path):
    plan = plan_of(kind, planner)
    assert plan.chosen_by == (rf.DefaultPlanner() if planner is None else None)
    assert planner in (None, plan.planner)
    assert not plan.model.automatic  # with the kernel and the ridge that were used
    plan.save(tmp_path / "plan.npz")
    again = rf.load_plan(tmp_path / "plan.npz")
    for name in ("planner", "chosen_by", "model", "transitions", "horizon"):
        assert getattr(again, name) == getattr(plan, name), name
    if kind != "table":
        assert repr(again) == repr(plan)


def test_a_table_knows_of_ends(tmp_path):
    """A reward of 1 for each step: at the edge of an end, a step away from it is the better one."""
    ones = {"reward": lambda s, a: np.ones(len(s)), "terminated": lambda s: np.abs(s[:, 0]) >= 3.0}
    rf.plan(explored(Stairs, 80), **ones, horizon=20).save(tmp_path / "plan.npz")
    assert rf.load_plan(tmp_path / "plan.npz").act([[-2.75], [2.75]]).tolist() == [1, 0]


def test_a_table_of_a_noisy_plan_acts_as_it_at_the_nodes(tmp_path):
    falls = lambda s, a, after: -((after[:, 0] - 0.3) ** 2) - 20.0 * (after[:, 0] > 1.0)  # noqa: E731
    plan = rf.plan(explored(Cliff, 300), falls, horizon=20, terminated=lambda s: s[:, 0] > 1.0)
    plan.save(tmp_path / "plan.npz")
    again, nodes = rf.load_plan(tmp_path / "plan.npz"), plan.on_mesh.mesh.nodes
    for h in (0, 12, 19):
        np.testing.assert_array_equal(again.act(nodes, h), plan.act(nodes, h))


def test_a_clock_and_a_function_cannot_both_be_written(tmp_path):
    plan = rf.plan(explored(), "-h*x**2", horizon=4, terminated=lambda s: s[:, 0] > 1.9)
    with pytest.raises(ValueError, match="give terminated as a formula"):
        plan.save(tmp_path / "plan.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_plan_through_a_simulator_cannot_be_written(tmp_path):
    class Simulator:
        def next_state(self, state, action):
            return 0.9 * state + 0.5 * action

    request = PlanRequest(explored(), [QUADRATIC], horizon=H, discount=1.0)
    (plan,) = DynamicsPlanner(actions=81).plan(request, Simulator())
    np.testing.assert_allclose(plan.value(X), linear_plan().value(X), rtol=0, atol=1e-4)
    with pytest.raises(ValueError, match="a plan through a simulator cannot be written"):
        plan.save(tmp_path / "plan.npz")


def arrays_of(path):
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def test_a_file_of_a_plan_has_no_objects(stored, tmp_path):
    stored.save(tmp_path / "plan.npz")
    arrays = arrays_of(tmp_path / "plan.npz")
    assert not any(array.dtype.hasobject for array in arrays.values())
    assert isinstance(json.loads(str(arrays["about"])), dict)


def test_foreign_damaged_and_newer_files_are_refused(tmp_path):
    path = tmp_path / "plan.npz"
    linear_plan().save(path)
    whole, arrays = path.read_bytes(), arrays_of(path)
    for content in (b"", b"hello", whole[: len(whole) // 2], whole[:-30]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a plan file, or is damaged"):
            rf.load_plan(path)
    np.savez(path, numbers=np.arange(3))
    with pytest.raises(ValueError, match="plan file"):
        rf.load_plan(path)
    np.savez(path, **{**arrays, "version": np.array(FILE_VERSION + 1)})
    with pytest.raises(ValueError, match="update rewardfree"):
        rf.load_plan(path)
    np.savez(path, allow_pickle=True, **{**arrays, "points": np.array([{}, 1], object)})
    with pytest.raises(ValueError, match="damaged"):
        rf.load_plan(path)
    np.savez(path, **{**arrays, "tables": arrays["tables"][:, :-1]})
    with pytest.raises(ValueError, match="its tables have shape"):
        rf.load_plan(path)
    np.savez(path, **{**arrays, "about": np.array("[1, 2]")})
    with pytest.raises(ValueError, match="does not hold a plan"):
        rf.load_plan(path)
    with pytest.raises(FileNotFoundError):
        rf.load_plan(tmp_path / "none.npz")


def test_a_flipped_byte_is_never_an_answer(tmp_path):
    path = tmp_path / "plan.npz"
    linear_plan().save(path)
    whole, right = path.read_bytes(), linear_plan().act(X)
    for at in range(40, len(whole), len(whole) // 60):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            read = rf.load_plan(path)
        except ValueError:
            continue
        np.testing.assert_array_equal(read.act(X), right)  # a byte that says nothing, such as a date


NEEDED = ["points", "weights", "middle", "unit", "centre", "scale", "low", "high", "sides", "tables", "to_go"]


@pytest.mark.parametrize("name", [*NEEDED, "ends", "actions", "about", "seen"])
def test_a_file_without_one_of_its_arrays_is_refused(tmp_path, name):
    path = tmp_path / "plan.npz"
    linear_plan().save(path)
    arrays = arrays_of(path)
    del arrays[name]
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=r"does not hold a plan"):
        rf.load_plan(path)


def test_data_are_not_a_plan_and_a_plan_is_not_data(tmp_path):
    explored().save(tmp_path / "data.npz")
    linear_plan().save(tmp_path / "plan.npz")
    with pytest.raises(ValueError, match=r"holds data: use rf.load"):
        rf.load_plan(tmp_path / "data.npz")
    with pytest.raises(ValueError, match=r"holds a plan: use rf.load_plan"):
        rf.load(tmp_path / "plan.npz")


def test_a_table_of_a_plan_is_not_data_either(tmp_path):
    function_plan().save(tmp_path / "plan.npz")
    with pytest.raises(ValueError, match=r"holds a plan: use rf.load_plan"):
        rf.load(tmp_path / "plan.npz")


def test_a_finite_plan_comes_back_exactly(tmp_path):
    world = small_world()
    data = rf.explore(world, rf.Model(rf.Matern(1.5, 0.3), ridge=0.1), rf.Generative(), samples_per_step=10)
    plan = rf.plan(data, "0.5*s", rf.Optimistic(0.3))
    plan.save(tmp_path / "plan.npz")
    again = rf.load_plan(tmp_path / "plan.npz")
    np.testing.assert_array_equal(again.actions, plan.actions)
    np.testing.assert_array_equal(again.values, plan.values)
    assert again.planner == plan.planner and again.grid.same_as(plan.grid)
    arrays = arrays_of(tmp_path / "plan.npz")
    np.savez(tmp_path / "plan.npz", **{**arrays, "actions": arrays["actions"][:-1]})
    with pytest.raises(ValueError, match="its actions have shape"):
        rf.load_plan(tmp_path / "plan.npz")


def test_a_finite_plan_needs_no_kernel_to_act(tmp_path):
    """No file can hold a kernel of another library, and a table of actions needs none."""
    model = rf.Model(RBF(0.3), ridge=0.1)
    plan = rf.plan(rf.explore(small_world(), model, rf.Uniform(), episodes=9), "0.1*s")
    plan.save(tmp_path / "plan.npz")
    again = rf.load_plan(tmp_path / "plan.npz")
    np.testing.assert_array_equal(again.actions, plan.actions)
    assert again.model is None and again.transitions == plan.transitions
    data = rf.explore(LabelledWorld(small_world()), model, rf.Uniform(), episodes=9)
    with pytest.raises(ValueError, match="cannot be written to a file"):  # a plan on real states needs it
        rf.plan(data, "0.1*s").save(tmp_path / "plan.npz")


def test_a_failed_write_leaves_the_old_file_alone(tmp_path, monkeypatch):
    path = tmp_path / "plan.npz"
    linear_plan().save(path)
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="disk full"):
        linear_plan(actions=11).save(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]

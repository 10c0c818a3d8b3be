"""What comes from a file is checked like an argument: what no run leaves behind is refused by name."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import rewardfree as rf
from reference_mesh import CLIMB, QUADRATIC, Linear, Stairs, cliff_plan, explored, linear_plan
from reference_runs import small_world
from rewardfree.experiments.run_maps import maps_are_there, read_maps
from rewardfree.files import write_arrays
from rewardfree.registry import MOST_NESTED, from_text, to_text
from rewardfree.worlds import LabelledWorld

pytestmark = pytest.mark.usefixtures("one_thread")
FIXED = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1)


def named_world():
    """Six levels and five labels, which lead anywhere."""
    P = np.full((6, 5, 6), 1.0 / 6.0)
    return rf.FiniteWorld(P, 4, 0, states={"level": range(6)}, actions=rf.Discrete(5, "push"))


def made(name):
    if name == "transitions":
        return rf.explore(small_world(), FIXED, rf.Online(0.1), samples_per_step=3)
    if name == "experience":
        return explored(Stairs, 40)
    if name == "labels":
        pooled = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1, pooled=True)
        return rf.explore(LabelledWorld(small_world()), pooled, rf.Uniform(), steps=20)
    if name == "named":
        return rf.explore(named_world(), FIXED, rf.Online(0.1), samples_per_step=3)
    if name == "counted":
        counts = rf.Model(rf.kernels.Delta(), ridge=0.01, pooled=True)
        return rf.plan(made("labels"), "s == 3", rf.CountingPlanner(), counts, horizon=3)
    if name == "finite":
        return rf.plan(made("transitions"), "0.5*s", rf.Optimistic(0.3))
    if name == "mesh":
        return linear_plan()
    if name == "noisy":
        return cliff_plan()
    if name == "table":
        return rf.plan(made("experience"), lambda state, action: -(state[:, 0] ** 2), horizon=5)
    if name == "sampled":
        return rf.plan(explored(Linear, 40), QUADRATIC, rf.Mean(clip="range"), horizon=3)
    return rf.plan(explored(Stairs, 40), CLIMB, rf.Mean(clip="range"), horizon=5)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The arrays of a file of each kind, by name."""
    contents = {}

    def arrays(name):
        if name not in contents:
            path = tmp_path_factory.mktemp("files") / "file.npz"
            made(name).save(path)
            with np.load(path) as file:
                contents[name] = {field: file[field] for field in file.files}
        return dict(contents[name])

    return arrays


def loaded(arrays, path):
    np.savez(path, **arrays)
    return (rf.load_plan if str(arrays["kind"]).endswith("Plan") else rf.load)(path)


def with_first(value):
    """The array with another first entry."""

    def change(array):
        array = array.astype(np.result_type(array, np.array(value)))
        array.reshape(-1)[0] = value
        return array

    return change


def with_last(value):
    """The array with another last entry."""
    return lambda array: with_first(value)(array[::-1])[::-1]


def with_all(value):
    return lambda array: np.full_like(array, value, dtype=np.result_type(array, np.array(value)))


@pytest.mark.parametrize(
    ("name", "array", "change", "said"),
    [
        ("transitions", "next_state", with_first(-1), r"next_state must lie in 0\.\.5, got -1"),
        ("transitions", "action", with_first(10**6), r"action must lie in 0\.\.4, got 0\.\.1000000"),
        ("transitions", "h", with_first(10**6), r"h must lie in 0\.\.3, got"),
        ("transitions", "h", with_first(-1), r"h must lie in 0\.\.3, got -1"),
        ("transitions", "episode", with_first(-2), r"episode must lie in -1\.\."),
        ("transitions", "episode", with_last(2**53), "episode must begin at 0 and rise by at most 1"),
        ("transitions", "episode", lambda array: array[::-1], "episode must begin at 0 and rise by at most"),
        ("transitions", "h", lambda array: array[::-1], "h must begin at 0 and rise by 1 a step"),
        ("experience", "episode", with_last(2**53), "episode must begin at 0 and rise by at most 1"),
        ("experience", "episode", lambda array: array + 1, "must begin at 0 and rise by at most 1 .*got 1"),
        ("experience", "h", lambda array: array[::-1], "h must begin at 0 and rise by 1 a step"),
        ("experience", "h", with_first(1), "h must begin at 0 and rise by 1 a step"),
        ("experience", "state", with_first(1e200), r"state must stay below 1e\+100"),
        ("experience", "next_state", with_first(-1e100), r"next_state must stay below 1e\+100"),
        ("experience", "starts", with_first(1e200), r"starts must stay below 1e\+100"),
        ("transitions", "episode", lambda array: array.astype(float), "episode must be whole numbers"),
        ("transitions", "kept", lambda array: array.astype(int), "kept must be whole numbers or flags"),
        ("transitions", "states", with_first(np.nan), "states must be finite"),
        ("experience", "starts", with_first(np.inf), "starts must be finite"),
        ("experience", "scale", with_first(0.0), "scale must be positive"),
        ("experience", "centre", with_first(np.nan), "centre must be finite"),
        ("experience", "scale", lambda array: array[:-1], "scale must have 3 features"),
        ("labels", "next_state", with_first(99), r"next_state must lie in 0\.\.5"),
        ("named", "state_values", with_first(np.nan), "level must be finite"),
        ("named", "state_values", lambda array: array[:-1], "level must have one number for each of 6"),
        ("named", "state_names", lambda array: np.array(["level", "other"]), "zip"),
        ("named", "state_names", None, "has only action_names, action_values, state_values"),
        ("named", "action_values", None, "has only action_names, state_names, state_values"),
        ("named", "state_names", lambda array: np.array(["push"]), "a name of its own"),
        ("named", "state_names", lambda array: np.array(["a b"]), "name must be a word"),
        ("named", "state_names", lambda array: array[:0], "zip|at least one variable"),
        ("named", "action_names", lambda array: np.array(["push", "pull"]), "must have one name, got 2"),
        ("named", "next_state", with_first(6), r"next_state must lie in 0\.\.5"),
        ("counted", "values", with_first(np.nan), "values must be finite"),
        ("counted", "values", lambda array: array[:, :-1], "values have shape"),
        ("counted", "actions", with_first(10**6), r"actions must be whole numbers of 0\.\.4"),
        ("counted", "actions", lambda array: array.astype(float), r"actions must be whole numbers of 0\.\.4"),
        ("counted", "actions", lambda array: array[:-1], "actions have shape"),
        ("finite", "values", with_first(np.nan), "values must be finite"),
        ("finite", "values", lambda array: array[:, :-1], "values have shape"),
        ("finite", "actions", with_first(10**6), r"actions must be whole numbers of 0\.\.4"),
        ("finite", "actions", with_first(-1), r"actions must be whole numbers of 0\.\.4"),
        ("mesh", "tables", with_first(np.nan), "tables must be finite"),
        ("mesh", "to_go", lambda array: array[::-1], "to_go must be whole numbers that ascend from 0"),
        ("mesh", "to_go", with_first(1), "to_go must be whole numbers that ascend from 0"),
        ("mesh", "points", with_first(1e200), r"points must stay below 1e\+100"),
        ("mesh", "points", lambda array: array[:1], "at least two transitions|weights have shape"),
        ("mesh", "weights", lambda array: array[:-1], "weights have shape"),
        ("mesh", "weights", lambda array: array.astype(complex), "does not hold a plan|damaged"),
        ("mesh", "unit", with_first(0.0), "unit must be positive"),
        ("mesh", "ends", with_all(np.nan), "ends must be numbers, got NaN"),
        ("mesh", "low", with_all(1e6), "low ends of its boxes must lie below"),
        ("mesh", "sides", with_all(1), "at least two nodes a side"),
        ("mesh", "actions", with_first(np.nan), "actions must be finite"),
        ("mesh", "actions", lambda array: array[:0], "at least one action"),
        (
            "mesh",
            "actions",
            with_first(50.0),
            r"actions must lie in the action space, and u in -2\.\.2, got 50",
        ),
        ("mesh", "actions", with_first(-2.001), r"and u in -2\.\.2, got -2\.001"),
        ("noisy", "actions", with_first(50.0), "actions must lie in the action space"),
        ("sampled", "actions", with_first(50.0), "actions must lie in the action space"),
        ("sampled", "actions", lambda array: array[:0], "at least one action"),
        ("values", "actions", with_first(7), r"actions must lie in 0\.\.1"),
        ("mesh", "seen", with_first(np.nan), "seen must be finite"),
        ("mesh", "seen_ends", lambda array: array[:-1], "seen_ends must be"),
        ("noisy", "residuals", with_first(np.inf), "residuals must be finite"),
        ("noisy", "residuals", None, "noisy must be True with residuals"),
        ("table", "rewards", with_first(np.nan), "rewards must be finite"),
        ("table", "going", with_first(2.0), r"going must lie in \[0, 1\]"),
        ("table", "going", lambda array: np.tile(array, (2, 1)), "going have shape"),
        ("values", "centres", with_first(np.nan), "centres must be finite"),
        ("values", "centres", lambda array: array[:-1], "centres have shape"),
        ("values", "weights0", lambda array: array[:-1], "weights have shape"),
        ("values", "state0", lambda array: array[:-1], "must be"),
        ("values", "weights0", None, "weights of step 0 and its samples do not go together"),
    ],
)
def test_an_array_that_no_run_leaves_is_refused(saved, tmp_path, name, array, change, said):
    arrays = saved(name)
    if change is None:
        del arrays[array]
    else:
        arrays[array] = change(arrays[array])
    with pytest.raises(ValueError, match=rf"(?s)file\.npz.*({said})"):
        loaded(arrays, tmp_path / "file.npz")


def test_actions_may_be_rounded_as_gymnasium_rounds_its_bounds(saved, tmp_path):
    arrays = saved("mesh")
    arrays["actions"] = np.nextafter(arrays["actions"].astype(np.float32), np.float32(np.inf)).astype(float)
    assert loaded(arrays, tmp_path / "file.npz").act(np.array([0.1])).shape == (1,)


NESTED = "[" * 3000 + "]" * 3000
BIG = {"number": "1e999"}


@pytest.mark.parametrize(
    ("name", "field", "value", "said"),
    [
        ("transitions", "horizon", 10**18, "horizon must be at most 1,000,000,000"),
        ("transitions", "horizon", -1, "horizon must be a whole number"),
        ("transitions", "seed", -1, "seed must be"),
        ("transitions", "seed", 0.5, "seed must be"),
        ("transitions", "model", 3, "model must be"),
        ("transitions", "model", {"type": "Model", "ridge": 0.1, "kernel": {
            "type": "Matern", "nu": 1.5, "lengthscale": [0.1, 0.2, 0.3]}}, "lengthscale has 3 entries"),
        ("transitions", "strategy", "Online", "strategy must be one of rewardfree's"),
        ("transitions", "strategy", {"type": "Delta"}, "strategy must be one of rewardfree's"),
        ("transitions", "strategy", None, "strategy must be one of rewardfree's"),
        ("transitions", "strategy", {"type": "Online", "beta": 10**400}, "must be a number"),
        ("transitions", "stopped_by", 3, "stopped_by must be text"),
        ("experience", "horizon", 1e308, "horizon must be at most"),
        ("experience", "provenance", ["x"], "provenance must be a table"),
        ("experience", "spaces", {"type": "Spaces", "action": {"type": "Discrete", "n": 2}, "state": {
            "type": "Box", "names": ["x"], "low": [0], "high": [10**400], "angles": [False]}},
         "x must have two numbers and a flag"),
        ("experience", "observation", {"type": "Delta"}, "observation must be"),
        ("experience", "observation", {"type": "Observation", "columns": [["is", "no"]]}, "must have"),
        ("experience", "fitted", {"type": "Delta"}, "fitted model must be"),
        ("finite", "planner", 3, "planner must be"),
        ("finite", "transitions", -1, "transitions must be"),
        ("finite", "horizon", 10**18, "horizon must be at most"),
        ("finite", "horizon", None, "horizon must be a whole number"),
        ("finite", "chosen_by", {"type": "Delta"}, "what chose its planner"),
        ("finite", "horizon", None, "horizon must be a whole number"),
        ("finite", "discount", 1.5, "discount must lie in"),
        ("counted", "horizon", None, "horizon must be a whole number"),
        ("counted", "discount", 0, "discount must lie in"),
        ("counted", "reward", "(" * 3000, "is no formula"),
        ("counted", "reward", 3, "a reward on real states must be"),
        ("counted", "planner", 3, "planner must be"),
        ("counted", "spaces", 3, "spaces must be"),
        ("counted", "spaces", {
            "type": "Spaces", "action": {"type": "Discrete", "n": 5}, "state": {
                "type": "Box", "names": ["x"], "low": [0], "high": [1], "angles": [False]}},
         "must be labels"),
        ("mesh", "depth", 1e308, "depth must be at most 20"),
        ("mesh", "depth", 19, "asks for .* next states"),
        ("mesh", "depth", 0, "depth must be"),
        ("mesh", "discount", 1.5, "discount must lie in"),
        ("mesh", "discount", BIG, "discount must be finite"),
        ("mesh", "drift", {"number": "nan"}, "drift must be finite"),
        ("mesh", "expected", None, "expected must be a number"),
        ("mesh", "noisy", "yes", "noisy must be True"),
        ("mesh", "noisy", True, "noisy must be True with residuals"),
        ("mesh", "reward", "(" * 3000, "is no formula"),
        ("mesh", "reward", None, "a reward on real states must be"),
        ("mesh", "model", {"type": "Model", "kernel": {"type": "AutoKernel"}}, "AutoKernel"),
        ("mesh", "horizon", 10**18, "horizon must be at most"),
        ("mesh", "spaces", 3, "spaces must be"),
        ("mesh", "provenance", 3, "provenance must be"),
        ("values", "planner", {"type": "DynamicsPlanner"}, "one that regresses values"),
        ("values", "source", {"type": "Delta"}, "source of posteriors must be"),
        ("values", "discount", 0, "discount must lie in"),
        ("values", "horizon", 10**9, "centres have shape"),
        ("values", "model", {"type": "Model", "ridge": 0.1, "pooled": True,
                             "kernel": {"type": "NeuralTangent", "depth": 10**18}}, "depth must be at most"),
    ],
)  # fmt: skip
def test_a_word_that_no_run_leaves_is_refused(saved, tmp_path, name, field, value, said):
    arrays = saved(name)
    arrays["about"] = np.array(json.dumps({**json.loads(str(arrays["about"])), field: value}))
    with pytest.raises(ValueError, match=rf"(?s)file\.npz.*({said})"):
        loaded(arrays, tmp_path / "file.npz")


@pytest.mark.parametrize(
    "name", ["transitions", "experience", "finite", "counted", "mesh", "table", "values"]
)
@pytest.mark.parametrize(
    "text", [NESTED, '{"horizon": ' + NESTED + "}", '{"horizon": 1' + "0" * 5000 + "}", "[]", "", "\ud800"]
)
def test_a_text_that_is_no_table_is_refused(saved, tmp_path, name, text):
    arrays = saved(name)
    arrays["about"] = np.array(text)
    with pytest.raises(ValueError, match=r"file\.npz"):
        loaded(arrays, tmp_path / "file.npz")


def test_tables_are_nested_no_deeper_than_they_are_written():
    kernel = rf.Linear(1.0)
    for _ in range(MOST_NESTED - 2):
        kernel = kernel + rf.Linear(1.0)
    assert from_text(to_text({"kernel": kernel})) == {"kernel": kernel}
    with pytest.raises(ValueError, match="nested 100 deep"):
        to_text({"kernel": kernel + kernel + kernel})
    table = json.loads(to_text({"kernel": kernel}))
    with pytest.raises(ValueError, match="nested 100 deep"):
        from_text(json.dumps({"kernel": [[[table["kernel"]]]]}))


def test_small_numbers_are_read_as_wide_ones(saved, tmp_path):
    """h * states * actions of int8 would overflow."""
    arrays = saved("transitions")
    for name in ("h", "state", "action", "next_state", "episode"):
        arrays[name] = arrays[name].astype(np.int8)
    data = loaded(arrays, tmp_path / "file.npz")
    assert {getattr(data, name).dtype for name in ("h", "state", "action", "next_state")} == {
        np.dtype(np.int64)
    }


@pytest.mark.parametrize("name", ["transitions", "experience", "labels"])
def test_loaded_data_cannot_be_changed_by_accident(saved, tmp_path, name):
    data = loaded(saved(name), tmp_path / "file.npz")
    for column in ("state", "action", "next_state", "terminated", "kept", "episode", "h"):
        assert not getattr(data, column).flags.writeable
    assert name == "transitions" or not data.starts.flags.writeable


@pytest.mark.parametrize(
    ("array", "change", "said"),
    [
        ("ends", lambda array: np.array([6]), r"ends must list states of 0\.\.5"),
        ("ends", lambda array: array.astype(float), "ends must list states"),
        ("ends", lambda array: array[None], "ends must list states"),
        ("action_names", lambda array: array[:0], "ends= is for labels"),
        ("P", with_first(2.0), "must sum to 1"),
    ],
)
def test_a_named_world_that_nobody_saved_is_refused(tmp_path, array, change, said):
    P = np.full((6, 5, 6), 1.0 / 6.0)
    P[3] = np.eye(6)[3]
    labels = rf.Discrete(6, "s"), rf.Discrete(5, "push")
    rf.FiniteWorld(P, 4, 0, states=labels[0], actions=labels[1], ends=[3]).save(tmp_path / "file.npz")
    assert rf.FiniteWorld.load(tmp_path / "file.npz").ends.tolist() == [state == 3 for state in range(6)]
    with np.load(tmp_path / "file.npz") as file:
        arrays = {name: file[name] for name in file.files}
    del arrays["ends"]
    np.savez(tmp_path / "lost.npz", **arrays)
    with pytest.raises(ValueError, match=r"lost\.npz does not hold a world: 'ends'"):
        rf.FiniteWorld.load(tmp_path / "lost.npz")
    arrays["ends"] = np.array([3])
    arrays[array] = change(arrays[array])
    np.savez(tmp_path / "file.npz", **arrays)
    with pytest.raises(ValueError, match=rf"file\.npz does not hold a world: .*({said})"):
        rf.FiniteWorld.load(tmp_path / "file.npz")


# --- maps of runs ---

MAPS = {
    "world": np.array("w"), "model": np.array("m"), "strategy": np.array("s"), "sizes": np.array([2, 4]),
    "steps": np.array([0, 1]), "reward": np.ones((3, 2)), "law": np.ones((3, 3)), "law_action": np.array(0.5),
    "sigma": np.ones((2, 2, 3, 2)), "state": np.ones((2, 4)), "action": np.ones((2, 4)),
    "value": np.ones((2, 3, 3)), "policy": np.ones((2, 3, 3)),
}  # fmt: skip


def write_maps_of(path, **changed):
    maps = {name: value for name, value in {**MAPS, **changed}.items() if value is not None}
    arrays = {f"0/{name}": value for name, value in maps.items()}
    write_arrays(path, "RunMaps", 1, {"key": np.array('["x"]'), **arrays})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"sigma": None}, "'sigma'"),
        ({"sizes": np.array([2, 5])}, r"sizes must be whole numbers of 0\.\.4"),
        ({"sizes": np.array([-2, 4])}, r"sizes must be whole numbers of 0\.\.4"),
        ({"value": np.full((2, 3, 3), np.nan)}, "value must be finite"),
        ({"policy": np.ones((3, 3, 3))}, "policy has shape .*, which does not fit"),
        ({"law": np.array("x")}, "law must be numbers"),
        ({"reward": np.ones(3)}, "reward must be numbers"),
    ],
)
def test_maps_that_do_not_fit_are_refused(tmp_path, changed, said):
    write_maps_of(tmp_path / "maps.npz")
    assert len(read_maps(tmp_path / "maps.npz")) == 1
    assert maps_are_there([SimpleNamespace(key="x")], tmp_path / "maps.npz")
    write_maps_of(tmp_path / "maps.npz", **changed)
    with pytest.raises(ValueError, match=rf"maps\.npz does not hold maps of runs: .*({said})"):
        read_maps(tmp_path / "maps.npz")

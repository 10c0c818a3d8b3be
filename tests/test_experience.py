"""Data of continuous worlds: files that come back to the last bit, tables of text, and runs cut short."""

import csv
import dataclasses
import io
import json
import math
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

import rewardfree as rf
import rewardfree.files as files
from rewardfree.data.experience import FILE_VERSION
from rewardfree.worlds import LabelledWorld, Spaces
from rewardfree.worlds.scaling import ScaledModel, Scaling

MODEL = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
FIXED = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1, pooled=True)
PER_STEP = rf.Model(rf.Matern(1.5, 0.3) + rf.Linear(2.0), ridge=0.1)
COLUMNS = ("episode", "h", "state", "action", "next_state", "terminated", "kept")
SAID = ("spaces", "horizon", "model", "strategy", "seed", "observation", "provenance", "stopped_by")


class Hill(rf.World):
    """An angle and a speed; it ends at speed 1.5."""

    state, action, horizon = rf.Box.of(theta="angle", v=None), rf.Box.of(u=(-1, 1), w=(-2, 2)), 8

    def start(self, rng):
        return rng.uniform(-3, 3, 2) * [1.0, 0.3]

    def sample(self, state, action, h, rng):
        v = state[:, 1] + 0.1 * np.sin(state[:, 0]) + 0.2 * action[:, 0] + 0.01 * action[:, 1]
        return np.stack([state[:, 0] + v, v], axis=1), np.abs(v) > 1.5


def finite():
    P = np.random.default_rng(0).random((5, 3, 5))
    return rf.FiniteWorld(P / P.sum(axis=-1, keepdims=True), 6, 2)


def run(name):
    if name == "pendulum":
        return rf.explore(rf.from_gymnasium("Pendulum-v1", g=9.0), MODEL, rf.Scout(), transitions=70, seed=3)
    if name == "cart":
        return rf.explore(rf.from_gymnasium("CartPole-v1"), MODEL, rf.Uniform(), steps=90, seed=1)
    if name == "queries":
        return rf.explore(Hill(), MODEL, rf.Generative(), transitions=70)
    if name == "per step":
        world = type("Flat", (Hill,), {"state": rf.Box.of(theta="angle", v=(-2, 2))})()
        return rf.explore(world, PER_STEP, rf.Online(beta=0.1), episodes=17)
    return rf.explore(LabelledWorld(finite()), FIXED, rf.Qiu(beta=0.1), steps=33, seed=9)


NAMES = ["pendulum", "cart", "queries", "per step", "labels"]
RUNS = {}


@pytest.fixture(params=NAMES)
def data(request):
    return made(request.param)


def made(name):
    if name not in RUNS:
        RUNS[name] = run(name)
    return RUNS[name]


def assert_same(one, other, said=SAID):
    for name in (*COLUMNS, "starts"):
        a, b = getattr(one, name), getattr(other, name)
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), name
    for name in said:
        assert getattr(one, name) == getattr(other, name), name


# Files.


def test_what_was_saved_is_loaded_to_the_last_bit(data, tmp_path):
    data.save(tmp_path / "run.npz")
    again = rf.load(tmp_path / "run.npz")
    assert type(again) is rf.Experience and repr(again) == repr(data)
    assert_same(again, data)
    assert again.fitted.model == data.fitted.model and not again.fitted.model.automatic
    for name in ("centre", "scale"):
        assert np.array_equal(getattr(again.fitted.scaling, name), getattr(data.fitted.scaling, name))
    again.save(tmp_path / "again.npz")
    assert_same(rf.load(tmp_path / "again.npz"), data)


def test_every_field_is_accounted_for():
    names = {field.name for field in dataclasses.fields(rf.Experience)}
    assert names == {*COLUMNS, *SAID, "starts", "fitted"}
    assert not any("reward" in name for name in names)


def test_transitions_of_a_finite_world_are_loaded_as_such(tmp_path):
    data = rf.explore(finite(), PER_STEP, rf.Online(beta=0.1), samples_per_step=3, seed=4)
    data.save(tmp_path / "run.npz")
    again = rf.load(tmp_path / "run.npz")
    assert type(again) is rf.Transitions and again.grid.same_as(data.grid)
    for name in COLUMNS:
        assert getattr(again, name).dtype == getattr(data, name).dtype
        assert np.array_equal(getattr(again, name), getattr(data, name))
    for name in ("horizon", "model", "strategy", "seed", "stopped_by"):
        assert getattr(again, name) == getattr(data, name)
    again.first(samples_per_step=2)


def test_loaded_data_plan_as_the_data_did(tmp_path):
    data = rf.explore(finite(), PER_STEP, rf.Qiu(beta=0.1), samples_per_step=4)
    data.save(tmp_path / "run.npz")
    one, other = (rf.plan(run, "s") for run in (data, rf.load(tmp_path / "run.npz")))
    assert np.array_equal(one.actions, other.actions)


def test_loaded_data_are_gone_on_from(tmp_path):
    world = rf.from_gymnasium("CartPole-v1")
    longer = rf.explore(world, MODEL, rf.Uniform(), steps=130, seed=1)
    made("cart").save(tmp_path / "run.npz")
    resumed = rf.explore(world, MODEL, rf.Uniform(), steps=130, seed=1, resume=rf.load(tmp_path / "run.npz"))
    assert_same(resumed, longer)


def test_a_run_that_was_stopped_or_made_by_hand_is_saved(tmp_path):
    data = made("cart")
    changed = dataclasses.replace(
        data,
        stopped_by="interrupted",
        fitted=None,
        observation=None,
        provenance={"note": "by hand", "numbers": (1, 2.5, math.inf), "deep": {"x": None}},
        seed=2**70,
    )
    changed.save(tmp_path / "run.npz")
    again = rf.load(tmp_path / "run.npz")
    assert_same(again, changed)
    assert again.fitted is None


def test_a_fit_travels_with_the_scaling_of_its_features(tmp_path):
    model = rf.Model(2.0 * rf.SquaredExponential((0.1, 1 / 3, 2.0, 5.0, 1.0)), ridge=1e-7, pooled=True)
    scaling = Scaling(np.array([0.1, 1e-300, -1e300, 3.0, 0.0]), np.array([1 / 3, 2.0, 5e-324, 1.0, 7.0]))
    changed = dataclasses.replace(made("queries"), fitted=ScaledModel(model, scaling))
    changed.save(tmp_path / "run.npz")
    fitted = rf.load(tmp_path / "run.npz").fitted
    assert fitted.model == model
    assert fitted.scaling.centre.tobytes() == scaling.centre.tobytes()
    assert fitted.scaling.scale.tobytes() == scaling.scale.tobytes()


def test_no_steps_are_data_as_well(tmp_path):
    data = made("cart")
    none = dataclasses.replace(data, **{name: getattr(data, name)[:0] for name in COLUMNS}, fitted=None)
    none.save(tmp_path / "run.npz")
    again = rf.load(tmp_path / "run.npz")
    assert len(again) == again.episodes == 0 and again.state.shape == (0, 4)
    assert_same(again, none)


def test_no_steps_are_a_table_of_one_line(tmp_path):
    data = made("cart")
    none = dataclasses.replace(data, **{name: getattr(data, name)[:0] for name in COLUMNS}, fitted=None)
    none.to_csv(tmp_path / "run.csv")
    assert len((tmp_path / "run.csv").read_text().splitlines()) == 1


def test_the_file_holds_no_pickle(data, tmp_path):
    data.save(tmp_path / "run.npz")
    with zipfile.ZipFile(tmp_path / "run.npz") as file:
        for name in file.namelist():
            array = np.load(io.BytesIO(file.read(name)), allow_pickle=False)
            assert not array.dtype.hasobject, name
        header = json.loads(str(np.load(io.BytesIO(file.read("about.npy")))))
    assert header["seed"] == data.seed and header["strategy"]["type"] == type(data.strategy).__name__


def test_a_model_that_cannot_be_written_is_refused_and_the_old_file_stays(tmp_path):
    path = tmp_path / "run.npz"
    made("cart").save(path)
    before = path.read_bytes()
    foreign = dataclasses.replace(made("cart"), model=rf.Model(RBF(), ridge=0.1))
    with pytest.raises(ValueError, match="cannot be written to a file: only rewardfree's own kinds can"):
        foreign.save(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("no space left")], ids=repr)
@pytest.mark.parametrize("written", ["npz", "csv"])
def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch, error, written):
    data, path = made("cart"), tmp_path / f"run.{written}"
    write = data.save if written == "npz" else data.to_csv
    write(path)
    before = path.read_bytes()

    def failing(*_, **__):
        raise error

    if written == "npz":
        monkeypatch.setattr(files.np, "savez_compressed", failing)
    else:
        real = csv.writer

        def writer(file, *options):
            lines = real(file, *options)
            rows = []

            class Halting:
                def writerow(self, row):
                    rows.append(row)
                    return failing() if len(rows) == 10 else lines.writerow(row)

            return Halting()

        monkeypatch.setattr(csv, "writer", writer)
    with pytest.raises(type(error)):
        write(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_a_file_cut_anywhere_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    made("queries").save(path)
    whole = path.read_bytes()
    for length in {*range(0, len(whole), 97), *range(len(whole) - 60, len(whole))}:
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"run\.npz is not a Experience file, or is damaged"):
            rf.load(path)
    path.write_bytes(whole)
    rf.load(path)


def test_a_changed_byte_is_refused_or_harmless(tmp_path):
    path, data = tmp_path / "run.npz", made("cart").first(steps=5)
    data.save(path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 11):
        changed = bytearray(whole)
        changed[place] ^= 16
        path.write_bytes(bytes(changed))
        try:
            read = rf.load(path)
        except ValueError:
            continue
        assert_same(read, data)


def rewritten(path, **changed):
    """The file with some of its arrays replaced, or left out where None."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files} | changed
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def with_about(path, **changed):
    """The file with some of what it says about itself replaced."""
    with np.load(path) as file:
        header = json.loads(str(file["about"])) | changed
    rewritten(path, about=np.array(json.dumps(header)))


@pytest.fixture
def stored(tmp_path):
    made("cart").save(tmp_path / "run.npz")
    return tmp_path / "run.npz"


@pytest.mark.parametrize("name", [*COLUMNS, "about", "starts", "centre", "scale"])
def test_an_array_that_is_missing_is_missed(stored, name):
    rewritten(stored, **{name: None})
    with pytest.raises(ValueError, match=rf"run\.npz .*{name}"):
        rf.load(stored)


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_different_lengths_are_refused(stored, name):
    rewritten(stored, **{name: getattr(made("cart"), name)[:-1]})
    with pytest.raises(ValueError, match=r"run\.npz is damaged: its columns have .* rows"):
        rf.load(stored)
    rewritten(stored, **{name: np.array(3)})
    with pytest.raises(ValueError, match=r"run\.npz is damaged: its columns have .* rows"):
        rf.load(stored)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"state": np.zeros((90, 3))}, "state must have shape"),
        ({"next_state": np.full((90, 4), np.nan)}, "next_state must be finite"),
        ({"action": np.full(90, 7)}, r"action must lie in 0\.\.1, got 7\.\.7"),
        ({"action": np.full(90, 0.5)}, "action must be whole numbers"),
        ({"about": np.array("hello")}, "is not a Experience file, or is damaged"),
        ({"about": np.array("[1, 2]")}, "is not a Experience file, or is damaged"),
        ({"about": np.array(3.0)}, "is not a Experience file, or is damaged"),
        ({"about": np.array('{"horizon": 3}')}, "does not hold an experience"),
        ({"version": np.array(FILE_VERSION + 1)}, f"only {FILE_VERSION} is known here: update rewardfree"),
        ({"kind": np.array("Thing")}, "is a Thing file, a Experience file was wanted"),
        ({"kind": np.array("FiniteWorld")}, "is a FiniteWorld file"),
        (
            {"kind": np.array("Transitions"), "version": np.array(1)},
            "does not hold transitions|is not a Transitions file",
        ),
        ({"kind": np.array("MeshPlan")}, r"holds a plan: use rf\.load_plan"),
        ({"kind": None}, "is a foreign file, a Experience file was wanted"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_file_that_holds_something_else_is_refused(stored, changed, said):
    rewritten(stored, **changed)
    with pytest.raises(ValueError, match=rf"run\.npz.*({said})"):
        rf.load(stored)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"strategy": {"type": "Telepathy"}}, "there is no 'Telepathy' here: the file is from"),
        ({"spaces": {"type": "os.system", "command": "touch victim"}}, "there is no 'os.system' here"),
        ({"model": {"type": "Model", "kernel": None, "colour": "red"}}, "Model cannot be made"),
        ({"model": {"type": "Model", "kernel": {"type": "Delta"}, "ridge": -1.0}}, "ridge must be positive"),
        ({"something": "new"}, "something"),
        ({"strategy": {"type": ["Uniform"]}}, "damaged"),
        ({"provenance": {"table": 3}}, "damaged"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_file_that_says_something_strange_is_refused(stored, changed, said):
    with_about(stored, **changed)
    with pytest.raises(ValueError, match=rf"run\.npz.*{said}"):
        rf.load(stored)


@pytest.mark.parametrize("spaces", [None, 3, {"type": "Delta"}], ids=repr)
def test_spaces_that_are_none_are_refused(stored, spaces):
    with_about(stored, spaces=spaces)
    with pytest.raises(ValueError, match=r"run\.npz does not hold an experience"):
        rf.load(stored)


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04", b"\x93NUMPY", b"x,u,next_x\n0,1,2\n"])
def test_what_is_no_npz_is_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ValueError, match="x is not a Experience file, or is damaged"):
        rf.load(tmp_path / "x")


def test_a_missing_file_is_called_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.npz"):
        rf.load(tmp_path / "nowhere.npz")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        made("cart").save(tmp_path / "nowhere" / "run.npz")


def test_a_world_is_no_data(tmp_path):
    finite().save(tmp_path / "world.npz")
    with pytest.raises(ValueError, match=r"world\.npz is a FiniteWorld file, a Experience file was wanted"):
        rf.load(tmp_path / "world.npz")


# Tables of text.


def read(path, data, **options):
    return rf.Experience.from_csv(
        path, state=data.spaces.state, action=data.spaces.action, horizon=data.horizon, **options
    )


def test_a_table_comes_back_to_the_last_bit(data, tmp_path):
    path = tmp_path / "run.csv"
    data.to_csv(path)
    again = read(path, data, model=data.model)
    for name in COLUMNS:
        a, b = getattr(again, name), getattr(data, name)
        assert a.dtype == b.dtype and a.tobytes() == b.tobytes(), name
    assert again.spaces == data.spaces and again.horizon == data.horizon and again.model == data.model
    assert again.stopped_by == "csv" and again.strategy is None and again.fitted is None
    again.to_csv(tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == path.read_bytes()


def test_a_table_is_what_another_reader_sees(tmp_path):
    data = made("per step")
    data.to_csv(tmp_path / "run.csv")
    with (tmp_path / "run.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == [
        *("episode", "h", "theta", "v", "u", "w", "next_theta", "next_v", "terminated", "kept")
    ]
    assert len(lines) == len(data)
    for t, line in enumerate(lines):
        assert [float(line["theta"]), float(line["v"])] == data.state[t].tolist()
        assert [float(line["u"]), float(line["w"])] == data.action[t].tolist()
        assert [float(line["next_theta"]), float(line["next_v"])] == data.next_state[t].tolist()
        flags = [int(line[name]) for name in ("episode", "h", "terminated", "kept")]
        assert flags == [data.episode[t], data.h[t], data.terminated[t], data.kept[t]]
    assert not all(data.kept)


def table(*rows, names="x u next_x"):
    """A table of numbers as text, by repr."""
    return "\n".join([",".join(names.split()), *(",".join(map(repr, row)) for row in rows)]) + "\n"


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 3), min_size=2, max_size=6))
def test_any_number_keeps_its_last_bit(tmp_path, rows):
    (tmp_path / "own.csv").write_text(table(*rows))
    data = rf.Experience.from_csv(
        tmp_path / "own.csv", state=rf.Box.of(x=(-1, 1)), action=rf.Box.of(u=(-1, 1))
    )
    got = np.concatenate([data.state, data.action, data.next_state], axis=1)
    assert got.tobytes() == np.array(rows).tobytes()
    data.to_csv(tmp_path / "again.csv")
    again = read(tmp_path / "again.csv", data)
    assert again.next_state.tobytes() == data.next_state.tobytes()


def own(tmp_path, text, **options):
    path = tmp_path / "own.csv"
    path.write_text(text, encoding="utf-8")
    return rf.Experience.from_csv(path, **options)


WALK = [(0.0, 0.5, 0.25), (0.25, -0.5, 0.0), (0.0, 1.0, 0.5), (3.0, 1.0, 3.5), (3.5, 0.25, 3.625)]


def test_a_users_own_table_needs_states_actions_and_next_states_alone(tmp_path):
    data = own(tmp_path, table(*WALK))
    assert data.spaces == Spaces(rf.Box.of(x=(0.0, 3.625)), rf.Box.of(u=(-0.5, 1.0)))
    assert data.state[:, 0].tolist() == [row[0] for row in WALK]
    assert data.action[:, 0].tolist() == [row[1] for row in WALK]
    assert data.next_state[:, 0].tolist() == [row[2] for row in WALK]
    assert data.episode.tolist() == [0, 0, 0, 1, 1]  # 3.0 does not go on from 0.5
    assert data.h.tolist() == [0, 1, 2, 0, 1] and data.horizon == 3
    assert data.starts.tolist() == [[0.0], [3.0]]
    assert data.kept.all() and not data.terminated.any()
    assert data.model == rf.Model(rf.AutoKernel(), pooled=True, centred=True)
    assert (data.strategy, data.seed, data.stopped_by) == (None, 0, "csv")


def test_an_end_begins_another_episode_even_where_the_numbers_go_on(tmp_path):
    text = table((0.0, 0.5, 1.0, 1), (1.0, 0.7, 2.0, 0), (2.0, 0.1, 4.0, 0), names="x u next_x terminated")
    data = own(tmp_path, text)
    assert data.terminated.tolist() == [True, False, False]
    assert data.episode.tolist() == [0, 1, 1] and data.h.tolist() == [0, 0, 1]
    assert data.starts.tolist() == [[0.0], [1.0]]


def test_episodes_and_steps_that_are_given_are_taken(tmp_path):
    names = "h x u next_x episode kept"
    rows = [
        (0, 0.0, 0.5, 1.0, 4, 1),
        (1, 1.0, 0.7, 2.0, 4, 0),
        (0, 2.0, 0.1, 4.0, 7, 1),
        (0, 9.0, 0.2, 9.5, -1, 1),  # a query begins no episode
        (3, 9.0, 0.3, 9.5, -1, 1),
    ]
    data = own(tmp_path, table(*rows, names=names))
    assert data.episode.tolist() == [4, 4, 7, -1, -1] and data.h.tolist() == [0, 1, 0, 0, 3]
    assert data.kept.tolist() == [True, False, True, True, True]
    assert data.starts.tolist() == [[0.0], [2.0]] and data.horizon == 4
    assert own(tmp_path, table(*rows, names=names), horizon=12).horizon == 12


def test_episodes_without_steps_are_counted_from_their_first(tmp_path):
    rows = [(0.0, 0.5, 1.0, 0), (5.0, 0.7, 2.0, 0), (2.0, 0.1, 4.0, 1)]
    data = own(tmp_path, table(*rows, names="x u next_x episode"))
    assert data.h.tolist() == [0, 1, 0]


def test_angles_are_named(tmp_path):
    rows = [(1.0, 0.1, 0.5, 1.1, 0.2), (1.1, 0.2, 0.25, 1.3, 0.4)]
    text = table(*rows, names="theta v u next_theta next_v")
    data = own(tmp_path, text, angles=("theta",))
    assert data.spaces.state == rf.Box.of(theta="angle", v=(0.1, 0.4))
    assert own(tmp_path, text).spaces.state == rf.Box.of(theta=(1.0, 1.3), v=(0.1, 0.4))
    assert own(tmp_path, text, angles=["theta", "v"]).spaces.state.angles == (True, True)
    with pytest.raises(ValueError, match="angles names phi, and there is theta, v"):
        own(tmp_path, text, angles=("phi",))


@pytest.mark.parametrize(
    ("actions", "space"),
    [
        ([0, 2, 1], rf.Discrete(3, "u")),
        ([0, 0, 0], rf.Discrete(1, "u")),
        ([1.0, 2.0, 99.0], rf.Discrete(100, "u")),
        ([0, 1, 100], rf.Box.of(u=(0, 100))),
        ([-1, 0, 1], rf.Box.of(u=(-1, 1))),
        ([0, 0.5, 1], rf.Box.of(u=(0, 1))),
    ],
)
def test_whole_numbers_in_one_column_are_labels(tmp_path, actions, space):
    data = own(tmp_path, table(*((float(i), u, float(i + 1)) for i, u in enumerate(actions))))
    assert data.spaces.action == space
    values = data.action if isinstance(space, rf.Discrete) else data.action[:, 0]
    assert values.tolist() == actions and (values.dtype == np.int64) == isinstance(space, rf.Discrete)


def test_whole_numbers_in_two_columns_are_numbers(tmp_path):
    data = own(tmp_path, table((0.0, 1, 0, 1.0), (1.0, 0, 2, 2.0), names="x u w next_x"))
    assert data.spaces.action == rf.Box.of(u=(0, 1), w=(0, 2))


def test_states_may_be_labels_if_one_says_so(tmp_path):
    data = own(tmp_path, table((0, 1, 2), (2, 0, 1)), state=rf.Discrete(4, "x"))
    assert data.state.tolist() == [0, 2] and data.next_state.tolist() == [2, 1]
    with pytest.raises(ValueError, match=r"x must lie in 0\.\.1, got 0\.\.2"):
        own(tmp_path, table((0, 1, 1), (2, 0, 1)), state=rf.Discrete(2, "x"))
    with pytest.raises(ValueError, match="lacks y or next_y"):
        own(tmp_path, table((0, 1, 2), (2, 0, 1)), state=rf.Box.of(x=(0, 1), y=(0, 1)))


def test_a_users_own_table_is_saved_and_planned_from(tmp_path):
    world, rng = Hill(), np.random.default_rng(0)
    state, action = rng.uniform(-1, 1, (60, 2)), rng.uniform(-1, 1, (60, 2))
    next_state, _ = world.sample(state, action, 0, rng)
    rows = np.concatenate([state, action, next_state], axis=1).tolist()
    data = own(tmp_path, table(*rows, names="theta v u w next_theta next_v"), angles=("theta",), horizon=5)
    data.save(tmp_path / "run.npz")
    again = rf.load(tmp_path / "run.npz")
    assert_same(again, data)
    plan = rf.plan(again, "v")
    assert plan.act(np.array([0.3, 0.0]), 0)[0] == pytest.approx(data.spaces.action.high[0], abs=1e-6)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty: a line of names and lines of numbers were wanted"),
        ("x,u,next_x\n", "must have names that differ and at least one line of numbers"),
        ("x,x,next_x\n0,1,2\n", "must have names that differ"),
        ("x,u,next_x\n0,1,2\n0,one,2\n", r"own\.csv, line 3: could not convert string to float: 'one'"),
        ("0,1,2\n1,2,3\n", "has no state: there must be columns such as x and next_x, got 0, 1, 2"),
        ("x,u,next_x\n0,nan,2\n", r"own\.csv, line 2: 3 finite numbers were wanted, got \['0', 'nan', '2'\]"),
        ("x,u,next_x\n0,1,inf\n", r"own\.csv, line 2: 3 finite numbers"),
        ("x,u,next_x\n0,1,1e999\n", r"own\.csv, line 2: 3 finite numbers"),
        ("x,u,next_x\n0,1,2\n0,1\n", r"own\.csv, line 3: 3 finite numbers were wanted, got \['0', '1'\]"),
        ("x,u,next_x\n0,1,2,3\n", r"own\.csv, line 2: 3 finite numbers"),
        ("x,u,next_x\n0,,2\n", r"own\.csv, line 2: could not convert string to float: ''"),
        ("x,u,y\n0,1,2\n", "has no state: there must be columns such as x and next_x, got x, u, y"),
        ("x;u;next_x\n0,5;1;2\n", r"own\.csv: columns are separated by commas, .* got ';'"),
        ("x\tu\tnext_x\n0\t1\t2\n", "columns are separated by commas"),
        ("x,next_x\n0,1\n1,2\n", "has no action: every column but x must be one"),
        ("x,next_x,h,episode\n0,1,0,0\n", "has no action"),
        ("x,y,u,next_x,next_y\n0,7,1,2,7\n2,7,0.5,3,7\n", r"y is constant \(7\.0\) in these data: leave"),
        ("x,u,w,next_x\n0,1,2,1\n1,1,3,2\n", r"u is constant \(1\.0\) in these data: leave it out"),
        ("my x,u,next_my x\n0,0.5,1\n1,1,2\n", "a variable's name must be a word, .* got 'my x'"),
        ("x,u,next_x,episode\n0,0.5,1,1e308\n1,1,2,2\n", "episode must be at most 9,007,199,254,740,992"),
        ("x,u,next_x,h\n0,0.5,1,99999999999\n1,1,2,2\n", "h must be at most 999,999,999, got 1e\\+11"),
        ("x,u,next_x,terminated\n0,0.5,1,0.5\n1,1,2,0\n", "terminated must be 0 or 1, .* got 0.5"),
        ("x,u,next_x,terminated\n0,0.5,1,nan\n1,1,2,0\n", r"own\.csv, line 2: 4 finite numbers"),
        ("x,u,next_x,kept\n0,0.5,1,1\n1,1,2,-1\n", "kept must be 0 or 1, .* got -1"),
        (f"x,u,{'y' * 200_000}\n0,0.5,1\n", "is no table of numbers: field larger"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        own(tmp_path, text)


def test_a_table_of_many_columns_is_refused_in_a_short_line(tmp_path):
    names = ",".join(f"x{i}" for i in range(5000))
    for action in (None, ["u"]):
        with pytest.raises(ValueError) as refused:
            own(tmp_path, f"{names}\n{','.join(5000 * ['1'])}\n", action=action)
        assert len(str(refused.value)) < 500 + len(str(tmp_path))


@pytest.mark.parametrize(
    "content", [bytes(range(256)), b"x,u,next_x\n\xff\xfe,0,1\n", b"\x00" * 50, b"PK\x03\x04\xff"]
)
def test_what_is_no_text_is_refused(tmp_path, content):
    (tmp_path / "own.csv").write_bytes(content)
    with pytest.raises(ValueError, match=r"own\.csv"):
        rf.Experience.from_csv(tmp_path / "own.csv")


def test_a_missing_table_is_called_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv"):
        rf.Experience.from_csv(tmp_path / "nowhere.csv")


def test_spaces_round_names_are_not_part_of_them(tmp_path):
    data = own(tmp_path, "x , u, next_x\n0, 0.5, 1\n1, 0.25, 2\n")
    assert data.spaces.names == ("x", "u", "next_x")


def test_a_space_that_is_given_takes_its_columns_by_name(tmp_path):
    text = table((1.0, 10.0, 0.5, 2.0, 20.0), (2.0, 20.0, 0.25, 3.0, 30.0), names="a b u next_a next_b")
    try:
        data = own(tmp_path, text, state=rf.Box.of(b=(0, 40), a=(0, 4)))
    except ValueError:
        return  # to refuse it would be honest too
    assert data.spaces.state.variables(data.state)["a"].tolist() == [1.0, 2.0]


def test_half_a_label_is_refused(tmp_path):
    with pytest.raises(ValueError, match="whole numbers"):
        own(tmp_path, table((0.5, 1, 2), (2, 0, 1)), state=rf.Discrete(4, "x"))


def test_labels_are_one_column(tmp_path):
    with pytest.raises(ValueError):
        own(
            tmp_path,
            table((0.0, 1, 2, 2.0), (2.0, 0, 1, 3.0), names="x u w next_x"),
            action=rf.Discrete(3, "u"),
        )


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (table(*WALK), {"horizon": 0}),
        (table(*WALK), {"horizon": "ten"}),
        (table((0.0, 0.5, 1.0, -2), (1.0, 0.25, 2.0, 0), names="x u next_x h"), {}),
        (table((0.0, 0.5, 1.0, 0.5), (1.0, 0.25, 2.0, 1), names="x u next_x h"), {}),
        (table((0.0, 0.5, 1.0, 0), (1.0, 0.25, 2.0, 5), names="x u next_x h"), {"horizon": 2}),
    ],
    ids=["horizon 0", "horizon text", "h below 0", "half a step", "h beyond horizon"],
)
def test_steps_that_cannot_be_are_refused(tmp_path, text, options):
    with pytest.raises(ValueError):
        own(tmp_path, text, **options)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + table(*WALK),
        table(*WALK) + "\n",
        "x,u,next_x,terminated\n0,0.5,1,False\n1,0.25,2,True\n",
    ],
    ids=["byte order mark", "empty last line", "True and False"],
)
def test_what_spreadsheets_write_is_read(tmp_path, text):
    assert len(own(tmp_path, text)) >= 2


def test_false_ends_nothing(tmp_path):
    data = own(tmp_path, "x,u,next_x,terminated\n0,0.5,1,False\n1,0.25,2, TRUE\n")
    assert data.terminated.tolist() == [False, True]


# That run stopped earlier.


def test_a_cut_holds_the_first_rows(data):
    for steps in (1, 7, len(data)):
        part = data.first(steps=steps)
        assert type(part) is rf.Experience and len(part) == steps and part.stopped_by == "steps"
        for name in COLUMNS:
            assert np.array_equal(getattr(part, name), getattr(data, name)[:steps])
        assert part.fitted is None  # it would know of what came later
        for name in ("spaces", "horizon", "model", "strategy", "seed", "observation", "provenance"):
            assert getattr(part, name) == getattr(data, name)
    with pytest.raises(ValueError, match=f"steps must be at most the {len(data)} of these data, got"):
        data.first(steps=len(data) + 1)


@pytest.mark.parametrize("strategy", [rf.Uniform(), rf.Scout()], ids=repr)
@pytest.mark.parametrize("unit", ["steps", "transitions", "episodes"])
def test_a_cut_is_the_run_that_stops_there(strategy, unit):
    world = rf.from_gymnasium("CartPole-v1", horizon=25)
    sizes = (2, 4) if unit == "episodes" else (30, 61)
    long = rf.explore(world, MODEL, strategy, seed=2, **{unit: sizes[1]})
    for size in sizes:
        short = rf.explore(world, MODEL, strategy, seed=2, **{unit: size})
        part = long.first(**{unit: size})
        for name in COLUMNS:
            assert np.array_equal(getattr(part, name), getattr(short, name)), name
        assert part.stopped_by == short.stopped_by == unit


def test_a_cut_knows_no_first_state_of_later_episodes():
    data = made("cart")
    short = rf.explore(rf.from_gymnasium("CartPole-v1"), MODEL, rf.Uniform(), steps=20, seed=1)
    assert len(data.starts) == data.episodes > len(short.starts)
    assert np.array_equal(data.first(steps=20).starts, short.starts)


def test_kept_steps_are_what_a_budget_of_transitions_counts():
    data = made("queries")
    for size in (1, 50, 70):
        assert data.first(transitions=size).kept.sum() == size
    with pytest.raises(ValueError, match="transitions must be at most the 70 of these data, got 71"):
        data.first(transitions=71)


def test_samples_of_every_step_are_what_their_budget_counts():
    data = made("per step")
    counted = [int((data.kept & (data.h == h)).sum()) for h in range(data.horizon)]
    assert data.samples.tolist() == counted and min(counted) >= 1
    part = data.first(samples_per_step=1)
    assert min(part.samples) == 1 and part.kept[-1]
    assert min(data.first(steps=len(part) - 1).samples) == 0
    with pytest.raises(ValueError, match=f"samples_per_step must be at most the {min(counted)} of"):
        data.first(min(counted) + 1)


def test_queries_belong_to_no_episode():
    with pytest.raises(ValueError, match="queries of a generative model belong to no episode: use steps="):
        made("queries").first(episodes=1)


def test_an_episode_that_was_cut_is_no_whole_one():
    data = made("cart")
    ends = np.flatnonzero(data.terminated)
    whole = len(ends)
    assert not data.terminated[-1] and data.episodes == whole + 1
    assert len(data.first(episodes=whole)) == ends[-1] + 1
    with pytest.raises(ValueError, match=f"episodes must be at most the {whole} of these data, got"):
        data.first(episodes=whole + 1)


class CutShort(rf.World):
    """A walk that can only be stepped, and is cut after 10 of its 50 steps."""

    state, action, horizon = rf.Box.of(x=(-9.0, 9.0)), rf.Box.of(u=(-1.0, 1.0)), 50

    def reset(self, rng):
        self.x, self.h = rng.uniform(-1.0, 1.0, 1), 0
        return self.x

    def step(self, action):
        self.x, self.h = 0.9 * self.x + 0.1 * action, self.h + 1
        return self.x, False, self.h == 10


@pytest.mark.parametrize("name", ["a target before the horizon", "a limit before the horizon"])
def test_an_episode_that_was_played_to_its_end_is_a_whole_one(name):
    if name.startswith("a target"):
        world = type("Flat", (Hill,), {"state": rf.Box.of(theta="angle", v=(-2, 2))})()
        data = rf.explore(world, PER_STEP, rf.Online(beta=0.1), episodes=3)
    else:
        data = rf.explore(CutShort(), MODEL, rf.Uniform(), episodes=3)
        assert data.h.max() == 9 and not data.terminated.any()
    assert len(data.first(episodes=3)) == len(data)


def test_the_wrong_unit_is_named():
    with pytest.raises(ValueError, match="a pooled model has one design: use transitions= instead"):
        made("cart").first(3)
    with pytest.raises(ValueError, match="a design for each step: use samples_per_step= instead"):
        made("per step").first(transitions=3)
    with pytest.raises(ValueError, match="give exactly one budget of"):
        made("cart").first(steps=3, episodes=1)
    for wrong in (0, -1, 2.5):
        with pytest.raises(ValueError, match="steps must be a whole number of at least 1"):
            made("cart").first(steps=wrong)


@settings(max_examples=25)
@given(st.sampled_from(NAMES), st.data())
def test_a_cut_of_a_cut_is_the_shorter_one(name, draw):
    data = made(name)
    longer = draw.draw(st.integers(1, len(data)))
    shorter = draw.draw(st.integers(1, longer))
    one, other = data.first(steps=longer).first(steps=shorter), data.first(steps=shorter)
    for column in COLUMNS:
        assert np.array_equal(getattr(one, column), getattr(other, column))
    assert one.episodes == other.episodes and one.samples.tolist() == other.samples.tolist()


def test_designs_are_the_kept_rows():
    data = made("per step")
    kept = [t for t in range(len(data)) if data.kept[t]]
    assert [rows.tolist() for rows in data.designs(pooled=True)] == [kept]
    by_step = [[t for t in kept if data.h[t] == h] for h in range(data.horizon)]
    assert [rows.tolist() for rows in data.designs()] == by_step
    assert repr(data).startswith(f"Experience({len(data)} steps in 17 episodes, {len(kept)} kept, by Online(")


def test_data_cannot_be_changed_by_accident(data):
    for name in COLUMNS:
        with pytest.raises(ValueError, match="read-only"):
            getattr(data, name)[0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.seed = 3


def test_labels_are_no_box():
    assert [made(name).is_box for name in NAMES] == [True, True, True, True, False]


def test_paths_may_be_text_as_well(tmp_path):
    data = made("labels")
    data.save(str(tmp_path / "run.npz"))
    data.to_csv(str(tmp_path / "run.csv"))
    assert len(rf.load(str(tmp_path / "run.npz"))) == len(read(str(tmp_path / "run.csv"), data)) == len(data)
    assert {path.name for path in Path(tmp_path).iterdir()} == {"run.npz", "run.csv"}


SERIES = [(0.0, 0.5), (0.25, -0.5), (0.75, 1.0), (3.0, 1.0), (3.5, 0.25)]


def test_a_time_series_is_read_line_to_line(tmp_path):
    data = own(tmp_path, table(*SERIES, names="x u"), action=["u"])
    assert data.state[:, 0].tolist() == [0.0, 0.25, 0.75, 3.0]
    assert data.action[:, 0].tolist() == [0.5, -0.5, 1.0, 1.0]
    assert data.next_state[:, 0].tolist() == [0.25, 0.75, 3.0, 3.5]
    assert data.episode.tolist() == [0] * 4 and data.h.tolist() == [0, 1, 2, 3] and data.horizon == 4
    assert data.starts.tolist() == [[0.0]] and not data.terminated.any()
    spaces = rf.Box.of(x=(-5, 5)), rf.Box.of(u=(-1, 1))
    for options in ({"state": spaces[0]}, {"action": spaces[1]}, {"state": spaces[0], "action": spaces[1]}):
        again = own(tmp_path, table(*SERIES, names="x u"), **options)
        assert np.array_equal(again.next_state, data.next_state)
        assert again.spaces.state == options.get("state", data.spaces.state)


def test_a_time_series_of_episodes_loses_the_last_line_of_each(tmp_path):
    rows = [(*row, episode) for row, episode in zip(SERIES, (7, 7, 7, 8, 8), strict=True)]
    data = own(tmp_path, table(*rows, names="x u episode"), action=["u"])
    assert data.state[:, 0].tolist() == [0.0, 0.25, 3.0] and data.next_state[:, 0].tolist() == [
        0.25,
        0.75,
        3.5,
    ]
    assert data.episode.tolist() == [7, 7, 8] and data.h.tolist() == [0, 1, 0]
    assert data.starts.tolist() == [[0.0], [3.0]]
    steps = [(*row, h) for row, h in zip(SERIES, (0, 1, 2, 0, 1), strict=True)]
    by_step = own(tmp_path, table(*steps, names="x u h"), action=["u"])
    assert np.array_equal(by_step.next_state, data.next_state) and by_step.episode.tolist() == [0, 0, 1]


def test_a_time_series_ends_in_the_state_that_says_so(tmp_path):
    rows = [(*row, ended) for row, ended in zip(SERIES, (0, 0, 1, 0, 0), strict=True)]
    data = own(tmp_path, table(*rows, names="x u terminated"), action=["u"])
    assert data.next_state[:, 0].tolist() == [0.25, 0.75, 3.5]
    assert data.terminated.tolist() == [False, True, False] and data.episode.tolist() == [0, 0, 1]


def test_a_time_series_gives_what_its_transitions_give(tmp_path):
    world = Hill()
    data = rf.explore(world, MODEL, rf.Uniform(), steps=40)
    lines = ["episode,theta,v,u,w,terminated"]
    for episode in range(data.episodes):
        rows = np.flatnonzero(data.episode == episode)
        states = [*data.state[rows], data.next_state[rows[-1]]]
        actions, ends = [*data.action[rows], (0.0, 0.0)], [False, *data.terminated[rows]]
        for state, action, end in zip(states, actions, ends, strict=True):
            lines.append(",".join(map(repr, [episode, *map(float, state), *map(float, action), int(end)])))
    again = own(tmp_path, "\n".join(lines), state=world.state, action=world.action)
    for name in ("episode", "h", "state", "action", "next_state", "terminated", "starts"):
        np.testing.assert_array_equal(getattr(again, name), getattr(data, name), err_msg=name)


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (table(*SERIES, names="x u"), {}, "has no state: .*if its lines follow each other, give action="),
        (table(*SERIES, names="x u"), {"action": ["w"]}, "has no action|lacks the action w"),
        (table(*SERIES, names="x u"), {"action": "u"}, r"a list of names, got 'u': write \['u'\]"),
        (table(*SERIES, names="x u"), {"action": ["x", "u"]}, "lacks a state"),
        (table(*SERIES, names="x u"), {"state": rf.Box.of(y=(-1, 1))}, "lacks y"),
        (table((0.0, 0.5), names="x u"), {"action": ["u"]}, "no line that follows another of its episode"),
        (table((0.0, 0.5, 1), (1.0, 0.5, 2), names="x u episode"), {"action": ["u"]}, "no line that follows"),
    ],
)
def test_a_time_series_that_cannot_be_read_is_refused(tmp_path, text, options, said):
    with pytest.raises(ValueError, match=said):
        own(tmp_path, text, **options)


def test_a_table_of_text_is_not_what_load_reads(tmp_path):
    (tmp_path / "own.csv").write_text(table(*WALK))
    with pytest.raises(ValueError, match=r"own\.csv is a table of text: rf\.Experience\.from_csv reads it"):
        rf.load(tmp_path / "own.csv")

"""Data of real states: files, and whatever may be wrong with one."""

import csv
import dataclasses
import io
import json
import math
import zipfile

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import rewardfree as rf
import rewardfree.files as files
from recorded_runs import (
    COLUMNS,
    MODEL,
    NAMES,
    PER_STEP,
    SAID,
    assert_same,
    finite,
    made,
)
from rewardfree.data.experience import FILE_VERSION
from rewardfree.worlds.scaling import ScaledModel, Scaling


@pytest.fixture(params=NAMES)
def data(request):
    return made(request.param)


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

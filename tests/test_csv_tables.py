"""Data as tables of text: what the library writes, and recordings of a user."""

import csv

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rewardfree as rf
from recorded_runs import (
    COLUMNS,
    MODEL,
    NAMES,
    Hill,
    assert_same,
    made,
    read,
)
from rewardfree.doubts import LeftOutColumns, NoFirstStates
from rewardfree.evaluation.diagnosis import diagnose
from rewardfree.worlds import Spaces


@pytest.fixture(params=NAMES)
def data(request):
    return made(request.param)


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
@given(st.lists(st.tuples(*[st.floats(-9e99, 9e99)] * 3), min_size=2, max_size=6))
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
    assert data.spaces == Spaces(rf.Box.of(x=None), rf.Box.of(u=(-0.5, 1.0)))
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
    assert data.episode.tolist() == [0, 0, 1, -1, -1] and data.h.tolist() == [0, 1, 0, 0, 3]
    assert data.kept.tolist() == [True, False, True, True, True]
    assert data.starts.tolist() == [[0.0], [2.0]] and data.horizon == 4
    assert own(tmp_path, table(*rows, names=names), horizon=12).horizon == 12


@pytest.mark.parametrize("numbers", [(0, 0, 1, 2), (1, 1, 2, 3), (5, 5, 6, 7), (9, 9, 3, 4)])
def test_episodes_are_numbered_from_0_whatever_the_table_calls_them(tmp_path, numbers):
    rows = [(0.0, 0.5, 1.0), (1.0, 0.7, 2.0), (2.0, 0.1, 4.0), (9.0, 0.2, 9.5)]
    rows = [(*row, number) for row, number in zip(rows, numbers, strict=True)]
    data = own(tmp_path, table(*rows, names="x u next_x episode"))
    assert data.episode.tolist() == [0, 0, 1, 2] and data.episodes == 3
    assert len(data.first(episodes=1)) == 2 and data.first(episodes=2).starts.tolist() == [[0.0], [2.0]]
    data.save(tmp_path / "own.npz")
    assert_same(rf.load(tmp_path / "own.npz"), data)


@pytest.mark.parametrize("clock", ["time", "Timestamp", "step", "index", ""])
def test_what_tells_the_time_is_a_variable_only_if_one_says_so(tmp_path, clock):
    series = table(*((100.0 + t, *row) for t, row in enumerate(SERIES)), names="CLOCK x u")
    series = series.replace("CLOCK", clock)
    said = rf"own\.csv: {clock or 'a column without a name'} was left out"
    with pytest.warns(LeftOutColumns, match=said) as raised:
        data = own(tmp_path, series, action=["u"])
    assert len(raised) == 1 and data.spaces.names == ("x", "u", "next_x")
    assert data.episode.tolist() == [0] * 4
    transitions = table(*((*row, 3.0 * t) for t, row in enumerate(WALK)), names="x u next_x CLOCK")
    with pytest.warns(LeftOutColumns):
        data = own(tmp_path, transitions.replace("CLOCK", clock))
    assert data.spaces.names == ("x", "u", "next_x")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("step", r"must be one; step was left out as a time; action=\['step'\] makes it one$"),
        ("step time", r"step, time were left out as a time; action=\['step'\] makes the first of them one$"),
    ],
)
@pytest.mark.filterwarnings("ignore::rewardfree.doubts.LeftOutColumns")
def test_an_action_that_looks_like_a_time_can_be_named(tmp_path, names, said):
    more = [0.5] * (len(names.split()) - 1)
    text = table(
        *((x, x + 0.3 * x, u, *more) for x, u in ((0.0, 2), (1.0, 1), (2.0, 0))), names=f"x next_x {names}"
    )
    with pytest.raises(ValueError, match=said):
        own(tmp_path, text)
    assert own(tmp_path, text, action=["step"]).spaces.action.names == ("step",)


def test_what_tells_the_time_is_taken_where_it_is_named(tmp_path, recwarn):
    series = table(*((t, *row) for t, row in enumerate(SERIES)), names="time x u")
    box = rf.Box.of(time=(0, 9), x=(-5, 5))
    assert own(tmp_path, series, state=box, action=["u"]).spaces.state == box
    twins = table((0.0, 1.0, 0.5, 0.1, 1.5), (0.1, 1.5, 0.7, 0.2, 2.0), names="time x u next_time next_x")
    assert own(tmp_path, twins).spaces.names == ("time", "x", "u", "next_time", "next_x")
    own(tmp_path, series, state=rf.Box.of(x=(-5, 5)), action=["u"])  # nothing of it could be a variable
    assert not recwarn.list


def test_a_file_of_a_recording_with_numbers_of_its_own_is_read(tmp_path):
    """As they were written before tables were numbered anew."""
    rows = [(0.0, 0.5, 1.0, 3), (1.0, 0.7, 2.0, 3), (2.0, 0.1, 4.0, 7), (9.0, 0.2, 9.5, -1), (7.0, 0, 9.5, 9)]
    data = own(tmp_path, table(*rows, names="x u next_x episode"))
    data.save(tmp_path / "own.npz")
    arrays = dict(np.load(tmp_path / "own.npz"))
    np.savez(tmp_path / "older.npz", **arrays | {"episode": np.array([3, 3, 7, -1, 9])})
    again = rf.load(tmp_path / "older.npz")
    assert_same(again, data)
    assert again.episode.tolist() == [0, 0, 1, -1, 2] and not again.episode.flags.writeable
    for wrong, said in (([3, 3, 7, -1, 3], "3 comes again"), ([3, 3, 7, -2, 9], r"must lie in -1\.\.")):
        np.savez(tmp_path / "wrong.npz", **arrays | {"episode": np.array(wrong)})
        with pytest.raises(ValueError, match=said):
            rf.load(tmp_path / "wrong.npz")


def test_an_episode_that_comes_again_is_refused(tmp_path):
    rows = [(0.0, 0.5, 1.0, 3), (5.0, 0.7, 2.0, 4), (1.0, 0.1, 4.0, 3)]
    with pytest.raises(ValueError, match=r"episode 3 comes again after lines of another one: .* a number of"):
        own(tmp_path, table(*rows, names="x u next_x episode"))
    queries = [(0.0, 0.5, 1.0, 3), (5.0, 0.7, 2.0, -1), (1.0, 0.1, 4.0, 4), (6.0, 0.1, 4.0, -1)]
    data = own(tmp_path, table(*queries, names="x u next_x episode"))
    assert data.episode.tolist() == [0, -1, 1, -1]


def test_steps_that_are_counted_from_1_keep_their_first_states(tmp_path):
    names = "x u next_x episode h"
    rows = [(0.0, 0.5, 1.0, 1, 1), (1.0, 0.7, 2.0, 1, 2), (5.0, 0.1, 4.0, 2, 1)]
    data = own(tmp_path, table(*rows, names=names))
    assert data.h.tolist() == [0, 1, 0] and data.starts.tolist() == [[0.0], [5.0]] and data.horizon == 2
    series = own(
        tmp_path, table(*((*row, h + 1) for h, row in enumerate(SERIES)), names="x u h"), action=["u"]
    )
    assert series.h.tolist() == [0, 1, 2, 3] and series.starts.tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("lines", "h", "starts"),
    [
        ([(1, 1), (1, 2), (2, 1)], [0, 1, 0], 2),
        ([(-1, 1), (1, 1), (-1, 0), (1, 2), (2, 1)], [1, 0, 0, 1, 0], 2),  # queries stay
        ([(-1, 1), (-1, 2)], [1, 2], 0),
        ([(-1, 1), (0, 0), (0, 1)], [1, 0, 1], 1),
        ([(0, 1), (0, 2), (1, 5), (1, 6)], [1, 2, 5, 6], None),  # it begins late
        ([(0, 1), (0, 2), (1, 0), (1, 1)], [1, 2, 0, 1], 1),
    ],
)
def test_steps_count_from_1_where_every_episode_says_so(tmp_path, recwarn, lines, h, starts):
    rows = [(float(i), 0.1 * i, i + 0.5, *line) for i, line in enumerate(lines)]
    data = own(tmp_path, table(*rows, names="x u next_x episode h"))
    assert data.h.tolist() == h and len(data.starts) == (starts or 0)
    assert [each.category for each in recwarn] == ([NoFirstStates] if starts is None else [])


def test_a_recording_that_begins_later_says_that_it_has_no_first_states(tmp_path):
    rows = [(0.0, 0.5, 1.0, 7), (1.0, 0.7, 2.0, 8), (2.0, 0.1, 4.0, 9)]
    with pytest.warns(NoFirstStates, match="h is never 0: count the steps of an episode from 0") as said:
        data = own(tmp_path, table(*rows, names="x u next_x h"))
    assert len(said) == 1 and len(data.starts) == 0 and data.h.tolist() == [7, 8, 9]
    data.save(tmp_path / "own.npz")
    assert_same(rf.load(tmp_path / "own.npz"), data)


def test_steps_that_begin_again_begin_an_episode(tmp_path):
    rows = [(0.0, 0.5, 1.0, 0), (1.0, 0.7, 0.0, 1), (0.0, 0.1, 4.0, 0)]  # at rest: the states go on
    data = own(tmp_path, table(*rows, names="x u next_x h"))
    assert data.episode.tolist() == [0, 0, 1] and data.starts.tolist() == [[0.0], [0.0]]


def test_episodes_without_steps_are_counted_from_their_first(tmp_path):
    rows = [(0.0, 0.5, 1.0, 0), (5.0, 0.7, 2.0, 0), (2.0, 0.1, 4.0, 1)]
    data = own(tmp_path, table(*rows, names="x u next_x episode"))
    assert data.h.tolist() == [0, 1, 0]


def test_angles_are_named(tmp_path):
    rows = [(1.0, 0.1, 0.5, 1.1, 0.2), (1.1, 0.2, 0.25, 1.3, 0.4)]
    text = table(*rows, names="theta v u next_theta next_v")
    data = own(tmp_path, text, angles=("theta",))
    assert data.spaces.state == rf.Box.of(theta="angle", v=None)
    assert own(tmp_path, text).spaces.state == rf.Box.of(theta=None, v=None)
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
        ("x,u,next_x\n0,0.5,1e200\n1,1,2\n", r"next_state must stay below 1e\+100, got 1e\+200"),
        ("x,u,next_x,episode,h\n0,0.5,1,0,1\n1,1,2,0,0\n", "h must rise within an episode"),
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


def test_actions_may_come_one_after_the_other(tmp_path):
    data = own(tmp_path, table(*SERIES, names="x u"), action=(name for name in ["u"]))
    assert data.spaces.names == ("x", "u", "next_x")


def test_a_time_series_of_episodes_loses_the_last_line_of_each(tmp_path):
    rows = [(*row, episode) for row, episode in zip(SERIES, (7, 7, 7, 8, 8), strict=True)]
    data = own(tmp_path, table(*rows, names="x u episode"), action=["u"])
    assert data.state[:, 0].tolist() == [0.0, 0.25, 3.0] and data.next_state[:, 0].tolist() == [
        0.25,
        0.75,
        3.5,
    ]
    assert data.episode.tolist() == [0, 0, 1] and data.h.tolist() == [0, 1, 0]
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
        (
            table(*SERIES, names="x u"),
            {"action": 3},
            "action must be a space, or it must be a list of names, got 3",
        ),
        (table(*SERIES, names="x u"), {"action": [3]}, "must be a list of names, got .3."),
        (table(*SERIES, names="x u"), {"state": 3}, "state must be a Box or Discrete, such as"),
        (
            table(*SERIES, names="x u"),
            {"action": ["u"], "angles": 3},
            "angles must be a list of names, got 3",
        ),
        (table(*SERIES, names="x u"), {"action": "u"}, r"a list of names, got 'u': write \['u'\]"),
        (table(*SERIES, names="x u"), {"action": ["x", "u"]}, "lacks a state"),
        (table(*SERIES, names="x u"), {"state": rf.Box.of(y=(-1, 1))}, "lacks y"),
        ("x,u,terminated\n0,0.5,0\n1,1,0.5\n", {"action": ["u"]}, "terminated must be 0 or 1, .* got 0.5"),
        ("x,u,terminated\n0,0.5,0\n1,1,7\n", {"action": ["u"]}, "terminated must be 0 or 1, .* got 7"),
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


# What data span is no bound.


def test_states_have_no_bounds_but_walls_that_steps_came_to(tmp_path):
    """What stays where it is came to no wall, nor what was there by chance."""
    rows = [(0.1 * i, 1.0, i % 3, 0.5 if i > 1 else 0.1, 1.0 + 0.5 * (i == 4), -i) for i in range(6)]
    data = own(tmp_path, table(*rows, names="x y u next_x next_y z"), state=None, action=["u", "z"])
    assert data.spaces.state == rf.Box.of(x=(-np.inf, 0.5), y=None)
    assert data.spaces.action == rf.Box.of(u=(0.0, 2.0), z=(-5.0, 0.0))


@pytest.mark.parametrize(
    ("world", "n", "strategy", "angles"),
    [
        ("MountainCar-v0", 300, rf.Uniform(), ()),
        ("Pendulum-v1", 150, rf.Generative(), ("theta",)),
        ("MountainCar-v0", 150, rf.Scout(), ()),
    ],
)
def test_a_table_of_the_same_data_gets_the_same_verdict(tmp_path, world, n, strategy, angles):
    data = rf.explore(world, strategy=strategy, transitions=n, progress=False)
    data.to_csv(tmp_path / "own.csv")
    read = rf.Experience.from_csv(tmp_path / "own.csv", angles=angles)
    told, known = diagnose(read), diagnose(data)
    assert told.verdict.split(":")[0] == known.verdict.split(":")[0]
    assert told.score == pytest.approx(known.score, abs=0.15)


def test_a_plan_from_a_table_leaves_what_was_seen_and_says_so(tmp_path):
    data = rf.explore("MountainCar-v0", strategy=rf.Uniform(), transitions=300, progress=False)
    data.to_csv(tmp_path / "own.csv")
    read = rf.Experience.from_csv(tmp_path / "own.csv")
    with pytest.warns(rf.doubts.UnknownStates):
        plan = rf.plan(read, "where(position < -1, 1, 0)")
    assert np.isfinite(plan.mesh_values.mesh.nodes).all()
    _, highest = read.spaces.state.inside(np.array([[0.0, 0.0], [9.0, 9.0]]))
    assert highest.tolist() == [9.0, 9.0] and plan.mesh_values.mesh.high[0] > read.next_state[:, 0].max()

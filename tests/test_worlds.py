"""Finite worlds: what they are made of, what is refused, files and sampling."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import rewardfree as rf
from finite_worlds import same_world


def laws(s=4, a=3, steps=None, seed=0):
    """Rows with zeros at the front, in the middle and at the end, which sum to 1 within rounding."""
    shape = (s, a, s) if steps is None else (steps, s, a, s)
    rng = np.random.default_rng(seed)
    P = rng.random(shape) * (rng.random(shape) < 0.7)
    P[..., seed % s] += 0.1
    return P / P.sum(axis=-1, keepdims=True)


def world_of(**changed):
    given_ = {"P": laws(), "horizon": 5, "start": 1, **changed}
    return rf.FiniteWorld(given_.pop("P"), given_.pop("horizon"), given_.pop("start"), **given_)


# A world is what it was made from.


def test_fields():
    P = laws()
    world = rf.FiniteWorld(P, horizon=5, start=1)
    assert np.array_equal(world.P, P) and world.P.dtype == np.float64
    assert (world.horizon, world.stationary, world.grid.shape) == (5, True, (4, 3))
    assert world.start.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert world.states.tolist() == [[0.0], [1 / 3], [2 / 3], [1.0]]
    assert world.actions.tolist() == [[0.0], [0.5], [1.0]]
    assert all(np.array_equal(world.law(h), P) for h in range(5))
    assert repr(world) == "FiniteWorld(4 states, 3 actions, horizon 5, one law)"


def test_a_law_for_each_step():
    P = laws(steps=5)
    world = rf.FiniteWorld(P, horizon=5)
    assert not world.stationary
    assert all(np.array_equal(world.law(h), P[h]) for h in range(5))
    assert repr(world) == "FiniteWorld(4 states, 3 actions, horizon 5, a law for each step)"


def test_it_holds_no_reward():
    assert [name for name in dir(world_of()) if "reward" in name] == []


def test_no_start_is_a_uniform_one():
    assert world_of(start=None).start.tolist() == [0.25] * 4


@pytest.mark.parametrize("start", [[0.0, 0.5, 0.5, 0.0], np.array([0.1, 0.2, 0.3, 0.4]), (1, 0, 0, 0)])
def test_a_start_may_be_a_distribution(start):
    assert world_of(start=start).start.tolist() == list(start)


@pytest.mark.parametrize("start", [3, np.int64(3), 3.0, np.array(3)])
def test_a_start_may_be_a_state(start):
    assert world_of(start=start).start.tolist() == [0.0, 0.0, 0.0, 1.0]


def test_a_law_may_be_lists_whole_numbers_or_single_precision():
    cycle = [[[0, 1], [1, 0]], [[1, 0], [0, 1]]]
    for P in (cycle, np.array(cycle), np.array(cycle, np.float32), np.array(cycle, bool)):
        world = rf.FiniteWorld(P, horizon=2)
        assert world.P.dtype == np.float64 and world.P.tolist() == cycle
    P = laws().astype(np.float32)
    world = world_of(P=P)
    np.testing.assert_allclose(world.P, P, rtol=1e-6)
    np.testing.assert_allclose(world.P.sum(axis=-1), 1.0, rtol=0, atol=1e-15)


def test_a_world_of_single_precision_can_be_saved_and_loaded(tmp_path):
    rng = np.random.default_rng(0)
    P = rng.random((60, 4, 60)).astype(np.float32)
    start = rng.random(60).astype(np.float32)
    world = rf.FiniteWorld(P / P.sum(axis=-1, keepdims=True), 3, start / start.sum())
    world.save(tmp_path / "world.npz")
    again = rf.FiniteWorld.load(tmp_path / "world.npz")
    assert np.array_equal(again.P, world.P) and np.array_equal(again.start, world.start)
    np.testing.assert_allclose(rf.optimal_value(world, np.ones((60, 4)))[0], 3.0, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ((3, 0, 0, 0.5), r"state must be a whole number of 0\.\.2, got 3"),
        ((-1, 0, 0, 0.5), "state must be a whole number"),
        ((0.5, 0, 0, 0.5), "state must be a whole number"),
        ((0, 2, 0, 0.5), r"action must be a whole number of 0\.\.1, got 2"),
        ((0, 0, 5, 0.5), r"h must lie in 0\.\.3, got 5"),
        ((0, 0, 0, 1.0), "uniform must hold random numbers of at least 0 and below 1"),
        ((0, 0, 0, np.nan), "uniform must hold random numbers"),
    ],
)
def test_sampling_what_is_not_there_is_refused(asked, said):
    world = rf.FiniteWorld(np.full((3, 2, 3), 1 / 3), horizon=4)
    with pytest.raises(ValueError, match=said):
        world.sample(*asked)


def test_features_of_what_is_not_there_are_refused():
    with pytest.raises(ValueError, match=r"action must be a whole number of 0\.\.1"):
        rf.FiniteWorld(np.full((3, 2, 3), 1 / 3), horizon=4).features(0, 5)


def test_a_law_that_does_not_fit_says_so(monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr("rewardfree.worlds.finite.np.array", full)
    with pytest.raises(MemoryError, match=r"no room for P of shape \(3, 2, 3\)"):
        rf.FiniteWorld(np.full((3, 2, 3), 1 / 3), horizon=4)


def test_one_state_and_one_action_are_enough():
    world = rf.FiniteWorld([[[1.0]]], horizon=1)
    assert world.grid.points.tolist() == [[0.0, 0.0]]
    assert world.sample(0, 0, 0, 0.999) == 0


@pytest.mark.parametrize("name", ["P", "start", "states", "actions"])
def test_the_worlds_own_copy_cannot_be_changed(name):
    given_ = {
        "P": laws(),
        "start": np.array([0.1, 0.2, 0.3, 0.4]),
        "states": np.arange(8.0).reshape(4, 2),
        "actions": np.arange(3.0),
    }
    world = world_of(**given_)
    before = getattr(world, name).copy()
    given_[name][:] = 0.0  # through what it was made from
    assert np.array_equal(getattr(world, name), before)
    with pytest.raises(ValueError, match="read-only"):
        getattr(world, name)[:] = 0.0


def test_coordinates_of_one_and_two_dimensions():
    states = np.array([[0.0, 5.0], [1.0, 6.0], [2.0, 7.0], [3.0, 8.0]])
    actions = [-1, 0, 4]
    world = world_of(states=states, actions=actions)
    assert world.states.tolist() == states.tolist() and world.actions.tolist() == [[-1.0], [0.0], [4.0]]
    expected = [[*states[s], actions[a]] for s in range(4) for a in range(3)]  # z = s * |A| + a
    assert world.grid.points.tolist() == expected
    s, a = np.array([3, 0, 2]), np.array([1, 2, 2])
    assert world.features(s, a).tolist() == [expected[3 * i + j] for i, j in zip(s, a, strict=True)]
    assert world.features(2, 1).tolist() == expected[7]


def test_a_model_of_the_right_dimension_sees_the_coordinates():
    world = world_of(states=np.random.default_rng(0).random((4, 2)))
    model = rf.Model(rf.Matern(1.5, (0.3, 0.4, 0.5)), ridge=0.1)
    data = rf.explore(world, model, rf.Generative(), samples_per_step=3)
    assert data.points([0, 5, 10]).tolist() == rf.query_plan(model, world.grid.points, 3).tolist()


# What is refused, and what is said.


@pytest.mark.parametrize("steps", [None, 5])
def test_rows_must_sum_to_one(steps):
    P, row = laws(steps=steps), (2, 1) if steps is None else (3, 2, 1)
    P[row] *= 0.9
    where = re.escape(str(row))
    with pytest.raises(
        ValueError, match=rf"every row of P must sum to 1, got 0\.9 at {where}: use P / P\.sum"
    ):
        world_of(P=P)


def test_the_remedy_for_rows_works():
    P = 3.0 * laws()
    with pytest.raises(ValueError, match="every row of P must sum to 1, got 3"):
        world_of(P=P)
    assert np.allclose(world_of(P=P / P.sum(axis=-1, keepdims=True)).P, laws(), rtol=1e-15)


@pytest.mark.parametrize(("dtype", "off", "taken"), [
    (np.float64, 1e-12, True), (np.float64, 1e-8, False), (np.float32, 1e-6, True), (np.float32, 1e-4, False),
])  # fmt: skip
def test_rows_may_be_off_by_rounding(dtype, off, taken):
    P = (laws() * (1.0 + off)).astype(dtype)
    if taken:
        world_of(P=P)
    else:
        with pytest.raises(ValueError, match="every row of P must sum to 1"):
            world_of(P=P)


def test_negative_probabilities_are_refused():
    P = laws()
    P[1, 2, 0], P[1, 2, 1] = -0.25, P[1, 2, 0] + P[1, 2, 1] + 0.25
    with pytest.raises(ValueError, match=r"P must not be negative, got -0\.25"):
        world_of(P=P)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_law_must_be_finite(bad):
    P = laws()
    P[0, 0, 0] = bad
    with pytest.raises(ValueError, match="P must be finite, got 1 NaN or infinite of 48 values"):
        world_of(P=P)


@pytest.mark.parametrize(
    "shape", [(), (4,), (4, 4), (4, 4, 3), (3, 4, 4), (0, 3, 0), (4, 0, 4), (5, 3, 4, 4), (1, 5, 4, 3, 4)]
)
def test_shapes_of_a_law(shape):
    with pytest.raises(
        ValueError, match=r"P must have shape \(s, a, s\) or \(h, s, a, s\), next states last, got"
    ):
        world_of(P=np.ones(shape))


@pytest.mark.parametrize("steps", [1, 4, 6])
def test_a_law_for_every_step(steps):
    with pytest.raises(ValueError, match=f"P must have one law for each of 5 steps, got {steps}"):
        world_of(P=laws(steps=steps))


@pytest.mark.parametrize("P", ["law", np.ones((2, 2, 2)) * 1j, [[[1.0], [0.5, 0.5]]]])
def test_a_law_must_be_numbers(P):
    with pytest.raises(ValueError, match="P must be"):
        world_of(P=P)


@pytest.mark.parametrize("horizon", [0, -1, 2.5, True, None, "5", np.nan])
def test_horizon_must_be_a_whole_number(horizon):
    with pytest.raises(ValueError, match="horizon must be a whole number"):
        world_of(horizon=horizon)


def test_start_must_be_a_state():
    with pytest.raises(ValueError, match=r"start must be one of the states 0\.\.3, got 4"):
        world_of(start=4)
    for start in (-1, 1.5, True, "1", np.nan):
        with pytest.raises(ValueError, match="start must be a whole number"):
            world_of(start=start)


@pytest.mark.parametrize(
    "start",
    [
        [0.5, 0.5],
        [0.2] * 5,
        np.full((2, 2), 0.25),
        [0.5, 0.5, 0.5, -0.5],
        [0.25, 0.25, 0.25, 0.2],
        [0.25, 0.25, 0.25, np.nan],
        [np.inf, 0.0, 0.0, 0.0],
        [],
    ],
)
def test_start_must_be_a_distribution(start):
    with pytest.raises(
        ValueError, match="start must be a state, None, or 4 probabilities that sum to 1, got"
    ):
        world_of(start=start)


def test_a_start_in_single_precision_is_taken():
    """As P is; and what is said of it now is that 4 probabilities were wanted that sum to 1, got sum 1."""
    assert world_of(start=np.array([0.1, 0.2, 0.3, 0.4], np.float32)).start.sum() == pytest.approx(
        1.0, abs=1e-6
    )


@pytest.mark.parametrize("name", ["states", "actions"])
@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.zeros(9), "must have one row for each of"),
        (np.zeros((9, 2)), "must have one row for each of"),
        (np.zeros((4, 3, 2)), r"must have shape \(n, d\)"),
        (0.5, r"must have shape \(n, d\)"),
        ([0.0, np.nan, 1.0, 2.0], "must be finite"),
        (np.zeros((4, 0)), "must have at least one coordinate"),
        ("abcd", "must be an array of numbers"),
    ],
)
def test_coordinates_must_be_points(name, values, said):
    with pytest.raises(ValueError, match=f"{name} {said}"):
        world_of(**{name: values})


# Files.


@pytest.mark.parametrize("steps", [None, 5])
def test_a_world_comes_back_from_its_file(tmp_path, steps):
    coordinates = {"states": np.random.default_rng(1).random((4, 2)), "actions": [3.0, 1.0, 2.0]}
    world = world_of(P=laws(steps=steps), start=[0.1, 0.2, 0.3, 0.4], **coordinates)
    world.save(tmp_path / "world.npz")
    again = rf.FiniteWorld.load(tmp_path / "world.npz")
    assert same_world(again, world) and again.stationary == world.stationary
    with np.load(tmp_path / "world.npz", allow_pickle=False) as file:  # by anybody
        assert np.array_equal(file["P"], world.P) and int(file["horizon"]) == 5
        assert not [name for name in file.files if "reward" in name]


def test_a_drawn_world_comes_back_from_its_file(tmp_path):
    world = rf.rkhs_world(rf.Matern(1.5, 0.3), states=6, actions=5, coarse=3).world
    world.save(tmp_path / "x")
    assert same_world(rf.FiniteWorld.load(tmp_path / "x"), world)


def test_a_damaged_world_is_refused(tmp_path):
    path = tmp_path / "world.npz"
    world_of().save(path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"world\.npz is not a FiniteWorld file, or is damaged"):
            rf.FiniteWorld.load(path)


def file_with(path, **changed):
    world = world_of()
    arrays = {name: getattr(world, name) for name in ("P", "horizon", "start", "states", "actions")}
    arrays |= {"kind": "FiniteWorld", "version": 1, **changed}
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"kind": None}, "is a foreign file, a FiniteWorld file was wanted"),
        ({"kind": "Transitions"}, "is a Transitions file, a FiniteWorld file was wanted"),
        ({"version": 3}, "has version 3 of the FiniteWorld format"),
        ({"P": None}, "does not hold a world: 'P'"),
        ({"start": None}, "does not hold a world: 'start'"),
        ({"P": 2.0 * laws()}, "does not hold a world: every row of P must sum to 1"),
        ({"P": np.full((4, 3, 4), np.nan)}, "does not hold a world: P must be finite"),
        ({"P": np.array(["law"])}, "does not hold a world: P must be"),
        ({"P": np.array([{}], dtype=object)}, "is not a FiniteWorld file, or is damaged: Object arrays"),
        ({"horizon": np.array([1, 2])}, "does not hold a world: horizon must be a whole number"),
        ({"start": np.ones(4)}, "does not hold a world: start must be"),
        ({"states": np.zeros(3)}, "does not hold a world: states must have one row for each of 4"),
    ],
)
def test_a_foreign_file_is_refused(tmp_path, changed, said):
    file_with(tmp_path / "x.npz", **changed)
    with pytest.raises(ValueError, match=rf"x\.npz {said}"):
        rf.FiniteWorld.load(tmp_path / "x.npz")


def test_the_file_those_are_made_from_is_good(tmp_path):
    file_with(tmp_path / "x.npz")
    assert same_world(rf.FiniteWorld.load(tmp_path / "x.npz"), world_of())


# Sampling.


def by_search(row, uniform):
    """The inverse of the cumulative distribution, by bisection."""
    return np.minimum(np.searchsorted(np.cumsum(row), uniform, side="right"), len(row) - 1)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 4), st.sampled_from([None, 3]))
def test_sampling_inverts_the_cumulative_law(seed, s, a, steps):
    P = laws(s, a, steps, seed)
    world, rng = rf.FiniteWorld(P, horizon=3), np.random.default_rng(seed)
    for h in range(3):
        state, action, uniform = rng.integers(0, s, 20), rng.integers(0, a, 20), rng.random(20)
        expected = [by_search(world.law(h)[i, j], u) for i, j, u in zip(state, action, uniform, strict=True)]
        assert world.sample(state, action, h, uniform).tolist() == expected


def test_the_law_of_the_step_is_the_one_sampled():
    P = np.zeros((3, 4, 2, 4))
    for h in range(3):
        P[h, :, :, h + 1] = 1.0
    world = rf.FiniteWorld(P, horizon=3)
    assert [int(world.sample(0, 1, h, 0.5)) for h in range(3)] == [1, 2, 3]


def test_frequencies_are_the_probabilities():
    P, n = laws(seed=3), 4000
    world, rng = rf.FiniteWorld(P, horizon=1), np.random.default_rng(0)
    for s, a in itertools.product(range(4), range(3)):
        seen = np.bincount(world.sample(s, a, 0, rng.random(n)), minlength=4)
        possible = P[s, a] > 0.0
        assert seen[~possible].sum() == 0
        if possible.sum() > 1:
            assert stats.chisquare(seen[possible], n * P[s, a][possible]).pvalue > 1e-3


@pytest.mark.parametrize("uniform", [0.0, 0.25, 0.5, 0.75, np.nextafter(1.0, 0.0)])
@pytest.mark.parametrize("row", [[0, 0.5, 0.5, 0], [0, 0, 1, 0], [0.25, 0, 0, 0.75], [1, 0, 0, 0]])
def test_the_impossible_does_not_happen(row, uniform):
    world = rf.FiniteWorld(np.tile(row, (4, 2, 1)), horizon=1, start=row)
    assert row[int(world.sample(2, 1, 0, uniform))] > 0.0
    assert row[int(world.first_states(uniform))] > 0.0


def test_there_is_always_a_next_state():
    tenths = np.full(10, 0.1)
    almost = np.nextafter(1.0, 0.0)
    assert np.cumsum(tenths)[-1] <= almost  # rounding leaves nothing for the largest uniform number
    world = rf.FiniteWorld(np.tile(tenths, (10, 1, 1)), horizon=1, start=tenths)
    assert int(world.sample(0, 0, 0, almost)) == int(world.first_states(almost)) == 9


@pytest.mark.parametrize(("dtype", "off"), [(np.float64, 5e-10), (np.float32, 5e-6)])
def test_the_impossible_does_not_happen_within_rounding(dtype, off):
    """A row that sums to a little less than 1 leaves a gap, which goes to the last state, possible or not."""
    row = np.array([0.5, 0.5 - off, 0.0, 0.0], dtype)
    world = rf.FiniteWorld(np.tile(row, (4, 2, 1)), horizon=1)
    assert int(world.sample(2, 1, 0, 1.0 - off / 10)) == 1


def test_states_actions_and_uniforms_broadcast():
    world, rng = world_of(P=laws(seed=1)), np.random.default_rng(0)
    state, action = np.arange(4)[:, None], np.arange(3)
    for shape in ((), (3,), (4, 3), (2, 4, 3), (4, 1)):
        uniform = rng.random(shape)
        together = world.sample(state, action, 0, uniform)
        everything = np.broadcast_arrays(state, action, uniform)
        assert together.shape == everything[0].shape
        one_by_one = [
            int(world.sample(s, a, 0, u)) for s, a, u in zip(*(x.flat for x in everything), strict=True)
        ]
        assert together.reshape(-1).tolist() == one_by_one


def test_first_states_follow_the_start():
    start = [0.0, 0.3, 0.0, 0.7]
    uniform = np.random.default_rng(0).random((40, 50))
    states = world_of(start=start).first_states(uniform)
    assert states.shape == (40, 50) and np.array_equal(states, by_search(start, uniform))
    assert np.all(world_of(start=2).first_states(uniform) == 2)
    even = np.bincount(world_of(start=None).first_states(uniform).reshape(-1), minlength=4)
    assert stats.chisquare(even).pvalue > 1e-3

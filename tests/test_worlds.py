"""Finite worlds, the paper's draws and the hard ones, against plain loops and dense linear algebra."""

import itertools
import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import rewardfree as rf
from rewardfree.presets import PUBLISHED
from rewardfree.streams import stream
from rewardfree.worlds.rkhs import smooth_draw


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


def same_world(one, other):
    names = ("P", "start", "states", "actions")
    return one.horizon == other.horizon and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in names
    )


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


# The paper's draws.


def squared_exponential(x, y):
    return np.exp(-0.5 * sum((u - v) ** 2 for u, v in zip(x, y, strict=True)) / 0.1**2)


def matern_15(x, y):
    t = np.sqrt(3.0) * np.sqrt(sum((u - v) ** 2 for u, v in zip(x, y, strict=True))) / 0.1
    return (1.0 + t) * np.exp(-t)


def matrix(kernel, x, y):
    if isinstance(kernel, rf.kernels.Kernel):  # tested elsewhere
        return kernel(np.array(x), np.array(y))
    return np.array([[kernel(u, v) for v in y] for u in x])


def textbook_draw(kernel, ridge, shape, coarse, rng):
    """A Gaussian-process draw on the coarse grid, and its ridge regression at every point of the fine one."""
    nodes = list(itertools.product(np.linspace(0, 1, coarse), repeat=len(shape)))
    fine = list(itertools.product(*(np.linspace(0, 1, n) for n in shape)))
    K, eye = matrix(kernel, nodes, nodes), np.eye(len(nodes))
    drawn = np.linalg.cholesky(K + 1e-10 * K.max() * eye) @ rng.standard_normal(len(nodes))
    return (matrix(kernel, fine, nodes) @ np.linalg.solve(K + ridge * eye, drawn)).reshape(shape)


def textbook_world(kernel, ridge, seed, by_row, states=7, actions=6, coarse=4):
    f = textbook_draw(kernel, ridge, (states, actions, states), coarse, stream(seed, "dynamics"))
    lowest = f.min()
    P = np.empty_like(f)
    for s, a in itertools.product(range(states), range(actions)):
        row = f[s, a] - (f[s, a].min() if by_row else lowest)
        P[s, a] = row / row.sum()
    r = textbook_draw(kernel, ridge, (states, actions), coarse, stream(seed, "reward"))
    return P, (r - r.min()) / (r.max() - r.min())


SMALL = {"states": 7, "actions": 6, "coarse": 4}
KERNELS = [
    (rf.SquaredExponential(0.1), squared_exponential),
    (rf.Matern(1.5, 0.1), matern_15),
    (rf.Matern(2.5, 0.25), rf.Matern(2.5, 0.25)),
    (rf.NeuralTangent(1), rf.NeuralTangent(1)),
    (rf.Linear(bias=0.3) + rf.Matern(1.5, 0.2), rf.Linear(bias=0.3) + rf.Matern(1.5, 0.2)),
    (0.5 * rf.kernels.Delta() + rf.Matern(0.5, 0.3), 0.5 * rf.kernels.Delta() + rf.Matern(0.5, 0.3)),
]


@pytest.mark.parametrize(("kernel", "plain"), KERNELS, ids=[repr(kernel) for kernel, _ in KERNELS])
@pytest.mark.parametrize("preset", ["published", "literal"])
def test_a_draw_is_the_textbooks(kernel, plain, preset):
    instance = rf.rkhs_world(kernel, ridge=0.05, seed=3, preset=preset, **SMALL)
    world, reward = instance.world, instance.reward
    P, r = textbook_world(plain, 0.05, 3, by_row=preset == "literal")
    # Both factorise the same matrices, with jitters of 1e-10: the digits beyond are theirs.
    np.testing.assert_allclose(world.P, P, atol=1e-9)
    np.testing.assert_allclose(reward, r, atol=1e-9)


@pytest.mark.parametrize(("states", "actions", "coarse"), [(2, 2, 2), (5, 2, 3), (3, 8, 5), (9, 4, 2)])
def test_any_sizes_even_or_odd(states, actions, coarse):
    sizes = {"states": states, "actions": actions, "coarse": coarse}
    instance = rf.rkhs_world(rf.Matern(1.5, 0.1), ridge=0.5, seed=1, **sizes)
    world, reward = instance.world, instance.reward
    P, r = textbook_world(matern_15, 0.5, 1, by_row=False, **sizes)
    np.testing.assert_allclose(world.P, P, atol=1e-9)
    np.testing.assert_allclose(reward, r, atol=1e-9)


@pytest.mark.parametrize(
    ("kernel", "published", "literal"),
    [
        (rf.SquaredExponential(0.1), 0.01, 1e-4),
        (rf.Matern(1.5, 0.1), 0.5, 0.25),
        (rf.Matern(2.5, 0.1), 0.5, 0.25),
    ],
)
def test_the_ridge_is_the_presets(kernel, published, literal):
    for preset, ridge in (("published", published), ("literal", literal), (PUBLISHED, published)):
        fitted, given_ = (rf.rkhs_world(kernel, r, preset=preset, **SMALL) for r in (None, ridge))
        assert same_world(fitted.world, given_.world) and np.array_equal(fitted.reward, given_.reward)
        assert fitted.model == given_.model == rf.Model(kernel, ridge)


def test_published_takes_one_minimum_and_literal_one_for_each_row():
    published, literal = (
        rf.rkhs_world(rf.Matern(1.5, 0.1), preset=p, **SMALL).world.P for p in ("published", "literal")
    )
    assert np.sum(published == 0.0) == 1
    assert np.all(np.sum(literal == 0.0, axis=-1) == 1)


def test_the_default_is_published():
    default, named = (
        rf.rkhs_world(rf.Matern(1.5, 0.1), **SMALL, **p).world for p in ({}, {"preset": "published"})
    )
    assert same_world(default, named) and default.horizon == 10


@settings(max_examples=10)
@given(st.integers(0, 2**40), st.sampled_from(["published", "literal"]))
def test_every_draw_is_a_world(seed, preset):
    instance = rf.rkhs_world(rf.Matern(2.5, 0.2), seed=seed, preset=preset, **SMALL)
    world, reward = instance.world, instance.reward
    assert world.P.shape == (7, 6, 7) and world.stationary and reward.shape == (7, 6)
    assert world.P.min() == 0.0 and np.abs(world.P.sum(axis=-1) - 1.0).max() < 1e-14
    assert reward.min() == 0.0 and reward.max() == 1.0


def test_the_same_seed_is_the_same_world():
    one, two = (rf.rkhs_world(rf.Matern(1.5, 0.1), seed=5, **SMALL) for _ in range(2))
    assert same_world(one.world, two.world) and np.array_equal(one.reward, two.reward)
    other = rf.rkhs_world(rf.Matern(1.5, 0.1), seed=6, **SMALL)
    assert np.abs(one.world.P - other.world.P).max() > 0.01
    assert np.abs(one.reward - other.reward).max() > 0.1


def test_a_draw_of_a_seed_never_changes():
    # Recorded once: if these move, every figure does, and CHANGELOG says so under "Numbers changed".
    instance = rf.rkhs_world(rf.Matern(1.5, 0.1), seed=0, states=6, actions=5, coarse=4)
    world, reward = instance.world, instance.reward
    np.testing.assert_allclose(
        world.P[0, 0, :3], [0.1407733901338453, 0.12248112043945882, 0.07381037729259518], rtol=1e-9
    )
    np.testing.assert_allclose(
        reward[0, :3], [0.5731474185209944, 0.41001573639560507, 0.5215388380503707], rtol=1e-9
    )


def test_horizon_and_start_leave_the_law_alone():
    plain_instance = rf.rkhs_world(rf.Matern(1.5, 0.1), seed=2, **SMALL)
    plain, r = plain_instance.world, plain_instance.reward
    other_instance = rf.rkhs_world(
        rf.Matern(1.5, 0.1), seed=2, horizon=3, start=[1, 0, 0, 0, 0, 0, 0], **SMALL
    )
    other, r_other = other_instance.world, other_instance.reward
    assert np.array_equal(plain.P, other.P) and np.array_equal(r, r_other)
    assert other.horizon == 3 and other.start[0] == 1.0


@pytest.mark.parametrize(("states", "expected"), [(100, 20), (2, 0), (3, 0), (12, 2), (50, 10), (199, 40)])
def test_the_start_is_the_papers_place(states, expected):
    world = rf.rkhs_world(rf.Matern(1.5, 0.1), states=states, actions=2, coarse=2).world
    assert world.start.tolist() == np.eye(states)[expected].tolist()
    assert abs(world.states[expected, 0] - 20 / 99) <= 0.5 / (states - 1) + 1e-12


def test_draws_have_the_covariance_of_a_smoothed_process():
    """cov = A K A^T with A = k(x, nodes) (K + ridge I)^-1, over 2000 draws of one stream."""
    kernel, ridge, rng, n = rf.Matern(1.5, 0.6), 0.2, stream(0, "covariance"), 2000
    draws = np.array([smooth_draw(kernel, ridge, (3, 2), 2, rng).reshape(-1) for _ in range(n)])
    nodes = np.array(list(itertools.product([0.0, 1.0], repeat=2)))
    fine = np.array(list(itertools.product([0.0, 0.5, 1.0], [0.0, 1.0])))
    K = kernel(nodes, nodes)
    A = kernel(fine, nodes) @ np.linalg.inv(K + ridge * np.eye(4))
    expected = A @ K @ A.T
    covariance = draws.T @ draws / n
    spread = np.sqrt((expected**2 + np.outer(np.diag(expected), np.diag(expected))) / n)  # Wishart's
    assert np.abs((covariance - expected) / spread).max() < 4.5
    assert np.abs(draws.mean(axis=0) / np.sqrt(np.diag(expected) / n)).max() < 4.5


def test_a_kernel_that_is_nearly_singular_is_drawn_all_the_same():
    instance = rf.rkhs_world(rf.SquaredExponential(3.0), seed=0, **SMALL)
    world, reward = instance.world, instance.reward
    assert np.isfinite(world.P).all() and reward.max() == 1.0


@pytest.mark.parametrize(
    "sizes", [{"states": 10**5}, {"states": 4000, "actions": 4000}, {"actions": 10**12}, {"coarse": 40}]
)
@pytest.mark.parametrize("make", [rf.rkhs_world, rf.worlds.sharpened_world])
def test_what_does_not_fit_is_refused_before_it_is_allocated(make, sizes):
    tracemalloc.start()
    try:
        with pytest.raises(MemoryError, match="use fewer states, actions or coarse points"):
            make(rf.Matern(1.5, 0.1), **sizes)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("lengthscale", [(0.1, 0.2), (0.1, 0.2, 0.3), (0.1, 0.2, 0.3, 0.4)])
@pytest.mark.parametrize("make", [rf.rkhs_world, rf.worlds.sharpened_world])
def test_a_kernel_must_take_pairs_and_triples(make, lengthscale):
    """It draws the reward on (s,a) and the law on (s,a,s'); a sharpened world draws the law alone."""
    if make is rf.worlds.sharpened_world and len(lengthscale) == 3:
        assert make(rf.Matern(1.5, lengthscale), **SMALL).world.stationary
        return
    with pytest.raises(ValueError, match=f"lengthscale has {len(lengthscale)} entries, the points have [23]"):
        make(rf.Matern(1.5, lengthscale), **SMALL)


@pytest.mark.parametrize("make", [rf.rkhs_world, rf.worlds.sharpened_world])
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"states": 1}, "states must be a whole number of at least 2"),
        ({"actions": 1}, "actions must be a whole number of at least 2"),
        ({"actions": 2.5}, "actions must be a whole number"),
        ({"coarse": 1}, "coarse must be a whole number of at least 2"),
        ({"horizon": 0}, "horizon must be a whole number"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"start": 7}, r"start must be one of the states 0\.\.6, got 7"),
        ({"ridge": 0.0}, "ridge must be positive, got 0.0"),
        ({"ridge": np.nan}, "ridge must be finite"),
        ({"kernel": rf.kernels.Delta()}, "the paper sets no ridge for .*: give ridge="),
        ({"kernel": "matern"}, "a kernel must offer"),
    ],
)
def test_bad_parameters_of_a_draw(make, changed, said):
    with pytest.raises(ValueError, match=said):
        make(**{"kernel": rf.Matern(1.5, 0.1), **SMALL, **changed})


def test_an_unknown_preset_is_refused():
    with pytest.raises(ValueError, match="preset must be one of published, literal, got 'paper'"):
        rf.rkhs_world(rf.Matern(1.5, 0.1), preset="paper", **SMALL)


def test_a_kernel_too_short_for_its_grid_is_named():
    """Rows far from every coarse point are constant: 0/0, a RuntimeWarning, and then "P must be finite"."""
    with pytest.raises(ValueError, match=r"lengthscale|coarse|kernel"):
        rf.rkhs_world(rf.SquaredExponential(1e-3), preset="literal", **SMALL)


# Worlds where planning matters.


def losses(world, reward):
    """(V* - V^myopic)/V* at the start, by plain backward loops."""
    s, a = reward.shape
    best, myopic = np.zeros(s), np.zeros(s)
    for _ in range(world.horizon):
        q = np.array([[reward[i, j] + world.P[i, j] @ best for j in range(a)] for i in range(s)])
        greedy = [int(np.argmax(reward[i])) for i in range(s)]
        myopic = np.array([reward[i, greedy[i]] + world.P[i, greedy[i]] @ myopic for i in range(s)])
        best = q.max(axis=1)
    return (world.start @ (best - myopic)) / (world.start @ best)


@pytest.mark.parametrize("seed", range(4))
def test_the_myopic_loses_on_a_sharpened_world(seed):
    instance = rf.worlds.sharpened_world(seed=seed, states=20, actions=20)
    world, reward = instance.world, instance.reward
    assert losses(world, reward) > 0.2


@pytest.mark.parametrize("size", [10, 25, 40])
def test_the_myopic_loses_in_the_corridor(size):
    instance = rf.worlds.corridor_world(states=size, actions=size)
    world, reward = instance.world, instance.reward
    assert losses(world, reward) > 0.2


def test_the_myopic_hardly_loses_on_a_published_world():
    """Which is why the two others are there."""
    instance = rf.rkhs_world(rf.Matern(1.5, 0.1), states=20, actions=20)
    world, reward = instance.world, instance.reward
    assert losses(world, reward) < 0.1


@pytest.mark.parametrize("kernel", [None, rf.SquaredExponential(0.2), rf.NeuralTangent(1)], ids=repr)
def test_a_sharpened_world_is_a_softmax_of_the_textbooks_draw(kernel):
    ridge = 0.5 if kernel is None else 0.03
    options = {} if kernel is None else {"kernel": kernel, "ridge": ridge}
    instance = rf.worlds.sharpened_world(**options, sharpness=4.0, width=0.25, seed=2, horizon=3, **SMALL)
    world, reward = instance.world, instance.reward
    f = textbook_draw(kernel or matern_15, ridge, (7, 6, 7), 4, stream(2, "dynamics"))
    top = stream(2, "reward").random(2)
    for s, a in itertools.product(range(7), range(6)):
        row = np.exp(4.0 * f[s, a])
        np.testing.assert_allclose(world.P[s, a], row / row.sum(), rtol=1e-9)
        square = (s / 6 - top[0]) ** 2 + (a / 5 - top[1]) ** 2
        assert reward[s, a] == pytest.approx(np.exp(-square / (2 * 0.25**2)), rel=1e-12)
    assert world.horizon == 3 and world.start.tolist() == [1 / 7] * 7


def test_sharpness_sets_the_rows_apart():
    def contrast(sharpness):
        P = rf.worlds.sharpened_world(sharpness=sharpness, **SMALL).world.P
        return np.abs(P - P.mean(axis=(0, 1))).sum(axis=-1).mean()

    assert 0.0 < contrast(1.0) < contrast(10.0) < contrast(100.0) <= 2.0


def test_extreme_sharpness_leaves_whole_rows():
    P = rf.worlds.sharpened_world(sharpness=1e5, **SMALL).world.P
    assert np.abs(P.sum(axis=-1) - 1.0).max() < 1e-14 and P.max() == 1.0


def test_a_sharpened_world_has_a_seed():
    one, two, other = (rf.worlds.sharpened_world(seed=i, **SMALL) for i in (1, 1, 2))
    assert same_world(one.world, two.world) and np.array_equal(one.reward, two.reward)
    assert np.abs(one.world.P - other.world.P).max() > 0.1
    assert np.abs(one.reward - other.reward).max() > 0.1


def test_the_corridor_is_its_formula():
    instance = rf.worlds.corridor_world(
        stride=0.3, drift=0.05, noise=0.1, consolation=0.2, states=7, actions=6, horizon=4
    )
    world, reward = instance.world, instance.reward
    s, a = np.linspace(0, 1, 7), np.linspace(0, 1, 6)
    for i, j in itertools.product(range(7), range(6)):
        where = min(max(s[i] + 0.3 * (2 * a[j] - 1) - 0.05, 0.0), 1.0)
        row = stats.norm.pdf(s, loc=where, scale=0.1)
        np.testing.assert_allclose(world.P[i, j], row / row.sum(), rtol=1e-10)
        at_end = np.exp(-0.5 * ((s[i] - 1.0) / 0.05) ** 2)
        assert reward[i, j] == pytest.approx(max(at_end, 0.2 * (1 - s[i]) * (1 - a[j])), rel=1e-12)
    assert world.horizon == 4 and world.start.tolist() == [1.0] + [0.0] * 6


def test_the_corridor_moves_and_drifts():
    """Away from the ends a step is stride (2a - 1) - drift on average, and spreads by the noise."""
    world = rf.worlds.corridor_world().world
    s, inside = np.linspace(0, 1, 100), slice(40, 60)
    mean = world.P[inside] @ s
    moved = 0.15 * (2 * np.linspace(0, 1, 100) - 1) - 0.03
    # A Gaussian of 3 spacings on a grid has its mean and variance to 1e-12 and better.
    np.testing.assert_allclose(mean - s[inside, None], np.broadcast_to(moved, (20, 100)), atol=1e-9)
    np.testing.assert_allclose(world.P[inside] @ s**2 - mean**2, 0.03**2, rtol=1e-6)


@pytest.mark.parametrize("noise", [1e-6, 1e-3, 0.5, 100.0])
def test_any_noise_leaves_whole_rows(noise):
    instance = rf.worlds.corridor_world(noise=noise, states=9, actions=5)
    world, reward = instance.world, instance.reward
    assert np.abs(world.P.sum(axis=-1) - 1.0).max() < 1e-14
    assert reward.min() >= 0.0 and reward.max() == 1.0


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"stride": 0.0}, "stride must be positive"),
        ({"stride": -1.0}, "stride must be positive"),
        ({"noise": 0.0}, "noise must be positive"),
        ({"noise": np.inf}, "noise must be finite"),
        ({"drift": -0.1}, "drift must be at least 0"),
        ({"drift": np.nan}, "drift must be finite"),
        ({"consolation": -0.1}, "consolation must be at least 0"),
        ({"consolation": 1.5}, "consolation must be at most 1"),
        ({"states": 1}, "states must be a whole number of at least 2"),
        ({"actions": 0}, "actions must be a whole number of at least 2"),
        ({"horizon": 0}, "horizon must be a whole number"),
        ({"start": 100}, r"start must be one of the states 0\.\.99, got 100"),
    ],
)
def test_bad_parameters_of_the_corridor(changed, said):
    with pytest.raises(ValueError, match=said):
        rf.worlds.corridor_world(**changed)


@pytest.mark.parametrize("name", ["sharpness", "width"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, "much"])
def test_bad_parameters_of_a_sharpened_world(name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        rf.worlds.sharpened_world(**SMALL, **{name: value})


def test_riverswim_is_a_chain_with_a_current():
    P = rf.worlds.riverswim_world(states=4).P
    np.testing.assert_allclose(P[:, 0], [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])
    swims = [[0.4, 0.6, 0, 0], [0.05, 0.6, 0.35, 0], [0, 0.05, 0.6, 0.35], [0, 0, 0.4, 0.6]]
    np.testing.assert_allclose(P[:, 1], swims)


def test_a_garnet_leads_to_as_many_states_as_asked():
    world = rf.worlds.garnet_world(states=7, actions=3, branching=2, seed=5)
    assert ((world.P > 0.0).sum(axis=-1) == 2).all() and world.start.argmax() == 0
    np.testing.assert_array_equal(world.P, rf.worlds.garnet_world(states=7, actions=3, branching=2, seed=5).P)
    assert (world.P != rf.worlds.garnet_world(states=7, actions=3, branching=2, seed=6).P).any()
    with pytest.raises(ValueError, match="branching must be at most the 7 states, got 8"):
        rf.worlds.garnet_world(states=7, branching=8)

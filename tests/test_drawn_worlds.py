"""The paper's draws, and worlds where planning matters."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import rewardfree as rf
from finite_worlds import same_world
from rewardfree.presets import PUBLISHED
from rewardfree.streams import stream
from rewardfree.worlds.rkhs import smooth_draw

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

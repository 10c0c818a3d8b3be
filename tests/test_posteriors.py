"""Many posteriors on one finite set: a lattice, and a bundle of separate ones, which must be the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import rewardfree as rf
from rewardfree.estimates.finite import FiniteEstimate
from rewardfree.posterior import PosteriorList, Posteriors
from rewardfree.posterior.lattice import BLOCK_POINTS
from strict_backend import StrictBackend

# Two exact factorisations at a ridge of 0.2: rounding alone lies between them.
CLOSE = {"rtol": 0, "atol": 1e-12}
KERNELS = [rf.Matern(2.5, (0.2, 0.4)), rf.Linear(bias=0.3), rf.NeuralTangent(1, bias=0.2)]
RIDGE = 0.2


def points(m=36, seed=0):
    return np.random.default_rng(seed).random((m, 2))


def grid(side=6):
    axis = np.linspace(0.0, 1.0, side)
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)


def lattice(kernel=KERNELS[0], z=None, designs=3, capacity=2, backend="numpy"):
    z = points() if z is None else z
    made = rf.posterior.Lattice(kernel, z, ridge=RIDGE, designs=designs, capacity=capacity)
    if backend == "strict":
        made._backend = StrictBackend()
        made._build(made._backend.array(z), designs, capacity)
    return made


def bundle(kernel=KERNELS[0], z=None, designs=3):
    return PosteriorList(
        [rf.posterior.Design(kernel, ridge=RIDGE) for _ in range(designs)], points() if z is None else z
    )


def targets(posteriors, designs=None, columns=2, g=3):
    return np.random.default_rng(5).standard_normal((g, posteriors.length(designs), columns))


def assert_same(one, other, g=3):
    """All that both can be asked."""
    assert one.length() == other.length()
    y = targets(one, g=g)
    np.testing.assert_allclose(np.asarray(one.mean(y)), np.asarray(other.mean(y)), **CLOSE)
    np.testing.assert_allclose(np.asarray(one.std()), np.asarray(other.std()), **CLOSE)


# --- a bundle of designs is a lattice ---


def test_both_are_posteriors():
    assert isinstance(lattice(), Posteriors) and isinstance(bundle(), Posteriors)
    assert np.array_equal(bundle().candidates, lattice().candidates)


@pytest.mark.parametrize("z", [points(), grid()], ids=["anywhere", "a grid"])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_bundle_answers_as_the_textbook_does(kernel, z):
    added = np.random.default_rng(1).integers(0, 36, (3, 8))
    both = bundle(kernel, z), lattice(kernel, z)
    for posteriors in both:
        posteriors.extend_each(added)
        y = targets(posteriors)
        means, stds = posteriors.mean(y), posteriors.std()
        for g in range(3):
            seen = z[added[g]]
            expected = reference.mean(kernel, seen, RIDGE, y[g], z)
            np.testing.assert_allclose(means[g], expected, rtol=0, atol=1e-10)
            expected = reference.variance(kernel, seen, RIDGE, z)
            np.testing.assert_allclose(stds[g] ** 2, expected, rtol=0, atol=1e-10)


@settings(max_examples=40)
@given(st.data(), st.sampled_from(KERNELS), st.booleans())
def test_a_bundle_of_designs_is_a_lattice(data, kernel, even):
    """Any mixture of additions, with questions of any kind in between."""
    z = grid() if even else points()
    both = lattice(kernel, z), bundle(kernel, z)
    index = st.integers(0, 35)
    some = st.one_of(
        st.none(),
        st.lists(st.integers(0, 2), min_size=1, unique=True),
        st.sampled_from([slice(0, 1), slice(1, 3), slice(0, 3, 2)]),
    )

    def size(designs):
        return len(np.arange(3)[slice(None) if designs is None else designs])

    for _ in range(data.draw(st.integers(2, 9))):
        move = data.draw(st.sampled_from(["append", "extend_each", "everywhere", "rows", "each row", "at"]))
        designs = data.draw(some)
        g = size(designs)
        if move == "append":
            added = data.draw(st.lists(index, min_size=g, max_size=g))
            for posteriors in both:
                posteriors.append(designs, added)
        elif move == "extend_each":
            p = data.draw(st.integers(0, 5))
            added = np.array(data.draw(st.lists(index, min_size=3 * p, max_size=3 * p)), int).reshape(3, p)
            for posteriors in both:
                posteriors.extend_each(added)
        else:
            assert both[0].length(designs) == both[1].length(designs)
            y = targets(both[0], designs, g=g)
            chosen = np.array(data.draw(st.lists(index, min_size=4, max_size=4)))
            each_row = (np.arange(g)[:, None] + chosen) % 36
            where = {
                "everywhere": {},
                "rows": {"rows": chosen},
                "each row": {"rows": each_row},
                "at": {"at": z[chosen]},
            }[move]
            if data.draw(st.booleans()):
                means = (posteriors.mean(y, designs=designs, **where) for posteriors in both)
                np.testing.assert_allclose(*means, **CLOSE)
            else:
                stds = (posteriors.std(designs=designs, **where) for posteriors in both)
                np.testing.assert_allclose(*stds, **CLOSE)
    assert_same(*both)


def test_length_is_that_of_the_longest_asked_about():
    for posteriors in (lattice(), bundle()):
        assert posteriors.length() == 0
        posteriors.append([0, 2], [1, 1])
        posteriors.append([2], [3])
        assert [posteriors.length(d) for d in (None, [0], [1], slice(1, 3), slice(0, 2))] == [2, 1, 0, 2, 1]


def test_designs_with_fewer_points_ignore_the_rest_of_their_targets():
    for posteriors in (lattice(), bundle()):
        posteriors.append([0, 2], [1, 1])
        posteriors.append([2], [3])
        y = targets(posteriors)
        before = posteriors.mean(y)
        y[0, 1:], y[1] = 77.0, 77.0
        np.testing.assert_array_equal(posteriors.mean(y)[:2], before[:2])
        np.testing.assert_array_equal(posteriors.mean(y)[1], np.zeros((36, 2)))


def test_repeat_is_a_loop():
    both = lattice(), bundle()
    for posteriors in both:
        done = []

        def step(posteriors=posteriors, done=done):
            posteriors.append(None, [len(done), 7, 2 * len(done)])
            done.append(posteriors.length())

        posteriors.repeat(step, 4)
        assert done == [1, 2, 3, 4]
    assert_same(*both)


def test_a_bundle_takes_single_posteriors():
    with pytest.raises(ValueError, match=r"a list takes single posteriors, got one of batch \(2,\)"):
        PosteriorList([lattice(designs=2)], points())


@pytest.mark.parametrize("designs", [[3], [-1], [0, 0], [0.5]])
def test_designs_that_are_not_there_are_refused(designs):
    for posteriors in (lattice(), bundle()):
        with pytest.raises(ValueError, match="designs must"):
            posteriors.append(designs, [0] * len(designs))
        with pytest.raises(ValueError, match="designs must"):
            posteriors.std(designs=designs)
        assert posteriors.length() == 0


# --- many points at once are the same points one by one ---


@pytest.mark.parametrize("backend", ["numpy", "strict"])
@pytest.mark.parametrize("before", [[], [[0, 1, 2], [3, 4, 5]], "ragged"], ids=["new", "two each", "ragged"])
@pytest.mark.parametrize("p", [1, 5, BLOCK_POINTS, BLOCK_POINTS + 1, 2 * BLOCK_POINTS + 3])
def test_many_points_at_once_are_one_by_one(p, before, backend):
    added = np.random.default_rng(p).integers(0, 36, (3, p))
    at_once, one_by_one = (lattice(backend=backend) for _ in range(2))
    for each in (at_once, one_by_one):
        if before == "ragged":
            each.append([0, 2], [3, 4])
            each.append([2], [4])
        else:
            for indices in before:
                each.append(None, indices)
    at_once.extend_each(added)
    for i in range(p):
        one_by_one.append(None, added[:, i])
    assert at_once.counts.tolist() == one_by_one.counts.tolist()
    for g in range(3 if backend == "numpy" else 0):
        assert at_once.indices(g).tolist() == one_by_one.indices(g).tolist()
    gains = [np.asarray(each.information_gain()) for each in (at_once, one_by_one)]
    np.testing.assert_allclose(*gains, rtol=1e-12)
    few = [np.asarray(each.std(rows=[0, 17, 35])) for each in (at_once, one_by_one)]
    np.testing.assert_allclose(*few, **CLOSE)
    assert_same(at_once, one_by_one)
    np.testing.assert_allclose(np.asarray(at_once.std(rows=[0, 17, 35])), few[0], **CLOSE)


@settings(max_examples=15)
@given(
    st.lists(st.integers(0, 2 * BLOCK_POINTS), min_size=1, max_size=3),
    st.sampled_from(KERNELS),
    st.booleans(),
)
def test_any_pieces_are_the_whole(sizes, kernel, ask):
    added = np.random.default_rng(sum(sizes)).integers(0, 36, (3, sum(sizes)))
    whole, pieces = lattice(kernel), lattice(kernel)
    whole.extend_each(added)
    for part in np.split(added, np.cumsum(sizes)[:-1], axis=1):
        pieces.extend_each(part)
        if ask:
            pieces.std()
    assert_same(whole, pieces)


def test_the_same_point_many_times_at_once_is_an_average():
    """k = 1 at one point: the variance is ridge/(n + ridge)."""
    n = BLOCK_POINTS + 4
    each = lattice(rf.SquaredExponential(0.3))
    each.extend_each(np.full((3, n), 9))
    np.testing.assert_allclose(each.std(rows=[9])[:, 0] ** 2, RIDGE / (n + RIDGE), rtol=1e-12)


def test_no_points_change_nothing():
    for posteriors in (lattice(), bundle()):
        posteriors.append(None, [1, 2, 3])
        before = posteriors.std()
        posteriors.extend_each(np.zeros((3, 0), int))
        assert posteriors.length() == 1
        np.testing.assert_array_equal(posteriors.std(), before)


@pytest.mark.parametrize(
    ("indices", "said"),
    [
        (np.zeros((2, 4), int), "indices must have 3 rows, one per design, got 2"),
        (np.zeros(3, int), "candidate indices must have 2 axes"),
        (np.zeros((3, 2)), "candidate indices must be whole numbers"),
        (np.full((3, 2), 36), r"candidate indices must lie in 0\.\.35"),
        (np.full((3, 2), -1), r"candidate indices must lie in 0\.\.35"),
    ],
)
def test_bad_indices_are_refused_and_change_nothing(indices, said):
    each = lattice()
    each.append(None, [1, 2, 3])
    before = each.std()
    with pytest.raises(ValueError, match=said):
        each.extend_each(indices)
    assert each.counts.tolist() == [1, 1, 1]
    np.testing.assert_array_equal(each.std(), before)


# --- as they were earlier ---


SIZES = [BLOCK_POINTS + 2, 0, 1, 2 * BLOCK_POINTS, 5]


@pytest.mark.parametrize("backend", ["numpy", "strict"])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_lattice_as_of_n_points_is_one_of_n_points(kernel, backend):
    """For several n at once, one a column, in turns; what comes later does not matter."""
    added = np.random.default_rng(3).integers(0, 36, (3, 2 * BLOCK_POINTS))
    late = lattice(kernel, backend=backend)
    late.extend_each(added)
    late.append(None, [1, 2, 3])
    earlier, y = late.as_of(SIZES), targets(late, columns=2 * len(SIZES))
    means, stds = np.asarray(earlier.mean(y)), np.asarray(earlier.std())
    for i, n in enumerate(SIZES):
        alone = lattice(kernel)
        alone.extend_each(added[:, :n])
        columns = [i, i + len(SIZES)]
        np.testing.assert_allclose(means[:, :, columns], alone.mean(y[:, :n, columns]), **CLOSE)
        np.testing.assert_allclose(stds[:, i, :], alone.std(), **CLOSE)
    some = np.asarray(earlier.mean(y[1:], designs=slice(1, 3))), np.asarray(earlier.std(designs=[2]))
    np.testing.assert_allclose(some[0], means[1:], **CLOSE)
    np.testing.assert_allclose(some[1], stds[2:], **CLOSE)


def test_designs_with_fewer_points_are_as_they_are():
    late, early = lattice(), lattice()
    for posteriors in (late, early):
        posteriors.append([0, 2], [1, 1])
        posteriors.append([2], [3])
    late.append([2], [9])
    y = targets(late)
    np.testing.assert_allclose(late.as_of([2]).mean(y), early.mean(y[:, :2]), **CLOSE)
    np.testing.assert_allclose(late.as_of([2]).std()[:, 0], early.std(), **CLOSE)
    np.testing.assert_allclose(late.as_of([7]).mean(y), late.mean(y), **CLOSE)
    np.testing.assert_allclose(late.as_of([7]).std()[:, 0], late.std(), **CLOSE)


# --- kernels that are none ---


class Opposed:
    """1 on the diagonal, -0.9 elsewhere: three different points have the eigenvalue -0.8."""

    def __call__(self, x, y):
        return np.where((x[:, None, :] == y[None, :, :]).all(axis=2), 1.0, -0.9)

    def diag(self, x):
        return np.ones(len(x))


@pytest.mark.parametrize("bad", [[0], [2], [0, 1, 2]], ids=["the first", "the last", "all"])
@pytest.mark.parametrize("p", [3, 5])
def test_a_kernel_that_is_not_positive_definite_is_refused_and_changes_nothing(p, bad):
    """One design's failure leaves all of them as they were."""
    each = lattice(Opposed())
    each.append(None, [7, 7, 7])
    before = each.std()
    added = np.full((3, p), 7)
    added[bad, :3] = [1, 2, 3]
    with pytest.raises(np.linalg.LinAlgError, match=r"ridge 0\.2 on \d+ points gave .*use a larger ridge"):
        each.extend_each(added)
    assert each.counts.tolist() == [1, 1, 1]
    np.testing.assert_array_equal(each.std(), before)
    each.extend_each(np.full((3, 2), 7))  # and they still work
    np.testing.assert_allclose(each.std(rows=[7])[:, 0] ** 2, RIDGE / (3 + RIDGE), rtol=1e-12)


def test_one_by_one_it_is_refused_as_well():
    for posteriors in (lattice(Opposed()), bundle(Opposed())):
        posteriors.append(None, [1, 1, 1])
        with pytest.raises(np.linalg.LinAlgError, match="use a larger ridge"):
            for index in (2, 3, 4):
                posteriors.append(None, [index] * 3)


@pytest.mark.parametrize("first", [[], [0]], ids=["one length", "ragged"])
def test_a_block_that_fails_late_takes_the_earlier_ones_with_it(first):
    each = lattice(Opposed())
    each.append(first, [7] * len(first))
    before, counts = each.std(), each.counts
    with pytest.raises(np.linalg.LinAlgError):
        each.extend_each([[7] * 16 + [1, 2, 3]] * 3)
    assert each.counts.tolist() == counts.tolist()
    np.testing.assert_array_equal(each.std(), before)
    each.append(None, [7, 7, 7])  # and it goes on
    assert each.counts.tolist() == (counts + 1).tolist()


def test_a_larger_ridge_is_indeed_the_remedy():
    each = rf.posterior.Lattice(Opposed(), points(), ridge=3.0)
    each.extend_each(np.array([[1, 2, 3]]))
    expected = reference.variance(rf.Model(Opposed(), 3.0).kernel, points()[[1, 2, 3]], 3.0, points()[[1]])
    np.testing.assert_allclose(each.std(rows=[1])[0] ** 2, expected, rtol=1e-12)


# --- targets that take few values ---


def labelled(runs=3, n=7, size=4, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.random((15, 2))
    lattice = rf.posterior.Lattice(rf.Matern(1.5, 0.4), z, ridge=0.3, designs=runs)
    points, labels = rng.integers(15, size=(runs, n)), rng.integers(size, size=(runs, n))
    lattice.extend_each(points)
    return lattice, labels, rng.normal(size=(runs, size))


def test_means_of_labels_are_means_of_targets():
    lattice, labels, values = labelled()
    by_label = lattice.of_labels(labels, 4)
    targets = np.take_along_axis(values, labels, axis=1)
    np.testing.assert_allclose(
        np.einsum("gs,gsm->gm", values, by_label), lattice.mean(targets), rtol=0, atol=1e-13
    )


def test_what_points_add_sums_up():
    lattice, labels, _ = labelled()
    first = lattice.of_labels(labels, 4)
    more = np.array([[3, 3, 9], [1, 0, 14], [5, 6, 7]])
    lattice.extend_each(more)
    every = np.concatenate([labels, [[0, 1, 2], [3, 3, 3], [2, 0, 1]]], axis=1)
    added = lattice.of_labels(every, 4, since=7)
    np.testing.assert_allclose(first + added, lattice.of_labels(every, 4), rtol=0, atol=1e-13)
    assert np.abs(added).max() > 0.01


def test_one_design_serves_the_labels_of_many_runs():
    lattice, _, _ = labelled(runs=1)
    labels = np.random.default_rng(1).integers(4, size=(5, 7))
    together = lattice.of_labels(labels, 4)
    for i in range(5):
        np.testing.assert_allclose(together[i], lattice.of_labels(labels[i : i + 1], 4)[0], atol=1e-14)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("timed", [False, True])
def test_the_law_that_is_kept_answers_as_the_regression_does(centred, timed):
    rng = np.random.default_rng(2)
    law = rng.random((5, 4, 5))
    world = rf.FiniteWorld(law / law.sum(-1, keepdims=True), horizon=3)
    model = rf.Model(rf.Matern(1.5, 0.3), 0.2, pooled=True, centred=centred, timed=timed)
    kept, plain = (FiniteEstimate(model, world.grid, 3, runs=2, capacity=12) for _ in range(2))
    plain._laws = []
    values, rows = rng.normal(size=(2, 5, 3)), np.array([[0, 7], [19, 3]])
    for _ in range(4):
        z, following = rng.integers(20, size=(2, 3)), rng.integers(5, size=(2, 3))
        for each in (kept, plain):
            each.add_all(z, following)
        for h in range(3):
            np.testing.assert_allclose(kept.mean(h, values), plain.mean(h, values), rtol=0, atol=1e-12)
            np.testing.assert_allclose(
                kept.mean(h, values, rows), plain.mean(h, values, rows), rtol=0, atol=1e-12
            )
            assert kept.mean(h, values).shape == (2, 3, 20)

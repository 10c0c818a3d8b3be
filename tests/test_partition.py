"""Posteriors on partitions: cells that tile, and predictions from the query's own cell only."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference_partition
import rewardfree as rf
from rewardfree.posterior import Partition, PartitionLattice, Posterior, PosteriorList, Posteriors
from rewardfree.posterior.cells import LEVELS, CellTree, MortonOrder, addresses
from strict_backend import StrictBackend

KERNEL, RIDGE = rf.Matern(1.5, 0.3), 0.2
#: Two exact factorisations of small matrices at a ridge of 0.2.
CLOSE = {"rtol": 0, "atol": 1e-11}
ALPHAS = [0.7, 1.0, 3.0, None]


def grid(side=6, d=2):
    return np.stack(np.meshgrid(*[np.linspace(0, 1, side)] * d, indexing="ij"), axis=-1).reshape(-1, d)


def batched(z, alpha, drop=False, designs=3, road="cells", kernel=KERNEL, capacity=2):
    made = PartitionLattice(
        kernel, z, ridge=RIDGE, alpha=alpha, drop=drop, designs=designs, capacity=capacity
    )
    if road == "strict":
        made._backend = StrictBackend()
    if road != "cells":
        made._build(made._backend.array(z), designs, capacity)
        made._by_cell = False
    return made


def single(alpha, drop=False, low=0.0, high=1.0, kernel=KERNEL):
    return Partition(kernel, ridge=RIDGE, alpha=alpha, drop=drop, low=low, high=high)


# --- cells ---

unit = st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
clouds = st.integers(1, 3).flatmap(
    lambda d: st.lists(st.tuples(*[unit] * d), min_size=1, max_size=30).map(np.array)
)


def box(place):
    level, corner = place
    return np.array(corner) / 2.0**level, (np.array(corner) + 1) / 2.0**level


def all_cells(tree, dim):
    """Every cell of a partition, with samples or without."""
    leaves = [] if tree._split else [(0, (0,) * dim)]
    for level, corner in tree._split:
        children = itertools.product(*((2 * c, 2 * c + 1) for c in corner))
        leaves += [(level + 1, child) for child in children if (level + 1, child) not in tree._split]
    return leaves


@settings(max_examples=60)
@given(clouds, st.sampled_from([0.4, 1.0, 2.0, 3.0]), st.booleans())
def test_cells_tile_the_box_and_obey_the_rule_after_every_sample(points, alpha, drop):
    cells, d = CellTree(alpha, drop), points.shape[1]
    where = addresses(points, 0.0, 1.0)
    for n, address in enumerate(where, start=1):
        cells.add(address)
        tiles = all_cells(cells, d)
        assert len(set(tiles)) == len(tiles)
        assert sum(0.5 ** (level * d) for level, _ in tiles) == 1.0  # exact: powers of two
        owners = [[p for p in tiles if _contains(p, point)] for point in points]
        assert all(len(own) == 1 for own in owners)
        kept = sorted(i for cell in cells for i in cell.samples)
        assert len(set(kept)) == len(kept)
        assert drop or kept == list(range(n))
        for cell in cells:
            level, _ = cell.key
            assert cell.key in tiles
            assert all(owners[i] == [cell.key] for i in cell.samples)
            assert not (2.0**level) ** alpha < len(cell.samples) + 1 - 1e-9 or level == LEVELS


def _contains(place, point):
    low, high = box(place)
    return bool(np.all((low <= point) & ((point < high) | (high == 1.0))))


@pytest.mark.parametrize(
    ("alpha", "sizes"), [(3.0, {1: 8, 2: 64, 3: 512}), (5.0, {1: 32, 2: 1024}), (1.0, {1: 2, 2: 4, 3: 8})]
)
def test_a_cell_of_level_j_splits_at_two_to_the_alpha_j(alpha, sizes):
    """Samples at one place: the level of their cell says when each was split."""
    cells = CellTree(alpha)
    levels = [next(iter(cells)).key[0] for _ in range(max(sizes.values())) if cells.add((1, 1))]
    assert levels[0] == 1  # the root splits at its first sample
    for level, size in sizes.items():
        assert levels.index(level + 1) == size - 1


def test_a_tiny_alpha_ends_where_coordinates_end():
    cells = CellTree(1e-9)
    cells.add((5, 7))
    assert [cell.key[0] for cell in cells] == [LEVELS]


def test_points_beyond_the_box_belong_to_the_nearest_cell():
    low, high = np.array([-1.0, 2.0]), np.array([1.0, 2.0])  # and an axis without extent
    found = addresses(np.array([[-3.0, 2.0], [9.0, 5.0], [0.0, 1.0]]), low, high)
    assert found.tolist() == [[0, 0], [2**LEVELS - 1, 2**LEVELS - 1], [2 ** (LEVELS - 1), 0]]


@settings(max_examples=40)
@given(clouds)
def test_in_the_order_of_cells_every_cell_is_a_window(points):
    where = addresses(points, 0.0, 1.0)
    order = MortonOrder(where)
    assert np.array_equal(order.order[order.position], np.arange(len(points)))
    for level in (0, 1, 2, 5, LEVELS):
        for address in where:
            corner = tuple((address >> (LEVELS - level)).tolist())
            inside = np.flatnonzero((where >> (LEVELS - level) == corner).all(axis=1))
            window = order.window((level, corner))
            assert sorted(order.order[window]) == inside.tolist()


# --- three roads to one posterior ---


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_partition_is_the_textbooks(d, alpha, drop):
    rng = np.random.default_rng(d)
    low, high = np.full(d, -1.0), np.linspace(1.0, 2.0, d)
    z, at = (low + rng.random((m, d)) * (high - low) for m in (40, 60))
    z[5] = z[4] = high + 1.0  # beyond the box, and twice
    y = rng.standard_normal((40, 2))
    posterior = single(alpha, drop, low, high)
    assert isinstance(posterior, Posterior)
    for part in (slice(0, 1), slice(1, 2), slice(2, 30), slice(30, 40)):
        posterior.extend(z[part])
    mean, variance = reference_partition.predictions(KERNEL, z, RIDGE, y, at, alpha, drop, low, high)
    np.testing.assert_allclose(posterior.mean(y, at), mean, **CLOSE)
    np.testing.assert_allclose(posterior.mean(y[:, 0], at), mean[:, 0], **CLOSE)
    np.testing.assert_allclose(posterior.std(at) ** 2, variance, **CLOSE)
    np.testing.assert_allclose(posterior.basis(at) @ posterior.weights(y), mean, **CLOSE)
    assert len(posterior) == 40 and np.array_equal(posterior.points, z)


@settings(max_examples=25)
@given(st.data(), st.sampled_from(ALPHAS), st.booleans(), st.sampled_from(["cells", "masks", "strict"]))
def test_many_at_once_are_single_ones(data, alpha, drop, road):
    """Any additions, and the same questions to both."""
    even = data.draw(st.booleans())
    z = grid() if even else np.random.default_rng(3).random((36, 2)) * [1.0, 4.0]
    box = {"low": z.min(axis=0), "high": z.max(axis=0)}
    both = (
        batched(z, alpha, drop, road=road),
        PosteriorList([single(alpha, drop, **box) for _ in range(3)], z),
    )
    assert isinstance(both[0], Posteriors)
    index = st.integers(0, 35)
    for _ in range(data.draw(st.integers(1, 12))):
        if data.draw(st.booleans()):
            designs = data.draw(st.none() | st.lists(st.integers(0, 2), min_size=1, unique=True))
            g = 3 if designs is None else len(designs)
            added = data.draw(st.lists(index, min_size=g, max_size=g))
            for posteriors in both:
                posteriors.append(designs, added)
        else:
            p = data.draw(st.integers(0, 9))
            added = np.array(data.draw(st.lists(index, min_size=3 * p, max_size=3 * p)), int).reshape(3, p)
            for posteriors in both:
                posteriors.extend_each(added)
        _same(*both)


def _same(one, other):
    chosen = np.array([[0, 7, 7], [35, 2, 3]])
    for designs in (None, [2, 0]):
        g = 3 if designs is None else 2
        n = one.length(designs)
        assert n == other.length(designs)
        y = np.random.default_rng(n).standard_normal((g, n, 2))
        wheres = [{}, {"rows": np.array([1, 30])}, {"at": np.asarray(other.candidates)[[3, 9]]}]
        for where in wheres + ([{"rows": chosen}] if g == 2 else []):
            means = (np.asarray(each.mean(y, designs=designs, **where)) for each in (one, other))
            np.testing.assert_allclose(*means, **CLOSE)
            stds = (np.asarray(each.std(designs=designs, **where)) for each in (one, other))
            np.testing.assert_allclose(*stds, **CLOSE)
    gains = [each.information_gain() for each in other._posteriors]
    np.testing.assert_allclose(np.asarray(one.information_gain()), gains, **CLOSE)


@pytest.mark.parametrize("road", ["cells", "masks"])
def test_never_splitting_is_a_lattice(road):
    z, added = grid(), np.random.default_rng(0).integers(0, 36, (3, 20))
    lattice = rf.posterior.Lattice(KERNEL, z, ridge=RIDGE, designs=3)
    partitions = batched(z, None, road=road)
    for column in added.T:
        for posteriors in (lattice, partitions):
            posteriors.append(None, column)
    y = np.random.default_rng(1).standard_normal((3, 20, 2))
    np.testing.assert_allclose(partitions.mean(y), lattice.mean(y), **CLOSE)
    np.testing.assert_allclose(partitions.std(), lattice.std(), **CLOSE)
    np.testing.assert_allclose(partitions.information_gain(), lattice.information_gain(), **CLOSE)


def test_cells_that_a_sample_does_not_touch_are_not_recomputed():
    z = grid(8)
    partitions = batched(z, 5.0, designs=1)
    partitions.extend_each(np.random.default_rng(0).integers(0, 64, (1, 30)))
    before = partitions._variance.copy()
    partitions._rows[:] = 0.0  # what is not touched stays as it is, right or wrong
    partitions.append(None, [0])
    changed = (partitions._rows != 0.0).any(axis=(0, 1))
    assert changed.sum() == 16  # the first quarter of 8 x 8
    assert np.array_equal(partitions._variance[:, ~changed], before[:, ~changed])


def test_information_gain_is_that_of_the_cells():
    posterior = single(1.0)
    z = np.random.default_rng(0).random((20, 2))
    posterior.extend(z)
    expected = 0.0
    for cell in posterior.cells:
        own = z[cell.samples]
        expected += 0.5 * np.linalg.slogdet(np.eye(len(own)) + KERNEL(own) / RIDGE)[1]
    assert math.isclose(posterior.information_gain(), expected, rel_tol=1e-12)


def test_an_empty_partition_is_the_prior():
    posterior = single(3.0)
    assert posterior.std(grid()).tolist() == [1.0] * 36
    assert posterior.mean(np.empty((0, 2)), grid()).shape == (36, 2)
    posterior.extend(np.empty((0, 2)))
    assert len(posterior) == 0 and posterior.information_gain() == 0.0


@pytest.mark.parametrize("alpha", [0, -1.0, float("nan"), float("inf"), "three", True, np.array([1.0, 2.0])])
@pytest.mark.parametrize("make", [lambda alpha: single(alpha), lambda alpha: batched(grid(), alpha)])
def test_a_bad_alpha_is_refused(make, alpha):
    with pytest.raises(ValueError, match="alpha must be"):
        make(alpha)


def test_wrong_targets_are_refused():
    posterior = single(3.0)
    posterior.extend(grid())
    with pytest.raises(ValueError, match=r"targets must have shape \(36,\)"):
        posterior.mean(np.zeros(35), grid())
    with pytest.raises(ValueError, match="targets must be finite"):
        posterior.mean(np.full(36, np.nan), grid())
    with pytest.raises(ValueError, match="at must have 2 coordinates"):
        posterior.std(np.zeros((3, 1)))
    partitions = batched(grid(), 3.0)
    partitions.append(None, [1, 2, 3])
    with pytest.raises(ValueError, match=r"targets must have shape \(3, 1\)"):
        partitions.mean(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="one candidate for each"):
        partitions.append(None, [1, 2])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"low": 1.0, "high": 0.0}, "low must be at most high"),
        ({"low": [0.0, 2.0], "high": 1.0}, "low must be at most high"),
        ({"low": math.nan}, "low must be finite"),
        ({"high": [1.0, math.inf]}, "high must be finite"),
        ({"low": np.zeros((1, 2))}, r"must be numbers or have shape \(d,\), got \(1, 2\), \(\)"),
        ({"high": []}, r"must be numbers or have shape \(d,\), got \(\), \(0,\)"),
        ({"low": [0.0, 0.0], "high": [1.0, 1.0, 1.0]}, "as many coordinates, got 2 and 3"),
        ({"low": "left"}, "low must be an array of numbers"),
        ({"drop": "no"}, "drop must be True or False, got 'no'"),
    ],
)
def test_a_box_that_is_none_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        single(3.0, **options)
    if "drop" in options:
        with pytest.raises(ValueError, match=said):
            batched(grid(), 3.0, **options)


@pytest.mark.parametrize("box", [{"low": [0.0, 0.0]}, {"high": [1.0, 1.0]}])
def test_points_that_are_not_of_the_box_are_refused(box):
    posterior = single(3.0, **box)
    for ask in (posterior.extend, posterior.std, posterior.basis):
        with pytest.raises(ValueError, match="must have 2 coordinates, as the box has, got 3"):
            ask(np.zeros((4, 3)))
    posterior.extend(np.array([[0.2, 0.7]]))
    assert len(posterior) == 1
    point = single(3.0, low=[0.5, 0.0], high=[0.5, 1.0])  # an axis without extent is one
    point.extend(grid())
    assert len(point) == 36

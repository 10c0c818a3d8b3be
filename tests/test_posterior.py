"""Design and Lattice against the textbook, scikit-learn, and each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

import reference
import rewardfree as rf
from posterior_points import points
from rewardfree.posterior import design as design_module
from rewardfree.posterior.engine import prior
from rewardfree.posterior.engine.backend import Recording
from strict_backend import StrictBackend

# 1e-10 on means and variances: an inverse at these ridges keeps 11 digits or more.
CLOSE = {"rtol": 0, "atol": 1e-10}
KERNELS = [
    rf.Matern(nu=1.5, lengthscale=0.1),
    rf.SquaredExponential(lengthscale=(0.2, 0.3)),
    rf.NeuralTangent(depth=2, bias=0.1),
    0.7 * rf.Matern(nu=0.8, lengthscale=0.3) + rf.Linear(bias=0.2),
    rf.kernels.Delta(),
]


def on_all_of(kernel, z, queries, ridge, backend):
    """A lattice over queries and z, with z appended to its two designs; the answers are about the queries."""
    candidates = np.concatenate([queries, z])
    lattice = rf.posterior.Lattice(kernel, candidates, ridge=ridge, designs=2, capacity=4)
    if backend == "strict":
        lattice._backend = StrictBackend()
        lattice._build(lattice._backend.array(candidates), 2, 4)
    lattice.extend(z)
    return lattice


@pytest.mark.parametrize("backend", ["design", "numpy", "strict"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_mean_and_variance_are_the_textbook_ones(kernel, backend):
    z, q, y, ridge = points(40), points(25, 1), np.random.default_rng(2).standard_normal((40, 3)), 0.1
    expected_mean = reference.mean(kernel, z, ridge, y, q)
    expected_variance = reference.variance(kernel, z, ridge, q)
    expected_gain = reference.information_gain(kernel, z, ridge)
    if backend == "design":
        design = rf.posterior.Design(kernel, ridge=ridge)
        design.extend(z)
        answers = [(design.mean(y, q), design.mean(y[:, 0], q), design.std(q), design.information_gain())]
    else:
        lattice, ask = on_all_of(kernel, z, q, ridge, backend), np.arange(25)
        both = np.stack([y, y])
        many, one = lattice.mean(both, rows=ask), lattice.mean(both[:, :, 0], rows=ask)
        whole = lattice.mean(both)
        parts = [np.asarray(part) for part in (many, one, lattice.std(rows=ask), lattice.information_gain())]
        np.testing.assert_allclose(np.asarray(whole)[:, :25], parts[0], **CLOSE)
        answers = list(zip(*parts, strict=True))
    for many, one, std, gain in answers:
        np.testing.assert_allclose(many, expected_mean, **CLOSE)
        np.testing.assert_allclose(one, expected_mean[:, 0], **CLOSE)
        np.testing.assert_allclose(std**2, expected_variance, **CLOSE)
        np.testing.assert_allclose(gain, expected_gain, **CLOSE)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (rf.SquaredExponential(0.2), sk.RBF(0.2)),
        (rf.Matern(2.5, 0.3), sk.Matern(length_scale=0.3, nu=2.5)),
        (sk.Matern(length_scale=0.3, nu=1.7), sk.Matern(length_scale=0.3, nu=1.7)),
    ],
    ids=["SE", "Matern 2.5", "a scikit-learn kernel"],
)
def test_agrees_with_scikit_learn(ours, theirs):
    z, q, y = points(60), points(30, 1), np.sin(9 * points(60)[:, 0])
    theirs = GaussianProcessRegressor(theirs, alpha=0.05, optimizer=None).fit(z, y)
    mean, std = theirs.predict(q, return_std=True)
    design = rf.posterior.Design(ours, ridge=0.05)
    design.extend(z)
    lattice = on_all_of(ours, z, q, 0.05, "numpy")
    np.testing.assert_allclose(design.mean(y, q), mean, **CLOSE)
    np.testing.assert_allclose(design.std(q) ** 2, std**2, **CLOSE)
    np.testing.assert_allclose(lattice.mean(np.stack([y, y]), q)[1], mean, **CLOSE)
    np.testing.assert_allclose(lattice.std(q)[0] ** 2, std**2, **CLOSE)


@given(st.lists(st.integers(1, 7), min_size=1, max_size=8), st.sampled_from(KERNELS))
def test_extending_in_pieces_is_refitting(sizes, kernel):
    z, q = points(sum(sizes)), points(9, 1)
    whole, pieces = rf.posterior.Design(kernel, ridge=0.3), rf.posterior.Design(kernel, ridge=0.3)
    whole.extend(z)
    for part in np.split(z, np.cumsum(sizes)[:-1]):
        pieces.extend(part)
    y = np.cos(7 * z[:, 1])
    np.testing.assert_allclose(pieces.mean(y, q), whole.mean(y, q), **CLOSE)
    np.testing.assert_allclose(pieces.std(q) ** 2, whole.std(q) ** 2, **CLOSE)
    assert pieces.information_gain() == pytest.approx(whole.information_gain(), abs=1e-10)
    np.testing.assert_array_equal(pieces.points, z)


@given(st.data())
def test_any_pattern_of_appends_matches_one_design_each(data):
    """Random subsets in random order, questions at random moments, some designs ahead of others."""
    g, m = 3, 50
    z, kernel = points(m), rf.Matern(nu=2.5, lengthscale=0.2)
    lattice = rf.posterior.Lattice(kernel, z, ridge=0.2, designs=g, capacity=2)
    designs = [rf.posterior.Design(kernel, ridge=0.2) for _ in range(g)]
    for _ in range(data.draw(st.integers(1, 10))):
        chosen = data.draw(st.lists(st.integers(0, g - 1), min_size=1, unique=True))
        added = data.draw(st.lists(st.integers(0, m - 1), min_size=len(chosen), max_size=len(chosen)))
        lattice.append(chosen, added)
        for d, i in zip(chosen, added, strict=True):
            designs[d].extend(z[[i]])
        if data.draw(st.booleans()):
            lattice.std(designs=chosen[:1])
    asked = data.draw(st.lists(st.integers(0, g - 1), min_size=1, unique=True))
    n = max(len(designs[d]) for d in asked)
    y = np.random.default_rng(n).standard_normal((len(asked), n, 2))
    means, stds = lattice.mean(y, designs=asked), lattice.std(designs=asked)
    for i, d in enumerate(asked):
        np.testing.assert_allclose(means[i], designs[d].mean(y[i, : len(designs[d])], z), **CLOSE)
        np.testing.assert_allclose(stds[i] ** 2, designs[d].std(z) ** 2, **CLOSE)
        np.testing.assert_array_equal(z[lattice.indices(d)], designs[d].points.reshape(-1, 2))


@pytest.mark.parametrize("ridge", [1e-3, 0.5])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_information_gain_adds_up_along_the_way(kernel, ridge):
    z = points(30)
    design, total = rf.posterior.Design(kernel, ridge=ridge), 0.0
    for point in z:
        total += 0.5 * np.log1p(design.std(point[None])[0] ** 2 / ridge)
        design.extend(point[None])
    assert design.information_gain() == pytest.approx(total, abs=1e-9)


@given(st.integers(0, 2**32 - 1), st.sampled_from(KERNELS), st.floats(1e-3, 10))
def test_variance_never_rises(seed, kernel, ridge):
    z = points(20, seed)
    lattice = rf.posterior.Lattice(kernel, z, ridge=ridge)
    before = lattice.std()
    for index in np.random.default_rng(seed).integers(0, 20, 12):
        lattice.append([0], [index])
        after = lattice.std()
        assert (after <= before + 1e-12).all()
        before = after


@given(st.permutations(range(15)))
def test_the_order_of_the_data_does_not_matter(order):
    z, q = points(15), points(6, 1)
    y, order = np.sin(5 * z[:, 0]), np.array(order)
    first, second = (rf.posterior.Design(rf.Matern(1.5, 0.2), ridge=0.05) for _ in range(2))
    first.extend(z)
    second.extend(z[order])
    np.testing.assert_allclose(first.mean(y, q), second.mean(y[order], q), **CLOSE)
    np.testing.assert_allclose(first.std(q) ** 2, second.std(q) ** 2, **CLOSE)


def test_two_thousand_appends_stay_on_the_refit():
    """ridge 1e-4, SE: the worst conditioned case that the project promises, to 1e-8."""
    kernel, ridge, n = rf.SquaredExponential(0.1), 1e-4, 2000
    candidates = points(300, 3)
    chosen = np.random.default_rng(4).integers(0, 300, n)
    lattice = rf.posterior.Lattice(kernel, candidates, ridge=ridge, capacity=n)
    design, refit = rf.posterior.Design(kernel, ridge=ridge), rf.posterior.Design(kernel, ridge=ridge)
    for index in chosen:
        lattice.append([0], [index])
        design.extend(candidates[[index]])
    refit.extend(candidates[chosen])
    y = np.sin(8 * candidates[chosen, 0]) + np.random.default_rng(5).standard_normal(n)
    for mean, std in [
        (design.mean(y, candidates), design.std(candidates)),
        (lattice.mean(y[None])[0], lattice.std()[0]),
    ]:
        np.testing.assert_allclose(mean, refit.mean(y, candidates), rtol=0, atol=1e-8)
        np.testing.assert_allclose(std**2, refit.std(candidates) ** 2, rtol=0, atol=1e-8)


@pytest.mark.parametrize("ridge", [0.01, 0.5])
def test_single_precision_holds_three_to_six_digits(ridge):
    """Stated: errors below 40 eps/ridge (5e-4 at 0.01, 1e-5 at 0.5), for targets of size one."""
    z, q, kernel = points(160), points(50, 1), rf.Matern(1.5, 0.1)
    y = np.sin(6 * z[:, 0])
    tolerance = 40 * np.finfo(np.float32).eps / ridge
    exact, single = (
        rf.posterior.Design(kernel, ridge=ridge),
        rf.posterior.Design(kernel, ridge=ridge, dtype=np.float32),
    )
    exact.extend(z)
    single.extend(z)
    lattice = rf.posterior.Lattice(kernel, np.concatenate([q, z]), ridge=ridge, dtype=np.float32)
    for index in range(50, 210):
        lattice.append([0], [index])
    for mean, std in [
        (single.mean(y, q), single.std(q)),
        (lattice.mean(y[None], rows=np.arange(50))[0], lattice.std(rows=np.arange(50))[0]),
    ]:
        assert mean.dtype == std.dtype == np.float32
        np.testing.assert_allclose(mean, exact.mean(y, q), rtol=0, atol=tolerance)
        np.testing.assert_allclose(std**2, exact.std(q) ** 2, rtol=0, atol=tolerance)


def test_without_data_the_answer_is_the_prior():
    kernel, q = 2.0 * rf.Matern(1.5, 0.1), points(5)
    design, lattice = (
        rf.posterior.Design(kernel, ridge=0.5),
        rf.posterior.Lattice(kernel, q, ridge=0.5, designs=3),
    )
    np.testing.assert_array_equal(design.mean(np.zeros(0), q), np.zeros(5))
    np.testing.assert_array_equal(design.mean(np.zeros((0, 2)), q), np.zeros((5, 2)))
    np.testing.assert_allclose(design.std(q), np.sqrt(2.0))
    np.testing.assert_array_equal(lattice.mean(np.zeros((3, 0, 4))), np.zeros((3, 5, 4)))
    np.testing.assert_allclose(lattice.std(), np.sqrt(2.0))
    assert design.information_gain() == 0.0
    np.testing.assert_array_equal(lattice.information_gain(), np.zeros(3))


def test_the_same_point_again_and_again_is_an_average():
    """k = 1 at one point: mean = sum(y)/(n + ridge), variance = ridge/(n + ridge)."""
    z, y, ridge = np.zeros((6, 2)), np.arange(6.0), 1e-6
    design = rf.posterior.Design(rf.SquaredExponential(0.1), ridge=ridge)
    design.extend(z)
    assert design.mean(y, z[:1])[0] == pytest.approx(15.0 / (6 + ridge), abs=1e-9)
    assert design.std(z[:1])[0] ** 2 == pytest.approx(ridge / (6 + ridge), abs=1e-12)


def test_blocks_of_queries_change_nothing(monkeypatch):
    z, q = points(30), points(101, 1)
    design = rf.posterior.Design(rf.Matern(2.5, 0.2), ridge=0.1)
    design.extend(z)
    y = np.stack([z[:, 0], z[:, 1]], axis=1)
    mean, std = design.mean(y, q), design.std(q)
    monkeypatch.setattr(design_module, "BLOCK_BYTES", 30 * 8 * 7)
    np.testing.assert_allclose(design.mean(y, q), mean, rtol=0, atol=1e-13)
    np.testing.assert_allclose(design.std(q), std, rtol=0, atol=1e-13)


def test_a_table_of_the_kernel_changes_nothing(monkeypatch):
    """Wide lattices look k(z, Z) up; narrow ones compute it."""
    z, chosen = points(20), np.random.default_rng(1).integers(0, 20, (30, 2))
    stds = []
    for size in (0, 2**20):
        monkeypatch.setattr(prior, "TABLE_BYTES", size)
        lattice = rf.posterior.Lattice(rf.Matern(1.5, 0.2), z, ridge=0.1, designs=2, capacity=30)
        assert isinstance(lattice._prior, prior.EvaluatedRows if size == 0 else prior.TableRows)
        for pair in chosen:
            lattice.append([0, 1], pair)
        stds.append(lattice.std())
    np.testing.assert_allclose(*stds, rtol=0, atol=1e-15)


GRIDS = {
    "square": [np.linspace(0, 1, 7), np.linspace(0, 1, 7)],
    "oblong": [np.linspace(-2, 1, 5), np.linspace(0.3, 0.4, 8)],
    "line": [np.linspace(0, 5, 11)],
    "cube": [np.linspace(0, 1, 3), np.linspace(0, 1, 4), np.array([0.7])],
}


@pytest.mark.parametrize("axes", GRIDS.values(), ids=GRIDS)
@pytest.mark.parametrize(
    "kernel", [rf.Matern(1.5, 0.3), rf.kernels.Delta(), 2.0 * rf.SquaredExponential(0.5)], ids=repr
)
def test_rows_on_a_grid_are_windows_of_one_table(axes, kernel):
    z = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    rows = rf.posterior.Lattice(kernel, z, ridge=0.1)._prior
    assert isinstance(rows, prior.GridRows)
    every = np.arange(len(z))
    np.testing.assert_allclose(rows(every), kernel(z, z), rtol=0, atol=1e-14)


def test_rows_off_a_grid_are_evaluated():
    z = np.stack(np.meshgrid(np.linspace(0, 1, 4), np.linspace(0, 1, 5), indexing="ij"), axis=-1).reshape(
        -1, 2
    )
    uneven = z**2
    for placed, kernel in [
        (z, rf.Linear()),
        (z[::-1], rf.kernels.Delta()),
        (z[:-1], rf.kernels.Delta()),
        (uneven, rf.kernels.Delta()),
    ]:
        assert isinstance(
            rf.posterior.Lattice(kernel, placed, ridge=0.1, capacity=1)._prior, prior.EvaluatedRows
        )


def test_memory_that_runs_out_is_answered_in_halves(monkeypatch):
    """A product over more than two designs fails; the answer must be the same, and nothing half-written."""
    z, y = points(33), np.random.default_rng(1).standard_normal((5, 2, 3))
    plain, tight = (rf.posterior.Lattice(rf.Matern(1.5, 0.2), z, ridge=0.1, designs=5) for _ in range(2))
    whole_product = tight._rows.product

    def product(columns, designs):
        if len(designs) > 2:
            raise MemoryError
        return whole_product(columns, designs)

    monkeypatch.setattr(tight._rows, "product", product)
    for lattice in (plain, tight):
        lattice.append(None, [1, 2, 3, 4, 5])
        lattice.append(None, [7, 7, 8, 9, 9])
    np.testing.assert_allclose(tight.mean(y), plain.mean(y), rtol=0, atol=1e-14)
    np.testing.assert_allclose(tight.std(), plain.std(), rtol=0, atol=1e-14)
    monkeypatch.setattr(
        tight._rows, "product", lambda columns, designs: (_ for _ in ()).throw(MemoryError("full"))
    )
    with pytest.raises(MemoryError, match="no room"):
        tight.mean(y)


def test_memory_that_runs_out_late_leaves_no_half_written_row(monkeypatch):
    """Failing anywhere in a pass, then answering in halves, must give the plain numbers."""
    z, y = points(33), np.random.default_rng(1).standard_normal((4, 2))
    plain, tight = (rf.posterior.Lattice(rf.Matern(1.5, 0.2), z, ridge=0.1, designs=4) for _ in range(2))
    whole, failed = tight._backend.subtract_squares, []

    def once_full(buffer, index, values):
        if not failed:
            failed.append(1)
            raise MemoryError
        whole(buffer, index, values)

    monkeypatch.setattr(tight._backend, "subtract_squares", once_full)
    for lattice in (plain, tight):
        lattice.append(None, [1, 2, 3, 4])
        lattice.append(None, [7, 7, 8, 9])
    np.testing.assert_allclose(tight.mean(y), plain.mean(y), rtol=0, atol=1e-14)
    np.testing.assert_allclose(tight.std(), plain.std(), rtol=0, atol=1e-14)
    assert failed


def test_a_lattice_too_large_says_what_to_do():
    with pytest.raises(MemoryError, match=r"no room for .* GiB .*fewer designs at a time"):
        rf.posterior.Lattice(rf.kernels.Delta(), points(1000), ridge=1.0, designs=10**6, capacity=10**5)


@pytest.mark.parametrize("pattern", ["ask, append", "append, ask", "append twice"])
def test_a_round_recorded_at_other_counts_is_right(pattern):
    """What a CUDA recording relies on: lengths with room to spare, and counts kept beside the lattice."""
    z, kernel, g = points(30), rf.Matern(1.5, 0.3), 3
    chosen = np.random.default_rng(2).integers(0, 30, (8, g))
    y = np.random.default_rng(3).standard_normal((g, 20))
    plain, recorded = (rf.posterior.Lattice(kernel, z, ridge=0.2, designs=g, capacity=20) for _ in range(2))
    answers = {}
    for lattice in (plain, recorded):
        lattice.append([0, 1], [3, 4])  # not all of one length
        if lattice is recorded:
            lattice._factors.recording = Recording(20, lattice.counts, np.arange(g))
        sums = np.zeros((g, 30))
        for added in chosen:
            if pattern == "ask, append":
                sums += lattice.mean(y[:, : lattice.length()])
            lattice.append(None, added)
            if pattern == "append twice":
                lattice.append(None, added[::-1])
            sums += lattice.mean(y[:, : lattice.length()]) + lattice.std()
        answers[lattice is recorded] = sums
    np.testing.assert_allclose(answers[True], answers[False], rtol=0, atol=1e-12)


def test_one_pass_serves_an_append_and_a_question(monkeypatch):
    lattice = rf.posterior.Lattice(rf.Matern(1.5, 0.3), points(30), ridge=0.2, designs=2)
    product, passes = lattice._rows.product, []
    monkeypatch.setattr(lattice._rows, "product", lambda c, d: (passes.append(c.shape), product(c, d))[1])
    for n in range(1, 6):
        lattice.append(None, [n, n + 1])
        lattice.mean(np.ones((2, n, 4)))
        lattice.std()
    assert passes == [(2, 5, n) for n in range(1, 6)]


def test_queries_come_in_blocks_of_bounded_size(monkeypatch):
    sizes = []

    class Watched(rf.kernels.Delta):
        def _between(self, x, y):
            sizes.append(len(x) * len(y))
            return super()._between(x, y)

    design = rf.posterior.Design(Watched(), ridge=0.1)
    design.extend(points(30))
    sizes.clear()
    monkeypatch.setattr(design_module, "BLOCK_BYTES", 30 * 8 * 7)
    design.mean(np.ones(30), points(100))
    design.std(points(100))
    assert max(sizes) == 30 * 7
    assert sum(sizes) == 2 * 30 * 100


def test_room_doubles(monkeypatch):
    """Growing by one each time would copy everything each time."""
    design, lattice = (
        rf.posterior.Design(rf.kernels.Delta(), ridge=1.0),
        rf.posterior.Lattice(rf.kernels.Delta(), points(9), ridge=1.0, capacity=1),
    )
    grown, room = [], set()
    grow = lattice._rows.grow
    monkeypatch.setattr(lattice._rows, "grow", lambda capacity: (grown.append(capacity), grow(capacity)))
    for i in range(100):
        design.extend(points(1, i))
        room.add(len(design._points))
        lattice.append(None, [i % 9])
    assert sorted(room) == [16, 32, 64, 128]
    assert grown == [2, 4, 8, 16, 32, 64, 128]


def test_rounding_below_zero_is_clipped_and_no_more():
    """A variance may fall below zero by rounding alone; a kernel that pushes it further is an error."""

    class Tilted:
        def __init__(self, excess):
            self.excess = excess

        def __call__(self, x, y):
            return 1.0 + self.excess * (x != y[:, 0])

        def diag(self, x):
            return np.ones(len(x))

    z = np.array([[0.0], [1.0]])
    for excess, refused in [(0.0, False), (1e-13, False), (1e-6, True)]:
        design, lattice = (
            make(Tilted(excess)) for make in (_design, lambda k: rf.posterior.Lattice(k, z, ridge=1e-3))
        )
        design.extend(z[:1])
        lattice.append([0], [0])
        for _ in range(400):  # var(1) = 1 - (1 + excess)^2 n/(n + ridge): below zero for large n
            lattice.append([0], [0])
        design.extend(np.repeat(z[:1], 400, axis=0))
        for ask in (lambda d=design: d.std(z[1:]), lambda t=lattice: t.std()):
            if refused and (1 + excess) ** 2 * 401 / (401 + 1e-3) > 1 + 1e-7:
                with pytest.raises(np.linalg.LinAlgError, match="a variance of -"):
                    ask()
            else:
                assert (ask() >= 0.0).all()


def _design(kernel):
    return rf.posterior.Design(kernel, ridge=1e-3)

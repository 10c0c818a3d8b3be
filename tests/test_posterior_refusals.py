"""What posteriors take and refuse, and that they hold no targets."""

import copy
import pickle

import numpy as np
import pytest

import rewardfree as rf
from posterior_points import points


def test_the_callers_array_is_not_the_lattices():
    z = points(40)
    given = z.copy()
    mine, other = (rf.posterior.Lattice(rf.Matern(1.5, 0.3), array, ridge=0.2) for array in (given, z))
    for lattice in (mine, other):
        lattice.append(None, [3])
    given[:] = 0.0
    np.testing.assert_array_equal(mine.std(), other.std())
    with pytest.raises(ValueError, match="read-only"):
        mine.candidates[:] = 0.0


def test_whole_number_points_are_points():
    grid = np.array([[0, 0], [1, 1], [2, 2]])
    design, lattice = (
        rf.posterior.Design(rf.Matern(1.5), ridge=0.1),
        rf.posterior.Lattice(rf.Matern(1.5), grid, ridge=0.1),
    )
    for posterior in (design, lattice):
        posterior.extend([[1, 1]])
    np.testing.assert_allclose(lattice.std([[2, 2], [1, 1]])[0], design.std([[2, 2], [1, 1]]), atol=1e-12)


def test_of_equal_candidates_the_first_is_meant_and_zero_has_no_sign():
    lattice = rf.posterior.Lattice(rf.kernels.Delta(), [[0.0], [1.0], [1.0]], ridge=1.0)
    lattice.extend([[1.0], [-0.0]])
    np.testing.assert_array_equal(lattice.indices(), [1, 0])


def test_no_designs_and_no_queries_are_empty_answers():
    lattice = rf.posterior.Lattice(rf.kernels.Delta(), points(4), ridge=1.0, designs=3)
    lattice.append(None, [0, 1, 2])
    assert lattice.mean(np.zeros((0, 0)), designs=[]).shape == (0, 4)
    assert lattice.std(designs=[]).shape == (0, 4)
    assert lattice.std(np.zeros((0, 2))).shape == (3, 0)
    assert lattice.mean(np.ones((3, 1, 2)), rows=[]).shape == (3, 0, 2)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_design_can_be_copied_and_sent_to_another_process(dtype):
    design = rf.posterior.Design(rf.Matern(1.5, 0.3), ridge=0.1, dtype=dtype)
    design.extend(points(9))
    for other in (copy.deepcopy(design), pickle.loads(pickle.dumps(design))):
        other.extend(points(3, 1))
        assert len(other) == 12
        assert len(design) == 9


@pytest.mark.parametrize(
    "make",
    [
        lambda k: rf.posterior.Design(k, ridge=1.0, dtype=np.float32),
        lambda k: rf.posterior.Lattice(k, [[0.0, 0.0]], ridge=1.0, dtype=np.float32),
    ],
)
def test_what_single_precision_cannot_hold_is_refused(make):
    posterior = make(rf.Linear())
    for large in (1e60, 1e30):
        with pytest.raises(ValueError, match=r"must be finite|must stay below|candidates"):
            posterior.extend([[large, 0.0]])
    with pytest.raises(ValueError, match=r"must be finite|must stay below"):
        rf.posterior.Lattice(rf.Linear(), [[1e30, 0.0]], ridge=1.0, dtype=np.float32)
    with pytest.raises(ValueError, match="targets must be finite"):
        posterior.extend([[0.0, 0.0]])
        posterior.mean(np.full((*posterior.batch, 1), 1e60), [[0.0, 0.0]])


def test_repeat_on_the_cpu_is_a_loop():
    lattice, done = rf.posterior.Lattice(rf.kernels.Delta(), points(4), ridge=1.0), []

    def step():
        done.append(lattice.length())
        lattice.append([0], [len(done) % 4])

    lattice.repeat(step, 3)
    assert done == [0, 1, 2]
    np.testing.assert_array_equal(lattice.counts, [3])


def test_both_offer_the_protocol_and_no_place_for_targets():
    design, lattice = (
        rf.posterior.Design(rf.kernels.Delta(), ridge=1.0),
        rf.posterior.Lattice(rf.kernels.Delta(), points(4), ridge=1.0, designs=2),
    )
    for posterior, batch in [(design, ()), (lattice, (2,))]:
        assert isinstance(posterior, rf.posterior.Posterior)
        assert posterior.batch == batch
        posterior.extend(points(4))
        before = set(vars(posterior))
        posterior.mean(np.ones((*batch, 4)), points(4))
        assert set(vars(posterior)) == before


def test_growing_does_not_disturb_what_is_there():
    z, kernel = points(12), rf.Matern(1.5, 0.3)
    small, large = (rf.posterior.Lattice(kernel, z, ridge=0.1, designs=2, capacity=c) for c in (1, 99))
    for index in range(12):
        for lattice in (small, large):
            lattice.append([index % 2], [index])
    np.testing.assert_array_equal(small.std(), large.std())
    np.testing.assert_array_equal(small.indices(1), [1, 3, 5, 7, 9, 11])


def test_an_indefinite_kernel_is_named():
    class Backwards:
        def __call__(self, x, y):
            return 1.0 - 3.0 * (x != y[:, 0]).astype(float)

        def diag(self, x):
            return np.ones(len(x))

        def __repr__(self):
            return "Backwards()"

    z = np.arange(4.0)[:, None]
    design, lattice = (
        rf.posterior.Design(Backwards(), ridge=0.1),
        rf.posterior.Lattice(Backwards(), z, ridge=0.1),
    )
    message = r"Backwards\(\).*ridge 0.1 on \d points.*larger ridge.*positive semi-definite"
    with pytest.raises(np.linalg.LinAlgError, match=message):
        design.extend(z)
    assert len(design) == 0
    lattice.append([0], [0])
    with pytest.raises(np.linalg.LinAlgError, match=message):
        lattice.append([0], [1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rf.posterior.Design(rf.kernels.Delta(), ridge=0.0), "ridge must be positive, got 0"),
        (lambda: rf.posterior.Design(rf.kernels.Delta(), ridge=np.nan), "ridge must be finite"),
        (lambda: rf.posterior.Design(rf.kernels.Delta(), ridge="a"), "ridge must be a number"),
        (
            lambda: rf.posterior.Design(rf.kernels.Delta(), ridge=1.0, dtype=np.int64),
            "dtype must be float64 or float32",
        ),
        (lambda: rf.posterior.Design("rbf", ridge=1.0), "a kernel must offer"),
        (lambda: rf.posterior.Lattice(rf.kernels.Delta(), np.zeros((0, 2)), ridge=1.0), "at least one point"),
        (
            lambda: rf.posterior.Lattice(rf.kernels.Delta(), [[np.inf, 0.0]], ridge=1.0),
            "candidates must be finite",
        ),
        (lambda: rf.posterior.Lattice(rf.kernels.Delta(), points(3), ridge=-1.0), "ridge must be positive"),
        (
            lambda: rf.posterior.Lattice(rf.kernels.Delta(), points(3), ridge=1.0, designs=0),
            "designs must be a whole number",
        ),
        (
            lambda: rf.posterior.Lattice(rf.kernels.Delta(), points(3), ridge=1.0, capacity=1.5),
            "capacity must be a whole",
        ),
        (
            lambda: rf.posterior.Lattice(rf.kernels.Delta(), points(3), ridge=1.0, dtype="int32"),
            "dtype must be",
        ),
        (
            lambda: rf.posterior.Lattice(rf.kernels.Delta(), points(3), ridge=1.0, dtype="floaty"),
            "dtype must be",
        ),
        (
            lambda: rf.posterior.Lattice(rf.kernels.Delta(), points(3), ridge=1.0, device="gpu"),
            'device must be "cpu"',
        ),
        (
            lambda: rf.posterior.Lattice(rf.Matern(1.5, (1, 2, 3)), points(3), ridge=1.0),
            "lengthscale has 3 entries",
        ),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda d: d.extend([[np.nan, 0.0]]), "points must be finite, got 1 NaN"),
        (lambda d: d.extend([0.1, 0.2]), r"points must have shape \(n, d\)"),
        (lambda d: d.extend(points(2, dim=3)), "points must have 2 coordinates, got 3"),
        (lambda d: d.mean(np.zeros(4), points(2)), r"targets must have shape \(5,\)"),
        (lambda d: d.mean(np.full(5, np.inf), points(2)), "targets must be finite"),
        (lambda d: d.mean(np.zeros(5), points(2, dim=1)), "at must have 2 coordinates"),
        (lambda d: d.mean(np.zeros(5, complex), points(2)), "targets must be float64 or float32"),
        (lambda d: d.std("here"), "at must be an array of numbers"),
    ],
)
def test_bad_questions_to_a_design_are_refused_and_change_nothing(ask, message):
    design = rf.posterior.Design(rf.Matern(1.5, 0.2), ridge=0.1)
    design.extend(points(5))
    before = design.std(points(3, 1))
    with pytest.raises(ValueError, match=message):
        ask(design)
    np.testing.assert_array_equal(design.std(points(3, 1)), before)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda t: t.append([0, 0], [1, 2]), "designs must be named once each"),
        (lambda t: t.append([3], [1]), r"designs must lie in 0\.\.2"),
        (lambda t: t.append([0.5], [1]), "designs must be whole numbers"),
        (lambda t: t.append([0], [9]), r"candidate indices must lie in 0\.\.7, got one 2 beyond"),
        (lambda t: t.append([0], [-1]), r"candidate indices must lie in 0\.\.7"),
        (lambda t: t.append([0, 1], [1]), "one candidate for each of 2 designs"),
        (lambda t: t.extend([[0.123, 0.456]]), "one of the lattice's candidates"),
        (lambda t: t.extend([[0.123]]), "points must have 2 coordinates"),
        (lambda t: t.append([0], ["a"]), "candidate indices must be whole numbers"),
        (lambda t: t.append([0], [1.0]), "candidate indices must be whole numbers"),
        (lambda t: t.std(points(8), rows=[1]), "give one of them"),
        (lambda t: t.std(rows=3), "candidate indices must have 1 or 2 axes"),
        (lambda t: t.indices([0, 1]), "design must be a whole number"),
        (lambda t: t.mean(np.zeros((3, 1))), r"targets must have shape \(3, 2\)"),
        (lambda t: t.mean(np.zeros(2)), r"targets must have shape \(3, 2\)"),
        (lambda t: t.mean(np.full((3, 2), np.nan)), "targets must be finite"),
        (lambda t: t.std(rows=[8]), "candidate indices must lie in"),
        (lambda t: t.std(rows=[[1], [2]]), "rows must have 3 rows, one per design, got 2"),
        (lambda t: t.repeat(lambda: None, -1), "times must be a whole number of at least 0"),
    ],
)
def test_bad_questions_to_a_lattice_are_refused_and_change_nothing(ask, message):
    lattice = rf.posterior.Lattice(rf.Matern(1.5, 0.2), points(8), ridge=0.1, designs=3)
    lattice.extend(points(8)[:2])
    before = lattice.std()
    with pytest.raises(ValueError, match=message):
        ask(lattice)
    np.testing.assert_array_equal(lattice.std(), before)
    np.testing.assert_array_equal(lattice.counts, [2, 2, 2])


def test_a_gpu_that_is_not_there_is_said_so():
    with pytest.raises(ValueError, match=r"needs torch|sees (no|\d+) CUDA device"):
        rf.posterior.Lattice(rf.kernels.Delta(), points(3), ridge=1.0, device="cuda:63")

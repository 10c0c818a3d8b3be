"""torch against NumPy, on the CPU and on CUDA where there is one. Run by `make test-gpu`."""

import numpy as np
import pytest

import rewardfree as rf
from torch_devices import on_every_device

pytestmark = pytest.mark.torch
pytest_generate_tests = on_every_device
KERNELS = [
    rf.SquaredExponential((0.2, 0.3)),
    rf.Matern(0.5, 0.1),
    rf.Matern(1.5, 0.1),
    rf.Matern(2.5, 0.1),
    rf.Matern(0.8, 0.3),
    rf.NeuralTangent(2, bias=0.2),
    rf.Linear(bias=0.5),
    rf.kernels.Delta(),
    2.0 * rf.Matern(1.5, 0.3) * rf.SquaredExponential(0.4) + rf.Linear(),
]


@pytest.fixture
def torch():
    import torch

    return torch


def points(n, seed=0):
    return np.random.default_rng(seed).random((n, 2))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-13), ("float32", 2e-6)])
def test_kernels_agree_and_stay_where_they_are(torch, device, kernel, dtype, tolerance):
    x, y = points(30), np.concatenate([points(20, 1), points(3)])
    on_device = [torch.tensor(p, dtype=getattr(torch, dtype), device=device) for p in (x, y)]
    values, diagonal = kernel(*on_device), kernel.diag(on_device[0])
    assert values.device.type == diagonal.device.type == device
    assert values.dtype == diagonal.dtype == getattr(torch, dtype)
    rounded = [p.astype(dtype).astype(np.float64) for p in (x, y)]
    np.testing.assert_allclose(values.cpu(), kernel(*rounded), rtol=0, atol=tolerance)
    np.testing.assert_allclose(diagonal.cpu(), kernel.diag(rounded[0]), rtol=0, atol=tolerance)


def test_foreign_kernels_are_evaluated_on_the_cpu_and_moved(torch, device):
    class Own:
        def __call__(self, x, y):
            return np.exp(-np.abs(x[:, None, 0] - y[None, :, 0]))

        def diag(self, x):
            return np.ones(len(x))

    z = points(20)
    lattice = rf.posterior.Lattice(Own(), torch.tensor(z, device=device), ridge=0.1)
    design = rf.posterior.Design(Own(), ridge=0.1)
    lattice.extend(z[:5])
    design.extend(z[:5])
    np.testing.assert_allclose(lattice.std()[0].cpu(), design.std(z), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_lattices_agree(torch, device, kernel):
    """Random subsets at random moments: 1e-9, the parity that the project promises."""
    rng, z = np.random.default_rng(3), points(130)
    ours = rf.posterior.Lattice(kernel, z, ridge=0.2, designs=4, capacity=3)
    theirs = rf.posterior.Lattice(kernel, torch.tensor(z, device=device), ridge=0.2, designs=4, capacity=3)
    for _ in range(25):
        chosen = rng.permutation(4)[: rng.integers(1, 5)]
        added = rng.integers(0, 130, len(chosen))
        ours.append(chosen, added)
        theirs.append(chosen, torch.tensor(added, device=device))
        y, at = rng.standard_normal((4, ours.length(), 2)), rng.integers(0, 130, (4, 6))
        for ask in (lambda t, y=y: t.mean(y), lambda t, y=y, at=at: t.mean(y, rows=at), lambda t: t.std()):
            np.testing.assert_allclose(ask(theirs).cpu(), ask(ours), rtol=0, atol=1e-9)
    np.testing.assert_allclose(theirs.information_gain().cpu(), ours.information_gain(), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(theirs.indices(2), ours.indices(2))


def test_single_precision_agrees_within_its_digits(torch, device):
    z, y = torch.tensor(points(200), device=device), np.random.default_rng(1).standard_normal((2, 40))
    double, single = (
        rf.posterior.Lattice(rf.Matern(1.5, 0.1), z, ridge=0.5, designs=2, dtype=dtype)
        for dtype in ("float64", "float32")
    )
    for index in range(40):
        for lattice in (double, single):
            lattice.append(None, [index, 2 * index])
    # 40 eps/ridge, as stated for NumPy
    np.testing.assert_allclose(single.mean(y).cpu(), double.mean(y).cpu(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kernel", [rf.Matern(1.5, 0.2), rf.Matern(0.8, 0.3)], ids=str)
@pytest.mark.parametrize("grown", [slice(None), [0, 2, 3]], ids=["all designs", "some designs"])
def test_recorded_rounds_are_the_plain_loop(torch, device, grown, kernel):
    """The next point depends on every earlier answer, so one wrong row would change all that follow."""
    z, rounds = points(90), 45

    def run(lattice, xp, where):
        chosen = np.arange(4)[grown]
        state = xp.asarray(np.linspace(0, 1, 90), **where)
        history = xp.zeros((len(chosen), 64), dtype=xp.int64, **where)
        now = xp.zeros((1,), dtype=xp.int64, **where)
        offsets = xp.asarray(7 * np.arange(len(chosen)), **where)
        lattice.append(None, [5, 6, 7, 8])  # the others are ahead of what a round grows

        def step():
            n = lattice.length(grown)
            seen = xp.concat([xp.zeros_like(history[:, :1]), history], axis=1)[:, :n]
            score = lattice.mean(state[seen], designs=grown) + lattice.std(designs=grown)
            best = (xp.argmax(score, axis=-1) + offsets) % 90
            history[:, now] = best[:, None]
            lattice.append(grown, best)
            now[...] += 1

        lattice.repeat(step, rounds)
        return lattice

    import array_api_compat.numpy
    import array_api_compat.torch

    plain = run(rf.posterior.Lattice(kernel, z, ridge=0.3, designs=4), array_api_compat.numpy, {})
    other = rf.posterior.Lattice(kernel, torch.tensor(z, device=device), ridge=0.3, designs=4)
    other = run(other, array_api_compat.torch, {"device": device})
    np.testing.assert_array_equal(other.counts, plain.counts)
    for design in range(4):
        np.testing.assert_array_equal(other.indices(design), plain.indices(design))
    np.testing.assert_allclose(other.std().cpu(), plain.std(), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda t, torch, where: t.append([0], torch.tensor([50], device=where)),
            "candidate indices must lie",
        ),
        (
            lambda t, torch, where: t.append([0], torch.tensor([-1], device=where)),
            "candidate indices must lie",
        ),
        (
            lambda t, torch, where: t.mean(torch.full((2, 1), torch.nan, device=where)),
            "targets must be finite",
        ),
    ],
)
def test_bad_values_on_a_device_are_reported_at_the_next_look(torch, device, ask, message):
    lattice = rf.posterior.Lattice(
        rf.kernels.Delta(), torch.tensor(points(9), device=device), ridge=1.0, designs=2
    )
    lattice.extend(points(9)[:1])
    with pytest.raises(ValueError, match=message):
        ask(lattice, torch, device)
        lattice.information_gain()


def test_a_lattice_too_large_says_what_to_do(torch, device):
    wanted = "has no room for .* GiB .*fewer designs at a time, a smaller capacity, or float32"
    with pytest.raises(MemoryError, match=wanted):
        z = torch.tensor(points(1000), device=device)
        rf.posterior.Lattice(rf.kernels.Delta(), z, ridge=1.0, designs=10**6, capacity=10**5)


def test_a_missing_device_says_what_to_do(torch):
    with pytest.raises(ValueError, match=r"sees (no|\d+) CUDA device"):
        rf.posterior.Lattice(rf.kernels.Delta(), points(3), ridge=1.0, device="cuda:63")


def test_a_kernel_too_large_for_a_table_is_still_answered(torch, device, monkeypatch):
    monkeypatch.setattr("rewardfree.posterior.engine.prior.TABLE_BYTES", 0)
    z = points(15)
    lattice = rf.posterior.Lattice(rf.Matern(0.8, 0.3), torch.tensor(z, device=device), ridge=0.3)
    design, now = rf.posterior.Design(rf.Matern(0.8, 0.3), ridge=0.3), []
    lattice.repeat(lambda: (lattice.append(None, [len(now)]), now.append(0)), 6)
    design.extend(z[:6])
    np.testing.assert_allclose(lattice.std()[0].cpu(), design.std(z), rtol=0, atol=1e-9)


def test_leaving_a_lattice_frees_its_memory(torch, device):
    """No reference cycle may keep gigabytes alive until the collector happens to run."""
    import gc
    import weakref

    gc.disable()
    try:
        lattice = rf.posterior.Lattice(rf.kernels.Delta(), torch.tensor(points(9), device=device), ridge=1.0)
        lattice.extend(points(9)[:3])
        lattice.std()
        alive = weakref.ref(lattice)
        del lattice
        assert alive() is None
    finally:
        gc.enable()


def test_rounds_without_room_for_a_recording_are_played_plainly(torch, device):
    """Memory that runs out while a round is recorded must cost nothing but time."""
    z, recorded = points(40), []

    def run(lattice):
        def step():
            if lattice._factors.recording is not None:
                recorded.append(1)
                if len(recorded) == 2:
                    raise torch.OutOfMemoryError("full")
            lattice.append(None, torch.argmax(lattice.std(), dim=-1))

        lattice.repeat(step, 160)  # more than one recording serves
        return lattice

    on_device = torch.tensor(z, device=device)
    lattice = run(rf.posterior.Lattice(rf.Matern(1.5, 0.3), on_device, ridge=0.2))
    plan = rf.query_plan(rf.Model(rf.Matern(1.5, 0.3), ridge=0.2), z, 160)
    assert len(recorded) == (2 if device == "cuda" else 0)
    np.testing.assert_array_equal(lattice.counts, [160])
    np.testing.assert_allclose(lattice.information_gain().cpu(), [_gain(z[plan])], rtol=0, atol=1e-9)


def _gain(chosen):
    design = rf.posterior.Design(rf.Matern(1.5, 0.3), ridge=0.2)
    design.extend(chosen)
    return design.information_gain()


def test_memory_does_not_pile_up_over_repeats(torch, device):
    """The pools of recordings are given back: ten repeats hold what one held (nothing at all on the CPU)."""
    z, held = torch.tensor(points(2000), device=device), []
    for _ in range(10):
        lattice = rf.posterior.Lattice(rf.Matern(1.5, 0.3), z, ridge=0.2, designs=20, capacity=40)
        lattice.repeat(lambda t=lattice: t.append(None, torch.argmax(t.std(), dim=-1)), 40)
        del lattice
        held.append(torch.cuda.memory_reserved() if device == "cuda" else 0)
    assert max(held) <= 1.5 * held[0]


def test_recorded_rounds_may_append_twice_and_ask_in_between(torch, device):
    z = points(60)

    def run(lattice, argmax):
        def step():
            lattice.append(None, argmax(lattice.std()))
            lattice.append(None, argmax(lattice.std() * lattice.candidates[:, 0]))

        lattice.repeat(step, 20)
        return lattice

    plain = run(
        rf.posterior.Lattice(rf.Matern(1.5, 0.3), z, ridge=0.2, designs=3), lambda s: np.argmax(s, axis=-1)
    )
    on_device = rf.posterior.Lattice(
        rf.Matern(1.5, 0.3), torch.tensor(z, device=device), ridge=0.2, designs=3
    )
    other = run(on_device, lambda s: torch.argmax(s, dim=-1))
    np.testing.assert_array_equal(other.counts, [40] * 3)
    np.testing.assert_allclose(other.std().cpu(), plain.std(), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(other.indices(2), plain.indices(2))


# --- exploring and planning ---

STRATEGIES = [
    rf.Generative(),
    rf.Generative(ties="random"),
    rf.Online(0.1),
    rf.Online(0.1, fresh=True, empty="prior"),
    rf.Online(0.1, ties="random"),
    rf.Qiu(0.1),
    rf.GreedyMaxVariance(),
    rf.Uniform(),
    rf.Scout(),
    rf.Scout("information"),
    rf.baselines.Partitioned(0.1, alpha=1.0),
    rf.baselines.Partitioned(0.1, drop=True),
    rf.baselines.LinearRewardFree(rf.posterior.PolynomialFeatures(3), 0.1),
    rf.baselines.KernelRFUCRL(0.5),
    rf.baselines.KernelRFExpress(0.5),
]
SHAPES = [{}, {"pooled": True}, {"centred": True}, {"pooled": True, "centred": True, "timed": True}]


class OnTorch(rf.Model):
    """A model whose lattices are torch's, also on the CPU, where a device alone would mean NumPy."""

    def posterior(self, kind, candidates, device=None, **options):
        import torch

        return super().posterior(kind, torch.tensor(np.array(candidates), device=self.where), **options)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_runs_plans_and_curves_are_numpys(torch, device, strategy, shape, monkeypatch):
    monkeypatch.setattr(OnTorch, "where", device, raising=False)
    kernel = rf.Matern(1.5, 0.2)
    instance = rf.rkhs_world(kernel, 0.5, states=9, actions=7, coarse=4, horizon=4)
    world, reward = instance.world, instance.reward
    models = rf.Model(kernel, 0.5, **shape), OnTorch(kernel, 0.5, **shape)
    unit, sizes = ("transitions", [8, 80]) if shape.get("pooled") else ("samples_per_step", [2, 40])
    here, there = (
        rf.explore_many(world, model, strategy, seeds=range(3), **{unit: sizes[-1]}) for model in models
    )
    for a, b in zip(here, there, strict=True):
        for column in ("state", "action", "next_state"):
            np.testing.assert_array_equal(getattr(a, column), getattr(b, column))
    plans = [rf.plan(data[0], reward, rf.Optimistic(0.1)) for data in (here, there)]
    np.testing.assert_array_equal(plans[0].actions, plans[1].actions)
    np.testing.assert_allclose(plans[0].values, plans[1].values, rtol=0, atol=1e-9)
    planners = {"mean": rf.Mean(), "random": rf.Pessimistic(0.1, ties="random")}
    curves = [
        rf.experiments.learning_curves(
            world, model, strategy, reward, planners, seeds=range(3), **{unit: sizes}
        )
        for model in models
    ]
    for name in planners:
        np.testing.assert_allclose(curves[0][name].max, curves[1][name].max, rtol=0, atol=1e-9)


def test_a_device_can_be_named(torch, device):
    if device == "cpu":
        return  # NumPy, as everywhere else in the tests
    kernel = rf.Matern(1.5, 0.2)
    instance = rf.rkhs_world(kernel, 0.5, states=9, actions=7, coarse=4, horizon=4)
    world, reward = instance.world, instance.reward
    model = rf.Model(kernel, 0.5)
    here, there = (
        rf.explore(world, model, rf.Online(0.1), samples_per_step=60, device=where)
        for where in ("cpu", device)
    )
    np.testing.assert_array_equal(here.state, there.state)
    plans = [rf.plan(here, reward, rf.Optimistic(0.1), device=where) for where in ("cpu", device)]
    np.testing.assert_array_equal(plans[0].actions, plans[1].actions)

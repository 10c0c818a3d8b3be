"""Inducing points, and plans on real states: torch against NumPy. Run by `make test-gpu`."""

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest

import rewardfree as rf
from rewardfree.arrays import Placement
from rewardfree.dynamics import Dynamics, Mesh, MeshDynamics
from rewardfree.model import fitted_model
from rewardfree.planning.mesh.values import value_iteration
from rewardfree.posterior.kernel_sum import KernelSum
from rewardfree.worlds import Spaces
from torch_devices import on_every_device

pytestmark = pytest.mark.torch
pytest_generate_tests = on_every_device

KERNELS = [
    rf.SquaredExponential((0.6, 0.9)),
    rf.Matern(0.5, 1.0),
    rf.Matern(1.5, 0.7),
    rf.Matern(2.5, (0.5, 1.5)) + 50.0 * rf.Linear(bias=1.0),
    2.0 * rf.Matern(2.5, 0.8) * rf.SquaredExponential(2.0),
    rf.NeuralTangent(2, bias=0.2),
]
over_kernels = pytest.mark.parametrize("kernel", KERNELS, ids=str)
#: What is promised, as a share of the size of the values.
TOLERANCES = {None: 1e-9, "float32": 1e-4}
over_dtypes = pytest.mark.parametrize("dtype", TOLERANCES, ids=["float64", "float32"])


@pytest.fixture
def torch():
    import torch

    return torch


@pytest.fixture(autouse=True)
def cuda(torch, device, monkeypatch):
    """`device="cuda"` is torch on the CPU in the tests of that device."""
    if device == "cuda":
        return
    from rewardfree.posterior.engine import linear_algebra_torch

    class TorchAlgebraOnCpu(linear_algebra_torch.TorchAlgebra):
        def __init__(self, device, dtype=None):
            super().__init__("cpu", dtype)

    monkeypatch.setattr(linear_algebra_torch, "TorchAlgebra", TorchAlgebraOnCpu)


def points_of(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


def targets_of(points):
    return np.stack([np.sin(2.0 * points[:, 0]), points[:, 1] ** 2, points @ [1.0, -1.0]], axis=1)


def agree(theirs, ours, dtype=None, size=None):
    assert isinstance(theirs, np.ndarray) or np.isscalar(theirs)
    tolerance = TOLERANCES[dtype] * (float(np.abs(ours).max()) if size is None else size)
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=tolerance)


def pair(kernel, ridge=0.05, inducing=40, n=300, dtype=None):
    """The same posterior on NumPy in float64 and on torch."""
    ours = rf.Sparse(kernel, ridge, inducing)
    theirs = rf.Sparse(kernel, ridge, inducing, device="cuda", dtype=dtype)
    for posterior in (ours, theirs):
        posterior.extend(points_of(n))
    return ours, theirs


# --- posteriors ---


@over_dtypes
@over_kernels
def test_sparse_posteriors_agree(kernel, dtype):
    ours, theirs = pair(kernel, dtype=dtype)
    at, targets = points_of(70, seed=1), targets_of(points_of(300))
    assert len(theirs) == 300
    agree(theirs.inducing, ours.inducing, dtype)
    agree(theirs.mean(targets, at), ours.mean(targets, at), dtype)
    agree(theirs.mean(targets[:, 0], at), ours.mean(targets[:, 0], at), dtype)
    agree(theirs.std(at), ours.std(at), dtype)
    agree(theirs.basis(at) @ theirs.weights(targets), ours.mean(targets, at), dtype)
    agree(theirs.energy(targets), ours.energy(targets), dtype)
    agree(theirs.information_gain(), ours.information_gain(), dtype)
    agree(theirs.left_out, ours.left_out, dtype)
    for parts in (None, [np.arange(3), np.arange(100, 190)]):
        agree(theirs.missed(targets, parts), ours.missed(targets, parts), dtype)
    (chosen, sigma), (expected, expected_sigma) = theirs.greedy(at, 9), ours.greedy(at, 9)
    if dtype is None:
        np.testing.assert_array_equal(chosen, expected)
    agree(sigma, expected_sigma, dtype)


@over_dtypes
def test_points_that_come_later_are_as_good_as_all_at_once(dtype):
    kernel, more, at = KERNELS[3], points_of(90, seed=2), points_of(15, seed=1)
    targets = targets_of(np.concatenate([points_of(300), more]))
    ours, at_once = pair(kernel, dtype=dtype)
    _, one_by_one = pair(kernel, dtype=dtype)
    at_once.extend(more)
    for i, point in enumerate(more, start=1):
        one_by_one.extend(point[None])
        ours.extend(point[None])
        if i in (1, 10, 41, len(more)):  # while few wait, and after they were taken in
            agree(one_by_one.std(at), ours.std(at), dtype)
            agree(one_by_one.mean(targets[: 300 + i], at), ours.mean(targets[: 300 + i], at), dtype)
            agree(one_by_one.information_gain(), ours.information_gain(), dtype)
            sigma, expected_sigma = (it.greedy(at, 5)[1] for it in (one_by_one, ours))
            agree(sigma, expected_sigma, dtype)
    within = max(at_once.sigma_factor, one_by_one.sigma_factor) ** 2  # of the exact one each
    ratio = at_once.std(at) / one_by_one.std(at)
    assert (1.0 / within <= ratio).all() and (ratio <= within).all()
    agree(at_once.points, np.concatenate([points_of(300), more]), dtype)


def test_large_weights_are_multiplied_with_kernel_values_in_double_precision(torch):
    rng = np.random.default_rng(0)
    kernel = rf.SquaredExponential(2.0) + 1.5 * rf.Linear(bias=1.0)
    points, at = rng.uniform(-1.0, 1.0, (2000, 4)), rng.uniform(-1.0, 1.0, (200, 4))
    targets = np.sin(2.0 * points[:, :1]) + 0.03 * rng.normal(size=(2000, 1))
    double, single = rf.Sparse(kernel, 1e-6, 300), rf.Sparse(kernel, 1e-6, 300, "cuda", "float32")
    for posterior in (double, single):
        posterior.extend(points)
    expected, weights = double.mean(targets, at), single.weights(targets)
    fitted = KernelSum(kernel, single.basis_points, weights, Placement("cuda", "float32"))
    for said in (single.mean(targets, at), single.basis(at) @ weights, fitted(at)):
        agree(said, expected, "float32")


def test_blocks_change_nothing(monkeypatch):
    from rewardfree.posterior.engine import linear_algebra_torch

    targets, at = targets_of(points_of(300)), points_of(70, seed=1)
    _, whole = pair(KERNELS[2])
    monkeypatch.setattr(linear_algebra_torch.TorchAlgebra, "block", 700)  # 17 points
    _, blocks = pair(KERNELS[2])
    agree(blocks.mean(targets, at), whole.mean(targets, at))
    agree(blocks.std(at), whole.std(at))


def test_tensors_are_answered_by_tensors_where_they_are(torch, device):
    ours, theirs = pair(KERNELS[0], n=50)
    at, targets = (
        torch.tensor(values, device=device) for values in (points_of(9, 1), targets_of(points_of(50)))
    )
    for tensor, expected in (
        (theirs.mean(targets, at), ours.mean(targets_of(points_of(50)), points_of(9, 1))),
        (theirs.std(at), ours.std(points_of(9, 1))),
        (theirs.weights(targets), ours.weights(targets_of(points_of(50)))),
    ):
        assert tensor.device.type == device and tensor.dtype == torch.float64
        agree(tensor.cpu().numpy(), expected)
    added = at.clone()
    theirs.extend(added)
    added *= 100.0  # a posterior has its own
    ours.extend(points_of(9, 1))
    agree(theirs.std(points_of(20, 3)), ours.std(points_of(20, 3)))


def test_without_points_it_is_the_prior():
    sparse, at = rf.Sparse(KERNELS[3], 0.1, device="cuda"), points_of(8)
    agree(sparse.std(at), np.sqrt(KERNELS[3].diag(at)))
    assert (sparse.mean(np.empty(0), at) == 0.0).all() and sparse.information_gain() == 0.0
    assert sparse.points.shape == sparse.inducing.shape == (0, 0)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: rf.Sparse(rf.Matern(0.8), 0.1, device="cuda"), "is computed by NumPy alone"),
        (lambda: rf.Sparse(Own(), 0.1, device="cuda"), "is computed by NumPy alone"),
        (
            lambda: rf.Sparse(KERNELS[0], 0.1, device="cuda", dtype="int32"),
            "dtype must be float64 or float32",
        ),
        (
            lambda: rf.Sparse(KERNELS[0], 0.1, device="cuda", dtype=np.int64),
            "dtype must be float64 or float32",
        ),
        (lambda: rf.Sparse(KERNELS[0], 0.1, device="mps"), 'device must be "cpu", "cuda" or "cuda:N"'),
    ],
)
def test_what_cannot_be_computed_there_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_a_device_that_torch_does_not_see_is_named(monkeypatch):
    from rewardfree.posterior.engine import linear_algebra_torch

    monkeypatch.undo()  # what makes "cuda" the CPU
    with pytest.raises(
        ValueError, match=r'device "cuda:63" was asked for, but torch sees (no|\d+) CUDA device'
    ):
        linear_algebra_torch.TorchAlgebra("cuda:63")


def test_bad_points_change_nothing(torch, device):
    _, sparse = pair(KERNELS[0], n=50)
    before = sparse.std(points_of(5, 1))
    for points, said in (
        (np.full((2, 2), np.nan), "points must be finite, got 4 NaN or infinite of 4 values"),
        (torch.full((2, 2), torch.inf, device=device), "points must be finite"),
        (np.zeros((2, 3)), "points must have 2 coordinates, got 3"),
    ):
        with pytest.raises(ValueError, match=said):
            sparse.extend(points)
    with pytest.raises(ValueError, match="targets must have shape"):
        sparse.mean(np.zeros(49), points_of(5))
    with pytest.raises(ValueError, match="targets must be finite"):
        sparse.mean(np.full(50, np.nan), points_of(5))
    agree(sparse.std(points_of(5, 1)), before)


def test_tensors_are_refused_on_the_cpu(torch):
    with pytest.raises(ValueError, match='points must be a NumPy array on device="cpu"'):
        rf.Sparse(KERNELS[0], 0.1).extend(torch.zeros((2, 2), dtype=torch.float64))


class Own:
    def __call__(self, x, y):
        return np.exp(-np.abs(x[:, None, 0] - y[None, :, 0]))

    def diag(self, x):
        return np.ones(len(x))


@over_dtypes
@over_kernels
def test_sums_of_kernels_agree(kernel, dtype):
    basis, at = points_of(60), points_of(500, seed=1)
    weights = np.random.default_rng(2).normal(size=(60, 2))
    agree(KernelSum(kernel, basis, weights, Placement("cuda", dtype))(at), kernel(at, basis) @ weights, dtype)


# --- dynamics and plans ---


class Pendulum(rf.World):
    """A pendulum that is pushed, and shaken by `noise`."""

    state = rf.Box.of(theta="angle", omega=(-8.0, 8.0))
    action = rf.Box.of(torque=(-2.0, 2.0))
    horizon = 60

    def __init__(self, noise=0.0):
        self.noise = noise

    def start(self, rng):
        return np.array([rng.uniform(-np.pi, np.pi), rng.uniform(-1.0, 1.0)])

    def sample(self, state, action, h, rng):
        omega = state[:, 1] + 0.05 * (15.0 * np.sin(state[:, 0]) + 3.0 * action[:, 0])
        omega = np.clip(omega + self.noise * rng.normal(size=len(state)), -8.0, 8.0)
        return np.stack([state[:, 0] + 0.05 * omega, omega], axis=1), np.zeros(len(state), bool)


class Cart(rf.World):
    """Three state variables: where next states are predicted in rollouts, and the mesh is laid again."""

    state = rf.Box.of(x=(-2.0, 2.0), v=(-1.0, 1.0), heat=(0.0, 1.0))
    action = rf.Discrete(3)
    horizon = 20

    def start(self, rng):
        return np.array([rng.uniform(-1.0, 1.0), 0.0, 0.0])

    def sample(self, state, action, h, rng):
        v = np.clip(0.95 * state[:, 1] + 0.1 * (action - 1.0) * (1.0 - 0.5 * state[:, 2]), -1.0, 1.0)
        x = state[:, 0] + 0.2 * v
        heat = np.clip(0.9 * state[:, 2] + 0.05 * np.abs(action - 1.0), 0.0, 1.0)
        return np.stack([x, v, heat], axis=1), np.abs(x) > 2.0


def seen(world, n, model=None):
    """Transitions from random states by random actions."""
    rng, spaces = np.random.default_rng(0), Spaces(world.state, world.action)
    state = rng.uniform(world.state.low, world.state.high, (n, world.state.size))
    discrete = isinstance(world.action, rf.Discrete)
    action = rng.integers(3, size=n) if discrete else rng.uniform(-2.0, 2.0, (n, 1))
    following, ended = world.sample(state, action, 0, rng)
    return rf.Experience(
        spaces=spaces, horizon=world.horizon, model=model or fitted_model(), strategy=None, seed=0,
        episode=np.full(n, -1), h=np.zeros(n, np.int64), state=state, action=action,
        next_state=world.state.wrapped(following), terminated=ended, kept=np.ones(n, bool),
        starts=np.array([world.start(rng) for _ in range(5)]),
    )  # fmt: skip


SPARSE = dataclasses.replace(fitted_model(), inducing=60)
REWARD = "-(theta**2 + 0.1*omega**2 + 0.001*torque**2)"


@over_dtypes
@pytest.mark.parametrize("inducing", [60, None], ids=["sparse", "exact"])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_dynamics_agree(inducing, noise, dtype):
    data = seen(Pendulum(noise), 400)
    model = dataclasses.replace(SPARSE, inducing=inducing)
    samples, where = data.at(np.arange(400)), Placement("cuda", dtype)
    ours = Dynamics.learn(data.spaces, model, samples)
    theirs = Dynamics.learn(data.spaces, model, samples, placement=where)
    asked = data.state[::3] + 0.01, data.action[::3]
    expected = ours.next_state(*asked)
    for dynamics in (theirs, theirs.on_cpu):
        moved = ours.space.change(expected, dynamics.next_state(*asked))
        agree(expected + moved, expected, dtype)
        prior = float(np.sqrt(ours.model.fixed.diag(ours.points).max()))
        agree(dynamics.std(*asked), ours.std(*asked), dtype, size=prior)  # what data leave of it
        spread = ours.spread(*asked)
        agree(dynamics.spread(*asked), spread, dtype, size=prior * float((spread / ours.std(*asked)).max()))
    assert theirs.noisy == ours.noisy == (noise > 0.0)
    agree(theirs.residuals, ours.residuals, dtype, size=float(ours.unit.max()))  # what is left of the changes
    parts = [np.arange(20), np.arange(300, 390)]
    missed = ours.targets - np.abs(ours.targets)  # which parts are left out does not depend on the values
    size = float(np.abs(missed).max())
    agree(theirs.design.missed(missed, parts), ours.design.missed(missed, parts), dtype, size)
    assert theirs.on_cpu.placement.default and theirs.on_cpu.on_cpu is theirs.on_cpu


@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("horizon", [30, None])
@pytest.mark.parametrize("changing", [False, True])
def test_values_are_iterated_alike(noise, horizon, changing):
    if horizon is None and changing:
        return  # a reward that changes with h needs an end
    data = seen(Pendulum(noise), 400)
    learnt = Dynamics.learn(data.spaces, SPARSE, data.at(np.arange(400)))
    space = data.spaces.state
    mesh = Mesh(np.array(space.low), np.array(space.high), (15, 15), space.angular)
    ended = lambda state: np.abs(state[:, 1]) > 7.0  # noqa: E731
    parts = data.spaces, learnt, mesh, data.spaces.action.candidates(3), ended, learnt if noise else None
    ours, theirs = MeshDynamics(*parts), MeshDynamics(*parts, placement=Placement("cuda"))
    rewards = np.random.default_rng(0).normal(size=(30, 3 * mesh.size))
    tables = [
        value_iteration(on_mesh, lambda h: rewards[h if changing else 0], horizon, 0.97, changing)
        for on_mesh in (ours, theirs)
    ]
    agree(tables[1].tables, tables[0].tables, "float32")  # in which they are kept
    np.testing.assert_allclose(tables[1].tables, tables[0].tables, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(tables[1].to_go, tables[0].to_go)
    assert tables[1].drift == pytest.approx(tables[0].drift, abs=1e-9)


PLANS = {
    "sparse": (Pendulum(), 500, {"model": SPARSE}, REWARD),
    "exact": (Pendulum(), 300, {}, REWARD),
    "noisy": (Pendulum(0.5), 400, {"model": SPARSE}, REWARD),
    "changing": (Pendulum(), 400, {"model": SPARSE, "horizon": 30}, "cos(theta) * h"),
    "endless": (Pendulum(), 400, {"model": SPARSE, "horizon": np.inf, "discount": 0.95}, REWARD),
    "three variables": (Cart(), 600, {"model": SPARSE}, "-(x - 1)**2 - heat"),
}


@over_dtypes
@pytest.mark.parametrize("case", PLANS)
def test_plans_agree(case, dtype):
    world, n, options, reward = PLANS[case]
    data = seen(world, n)
    planner = rf.DynamicsPlanner(sides=11, actions=5, rounds=0)  # another mesh would follow every rounding
    ours = rf.plan(data, reward, planner, **options)
    theirs = rf.plan(data, reward, planner, **options, device="cuda", dtype=dtype)
    np.testing.assert_array_equal(theirs.mesh_values.mesh.sides, ours.mesh_values.mesh.sides)
    states = data.state[:200]
    tolerance = 1e-4 if dtype else 1e-6  # tables are kept in float32
    values = [plan.values_at(states, 0) for plan in (ours, theirs)]
    np.testing.assert_allclose(values[1], values[0], rtol=0, atol=tolerance * np.abs(values[0]).max())
    returns = [rf.rollouts(world, plan, reward, episodes=5, horizon=20).mean for plan in (ours, theirs)]
    assert returns[1] == pytest.approx(returns[0], rel=0.01, abs=0.01)
    assert theirs.expected == pytest.approx(ours.expected, rel=0.01)


def test_a_plan_acts_and_is_saved_without_torch(torch, tmp_path):
    data = seen(Pendulum(), 400, SPARSE)
    planner = rf.DynamicsPlanner(sides=11, actions=5)
    theirs = rf.plan(data, REWARD, planner, device="cuda")
    theirs.save(tmp_path / "plan.npz")
    np.save(tmp_path / "states.npy", data.state[:50])
    script = (
        "import sys, numpy as np, rewardfree as rf; plan = rf.load_plan(sys.argv[1] + '/plan.npz'); "
        "np.save(sys.argv[1] + '/actions.npy', plan.act(np.load(sys.argv[1] + '/states.npy'), h=0)); "
        "assert 'torch' not in sys.modules"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    np.testing.assert_array_equal(np.load(tmp_path / "actions.npy"), theirs.act(data.state[:50], h=0))
    held = [theirs.on_mesh, theirs.on_mesh.predictor, theirs.mesh_values, theirs.on_mesh.predictor._change]
    assert not any(isinstance(value, torch.Tensor) for part in held for value in vars(part).values())


def test_a_second_reward_is_planned_from_what_the_first_left_there(monkeypatch):
    data, learnt = seen(Pendulum(), 400, SPARSE), []
    learn = Dynamics.learn.__func__
    monkeypatch.setattr(
        Dynamics, "learn", classmethod(lambda cls, *parts: learnt.append(1) or learn(cls, *parts))
    )
    planner = rf.DynamicsPlanner(sides=11, actions=5)
    rewards = [REWARD, "omega"]
    plans = [rf.plan(data, reward, planner, device="cuda") for reward in rewards]
    assert len(learnt) == 1
    for plan, other in zip(plans, rf.plan_many(data, rewards, planner, device="cuda"), strict=True):
        np.testing.assert_array_equal(plan.mesh_values.tables, other.mesh_values.tables)
    rf.plan(data, REWARD, planner)
    assert len(learnt) == 2  # on the CPU it is another


def test_a_kernel_of_ones_own_says_that_it_is_numpys():
    data = seen(Pendulum(), 50)
    model = rf.Model(Own(), 0.1, pooled=True, inducing=20)
    with pytest.raises(ValueError, match="is computed by NumPy alone"):
        rf.plan(data, REWARD, model=model, device="cuda")

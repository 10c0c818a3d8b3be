"""Exploration, dynamics and plans through inducing points, beside the exact ones."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

import rewardfree as rf
import rewardfree.model as models
from rewardfree.dynamics import Dynamics, ExplorationValue
from rewardfree.posterior import Design, inducing
from rewardfree.strategies import current

AUTO = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
FIXED = rf.Model(rf.Matern(2.5, 0.5), ridge=0.01, pooled=True, centred=True)


class Puck(rf.World):
    """A puck with friction between two walls; `noise` shakes it."""

    state = rf.Box.of(x=(-1, 1), v=(-1, 1))
    action = rf.Box.of(push=(-1, 1))
    horizon = 25

    def __init__(self, noise=0.0):
        self.noise = noise

    def start(self, rng):
        return np.array([rng.uniform(-0.5, 0.5), 0.0])

    def sample(self, state, action, h, rng):
        speed = np.clip(0.9 * state[:, 1] + 0.1 * action[:, 0] + 0.05 * np.sin(3.0 * state[:, 0]), -1.0, 1.0)
        speed = np.clip(speed + self.noise * rng.normal(size=len(speed)), -1.0, 1.0)
        place = np.clip(state[:, 0] + 0.2 * speed, -1.0, 1.0)
        return np.stack([place, speed], axis=1), np.zeros(len(state), bool)


@pytest.fixture
def soon(monkeypatch):
    """Posteriors have inducing points from 120 transitions on."""
    monkeypatch.setattr(models, "EXACT_UP_TO", 120)
    monkeypatch.setattr(current, "INDUCING", 40)


# The model


def test_automatic_means_exact_up_to_a_size():
    assert AUTO.for_points(models.EXACT_UP_TO) is AUTO
    larger = FIXED.for_points(models.EXACT_UP_TO + 1)
    assert larger.inducing == models.INDUCING and isinstance(larger.design(), rf.Sparse)
    assert type(FIXED.design()) is Design and larger.design().most == models.INDUCING
    exact = rf.Model(rf.Matern(2.5), ridge=0.1, inducing=None)
    assert exact.for_points(10**7) is exact and type(exact.design()) is Design
    always = rf.Model(rf.Matern(2.5), ridge=0.1, inducing=7)
    assert always.for_points(2) is always and isinstance(always.design(), rf.Sparse)


def test_a_model_names_its_inducing_points_only_where_it_has_its_own():
    assert "inducing" not in repr(FIXED)
    assert repr(FIXED.for_points(10**6)).endswith("timed=False, inducing=1000)")
    assert repr(rf.Model(rf.Matern(2.5), 0.1, inducing=None)).endswith("inducing=None)")


@pytest.mark.parametrize("inducing", [0, -1, 2.5, "exact", True, [10], np.array([1, 2])], ids=repr)
def test_inducing_points_that_are_none_are_refused(inducing):
    with pytest.raises(ValueError, match=r'inducing must be a number of points, "auto" or None \(exact\)'):
        rf.Model(rf.Matern(2.5), ridge=0.1, inducing=inducing)


def test_more_inducing_points_than_they_are_chosen_from_are_refused():
    with pytest.raises(ValueError, match="inducing must be at most 10,000, the points they are chosen from"):
        rf.Model(rf.Matern(2.5), ridge=0.1, inducing=20_000)


# Dynamics


@pytest.fixture(scope="module")
def data():
    return rf.explore(Puck(), AUTO, rf.Uniform(), transitions=200, seed=3)


def learnt(data, inducing):
    model = rf.Model(data.fitted.model.kernel, data.fitted.model.ridge, pooled=True, inducing=inducing)
    scaled = rf.worlds.ScaledModel(model, data.fitted.scaling)
    return Dynamics.learn(data.spaces, model, data.at(np.arange(len(data))), scaled)


def test_dynamics_with_every_point_inducing_are_the_exact_ones(data):
    exact, sparse = learnt(data, None), learnt(data, 200)
    states = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 2))
    actions = np.linspace(-1.0, 1.0, 50)[:, None]
    assert len(sparse.basis) <= len(exact.basis) == 200
    for name, scale in (("next_state", 1.0), ("std", 1.0), ("spread", 1.0)):
        one, other = (getattr(it, name)(states, actions) for it in (exact, sparse))
        np.testing.assert_allclose(other, one, atol=1e-4 * scale, err_msg=name)
    np.testing.assert_allclose(sparse.residuals, exact.residuals, atol=1e-4)
    parts = np.array_split(np.arange(200), 5)
    samples = data.at(np.arange(200))
    np.testing.assert_allclose(sparse.held_out(samples, parts), exact.held_out(samples, parts), atol=1e-3)


def test_fewer_inducing_points_predict_less_well_and_say_so(data):
    few, many = learnt(data, 8), learnt(data, 100)
    samples = data.at(np.arange(200))

    def missed(dynamics):
        return np.abs(dynamics.next_state(samples.state, samples.action) - samples.next_state).mean()

    assert missed(many) < missed(few)
    assert (few.std(samples.state, samples.action) > many.std(samples.state, samples.action)).mean() > 0.9


# Runs and plans


@pytest.mark.parametrize(
    ("model", "strategy"),
    [
        (AUTO, rf.Scout()),
        (AUTO, rf.Generative()),
        (AUTO, rf.Generative(candidates="sobol")),
        (FIXED, rf.Generative(candidates="box")),
        (AUTO, rf.Qiu(0.1)),
        (FIXED, rf.Online(0.1)),
        (AUTO, rf.GreedyMaxVariance()),
    ],
    ids=repr,
)
def test_a_run_that_is_resumed_is_the_run_of_one_piece(soon, model, strategy):
    whole = rf.explore(Puck(), model, strategy, seed=1, transitions=170)
    first = rf.explore(Puck(), model, strategy, seed=1, transitions=135)
    resumed = rf.explore(Puck(), model, strategy, seed=1, transitions=170, resume=first)
    for name in ("state", "action", "next_state", "episode"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))


def test_data_and_plans_say_what_their_posteriors_are(soon, data):
    assert repr(data).endswith("seed 3, through up to 200 inducing points)")
    assert "inducing" not in repr(data.first(transitions=120))
    fixed = dataclasses.replace(data, model=rf.Model(rf.AutoKernel(), inducing=60))
    assert repr(fixed).endswith("through up to 8 inducing points)")  # 200 transitions of 25 steps
    assert "inducing" not in repr(dataclasses.replace(data, model=rf.Model(rf.AutoKernel())))
    own = rf.baselines.LinearRewardFree(rf.posterior.PolynomialFeatures(2), 0.1)
    assert "inducing" not in repr(dataclasses.replace(data, strategy=own))
    plan = rf.plan(data, "-x**2")
    assert "inducing=1000" in repr(plan) and "200 transitions" in repr(plan)
    assert "inducing" not in repr(rf.plan(data.first(transitions=120), "-x**2"))


@pytest.mark.parametrize("inducing", [60, "auto"])
@pytest.mark.parametrize("planner", [None, rf.Mean(clip="range")], ids=["default", "mean"])
def test_a_plan_through_inducing_points_reads_back(soon, data, planner, inducing, tmp_path):
    model = rf.Model(rf.AutoKernel(), pooled=True, centred=True, inducing=inducing)
    plan = rf.plan(data, "-(x - 0.3)**2", planner, model, horizon=10)
    plan.save(tmp_path / "plan.npz")
    again = rf.load_plan(tmp_path / "plan.npz")
    states = np.random.default_rng(1).uniform(-0.9, 0.9, (30, 2))
    for h in (0, 5, 9):
        np.testing.assert_array_equal(again.act(states, h), plan.act(states, h))
    assert again.model.inducing == (60 if inducing == 60 else 1000)
    assert again.transitions == plan.transitions == 200


def test_a_plan_of_values_keeps_its_inducing_points(data, monkeypatch, tmp_path):
    model = rf.Model(rf.Matern(2.5, 0.5), ridge=0.01, pooled=True, centred=True, inducing=30)
    plan = rf.plan(data, "-(x - 0.3)**2", rf.Optimistic(0.1, clip="range"), model, horizon=10)
    plan.save(tmp_path / "plan.npz")
    monkeypatch.setattr(inducing, "POOL", 150)  # from which others would be chosen
    again = rf.load_plan(tmp_path / "plan.npz")
    states = np.random.default_rng(1).uniform(-0.9, 0.9, (200, 2))
    np.testing.assert_allclose(again.value(states, 0), plan.value(states, 0), atol=1e-9)
    np.testing.assert_array_equal(again.act(states, 0), plan.act(states, 0))
    ours, theirs = (it.recursion.estimate.posteriors[0] for it in (plan, again))
    np.testing.assert_array_equal(theirs.inducing, ours.inducing)


def test_a_plan_of_values_on_recent_points_keeps_these_too(data, tmp_path):
    model = rf.Model(rf.Matern(2.5, 0.5), ridge=0.01, pooled=True, centred=True, inducing=30)
    plan = rf.plan(data, "-(x - 0.3)**2", rf.Mean(clip="range"), model, horizon=10)
    estimate = plan.recursion.estimate
    for row in list(estimate._rows[0][:7]):
        estimate.add(row)
    plan.recursion._regressions.clear()
    plan.save(tmp_path / "plan.npz")
    states = np.random.default_rng(1).uniform(-0.9, 0.9, (200, 2))
    np.testing.assert_allclose(
        rf.load_plan(tmp_path / "plan.npz").value(states, 0), plan.value(states, 0), atol=1e-9
    )


def test_inducing_points_of_a_posterior_that_has_none_are_refused(data):
    plan = rf.plan(data, "-x**2", rf.Mean(clip="range"), FIXED, horizon=3)
    with pytest.raises(ValueError, match="inducing points of step 0 were given, but its posterior has none"):
        plan.recursion.estimate.load(0, data.at(np.arange(3)), np.zeros((2, 3)))


def test_a_plan_through_inducing_points_is_copied_and_sent_to_processes(data):
    model = rf.Model(rf.AutoKernel(), pooled=True, centred=True, inducing=60)
    plan = rf.plan(data, "-(x - 0.3)**2", model=model, horizon=10)
    states, actions = np.random.default_rng(1).uniform(-0.9, 0.9, (30, 2)), np.zeros((30, 1))
    for again in (copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):
        np.testing.assert_array_equal(again.act(states, 3), plan.act(states, 3))
        ours, theirs = (it.on_mesh.predictor.std(states, actions) for it in (plan, again))
        np.testing.assert_array_equal(theirs, ours)


def test_dynamics_from_a_file_say_that_they_have_no_transitions(data, tmp_path):
    states, actions = np.zeros((2, 2)), np.zeros((2, 1))
    for inducing_points in (60, None):
        model = rf.Model(rf.AutoKernel(), pooled=True, centred=True, inducing=inducing_points)
        plan = rf.plan(data, "-(x - 0.3)**2", model=model, horizon=10)
        plan.save(tmp_path / "plan.npz")
        ours, theirs = (it.on_mesh.predictor for it in (plan, rf.load_plan(tmp_path / "plan.npz")))
        np.testing.assert_array_equal(theirs.next_state(states, actions), ours.next_state(states, actions))
        for ask in (
            lambda it: it.std(states, actions),
            lambda it: it.spread(states, actions),
            lambda it: it.noise,
            lambda it: it.targets,
            lambda it: it.residuals,
        ):
            if inducing_points is None:
                np.testing.assert_allclose(ask(theirs), ask(ours), atol=1e-6)
                continue
            with pytest.raises(ValueError, match="come from a file, which holds their inducing points"):
                ask(theirs)


@pytest.mark.parametrize("pooled", [True, False])
def test_a_fixed_kernel_gets_inducing_points_while_it_explores(soon, pooled, monkeypatch):
    model, used = dataclasses.replace(FIXED, pooled=pooled), {}
    ours = current.CurrentEstimate.estimate

    def estimate(self, upto=None):
        found = ours(self, upto)
        kinds = {type(posterior) for posterior in found.posteriors}
        used.setdefault(len(self._run.kept_rows(upto)), kinds)
        return found

    monkeypatch.setattr(current.CurrentEstimate, "estimate", estimate)
    size = {"transitions": 180} if pooled else {"samples_per_step": 8}
    rf.explore(Puck(), model, rf.GreedyMaxVariance(), seed=1, **size)
    assert len(used) > 5
    for kept, kinds in used.items():
        # Decided at 150 steps, of which no single one of 25 has 120.
        assert kinds == {rf.Sparse if pooled and kept >= 150 else Design}, kept


def test_what_came_after_a_fit_is_counted_exactly(data, soon):
    value = ExplorationValue(data.spaces, current.while_exploring(AUTO, 200), data.at(np.arange(200)))
    assert isinstance(value.posterior, rf.Sparse)
    value.count(data.at(np.arange(10)))
    assert isinstance(value._later, Design)


def test_a_plan_for_noisy_dynamics_through_inducing_points_reads_back(soon, tmp_path):
    data = rf.explore(Puck(noise=0.1), AUTO, rf.Uniform(), transitions=200, seed=3)
    model = rf.Model(rf.AutoKernel(), pooled=True, centred=True, inducing=60)
    plan = rf.plan(data, "-(x - 0.3)**2", rf.DynamicsPlanner(noise=True), model, horizon=10)
    plan.save(tmp_path / "plan.npz")
    again = rf.load_plan(tmp_path / "plan.npz")
    states = np.random.default_rng(1).uniform(-0.9, 0.9, (30, 2))
    np.testing.assert_array_equal(again.act(states, 2), plan.act(states, 2))
    np.testing.assert_array_equal(again.value(states, 2), plan.value(states, 2))


def test_plans_through_inducing_points_are_as_good(data):
    reward = "-(x - 0.5)**2"
    exact, sparse = (
        rf.plan(data, reward, model=rf.Model(rf.AutoKernel(), pooled=True, centred=True, inducing=m))
        for m in (None, 60)
    )
    scores = [rf.rollouts(Puck(), plan, reward, episodes=10, seed=2).mean for plan in (exact, sparse)]
    assert scores[1] > scores[0] - 0.05 * abs(scores[0])


def test_data_keep_how_many_inducing_points_they_want(tmp_path):
    model = rf.Model(rf.AutoKernel(), pooled=True, centred=True, inducing=30)
    data = rf.explore(Puck(), model, rf.Scout(), transitions=90, seed=1)
    data.save(tmp_path / "data.npz")
    assert rf.load(tmp_path / "data.npz").model == model
    assert "through up to 30 inducing points" in repr(rf.load(tmp_path / "data.npz"))


def test_refits_come_at_round_numbers_and_more_rarely_later():
    times = [0]
    while times[-1] < 12_000:
        assert current.refitted_at(times[-1]) == times[-1]
        times.append(current.next_refit(times[-1]))
    for n in range(0, 12_000, 7):
        assert current.refitted_at(n) == max(time for time in times if time <= n)
    assert times[:8] == [0, 50, 100, 150, 200, 300, 400, 500] and 2000 in times and 5000 in times
    assert max(np.diff(times)) == 500

"""Values on a mesh by steps to go, against every sweep; and what plans would gain inside the model."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rewardfree as rf
from reference_mesh import (
    CLIMB,
    QUADRATIC,
    Cliff,
    H,
    Linear,
    Stairs,
    X,
    bellman_plan,
    cliff_plan,
    explored,
    linear_plan,
    riccati,
)
from rewardfree import DynamicsPlanner
from rewardfree.dynamics import Mesh
from rewardfree.planning.mesh import values
from rewardfree.planning.mesh.imagined import imagined_returns
from rewardfree.planning.mesh.planner import _starts
from rewardfree.planning.mesh.values import MeshValues, value_iteration

pytestmark = pytest.mark.usefixtures("one_thread")


def test_values_that_have_settled_drift_by_what_a_step_adds():
    """300 steps are 30 sweeps and a steady change: Riccati's cost has settled long before."""
    plan = linear_plan(f"{QUADRATIC} + 2", horizon=300)
    assert len(plan.mesh_values.to_go) < 60 and plan.mesh_values.drift == pytest.approx(2.0, abs=1e-3)
    costs, _ = riccati(300)
    for h in (0, 150, 280):
        off = 0.0009 * (300 - h)  # of the grid of actions and the mesh, at every step: see above
        np.testing.assert_allclose(
            plan.value(X, h), -costs[h] * X[:, 0] ** 2 + 2.0 * (300 - h), rtol=0, atol=0.003 + off
        )


def test_a_discounted_drift_is_a_geometric_series():
    plan = linear_plan(f"{QUADRATIC} + 2", horizon=300, discount=0.9)
    without = linear_plan(horizon=300, discount=0.9)
    gap = plan.value(X, 100) - without.value(X, 100)
    np.testing.assert_allclose(gap, 2.0 * (1 - 0.9**200) / 0.1, rtol=1e-5)


def every_sweep(on_mesh, reward, horizon, discount):
    """V with 0 .. horizon steps to go, all of them in float64."""
    tables = [np.zeros(on_mesh.mesh.size)]
    for k in range(1, horizon + 1):
        q = reward(horizon - k) + discount * (on_mesh.matrix @ tables[-1])
        tables.append(q.reshape(len(on_mesh.actions), -1).max(axis=0))
    return np.array(tables)


@pytest.mark.parametrize(("horizon", "discount"), [(75, 1.0), (200, 1.0), (200, 0.97)])
def test_thinned_values_are_those_of_every_sweep(monkeypatch, horizon, discount):
    """Between kept tables k changes by 1/16 at most, and V is nearly linear there."""
    monkeypatch.setattr(values, "FINE_MESH", 0)
    plan = rf.plan(
        explored(Stairs, 80), CLIMB, DynamicsPlanner(sides=41), horizon=20, terminated="abs(x) >= 3"
    )
    on_mesh, r = plan.on_mesh, -1.0 + 0.001 * np.sin(np.arange(2 * 41))
    thinned = value_iteration(on_mesh, lambda h: r, horizon, discount, False)
    exact = every_sweep(on_mesh, lambda h: r, horizon, discount)
    for k in range(horizon + 1):
        np.testing.assert_allclose(
            thinned.at(on_mesh.mesh.nodes, k), exact[k], rtol=0, atol=0.01 * np.abs(exact).max()
        )
    changing = value_iteration(on_mesh, lambda h: r * (1 + 0.01 * h), horizon, discount, True)
    exact = every_sweep(on_mesh, lambda h: r * (1 + 0.01 * h), horizon, discount)
    np.testing.assert_array_equal(changing.to_go, np.arange(horizon + 1))  # a clock needs every table
    for k in range(horizon + 1):
        np.testing.assert_allclose(
            changing.at(on_mesh.mesh.nodes, k), exact[k], rtol=0, atol=1e-6 * np.abs(exact).max()
        )


@given(st.integers(1, 5000))
def test_the_gap_between_kept_tables_grows_with_the_steps_to_go(k):
    kept = [i for i in range(max(1, k - 400), k + 400) if values._is_kept(i, 10**6)]
    after = min(i for i in kept if i >= k)
    before = max((i for i in kept if i < k), default=0)
    assert after - before <= max(1, k / 8)
    assert values._is_kept(k, 20_000)


@given(st.integers(0, 90), st.floats(-0.5, 1.5), st.floats(-3, 3))
def test_values_between_two_tables_are_their_mixture(to_go, x, drift):
    mesh = Mesh(np.zeros(1), np.ones(1), (3,), np.array([False]))
    steps = np.array([0, 1, 2, 8, 64])
    tables = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    mesh_values = MeshValues(mesh, tables, steps, 1.0, drift)
    columns = [np.interp(to_go, steps, tables[:, i]) for i in range(3)]
    expected = np.interp(x, [0.0, 0.5, 1.0], columns) + drift * max(0, to_go - 64)
    assert mesh_values.at(np.array([[x]]), to_go)[0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("horizon", "discount"), [(math.inf, 0.9), (300, 0.9), (300, 1.0)])
def test_values_that_have_settled_are_those_of_every_sweep(horizon, discount):
    """What has settled to 1e-5 of its range may still be off by that over 1 - discount, or for 300 steps."""
    plan = linear_plan(f"{QUADRATIC} + 2", horizon=horizon, discount=discount)
    r = plan.reward(0, *plan.on_mesh.pairs, plan.on_mesh.next_states)
    exact = every_sweep(plan.on_mesh, lambda h: r, 300, discount)[-1]
    off = 1e-5 * np.ptp(exact) * (300 if discount == 1.0 else 10) + 1e-6 * np.abs(exact).max()
    np.testing.assert_allclose(plan.value(plan.on_mesh.mesh.nodes), exact, rtol=0, atol=off)


@pytest.mark.parametrize("name", ["noisy", "ends", "no horizon"])
def test_values_at_the_nodes_are_the_largest_q(name):
    """Two roads: products with the matrix of all nodes, and what an action asks of the model."""
    plan = bellman_plan(name)
    nodes, table = plan.on_mesh.mesh.nodes, plan.mesh_values.tables[0]
    value = plan.value(nodes)
    np.testing.assert_allclose(plan.q(nodes, 0).max(axis=0), value, rtol=1e-4, atol=1e-3)
    if name == "no horizon":
        np.testing.assert_allclose(table, value, rtol=1e-6)


def test_nothing_follows_an_end():
    q = bellman_plan("ends").q(np.array([[2.75], [-2.75]]), 0)
    assert q[1, 0] == pytest.approx(9.0) and q[0, 1] == pytest.approx(-1.0)


def test_what_is_expected_ends_where_episodes_end_and_counts_as_the_values_do():
    assert bellman_plan("ends").expected == pytest.approx(4.0)  # six steps from 0.25, and the top
    plan = bellman_plan("no horizon")
    starts = _starts(Linear.state, explored(), None)
    assert plan.expected == pytest.approx(plan.value(starts).mean(), abs=0.005)
    paid = linear_plan(f"{QUADRATIC} + 2", horizon=math.inf, discount=0.9)
    assert paid.expected == pytest.approx(plan.expected + 20.0, abs=20.0 * 1e-3)


def test_what_is_expected_under_noise_is_shaken():
    """Near an end that costs 20 a plan keeps its distance; unshaken it would gain a walk without falls."""
    (met,) = imagined_returns([cliff_plan()], np.zeros((200, 1)))
    (again,) = imagined_returns([cliff_plan()], np.zeros((200, 1)))
    np.testing.assert_array_equal(met[0], again[0])  # the same every time
    assert met[0].std() > 0.5
    moved = met[1][200:400] - met[1][:200]
    assert moved.std() == pytest.approx(Cliff.shake, rel=0.35)


@pytest.mark.parametrize("terminated", [None, "abs(x) >= 1.5"])
def test_plans_followed_together_gain_and_meet_what_each_does_alone(terminated):
    plans = [
        rf.plan(
            explored(), QUADRATIC, DynamicsPlanner(discounts=(discount,)), horizon=H, terminated=terminated
        )
        for discount in (1.0, 0.3)
    ]
    shared = [replace(plan, on_mesh=plans[0].on_mesh) for plan in plans]
    starts = np.linspace(-1.4, 1.4, 7)[:, None]
    together = imagined_returns(shared, starts)
    assert not np.array_equal(together[0][0], together[1][0])
    for plan, (returns, met) in zip(shared, together, strict=True):
        ((alone, alone_met),) = imagined_returns([plan], starts)
        np.testing.assert_array_equal(returns, alone)
        np.testing.assert_array_equal(met, alone_met)


class Line(rf.World):
    """A walk that is over beyond 0.9."""

    state, action, horizon = rf.Box.of(x=(-1.0, 1.0)), rf.Box.of(u=(-0.1, 0.1)), 300

    def start(self, rng):
        return rng.uniform(-0.5, 0.5, 1)

    def sample(self, state, action, h, rng):
        next_state = np.clip(state + action, -1.0, 1.0)
        return next_state, next_state[:, 0] > 0.9


@pytest.mark.parametrize(("horizon", "discount"), [(300, 1.0), (300, 0.995), (math.inf, 0.995)])
def test_values_that_all_fall_alike_have_not_settled_where_an_end_is_cheaper_later(horizon, discount):
    """Waiting costs 1 a step at 0 and nobody jumps for 60 until it has cost as much."""
    planner = DynamicsPlanner(sides=41, discounts=(discount,))
    options = {"horizon": horizon, "terminated": "x > 0.9"}
    plan = rf.plan(
        explored(Line, 80), "-1 - 0.2*abs(x) - 60*(next_x > 0.9)", planner, discount=discount, **options
    )
    r = plan.reward(0, *plan.on_mesh.pairs, plan.on_mesh.next_states)
    exact = every_sweep(plan.on_mesh, lambda h: r, min(horizon, 4000), discount)[-1]
    nodes = plan.on_mesh.mesh.nodes
    np.testing.assert_allclose(plan.value(nodes), exact, rtol=0, atol=1e-3 * np.abs(exact).max())
    assert exact.min() > -80.0  # it is better to end it

"""How `DynamicsPlanner` works: what it computes once, what it tries, and what it refuses."""

import gc
import math
import pickle
import re
import runpy
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import rewardfree as rf
from reference_mesh import AUTO, CLIMB, QUADRATIC, H, Linear, Stairs, X, explored, riccati
from reference_runs import small_world
from reference_worlds import Many
from rewardfree import DynamicsPlanner
from rewardfree.dynamics import Dynamics
from rewardfree.planning.mesh import planner as mesh_planner
from rewardfree.planning.mesh.planner import Preparation, better
from rewardfree.planning.planner import PlanRequest

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_second_reward_asks_for_no_prediction(monkeypatch):
    calls = []
    next_state = Dynamics.next_state
    monkeypatch.setattr(Dynamics, "next_state", lambda *args: calls.append(1) or next_state(*args))
    data = rf.explore(Linear(), AUTO, rf.Generative(), transitions=40, seed=1, progress=False)
    first = rf.plan(data, QUADRATIC)
    assert calls
    calls.clear()
    second = rf.plan(data, "-abs(x - 0.5)")
    assert calls == []
    assert second.on_mesh is first.on_mesh
    many = rf.plan_many(data, [QUADRATIC, "-abs(x - 0.5)"])
    assert calls == []
    np.testing.assert_array_equal(many[0].act(X), first.act(X))
    np.testing.assert_array_equal(many[1].act(X), second.act(X))
    calls.clear()
    assert rf.plan(data, QUADRATIC, DynamicsPlanner(actions=5)).on_mesh is not first.on_mesh
    assert calls


def test_what_was_computed_does_not_travel_with_the_data():
    data = rf.explore(Linear(), AUTO, rf.Generative(), transitions=40, seed=2)
    before = pickle.dumps(data)
    plan = rf.plan(data, QUADRATIC)
    assert len(pickle.dumps(data)) == len(before)
    np.testing.assert_array_equal(rf.plan(pickle.loads(before), QUADRATIC).act(X), plan.act(X))


def test_what_was_computed_goes_with_its_data():
    data = rf.explore(Linear(), AUTO, rf.Generative(), transitions=40, seed=2, progress=False)
    rf.plan(data, QUADRATIC)
    gone = weakref.ref(data)
    del data
    gc.collect()
    assert gone() is None


def test_the_plan_with_the_larger_return_is_chosen_and_the_first_of_equals():
    one, other = (SimpleNamespace(returns=np.array(returns)) for returns in ([1.0, 2.0, 90.0], [1.0, 3.0]))
    assert better(one, other) is other  # from the starts that both were tried from
    assert better(other, one) is other
    assert better(one, one) is one


def test_five_variables_are_too_many_for_a_mesh():
    with pytest.raises(ValueError, match=r'up to 4 state variables, got 5: use rf.Mean\(clip="range"\)'):
        rf.plan(explored(Many, 40, rf.Uniform()), "-a**2", DynamicsPlanner())


def test_a_mesh_of_three_and_four_variables_is_laid_again_where_it_matters(monkeypatch):
    """The first mesh covers all that was seen, the second what the plan meets: it is finer there."""
    cart = rf.from_gymnasium("CartPole-v1", horizon=30)
    data = rf.explore(cart, AUTO, rf.Scout(), transitions=120, progress=False)
    planner = DynamicsPlanner(sides=5, depths=(1, 2))
    laid = []
    over = Preparation.over
    monkeypatch.setattr(
        Preparation, "over", lambda *args: laid.append(over(*args).mesh.spacing) or over(*args)
    )
    reward, options = "1 - x**2 - 5*theta**2", {"terminated": "abs(theta) > 0.21 or abs(x) > 2.4"}
    plan = rf.plan(data, reward, planner, **options)
    assert len(laid) == 2
    first = rf.plan(data, reward, DynamicsPlanner(sides=5, rounds=0, depths=(1,)), **options)
    assert len(laid) == 2 and first.depth == 1
    assert plan.expected >= first.expected and plan.depth in (1, 2)
    assert all((spacing < first.on_mesh.mesh.spacing).all() for spacing in laid)


class Raft(rf.World):
    """Three positions, moved by one or by two pushes."""

    state, horizon = rf.Box.of(x=(-2, 2), y=(-2, 2), z=(-2, 2)), 6

    def __init__(self, pushes):
        self.action = rf.Box.of(**{f"u{i}": (-2, 2) for i in range(pushes)})

    def start(self, rng):
        return rng.uniform(-1.0, 1.0, 3)

    def sample(self, state, action, h, rng):
        return 0.9 * state + 0.3 * action[:, [0, -1, 0]], np.zeros(len(state), bool)


@pytest.mark.parametrize("pushes", [1, 2])
def test_actions_of_several_variables_lay_the_mesh_again_once_and_look_ahead_last(monkeypatch, pushes):
    """One push has 11 candidates, two have 3 x 3: lookahead of 2 from all first states, or from four."""
    monkeypatch.setattr(mesh_planner, "FIRST_ROWS", 11 * 5.5**3)
    monkeypatch.setattr(mesh_planner, "ROWS", 11 * 7.5**3)
    laid, over, tried = [], Preparation.over, []
    monkeypatch.setattr(Preparation, "over", lambda *args: laid.append(over(*args)) or laid[-1])
    returns = mesh_planner.imagined_returns

    def looked_at(plans, starts, *more):
        tried.append((plans[0].depth, len(starts), len(plans)))
        return returns(plans, starts, *more)

    monkeypatch.setattr(mesh_planner, "imagined_returns", looked_at)
    data = rf.explore(Raft(pushes), AUTO, rf.Uniform(), transitions=60, progress=False)
    asked = {"discounts": (0.99, 0.9)}
    plans = [
        rf.plan(data, reward, DynamicsPlanner(noise=False, **asked))
        for reward in ("-x**2 - y**2", "-abs(z - 1)")
    ]
    assert all(finer.mesh.sides == (7, 7, 7) and finer.most_draws == 32 - 24 * (pushes - 1) for finer in laid)
    if pushes == 1:
        assert len(laid) == 4 and tried == 2 * [(2, 12, 2), (2, 12, 1), (2, 12, 1)]
        return
    assert len(laid) == 2 and tried == 2 * [(1, 12, 2), (1, 12, 1), (2, 4, 1)]
    for finer, plan in zip(laid, plans, strict=True):
        exact = data.spaces.state.change(finer.predictor.next_state(*finer.pairs), finer.next_states)
        assert (np.sqrt((exact**2).mean(axis=0)) < 0.03 * finer.mesh.spacing).all()
        assert plan.expected > -12.0
    laid.clear(), tried.clear()
    rf.plan(data, "-x**2 - y**2", DynamicsPlanner(noise=False, rounds=2, **asked))
    assert len(laid) == 2
    tried.clear()
    noisy = rf.plan(data, "-x**2 - y**2", DynamicsPlanner(noise=True, **asked))
    assert noisy.depth == 1 and tried == [(1, 12, 2), (1, 12, 1)]  # no lookahead through random next states
    assert laid[-1].mesh.sides == (5, 5, 5)


def test_how_often_a_mesh_is_laid_again():
    """By the variables of states and of actions, unless a user says it; two variables are fine at once."""
    times = {(d, a): DynamicsPlanner().rounds_for(d, a) for d in (1, 2, 3, 4) for a in (1, 2)}
    assert times == {(1, 1): 0, (1, 2): 0, (2, 1): 0, (2, 2): 0, (3, 1): 2, (3, 2): 1, (4, 1): 2, (4, 2): 0}
    assert [DynamicsPlanner(rounds=3).rounds_for(d, a) for d, a in ((2, 1), (3, 1), (4, 2))] == [0, 3, 3]


def test_a_plan_that_may_still_end_sooner_is_not_perfect(monkeypatch):
    """A reward of -1: whatever is done gains at least -horizon, and an early end gains more."""
    cart = rf.from_gymnasium("CartPole-v1", horizon=30)
    data = rf.explore(cart, AUTO, rf.Scout(), transitions=120, progress=False)
    laid, over = [], Preparation.over
    monkeypatch.setattr(Preparation, "over", lambda *args: laid.append(1) or over(*args))
    options = {"terminated": "abs(theta) > 0.21 or abs(x) > 2.4"}
    rf.plan(data, "1", DynamicsPlanner(sides=5), **options)
    assert len(laid) in (0, 2)  # it may never fall
    laid.clear()
    rf.plan(data, "-1", DynamicsPlanner(sides=5), **options)
    assert len(laid) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"actions": 1}, "actions must be"),
        ({"actions": 2.5}, "actions must be"),
        ({"rounds": -1}, "rounds must be"),
        ({"discounts": ()}, r"discounts must be some numbers, such as \(1.0, 0.99\)"),
        ({"discounts": (0.0,)}, "discounts must lie in"),
        ({"discounts": (0.9, 1.1)}, "discounts must lie in"),
        ({"discounts": ("much",)}, "discount"),
        ({"depths": (0,)}, "depth must be"),
        ({"sides": 2}, "sides must be"),
        ({"depths": ()}, "depths must be some numbers"),
        ({"noise": "yes"}, "noise must be True, False or None, got 'yes'"),
        ({"discounts": 0.9}, "discounts must be some numbers"),
        ({"depths": 2}, "depths must be some numbers"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        DynamicsPlanner(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0}, "horizon must be"),
        ({"discount": 0.0}, r"discount must lie in \(0, 1\]"),
        ({"discount": 1.5}, r"discount must lie in \(0, 1\]"),
        ({"discount": "much"}, "discount"),
        ({"horizon": math.inf}, "needs a discount below 1"),
        ({"horizon": math.inf, "discount": 1.0}, "needs a discount below 1"),
        ({"starts": [[0.0, 1.0]]}, "starts must have shape"),
        ({"starts": [[math.nan]]}, "starts"),
        ({"terminated": 3}, "terminated must be a function of states or a formula"),
        ({"terminated": "next_x > 1"}, "no variable 'next_x' here"),
        ({"terminated": lambda s: s}, r"terminated\(state\) must return"),
        ({"planner": "mean"}, "planner must be"),
        ({"planner": DynamicsPlanner}, "planner must be"),
        ({"model": "matern"}, "model must be"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        rf.plan(explored(), QUADRATIC, **options)


def test_two_transitions_are_needed():
    few = explored(Stairs, 80).first(transitions=1)
    with pytest.raises(ValueError, match="at least two transitions are needed to learn dynamics, got 1"):
        rf.plan(few, CLIMB)


def test_rewards_must_be_a_list():
    with pytest.raises(ValueError, match="rewards must be a list of rewards, got the one formula"):
        rf.plan_many(explored(), QUADRATIC)
    with pytest.raises(ValueError, match="rewards must hold at least one reward, got none"):
        rf.plan_many(explored(), [])


def test_each_kind_of_world_refuses_the_arguments_of_the_other():
    model = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1)
    data = rf.explore(small_world(), model, rf.Generative(), samples_per_step=4)
    for options in ({"terminated": "s > 1"}, {"starts": [[0.0]]}):
        with pytest.raises(ValueError, match=re.escape("terminated= and starts= are for real states")):
            rf.plan(data, "0.5", **options)
    with pytest.raises(ValueError, match=re.escape("DynamicsPlanner() is for real states")):
        rf.plan(data, "0.5", DynamicsPlanner())


def test_real_states_refuse_the_arguments_of_finite_worlds():
    with pytest.raises(ValueError, match="seed= is for finite worlds"):
        rf.plan(explored(), QUADRATIC, seed=1)


@pytest.mark.parametrize("options", [{"device": "cuda"}, {"dtype": np.float32}])
def test_planners_without_a_mesh_take_no_device(options):
    with pytest.raises(ValueError, match=r"device= and dtype= on real states are for DynamicsPlanner\(\)"):
        rf.plan(explored(), QUADRATIC, rf.Mean(clip="range"), **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"device": "gpu"}, 'device must be "cpu", "cuda" or "cuda:N", got "gpu"'),
        ({"dtype": np.int64}, "dtype must be float64 or float32, got <class 'numpy.int64'>"),
    ],
)
def test_a_device_or_a_dtype_that_is_none_is_refused_before_a_fit(options, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        rf.plan(explored(), QUADRATIC, **options)


def test_single_precision_plans_as_double():
    plans = [rf.plan(explored(), QUADRATIC, dtype=dtype) for dtype in (None, np.float32)]
    tables = [plan.mesh_values.tables for plan in plans]
    np.testing.assert_allclose(tables[1], tables[0], rtol=0, atol=1e-4 * np.abs(tables[0]).max())


def test_planners_of_finite_worlds_take_no_starts_and_have_no_ties_here():
    with pytest.raises(ValueError, match="starts= is for DynamicsPlanner"):
        rf.plan(explored(), QUADRATIC, rf.Mean(), starts=[[0.1]])
    with pytest.raises(ValueError, match='ties="random" is for finite worlds'):
        rf.plan(explored(), QUADRATIC, rf.Mean(ties="random"))


def test_a_termination_that_is_no_number_is_refused():
    for terminated in ("log(x)", lambda s: np.full(len(s), math.nan)):
        with pytest.raises(ValueError, match="terminated"):
            rf.plan(explored(), QUADRATIC, terminated=terminated)


def test_a_third_argument_with_a_default_is_the_users_own():
    def mine(state, action, weight=2.0):
        assert weight == 2.0
        return -weight * state[:, 0] ** 2

    def after(state, action, next_state=None):
        return -(next_state[:, 0] ** 2)

    plans = rf.plan_many(explored(), [mine, "-2*x**2", after, "-next_x**2"], horizon=3)
    for one, other in (plans[:2], plans[2:]):
        np.testing.assert_array_equal(one.value(X), other.value(X))


def test_invented_starts_lie_on_the_shorter_arc():
    space = rf.Box.of(theta="angle", x=(-1.0, 1.0))
    starts = np.array([[3.0, 0.0], [-3.0, 1.0]])
    first_states = mesh_planner._starts(space, SimpleNamespace(starts=starts), None)
    assert len(first_states) == mesh_planner.FIRST_STATES
    np.testing.assert_array_equal(first_states[:2], starts)
    assert (np.abs(first_states[:, 0]) >= 3.0 - 1e-12).all() and (np.abs(first_states[:, 0]) <= math.pi).all()
    assert len(np.unique(first_states[2:, 1])) > 3
    assert (first_states[:, 1] >= 0.0).all() and (first_states[:, 1] <= 1.0).all()


def test_ends_beyond_the_bounds_are_predicted_where_they_were_seen():
    """The cart of examples/own_simulator.py with bounds that are its track's: it falls off beyond them."""
    path = Path(__file__).parents[1] / "examples" / "own_simulator.py"
    cart = runpy.run_path(str(path))["Cart"]
    tight = type("Tight", (cart,), {"state": rf.Box.of(x=(-2.0, 2.0), v=(-2.0, 2.0))})
    for world in (cart, tight):
        data = rf.explore(world(), AUTO, rf.Scout(), transitions=300, progress=False)
        assert data.terminated.any()
        plan = rf.plan(data, "-(x - 1)**2 - 0.1*v**2", DynamicsPlanner(sides=21), terminated="abs(x) > 2")
        fast = data.state[data.terminated]
        pushed = plan.on_mesh.predictor.next_state(fast, data.action[data.terminated])
        assert plan.on_mesh.is_end(pushed).any()
        assert np.abs(pushed[:, 0]).max() > 2.0


def test_starts_decide_what_is_expected():
    near = rf.plan(explored(), QUADRATIC, DynamicsPlanner(actions=81), horizon=H, starts=[[0.1]])
    far = rf.plan(explored(), QUADRATIC, DynamicsPlanner(actions=81), horizon=H, starts=[[1.0]])
    costs, _ = riccati(H)
    assert near.expected == pytest.approx(-costs[0] * 0.01, abs=0.005)
    assert far.expected == pytest.approx(-costs[0], abs=0.005)


# --- variables that never change ---


class Beside(rf.World):
    """x that actions push, a coin that moves y or not, and variables that never change."""

    action, horizon = rf.Box.of(u=(-1.0, 1.0)), 30

    def __init__(self, constant, companions, coin=0.0):
        self.state = rf.Box.of(x=(-1.0, 1.0), y=(-1.0, 1.0), **dict.fromkeys("abc"[:companions]))
        self.first, self.coin = np.array([0.0, 0.0] + [constant] * companions), coin

    def start(self, rng):
        return self.first

    def sample(self, state, action, h, rng):
        pushed = np.clip(state[:, 0] + 0.2 * action[:, 0], -1.0, 1.0)
        moved = np.clip(state[:, 1] + self.coin * rng.choice([-1.0, 1.0], len(state)), -1.0, 1.0)
        return np.column_stack([pushed, moved, state[:, 2:]]), np.zeros(len(state), bool)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("constant", [0.0, 0.5, 1e6, -3e9])
@pytest.mark.parametrize("strategy", [rf.Scout(), rf.Uniform()])
def test_a_variable_that_never_changes_does_no_harm(constant, strategy):
    """Its part of a mesh is as wide as rounding needs, whatever its size: 0.7 is reached in four steps."""
    world = Beside(constant, 1)
    data = rf.explore(world, strategy=strategy, transitions=60, progress=False)
    plan = rf.plan(data, "-abs(x - 0.7)")
    assert np.isfinite(plan.mesh_values.mesh.nodes).all() and (plan.mesh_values.mesh.spacing > 0.0).all()
    known = -(0.7 + 0.5 + 0.3 + 0.1) - 26 * 0.02  # pushes are multiples of 0.04
    for value in (plan.expected, rf.rollouts(world, plan, "-abs(x - 0.7)", 2).mean):
        assert value == pytest.approx(known, abs=0.01)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_constants_beside_a_coin_do_no_harm():
    data = rf.explore(Beside(0.5, 2, coin=0.3), strategy=rf.Uniform(), transitions=150, progress=False)
    assert np.isfinite(rf.plan(data, "x + y").expected)


def test_a_horizon_that_nobody_would_wait_for_is_refused_before_a_long_fit(monkeypatch):
    monkeypatch.setattr(Dynamics, "learn", lambda *_: pytest.fail("it was fitted"))
    with pytest.raises(ValueError, match=r"horizon must be at most 49,751,243 with 201 nodes"):
        rf.plan(explored(Linear, 40), "-x**2", horizon=10**9)


@pytest.mark.parametrize("options", [{}, {"sides": 7}, {"actions": 3}, {"rounds": 1}])
@pytest.mark.parametrize("world", [Linear, "Pendulum-v1", "Acrobot-v1"])
def test_the_size_of_the_first_mesh_is_known_before(world, options):
    data, planner = explored(world, 40, rf.Uniform()), DynamicsPlanner(**options)
    request = PlanRequest(data, ["1"], horizon=2)
    assert planner.first_nodes(data.spaces) == Preparation.of(planner, request, None).on_mesh.mesh.size


def test_a_horizon_that_nobody_would_wait_for_is_refused():
    data = explored(Linear, 40)
    said = r"horizon must be at most [\d,]+ with [\d,]+ nodes .*, got 1,000,000,000: .* or horizon=math\.inf"
    with pytest.raises(ValueError, match=said):
        rf.plan(data, "-x**2", horizon=10**9)
    with pytest.raises(ValueError, match=r"at most 250,000,000 with 40 transitions, got 1,000,000,000"):
        rf.plan(data, "-x**2", rf.Mean(clip="range"), horizon=10**9)


@pytest.mark.parametrize(
    ("discount", "said"),
    [(0.99, "discount 0.99,"), (1 - 1e-10, "discount 0.9999999999,"), (1 - 1 / 3000, "discount 0.999667,")],
)
def test_a_discount_below_1_is_not_shown_as_1(discount, said):
    assert said in repr(rf.plan(explored(Linear, 40), "-x**2", horizon=3, discount=discount))

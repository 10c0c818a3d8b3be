"""Labels, of which none is near another: visits are counted, on finite worlds and in Gymnasium alike."""

import functools
import json

import gymnasium
import numpy as np
import pytest

import rewardfree as rf
from reference_runs import newest
from rewardfree.data import Samples
from rewardfree.dynamics.labels import LabelLaw, are_labels
from rewardfree.rewards import TabledReward
from rewardfree.worlds import LabelledWorld, Spaces

pytestmark = pytest.mark.usefixtures("one_thread")

#: The lake's own reward: 1 for the step that reaches the goal.
GOAL = "next_s == 15 and s != 15"
COUNTS = rf.Model(rf.kernels.Delta(), ridge=0.01, pooled=True, centred=True)


class Same(gymnasium.ObservationWrapper):
    """A wrapper that could change something: the environment inside is no table any more."""

    def observation(self, observation):
        return observation


def lake():
    return rf.from_gymnasium("FrozenLake-v1")


def wrapped_lake():
    return rf.from_gymnasium(Same(gymnasium.make("FrozenLake-v1")))


@functools.cache
def walked(kind, steps=1500):
    return rf.explore({"table": lake, "wrapped": wrapped_lake}[kind](), steps=steps, seed=0)


def own_reward(world, name):
    """What Gymnasium's table pays, (s,a,s'), the mean of two ways to one place; nothing after an end."""
    total, chance = np.zeros(world.P.shape), np.zeros(world.P.shape)
    for state, actions in gymnasium.make(name).unwrapped.P.items():
        for action, outcomes in actions.items():
            for probability, following, paid, _ in outcomes:
                total[state, action, following] += 0.0 if world.ends[state] else probability * paid
                chance[state, action, following] += probability
    return np.divide(total, chance, out=total, where=chance > 0.0)


# Toy text.


@pytest.mark.parametrize(
    "name", ["FrozenLake", "FrozenLake8x8", "CliffWalking", "CliffWalkingSlippery", "Taxi"]
)
def test_every_own_reward_is_planned_within_a_hundredth_at_twenty_visits_a_pair(name):
    if name == "CliffWalkingSlippery" and not any(spec.name == name for spec in gymnasium.registry.values()):
        pytest.skip("this Gymnasium has no such environment")
    name = newest(name)
    world = rf.from_gymnasium(name, horizon=100 if name.startswith("Cliff") else None)
    reward, pairs = own_reward(world, name), world.P[..., 0].size
    data = rf.explore(world, strategy=rf.Generative(), transitions=20 * pairs)
    assert (np.bincount(data.points(slice(None)), minlength=pairs) == 20).all()
    best = float(world.start @ rf.optimal_value(world, reward)[0])
    assert rf.gap(world, rf.plan(data, reward), reward).start <= 0.01 * abs(best)


#: Minus one a step; minus a hundred for the cliff, from which one is put back to the start, 36.
CLIFF = "where(s == 47, 0, where(next_s == 36 and s != 24 and (s != 36 or action == 1), -100, -1))"


@pytest.mark.parametrize(("name", "formula"), [("FrozenLake-v1", GOAL), (newest("CliffWalking"), CLIFF)])
def test_an_own_reward_can_be_written_as_a_formula(name, formula):
    world = rf.from_gymnasium(name, horizon=30)
    possible = world.P > 0.0
    if name.startswith("CliffWalking"):
        possible[37:47] = False  # nobody ever stands on the cliff
    table = TabledReward(formula, world.grid, world.horizon).at(0)
    np.testing.assert_array_equal(table[possible], own_reward(world, name)[possible])


def test_the_goal_and_the_holes_are_different_states():
    world, holes = lake(), [5, 7, 11, 12]
    ends = [*holes, 15]
    np.testing.assert_array_equal(np.flatnonzero(world.ends), ends)
    np.testing.assert_array_equal(world.P[ends], np.eye(16)[ends][:, None].repeat(4, axis=1))
    assert world.P[14, :, 15].sum() == pytest.approx(1.0)
    assert float(world.start @ rf.optimal_value(world, GOAL)[0]) == pytest.approx(0.7442, abs=1e-4)
    to_goal, to_hole = (rf.plan(walked("table"), reward) for reward in (GOAL, "next_s == 5 and s != 5"))
    assert to_goal.value(14) > to_hole.value(14) and to_goal.value(4) < to_hole.value(4)


def test_default_exploration_of_a_lake_ends_where_the_lake_ends():
    world, data = lake(), walked("table")
    assert type(data) is rf.Transitions and data.model == COUNTS == rf.default_model(world)
    assert len(data) == 1500 and data.stopped_by == "steps"
    np.testing.assert_array_equal(data.terminated, world.ends[data.next_state])
    assert not world.ends[data.state].any()
    inside = np.flatnonzero(data.h[1:] > 0)
    np.testing.assert_array_equal(data.state[inside + 1], data.next_state[inside])
    assert (data.state[data.h == 0] == 0).all() and data.episodes > 15
    plan = rf.plan(data, GOAL)
    assert plan.planner == rf.CountingPlanner() and plan.chosen_by == rf.DefaultPlanner()
    assert rf.gap(world, plan, GOAL).start < 0.3  # by a kernel on [0, 1] it was 0.56 to 0.65
    short = rf.explore(world, steps=400, seed=0)
    for part in (data.first(steps=400), *rf.explore_many(world, seeds=[0], steps=400)):
        np.testing.assert_array_equal(part.action, short.action)
        np.testing.assert_array_equal(part.next_state, short.next_state)
    assert data.first(episodes=3).episodes == 3 and data.first(transitions=30).kept.sum() == 30


def test_where_visits_are_not_counted_together_it_stays_where_it_ended():
    world = lake()
    per_step = rf.Model(rf.kernels.Delta(), ridge=0.01)
    data = rf.explore(world, per_step, rf.Uniform(), episodes=20)
    assert len(data) == 20 * world.horizon and world.ends[data.state].any()
    assert (
        rf.default_model(
            rf.FiniteWorld(
                world.P[None].repeat(3, 0), 3, states=rf.Discrete(16, "s"), actions=rf.Discrete(4, "a")
            )
        )
        == per_step
    )


@pytest.mark.parametrize(
    "planner", [rf.Mean(clip="range"), rf.Optimistic(0.01, clip="range"), rf.CountingPlanner()]
)
def test_a_state_that_ended_an_episode_is_known_to_stay(planner):
    """No step begins there, and yet each planner knows what being there is worth."""
    data = walked("table")
    plan = rf.plan(data, "s == 15", planner)
    assert plan.value(15) == pytest.approx(100.0) and plan.value(5) == pytest.approx(0.0)
    goal = rf.plan(data, "next_s == 15", planner)
    assert goal.value(15) == pytest.approx(100.0) and goal.value(5) == pytest.approx(0.0)
    assert goal.value(5, h=99) == 0.0 and goal.value(15, h=99) == pytest.approx(1.0)


def test_only_counting_is_refused_a_device():
    with pytest.raises(ValueError, match="visits are counted on the CPU: leave device="):
        rf.explore(lake(), steps=10, device="cuda")
    with pytest.raises(
        ValueError, match='CountingPlanner counts visits, on the CPU: leave device= out, got "cu'
    ):
        rf.plan(walked("table"), GOAL, device="cuda")
    with pytest.raises(
        ValueError, match=r"CountingPlanner counts all steps together: use a Model\(..., pooled=T"
    ):
        rf.plan(walked("table"), GOAL, rf.CountingPlanner(), rf.Model(rf.kernels.Delta(), ridge=0.1))


# Discrete spaces of Gymnasium.


def test_the_rules_are_the_same_for_a_table_and_for_labels_that_are_stepped():
    table, world = lake(), wrapped_lake()
    assert isinstance(world, rf.World) and are_labels(world.spaces)
    assert rf.default_model(world) == rf.default_model(table)
    labelled = LabelledWorld(table)
    assert labelled.spaces == world.spaces
    assert {*table.grid.state_variables.names, *table.grid.action_variables.names} == {"s", "action"}
    data = walked("wrapped")
    assert type(data) is rf.Experience and data.terminated.any()
    assert rf.explore(world, episodes=2, progress=False).strategy == rf.Scout()
    for reward in (GOAL, lambda s, action, next_s: (next_s == 15) & (s != 15), "action == 2", "-(s - 3)**2"):
        plan = rf.plan(data, reward)
        assert type(plan) is rf.planning.LabelPlan and plan.planner == rf.CountingPlanner()
        assert type(rf.plan(walked("table"), reward)) is rf.planning.FinitePlan
    score = rf.rollouts(world, rf.plan(data, GOAL), GOAL, episodes=200)
    assert score.mean > 0.4


@pytest.mark.parametrize("kind", ["table", "wrapped"])
def test_messages_say_what_a_label_is(kind):
    for text in ("s == 16", "next_s != 16", "a == 1", "action == -1"):
        with pytest.raises(ValueError, match=r"; s is a label, 0 \.\. 15[,;] action is a label, 0 \.\. 3$"):
            rf.plan(walked(kind), text)
    with pytest.raises(ValueError, match="asks whether s is 16, which it never is; s is a label"):
        rf.plan(walked("wrapped"), GOAL, terminated="s == 16")


def test_the_same_steps_give_the_same_plan():
    """Of a reward that pays nothing after an end, whether the data are of a table or of a stepped world."""
    data = walked("table")
    columns = {
        name: getattr(data, name)
        for name in ("episode", "h", "state", "action", "next_state", "terminated", "kept")
    }
    spaces = Spaces(rf.Discrete(16, "s"), rf.Discrete(4, "action"))
    other = rf.Experience(spaces, data.horizon, data.model, None, 0, **columns, starts=np.zeros(1, np.int64))
    for reward in (
        GOAL,
        "(next_s == 15 and s != 15) - 0.01*(s != 5 and s != 7 and s != 11 and s != 12 and s != 15)",
    ):
        for discount in (None, 0.9):
            one, two = (rf.plan(either, reward, discount=discount) for either in (data, other))
            alive = ~lake().ends & np.isin(np.arange(16), data.state)
            np.testing.assert_allclose(one.values[:, alive], two.values[:, alive], rtol=0, atol=1e-12)
            np.testing.assert_array_equal(one.actions[:, alive], two.actions[:, alive])


def test_a_run_among_labels_goes_on_where_it_was_stopped():
    world, whole = wrapped_lake(), walked("wrapped")
    part = rf.explore(world, steps=333, seed=0)
    resumed = rf.explore(world, steps=1500, seed=0, resume=part)
    for name in ("state", "action", "next_state", "episode"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))
    known = rf.explore(world, steps=1500, max_sigma=0.9, seed=0)
    assert known.stopped_by == "max_sigma" and len(known) < 1500


def test_exploration_tries_every_action_of_what_it_reaches():
    """A chain with a door at its end: at random it takes 2**12 tries to get there."""

    class Chain(rf.World):
        state, action, horizon = rf.Discrete(13, "s"), rf.Discrete(2, "push"), 20

        def start(self, rng):
            return np.int64(0)

        def sample(self, state, action, h, rng):
            return np.where(action == 1, np.minimum(state + 1, 12), 0), np.zeros(len(state), bool)

    scout = rf.explore(Chain(), steps=400)
    assert len({*zip(scout.state.tolist(), scout.action.tolist(), strict=True)}) == 26
    assert rf.explore(Chain(), strategy=rf.Uniform(), steps=400).state.max() < 12
    assert rf.plan(scout, "s == 12").value(0) == pytest.approx(8.0)


def test_a_plan_among_labels_is_kept_in_a_file(tmp_path):
    data = walked("wrapped")
    for reward in (GOAL, lambda state, action: state == 3):
        plan = rf.plan(data, reward, discount=0.95)
        plan.save(tmp_path / "plan.npz")
        again = rf.load_plan(tmp_path / "plan.npz")
        assert repr(again) == repr(plan) and again.reward_text == plan.reward_text
        assert (again.discount, again.spaces, again.horizon) == (0.95, plan.spaces, 100)
        np.testing.assert_array_equal(again.act(np.arange(16), h=7), plan.act(np.arange(16), h=7))
        assert again.value(14, h=3) == plan.value(14, h=3) and type(again.act(3)) is int
        assert again.returns == plan.returns
        arrays = dict(np.load(tmp_path / "plan.npz"))
        about = json.loads(str(arrays["about"]))
        for least, said in ((about["most"], "between its least"), ("low", "least must be a number")):
            np.savez(tmp_path / "wrong.npz", **arrays | {"about": json.dumps({**about, "least": least})})
            with pytest.raises(ValueError, match=said):
                rf.load_plan(tmp_path / "wrong.npz")
        del about["least"], about["most"]  # as written before, when it said nothing of returns
        np.savez(tmp_path / "older.npz", **arrays | {"about": json.dumps(about)})
        older = rf.load_plan(tmp_path / "older.npz")
        assert older.returns is None and older.expects(GOAL, np.arange(2), 0.95) is None


def test_a_plan_for_other_numbers_of_labels_is_refused():
    plan = rf.plan(walked("wrapped"), GOAL)

    class Larger(rf.World):
        state, action, horizon = rf.Discrete(64, "s"), rf.Discrete(4), 100

    said = r"for s \(16 labels\), action \(4 labels\), and lake has s \(64 labels\), action \(4 labels\)"
    with pytest.raises(ValueError, match=said):
        plan.check_world(Larger(), "lake")


def test_labels_of_a_csv_file_are_counted(tmp_path):
    data, path = walked("wrapped"), tmp_path / "lake.csv"
    data.to_csv(path)
    spaces = {"state": rf.Discrete(16, "s"), "action": rf.Discrete(4, "action")}
    read = rf.Experience.from_csv(path, **spaces, horizon=100)
    np.testing.assert_array_equal(rf.plan(read, GOAL).values, rf.plan(data, GOAL).values)


def test_a_plan_takes_ends_of_its_own():
    data = walked("wrapped")
    assert rf.plan(data, "s == 0", terminated="s == 0 or s == 4").value(1) < rf.plan(data, "s == 0").value(1)


def test_what_needs_a_kernel_is_refused_among_labels():
    with pytest.raises(
        ValueError, match="among labels Scout counts visits, and needs no kernel: leave the mod"
    ):
        rf.explore(wrapped_lake(), rf.Model(rf.AutoKernel(), pooled=True), rf.Scout(), steps=10)
    pendulum = rf.explore(rf.from_gymnasium("Pendulum-v1"), strategy=rf.Uniform(), steps=30)
    with pytest.raises(
        ValueError, match="CountingPlanner is for labels, and theta, omega are real variables"
    ):
        rf.plan(pendulum, "theta", rf.CountingPlanner())


# The law.


def law_of(counts):
    """The law of a table (z,s) of how often each next state was seen, for one action."""
    state, next_state = (np.repeat(index, counts[counts > 0]) for index in np.nonzero(counts))
    ended = np.zeros(len(state), bool)
    return LabelLaw.of((len(counts), 1), Samples(state, 0 * state, next_state, ended))


def test_shares_are_what_was_seen():
    rng = np.random.default_rng(0)
    samples = Samples(
        rng.integers(4, size=90), rng.integers(2, size=90), rng.integers(4, size=90), rng.random(90) < 0.2
    )
    law = LabelLaw.of((4, 2), samples)
    value = rng.random(4)
    for z in range(8):
        here = samples.state * 2 + samples.action == z
        assert law.visits[z] == here.sum()
        after = np.where(samples.terminated, 0.0, value[samples.next_state])[here]
        assert (law.going @ value)[z] == pytest.approx(after.mean())
        assert law.expected(law.next_state.astype(float))[z] == pytest.approx(samples.next_state[here].mean())


@pytest.mark.parametrize("chances", [(1 / 3, 1 / 3, 1 / 3), (0.9, 0.05, 0.05)])
def test_equal_chances_are_recognised_and_others_are_left(chances):
    rng = np.random.default_rng(0)
    counts = np.array(
        [
            np.roll(np.append(rng.multinomial(20, rng.permutation(chances)), np.zeros(77, int)), z)
            for z in range(80)
        ]
    )
    seen_all = (counts > 0).sum(axis=1) == 3
    law = law_of(counts)
    errors = []
    for one in (law, law.smoothed()):
        shares = one.going.toarray()
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        errors.append(np.abs(np.sort(shares[seen_all], axis=1)[:, -3:] - np.sort(chances)).mean())
    plain, smoothed = errors
    assert smoothed < (0.2 if len({*chances}) == 1 else 1.1) * plain


def test_smoothing_is_not_fooled_by_having_seen_every_place():
    """Three visits of two places are always one and two: that says nothing of how alike they are."""
    counts = np.zeros((40, 40), int)
    for z in range(40):
        counts[z, z], counts[z, (z + 1) % 40] = 1, 2
    shares = law_of(counts).smoothed().going.toarray()
    np.testing.assert_allclose(np.sort(shares, axis=1)[:, -2:].sum(axis=1), 1.0)
    many = 30 * counts
    np.testing.assert_allclose(law_of(many).smoothed().going.toarray()[0, :2], [1 / 3, 2 / 3], atol=0.02)

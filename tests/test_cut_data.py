"""Data of real states stopped earlier, and what cannot be changed in them."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rewardfree as rf
from recorded_runs import COLUMNS, MODEL, NAMES, PER_STEP, Hill, made, read


@pytest.fixture(params=NAMES)
def data(request):
    return made(request.param)


# That run stopped earlier.


def test_a_cut_holds_the_first_rows(data):
    for steps in (1, 7, len(data)):
        part = data.first(steps=steps)
        assert type(part) is rf.Experience and len(part) == steps and part.stopped_by == "steps"
        for name in COLUMNS:
            assert np.array_equal(getattr(part, name), getattr(data, name)[:steps])
        assert part.fitted is None  # it would know of what came later
        for name in ("spaces", "horizon", "model", "strategy", "seed", "observation", "provenance"):
            assert getattr(part, name) == getattr(data, name)
    with pytest.raises(ValueError, match=f"steps must be at most the {len(data)} of these data, got"):
        data.first(steps=len(data) + 1)


@pytest.mark.parametrize("strategy", [rf.Uniform(), rf.Scout()], ids=repr)
@pytest.mark.parametrize("unit", ["steps", "transitions", "episodes"])
def test_a_cut_is_the_run_that_stops_there(strategy, unit):
    world = rf.from_gymnasium("CartPole-v1", horizon=25)
    sizes = (2, 4) if unit == "episodes" else (30, 61)
    long = rf.explore(world, MODEL, strategy, seed=2, **{unit: sizes[1]})
    for size in sizes:
        short = rf.explore(world, MODEL, strategy, seed=2, **{unit: size})
        part = long.first(**{unit: size})
        for name in COLUMNS:
            assert np.array_equal(getattr(part, name), getattr(short, name)), name
        assert part.stopped_by == short.stopped_by == unit


def test_a_cut_knows_no_first_state_of_later_episodes():
    data = made("cart")
    short = rf.explore(rf.from_gymnasium("CartPole-v1"), MODEL, rf.Uniform(), steps=20, seed=1)
    assert len(data.starts) == data.episodes > len(short.starts)
    assert np.array_equal(data.first(steps=20).starts, short.starts)


def test_kept_steps_are_what_a_budget_of_transitions_counts():
    data = made("queries")
    for size in (1, 50, 70):
        assert data.first(transitions=size).kept.sum() == size
    with pytest.raises(ValueError, match="transitions must be at most the 70 of these data, got 71"):
        data.first(transitions=71)


def test_samples_of_every_step_are_what_their_budget_counts():
    data = made("per step")
    counted = [int((data.kept & (data.h == h)).sum()) for h in range(data.horizon)]
    assert data.samples.tolist() == counted and min(counted) >= 1
    part = data.first(samples_per_step=1)
    assert min(part.samples) == 1 and part.kept[-1]
    assert min(data.first(steps=len(part) - 1).samples) == 0
    with pytest.raises(ValueError, match=f"samples_per_step must be at most the {min(counted)} of"):
        data.first(min(counted) + 1)


def test_queries_belong_to_no_episode():
    with pytest.raises(ValueError, match="queries of a generative model belong to no episode: use steps="):
        made("queries").first(episodes=1)


def test_an_episode_that_was_cut_is_no_whole_one():
    data = made("cart")
    ends = np.flatnonzero(data.terminated)
    whole = len(ends)
    assert not data.terminated[-1] and data.episodes == whole + 1
    assert len(data.first(episodes=whole)) == ends[-1] + 1
    with pytest.raises(ValueError, match=f"episodes must be at most the {whole} of these data, got"):
        data.first(episodes=whole + 1)


class CutShort(rf.World):
    """A walk that can only be stepped, and is cut after 10 of its 50 steps."""

    state, action, horizon = rf.Box.of(x=(-9.0, 9.0)), rf.Box.of(u=(-1.0, 1.0)), 50

    def reset(self, rng):
        self.x, self.h = rng.uniform(-1.0, 1.0, 1), 0
        return self.x

    def step(self, action):
        self.x, self.h = 0.9 * self.x + 0.1 * action, self.h + 1
        return self.x, False, self.h == 10


@pytest.mark.parametrize("name", ["a target before the horizon", "a limit before the horizon"])
def test_an_episode_that_was_played_to_its_end_is_a_whole_one(name):
    if name.startswith("a target"):
        world = type("Flat", (Hill,), {"state": rf.Box.of(theta="angle", v=(-2, 2))})()
        data = rf.explore(world, PER_STEP, rf.Online(beta=0.1), episodes=3)
    else:
        data = rf.explore(CutShort(), MODEL, rf.Uniform(), episodes=3)
        assert data.h.max() == 9 and not data.terminated.any()
    assert len(data.first(episodes=3)) == len(data)


def test_the_wrong_unit_is_named():
    with pytest.raises(ValueError, match="a pooled model has one design: use transitions= instead"):
        made("cart").first(3)
    with pytest.raises(ValueError, match="a design for each step: use samples_per_step= instead"):
        made("per step").first(transitions=3)
    with pytest.raises(ValueError, match="give exactly one budget of"):
        made("cart").first(steps=3, episodes=1)
    for wrong in (0, -1, 2.5):
        with pytest.raises(ValueError, match="steps must be a whole number of at least 1"):
            made("cart").first(steps=wrong)


@settings(max_examples=25)
@given(st.sampled_from(NAMES), st.data())
def test_a_cut_of_a_cut_is_the_shorter_one(name, draw):
    data = made(name)
    longer = draw.draw(st.integers(1, len(data)))
    shorter = draw.draw(st.integers(1, longer))
    one, other = data.first(steps=longer).first(steps=shorter), data.first(steps=shorter)
    for column in COLUMNS:
        assert np.array_equal(getattr(one, column), getattr(other, column))
    assert one.episodes == other.episodes and one.samples.tolist() == other.samples.tolist()


def test_designs_are_the_kept_rows():
    data = made("per step")
    kept = [t for t in range(len(data)) if data.kept[t]]
    assert [rows.tolist() for rows in data.designs(pooled=True)] == [kept]
    by_step = [[t for t in kept if data.h[t] == h] for h in range(data.horizon)]
    assert [rows.tolist() for rows in data.designs()] == by_step
    assert repr(data).startswith(f"Experience({len(data)} steps in 17 episodes, {len(kept)} kept, by Online(")


def test_data_cannot_be_changed_by_accident(data):
    for name in COLUMNS:
        with pytest.raises(ValueError, match="read-only"):
            getattr(data, name)[0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.seed = 3


def test_labels_are_no_box():
    assert [made(name).is_box for name in NAMES] == [True, True, True, True, False]


def test_paths_may_be_text_as_well(tmp_path):
    data = made("labels")
    data.save(str(tmp_path / "run.npz"))
    data.to_csv(str(tmp_path / "run.csv"))
    assert len(rf.load(str(tmp_path / "run.npz"))) == len(read(str(tmp_path / "run.csv"), data)) == len(data)
    assert {path.name for path in Path(tmp_path).iterdir()} == {"run.npz", "run.csv"}

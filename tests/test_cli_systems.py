"""The commands for environments: what they write, what they say, and how they refuse."""

import dataclasses
import json
import math
import os
import re
import signal
import stat
import subprocess
import sys
from functools import cache

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control.pendulum import PendulumEnv

import rewardfree as rf
from reference_runs import small_world
from rewardfree.cli.session import as_typed
from rewardfree.data.run_data import COLUMNS
from rewardfree.dynamics import Dynamics, reached
from rewardfree.evaluation.diagnosis import CELLS, STILL, Diagnosis, diagnose
from rewardfree.registry import named, typed_names
from rewardfree.report import film as film_module
from rewardfree.report.experience import experience_figure, plan_figure
from rewardfree.worlds import StateChange

AUTO = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
OWN = "-(theta**2 + 0.1*omega**2)"


class Linear(rf.World):
    """x' = 0.9 x + 0.5 u."""

    state, action, horizon = rf.Box.of(x=(-2.0, 2.0)), rf.Box.of(u=(-2.0, 2.0)), 6

    def start(self, rng):
        return rng.uniform(-1.0, 1.0, 1)

    def sample(self, state, action, h, rng):
        return 0.9 * state + 0.5 * action, np.zeros(len(state), bool)


class Wheel(rf.World):
    """A wheel of fortune: it stops anywhere, whatever is done."""

    state, action, horizon = rf.Box.of(theta="angle"), rf.Box.of(u=(-1.0, 1.0)), 6

    def start(self, rng):
        return rng.uniform(-3.0, 3.0, 1)

    def sample(self, state, action, h, rng):
        return rng.uniform(-np.pi, np.pi, state.shape), np.zeros(len(state), bool)


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    with rf.threads.one_blas_thread():
        yield


@cache
def pendulum():
    return rf.explore("Pendulum-v1", transitions=120, progress=False)


@cache
def swing_up():
    return rf.plan(pendulum(), OWN, horizon=15)


@pytest.fixture
def data(tmp_path):
    pendulum().save(tmp_path / "data.npz")
    return tmp_path / "data.npz"


@pytest.fixture
def plan(tmp_path):
    swing_up().save(tmp_path / "plan.npz")
    return tmp_path / "plan.npz"


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


# --- explore ---


def test_explore_writes_what_the_library_explores(cli, tmp_path):
    out = tmp_path / "data.npz"
    code, said, complaints = cli("explore", "Pendulum-v1", "--transitions", 120, "--out", out)
    assert (code, complaints) == (0, [])
    assert said[0].startswith("120 steps in ") and str(out) in said[0] and "stopped by transitions" in said[0]
    assert said[1] == diagnose(pendulum()).verdict
    found = rf.load(out)
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(found, name), getattr(pendulum(), name), err_msg=name)
    assert names_in(tmp_path) == ["data.npz"]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("scout", rf.Scout()),
        ("uniform", rf.Uniform()),
        ("greedy", rf.GreedyMaxVariance()),
        ("online", rf.Online(0.3)),
        ("qiu", rf.Qiu(0.3)),
    ],
)
def test_explore_takes_every_strategy_and_limit(cli, tmp_path, strategy, expected):
    out = tmp_path / "data.npz"
    options = ("--strategy", strategy, "--beta", 0.3, "--steps", 25, "--seed", 4, "--out", out)
    assert cli("explore", "CartPole-v1", *options)[0] == 0
    found = rf.load(out)
    assert (found.strategy, found.seed, len(found), found.stopped_by) == (expected, 4, 25, "steps")


def test_explore_goes_on_from_what_there_is(cli, tmp_path):
    part, whole = tmp_path / "part.npz", tmp_path / "whole.npz"
    assert cli("explore", "Pendulum-v1", "--transitions", 70, "--out", part)[0] == 0
    resumed = ("explore", "Pendulum-v1", "--transitions", 120, "--resume", part, "--out", whole)
    assert cli(*resumed)[0] == 0
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(rf.load(whole), name), getattr(pendulum(), name), err_msg=name)
    assert len(rf.load(part)) == 70


def test_explore_does_not_go_on_from_another_run(cli, data, tmp_path):
    for options, message in (
        (("Pendulum-v1", "--seed", 1), "same seed"),
        (("Pendulum-v1", "--strategy", "uniform"), "same strategy"),
        (("CartPole-v1",), "same world"),
    ):
        out = tmp_path / "more.npz"
        code, said, complaints = cli(
            "explore", *options, "--transitions", 130, "--resume", data, "--out", out
        )
        assert (code, said, len(complaints)) == (2, [], 1) and message in complaints[0]
    assert names_in(tmp_path) == ["data.npz"]


INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets jobs in the background ignore it
from gymnasium.envs.classic_control.pendulum import PendulumEnv
step, made = PendulumEnv.step, []
def stepped(self, action):
    made.append(1)
    if len(made) == 60:
        os.kill(os.getpid(), signal.SIGINT)
    return step(self, action)
PendulumEnv.step = stepped
from rewardfree.cli import main
main()
"""


def test_ctrl_c_keeps_the_data_and_says_how_to_go_on(tmp_path, cli):
    out, whole = tmp_path / "data.npz", tmp_path / "whole.npz"
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "explore", "Pendulum-v1", "--strategy", "uniform", "--out", out],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 130, done.stderr
    assert f"--resume {out}" in done.stderr and "Traceback" not in done.stderr
    kept = rf.load(out)
    assert len(kept) == 59 and kept.stopped_by == "interrupted"
    options = ("--strategy", "uniform", "--transitions", 80, "--resume", out, "--out", whole)
    assert cli("explore", "Pendulum-v1", *options)[0] == 0
    again = rf.explore(rf.from_gymnasium("Pendulum-v1"), AUTO, rf.Uniform(), transitions=80, progress=False)
    np.testing.assert_array_equal(rf.load(whole).next_state, again.next_state)


def test_an_interrupt_at_any_other_time_is_one_line(cli, monkeypatch, data, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(rf, "plan", interrupted)
    code, said, complaints = cli("plan", data, "--reward", OWN, "--out", tmp_path / "plan.npz")
    assert (code, said) == (130, []) and len([line for line in complaints if line.strip()]) <= 1
    assert names_in(tmp_path) == ["data.npz"]


def test_a_world_that_breaks_down_leaves_what_was_seen(cli, monkeypatch, tmp_path):
    step, made = PendulumEnv.step, []

    def stepped(self, action):
        made.append(1)
        if len(made) == 30:
            raise OSError("the motor is off")
        return step(self, action)

    monkeypatch.setattr(PendulumEnv, "step", stepped)
    out = tmp_path / "data.npz"
    code, _, complaints = cli("explore", "Pendulum-v1", "--strategy", "uniform", "--steps", 50, "--out", out)
    assert code == 1 and len(complaints) == 1 and "the motor is off" in complaints[0]
    assert str(out) in complaints[0] and len(rf.load(out)) == 29


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("Nowhere-v1",), "there is no environment 'Nowhere-v1'"),
        (("FrozenLake-v1",), "finitely many states"),
        (("Pendulum-v1", "--strategy", "magic"), "--strategy must be one of generative, greedy, online"),
        (("Pendulum-v1", "--transitions", 0), "--transitions must be"),
        (("Pendulum-v1", "--transitions", 10, "--steps", 10), ""),
        (("Pendulum-v1", "--seed", -1), "--seed must be"),
        (("Pendulum-v1", "--resume", "none.npz"), "none.npz"),
        (("Pendulum-v1", "--strategy", "online", "--beta", -1), "--beta must be"),
    ],
)
def test_explore_refuses_in_one_line(cli, tmp_path, options, message):
    code, said, complaints = cli("explore", *options, "--out", tmp_path / "data.npz")
    assert (code, said, len(complaints)) == (2, [], 1)
    assert complaints[0].startswith("rewardfree: ") and message in complaints[0]
    assert names_in(tmp_path) == []


def test_a_result_needs_a_folder_before_any_work_is_done(cli, monkeypatch, data, plan, tmp_path):
    for name in ("explore", "plan", "rollouts"):
        monkeypatch.setattr(rf, name, lambda *_, **__: pytest.fail("work was done"))
    out = tmp_path / "none" / "file"
    for arguments in (
        ("explore", "Pendulum-v1", "--out", out),
        ("plan", data, "--reward", OWN, "--out", out),
        ("evaluate", plan, "--gif", out),
    ):
        code, said, complaints = cli(*arguments)
        assert (code, said, len(complaints)) == (2, [], 1) and "there is no folder" in complaints[0]
    assert names_in(tmp_path) == ["data.npz", "plan.npz"]


# --- plan ---


def test_plan_writes_what_the_library_plans(cli, data, tmp_path):
    out = tmp_path / "plan.npz"
    code, said, complaints = cli("plan", data, "--reward", OWN, "--horizon", 15, "--out", out)
    assert (code, complaints, len(said)) == (0, [], 1)
    assert said[0].startswith(repr(swing_up())) and said[0].endswith(str(out))
    state = np.random.default_rng(0).uniform(-3, 3, (20, 2))
    np.testing.assert_array_equal(rf.load_plan(out).act(state, 3), swing_up().act(state, 3))


def test_a_quiet_plan_says_nothing_and_shows_no_progress(cli, monkeypatch, data, tmp_path):
    asked, planned = [], rf.plan
    monkeypatch.setattr(rf, "plan", lambda *a, **o: asked.append(o["progress"]) or planned(*a, **o))
    for options, lines in (((), 1), (("--quiet",), 0)):
        out = tmp_path / f"plan{lines}.npz"
        code, said, complaints = cli("plan", data, "--reward", OWN, "--horizon", 3, "--out", out, *options)
        assert (code, complaints, len(said)) == (0, [], lines)
        assert rf.load_plan(out).reward_text == OWN
    assert asked == [None, False]


@pytest.mark.parametrize(
    ("planner", "expected"),
    [
        ("dynamics", rf.DynamicsPlanner()),
        ("mean", rf.Mean(clip="range")),
        ("optimistic", rf.Optimistic(0.3, clip="range")),
        ("pessimistic", rf.Pessimistic(0.3, clip="range")),
    ],
)
def test_plan_takes_every_planner(cli, data, tmp_path, planner, expected):
    out = tmp_path / "plan.npz"
    options = ("--planner", planner, "--beta", 0.3, "--horizon", 3, "--terminated", "omega > 7", "--out", out)
    assert cli("plan", data, "--reward", OWN, *options)[0] == 0
    assert rf.load_plan(out).planner == expected


def test_a_horizon_of_infinity_plans_for_no_end(cli, data, tmp_path):
    out = tmp_path / "plan.npz"
    options = ("--reward", OWN, "--discount", 0.9, "--out", out)
    assert cli("plan", data, *options, "--horizon", "inf")[0] == 0
    assert rf.load_plan(out).horizon is None
    assert cli("plan", data, *options)[0] == 0
    assert rf.load_plan(out).horizon == rf.load(data).horizon


def test_plan_takes_a_table_of_text(cli, tmp_path):
    rf.explore(Linear(), AUTO, rf.Uniform(), steps=40, progress=False).to_csv(tmp_path / "data.csv")
    out = tmp_path / "plan.npz"
    code, _, complaints = cli("plan", tmp_path / "data.csv", "--reward", "-x**2", "--out", out)
    assert (code, complaints) == (0, [])
    code, said, complaints = cli("evaluate", out)
    assert (code, said, len(complaints)) == (2, [], 1) and "give --env ID" in complaints[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--reward", "y"), "there is no variable 'y' here: there are h, next_omega"),
        (("--reward", "__import__('os')"), "there is no function '__import__'"),
        (("--reward", "log(-1)"), "what the reward returns"),
        (("--reward", OWN, "--planner", "magic"), "planner must be one of counting, default, dynamics, mean"),
        (("--reward", OWN, "--horizon", 0), "horizon must be"),
        (("--reward", OWN, "--discount", 2), "discount must lie in"),
        (("--reward", OWN, "--terminated", "next_omega > 1"), "no variable 'next_omega'"),
    ],
)
def test_plan_refuses_in_one_line(cli, data, tmp_path, options, message):
    code, said, complaints = cli("plan", data, *options, "--out", tmp_path / "plan.npz")
    assert (code, said, len(complaints)) == (2, [], 1)
    assert complaints[0].startswith("rewardfree: ") and message in complaints[0]
    assert names_in(tmp_path) == ["data.npz"]


def test_a_clock_without_a_horizon_is_refused_in_one_line(cli, data, tmp_path):
    options = ("--reward", "h*theta", "--discount", 0.9, "--horizon", "inf", "--out", tmp_path / "plan.npz")
    code, said, complaints = cli("plan", data, *options)
    assert (code, said, len(complaints)) == (2, [], 1)


@pytest.mark.parametrize("command", ["plan", "evaluate", "info"])
def test_damaged_foreign_and_missing_files_are_refused_in_one_line(cli, data, plan, tmp_path, command):
    source = plan if command == "evaluate" else data
    whole = source.read_bytes()
    wrong = {"cut.npz": whole[: len(whole) // 2], "text.npz": b"hello", "empty.npz": b""}
    for name, content in wrong.items():
        (tmp_path / name).write_bytes(content)
    np.savez(tmp_path / "foreign.npz", numbers=np.arange(3))
    more = ("--reward", OWN, "--out", tmp_path / "out.npz") if command == "plan" else ()
    for name in [*wrong, "foreign.npz", "missing.npz", "."]:
        code, said, complaints = cli(command, tmp_path / name, *more)
        assert (code, said, len(complaints)) == (2, [], 1), (name, complaints)
        assert complaints[0].startswith("rewardfree: ")
    assert not (tmp_path / "out.npz").exists()


def test_data_are_no_plan_and_a_plan_is_no_data(cli, data, plan):
    code, _, complaints = cli("evaluate", data)
    assert code == 2 and "holds data" in complaints[0] and len(complaints) == 1
    code, _, complaints = cli("plan", plan, "--reward", OWN)
    assert code == 2 and "holds a plan" in complaints[0] and len(complaints) == 1


# --- evaluate ---


def test_evaluate_plays_what_rollouts_plays(cli, plan):
    code, said, complaints = cli("evaluate", plan, "--episodes", 3, "--seed", 6)
    assert (code, complaints) == (0, [])
    score = rf.rollouts(rf.from_gymnasium("Pendulum-v1"), swing_up(), OWN, 3, 6)
    low, high = score.interval()
    assert f"{score.mean:.4g}" in said[0] and f"{low:.4g} .. {high:.4g}" in said[0]
    assert f"from {score.returns.min():.4g} to {score.returns.max():.4g}" in said[1]
    assert f"{swing_up().expected:.4g}" in said[2]


def test_evaluate_counts_another_reward_and_plays_another_environment(cli, plan):
    code, said, _ = cli("evaluate", plan, "--episodes", 2, "--reward", "1")
    assert code == 0 and "mean return 15 " in said[0] and len(said) == 2  # it never expected that
    code, _, complaints = cli("evaluate", plan, "--episodes", 2, "--env", "CartPole-v1", "--reward", "x")
    assert code == 2 and len(complaints) == 1 and "CartPole-v1 has x, v, theta, omega, push" in complaints[0]


def test_evaluate_plays_with_the_options_that_were_explored(cli, tmp_path):
    world = rf.from_gymnasium("Pendulum-v1", horizon=9, g=1.0)
    data = rf.explore(world, AUTO, rf.Uniform(), transitions=60, progress=False)
    plan = rf.plan(data, OWN)
    plan.save(tmp_path / "plan.npz")
    code, said, _ = cli("evaluate", tmp_path / "plan.npz", "--episodes", 2)
    assert code == 0 and f"{rf.rollouts(world, plan, OWN, 2).mean:.4g}" in said[0] and "9 steps" in said[1]


def test_evaluate_needs_a_formula_for_a_function(cli, tmp_path):
    rf.plan(pendulum(), lambda s, a: -(s[:, 0] ** 2), horizon=5).save(tmp_path / "plan.npz")
    code, said, complaints = cli("evaluate", tmp_path / "plan.npz", "--episodes", 2)
    assert (code, said, len(complaints)) == (2, [], 1) and "give --reward FORMULA" in complaints[0]
    assert cli("evaluate", tmp_path / "plan.npz", "--episodes", 2, "--reward", "-theta**2")[0] == 0


def test_a_film_has_a_frame_for_each_step_and_the_first_state(cli, plan, tmp_path):
    from PIL import Image

    film = tmp_path / "film.gif"
    code, said, complaints = cli("evaluate", plan, "--episodes", 1, "--gif", film)
    assert (code, complaints) == (0, []) and said[-1] == f"16 frames: {film}"
    with Image.open(film) as picture:
        assert (picture.format, picture.n_frames) == ("GIF", 16)
    assert names_in(tmp_path) == ["film.gif", "plan.npz"]


def test_a_film_is_made_without_a_word_of_sdl(plan, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    environment.pop("SDL_VIDEODRIVER", None)
    typed = ["evaluate", plan, "--episodes", "1", "--gif", tmp_path / "film.gif"]
    code = "import rewardfree_command; rewardfree_command.main()"
    command = [sys.executable, "-c", code, *map(str, typed)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and "XDG_RUNTIME_DIR" not in done.stderr, done.stderr


@pytest.mark.parametrize("before", [None, "", "/run/user/0"])
def test_a_film_leaves_the_environment_as_it_was(monkeypatch, before):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    if before is not None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", before)
    with film_module._quiet_sdl():
        assert os.environ["XDG_RUNTIME_DIR"]
    assert os.environ.get("XDG_RUNTIME_DIR") == before


def test_a_film_does_not_replace_its_plan(cli, plan, tmp_path):
    before = plan.read_bytes()
    (tmp_path / "link.gif").symlink_to(plan)
    for name in (plan, tmp_path / "link.gif"):
        code, said, complaints = cli("evaluate", plan, "--episodes", 1, "--gif", name)
        assert (code, said, len(complaints)) == (2, [], 1)
        assert "holds the plan, which the film would replace: give --gif another name" in complaints[0]
    assert plan.read_bytes() == before


def test_a_film_is_as_long_as_the_episodes_that_were_explored(cli, tmp_path):
    """Also of an environment that has no time limit of its own."""
    gymnasium.register("Endless-v0", entry_point=PendulumEnv)
    try:
        world = rf.from_gymnasium("Endless-v0", horizon=8)
        data = rf.explore(world, AUTO, rf.Uniform(), transitions=60, progress=False)
        rf.plan(data, OWN, horizon=math.inf, discount=0.9).save(tmp_path / "plan.npz")
        film = tmp_path / "film.gif"
        code, said, _ = cli("evaluate", tmp_path / "plan.npz", "--episodes", 1, "--gif", film)
        assert code == 0 and said[-1] == f"9 frames: {film}"
    finally:
        del gymnasium.registry["Endless-v0"]


def test_a_long_film_is_thinned(monkeypatch, plan, cli, tmp_path):
    from PIL import Image

    monkeypatch.setattr(film_module, "MOST_FRAMES", 5)
    assert cli("evaluate", plan, "--episodes", 1, "--gif", tmp_path / "film.gif")[0] == 0
    with Image.open(tmp_path / "film.gif") as picture:
        assert picture.n_frames <= 5 and picture.info["duration"] >= 4 * 30


def test_without_pillow_a_film_says_what_to_install(monkeypatch, plan, cli, tmp_path):
    monkeypatch.setitem(sys.modules, "PIL", None)
    code, _, complaints = cli("evaluate", plan, "--episodes", 1, "--gif", tmp_path / "film.gif")
    assert code == 2 and len(complaints) == 1 and "pip install '.[render]'" in complaints[0]
    assert names_in(tmp_path) == ["plan.npz"]


# --- info ---


def test_info_says_what_data_hold(cli, data, tmp_path):
    code, said, complaints = cli("info", data, "--out", tmp_path / "data.png")
    text, found = "\n".join(said), diagnose(pendulum())
    assert (code, complaints) == (0, [])
    assert said[0].startswith("120 steps in ") and "Scout" in said[1] and "Pendulum-v1" in text
    for i, name in enumerate(found.names):
        line = next(line for line in said if line.startswith(f"{name} "))
        assert f"{found.error[i]:.2%}" in line and f"{found.typical[i]:.2%}" in line
    assert f"{found.cells} of {CELLS**2}" in text and found.verdict in text
    assert (tmp_path / "data.png").read_bytes().startswith(b"\x89PNG")


def test_info_says_what_a_plan_holds(cli, plan, tmp_path):
    code, said, _ = cli("info", plan, "--out", tmp_path / "plan.svg")
    assert code == 0 and said[0] == repr(swing_up())
    assert any(line.startswith("reward") and OWN in line for line in said)
    assert (tmp_path / "plan.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(("steps", "are"), [(1, "1 transition is"), (2, "2 transitions are")])
def test_of_next_to_nothing_nothing_can_be_told(cli, tmp_path, steps, are):
    out, verdict = tmp_path / "few.npz", f"cannot tell: {are} too few; explore at least 50"
    code, said, _ = cli("explore", "Pendulum-v1", "--transitions", steps, "--out", out)
    assert (code, said[-1]) == (0, verdict)
    code, said, _ = cli("info", out, "--out", tmp_path / "few.png")
    assert (code, said[-2]) == (0, f"verdict     {verdict}") and not (tmp_path / "few.png").exists()
    assert said[-1].startswith("picture     none: three or more steps on real states")


def test_info_draws_the_same_picture_twice(cli, data, tmp_path):
    for name in ("one.png", "two.png"):
        cli("info", data, "--out", tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


@pytest.mark.filterwarnings("always::rewardfree.doubts.LeftOutColumns")
def test_info_says_which_columns_are_states_and_actions(cli, tmp_path):
    (tmp_path / "log.csv").write_text("x,v,push,time\n0,1,0.5,0.1\n1,2,0.3,0.2\n2,1,0.1,0.3\n")
    code, said, complaints = cli("info", tmp_path / "log.csv", "--action", "push")
    assert code == 0 and "variables   states x, v; actions push" in said
    assert len(complaints) == 1 and "log.csv: time was left out" in complaints[0]


@pytest.mark.filterwarnings("ignore::rewardfree.doubts.LeftOutColumns")
def test_messages_about_tables_offer_what_can_be_typed(cli, tmp_path):
    (tmp_path / "log.csv").write_text("x,next_x,step\n0,1,1\n1,2,0\n2,1,1\n")
    code, _, complaints = cli("plan", tmp_path / "log.csv", "--reward", "x")
    assert code == 2 and complaints[-1].endswith("step was left out as a time; --action step makes it one")
    with pytest.raises(ValueError, match="for a table of text") as needed:
        rf.Box.of(x=None, v=None).need_bounds("a kernel that is fixed")
    assert as_typed(str(needed.value), {}).endswith(
        "x, v has none: give bounds in a world of your own (module:Class --allow-imports)"
    )


def test_info_takes_tables_of_text_and_finite_data(cli, tmp_path):
    rf.explore(Linear(), AUTO, rf.Uniform(), steps=40, progress=False).to_csv(tmp_path / "data.csv")
    code, said, _ = cli("info", tmp_path / "data.csv")
    assert code == 0 and said[0].startswith("40 steps in 7 episodes") and "cannot tell: 40" in "\n".join(said)
    model = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1)
    finite = rf.explore(small_world(), model, rf.Generative(), samples_per_step=3)
    finite.save(tmp_path / "finite.npz")
    code, said, _ = cli("info", tmp_path / "finite.npz")
    assert code == 0 and "6 states, 5 actions, horizon 4" in "\n".join(said)
    assert said[-1].startswith("verdict     none for finite worlds: rf.gap(world, plan, reward) says")
    labels = rf.explore(rf.worlds.LabelledWorld(small_world()), AUTO, rf.Uniform(), steps=12, progress=False)
    labels.save(tmp_path / "labels.npz")
    code, said, _ = cli("info", tmp_path / "labels.npz")
    assert code == 0 and said[-1].startswith("verdict     none for labels: play a plan")
    plan = rf.plan(finite, "s")
    plan.save(tmp_path / "plan.npz")
    code, said, _ = cli("info", tmp_path / "plan.npz")
    assert code == 0 and said == [repr(plan)]
    code, _, complaints = cli("plan", tmp_path / "finite.npz", "--reward", "s")
    assert code == 2 and "finite world" in complaints[0]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("x.jpg", "form must be one of"), ("x", "form must be one of"), ("pipe.png", "is a device, a pipe")],
)
def test_a_picture_that_cannot_be_written_is_refused_before_any_work(
    cli, monkeypatch, data, tmp_path, name, wanted
):
    monkeypatch.setattr("rewardfree.report.contents.diagnose", lambda data: pytest.fail("it worked"))
    os.mkfifo(tmp_path / "pipe.png")
    code, said, complaints = cli("info", data, "--out", tmp_path / name)
    assert (code, said, len(complaints)) == (2, [], 1) and wanted in complaints[0]


def test_a_plan_without_a_mesh_has_no_picture(cli, tmp_path):
    rf.plan(pendulum(), OWN, rf.Mean(clip="range"), horizon=2).save(tmp_path / "plan.npz")
    code, said, _ = cli("info", tmp_path / "plan.npz", "--out", tmp_path / "plan.png")
    assert code == 0 and said[0].startswith("SampledPlan(") and not (tmp_path / "plan.png").exists()


def test_a_picture_of_no_known_form_is_refused(cli, data, tmp_path):
    code, _, complaints = cli("info", data, "--out", tmp_path / "data.xyz")
    assert code == 2 and len(complaints) == 1 and "xyz" in complaints[0]
    assert names_in(tmp_path) == ["data.npz"]


# --- diagnosis ---


@pytest.mark.parametrize("horizon", [6, 40])
def test_held_out_errors_are_those_of_refits_without_each_part(horizon):
    """A part is an episode, or with few of these a fifth of the steps."""
    world = rf.from_gymnasium("Pendulum-v1", horizon=horizon)
    data = rf.explore(world, AUTO, rf.Uniform(), transitions=42, progress=False)
    found, model = diagnose(data), data.fitted.model
    y = StateChange.of(data.spaces, data.state, data.next_state).targets  # no bound is met
    z = data.fitted.scaling(data.spaces.features(data.state, data.action))

    def missed(part):
        rest = ~np.isin(np.arange(42), part)
        gram = model.kernel(z[rest], z[rest]) + model.ridge * np.eye(rest.sum())
        return y[part] - model.kernel(z[part], z[rest]) @ np.linalg.solve(gram, y[rest])

    parts = np.arange(42).reshape(7, 6) if horizon == 6 else np.array_split(np.arange(42), 5)
    whole = np.concatenate([missed(part) for part in parts])
    np.testing.assert_allclose(found.error, np.sqrt((whole**2).mean(axis=0)), rtol=1e-3, atol=1e-6)
    single = np.concatenate([missed(np.array([i])) for i in range(42)])
    usual = np.median(np.abs(y - np.median(y, axis=0)), axis=0)
    np.testing.assert_allclose(found.typical, np.median(np.abs(single), axis=0) / usual, rtol=1e-2, atol=1e-6)


def test_coverage_is_counted_by_cells():
    data, found = pendulum(), diagnose(pendulum())
    seen = data.spaces.state.wrapped(np.concatenate([data.state, data.next_state]))
    np.testing.assert_array_equal(found.low, seen.min(axis=0))
    np.testing.assert_array_equal(found.high, seen.max(axis=0))
    counts, _ = np.histogramdd(seen, CELLS, list(zip(found.low, found.high, strict=True)))
    assert found.cells == (counts > 0).sum()
    np.testing.assert_allclose(found.span, np.ptp(seen, axis=0) / [2 * np.pi, 16.0])
    assert found.ends == 0 and found.names == ("theta", "omega")


class Watched(rf.World):
    """A coin moves x, or an action does if `steered`; beside it there are constants, and a clock."""

    state = rf.Box.of(x=(-1.0, 1.0), c=(0.0, 1.0), big=None, clock=None)
    action, horizon, steered = rf.Box.of(u=(-1.0, 1.0)), 30, False

    def start(self, rng):
        return np.array([0.0, 0.5, 1e6, 0.0])

    def sample(self, state, action, h, rng):
        push = 0.3 * action[:, 0] if self.steered else rng.choice([-0.3, 0.3], len(state))
        x = np.clip(state[:, 0] + push, -1.0, 1.0)
        return np.column_stack([x, state[:, 1:3], state[:, 3] + 0.1]), np.zeros(len(state), bool)


class Steered(Watched):
    steered = True


def test_companions_that_never_change_and_clocks_do_not_reassure():
    coin, steered = (
        diagnose(rf.explore(world, AUTO, rf.Uniform(), transitions=200, progress=False))
        for world in (Watched(), Steered())
    )
    assert coin.changing.tolist() == steered.changing.tolist() == [True, False, False, False]
    assert coin.error[0] > 0.7 and coin.score < 0.3 and re.match("not yet: .*x has", coin.verdict)
    assert not coin.error[1:].any() and steered.error[0] < 0.01
    assert re.match("well: .* and x, which is known least", steered.verdict)


def test_a_coin_beside_variables_that_are_known_is_never_known_well():
    class Both(Steered):
        state = rf.Box.of(coin=(-1.0, 1.0), x=(-1.0, 1.0), y=(-1.0, 1.0), z=(-1.0, 1.0))
        action = rf.Box.of(u=(-1.0, 1.0), v=(-1.0, 1.0), w=(-1.0, 1.0))

        def start(self, rng):
            return np.zeros(4)

        def sample(self, state, action, h, rng):
            coin = rng.choice([-0.3, 0.3], (len(state), 1))
            return np.clip(state + np.hstack([coin, 0.3 * action]), -1.0, 1.0), np.zeros(len(state), bool)

    found = diagnose(rf.explore(Both(), AUTO, rf.Uniform(), transitions=400, progress=False))
    assert found.error[0] > 0.7 > 0.1 > found.error[1:].max()
    assert not found.verdict.startswith("well") and (found.score < 0.7 or "coin has" in found.verdict)


def test_where_no_state_changes_nothing_can_be_told():
    class Still(Linear):
        def sample(self, state, action, h, rng):
            return state.copy(), np.zeros(len(state), bool)

    found = diagnose(rf.explore(Still(), AUTO, rf.Uniform(), transitions=60, progress=False))
    assert found.score == 0.0 and found.verdict == STILL


def test_a_wheel_of_fortune_teaches_nothing_and_a_linear_world_everything():
    wheel, linear = (
        diagnose(rf.explore(world, AUTO, rf.Uniform(), transitions=90, progress=False))
        for world in (Wheel(), Linear())
    )
    assert re.match("not yet: .*theta has 1?[0-9]{2}%.*its changes are random", wheel.verdict)
    assert wheel.noise > 0.5 and wheel.error[0] == pytest.approx(1.0, abs=0.2)
    assert linear.error[0] < 1e-3 and linear.noise < 1e-3
    assert re.match("well: .* within reach were seen, and x, which is known least, has 0%", linear.verdict)


def told(error=(0.01, 0.02), seen=(0.9, 1.0), visited=0.8, bounds=(), transitions=200, changing=(True, True)):
    two = np.zeros(2)
    names, errors, shares = ("a", "b"), np.array(error), np.array(seen)
    covered = shares, visited, bounds, 0.0, 0, transitions
    return Diagnosis(names, errors, two, two, two, two, 1, *covered, np.array(changing))


@pytest.mark.parametrize(
    ("changes", "begins"),
    [
        (
            {},
            "well: 80% of the cells and 95% of the range within reach were seen, and b, which is known .* 2%",
        ),
        ({"visited": 0.3}, "partly: 30% of the cells and 95% .* were seen; explore more$"),
        ({"visited": 0.05}, "not yet: 5% of the cells"),
        ({"error": (0.5, 0.3)}, "partly: a has 50% .*; explore more, or its changes are random$"),
        ({"error": (0.5, 3.0)}, "not yet: b has 300%"),
        ({"bounds": ("lengthscale",)}, "partly: the fitted lengthscale sits on a bound, and b has 2%"),
        (
            {"bounds": ("ridge",), "error": (1.0, 1.0)},
            "not yet: the fitted ridge sits .* its changes are random$",
        ),
        ({"error": (0.55, 0.0), "visited": 1.0}, "partly: a has 55% .*; explore more, or its changes are"),
        ({"error": (0.5, 0.0), "visited": 1.0}, "well: "),
        ({"error": (0.0, 0.8), "changing": (False, True)}, "not yet: b has 80%"),
        ({"error": (0.0, 0.1), "seen": (1.0, 0.1), "changing": (False, True)}, "not yet: 80% .* and 10% of"),
        ({"changing": (False, False)}, "cannot tell: no state ever changed, .* the world or the actions$"),
        ({"transitions": 49}, "cannot tell: 49 transitions are too few; explore at least 50$"),
    ],
)
def test_a_verdict_is_one_of_four_words_and_its_reason(changes, begins):
    assert re.match(begins, told(**changes).verdict)


def test_the_score_is_the_product_of_what_is_predicted_and_what_was_covered():
    assert told((0.2, 0.4), (0.5, 0.9), 0.7).score == pytest.approx(0.7 * np.sqrt(0.7 * 0.7))
    assert told((0.2, 7.0), (0.5, 0.9), 0.7).score == pytest.approx(0.4 * 0.7)  # an error counts as 1 at most
    assert told((0.0, 0.0), (1.0, 1.0), 1.0).score == 1.0


def test_what_is_within_reach_is_what_held_actions_meet_in_the_model():
    """The linear world is known: its own rollouts, not the model's, with the same actions."""
    data = rf.explore(Linear(), AUTO, rf.Uniform(), transitions=60, progress=False)
    dynamics = Dynamics.learn(data.spaces, data.model, data.at(np.arange(60)), data.fitted)
    met = reached(dynamics, data.at(np.arange(60)), data.starts, lambda state: np.zeros(len(state), bool), 8)
    assert met.shape == (9 * 64, 1)
    found = diagnose(data)
    low, high = min(met.min(), found.low[0]), max(met.max(), found.high[0])
    assert found.seen[0] == pytest.approx((found.high[0] - found.low[0]) / (high - low))
    cells = [
        set(np.clip((each - low) / (high - low) * CELLS, 0, CELLS - 1).astype(int).ravel())
        for each in (met, np.concatenate([data.state, data.next_state]))
    ]
    assert found.visited == len(cells[0] & cells[1]) / len(cells[0])
    u = np.abs(data.action).max()
    assert np.abs(met).max() <= 1.0 + 8 * 0.5 * u  # |x| grows by at most 0.5 |u| a step


def test_a_rollout_that_ends_begins_again():
    data = rf.explore("CartPole-v1", AUTO, rf.Uniform(), transitions=80, progress=False)
    samples = data.at(np.arange(80))
    dynamics = Dynamics.learn(data.spaces, data.model, samples, data.fitted)

    def reach(ended):
        return np.abs(reached(dynamics, samples, data.starts, ended, 60)[:, 2]).max()

    free = reach(lambda state: np.zeros(len(state), bool))
    assert reach(lambda state: np.abs(state[:, 2]) > 0.2) < 0.4 < free


def test_six_steps_of_a_pendulum_and_a_valley_that_was_never_left_do_not_reassure():
    few = rf.explore("Pendulum-v1", AUTO, rf.Uniform(), transitions=6, progress=False)
    assert diagnose(few).verdict.startswith("cannot tell: 6 transitions")
    valley = rf.explore("MountainCar-v0", AUTO, rf.Uniform(), transitions=300, progress=False)
    assert re.match(
        r"not yet: \d+% of the cells and \d\d% of the range within reach", diagnose(valley).verdict
    )


def test_ends_and_infinite_bounds_are_told():
    data = rf.explore(rf.from_gymnasium("CartPole-v1"), AUTO, rf.Uniform(), transitions=80, progress=False)
    found = diagnose(data)
    assert found.ends == data.terminated.sum() > 0
    assert np.isnan(found.span).tolist() == [False, True, False, True]


def test_labels_and_too_few_transitions_are_refused():
    for n in (1, 2):
        assert diagnose(pendulum().first(transitions=n)).verdict.startswith(f"cannot tell: {n} transition")
    with pytest.raises(ValueError, match="there is no transition that was kept"):
        diagnose(dataclasses.replace(pendulum(), kept=np.zeros(len(pendulum()), bool)))
    model = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1)
    finite = rf.explore(small_world(), model, rf.Generative(), samples_per_step=3)
    with pytest.raises(
        ValueError, match=r"rf\.gap\(world, plan, reward\) says .* rf\.describe.* got Transitions"
    ):
        diagnose(finite)
    world = rf.worlds.LabelledWorld(small_world())
    model = rf.Model(rf.Matern(1.5, 0.3), ridge=0.1, pooled=True)
    with pytest.raises(ValueError, match="labels have no state change"):
        diagnose(rf.explore(world, model, rf.Uniform(), steps=12, progress=False))


# --- figures ---


def labels(figure):
    return [(place.get_xlabel(), place.get_ylabel()) for place in figure.axes]


def test_figures_of_data_name_their_variables():
    pairs = labels(experience_figure(pendulum(), diagnose(pendulum()), "title"))
    assert pairs[0] == ("theta", "omega") and "held-out error" in pairs[1][0]
    data = rf.explore(rf.from_gymnasium("CartPole-v1"), AUTO, rf.Uniform(), transitions=80, progress=False)
    figure = experience_figure(data, diagnose(data), "title")
    assert labels(figure)[:2] == [("x", "v"), ("theta", "omega")]
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["end"]
    assert figure.get_suptitle() == "title"
    ends = figure.axes[0].collections[1].get_offsets()
    np.testing.assert_allclose(ends, data.next_state[data.terminated][:, :2])
    line = rf.explore(Linear(), AUTO, rf.Uniform(), transitions=30, progress=False)
    figure = experience_figure(line, diagnose(line), "title")
    assert labels(figure)[0] == ("x", "step")
    np.testing.assert_allclose(figure.axes[0].collections[0].get_offsets()[:, 0], line.state[:, 0])


def test_bars_are_the_held_out_errors_that_are_printed():
    found = diagnose(pendulum())
    bars = [bar.get_width() for bar in experience_figure(pendulum(), found, "title").axes[1].patches]
    np.testing.assert_allclose(bars, np.maximum(found.error, 1e-6))
    assert (found.error > 2.0 * found.typical).any()  # medians flatter


def test_figures_of_plans_show_values_and_actions():
    figure = plan_figure(swing_up(), "title")
    assert labels(figure)[:2] == [("theta", "omega"), ("theta", "omega")]
    assert {"value", "torque"} <= {text for pair in labels(figure)[2:] for text in pair}
    value = np.asarray(figure.axes[0].collections[0].get_array()).reshape(121, 121)
    mesh = swing_up().mesh_values.mesh
    corner = np.array([mesh.low[0], mesh.high[1]])
    assert value[-1, 0] == pytest.approx(swing_up().value(corner), rel=1e-5)
    one = rf.plan(
        rf.explore(Linear(), AUTO, rf.Uniform(), transitions=30, progress=False), "-x**2", horizon=4
    )
    assert labels(plan_figure(one, "title"))[0][0] == "x"


def test_the_commands_know_every_strategy_and_planner_of_the_library():
    made = {type(named("strategy", name, beta=0.1)) for name in typed_names("strategy")}
    assert made == {
        rf.Generative, rf.Scout, rf.Online, rf.Qiu, rf.GreedyMaxVariance, rf.Uniform
    }  # fmt: skip
    planners = {type(named("planner", name, beta=0.1)) for name in typed_names("planner")}
    assert planners == {
        rf.CountingPlanner, rf.DefaultPlanner, rf.DynamicsPlanner, rf.Mean, rf.Optimistic, rf.Pessimistic
    }  # fmt: skip


# --- where results go ---


@pytest.mark.skipif(os.name != "posix", reason="pipes")
def test_what_is_no_file_is_refused_before_any_work_is_done(cli, monkeypatch, data, plan, tmp_path):
    for name in ("explore", "plan", "rollouts"):
        monkeypatch.setattr(rf, name, lambda *_, **__: pytest.fail("work was done"))
    os.mkfifo(tmp_path / "pipe")
    for arguments in (
        ("explore", "Pendulum-v1", "--out", tmp_path / "pipe"),
        ("plan", data, "--reward", OWN, "--out", tmp_path / "pipe"),
        ("evaluate", plan, "--gif", tmp_path / "pipe"),
        ("explore", "Pendulum-v1", "--out", tmp_path / ("x" * 256)),
    ):
        code, said, complaints = cli(*arguments)
        assert (code, said, len(complaints)) == (2, [], 1)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert names_in(tmp_path) == ["data.npz", "pipe", "plan.npz"]


def test_what_cannot_be_written_at_the_end_is_kept_beside_it(cli, monkeypatch, data, tmp_path):
    """The place for it turns into a folder meanwhile."""
    explore, planned = rf.explore, rf.plan
    out, other = tmp_path / "new.npz", tmp_path / "plan.npz"
    (tmp_path / "new-1.npz").write_text("mine")
    monkeypatch.setattr(rf, "explore", lambda *args, **more: [out.mkdir(), explore(*args, **more)][1])
    monkeypatch.setattr(rf, "plan", lambda *args, **more: [other.mkdir(), planned(*args, **more)][1])
    code, said, complaints = cli(
        "explore", "Pendulum-v1", "--strategy", "uniform", "--steps", 9, "--out", out
    )
    place = tmp_path / "new-2.npz"
    assert (code, said, len(complaints)) == (2, [], 1) and complaints[0].startswith(f"rewardfree: {out} is a")
    assert complaints[0].endswith(f"what was computed is in {place}") and len(rf.load(place)) == 9
    assert (tmp_path / "new-1.npz").read_text() == "mine"
    code, _, complaints = cli("plan", data, "--reward", OWN, "--horizon", 5, "--out", other)
    assert code == 2 and complaints[0].endswith(f"what was computed is in {tmp_path / 'plan-1.npz'}")
    assert rf.load_plan(tmp_path / "plan-1.npz").horizon == 5


def test_a_full_disk_leaves_data_in_another_folder(cli, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    save = rf.Experience.save

    def full(self, path):
        if path.parent.name == "full":
            raise OSError(28, "No space left on device", str(path))
        save(self, path)

    monkeypatch.setattr(rf.Experience, "save", full)
    out = tmp_path / "full" / "data.npz"
    code, _, complaints = cli("explore", "Pendulum-v1", "--strategy", "uniform", "--steps", 9, "--out", out)
    assert code == 2 and "No space left on device" in complaints[0]
    assert complaints[0].endswith(f"what was computed is in {tmp_path / 'data-1.npz'}")
    assert len(rf.load(tmp_path / "data-1.npz")) == 9
    monkeypatch.setattr(rf.Experience, "save", lambda self, path: full(self, out))
    code, _, complaints = cli("explore", "Pendulum-v1", "--strategy", "uniform", "--steps", 9, "--out", out)
    assert code == 2 and complaints[0].endswith(f"No space left on device: '{out}'")


@pytest.mark.parametrize("number", ["SIGTERM", "SIGHUP"])
def test_a_closed_terminal_keeps_the_data(tmp_path, number):
    out = tmp_path / "data.npz"
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.replace("SIGINT", number), "explore", "Pendulum-v1",
         "--strategy", "uniform", "--out", out],
        capture_output=True, text=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert f"--resume {out}" in done.stderr and len(rf.load(out)) == 59


def test_ctrl_c_while_the_data_are_written_waits_for_them(cli, monkeypatch, tmp_path):
    save = rf.Experience.save

    def interrupted(self, path):
        signal.raise_signal(signal.SIGINT)
        save(self, path)

    monkeypatch.setattr(rf.Experience, "save", interrupted)
    out = tmp_path / "data.npz"
    code, _, complaints = cli("explore", "Pendulum-v1", "--strategy", "uniform", "--steps", 9, "--out", out)
    assert code == 130 and len([line for line in complaints if line.strip()]) <= 1
    assert len(rf.load(out)) == 9 and names_in(tmp_path) == ["data.npz"]


# --- plans from others ---


def with_provenance(plan, **changed):
    """The plan's file, which says that it is for another environment."""
    with np.load(plan) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(str(arrays["about"]))
    header["provenance"]["table"].update(changed)
    arrays["about"] = np.array(json.dumps(header))
    np.savez(plan, **arrays)


EVIL = """
import gymnasium
from pathlib import Path

Path(__file__).with_name("victim").touch()
gymnasium.register("Evil-v0", "gymnasium.envs.classic_control:PendulumEnv", max_episode_steps=20)
"""


@pytest.mark.parametrize(
    "changed",
    [
        {"gymnasium": "evilmod:Evil-v0"},
        {"options": {"table": {"env_id": "evilmod:Evil-v0"}}},
        {"options": {"table": {"deep": ["x", {"table": {"evilmod:Evil": 3}}]}}},
    ],
    ids=["name", "option", "deep"],
)
def test_a_plan_imports_nothing(cli, monkeypatch, plan, tmp_path, changed):
    (tmp_path / "evilmod.py").write_text(EVIL)
    monkeypatch.syspath_prepend(tmp_path)
    with_provenance(plan, **changed)
    code, said, complaints = cli("evaluate", plan, "--episodes", 1)
    assert (code, said, len(complaints)) == (2, [], 1)
    assert "'evilmod:Evil" in complaints[0]
    assert "would import and run code of its own: say --allow-imports if you trust it" in complaints[0]
    assert "evilmod" not in sys.modules and not (tmp_path / "victim").exists()


@pytest.mark.parametrize("how", [(), ("--env", "evilmod:Evil-v0")], ids=" ".join)
def test_who_trusts_a_plan_may_let_it_import(cli, monkeypatch, plan, tmp_path, how):
    (tmp_path / "evilmod.py").write_text(EVIL)
    monkeypatch.syspath_prepend(tmp_path)
    with_provenance(plan, gymnasium="evilmod:Evil-v0", horizon=20)
    code, said, complaints = cli("evaluate", plan, "--episodes", 1, *how)
    assert (code, said) == (2, []) and not (tmp_path / "victim").exists(), complaints
    code, said, complaints = cli("evaluate", plan, "--episodes", 1, *how, "--allow-imports")
    assert code == 0 and said[0].startswith("mean return") and (tmp_path / "victim").exists(), complaints
    sys.modules.pop("evilmod", None)
    gymnasium.registry.pop("Evil-v0", None)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"gymnasium": 3}, "its provenance must hold an environment and its options, got 3"),
        ({"options": "x"}, "its provenance must hold an environment and its options"),
        ({"names": 3}, "its names must be a list of names, got 3"),
        ({"angles": [3]}, "its angles must be a list of names, got (3,)"),
        (
            {"options": {"table": {"pilot": 10**18}}},
            "its options for gymnasium.make have pilot, which is none",
        ),
        ({"horizon": 10**18}, "horizon must be at most"),
        ({"options": {"table": {"colour": "red"}}}, "there is no environment 'Pendulum-v1' to be made: "),
        (
            {"gymnasium": "FrozenLake-v1", "horizon": 5, "options": {"table": {"map_name": "sea"}}},
            "there is no environment 'FrozenLake-v1' to be made with {'map_name': 'sea', ",
        ),
    ],
)
def test_a_plan_for_what_is_no_environment_is_refused(cli, plan, changed, said):
    with_provenance(plan, **changed)
    code, _, complaints = cli("evaluate", plan, "--episodes", 1)
    assert code == 2 and len(complaints) == 1 and said in complaints[0]


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ("Nowhere-v1", "rewardfree: there is no environment 'Nowhere-v1'"),
        ("nowhere:World", "rewardfree: 'nowhere:World' would import and run code of its own"),
        ("CartPole-v1", "rewardfree: {plan}: this plan is for theta, omega, torque, and CartPole-v1 has"),
    ],
)
def test_what_was_typed_wrongly_is_not_the_plans_mistake(cli, plan, env, said):
    with_provenance(plan, horizon=20, names=None)
    code, _, complaints = cli("evaluate", plan, "--episodes", 1, "--env", env)
    assert code == 2 and len(complaints) == 1 and complaints[0].startswith(said.format(plan=plan)), complaints


def test_a_world_that_fails_while_a_plan_is_played_is_told_in_one_line(cli, plan):
    with_provenance(plan, options={"table": {"g": "abc"}})
    code, said, complaints = cli("evaluate", plan, "--episodes", 1)
    assert (code, said, len(complaints)) == (1, [], 1)
    assert complaints[0].startswith("rewardfree: the world failed at step 0: TypeError(")

"""The commands for worlds of one's own, their defaults, and how they speak of what can be typed."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import rewardfree as rf
from reference_runs import newest
from rewardfree.cli.app import app
from rewardfree.cli.session import as_typed
from rewardfree.data.run_data import COLUMNS
from rewardfree.formulas import FUNCTIONS
from rewardfree.report import film

pytestmark = pytest.mark.usefixtures("one_thread")
DOCS = Path(__file__).parents[1] / "docs"
MODULE = """
import gymnasium
import numpy as np

import rewardfree as rf


class Cart(rf.World):
    state = rf.Box.of(x=(-1.0, 1.0), v=(-1.0, 1.0))
    action = rf.Box.of(push=(-1.0, 1.0))
    horizon = 20

    def start(self, rng):
        return np.array([rng.uniform(-0.1, 0.1), 0.0])

    def sample(self, state, action, h, rng):
        v = np.clip(0.9 * state[:, 1] + 0.2 * action[:, 0], -1.0, 1.0)
        x = np.clip(state[:, 0] + 0.2 * v, -1.0, 1.0)
        return np.stack([x, v], axis=1), np.zeros(len(state), bool)


class Flat(Cart):
    def sample(self, state, action, h, rng):
        return state


class Sized(Cart):
    def __init__(self, size):
        self.size = size


cart = Cart()


def pendulum():
    return gymnasium.make("Pendulum-v1").unwrapped


def grid():
    return rf.FiniteWorld(np.ones((2, 2, 2)) / 2, 5)


class Six(Cart):
    state = rf.Box((*"abcdfg",), (-1.0,) * 6, (1.0,) * 6, (False,) * 6)


class Free(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    action_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))


def number():
    return 5


"""
NAMED = """
class Turning(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = self.np_random.uniform(-3, 3, 1)
        return self.at.astype(np.float32), {}

    def step(self, action):
        self.at = self.at + 0.3 * action
        return self.at.astype(np.float32), 0.0, False, False, {}


gymnasium.register("Turning-v0", entry_point=Turning, max_episode_steps=12)
"""
IMPORTS = "--allow-imports"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working folder with my_world.py in it, which nothing has imported."""
    (tmp_path / "my_world.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_world", raising=False)
    yield tmp_path
    sys.modules.pop("my_world", None)


def test_a_world_of_ones_own_is_explored_planned_for_and_played(cli):
    code, said, complaints = cli("explore", "my_world:Cart", "--transitions", 60, IMPORTS)
    assert (code, complaints) == (0, []) and said[0].startswith("60 steps in ")
    import my_world

    data, expected = rf.load("data.npz"), rf.explore(my_world.Cart(), transitions=60)
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(data, name), getattr(expected, name), err_msg=name)
    assert cli("explore", "my_world:Cart", "--transitions", 70, "--resume", "data.npz", IMPORTS)[0] == 0
    assert cli("plan", "data.npz", "--reward", "-(x - 0.5)**2")[0] == 0
    code, said, _ = cli("evaluate", "plan.npz", "--episodes", 2, IMPORTS)
    score = rf.rollouts(my_world.Cart(), rf.load_plan("plan.npz"), "-(x - 0.5)**2", 2)
    assert code == 0 and f"mean return {score.mean:.4g} over 2 episodes" in said[0]
    code, said, _ = cli("evaluate", "plan.npz", "--episodes", 2, "--env", "my_world:cart", IMPORTS)
    assert code == 0 and f"mean return {score.mean:.4g} over 2 episodes" in said[0]


def test_a_world_that_fails_at_once_leaves_earlier_data_alone(cli):
    assert cli("explore", "my_world:Cart", "--transitions", 60, IMPORTS)[0] == 0
    before = Path("data.npz").read_bytes()
    code, said, complaints = cli("explore", "my_world:Flat", "--transitions", 60, IMPORTS)
    assert (code, said, len(complaints)) == (1, [], 1)
    assert "sample must return next states" in complaints[0] and complaints[0].endswith(
        " before the first step"
    )
    assert Path("data.npz").read_bytes() == before


def test_an_environment_of_ones_own_keeps_what_was_said_of_it(cli):
    code, _, complaints = cli("explore", "my_world:pendulum", "--transitions", 60, "--horizon", 12, IMPORTS)
    assert (code, complaints) == (0, [])
    assert cli("plan", "data.npz", "--reward", "-theta**2")[0] == 0
    code, said, _ = cli("evaluate", "plan.npz", "--episodes", 2, IMPORTS)
    assert code == 0 and "12 steps each" in said[1]


def test_names_that_were_given_in_python_are_known_when_it_is_played(cli):
    Path("my_env.py").write_text(MODULE.split("class Cart")[0] + NAMED)
    sys.path.insert(0, str(Path.cwd()))
    world = rf.from_gymnasium("my_env:Turning-v0", names=("phi", "turn"), angles=["phi"])
    data = rf.explore(world, transitions=60, progress=False)
    rf.plan(data, "cos(phi) - 0.1*turn**2").save("plan.npz")
    code, said, complaints = cli("evaluate", "plan.npz", "--episodes", 2, IMPORTS)
    assert (code, complaints) == (0, []) and "12 steps each" in said[1]
    code, _, complaints = cli("explore", "my_env:Turning-v0", "--transitions", 60, IMPORTS)
    assert (code, complaints) == (0, []) and rf.load("data.npz").horizon == 12


@pytest.mark.parametrize("command", ["explore", "plan", "evaluate"])
def test_nothing_is_imported_unasked(cli, command):
    Path("evil.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    data = rf.explore("Pendulum-v1", strategy=rf.Uniform(), transitions=20, progress=False)
    for place in ({"gymnasium": "evil:Evil-v0"}, {"world": "evil:Evil"}, {"options": {"name": "evil:Evil"}}):
        stored = {"gymnasium": "Pendulum-v1", "options": {}, "horizon": 200, **place}
        if "world" in place:
            stored["gymnasium"] = None
        object.__setattr__(data, "provenance", stored)
        rf.plan(data, "-theta**2", horizon=3).save("plan.npz")
        typed = {
            "explore": ("explore", "evil:Evil"),
            "plan": ("plan", "data.npz", "--reward", "1", "--env", "evil:Evil-v0"),
            "evaluate": ("evaluate", "plan.npz"),
        }[command]
        code, said, complaints = cli(*typed)
        assert (code, said, len(complaints)) == (2, [], 1)
        assert re.search(r"evil:Evil.* would import and run .*: say --allow-imports", complaints[0])
        assert not Path("ran").exists()


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("my_world:Nothing", (), "world 'my_world:Nothing' cannot be imported"),
        ("no_such:Cart", (), "world 'no_such:Cart' cannot be imported: No module named 'no_such'"),
        ("my_world:Sized", (), "my_world:Sized must be made without arguments, such as by a function: "),
        (
            "my_world:number",
            (),
            "my_world:number must be or make an rf.World, or a Gymnasium environment or its id, got 5",
        ),
        ("my_world:Six", ("--strategy", "scout"), "g: use --strategy uniform or --strategy greedy"),
        (
            "my_world:Free",
            ("--horizon", 5),
            "and action has none: give bounds in a world of your own (module:",
        ),
        ("my_world:grid", (), "my_world:grid has finitely many states and a table: use it from Python"),
        ("my_world:pendulum", (), "no time limit: give --horizon, the steps of an episode"),
        ("my_world:Cart", ("--horizon", 9), "my_world:Cart says this itself: leave out --horizon"),
    ],
)
def test_a_name_that_is_no_world_is_refused_in_one_line(cli, name, options, said):
    code, printed, complaints = cli("explore", name, *options, IMPORTS)
    assert (code, printed, len(complaints)) == (2, [], 1) and said in complaints[0]


def test_a_csv_file_is_read_with_the_variables_of_its_world(cli):
    assert cli("explore", "my_world:Cart", "--transitions", 60, IMPORTS)[0] == 0
    rf.load("data.npz").to_csv("data.csv")
    assert cli("plan", "data.csv", "--reward", "-(x - 0.5)**2", "--env", "my_world:Cart", IMPORTS)[0] == 0
    plan = rf.load_plan("plan.npz")
    assert plan.horizon == 20 and plan.spaces == rf.load("data.npz").spaces
    assert cli("evaluate", "plan.npz", "--episodes", 1, IMPORTS)[0] == 0
    cli("plan", "data.npz", "--reward", "-(x - 0.5)**2", "--env", "my_world:cart", IMPORTS)
    assert rf.load_plan("plan.npz").provenance["world"] == "my_world:cart"
    code, _, complaints = cli("plan", "data.npz", "--reward", "1", "--env", "Pendulum-v1")
    assert code == 2 and "data.npz speaks of x, v, push, " in complaints[0]


def test_a_time_series_is_planned_from(cli):
    rng, lines = np.random.default_rng(0), ["episode,x,v,u"]
    for episode in range(4):
        x, v = rng.uniform(-1, 1), 0.0
        for _ in range(15):
            u = rng.uniform(-1, 1)
            lines.append(f"{episode},{x!r},{v!r},{u!r}")
            v, x = 0.9 * v + 0.2 * u, x + 0.2 * v
    Path("log.csv").write_text("\n".join(lines))
    code, _, complaints = cli("plan", "log.csv", "--reward", "-x**2")
    assert code == 2 and "give --action, the names of the actions" in complaints[0]
    assert cli("plan", "log.csv", "--reward", "-x**2", "--action", "u")[0] == 0
    assert rf.load_plan("plan.npz").transitions == 56
    code, said, _ = cli("info", "log.csv", "--action", "u")
    assert code == 0 and said[0] == "56 steps in 4 episodes, 56 kept, 4 first states"
    for wrong in (("plan.npz",), ("log.csv", "--env", "Pendulum-v1")):
        code, _, complaints = cli("plan", *wrong, "--reward", "1", "--action", "u")
        assert code == 2 and "--action is for a CSV file without --env" in complaints[0]


def test_defaults_are_those_of_python(cli):
    assert cli("explore", "Acrobot-v1", "--transitions", 60)[0] == 0
    expected = rf.explore("Acrobot-v1", transitions=60)
    data = rf.load("data.npz")
    assert (data.strategy, data.model, data.seed) == (rf.Scout(), expected.model, expected.seed)
    np.testing.assert_array_equal(data.next_state, expected.next_state)
    rf.plan(data, "-theta1**2", rf.Mean(clip="range"), horizon=3).save("plan.npz")
    code, said, _ = cli("evaluate", "plan.npz")
    score = rf.rollouts("Acrobot-v1", rf.load_plan("plan.npz"), "-theta1**2")
    assert code == 0 and f"mean return {score.mean:.4g} over 20 episodes" in said[0]


def test_one_episode_is_one_episode(cli):
    data = rf.explore("Pendulum-v1", strategy=rf.Uniform(), transitions=20, progress=False)
    rf.plan(data, "-theta**2", horizon=3).save("plan.npz")
    code, said, _ = cli("evaluate", "plan.npz", "--episodes", 1)
    assert code == 0 and re.fullmatch(r"mean return \S+ over 1 episode", said[0])
    assert "1 step ended an episode" in "\n".join(rf_info(cli, data))


def rf_info(cli, data):
    ended = np.zeros(len(data), bool)
    ended[-1] = True
    data.ending_at(ended).save("data.npz")
    code, said, _ = cli("info", "data.npz")
    assert code == 0 and said[0] == "20 steps in 1 episode, 20 kept, 1 first state"
    return said


def test_a_film_that_cannot_be_made_is_refused_before_anything_is_played(cli, monkeypatch):
    data = rf.explore("Pendulum-v1", strategy=rf.Uniform(), transitions=20, progress=False)
    rf.plan(data, "-theta**2", horizon=3).save("plan.npz")
    monkeypatch.setattr(rf, "rollouts", lambda *_, **__: pytest.fail("it was played"))
    for missing in ("pygame", "PIL"):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, missing, None)
            code, said, complaints = cli("evaluate", "plan.npz", "--gif", "film.gif")
        assert (code, said, complaints) == (2, [], [f"rewardfree: {film.NEEDED}"])
    assert cli("explore", "my_world:Cart", "--transitions", 60, IMPORTS)[0] == 0
    assert cli("plan", "data.npz", "--reward", "x")[0] == 0
    code, said, complaints = cli("evaluate", "plan.npz", "--gif", "film.gif", IMPORTS)
    assert (code, said, len(complaints)) == (2, [], 1) and "is a world of your own" in complaints[0]


# --- the words of the command line ---


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("explore", "Pendulum-v1", "--transitions", 9, "--steps", 9), "got --transitions 9, --steps 9"),
        (
            ("explore", "Pendulum-v1", "--strategy", "generative", "--episodes", 3),
            "use --steps or --transitions",
        ),
        (("explore", "Blackjack-v1"), "the observation space must be a Box or Discrete, got Tuple"),
        (("explore", newest("CliffWalking")), "give --horizon, the steps of an episode"),
        (("plan", "data.npz", "--reward", "theta^2"), "a power is written x**2"),
        (("plan", "plan.npz", "--reward", "1"), "holds a plan: play it with `rewardfree evaluate`"),
        (("plan", "data.npz", "--reward", "1", "--out", "./data.npz"), "give --out another name"),
        (("plan", "data.npz", "--reward", "1", "--horizon", "inf"), ": --horizon inf, no end, needs"),
        (("evaluate", "plan.npz", "--env", "CartPole-v1"), "theta, omega, torque, and CartPole-v1 has x, v,"),
        (("evaluate", "data.npz"), "holds data: make a plan of them with `rewardfree plan`"),
    ],
)
def test_an_error_speaks_of_what_can_be_typed(cli, typed, said):
    data = rf.explore("Pendulum-v1", strategy=rf.Uniform(), transitions=20, progress=False)
    data.save("data.npz")
    rf.plan(data, "-theta**2", horizon=3).save("plan.npz")
    code, printed, complaints = cli(*typed)
    assert (code, printed, len(complaints)) == (2, [], 1) and said in complaints[0]
    assert not re.search(r"\brf\.|\w+=", complaints[0])


def test_python_becomes_what_is_typed():
    options = {"max_sigma": "--max-sigma", "steps": "--steps", "strategy": "--strategy"}
    for python, typed in [
        ("max_sigma= is a target, such as steps=", "--max-sigma is a target, such as --steps"),
        ("got steps=10, other=2", "got --steps 10, other=2"),
        ("use rf.Scout() or Uniform()", "use --strategy scout or --strategy uniform"),
        ('use rf.Generative(candidates="sobol")', 'use rf.Generative(candidates="sobol")'),
        (
            'use rf.Uniform(), rf.Qiu() or rf.Generative(candidates="sobol")',
            "use --strategy uniform or --strategy qiu",
        ),
        (
            "give bounds={'x': (low, high)} or pilot=500, which measures them by random steps",
            "give bounds in a world of your own (module:Class --allow-imports)",
        ),
        ("give a limit (rf.explore takes it)", "give a limit"),
        ("x == 3 and steps == 2", "x == 3 and steps == 2"),
        ("max_sigma must be positive, got -1.0", "--max-sigma must be positive, got -1.0"),
        ("theta must be one of steps", "theta must be one of steps"),
        ('use strategy="scout", with device="cpu"', 'use --strategy scout, with device="cpu"'),
    ]:
        assert as_typed(python, options) == typed


def test_flags_are_shown_as_flags(cli):
    names = [command.name for command in app.registered_commands]
    for name in (None, *names):
        code, said, _ = cli(*([name] if name else []), "--help")
        assert code == 0
        flags = [
            line for line in said if re.search(r"--(help|version|quick|json|quiet|allow-imports)\b *\S", line)
        ]
        assert flags and not [line for line in flags if re.search(r"<bool>|BOOLEAN|--no-", line)]


def test_what_a_newcomer_needs_comes_first(cli):
    _, said, _ = cli("--help")
    listed = [match[1] for line in said if (match := re.match(r"\W+ ([a-z]\S*)  +[A-Z]", line))]
    assert listed[:4] == ["explore", "plan", "evaluate", "info"]


def test_the_functions_of_formulas_are_in_the_help_and_in_the_docs(cli):
    _, said, _ = cli("plan", "--help")
    helped = " ".join(re.sub(r"\W", " ", line) for line in said).split()
    page = (DOCS / "continuous.md").read_text()
    assert [name for name in FUNCTIONS if name not in helped] == []
    assert [name for name in FUNCTIONS if f"`{name}`" not in page] == []

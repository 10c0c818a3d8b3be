"""How exploring and planning on real states grow with the number of transitions, and what they take.

Run it alone: `python benchmarks/continuous.py` takes about ten minutes on one core.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

import rewardfree as rf
from table import Row, show

MODEL = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
STATE, ENDS = np.array([1.0, 0.0]), "position >= 0.45 and velocity >= 0"
REWARD = "-(theta**2 + 0.1*omega**2 + 0.001*torque**2)"


def seconds(work):
    """CPU seconds of this process, and what the work returned."""
    started = time.process_time()
    found = work()
    return time.process_time() - started, found


def growth(sizes) -> list[Row]:
    """Scout and Generative on Pendulum, and a plan from each size of data; a second reward; one action."""
    world = rf.from_gymnasium("Pendulum-v1")
    rows, plans = [], []
    for strategy in (rf.Generative(), rf.Scout()):
        times = []
        for n in sizes:
            explore = lambda n=n, strategy=strategy: rf.explore(world, MODEL, strategy, transitions=n)  # noqa: E731
            took, data = seconds(explore)
            times.append(took)
            if isinstance(strategy, rf.Generative):
                first, plan = seconds(lambda data=data: rf.plan(data, REWARD))
                second, _ = seconds(lambda data=data: rf.plan(data, "-abs(omega - 5)"))
                act, _ = seconds(lambda plan=plan: [plan.act(STATE, 0) for _ in range(200)])
                plans.append((first, second, act / 200))
        name = type(strategy).__name__
        rows.append(
            Row(
                f"explore Pendulum, {name}, n = {_list(sizes)}",
                _seconds(times),
                "",
                _exponent(sizes, times),
            )
        )
    first, second, act = (np.array(each) for each in zip(*plans, strict=True))
    rows.append(Row("plan for a first reward", _seconds(first), "", _exponent(sizes, first)))
    rows.append(Row("plan for a second reward", _seconds(second), "", _exponent(sizes, second)))
    rows.append(Row("one action, depth 1", ", ".join(f"{1e3 * t:.2f}" for t in act) + " ms", "", ""))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rows.append(Row(f"largest memory of all this, n up to {max(sizes)}", f"{peak:.2f} GB", "", ""))
    return rows


def second_rewards() -> list[Row]:
    """A second reward on the two-dimensional tasks, from 1,000 transitions."""
    goal = "100*(next_position >= 0.45 and next_velocity >= 0) - 0.1*force**2"
    asked = {
        "Pendulum-v1": (None, [("-abs(omega - 5)", 200)]),
        "MountainCar-v0": (ENDS, [("100*abs(velocity)", 200)]),
        "MountainCarContinuous-v0": (
            ENDS,
            [(goal, 999), ("100*abs(velocity)", 200), ("100*abs(velocity)", 999)],
        ),
    }
    rows = []
    for env, (ends, rewards) in asked.items():
        data = rf.explore(rf.from_gymnasium(env), MODEL, rf.Generative(), transitions=1000)
        first, _ = seconds(lambda data=data, ends=ends: rf.plan(data, "1", terminated=ends))
        for reward, horizon in rewards:
            took = [
                seconds(lambda: rf.plan(data, reward, horizon=horizon, terminated=ends))[0]  # noqa: B023
                for _ in range(5)
            ]
            rows.append(
                Row(
                    f"{env}, {horizon} steps of {reward}: a second reward",
                    f"{np.median(took):.2f} s",
                    f"a first one {first:.2f} s",
                    "",
                )
            )
    return rows


class Unicycle(rf.World):
    """A robot in a square room: it turns and rolls, and at a wall it only turns."""

    state, action = rf.Box.of(x=(-1, 1), y=(-1, 1), phi="angle"), rf.Box.of(speed=(0, 1), turn=(-1, 1))
    horizon = 80

    def start(self, rng):
        return np.array([*rng.uniform(-0.5, 0.5, 2), rng.uniform(-np.pi, np.pi)])

    def sample(self, state, action, h, rng):
        phi = state[:, 2] + 0.3 * action[:, 1]
        way = 0.1 * action[:, :1] * np.stack([np.cos(phi), np.sin(phi)], axis=1)
        return np.column_stack([np.clip(state[:, :2] + way, -1, 1), phi]), np.zeros(len(state), bool)


def two_actions() -> list[Row]:
    """A first and other rewards for two action variables, next states being taken for certain or random."""
    data = rf.explore(Unicycle(), transitions=1000, seed=1)
    asked = [
        f"exp(-((x-{x})**2+(y-{y})**2)/.05)" for x, y in ((0.9, 0.9), (0, 0), (-0.9, 0), (0, 0.9), (0.5, 0))
    ]
    rows = []
    for noise, name in ((False, "certain"), (True, "random")):
        planner = rf.DynamicsPlanner(noise=noise)
        first, *others = (seconds(lambda: rf.plan(data, reward, planner))[0] for reward in asked)  # noqa: B023
        what = f"unicycle, two action variables, next states {name}: another reward"
        rows.append(
            Row(
                what,
                f"{np.median(others):.2f} s, at most {max(others):.2f} s",
                f"a first one {first:.2f} s",
                "",
            )
        )
    return rows


def _exponent(sizes, times) -> str:
    return f"exponent {np.polyfit(np.log(sizes), np.log(times), 1)[0]:.2f}"


def _seconds(times) -> str:
    return ", ".join(f"{t:.2f}" for t in times) + " s"


def _list(sizes) -> str:
    return ", ".join(f"{n:,}" for n in sizes)


if __name__ == "__main__":
    sizes = (100, 200) if "--quick" in sys.argv else (250, 500, 1000, 2000, 4000)
    with rf.threads.one_blas_thread():
        show([*growth(sizes), *second_rewards(), *two_actions()])

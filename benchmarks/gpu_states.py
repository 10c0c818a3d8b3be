"""Real states on a CUDA device: inducing points for a million points, and plans from 100,000 transitions.

`PYTHONPATH=src python3 benchmarks/gpu_states.py` takes a few minutes, most of them for the CPU. It needs no
gymnasium and no installed rewardfree: the pendulum is a world of its own, with the equations of Gymnasium's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import rewardfree as rf
from rewardfree.model import fitted_model
from rewardfree.threads import one_blas_thread
from rewardfree.worlds import Spaces
from sparse import points_and_changes
from table import Row, show

TRANSITIONS, POINTS, ON_CPU, INDUCING, RIDGE = 100_000, 1_000_000, 100_000, 2000, 1e-3
REWARDS = ("-(theta**2 + 0.1*omega**2 + 0.001*torque**2)", "omega - 0.1*torque**2")
EPISODES, STATES = 20, 5000


class Pendulum(rf.World):
    """Pendulum-v1: pushed at its joint, upright at theta = 0."""

    state = rf.Box.of(theta="angle", omega=(-8.0, 8.0))
    action = rf.Box.of(torque=(-2.0, 2.0))
    horizon = 200

    def start(self, rng):
        return rng.uniform((-np.pi, -1.0), (np.pi, 1.0))

    def sample(self, state, action, h, rng):
        change = 0.05 * (15.0 * np.sin(state[:, 0]) + 3.0 * action[:, 0])
        omega = np.clip(state[:, 1] + change, -8.0, 8.0)
        return np.stack([state[:, 0] + 0.05 * omega, omega], axis=1), np.zeros(len(state), bool)


def random_transitions(n: int) -> rf.Experience:
    """Uniformly random states and actions."""
    world, rng = Pendulum(), np.random.default_rng(0)
    state = rng.uniform(world.state.low, world.state.high, (n, 2))
    action = rng.uniform(-2.0, 2.0, (n, 1))
    following, ended = world.sample(state, action, 0, rng)
    return rf.Experience(
        spaces=Spaces(world.state, world.action), horizon=world.horizon, model=fitted_model(), strategy=None,
        seed=0, episode=np.full(n, -1), h=np.zeros(n, np.int64), state=state, action=action,
        next_state=world.state.wrapped(following), terminated=ended, kept=np.ones(n, bool),
        starts=np.array([world.start(rng) for _ in range(20)]),
    )  # fmt: skip


# Points


def fitted(n: int, inducing: int, device: str) -> tuple[rf.Sparse, float]:
    """A posterior, with the weights of two targets, and its seconds."""
    points, changes = points_and_changes(n)
    with one_blas_thread():
        started = time.perf_counter()
        posterior = rf.Sparse(rf.SquaredExponential(1.0), RIDGE, inducing, device=device)
        posterior.extend(points)
        posterior.weights(np.stack([changes, changes**2], axis=1))  # comes back to the CPU: all is computed
        return posterior, time.perf_counter() - started


def points_rows(device: str, n: int = POINTS, on_cpu: int = ON_CPU, inducing: int = INDUCING) -> list[Row]:
    _, first = fitted(5000, 100, device)  # which sets the device up
    posterior, seconds = fitted(n, inducing, device)
    same, small = fitted(on_cpu, inducing, device)
    here, slow = fitted(on_cpu, inducing, "cpu")
    at, _ = points_and_changes(STATES, seed=1)
    _, changes = points_and_changes(on_cpu)
    means = [sparse.mean(changes, at) for sparse in (here, same)]
    sigmas = [sparse.std(at) for sparse in (here, same)]
    apart = ", ".join(
        f"{name} {np.abs(one - other).max() / np.abs(one).max():.1e}"
        for name, (one, other) in (("means", means), ("sigma", sigmas))
    )
    shared = len(set(map(bytes, here.inducing)) & set(map(bytes, same.inducing)))
    return [
        Row(
            f"{n:,} points, {len(posterior.inducing):,} inducing, two targets",
            f"{seconds:.2f} s (the first call of all {first:.2f} s)",
            f"{on_cpu:,} points on one core of the CPU {slow:.1f} s",
            f"{slow * n / on_cpu / seconds:.0f}x a point",
        ),
        Row(f"the same, {on_cpu:,} points", f"{small:.2f} s", f"{slow:.1f} s", f"{slow / small:.0f}x"),
        Row(
            "largest difference from the CPU, as a share of the largest value",
            f"{apart}; {shared:,} inducing points are the same",
            "",
            "",
        ),
    ]


# Plans, each in a process of its own


def planned(folder: Path, device: str) -> dict[str, float]:
    """Load, fit and plan in this process, which has imported rewardfree and nothing of torch."""
    found, started = {}, time.perf_counter()
    if device != "cpu":
        import torch  # noqa: F401

        found["torch"] = time.perf_counter() - started
    started = time.perf_counter()
    data = rf.load(folder / "data.npz")
    found["load"] = time.perf_counter() - started
    for i, reward in enumerate(REWARDS):
        now = time.perf_counter()
        plan = rf.plan(data, reward, device=device, progress=False)
        found[f"plan {i}"] = time.perf_counter() - now
        if i == 0:
            found |= {"all": time.perf_counter() - started, "planned at": time.time()}
        plan.save(folder / f"{device}{i}.npz")
    return found


def in_a_fresh_process(folder: Path, device: str) -> dict[str, float]:
    """What `planned` found, and the seconds from the start of its process to the end of the first plan."""
    command = [sys.executable, __file__, "--planned", str(folder), "--device", device]
    started = time.time()
    found = json.loads(subprocess.check_output(command))
    found["start to plan"] = found.pop("planned at") - started
    return found


def plan_rows(device: str, transitions: int = TRANSITIONS) -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        random_transitions(transitions).save(folder / "data.npz")
        theirs, ours = (in_a_fresh_process(folder, where) for where in (device, "cpu"))
        rows = [
            Row(
                f"{transitions:,} transitions of a pendulum loaded, fitted and planned, from a cold start",
                f"{theirs['start to plan']:.1f} s (import torch {theirs.get('torch', 0.0):.1f} s)",
                f"CPU {ours['start to plan']:.1f} s",
                f"{ours['start to plan'] / theirs['start to plan']:.1f}x",
            ),
            Row(
                "the same once torch is imported",
                f"{theirs['all']:.2f} s (load {theirs['load']:.2f} s)",
                f"CPU {ours['all']:.1f} s",
                f"{ours['all'] / theirs['all']:.1f}x",
            ),
            Row("a second reward", f"{theirs['plan 1']:.2f} s", f"CPU {ours['plan 1']:.2f} s", ""),
        ]
        for i, reward in enumerate(REWARDS):
            rows.append(_agreement(folder, device, i, reward))
    return rows


def _agreement(folder: Path, device: str, i: int, reward: str) -> Row:
    world = Pendulum()
    plans = [rf.load_plan(folder / f"{where}{i}.npz") for where in (device, "cpu")]
    states = random_transitions(STATES).state
    one, other = (plan.values_at(states, 0) for plan in plans)
    same = np.mean(plans[0].choose(states, 0) == plans[1].choose(states, 0))
    scores = [rf.rollouts(world, plan, reward, episodes=EPISODES, seed=1) for plan in plans]
    return Row(
        f"agreement for {reward}",
        f"values {np.abs(one - other).max() / np.abs(other).max():.1e} apart, {same:.2%} of actions the same",
        f"returns of {EPISODES} episodes {scores[0].mean:.4g} and on the CPU {scores[1].mean:.4g}",
        "",
    )


def rows() -> list[Row]:
    what = "real states on a GPU"
    try:
        import torch
    except ImportError:
        return [Row(what, "not run: torch is not installed", "", "")]
    if not torch.cuda.is_available():
        return [Row(what, "not run: torch sees no CUDA device", "", "")]
    show(points := points_rows("cuda"))
    memory = f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB at most"
    print(f"on {torch.cuda.get_device_name()}, torch {torch.__version__}, {memory}\n", flush=True)
    return [*points, *plan_rows("cuda")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--planned", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--device", default="cuda", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.planned is None:
        show(rows())
        return
    print(json.dumps(planned(arguments.planned, arguments.device)))


if __name__ == "__main__":
    main()

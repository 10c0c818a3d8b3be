"""Plans through inducing points beside exact ones: Pendulum, explored by queries to 4,000 transitions.

For each seed the same data are planned for the task's own reward, through 1,000 inducing points and exactly;
both plans play the same 20 episodes. `python benchmarks/sparse_plans.py` takes about ten minutes on one core.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import rewardfree as rf
from table import Row, show

MODEL = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
EXACT = rf.Model(rf.AutoKernel(), pooled=True, centred=True, inducing=None)
REWARD, EPISODES = "-(theta**2 + 0.1*omega**2 + 0.001*torque**2)", 20


def compared(seed: int, transitions: int) -> tuple[float, ...]:
    """CPU seconds of exploring and of both plans, and the mean return of both."""
    world, took = rf.from_gymnasium("Pendulum-v1"), []

    def timed(work):
        started = time.process_time()
        found = work()
        took.append(time.process_time() - started)
        return found

    data = timed(
        lambda: rf.explore(world, MODEL, rf.Generative(), transitions=transitions, seed=seed, progress=False)
    )
    plans = [timed(lambda m=m: rf.plan(data, REWARD, model=m, progress=False)) for m in (MODEL, EXACT)]
    returns = [rf.rollouts(world, plan, REWARD, episodes=EPISODES, seed=seed).mean for plan in plans]
    return (*took, *returns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="6000-6009", help="first-last")
    parser.add_argument("--transitions", type=int, default=4000)
    chosen = parser.parse_args()
    first, last = map(int, chosen.seeds.split("-"))
    found = []
    for seed in range(first, last + 1):
        with rf.threads.one_blas_thread():
            found.append(compared(seed, chosen.transitions))
        print(seed, *(f"{value:.4f}" for value in found[-1]), flush=True)
    explored, planned, exactly, ours, exact = np.array(found).T
    difference = ours - exact
    error = difference.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.nan
    seconds = lambda times: f"{np.median(times):.1f} s, at most {times.max():.1f} s"  # noqa: E731
    show(
        [
            Row(f"explore Pendulum by queries, n = {chosen.transitions:,}", seconds(explored), "", ""),
            Row("plan for its own reward", seconds(planned), f"exact: {seconds(exactly)}", ""),
            Row(
                f"mean return of {EPISODES} episodes, {len(found)} seeds",
                f"{ours.mean():.2f}",
                f"exact: {exact.mean():.2f}",
                f"difference {difference.mean():.3f}, standard error {error:.3f}",
            ),
        ]
    )


if __name__ == "__main__":
    main()

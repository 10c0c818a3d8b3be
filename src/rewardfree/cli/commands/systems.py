"""Commands for a system of one's own: explore it, plan, play."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rewardfree.cli import journeys


def explore(
    env: Annotated[str, typer.Argument(help="A Gymnasium environment, such as Pendulum-v1.")],
    transitions: Annotated[
        int | None, typer.Option(help="Transitions to keep; 1000 if no other limit.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Environment steps instead.")] = None,
    episodes: Annotated[int | None, typer.Option(help="Episodes instead.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Stop after so long.")] = None,
    max_sigma: Annotated[
        float | None, typer.Option(help="Stop when the largest sigma is this small.")
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="generative, scout, online, qiu, greedy or uniform; by default the first that works."
        ),
    ] = None,
    beta: Annotated[float, typer.Option(help="For online and qiu.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Of everything that is random.")] = 0,
    horizon: Annotated[
        int | None, typer.Option(help="Steps of an episode; by default its time limit.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Data to go on from; limits are then totals.")] = None,
    out: Annotated[Path, typer.Option(help="Where the data go.")] = Path("data.npz"),
) -> None:
    """Explore an environment without any reward, and keep the transitions.

    Ctrl-C keeps what there is, and says how to go on.

    Examples: `rewardfree explore Pendulum-v1 --transitions 1000 --out pendulum.npz`,
    `rewardfree explore Acrobot-v1 --strategy scout --seconds 60`
    """
    if transitions is None and steps is None and episodes is None and seconds is None:
        transitions = 1000
    limits = {"transitions": transitions, "steps": steps, "episodes": episodes, "seconds": seconds}
    for line in journeys.explore_to(
        out, env, strategy, beta, seed, horizon, resume, **limits, max_sigma=max_sigma
    ):
        typer.echo(line)


def plan(
    data: Annotated[Path, typer.Argument(help="What `explore` wrote, or a CSV file of your own.")],
    reward: Annotated[
        str, typer.Option(help="A formula over the world's variables; next_x for the next state's.")
    ],
    horizon: Annotated[int | None, typer.Option(help="Steps of an episode; by default the world's.")] = None,
    discount: Annotated[float | None, typer.Option(help="Alone: plan for no end.")] = None,
    terminated: Annotated[
        str | None, typer.Option(help="A formula: where episodes end; by default as the data saw it.")
    ] = None,
    planner: Annotated[
        str | None,
        typer.Option(help="dynamics, mean, optimistic or pessimistic; by default the best that works."),
    ] = None,
    beta: Annotated[float, typer.Option(help="For optimistic and pessimistic.")] = 0.1,
    out: Annotated[Path, typer.Option(help="Where the plan goes.")] = Path("plan.npz"),
) -> None:
    """Plan for a reward that the data never saw.

    Example: `rewardfree plan pendulum.npz --reward "-(theta**2 + 0.1*omega**2)" --horizon 200 --out plan.npz`
    """
    for line in journeys.plan_to(out, data, reward, planner, beta, horizon, discount, terminated):
        typer.echo(line)


def evaluate(
    plan: Annotated[Path, typer.Argument(help="What `plan` wrote.")],
    episodes: Annotated[int, typer.Option(help="How many to play.")] = 20,
    seed: Annotated[int, typer.Option(help="Of their first states.")] = 1,
    reward: Annotated[str | None, typer.Option(help="A formula to count; by default the plan's own.")] = None,
    env: Annotated[
        str | None, typer.Option(help="An environment; by default the one that was explored.")
    ] = None,
    gif: Annotated[Path | None, typer.Option(help="A film of one episode (pygame and pillow).")] = None,
) -> None:
    """Play a plan in its environment and count its reward.

    Example: `rewardfree evaluate plan.npz --episodes 20 --gif swingup.gif`
    """
    for line in journeys.evaluate(plan, env, reward, episodes, seed, gif):
        typer.echo(line)


def info(
    file: Annotated[Path, typer.Argument(help="Data or a plan.")],
    out: Annotated[Path | None, typer.Option(help="A picture, as .png, .pdf or .svg.")] = None,
) -> None:
    """Say what a file holds, what was covered, and whether exploration learned anything.

    Example: `rewardfree info pendulum.npz --out pendulum.png`
    """
    for line in journeys.info(file, out):
        typer.echo(line)

"""Commands for a system of one's own: explore it, plan, play."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

import rewardfree as rf
from rewardfree.cli.session import keep
from rewardfree.evaluation.diagnosis import diagnose
from rewardfree.files import check_target, kind_of
from rewardfree.interruption import terminated_as_interrupted
from rewardfree.planning import MeshPlan, WorldPlan
from rewardfree.registry import named, typed_names
from rewardfree.report.contents import experience_lines, plan_lines, transitions_lines
from rewardfree.report.experience import experience_figure, plan_figure
from rewardfree.report.film import write_film
from rewardfree.report.style import save
from rewardfree.strategies.explore import default_strategy
from rewardfree.worlds.gymnasium import recorded_environment


def explore(
    env: Annotated[str, typer.Argument(help="A Gymnasium environment, such as Pendulum-v1.")],
    transitions: Annotated[
        int | None, typer.Option(help="Transitions to keep; 1000 if no other limit.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Environment steps instead.")] = None,
    episodes: Annotated[int | None, typer.Option(help="Episodes instead.")] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Stop after that time; a step that blocks is waited for.")
    ] = None,
    max_sigma: Annotated[
        float | None, typer.Option(help="Stop when the largest sigma is this small.")
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(help=f"{', '.join(typed_names('strategy'))}; by default the best that works."),
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
    check_target(out)
    world = rf.from_gymnasium(env, horizon=horizon)
    if not isinstance(world, rf.World):
        raise ValueError(
            f"{env} has finitely many states and a table: use it from Python, rf.from_gymnasium({env!r})"
        )
    chosen = default_strategy(world) if strategy is None else named("strategy", strategy, beta=beta)
    if transitions is None and steps is None and episodes is None and seconds is None:
        transitions = 1000
    started = time.perf_counter()
    with terminated_as_interrupted():  # also while the data are written
        try:
            data = rf.explore(
                world,
                rf.Model(rf.AutoKernel(), pooled=True, centred=True),
                chosen,
                transitions=transitions,
                steps=steps,
                episodes=episodes,
                seconds=seconds,
                max_sigma=max_sigma,
                seed=seed,
                resume=None if resume is None else _experience(resume),
            )
        except rf.WorldFailed as failure:
            keep(failure.data.save, out)
            steps_kept = f"{failure.__cause__!r} after {len(failure.data)} steps; they are in {out}"
            typer.echo(f"rewardfree: {steps_kept}", err=True)
            raise typer.Exit(1) from None
        keep(data.save, out)
    took = time.perf_counter() - started
    typer.echo(f"{len(data)} steps in {took:.1f} s by {chosen!r}, stopped by {data.stopped_by}: {out}")
    if data.stopped_by == "interrupted":
        typer.echo(f"rewardfree: interrupted; go on with --resume {out}", err=True)
        raise typer.Exit(130)
    if data.is_box and data.kept.sum() > 2:
        typer.echo(diagnose(data).verdict)


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
    planner: Annotated[str, typer.Option(help=f"{', '.join(typed_names('planner'))}.")] = "default",
    beta: Annotated[float, typer.Option(help="For optimistic and pessimistic.")] = 0.1,
    out: Annotated[Path, typer.Option(help="Where the plan goes.")] = Path("plan.npz"),
) -> None:
    """Plan for a reward that the data never saw.

    Example: `rewardfree plan pendulum.npz --reward "-(theta**2 + 0.1*omega**2)" --horizon 200 --out plan.npz`
    """
    check_target(out)
    source = _experience(data)
    chosen = named("planner", planner, beta=beta, clip="range")  # few rewards of real systems lie in [0,1]
    started = time.perf_counter()
    made = rf.plan(source, reward, chosen, horizon=horizon, discount=discount, terminated=terminated)
    keep(made.save, out)
    typer.echo(f"{made!r} in {time.perf_counter() - started:.1f} s: {out}")


def evaluate(
    plan: Annotated[Path, typer.Argument(help="What `plan` wrote.")],
    episodes: Annotated[int, typer.Option(help="How many to play.")] = 20,
    seed: Annotated[int, typer.Option(help="Of their first states.")] = 1,
    reward: Annotated[str | None, typer.Option(help="A formula to count; by default the plan's own.")] = None,
    env: Annotated[
        str | None, typer.Option(help="An environment; by default the one that was explored.")
    ] = None,
    gif: Annotated[Path | None, typer.Option(help="A film of one episode (pygame and pillow).")] = None,
    allow_imports: Annotated[
        bool, typer.Option("--allow-imports", help="Import what the plan names as module:environment.")
    ] = False,
) -> None:
    """Play a plan in its environment and count its reward.

    Example: `rewardfree evaluate plan.npz --episodes 20 --gif swingup.gif`
    """
    if gif is not None:
        check_target(gif)
    played = rf.load_plan(plan)
    if not isinstance(played, WorldPlan):
        raise ValueError(f"{plan} is a plan for a finite world: play it from Python, rf.rollouts(...)")
    origin = {**played.provenance, "gymnasium": env, "options": {}} if env else played.provenance
    try:
        name, options = recorded_environment(origin, allow_imports or env is not None)
    except ValueError as error:
        raise ValueError(f"{plan}: {error}") from error
    if name is None:
        raise ValueError(f"{plan} does not say which environment it is for: give --env ID")
    text = reward or played.reward_text
    if text is None:
        raise ValueError(f"the reward of {plan} was a Python function: give --reward FORMULA to count")
    discount = played.discount if played.horizon is None else 1.0
    world: Any = rf.from_gymnasium(name, **options)
    score = rf.rollouts(world, played, text, episodes, seed, discount=discount)
    low, high = score.interval()
    typer.echo(
        f"mean return {score.mean:.4g} over {episodes} episodes (95% interval {low:.4g} .. {high:.4g})\n"
        f"from {score.returns.min():.4g} to {score.returns.max():.4g}, {score.lengths.mean():.4g} steps each"
    )
    if played.expected is not None and reward is None:
        typer.echo(f"inside its model the plan expected {played.expected:.4g}")
    if gif is not None:
        typer.echo(f"{write_film(gif, played, name, options, seed)} frames: {gif}")


def info(
    file: Annotated[Path, typer.Argument(help="Data or a plan.")],
    out: Annotated[Path | None, typer.Option(help="A picture, as .png, .pdf or .svg.")] = None,
) -> None:
    """Say what a file holds, what was covered, and whether exploration learned anything.

    Example: `rewardfree info pendulum.npz --out pendulum.png`
    """
    figure = None
    if file.suffix == ".csv" or kind_of(file) == "Experience":
        data = _experience(file)
        diagnosis = diagnose(data) if data.is_box else None
        lines = experience_lines(data, diagnosis)
        if out is not None and diagnosis is not None:
            figure = experience_figure(data, diagnosis, f"{file.name}: {diagnosis.verdict.split(':')[0]}")
    elif kind_of(file) == "Transitions":
        lines = transitions_lines(rf.Transitions.load(file))
    else:
        stored = rf.load_plan(file)
        lines = plan_lines(stored)
        if out is not None and isinstance(stored, MeshPlan):
            figure = plan_figure(stored, file.name)
    for line in lines:
        typer.echo(line)
    if figure is not None and out is not None:
        save(figure, out)
        typer.echo(f"picture     {out}")


def _experience(source: Path) -> rf.Experience:
    data = rf.Experience.from_csv(source) if source.suffix == ".csv" else rf.load(source)
    if not isinstance(data, rf.Experience):
        raise ValueError(
            f"{source} holds data of a finite world: use it from Python, rf.load({str(source)!r})"
        )
    return data

"""Commands for a system of one's own: explore it, plan, play."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import rewardfree as rf
from rewardfree.arrays import counted
from rewardfree.cli.console import console
from rewardfree.cli.session import Quiet, keep
from rewardfree.cli.worlds import AllowImports, is_own, placed, typed_world, world_of
from rewardfree.files import check_target, kind_of
from rewardfree.formulas import FUNCTIONS
from rewardfree.interruption import interrupted_once
from rewardfree.planning import WorldPlan
from rewardfree.registry import named, typed_names
from rewardfree.report.contents import contents_of, score_lines, verdict_of
from rewardfree.report.film import open_film, write_film
from rewardfree.report.pictures import check_forms
from rewardfree.report.style import save

#: What a formula may hold, beside the names of a world's variables.
FORMULA = (
    "It may hold numbers, pi, e, the step h, `+ - * / % **`, comparisons, and, or, not, a if c else b, "
    f"{', '.join(FUNCTIONS)}."
)
Action = Annotated[
    str | None,
    typer.Option(
        help="Action columns of a CSV file, with commas between; without next_ columns lines follow on."
    ),
]


def explore(
    env: Annotated[
        str,
        typer.Argument(
            help="A Gymnasium environment, such as Pendulum-v1, or module:Class, a world of your own."
        ),
    ],
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
        typer.Option(
            help=f"{', '.join(typed_names('strategy'))}; by default scout, or uniform where it cannot be."
        ),
    ] = None,
    beta: Annotated[float, typer.Option(help="For online and qiu.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Of everything that is random.")] = 0,
    horizon: Annotated[
        int | None, typer.Option(help="Steps of an episode; by default its time limit.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Data to go on from; limits are then totals.")] = None,
    out: Annotated[Path, typer.Option(help="Where the data go.")] = Path("data.npz"),
    allow_imports: AllowImports = False,
) -> None:
    """Explore an environment without any reward, and keep the transitions.

    Ctrl-C keeps what there is, and says how to go on.

    Examples: `rewardfree explore Pendulum-v1 --transitions 1000 --out pendulum.npz`,
    `rewardfree explore Acrobot-v1 --strategy generative --seconds 60`,
    `rewardfree explore my_world:Cart --allow-imports`
    """
    check_target(out)
    world = typed_world(env, allow_imports, horizon=horizon)
    chosen = None if strategy is None else named("strategy", strategy, beta=beta)
    if transitions is None and steps is None and episodes is None and seconds is None:
        transitions = 1000
    started = time.perf_counter()
    with interrupted_once():  # also while the data are written, and until it was said where they are
        try:
            data = rf.explore(
                world,
                strategy=chosen,
                transitions=transitions,
                steps=steps,
                episodes=episodes,
                seconds=seconds,
                max_sigma=max_sigma,
                seed=seed,
                resume=None if resume is None else _experience(resume),
            )
        except rf.ExplorationFailed as failure:
            before = "before the first step"  # nothing to keep: an earlier file of that name stays
            if failure.data:
                keep(placed(failure.data, env).save, out)
                before = f"after {counted(len(failure.data), 'step')}, kept in {out}"
            typer.echo(f"rewardfree: {failure.__cause__!r} {before}", err=True)
            raise typer.Exit(1) from None
        keep(placed(data, env).save, out)
        steps_made = f"{counted(len(data), 'step')} in {time.perf_counter() - started:.1f} s"
        typer.echo(f"{steps_made} by {data.strategy!r}, stopped by {data.stopped_by}: {out}")
        if data.stopped_by == "interrupted":
            typer.echo(f"rewardfree: interrupted; go on with --resume {out}", err=True)
            raise typer.Exit(130)
    if data.is_box:
        typer.echo(verdict_of(data))


def plan(
    data: Annotated[Path, typer.Argument(help="What `explore` wrote, or a CSV file of your own.")],
    reward: Annotated[
        str,
        typer.Option(help=f"A formula over the world's variables; next_x for the next state's. {FORMULA}"),
    ],
    horizon: Annotated[
        float | None, typer.Option(help="Steps of an episode, by default the world's; inf: no end.")
    ] = None,
    discount: Annotated[
        float | None, typer.Option(help="Of later rewards; below 1 where there is no end.")
    ] = None,
    terminated: Annotated[
        str | None, typer.Option(help="A formula: where episodes end; by default as the data saw it.")
    ] = None,
    planner: Annotated[str, typer.Option(help=f"{', '.join(typed_names('planner'))}.")] = "default",
    beta: Annotated[float, typer.Option(help="For optimistic and pessimistic.")] = 0.1,
    env: Annotated[
        str | None,
        typer.Option(help="The world that the data are of, for a CSV file: an environment or module:Class."),
    ] = None,
    action: Action = None,
    out: Annotated[Path, typer.Option(help="Where the plan goes.")] = Path("plan.npz"),
    quiet: Quiet = False,
    allow_imports: AllowImports = False,
) -> None:
    """Plan for a reward that the data never saw.

    Examples: `rewardfree plan pendulum.npz --reward "-(theta**2 + 0.1*omega**2)" --horizon 200`,
    `rewardfree plan log.csv --action push --reward "-abs(x)"`
    """
    check_target(out)
    world = None if env is None else typed_world(env, allow_imports)
    source = _experience(data, action, world)
    if out.exists() and out.samefile(data):
        raise ValueError(f"{out} holds the data, which the plan would replace: give --out another name")
    if world is not None and env is not None:
        source = placed(source, env)
        if horizon is None and discount is None:
            horizon = world.horizon
    chosen = named("planner", planner, beta=beta, clip="range")  # few rewards of real systems lie in [0,1]
    started = time.perf_counter()
    made = rf.plan(
        source,
        reward,
        chosen,
        horizon=horizon,
        discount=discount,
        terminated=terminated,
        progress=False if quiet else None,
    )
    keep(made.save, out)
    console(quiet).say(f"{made!r} in {time.perf_counter() - started:.1f} s: {out}")


def evaluate(
    plan: Annotated[Path, typer.Argument(help="What `plan` wrote.")],
    episodes: Annotated[int, typer.Option(help="How many to play.")] = 20,
    seed: Annotated[int, typer.Option(help="Of their first states.")] = 0,
    reward: Annotated[str | None, typer.Option(help="A formula to count; by default the plan's own.")] = None,
    env: Annotated[
        str | None,
        typer.Option(help="An environment or module:Class; by default the world that was explored."),
    ] = None,
    gif: Annotated[Path | None, typer.Option(help="A film of one episode (pygame and pillow).")] = None,
    allow_imports: AllowImports = False,
) -> None:
    """Play a plan in its environment and count its reward.

    Example: `rewardfree evaluate plan.npz --episodes 20 --gif swingup.gif`
    """
    if gif is not None:
        check_target(gif)
        if gif.exists() and gif.samefile(plan):
            raise ValueError(f"{gif} holds the plan, which the film would replace: give --gif another name")
    played = _stored_plan(plan)
    world, name, options = world_of(played, plan, env, allow_imports)
    text = reward or played.reward_text
    if text is None:
        raise ValueError(f"the reward of {plan} was a Python function: give --reward FORMULA to count")
    if gif is not None and is_own(name):
        raise ValueError(f"--gif films an environment of Gymnasium, and {name} is a world of your own")
    film = None if gif is None else open_film(name, options)
    discount = played.discount if played.horizon is None else 1.0
    for line in score_lines(rf.rollouts(world, played, text, episodes, seed, discount=discount)):
        typer.echo(line)
    if played.expected is not None and reward is None:
        typer.echo(f"inside its model the plan expected {played.expected:.4g}")
    if gif is not None:
        typer.echo(f"{counted(write_film(gif, played, film, seed), 'frame')}: {gif}")


def info(
    file: Annotated[Path, typer.Argument(help="Data or a plan.")],
    out: Annotated[Path | None, typer.Option(help="A picture, as .png, .pdf or .svg.")] = None,
    action: Action = None,
) -> None:
    """Say what a file holds, what was covered, and whether exploration learned anything.

    Example: `rewardfree info pendulum.npz --out pendulum.png`
    """
    if out is not None:  # before any work
        check_forms([out.suffix.lstrip(".")])
        out.parent.mkdir(parents=True, exist_ok=True)
        check_target(out)
    stored = _experience(file, action) if file.suffix == ".csv" else _stored(file, action)
    lines, figure = contents_of(stored, file.name, out is not None)
    for line in lines:
        typer.echo(line)
    if out is not None and figure is None:
        typer.echo("picture     none: three or more steps on real states, and plans on a mesh, can be drawn")
    elif out is not None:
        save(figure, out)
        typer.echo(f"picture     {out}")


def _stored(file: Path, action: str | None) -> Any:
    """The data or the plan in an npz file."""
    if kind_of(file) == "Experience":
        return _experience(file, action)
    return rf.load(file) if kind_of(file) == "Transitions" else rf.load_plan(file)


def _stored_plan(file: Path) -> WorldPlan:
    """The plan on real states in a file."""
    if kind_of(file) in ("Experience", "Transitions"):
        raise ValueError(f"{file} holds data: make a plan of them with `rewardfree plan`")
    plan = rf.load_plan(file)
    if not isinstance(plan, WorldPlan):
        raise ValueError(f"{file} is a plan for a finite world: play it from Python, rf.rollouts(...)")
    return plan


def _experience(source: Path, action: str | None = None, world: rf.World | None = None) -> rf.Experience:
    """The data in a file; a CSV file is read with the variables of a world, if one is given."""
    if action is not None and (world is not None or source.suffix != ".csv"):
        raise ValueError(
            "--action is for a CSV file without --env: npz files and worlds name their actions, leave it out"
        )
    data: Any
    if source.suffix == ".csv":
        names = None if action is None else [name.strip() for name in action.split(",")]
        spaces = (None, names) if world is None else (world.state, world.action)
        data = rf.Experience.from_csv(source, state=spaces[0], action=spaces[1])
    elif kind_of(source).endswith("Plan"):
        raise ValueError(f"{source} holds a plan: play it with `rewardfree evaluate`")
    else:
        data = rf.load(source)
    if not isinstance(data, rf.Experience):
        raise ValueError(
            f"{source} holds data of a finite world: use it from Python, rf.load({str(source)!r})"
        )
    if world is None:
        return data
    if data.spaces != world.spaces:
        raise ValueError(
            f"{source} speaks of {data.spaces}, and the world of {world.spaces}, "
            "or within other bounds: give the one that was explored"
        )
    return replace(data, observation=world.observation, provenance=dict(world.provenance))

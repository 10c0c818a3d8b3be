"""A plan at work, frame by frame."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rewardfree.files import written_whole
from rewardfree.planning import WorldPlan
from rewardfree.streams import stream
from rewardfree.worlds import from_gymnasium

#: A film of more frames is thinned.
MOST_FRAMES = 300
NEEDED = "a film needs pygame and pillow: pip install '.[render]' from the checkout"


def open_film(env: str, options: dict[str, Any]) -> Any:
    """The world of an environment that draws itself; without what drawing needs an error, before it plays."""
    import gymnasium

    if find_spec("PIL") is None:
        raise ValueError(NEEDED)
    try:
        world: Any = from_gymnasium(env, **{**options, "render_mode": "rgb_array"})
        world.reset(stream(0, "rollout", 0))
        with _quiet_sdl():
            world.env.render()
    except gymnasium.error.DependencyNotInstalled:
        raise ValueError(NEEDED) from None
    return world


@contextmanager
def _quiet_sdl() -> Iterator[None]:
    """A folder for SDL where the system has none: it would say so on standard error, and needs none."""
    before = os.environ.get("XDG_RUNTIME_DIR")
    if before:
        yield
        return
    with TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        try:
            yield
        finally:
            os.environ.pop("XDG_RUNTIME_DIR", None)
            if before is not None:  # empty, but set
                os.environ["XDG_RUNTIME_DIR"] = before


def write_film(path: Path, plan: WorldPlan, world: Any, seed: int) -> int:
    """Play one episode in what `open_film` returned and write it as GIF; returns the number of frames."""
    from PIL import Image

    state = world.reset(stream(seed, "rollout", 0))
    frames = [world.env.render()]
    for h in range(plan.horizon or world.horizon):
        state, terminated, cut = world.step(plan.act(state, h))
        frames.append(world.env.render())
        if terminated or cut:
            break
    pause = 1000 // int(world.env.metadata.get("render_fps", 30))
    every = -(-len(frames) // MOST_FRAMES)
    images = [Image.fromarray(frame) for frame in frames[::every]]
    with written_whole(path) as part:
        images[0].save(
            part, format="GIF", save_all=True, append_images=images[1:], duration=pause * every, loop=0
        )
    return len(images)

"""Explore Pendulum once, plan for three rewards, and film the plans side by side (pygame and pillow)."""

import numpy as np
from PIL import Image, ImageDraw

import rewardfree as rf

STEPS, SIDE = 120, 200
REWARDS = {
    "swing up": "-(theta**2 + 0.1*omega**2 + 0.001*torque**2)",
    "spin at speed 5": "-abs(omega - 5)",
    "hang still": "-(1 + cos(theta)) - 0.1*omega**2",
}

world = rf.from_gymnasium("Pendulum-v1", render_mode="rgb_array")
data = rf.explore(world, strategy=rf.Scout(), transitions=400, seed=0)  # no reward in sight
plans = rf.plan_many(data, list(REWARDS.values()))


def film(plan):
    """Pictures of one episode."""
    state, pictures = world.reset(np.random.default_rng(5)), []
    for h in range(STEPS):
        middle = world.env.render()[100:400, 100:400]
        pictures.append(Image.fromarray(middle).resize((SIDE, SIDE)))
        state, _, _ = world.step(plan.act(state, h))
    return pictures


films = [film(plan) for plan in plans]
frames = []
for pictures in zip(*films, strict=True):
    frame = Image.new("RGB", (SIDE * len(pictures), SIDE + 20), "white")
    for i, (name, picture) in enumerate(zip(REWARDS, pictures, strict=True)):
        frame.paste(picture, (i * SIDE, 20))
        ImageDraw.Draw(frame).text((i * SIDE + 10, 4), name, fill="black")
    frames.append(frame.quantize(16))
frames[0].save("three_rewards.gif", save_all=True, append_images=frames[1:], duration=50, loop=0)
print(
    f"{len(data)} steps explored, {len(plans)} rewards planned for, {len(frames)} frames: three_rewards.gif"
)

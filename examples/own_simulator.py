"""Your own simulator: a cart on a track with wind, explored once, planned for three rewards."""

import numpy as np

import rewardfree as rf


class Cart(rf.World):
    """What the library asks of a world; it never speaks of a reward."""

    state = rf.Box.of(x=(-2.5, 2.5), v=(-3.0, 3.0))  # names and bounds; "angle" for one that wraps around
    action = rf.Box.of(push=(-1.0, 1.0))  # or rf.Discrete(3)
    horizon = 60

    def start(self, rng):
        return np.array([rng.uniform(-1.0, 1.0), 0.0])

    def sample(self, state, action, h, rng):  # many at once: states (n, 2), actions (n, 1)
        v = state[:, 1] + 0.1 * (action[:, 0] - 0.3 * np.sin(2.0 * state[:, 0]))
        x = state[:, 0] + 0.1 * v
        return np.stack([x, v], axis=1), np.abs(x) > 2.0  # next states, and whether it fell off the track


if __name__ == "__main__":
    world = Cart()
    model = rf.Model(rf.AutoKernel(), pooled=True, centred=True)
    data = rf.explore(world, model, rf.Scout(), transitions=300, seed=0)
    for reward in ("-(x - 1)**2 - 0.1*v**2", "-(x + 1)**2 - 0.1*v**2", "abs(v) - 0.1*push**2"):
        plan = rf.plan(data, reward, terminated="abs(x) > 2")
        print(f"{reward:<28} {rf.rollouts(world, plan, reward, episodes=20, seed=1)}")

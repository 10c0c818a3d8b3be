"""Explore a noisy corridor once, without a reward; then plan for rewards that come up later."""

import numpy as np

import rewardfree as rf

corridor = rf.worlds.corridor_world(states=50, actions=20)
world, far_end = corridor.world, corridor.reward  # the world itself holds no reward
print(rf.describe(world, far_end))

# The corridor is the same at every step, so one regression may serve them all: pooled=True.
model = rf.Model(rf.Matern(nu=1.5, lengthscale=0.1), ridge=0.1, pooled=True, centred=True)
data = rf.explore(world, model, rf.Online(beta=0.1), transitions=400, seed=0)
print(data)

position = world.states  # (s,1)
halfway = np.exp(-0.5 * ((position - 0.5) / 0.05) ** 2) * np.ones(20)
rewards = {"the far end": far_end, "halfway": halfway}
for name, plan in zip(rewards, rf.plan_many(data, list(rewards.values()), rf.Mean()), strict=True):
    optimal = float(rf.optimal_value(world, rewards[name])[0] @ world.start)
    print(f"{name}: gap {rf.gap(world, plan, rewards[name]).start:.3f} of V* = {optimal:.3f}")

# What the same run would have given, had it been stopped earlier.
for transitions in (100, 200, 400):
    plan = rf.plan(data.first(transitions=transitions), far_end)
    print(f"with {transitions} transitions: gap {rf.gap(world, plan, far_end).start:.3f}")

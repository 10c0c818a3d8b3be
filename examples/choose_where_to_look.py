"""Plan experiments on a rig with two dials before running any, and see what they would leave unknown."""

import numpy as np

import rewardfree as rf

# Two dials, 50 positions each; the response is expected to vary over a tenth of the range of either.
dial = np.linspace(0.0, 1.0, 50)
settings = np.stack(np.meshgrid(dial, dial, indexing="ij"), axis=-1).reshape(-1, 2)
model = rf.Model(rf.Matern(nu=2.5, lengthscale=0.1), ridge=0.05)

plan = rf.query_plan(model, settings, n=120)
path = rf.strategies.uncertainty_path(model, settings, plan)
for n in (0, 30, 60, 120):
    print(f"after {n:3d} experiments: largest uncertainty {path.largest[n]:.3f}")

# Later, with the measurements in hand, the same points answer for any quantity that was recorded.
design = model.design()
design.extend(settings[plan])
temperature = np.sin(5 * settings[plan, 0]) * settings[plan, 1]
print("predicted temperature at the centre:", design.mean(temperature, at=[[0.5, 0.5]]).round(3))
print("its uncertainty:", design.std(at=[[0.5, 0.5]]).round(3))

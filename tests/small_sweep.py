"""A small sweep that several files of tests run."""

from rewardfree.experiments.export import write_csv
from rewardfree.experiments.store import Store
from rewardfree.experiments.unit import InstanceCache, SweepUnit

TOML = """
name = "small"
runs = 5
batch = 2
samples_per_step = [3, 6]

[[worlds]]
name = "paper"
type = "rkhs_world"
kernel = {type = "Matern", nu = 1.5, lengthscale = 0.1}
ridge = 0.5
states = 12
actions = 10
coarse = 4

[[worlds]]
type = "corridor_world"
states = 10
actions = 6

[[models]]
name = "matern"
type = "Model"
kernel = {type = "Matern", nu = 1.5, lengthscale = 0.1}
ridge = 0.5

[[models]]
name = "se"
type = "Model"
kernel = {type = "SquaredExponential", lengthscale = [0.1, 0.2]}
ridge = 0.01
for = ["paper"]

[[strategies]]
type = "Generative"

[[strategies]]
name = "online"
type = "Online"
beta = 0.1

[[planners]]
name = "mean"
type = "Mean"

[[planners]]
name = "optimistic"
type = "Optimistic"
beta = 0.1
"""


def runs_of(sweep):
    """The units that explore."""
    return [unit for unit in sweep.units if isinstance(unit, SweepUnit)]


DELTA = {"type": "Model", "kernel": {"type": "Delta"}, "ridge": 1.0}


def exported(path):
    with Store(path) as store, (path.parent / "out.csv").open("w+", newline="") as file:
        write_csv(store, file)
        file.seek(0)
        return file.read()


def table(**changes):
    import tomllib

    return tomllib.loads(TOML) | changes


def stored(sweep, path):
    """A store of a sweep's units, with nothing left beside it."""
    cache = InstanceCache()
    with Store(path) as store:
        store.want(unit.key for unit in sweep.units)
        for unit in sweep.units:
            store.add(unit, unit.run(cache))

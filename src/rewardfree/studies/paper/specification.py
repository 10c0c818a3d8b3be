"""The paper's experiments as sweeps: what Figures 1 and 5 to 10 show, under one reading of its text."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import rewardfree as rf
from rewardfree.arrays import count
from rewardfree.experiments.sweep import MOST_RUNS, Sweep, check_device_name
from rewardfree.presets import PUBLISHED, Preset, preset_named
from rewardfree.registry import build
from rewardfree.studies.study import typed

#: The paper's kernels, in the order of its figures.
KERNELS: dict[str, dict[str, Any]] = {
    "se": {"type": "SquaredExponential", "lengthscale": 0.1},
    "matern25": {"type": "Matern", "nu": 2.5, "lengthscale": 0.1},
    "matern15": {"type": "Matern", "nu": 1.5, "lengthscale": 0.1},
}
BETA = 0.1
BETAS = (0.1, 1.0, 10.0, 100.0)
#: How many runs and draws a figure has, unless a user says otherwise. Figure 1 has the paper's 80; the
#: appendix does not say, and there the lines of 20 runs lie close enough to tell betas and draws apart.
RUNS = {"figure1": 80, "betas": 20, "repeats": 20}
DRAWS = 10


@dataclass(frozen=True)
class Scale:
    """How large the worlds are and when runs are planned."""

    states: int  # as many actions
    checkpoints: tuple[int, ...]
    batch: int  # runs that a worker plays side by side: faster together, until their memory is the limit


PAPER = Scale(100, (10, 20, 40, 80, 160), 8)
#: Seconds, for a look: the curves of such worlds say nothing about the paper's.
QUICK, QUICK_RUNS, QUICK_DRAWS = Scale(20, (4, 8, 16), 4), 4, 3


def paper_strategies(preset: Preset, beta: float = BETA) -> dict[str, rf.strategies.Strategy]:
    """The four explorers as the preset runs them."""
    return {
        "generative": rf.Generative(ties=preset.ties),
        "online": rf.Online(beta, fresh=preset.fresh, ties=preset.ties, empty=preset.empty),
        "qiu": rf.Qiu(beta, ties=preset.ties, empty=preset.empty),
        "greedy": rf.GreedyMaxVariance(ties=preset.ties, empty=preset.empty),
    }


@dataclass(frozen=True)
class PaperSettings:
    """Which reading of the paper, on which kernels and which draws of its worlds."""

    preset: str = PUBLISHED.name
    kernels: tuple[str, ...] = tuple(KERNELS)
    seed: int = 0  # the draw of Figure 1; the repeats are those from here on
    runs: int | None = None  # None: as many as the figure has
    draws: int | None = None  # None: DRAWS
    quick: bool = False
    device: str = "cpu"

    def __post_init__(self) -> None:
        preset_named(self.preset)
        for kernel in self.kernels:
            if kernel not in KERNELS:
                raise ValueError(f"kernels must be among {', '.join(KERNELS)}, got {kernel!r}")
        if not self.kernels or len(set(self.kernels)) < len(self.kernels):
            raise ValueError(f"kernels must be different and at least one, got {', '.join(self.kernels)!r}")
        object.__setattr__(self, "kernels", tuple(self.kernels))
        count(self.seed, "seed", at_least=0)
        check_device_name(self.device)
        for name in ("runs", "draws"):
            if getattr(self, name) is not None:
                count(getattr(self, name), name, at_most=MOST_RUNS)

    @property
    def reading(self) -> Preset:
        return preset_named(self.preset)

    @property
    def scale(self) -> Scale:
        return QUICK if self.quick else PAPER

    @property
    def every_draw(self) -> range:
        """The seeds of the worlds that are repeats of each other."""
        return range(self.seed, self.seed + (self.draws or (QUICK_DRAWS if self.quick else DRAWS)))

    @property
    def _changed(self) -> dict[str, Any]:
        """The options that are not the defaults."""
        options = {
            "preset": (self.preset, PUBLISHED.name),
            "kernels": (",".join(self.kernels), ",".join(KERNELS)),
            "seed": (self.seed, 0),
            "runs": (self.runs, None),
            "draws": (self.draws, None),
            "device": (self.device, "cpu"),
        }
        return {name: value for name, (value, usual) in options.items() if value != usual}

    @property
    def variant(self) -> str:
        """What sets these results apart from those of the defaults: an ending for a folder's name."""
        changed = self._changed
        ends = [changed.pop("preset", ""), "quick" * self.quick, changed.pop("kernels", "").replace(",", "+")]
        device = changed.pop("device", "").replace(":", "")
        ends += [*(f"{name}{value}" for name, value in changed.items()), device]
        return "".join(f"-{end}" for end in ends if end)

    @property
    def settings(self) -> str:
        """What tables and titles say about where they come from."""
        size = f"{self.scale.states} states and actions{', QUICK: too small to mean anything' * self.quick}"
        where = f", on {self.device}" if self.device != "cpu" else ""
        return f"preset {self.preset}, draw {self.seed}, {size}{where}"

    def command_of(self, name: str) -> str:
        """What is typed for one of the paper's figures."""
        return typed(name, self._changed, self.quick)

    def folder_of(self, name: str) -> str:
        """Results of other settings have a folder of their own: what is in one belongs together."""
        return f"{name}{self.variant}"

    def instances(self) -> dict[str, rf.Instance]:
        """The world and the reward of each kernel, as Figure 1 has them."""
        return {kernel: build("world", self._world(kernel, self.seed)) for kernel in self.kernels}

    # Sweeps

    def figure1(self) -> Sweep:
        """Gaps against samples: four algorithms, and two more lines that a reader should see.

        Uniformly random data, and Alg 2 with random ties: while the domain is empty its list of queries is
        decided by ties, and the curve of the lowest index is one among many.
        """
        strategies = {
            **self._four(),
            "generative-ties": rf.Generative(ties="random"),
            "uniform": rf.Uniform(),
        }
        return self._sweep("figure1", [self.seed], _tables(strategies), self._planners())

    def betas(self) -> Sweep:
        """The four algorithms for every beta, which is both the explorer's and the planner's."""
        strategies: dict[str, Any] = {}
        planners: dict[str, Any] = {}
        for beta in BETAS:
            tables = {
                f"{name}-{beta:g}" if "beta" in table else name: table  # the others do not know beta
                for name, table in _tables(self._four(beta)).items()
            }
            strategies |= tables
            planners[f"optimistic-{beta:g}"] = {**self._planners(beta)["optimistic"], "for": list(tables)}
        strategies |= _tables({"uniform": rf.Uniform()})
        planners["mean"] = {**self._planners()["mean"], "for": ["uniform"]}
        return self._sweep("betas", [self.seed], strategies, planners)

    def repeats(self) -> Sweep:
        """Figure 1 on other draws of r and P."""
        strategies = _tables({**self._four(), "uniform": rf.Uniform()})
        return self._sweep("repeats", self.every_draw, strategies, self._planners())

    def _sweep(
        self, name: str, seeds: Sequence[int], strategies: dict[str, Any], planners: dict[str, Any]
    ) -> Sweep:
        worlds: dict[str, Any] = {}
        models: dict[str, Any] = {}
        for kernel in self.kernels:
            draws = {draw_name(kernel, seed): self._world(kernel, seed) for seed in seeds}
            ridge = self.reading.ridge(build("kernel", KERNELS[kernel]))
            models[kernel] = {
                "type": "Model", "kernel": KERNELS[kernel], "ridge": ridge, "for": list(draws),
            }  # fmt: skip
            worlds |= draws
        parts = {"worlds": worlds, "models": models, "strategies": strategies, "planners": planners}
        table = {
            part: [{"name": entry, **options} for entry, options in entries.items()]
            for part, entries in parts.items()
        }
        settings = {
            "runs": self.runs or (QUICK_RUNS if self.quick else RUNS[name]),
            "batch": self.scale.batch,
            "samples_per_step": list(self.scale.checkpoints),
        }
        sweep = Sweep.of({**settings, **table}, name)
        return sweep if self.device == "cpu" else sweep.on(self.device)

    def _world(self, kernel: str, seed: int) -> dict[str, Any]:
        size = {"states": self.scale.states, "actions": self.scale.states} if self.quick else {}
        return {"type": "rkhs_world", "kernel": KERNELS[kernel], "preset": self.preset, "seed": seed, **size}

    def _four(self, beta: float = BETA) -> dict[str, rf.strategies.Strategy]:
        return paper_strategies(self.reading, beta)

    def _planners(self, beta: float = BETA) -> dict[str, Any]:
        ties = self.reading.ties
        return _tables({"optimistic": rf.Optimistic(beta, ties=ties), "mean": rf.Mean(ties=ties)})


def draw_name(kernel: str, seed: int) -> str:
    """What a kernel's world of that draw is called."""
    return f"{kernel}, draw {seed}"


def _tables(objects: dict[str, Any]) -> dict[str, Any]:
    """Strategies or planners as they are written in a sweep's file."""
    return {name: {"type": type(value).__name__, **asdict(value)} for name, value in objects.items()}

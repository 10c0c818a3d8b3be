"""The paper's experiments as sweeps: what Figures 1 and 5 to 10 show, under one reading of its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rewardfree.arrays import count
from rewardfree.experiments.naming import build
from rewardfree.experiments.paper import paper_strategies
from rewardfree.experiments.sweep import Sweep, check_device_name
from rewardfree.planning import Mean, Optimistic
from rewardfree.presets import PUBLISHED, Preset, preset_named
from rewardfree.strategies import Generative, Uniform
from rewardfree.worlds import Instance

#: The paper's kernels, in the order of its figures.
KERNELS: dict[str, dict[str, Any]] = {
    "se": {"type": "SquaredExponential", "lengthscale": 0.1},
    "matern25": {"type": "Matern", "nu": 2.5, "lengthscale": 0.1},
    "matern15": {"type": "Matern", "nu": 1.5, "lengthscale": 0.1},
}
BETA = 0.1
BETAS = (0.1, 1.0, 10.0, 100.0)
#: How many runs and draws a figure has, unless somebody says otherwise. Figure 1 has the paper's 80; the
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


@dataclass(frozen=True)
class Reproduction:
    """Which reading of the paper, on which kernels and which draws of its worlds."""

    preset: Preset
    kernels: tuple[str, ...] = tuple(KERNELS)
    seed: int = 0  # the draw of Figure 1; the repeats are those from here on
    runs: int | None = None  # None: RUNS
    draws: int | None = None  # None: DRAWS
    quick: bool = False
    device: str = "cpu"

    def __post_init__(self) -> None:
        if preset_named(self.preset.name) != self.preset:
            raise ValueError(f"preset {self.preset.name} was changed: write a sweep of your own for that")
        for kernel in self.kernels:
            if kernel not in KERNELS:
                raise ValueError(f"kernels must be among {', '.join(KERNELS)}, got {kernel!r}")
        if not self.kernels or len(set(self.kernels)) < len(self.kernels):
            raise ValueError(f"kernels must be different and at least one, got {', '.join(self.kernels)!r}")
        count(self.seed, "seed", at_least=0)
        check_device_name(self.device)
        for name in ("runs", "draws"):
            if getattr(self, name) is not None:
                count(getattr(self, name), name)

    @property
    def variant(self) -> str:
        """What sets these results apart from those of the defaults: an ending for a folder's name."""
        parts = [
            self.preset.name if self.preset != PUBLISHED else "",
            "quick" if self.quick else "",
            "+".join(self.kernels) if self.kernels != tuple(KERNELS) else "",
            f"seed{self.seed}" if self.seed else "",
            f"runs{self.runs}" if self.runs is not None else "",
            f"draws{self.draws}" if self.draws is not None else "",
            self.device.replace(":", "") if self.device != "cpu" else "",
        ]
        return "".join(f"-{part}" for part in parts if part)

    @property
    def settings(self) -> str:
        """What tables and titles say about where they come from."""
        size = f"{self.scale.states} states and actions{', QUICK: too small to mean anything' * self.quick}"
        where = f", on {self.device}" if self.device != "cpu" else ""
        return f"preset {self.preset.name}, draw {self.seed}, {size}{where}"

    def command(self, name: str) -> str:
        """What was typed for one of its parts."""
        given = {
            "preset": self.preset.name if self.preset != PUBLISHED else None,
            "kernels": ",".join(self.kernels) if self.kernels != tuple(KERNELS) else None,
            "seed": self.seed or None,
            "runs": self.runs,
            "draws": self.draws,
            "device": self.device if self.device != "cpu" else None,
        }
        options = "".join(f" --{option} {value}" for option, value in given.items() if value is not None)
        return f"rewardfree reproduce {name}{options}{' --quick' * self.quick}"

    @property
    def scale(self) -> Scale:
        return QUICK if self.quick else PAPER

    @property
    def every_draw(self) -> range:
        """The seeds of the worlds that are repeats of each other."""
        return range(self.seed, self.seed + (self.draws or (QUICK_DRAWS if self.quick else DRAWS)))

    def figure1(self) -> Sweep:
        """Gaps against samples: four algorithms, and two more lines that a reader should see.

        Uniformly random data, and Alg 2 with random ties: while the domain is empty its list of queries is
        decided by ties, and the curve of the lowest index is one among many.
        """
        strategies = {
            **self._four(),
            "generative-ties": _table(Generative(ties="random")),
            "uniform": _table(Uniform()),
        }
        return self._sweep("figure1", [self.seed], strategies, self._planners())

    def betas(self) -> Sweep:
        """The four algorithms for every beta, which is both the explorer's and the planner's."""
        strategies: dict[str, Any] = {}
        planners: dict[str, Any] = {}
        for beta in BETAS:
            planned = []
            for name, table in self._four(beta).items():
                own = f"{name}-{beta:g}" if "beta" in table else name  # the others do not know beta
                strategies[own] = table
                planned.append(own)
            planners[f"optimistic-{beta:g}"] = {**self._optimistic(beta), "for": planned}
        strategies["uniform"] = _table(Uniform())
        planners["mean"] = {**self._mean(), "for": ["uniform"]}
        return self._sweep("betas", [self.seed], strategies, planners)

    def repeats(self) -> Sweep:
        """Figure 1 on other draws of r and P."""
        strategies = {**self._four(), "uniform": _table(Uniform())}
        return self._sweep("repeats", self.every_draw, strategies, self._planners())

    def worlds(self) -> dict[str, Instance]:
        """The world and the reward of each kernel, as Figure 1 has them."""
        return {kernel: build("world", self._world(kernel, self.seed)) for kernel in self.kernels}

    def _sweep(
        self, name: str, seeds: Sequence[int], strategies: dict[str, Any], planners: dict[str, Any]
    ) -> Sweep:
        worlds: dict[str, Any] = {}
        models: dict[str, Any] = {}
        for kernel in self.kernels:
            drawn = {draw_name(kernel, seed): self._world(kernel, seed) for seed in seeds}
            ridge = self.preset.ridge(build("kernel", KERNELS[kernel]))
            models[kernel] = {
                "type": "Model", "kernel": KERNELS[kernel], "ridge": ridge, "for": list(drawn),
            }  # fmt: skip
            worlds |= drawn
        parts = {"worlds": worlds, "models": models, "strategies": strategies, "planners": planners}
        table = {
            part: [{"name": own, **each} for own, each in tables.items()] for part, tables in parts.items()
        }
        settings = {
            "runs": self.runs or (QUICK_RUNS if self.quick else RUNS[name]),
            "batch": self.scale.batch,
            "samples_per_step": list(self.scale.checkpoints),
        }
        sweep = Sweep.of({**settings, **table}, name)
        return sweep if self.device == "cpu" else sweep.on(self.device)

    def _world(self, kernel: str, seed: int) -> dict[str, Any]:
        side = {"states": self.scale.states, "actions": self.scale.states} if self.quick else {}
        about = {"preset": self.preset.name, "seed": seed, **side}
        return {"type": "rkhs_world", "kernel": KERNELS[kernel], **about}

    def _four(self, beta: float = BETA) -> dict[str, Any]:
        return {name: _table(strategy) for name, strategy in paper_strategies(self.preset, beta).items()}

    def _planners(self) -> dict[str, Any]:
        return {"optimistic": self._optimistic(BETA), "mean": self._mean()}

    def _mean(self) -> dict[str, Any]:
        return _table(Mean(ties=self.preset.ties))

    def _optimistic(self, beta: float) -> dict[str, Any]:
        return _table(Optimistic(beta, ties=self.preset.ties))


def draw_name(kernel: str, seed: int) -> str:
    """What a kernel's world of that draw is called."""
    return f"{kernel}, draw {seed}"


def _table(value: Any) -> dict[str, Any]:
    """A strategy or planner as it is written in a sweep's file."""
    return {"type": type(value).__name__, **asdict(value)}

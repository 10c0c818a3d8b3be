"""What a run on a world of real states has learnt so far, brought up to date when it is needed."""

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

from rewardfree.data import Row
from rewardfree.dynamics import ExplorationValue
from rewardfree.estimates import OBJECTIVES, Backup, SampledEstimate, SampledRecursion
from rewardfree.model import Model
from rewardfree.strategies.world_run import WorldRun
from rewardfree.worlds.scaling import ScaledModel

#: Random steps before a kernel is fitted for the first time.
PILOT = 50
#: While exploring, a kernel is fitted to at most this many points: it is fitted often, and again at the end.
MOST_POINTS = 300
#: Inducing points of posteriors that are not exact: few, because posteriors are made anew often, too.
INDUCING = 300
#: Candidates that a Box of actions gets.
PLAYED_ACTIONS = 9
#: The exploration value is updated after this many new transitions.
COUNTED = 10

#: The Bellman line of a strategy, by the horizon and the largest sigma before there are samples.
BackupRule: TypeAlias = Callable[[int, Callable[[], float]], Backup]


def refitted_at(n: int) -> int:
    """The last number of transitions, up to n, at which kernels and plans are refitted."""
    thousands = n - n % 1000
    return thousands + (n - thousands) // _between_refits(n) * _between_refits(n)


def next_refit(n: int) -> int:
    """The first number of transitions above n at which kernels and plans are refitted."""
    thousands = n - n % 1000
    return min(refitted_at(n) + _between_refits(n), thousands + 1000)


def _between_refits(n: int) -> int:
    """The more there is, the less a few more change; and a refit takes a pass over all of it."""
    return 50 if n < 200 else 100 * min(max(n // 1000, 1), 5)


def while_exploring(model: Model, points: int) -> Model:
    """The model as a run uses it, on that number of points: cheaper than the one it leaves in the end."""
    return model.at_most(MOST_POINTS).for_points(points, INDUCING)


class CurrentEstimate:
    """The estimate of [P_h V] from all that a run kept; a fitted kernel is refitted now and then."""

    def __init__(self, run: WorldRun) -> None:
        self._run, self._fitted_at, self._added = run, -1, 0
        self._estimate: SampledEstimate | None = None

    @property
    def kept(self) -> int:
        """How many steps the run has kept."""
        return self._run.kept

    def ready(self, kept: int) -> bool:
        """Whether this many steps are enough to fit a kernel to, where one has to be."""
        return not self._run.model.automatic or (kept >= PILOT and self._run.can_fit(refitted_at(kept)))

    def estimate(self, upto: int | None = None) -> SampledEstimate:
        """From the first `upto` kept steps, by default all; a later question must not ask for fewer.

        What came after the last fit is added one by one, whether or not the run was resumed.
        """
        run = self._run
        rows = run.kept_rows(upto)
        fitted_at = self._refit_before(rows)
        if self._estimate is None or fitted_at != self._fitted_at:
            self._estimate = self._refitted(fitted_at)
            self._fitted_at = self._added = fitted_at
        for row in rows[self._added :]:
            self._estimate.add(row)
        self._added = len(rows)
        return self._estimate

    def _refit_before(self, rows: list[Row]) -> int:
        """The number of steps, up to these, at which the estimate was last made anew."""
        fitted_at, model = refitted_at(len(rows)), self._run.model
        if model.automatic:
            return fitted_at
        # A fixed kernel needs no refit, but the choice of inducing points does once there are any.
        return fitted_at if self._for(rows[:fitted_at]).inducing != model.inducing else 0

    def _for(self, rows: list[Row]) -> Model:
        """The run's model for these steps."""
        model = self._run.model
        steps = [0 if model.pooled else row.h for row in rows]
        return while_exploring(model, max(Counter(steps).values(), default=0))

    def largest_sigma(self) -> float:
        """Over every action at the next states seen."""
        if not self.ready(self.kept):
            return math.inf
        estimate = self.estimate()
        largest = -math.inf
        for h in range(estimate.steps):
            if estimate.count(h) == 0:
                return math.inf  # nothing is known of this step
            seen = estimate.at_next_states(h, h)
            largest = max(largest, float(seen.sigma[:, ~seen.terminated].max(initial=0.0)))
        return largest

    def _refitted(self, kept: int) -> SampledEstimate:
        """With a kernel for the first kept steps, and these loaded."""
        run, strategy = self._run, self._run.strategy
        samples = run.samples(kept)
        model = self._for(run.kept_rows(kept))
        scaled = ScaledModel.fit(run.spaces, model, samples, strategy.open_ends, behind_walls=False)
        actions = run.spaces.action.candidates(PLAYED_ACTIONS)
        estimate = SampledEstimate(run.spaces, scaled, run.horizon, actions, strategy)
        steps = [row.h for row in run.kept_rows(kept)]
        for h in range(estimate.steps):
            chosen = [i for i, step in enumerate(steps) if estimate.steps == 1 or step == h]
            if chosen:
                estimate.load(h, samples[chosen])
        return estimate


class EpisodePlan:
    """Greedy actions by one Bellman line, from the steps that were kept when this was made.

    Computed when it is first asked. A pooled model is the same at every step, so one recursion to the last
    step is enough: an episode that ends earlier starts later in it.
    """

    def __init__(self, current: CurrentEstimate, run: WorldRun, rule: BackupRule) -> None:
        self._current, self._run, self._rule = current, run, rule
        self._kept = current.kept  # at this moment: what comes later is not used here
        self._recursions: dict[int, SampledRecursion] = {}
        self._estimate: SampledEstimate | None = None

    def action(self, state: Any, h: int, last: int) -> Any:
        """The action at step h of an episode that ends with step `last`."""
        if not self._current.ready(self._kept):
            return self._run.random_action()
        if self._estimate is None:
            self._estimate = self._current.estimate(self._kept)
        estimate, H = self._estimate, self._run.horizon
        end, step = (H - 1, H - 1 - (last - h)) if estimate.steps == 1 else (last, h)
        if end not in self._recursions:
            self._recursions[end] = SampledRecursion(estimate, end, self._rule(H, self._prior_sigma))
        q = self._recursions[end].q(step, state[None])[:, 0]
        return estimate.actions[self._run.largest(q)]

    def _prior_sigma(self) -> float:
        assert self._estimate is not None
        return self._estimate.prior_sigma


class CurrentExploration:
    """The exploration value of a run, computed anew now and then."""

    def __init__(self, run: WorldRun, objective: Callable[[Any, float], Any] = OBJECTIVES["sigma"]) -> None:
        self._run, self._objective, self._fitted_at, self._counted = run, objective, -1, 0
        self._value: ExplorationValue | None = None

    def value(self, kept: int | None = None) -> ExplorationValue:
        """From the transitions up to the last refit before this many were kept, by default all of them."""
        run = self._run
        fitted_at = refitted_at(run.kept if kept is None else kept)
        if self._value is None or fitted_at != self._fitted_at:
            model, samples = while_exploring(run.model, fitted_at), run.samples(fitted_at)
            self._value = ExplorationValue(run.spaces, model, samples, self._objective)
            self._fitted_at = self._counted = fitted_at
        return self._value

    def up_to_date(self) -> ExplorationValue:
        """`value`, in which the samples since the last refit count, too."""
        value, samples = self.value(), self._run.samples(self._run.kept)
        while self._counted + COUNTED <= len(samples):  # one by one, so that a resumed run does the same
            value.count(samples[list(range(self._counted, self._counted + COUNTED))])
            self._counted += COUNTED
        return value

    def largest_sigma(self) -> float:
        """Over every action at the next states seen."""
        value = self.value()
        samples = self._run.samples(self._fitted_at)
        going = samples.next_state[~samples.terminated]
        pairs = value.spaces.every_pair(going, value.actions)
        return float(value.sigma(*pairs).max(initial=0.0))

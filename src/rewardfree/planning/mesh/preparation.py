"""All that planning on a mesh needs of data, and of no reward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rewardfree.data import Experience
from rewardfree.dynamics import (
    Dynamics,
    GivenTermination,
    Mesh,
    MeshDynamics,
    ObservedTermination,
    trusted_box,
)
from rewardfree.dynamics.extent import met_box
from rewardfree.dynamics.mesh_dynamics import NextStateModel
from rewardfree.model import Model
from rewardfree.rewards import ends_of

if TYPE_CHECKING:
    from rewardfree.planning.mesh.planner import DynamicsPlanner

#: The most nodes for each variable, by the number of variables.
SIDES = {1: 201, 2: 61, 3: 41, 4: 19}
#: All actions at all nodes: of the first mesh, and of one that is laid over what its plan meets.
FIRST_ROWS, ROWS = 110_000, 270_000
#: On more variables the mesh is coarse: it is laid again where it matters, and plans look further ahead.
REFINED_ABOVE = 2
#: States met inside the model are widened by this share before a mesh is laid over them.
MARGIN = 0.1


class Preparation:
    """Learnt dynamics, where episodes end, and the first mesh: computed once, it serves every reward."""

    def __init__(
        self,
        planner: DynamicsPlanner,
        data: Experience,
        model: Model | None,
        terminated: Any,
        predictor: NextStateModel | None,
    ) -> None:
        # Not the data themselves, which hold this for the next reward.
        self.planner, self.spaces = planner, data.spaces
        self.observation, self.provenance = data.observation, data.provenance
        samples = data.at(np.flatnonzero(data.kept))
        if len(samples) < 2:
            raise ValueError(f"at least two transitions are needed to learn dynamics, got {len(samples)}")
        scaled = data.fitted if model is None else None
        self.dynamics = Dynamics.learn(data.spaces, model or data.model, samples, scaled)
        if self.dynamics.space.size not in SIDES:
            raise ValueError(
                f"DynamicsPlanner takes up to {max(SIDES)} state variables, got {self.dynamics.space.size}: "
                'use rf.Mean(clip="range"), which regresses values instead'
            )
        self.is_end: Any
        if terminated is None:
            self.is_end = ObservedTermination(data.spaces.state, samples.next_state, samples.terminated)
        else:
            self.is_end = GivenTermination(data.spaces.state, *ends_of(terminated, data.spaces))
        self.actions = data.spaces.action.candidates(planner.actions)
        self.predictor: NextStateModel = self.dynamics if predictor is None else predictor
        self.noisy = self.dynamics.noisy if planner.noise is None else planner.noise
        self.noisy = self.noisy and predictor is None
        seen = np.concatenate([samples.state, samples.next_state])
        self.on_mesh = self._laid(*trusted_box(self.dynamics, seen, self.is_end, self.actions), FIRST_ROWS)

    @classmethod
    def of(
        cls,
        planner: DynamicsPlanner,
        data: Experience,
        model: Model | None,
        terminated: Any,
        predictor: NextStateModel | None,
    ) -> Preparation:
        """The one for these data, from the last time if nothing but the reward has changed."""
        key = planner, model, terminated, predictor
        if callable(terminated):  # what it answers may have changed since the last time
            return cls(planner, data, model, terminated, predictor)
        if key not in data.prepared:
            data.prepared.clear()  # one is enough: a mesh and its matrix are large
            data.prepared[key] = cls(planner, data, model, terminated, predictor)
        preparation: Preparation = data.prepared[key]
        return preparation

    def over(self, met: Any, starts: Any) -> MeshDynamics:
        """The dynamics on a mesh over states (n,d) that were met from some starts."""
        return self._laid(*met_box(self.dynamics, met, starts, self.is_end, MARGIN), ROWS)

    def _laid(self, low: Any, high: Any, rows: int) -> MeshDynamics:
        space = self.dynamics.space
        side = self.planner.sides
        if side is None:
            fits = int((rows / len(self.actions)) ** (1.0 / space.size))
            side = max(3, min(SIDES[space.size], fits - 1 + fits % 2))  # odd: the middle is a node
        mesh = Mesh(low, high, (side,) * space.size, space.angular)
        return MeshDynamics(self.spaces, self.predictor, mesh, self.actions, self.is_end, self.noisy)

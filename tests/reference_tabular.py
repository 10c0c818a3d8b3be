"""Textbook tabular explorers: dictionaries of counts and plain loops. src never imports this.

Only the random numbers are src's: a run's streams, indexed by (round, step).
"""

from __future__ import annotations

import math

import numpy as np

from reference_runs import drawn, pick
from rewardfree.streams import stream


class Table:
    """Next states seen at each (h,s,a)."""

    def __init__(self, S, A, H):
        self.S, self.A, self.H = S, A, H
        self.seen = {(h, s, a): [] for h in range(H) for s in range(S) for a in range(A)}

    def n(self, h, s, a):
        return len(self.seen[h, s, a])

    def mean(self, h, s, a, value):
        """The average of V over what followed; 0 if nothing did."""
        seen = self.seen[h, s, a]
        return sum(value[following] for following in seen) / len(seen) if seen else 0.0


def ucrl_errors(table, delta, scale):
    """E[h][s][a] with steps counted from 1, as the paper does."""
    S, A, H = table.S, table.A, table.H
    best, errors = [0.0] * S, {}
    for step in range(H, 0, -1):
        c = H - step
        for s in range(S):
            for a in range(A):
                n = table.n(step - 1, s, a)
                rest = (S - 1) * math.log(math.e * (1 + n / (S - 1))) if S > 1 else 0.0
                b = scale * (math.log(2 * S * A * H / delta) + rest)
                inner = math.inf if n == 0 else c * math.sqrt(2 * b / n) + table.mean(step - 1, s, a, best)
                errors[step - 1, s, a] = min(c, inner)
        best = [max(errors[step - 1, s, a] for a in range(A)) for s in range(S)]
    return errors


def express_errors(table, delta, scale):
    """W[h][s][a]."""
    S, A, H = table.S, table.A, table.H
    best, errors = [0.0] * S, {}
    for h in reversed(range(H)):
        for s in range(S):
            for a in range(A):
                n = table.n(h, s, a)
                b = scale * (math.log(3 * S * A * H / delta) + S * math.log(8 * math.e * (n + 1)))
                inner = math.inf if n == 0 else 15 * H**2 * b / n + (1 + 1 / H) * table.mean(h, s, a, best)
                errors[h, s, a] = min(H, inner)
        best = [max(errors[h, s, a] for a in range(A)) for s in range(S)]
    return errors


def certified_run(world, errors_of, done, seed, rounds):
    """Greedy in errors, until `done(max_a error at the start)` or the rounds are over: rows (h,s,a,s')."""
    (S, A), H = world.grid.shape, world.horizon
    table, rows = Table(S, A, H), []
    moves, ties = (stream(seed, name).random((rounds, H)) for name in ("transitions", "ties"))
    start = int(world.start.argmax())
    for i in range(rounds):
        errors = errors_of(table)
        if done(max(errors[0, start, a] for a in range(A))):
            return rows, True
        s = start
        for h in range(H):
            a = pick([errors[h, s, a] for a in range(A)], ties[i, h])
            following = drawn(world.law(h)[s, a], moves[i, h])
            rows.append((h, s, a, following))
            s = following
        for h, s, a, following in rows[-H:]:
            table.seen[h, s, a].append(following)
    return rows, False


def reach_q(table, last, goal, log_term, scale, before):
    """UCBVI's Q[h][s][a] for the reward 1{s_last = goal}: Azar et al., Alg 4, with 1 for the most to gain."""
    S, A, H = table.S, table.A, table.H
    value = [float(s == goal) for s in range(S)]
    far, q = [0.0] * S, {}
    for h in reversed(range(last)):
        for s in range(S):
            for a in range(A):
                n = table.n(h, s, a)
                upper = 1.0
                if n:
                    mean = table.mean(h, s, a, value)
                    variance = sum((value[x] - mean) ** 2 for x in table.seen[h, s, a]) / n
                    bonus = math.sqrt(8 * log_term * variance / n) + 14 * log_term / (3 * n)
                    bonus += math.sqrt(8 * table.mean(h, s, a, far) / n)
                    upper = mean + scale * bonus
                q[h, s, a] = min(before.get((h, s, a), 1.0), 1.0, upper)
        value = [max(q[h, s, a] for a in range(A)) for s in range(S)]
        visits = [sum(table.n(h, s, a) for a in range(A)) for s in range(S)]
        far = [min(1e4 * H * S**2 * A * log_term**2 / n, 1.0) if n else 1.0 for n in visits]
    return q


def jin_run(world, each, delta, scale, seed, rounds):
    """Both phases: rows (h,s,a,s',kept)."""
    (S, A), H = world.grid.shape, world.horizon
    moves, ties, actions = (
        stream(seed, name).random((rounds, H)) for name in ("transitions", "ties", "actions")
    )
    mixture = stream(seed, "mixture").random(rounds)
    log_term = math.log(5 * S * A * H * each * H / (delta / (S * H)))
    policies, rows, i = [], [], 0
    start = int(world.start.argmax())

    def episode(policy, kept):
        s, own = start, []
        for h in range(H):
            a = policy[h][s]
            following = drawn(world.law(h)[s, a], moves[i, h])
            own.append((h, s, a, following))
            s = following
        rows.extend((*row, kept) for row in own)
        return own

    for last in range(H):
        for goal in range(S):
            table, q = Table(S, A, H), {}
            for _ in range(each):
                q = reach_q(table, last, goal, log_term, scale, q)
                policy = [
                    [pick([q.get((h, s, a), 0.0) for a in range(A)], ties[i, h]) for s in range(S)]
                    for h in range(H)
                ]
                for h, s, a, following in episode(policy, False):
                    table.seen[h, s, a].append(following)
                policies.append((last, goal, policy))
                i += 1
    while i < rounds:
        last, goal, policy = policies[int(mixture[i] * len(policies))]
        policy = [list(row) for row in policy]
        policy[last][goal] = int(actions[i, last] * A)
        episode(policy, True)
        i += 1
    return rows


def occupancy(laws, policy, start):
    """P(s_h = s) for h = 0 .. H-1 of actions (h,s) from a start state: (h,s)."""
    H, S = np.shape(policy)
    found = np.zeros((H, S))
    found[0, start] = 1.0
    for h in range(H - 1):
        for s in range(S):
            found[h + 1] += found[h, s] * laws[h][s, policy[h][s]]
    return found

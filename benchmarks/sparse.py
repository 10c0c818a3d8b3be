"""Very many points: `rf.Sparse`, the exact posterior, scikit-learn's Nystroem and Ridge, GPyTorch's SVGP.

The state change of a pendulum at random states and actions, with noise; one kernel, ridge and number of
inducing points for all. Each is run in a process of its own, for its CPU seconds and its memory. `python
benchmarks/sparse.py` takes about half an hour on one core; GPyTorch is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import time

import numpy as np

import rewardfree as rf
from rewardfree.posterior import Design
from rewardfree.threads import one_blas_thread
from table import Row, show

INDUCING, RIDGE, NOISE, HELD_OUT = 1000, 1e-3, 0.03, 5000
#: Points that come one by one: enough that the first ones of them are taken in.
MORE = 320
#: The exact posterior takes n^2 memory, SVGP minutes for every pass over the points, Ridge n m memory twice.
LARGEST = {"exact": 10_000, "svgp": 100_000, "scikit-learn": 100_000}
METHODS = ("sparse", "exact", "scikit-learn", "svgp")


def points_and_changes(n, seed=0):
    """Features (n,4) in units of their lengthscales, and changes of the speed in 0.5 rad/s, (n,)."""
    rng = np.random.default_rng(seed)
    theta, omega, torque = (rng.uniform(-end, end, n) for end in (np.pi, 8.0, 2.0))
    change = 0.05 * (15.0 * np.sin(theta) + 3.0 * torque)
    change = (np.clip(omega + change, -8.0, 8.0) - omega) / 0.5
    features = np.stack([np.cos(theta), np.sin(theta), omega / 4.0, torque], axis=1)
    return features, change + NOISE * rng.normal(size=n)


def sparse(points, changes, at):
    posterior = rf.Sparse(rf.SquaredExponential(1.0), RIDGE, INDUCING)
    posterior.extend(points)
    return _answers(posterior, points, changes, at)


def exact(points, changes, at):
    posterior = Design(rf.SquaredExponential(1.0), ridge=RIDGE)
    posterior.extend(points)
    return _answers(posterior, points, changes, at)


def _answers(posterior, points, changes, at):
    started = time.process_time()
    posterior.weights(changes[:, None])
    weights = time.process_time() - started
    variance = float(posterior.energy(changes[:, None])[0]) / len(points)
    mean, std = posterior.mean(changes, at), posterior.std(at)
    started = time.process_time()
    for i in range(MORE):
        posterior.extend(at[i : i + 1])
        posterior.std(at[i : i + 1])
    more = (time.process_time() - started) / MORE
    return mean, np.sqrt(variance * (std**2 + RIDGE)), {"weights": weights, "one more": more}


def scikit_learn(points, changes, at):
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge

    features = Nystroem(kernel="rbf", gamma=0.5, n_components=INDUCING, random_state=0).fit(points)
    model = Ridge(alpha=RIDGE, fit_intercept=False).fit(features.transform(points), changes)
    return model.predict(features.transform(at)), None, {}


def svgp(points, changes, at, passes=5, batch=1000):
    """The variational parameters are learnt, in that many passes; the kernel and the noise are the same."""
    import gpytorch
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    tensor = lambda values: torch.tensor(values, dtype=torch.float32)  # noqa: E731

    class Svgp(gpytorch.models.ApproximateGP):
        def __init__(self, inducing):
            law = gpytorch.variational.CholeskyVariationalDistribution(len(inducing))
            super().__init__(gpytorch.variational.VariationalStrategy(self, inducing, law, False))
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
            self.covar_module.base_kernel.lengthscale = 1.0
            self.covar_module.outputscale = NOISE**2 / RIDGE

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    x, y, rng = tensor(points), tensor(changes), np.random.default_rng(0)
    model = Svgp(x[rng.choice(len(x), INDUCING, replace=False)])
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    likelihood.noise = NOISE**2
    loss = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(x))
    learnt = [value for name, value in model.named_parameters() if "variational_distribution" in name]
    optimiser = torch.optim.Adam(learnt, lr=0.03)
    for _ in range(passes):
        for rows in np.array_split(rng.permutation(len(x)), max(1, len(x) // batch)):
            optimiser.zero_grad()
            (-loss(model(x[rows]), y[rows])).backward()
            optimiser.step()
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        law = likelihood(model(tensor(at)))
        return law.mean.numpy(), law.stddev.numpy(), {}


def measured(method, n):
    """One method in this process: what it took, and how well it predicts."""
    points, changes = points_and_changes(n)
    at, truth = points_and_changes(HELD_OUT, seed=1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run = {"sparse": sparse, "exact": exact, "scikit-learn": scikit_learn, "svgp": svgp}[method]
    with one_blas_thread():
        started = time.process_time()
        mean, std, more = run(points, changes, at)
        seconds = time.process_time() - started - MORE * more.get("one more", 0.0)
    found = {"seconds": seconds, "error": float(np.sqrt(np.mean((mean - truth) ** 2))), **more}
    if std is not None:
        found["within"] = float((np.abs(mean - truth) <= 1.96 * std).mean())
    found["MB"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return found


def rows(sizes) -> list[Row]:
    lines = []
    for n in sizes:
        ours = None
        for method in METHODS:
            if n > LARGEST.get(method, n):
                continue
            if method == "svgp" and importlib.util.find_spec("gpytorch") is None:
                continue
            command = [sys.executable, __file__, "--method", method, "--sizes", str(n)]
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
            found = json.loads(subprocess.check_output(command, env=environment))
            ours = ours or found
            within = f", {found['within']:.1%} within 1.96 std" if "within" in found else ""
            more = ""
            if "one more" in found:
                more = f", new targets {found['weights']:.2g} s, one more and its sigma "
                more += f"{1e3 * found['one more']:.2g} ms"
            cells = (
                f"{found['seconds']:.2g} s, {found['MB']:.0f} MB, error {found['error']:.4f}{within}{more}"
            )
            ratio = "" if found is ours else f"{found['seconds'] / ours['seconds']:.2g}x the time"
            lines.append(
                Row(
                    f"n = {n:,}, {method}",
                    cells if found is ours else "",
                    "" if found is ours else cells,
                    ratio,
                )
            )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10000,100000,1000000", help="with commas between")
    parser.add_argument("--method", choices=METHODS, help="that one alone, as JSON")
    chosen = parser.parse_args()
    sizes = [int(size) for size in chosen.sizes.split(",")]
    if chosen.method is not None:
        print(json.dumps(measured(chosen.method, sizes[0])))
        return
    print(f"{INDUCING} inducing points, ridge {RIDGE}, noise {NOISE}; one core, one BLAS thread\n")
    show(rows(sizes))


if __name__ == "__main__":
    main()

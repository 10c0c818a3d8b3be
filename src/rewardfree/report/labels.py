"""What names in results mean, as a reader of a figure wants it."""

_LABELS = {
    "se": "Squared exponential",
    "matern25": "Matérn 2.5",
    "matern15": "Matérn 1.5",
    "generative": "With a generative model (Alg 2)",
    "generative-ties": "Alg 2, ties at random",
    "online": "Without a generative model (Alg 3)",
    "qiu": "Qiu et al. (2021)",
    "greedy": "Greedy max variance",
    "uniform": "Uniformly random data",
    "uniform, pooled": "Uniform data, one regression",
    "partitioned": "Partitions, Vakili et al. (2024)",
    "linear": "Linear, Wang et al. (2020)",
    "jin": "Jin et al. (2020)",
    "rf-ucrl": "RF-UCRL, Kaufmann et al. (2021)",
    "rf-express": "RF-Express, Menard et al. (2021)",
    "kernel rf-ucrl": "RF-UCRL by a kernel",
    "kernel rf-express": "RF-Express by a kernel",
    "cme": "Mean embedding, one regression",
    "scout": "Scout, the default",
    "optimistic": "the bonus",
    "mean": "the mean alone",
    "myopic": "Myopic policy, no data",
    "random": "Random policy, no data",
}


def label(name: str) -> str:
    """A name of ours in words; other names speak for themselves."""
    return _LABELS.get(name, name)

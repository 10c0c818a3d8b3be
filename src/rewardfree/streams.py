"""Random numbers by name: a stream depends on its seed and its names, and on nothing else."""

import hashlib

import numpy as np

from rewardfree.arrays import count


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """The generator called `names` of this seed, the same on every machine: stream(7, "reward")."""
    seed = count(seed, "seed", at_least=0)
    # Names are hashed, so that streams of different names or lengths of names have nothing in common.
    plain = tuple(name if isinstance(name, str) else int(name) for name in names)
    digest = hashlib.blake2b(repr(plain).encode(), digest_size=16).digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=words))

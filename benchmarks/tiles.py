"""L in tiles, and one BLAS thread, against the obvious alternatives of each."""

from __future__ import annotations

from unittest import mock

from rewardfree import threads
from rewardfree.posterior.engine import backend
from setting import Setting
from table import Row, seconds, show


def rows(quick: bool = False) -> list[Row]:
    setting = Setting(rounds=6, states=30, actions=30) if quick else Setting()
    world = setting.world
    in_tiles = seconds(lambda: setting.explore(world))
    with mock.patch.object(backend, "TILE_BYTES", 8 * setting.states * setting.actions):
        in_rows = seconds(lambda: setting.explore(world))
    libraries = threads._libraries()
    two = mock.Mock(limit=lambda limits, user_api: libraries.limit(limits=2, user_api=user_api))
    with mock.patch.object(threads, "_libraries", lambda: two):
        two_threads = seconds(lambda: setting.explore(world))
    return [
        Row("L in tiles", f"{in_tiles:.2f} s", f"whole rows {in_rows:.2f} s", f"{in_rows / in_tiles:.2f}x"),
        Row(
            "  one BLAS thread",
            f"{in_tiles:.2f} s",
            f"two threads {two_threads:.2f} s",
            f"{two_threads / in_tiles:.2f}x",
        ),
    ]


if __name__ == "__main__":
    show(rows())

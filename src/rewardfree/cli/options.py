"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

Cluster = Annotated[
    str | None, typer.Option(help="A Dask scheduler, tcp://host:port: its workers run the units instead.")
]
Jobs = Annotated[int | None, typer.Option(help="Processes; by default one for each core.")]
Device = Annotated[
    str, typer.Option(help="cpu; cuda or cuda:N runs all of it there, in this process, as large batches.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
AsEvents = Annotated[
    bool, typer.Option("--json", help="Print one JSON object a line: progress, and what would be printed.")
]

"""The options of upkeep, each with its help, by name."""

from typing import Annotated

import typer

SMALL_FILES_DEFAULT = 8
SMALL_MIB_DEFAULT = 32
TARGET_MIB_DEFAULT = 128
KEEP_HOURS_DEFAULT = 7 * 24
EVERY_DEFAULT = 20

SmallFilesOption = Annotated[
    int,
    typer.Option(help="Compact a partition of the table once it has so many small files."),
]
SmallMibOption = Annotated[int, typer.Option(help="Files below so many MiB are small.")]
TargetMibOption = Annotated[int, typer.Option(help="Most MiB of a file that compaction writes.")]
KeepHoursOption = Annotated[
    int,
    typer.Option(
        help="How long files of older snapshots stay for their readers; at least 24 hours."
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Only say what there is to do; change nothing.")
]
UpkeepEveryOption = Annotated[
    int,
    typer.Option(
        "--upkeep",
        help="Compact small files after every so many commits, and expire old snapshots once a "
        "day; 0: never.",
        metavar="COMMITS",
    ),
]

"""What upkeep counts as small and as old.

Owns:   nothing; pure."""

from dataclasses import dataclass

from strandline.base.errors import OperatorError

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
KEEP_MIN_HOURS = 24
"""Shorter would delete files under a query that still reads an older snapshot."""


@dataclass(frozen=True, slots=True)
class UpkeepOptions:
    """The thresholds of one round."""

    small_bytes: int = 32 << 20
    """Files below this size are small."""
    target_bytes: int = 128 << 20
    """Most bytes of a file that compaction writes."""
    small_files: int = 8
    """A partition of the table is compacted as soon as it has so many small files."""
    keep_ms: int = 7 * DAY_MS
    """How long files stay on disk after the newest snapshot stopped using them."""

    def __post_init__(self) -> None:
        if self.small_files < 2:
            raise OperatorError(f"--small-files {self.small_files}: must be at least 2")
        if not 0 < self.small_bytes <= self.target_bytes:
            raise OperatorError(
                f"--small-mib {self.small_bytes >> 20}: must be between 1 and --target-mib "
                f"{self.target_bytes >> 20}"
            )


def upkeep_options(
    *, small_files: int, small_mib: int, target_mib: int, keep_hours: int
) -> UpkeepOptions:
    """The options of the command line; raises OperatorError for those that could harm readers."""
    if keep_hours < KEEP_MIN_HOURS:
        raise OperatorError(
            f"--keep-hours {keep_hours}: must be at least {KEEP_MIN_HOURS}: queries that read an "
            "older snapshot would lose its files"
        )
    return UpkeepOptions(
        small_bytes=small_mib << 20,
        target_bytes=target_mib << 20,
        small_files=small_files,
        keep_ms=keep_hours * HOUR_MS,
    )

"""What buckets still have of records that a declared loss puts at risk.

Source: decisions 0027 and 0061."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from strandline.base.json_value import Json

if TYPE_CHECKING:
    from strandline.protocol.messages.describe_exports import ExportedPartition


def bucket_lines(buckets: "Sequence[ExportedPartition]", committed: int, end: int) -> list[str]:
    """A line for each bucket. [`committed`, `end`): the records in doubt; from `end` on they are
    lost."""
    lines = []
    if any(one.end_offset > end for one in buckets):
        lines.append(
            "buckets have more than any log that is left: to begin with what they have instead, "
            "type --from-bucket all"
        )
    for one in buckets:
        if one.failure:
            lines.append(f"bucket {one.bucket}: does not say what it has: {one.failure}")
        elif not one.export or one.start_offset >= one.end_offset:
            lines.append(f"bucket {one.bucket}: has no records of the partition")
        elif one.end_offset <= committed:
            lines.append(
                f"bucket {one.bucket}: has the records below offset {one.end_offset}, none of "
                "those at risk"
            )
        else:
            first = max(one.start_offset, committed)
            lines.append(
                f"bucket {one.bucket}: has offsets {first} to {one.end_offset - 1}, as they were "
                "committed"
                + (
                    f", {one.end_offset - end} more than the log that continues"
                    if one.end_offset > end
                    else ""
                )
            )
    return lines


def buckets_json(buckets: "Sequence[ExportedPartition]") -> list[Json]:
    """As JSON; None for what is not known."""
    return [
        {
            "bucket": one.bucket,
            "failure": one.failure or None,
            "export": one.export or None,
            "start": one.start_offset if one.export else None,
            "end": one.end_offset if one.export else None,
            "written_ms": one.written_ms if one.export else None,
        }
        for one in buckets
    ]


def furthest(buckets: "Sequence[ExportedPartition]") -> str:
    """Up to which offset some bucket has the records; "-" for none."""
    ends = [one.end_offset for one in buckets if one.export and one.start_offset < one.end_offset]
    return str(max(ends)) if ends else "-"

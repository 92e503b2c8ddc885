"""The regions of writers, and why leaders stay or follow them, as text.

Source: decision 0014."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from strandline.base.json_value import Json
from strandline.cli.output import Table, print_line, print_more, print_table

if TYPE_CHECKING:
    from strandline.protocol.messages.describe_writers import WrittenPartition

SHOWN_MAX = 20
UNKNOWN = "?"


def tell_writers(written: "Sequence[WrittenPartition]") -> None:
    """One row for all partitions with the same code and text."""
    from strandline.cli.text.explaining import ranges

    alike: dict[tuple[str, str], list[int]] = {}
    for one in written:
        alike.setdefault((one.code, one.text), []).append(one.partition)
    rows = [(ranges(partitions), code, text) for (code, text), partitions in alike.items()]
    print_line("")
    print_table(
        Table(
            title="leaders follow the writers:",
            heads=("PARTITIONS", "STATE", "WHY"),
            rows=rows[:SHOWN_MAX],
        )
    )
    print_more(len(rows) - SHOWN_MAX)


def writers_json(written: "Sequence[WrittenPartition]") -> Json:
    """The same for programs: every partition, with the share of each region."""
    return [
        {
            "partition": one.partition,
            "code": one.code,
            "text": one.text,
            "shares": {
                region.region or UNKNOWN: round(
                    region.size_bytes / max(sum(each.size_bytes for each in one.regions), 1), 3
                )
                for region in one.regions
            },
        }
        for one in written
    ]

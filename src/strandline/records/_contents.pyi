"""The compiled walk over records; see `_contents.c`."""

from strandline.base.disk import Buffer

REVISION: int

def walk(buffer: Buffer, count: int, base_timestamp: int, /) -> tuple[int, int, int, int, int]: ...
def refused(
    buffer: Buffer,
    count: int,
    base_timestamp: int,
    needs_keys: bool,
    timestamp_min: int,
    timestamp_max: int,
    limit: int,
    /,
) -> list[tuple[int, int, int]]: ...

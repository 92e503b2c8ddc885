"""Fills arrays with the records of uncompressed batches, by compiled code where it is installed.

Why:    Python takes about 2 us for a record. The compiled `records/_columns.c` takes about 15 ns;
        where it is not installed, `numpy_fill.py` does the same work.
How:    a `Table` says where each batch lies and which of its records are wanted, `Arrays` what to
        fill. Both ways return the same and fill the same.
Source: docs/decisions/0056-decoding-batches.md."""

from collections.abc import Callable
from typing import Any

from strandline.base.disk import Buffer
from strandline.records.contents import REASONS, Fault
from strandline.spark.decoding import numpy_fill
from strandline.spark.decoding.record_fill import TIMESTAMP_FAULT
from strandline.spark.decoding.table import Arrays, Filled

REVISION = 1
"""Of the results. A binary of another revision is not used."""

try:
    from strandline.records import _columns
except ImportError:  # It is not built: there was no compiler when the package was installed.
    IS_COMPILED = False
else:
    IS_COMPILED = _columns.REVISION == REVISION
"""Whether the compiled code does the work."""

_fill: Callable[..., Filled] = numpy_fill.fill
_fill_headers: Callable[..., int] = numpy_fill.fill_headers
scan: Callable[..., tuple[int, int, int, int, int]] | None = None
"""Finds many plain batches at once; only compiled code is faster than one header after the other.
See `_columns.c`."""
if IS_COMPILED:
    _fill, _fill_headers, scan = _columns.fill, _columns.fill_headers, _columns.scan


def fill(records: Buffer, table: Any, row: int, arrays: Arrays) -> Filled:
    """Fill the rows of the batches of `table`, whose records are in `records`, from `row` on.

    The arrays have room for all records of the batches, and the columns of bytes for all bytes."""
    return _fill(records, table, row, *arrays)


def fill_headers(records: Buffer, row: tuple[Any, Any], entries: tuple[int, int], into: Any) -> int:
    """Fill the headers of rows that `fill` has filled from these records.

    `row`: their parts of `headers_at` and `headers_counts`. `entries`: [first entry, one behind the
    last]. `into`: (names, values), with room for all bytes of `records`. Returns the entry behind
    the last one."""
    return _fill_headers(records, *row, *entries, *into)


def reason_of(fault: int, record: int) -> str:
    """What is wrong, of a fault that `fill` returned."""
    if fault == TIMESTAMP_FAULT:
        return f"the time of record {record} does not fit the column timestamp"
    if fault == Fault.OFFSET_DELTA:
        return f"the offset of record {record} is not within its batch, behind the one before"
    return REASONS[Fault(fault)].format(index=record)

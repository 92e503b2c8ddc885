"""Reads one split on an executor: fetched batches become Arrow batches with the query's columns.

Why:    a stream has a task for each partition and micro-batch, often of a few records: connecting
        to brokers anew for each would take longer than reading.
Owns:   the clients of this Python worker, which runs one task after the other.
Source: decisions/0049."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from strandline.client.cluster import Client
from strandline.client.errors import ClientError
from strandline.spark.decoding.decode import decode
from strandline.spark.reading.fetching import SplitFetcher
from strandline.spark.reading.options import ReachOptions
from strandline.spark.reading.splits import Split

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_CLIENTS: dict[ReachOptions, Client] = {}
"""One for each cluster that this process reads from."""


def client_of(reach: ReachOptions) -> Client:
    """This process's client of a cluster; its connections stay open from task to task."""
    if reach not in _CLIENTS:
        _CLIENTS[reach] = Client(
            reach.bootstrap, client_id=reach.client_id, timeout_ms=reach.request_timeout_ms
        )
    return _CLIENTS[reach]


def read_split(
    split: Split, reach: ReachOptions, columns: Sequence[str], *, fail_on_data_loss: bool
) -> Iterator["RecordBatch"]:
    """The split's records, in order; no empty batch. Raises DataLossError, DamagedBatchError,
    ClientError."""
    fetcher = SplitFetcher(client_of(reach), split, reach, fail_on_data_loss=fail_on_data_loss)
    for fetched in fetcher:
        decoded = decode(
            fetched.data,
            columns=columns,
            topic=split.topic,
            partition=split.partition,
            first_offset=fetched.first_offset,
            end_offset=split.end,
            aborted=fetched.aborted,
        )
        expected = min(fetched.next_offset, split.end)
        if decoded.next_offset != expected:
            raise ClientError(
                f"partition {fetcher.place}: decoded up to offset {decoded.next_offset}, "
                f"fetched up to {expected}"
            )
        if decoded.batch.num_rows:
            yield decoded.batch

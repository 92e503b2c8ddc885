"""Reads one split on an executor: fetched batches become Arrow batches with the query's columns.

Why:    a stream has a task for each partition and micro-batch, often of a few records: connecting
        to brokers anew for each would take longer than reading.
Owns:   the clients of this Python worker, which runs one task after the other.
Source: decisions/0049."""

import logging
import os
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from strandline.client.access import AccessTransport
from strandline.client.buckets.options import BucketOptions
from strandline.client.buckets.stores import stores_of
from strandline.client.cluster import Client
from strandline.client.errors import ClientError
from strandline.spark.decoding.decode import decode
from strandline.spark.reading.bucket_fetching import (
    BucketFetcher,
    BucketsFailedError,
    Patience,
    monotonic_ms,
)
from strandline.spark.reading.fetching import RACK_VARIABLE, Fetched, SplitFetcher
from strandline.spark.reading.options import ReachOptions, ReadOptions
from strandline.spark.reading.splits import BROKERS, BUCKETS, Split

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_LOG = logging.getLogger(__name__)
AWAY_MS = 60_000
"""So long a worker leaves buckets alone that did not answer, if brokers can go on: each split would
wait for the stores' deadlines."""
BATCH_BYTES_MAX = 4 << 20
"""Of the records that Spark gets at once: as many as one answer has uncompressed."""

_CLIENTS: dict[ReachOptions, Client] = {}
"""One for each cluster that this process reads from."""


def client_of(reach: ReachOptions) -> Client:
    """This process's client of a cluster; its connections stay open from task to task."""
    if reach not in _CLIENTS:
        _CLIENTS[reach] = Client(
            reach.bootstrap,
            client_id=reach.client_id,
            timeout_ms=reach.request_timeout_ms,
            transport=AccessTransport(reach.access),
        )
    return _CLIENTS[reach]


def read_split(
    split: Split, reach: ReachOptions, columns: Sequence[str], *, fail_on_data_loss: bool
) -> Iterator["RecordBatch"]:
    """The split's records, in order; no empty batch. Raises DataLossError, DamagedBatchError,
    ClientError, BucketsFailedError."""
    if split.place == BUCKETS:
        split = yield from _read_buckets(split, reach, columns)
        if split.start >= split.end:
            return
    fetcher = SplitFetcher(client_of(reach), split, reach, fail_on_data_loss=fail_on_data_loss)
    for fetched in fetcher:
        yield from decode_fetched(fetched, split, columns)


_AWAY_UNTIL_MS: dict[BucketOptions, int] = {}
"""{buckets: until when brokers give all, because none of them answered}"""


def _read_buckets(
    split: Split, reach: ReachOptions, columns: Sequence[str]
) -> "Generator[RecordBatch, None, Split]":
    """The split's records from buckets; returns what brokers are left to give."""
    options = reach.buckets
    assert options is not None, "only a plan with buckets has such splits"
    left = replace(split, place=BROKERS, objects={})
    if monotonic_ms() < _AWAY_UNTIL_MS.get(options, 0):
        return left
    region = reach.rack or os.environ.get(RACK_VARIABLE, "")
    fetcher = BucketFetcher(
        split,
        options.nearest(region),
        stores_of(options, timeout_ms=reach.request_timeout_ms).get_range,
        patience=Patience(reach.stall_ms if options.is_exclusive else 0),
        read_committed=reach.read_committed,
    )
    try:
        for fetched in fetcher:
            yield from decode_fetched(fetched, split, columns)
    except BucketsFailedError as error:
        if options.is_exclusive:
            raise
        _LOG.warning("%s: going on with brokers", error)
        if fetcher.is_unanswered:
            _AWAY_UNTIL_MS[options] = monotonic_ms() + AWAY_MS
    return replace(left, start=fetcher.position)


def read_partition(
    partition: InputPartition, options: ReadOptions, columns: Sequence[str]
) -> Iterator["RecordBatch"]:
    """The records of what Spark hands to a task: a split, or a partition without content, which
    Spark plans itself if there is no split."""
    if not isinstance(partition, Split):
        return iter(())
    return read_split(
        partition, options.reach, columns, fail_on_data_loss=options.fail_on_data_loss
    )


def decode_fetched(
    fetched: Fetched, split: Split, columns: Sequence[str]
) -> Iterator["RecordBatch"]:
    """The records of one answer: of a compressed one in several batches, because Spark takes large
    batches slowly. Raises DamagedBatchError; ClientError if the answer ends too early."""
    data, offset = fetched.data, fetched.first_offset
    expected = min(fetched.next_offset, split.end)
    while offset < expected:
        decoded = decode(
            data,
            columns=columns,
            topic=split.topic,
            partition=split.partition,
            first_offset=offset,
            end_offset=split.end,
            aborted=fetched.aborted,
            bytes_max=BATCH_BYTES_MAX,
        )
        if not offset < decoded.next_offset <= expected:
            raise ClientError(
                f"partition {split.topic}-{split.partition}: decoded up to offset "
                f"{decoded.next_offset}, fetched up to {expected}"
            )
        offset = decoded.next_offset
        if not fetched.aborted:  # An aborted transaction is known only from its first batch on.
            data = data[decoded.next_position :]
        if decoded.batch.num_rows:
            yield decoded.batch

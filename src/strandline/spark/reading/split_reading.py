"""Reads one split on an executor: fetched batches become Arrow batches with the query's columns.

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


def read_split(
    split: Split, reach: ReachOptions, columns: Sequence[str], *, fail_on_data_loss: bool
) -> Iterator["RecordBatch"]:
    """The split's records, in order; no empty batch. Raises DataLossError, DamagedBatchError,
    ClientError."""
    client = Client(reach.bootstrap, client_id=reach.client_id, timeout_ms=reach.request_timeout_ms)
    fetcher = SplitFetcher(client, split, reach, fail_on_data_loss=fail_on_data_loss)
    with client:
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

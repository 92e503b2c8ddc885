"""One answer to columns: all of its records once, in batches that Spark takes quickly.

Source: decisions/0049 and 0056."""

import pytest

from strandline.client.errors import ClientError
from strandline.records.record import Record, build_batch
from strandline.spark.reading import split_reading
from strandline.spark.reading.fetching import Fetched
from strandline.spark.reading.split_reading import decode_fetched
from strandline.spark.reading.splits import Split

SPLIT = Split("orders", "", 0, 3, 95)


def batches(codec: int, attributes: int = 0, *, first: int = 0) -> bytes:
    """Records of the offsets from `first` to 99, in batches of 10, compressed to a hundredth."""
    return b"".join(
        build_batch(
            [Record(at, 1_000, b"%d" % (base + at), b"v" * 5_000) for at in range(10)],
            base_offset=base,
            codec=codec,
            attributes=attributes,
            producer_id=7,
        )
        for base in range(first, 100, 10)
    )


def marker(base: int, kind: int) -> bytes:
    record = Record(0, 1_000, bytes((0, 0, 0, kind)), b"")
    return bytes(build_batch([record], base_offset=base, attributes=0x30, producer_id=7))


@pytest.mark.parametrize("codec", [0, 4])
def test_an_answer_that_grows_is_handed_over_in_parts(
    monkeypatch: pytest.MonkeyPatch, codec: int
) -> None:
    monkeypatch.setattr(split_reading, "BATCH_BYTES_MAX", 60_000)
    fetched = Fetched(memoryview(batches(codec)), 3, 100, [])
    parts = list(decode_fetched(fetched, SPLIT, ["offset", "key"]))
    assert len(parts) > 3
    rows = [row for part in parts for row in part.to_pylist()]
    assert rows == [{"offset": at, "key": b"%d" % at} for at in range(3, 95)]


def test_a_transaction_that_is_aborted_stays_out_of_every_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(split_reading, "BATCH_BYTES_MAX", 60_000)
    # The producer's first transaction, of offsets below 3, is aborted, the next one is not.
    first = bytes(
        build_batch([Record(at) for at in range(3)], attributes=0x10, producer_id=7)
    ) + marker(3, 0)
    data = first + batches(4, attributes=0x10, first=10)
    fetched = Fetched(memoryview(data), 0, 100, [(7, 0)])
    split = Split("orders", "", 0, 0, 100)
    parts = list(decode_fetched(fetched, split, ["offset", "key"]))
    assert len(parts) > 3
    offsets = [row["offset"] for part in parts for row in part.to_pylist()]
    assert offsets == list(range(10, 100))


def test_an_answer_that_ends_too_early_is_refused() -> None:
    fetched = Fetched(memoryview(batches(0)[:-1]), 3, 100, [])
    with pytest.raises(ClientError, match="orders-0: decoded up to offset 90, fetched up to 95"):
        list(decode_fetched(fetched, SPLIT, ["offset"]))

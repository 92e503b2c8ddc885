"""What a follower refuses of an append, before it is in its log: its next start would.

Source: design section 4; decision 0040."""

import pytest

from strandline.base.errors import ProtocolError
from strandline.model.ids import Epoch, Index, Offset
from strandline.raft.messages import AppendRequest, Run
from strandline.records.batch import read_header, seal
from strandline.records.marker import build_epoch_marker
from strandline.records.record import Record, build_batch
from strandline.replication.replica.entries import Entries

NONE = Index(-1)


def check(data: bytes | bytearray, *runs: Run) -> Entries:
    request = AppendRequest(Epoch(7), NONE, Epoch(0), NONE, NONE, runs)
    return Entries.checked(memoryview(bytes(data)), request)


def test_a_batch_that_reaches_into_the_next_epoch() -> None:
    records = [Record(delta, 5, b"k", b"v") for delta in range(10)]
    batch = build_batch(records, base_offset=Offset(0), epoch=Epoch(1))
    assert len(check(batch, Run(Epoch(1), Index(9))).headers) == 1
    with pytest.raises(ProtocolError):
        check(batch, Run(Epoch(1), Index(4)), Run(Epoch(2), Index(9)))


def test_a_marker_that_says_another_epoch_itself() -> None:
    marker = bytearray(build_epoch_marker(Offset(0), Epoch(5), 5))
    assert len(check(marker, Run(Epoch(5), Index(0))).headers) == 1
    header = read_header(marker)
    assert header is not None
    header.stamp(marker, base_offset=Offset(0), epoch=Epoch(7))
    with pytest.raises(ProtocolError):
        check(marker, Run(Epoch(7), Index(0)))


def test_a_batch_without_an_offset_that_is_no_marker() -> None:
    batch = bytearray(build_epoch_marker(Offset(0), Epoch(5), 5))
    batch[21:23] = bytes(2)
    header = read_header(batch)
    assert header is not None
    seal(batch, header)
    with pytest.raises(ProtocolError):
        check(batch, Run(Epoch(5), Index(0)))

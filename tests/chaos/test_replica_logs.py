"""What lies in the brokers' files is read as it is."""

from chaos.records import mark_of
from chaos.replica_logs import LogReader

from strandline.model.ids import Offset
from strandline.records.batch import BatchHeader, read_header
from strandline.records.record import Record, build_batch


def batch_of(value: bytes, offset: int) -> tuple[BatchHeader, bytes]:
    data = bytes(build_batch([Record(0, 0, None, value, ())], base_offset=offset))
    header = read_header(data)
    assert header is not None
    header.crc = 7
    return header, data


def test_batches_with_the_same_checksum_are_told_apart() -> None:
    reader = LogReader()
    values = (b"p/1/aaaaaaaa", b"q/2/bbbbbbbb", b"p/1/aaaaaaaa")
    for offset, value in enumerate(values):
        header, data = batch_of(value, offset)
        expected = [(Offset(offset), mark_of(value).encode())]
        assert reader._records(header, data, 0, is_ours=True) == expected

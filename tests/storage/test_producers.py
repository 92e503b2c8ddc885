"""A retry is answered with the old offset; a gap, an old epoch and a bad beginning are refused.

Source: Kafka's ProducerAppendInfo; KIP-98."""

import random

import pytest

from strandline.base.errors import ApiError
from strandline.protocol.errors import Error
from strandline.records.batch import BatchHeader, read_header
from strandline.records.record import Record, build_batch
from strandline.storage.producers.producers import (
    Duplicate,
    ProducerStates,
    last_sequence,
)

LAST = 2**31 - 1


def batch(sequence: int, count: int = 1, *, epoch: int = 0, offset: int = 0) -> BatchHeader:
    """The header of a batch of producer 7."""
    data = build_batch(
        [Record(n, 5, b"k", b"v") for n in range(count)],
        base_offset=offset,
        producer_id=7,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    header = read_header(data)
    assert header is not None
    return header


def write(states: ProducerStates, header: BatchHeader, now_ms: int = 0) -> None:
    assert states.check(header) is None
    states.update(header, now_ms)


def refusal_of(states: ProducerStates, header: BatchHeader) -> Error:
    with pytest.raises(ApiError) as refusal:
        states.check(header)
    return Error(refusal.value.code)


def test_an_unknown_producer_may_begin_anywhere() -> None:
    states = ProducerStates()
    write(states, batch(17))
    assert states.check(batch(18)) is None


def test_each_of_the_last_five_batches_is_a_duplicate_and_the_sixth_is_a_gap() -> None:
    states = ProducerStates()
    for n in range(6):
        write(states, batch(n * 10, 10, offset=100 + n * 10))
    for n in range(1, 6):
        assert states.check(batch(n * 10, 10)) == Duplicate(100 + n * 10, 109 + n * 10)
    assert refusal_of(states, batch(0, 10)) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_that_begins_alike_and_ends_elsewhere_is_no_duplicate() -> None:
    states = ProducerStates()
    write(states, batch(0, 10))
    assert refusal_of(states, batch(0, 9)) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_is_refused() -> None:
    states = ProducerStates()
    write(states, batch(0, 3))
    assert refusal_of(states, batch(4)) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.check(batch(3)) is None


def test_a_lower_epoch_is_refused_and_a_higher_one_begins_at_zero() -> None:
    states = ProducerStates()
    write(states, batch(0, 3, epoch=4))
    assert refusal_of(states, batch(3, epoch=3)) == Error.INVALID_PRODUCER_EPOCH
    assert refusal_of(states, batch(3, epoch=5)) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(states, batch(0, epoch=5))
    assert refusal_of(states, batch(3, epoch=4)) == Error.INVALID_PRODUCER_EPOCH
    assert states.check(batch(0, epoch=5)) == Duplicate(0, 0)


def test_sequences_wrap_to_zero() -> None:
    states = ProducerStates()
    write(states, batch(LAST - 1, 1))
    write(states, batch(LAST, 1))
    write(states, batch(0, 1))
    states = ProducerStates()
    header = batch(LAST - 2, 5)
    assert last_sequence(header) == 1
    write(states, header)
    assert states.check(batch(LAST - 2, 5)) == Duplicate(0, 4)
    assert refusal_of(states, batch(3)) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(states, batch(2))


def test_silent_producers_are_removed() -> None:
    states = ProducerStates()
    write(states, batch(0), now_ms=1_000)
    states.expire(1_000)
    assert states.get(7) is not None
    assert not states.is_incomplete
    states.expire(1_001)
    assert states.get(7) is None
    assert states.is_incomplete
    write(states, batch(99))


def test_a_checkpoint_is_not_touched_by_what_comes_later() -> None:
    states = ProducerStates()
    write(states, batch(0))
    checkpoint = states.checkpoint()
    write(states, batch(1))
    states.restore(checkpoint)
    assert states.check(batch(1)) is None
    write(states, batch(1))
    states.restore(checkpoint)
    assert states.check(batch(1)) is None


def test_batches_without_a_producer_leave_no_trace() -> None:
    states = ProducerStates()
    header = read_header(build_batch([Record(0, 5, b"k", b"v")]))
    assert header is not None
    states.update(header, 0)
    assert len(states) == 0


@pytest.mark.parametrize("seed", range(20))
def test_a_producer_that_retries_at_random_writes_each_batch_once(seed: int) -> None:
    """Up to five batches in flight, answers lost, everything from the lost one on sent again."""
    rng = random.Random(seed)
    states = ProducerStates()
    written: list[int] = []
    batches = [batch(n * 3, 3) for n in range(40)]
    acknowledged = 0
    while acknowledged < len(batches):
        window = batches[acknowledged : acknowledged + 5]
        for header in window[: rng.randint(1, 5)]:
            found = states.check(header)
            if found is None:
                header.base_offset = type(header.base_offset)(len(written) * 3)
                states.update(header, 0)
                written.append(header.base_sequence)
            else:
                assert found.base_offset == header.base_sequence
            if rng.random() < 0.6 and header is batches[acknowledged]:
                acknowledged += 1
    assert written == [n * 3 for n in range(40)]

"""Each promise holds over a sound history of files, and is found where it is broken by hand."""

from pathlib import Path

import pytest
from chaos.brokers import Led
from chaos.ledger import UNKNOWN_OFFSET, CommitBegun, Failed, Refused
from tests.chaos.stage import (
    LOG,
    TOPIC,
    WRITER,
    Stage,
    acknowledged,
    batch,
    committed,
    listed,
    mark,
    marker,
    read,
    told,
)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_sound_history_breaks_nothing(stage: Stage) -> None:
    assert stage.breaches() == {}


def test_an_acknowledged_record_that_is_gone_everywhere(stage: Stage) -> None:
    stage.writer.append(acknowledged(70, 5, 5))
    assert set(stage.breaches()) == {"NoAcknowledgedRecordLost"}


def test_an_acknowledged_record_that_one_replica_lacks(stage: Stage) -> None:
    stage.logs[2] = LOG[:-1]
    assert {"NoAcknowledgedRecordLost", "CommittedPrefixEqual"} <= set(stage.breaches())


def test_a_log_that_has_lost_its_beginning(stage: Stage) -> None:
    directory = stage.path / "broker-1" / "logs" / f"{TOPIC}-0.7"
    original = stage._log

    def without_first_batch(broker: int) -> Path:
        stage.logs[1] = LOG
        data = original(broker)
        if broker == 1:
            (whole,) = directory.glob("*.log")
            marker_bytes, first = len(LOG[0]), len(LOG[1])
            rest = whole.read_bytes()[marker_bytes + first :]
            whole.unlink()
            count = int.from_bytes(LOG[1][23:27], "big") + 1
            (directory / f"{count:020d}-1-1.log").write_bytes(rest)
        return data

    stage._log = without_first_batch  # type: ignore[method-assign]
    assert set(stage.breaches()) == {"NothingIsLetGo"}


def test_rot_in_a_file_is_no_record(stage: Stage) -> None:
    rotten = bytearray(LOG[-1])
    rotten[-1] ^= 1
    stage.logs[1] = [*LOG[:-1], bytes(rotten)]
    assert "NoAcknowledgedRecordLost" in stage.breaches()


def test_a_replica_that_lags_where_replicas_did_not_agree_is_no_loss(stage: Stage) -> None:
    """That they did not is a breach of its own."""
    stage.logs[2] = LOG[:-1]
    stage.is_whole = False
    assert stage.breaches() == {}


def test_a_record_acknowledged_without_an_offset_is_looked_for(stage: Stage) -> None:
    stage.writer.append(acknowledged(70, UNKNOWN_OFFSET, 4))
    assert stage.breaches() == {}


def test_a_record_acknowledged_without_an_offset_that_is_nowhere(stage: Stage) -> None:
    stage.writer.append(acknowledged(70, UNKNOWN_OFFSET, 5))
    assert set(stage.breaches()) == {"NoUnplacedRecordLost"}


def test_a_record_with_acks_1_may_be_lost(stage: Stage) -> None:
    stage.writer = []
    stage.is_whole = True
    stage.reader = []
    stage.watcher = []
    stage.logs = {1: [*LOG[:2]], 2: [*LOG[:2]]}
    stage.is_whole = False
    assert stage.breaches() == {}


def test_two_records_acknowledged_at_one_offset(stage: Stage) -> None:
    stage.writer.append(acknowledged(70, 4, 5))
    assert "NoAcknowledgedRecordLost" in stage.breaches()


def test_a_record_that_is_there_twice(stage: Stage) -> None:
    for log in stage.logs.values():
        log.append(batch([3, 4], offset=5, epoch=2))
    assert set(stage.breaches()) == {"NoDuplicateFromIdempotentProducer"}


def test_a_record_that_a_client_writes_again_in_a_new_epoch(stage: Stage) -> None:
    for log in stage.logs.values():
        log.append(batch([3, 4], offset=5, epoch=2, producer_epoch=1))
    assert stage.breaches() == {}


def test_an_epoch_of_a_producer_that_comes_back(stage: Stage) -> None:
    for log in stage.logs.values():
        log.append(batch([5], offset=5, epoch=2, producer_epoch=1))
        log.append(batch([6], offset=6, epoch=2, producer_epoch=0))
    assert set(stage.breaches()) == {"NoDuplicateFromIdempotentProducer"}


def test_a_record_that_is_there_twice_of_a_producer_that_is_not_idempotent(stage: Stage) -> None:
    stage.is_idempotent = False
    for log in stage.logs.values():
        log.append(batch([3, 4], offset=5, epoch=2))
    assert stage.breaches() == {}


def test_records_that_change_places(stage: Stage) -> None:
    stage.is_idempotent = False
    stage.reader = []
    for log in stage.logs.values():
        log[-1] = batch([4, 3], offset=3, epoch=2)
    stage.writer[-2:] = [acknowledged(40, 4, 3), acknowledged(41, 3, 4)]
    assert set(stage.breaches()) == {"OrderPerProducer"}


def test_a_reader_that_skips_a_record(stage: Stage) -> None:
    stage.reader[1] = read(20, 0, [(1, mark(1))])
    assert set(stage.breaches()) == {"OffsetsDense"}


def test_a_log_with_a_hole(stage: Stage) -> None:
    """Seen by whoever reads on where the segment before ended."""
    directory = stage.path / "broker-1" / "logs" / f"{TOPIC}-0.7"
    stage.logs[1] = [*LOG[:2]]
    stage.is_whole = False
    late = batch([3, 4], offset=4, epoch=2)
    original = stage._log

    def with_second_segment(broker: int) -> Path:
        data = original(broker)
        if broker == 1:
            (directory / "00000000000000000004-1-1.log").write_bytes(late)
        return data

    stage._log = with_second_segment  # type: ignore[method-assign]
    assert "OffsetsDense" in stage.breaches()


def test_a_record_that_was_read_and_is_another_one_in_the_end(stage: Stage) -> None:
    stage.reader[1] = read(20, 0, [(0, mark(0)), (1, mark(1, "kp-one"))])
    assert set(stage.breaches()) == {"NoReadOfWhatDisappeared"}


def test_a_leader_that_answers_from_the_past(stage: Stage) -> None:
    stage.watcher = [listed(30, 2)]
    assert set(stage.breaches()) == {"NoStaleLeaderRead"}


def test_a_leader_that_was_asked_before_the_acknowledgement_may_not_know_of_it(
    stage: Stage,
) -> None:
    stage.watcher = [listed(11, 2)]
    assert stage.breaches() == {}


def test_a_leader_that_does_not_know_what_was_read(stage: Stage) -> None:
    stage.writer = []
    stage.watcher = [listed(21, 1)]
    assert set(stage.breaches()) == {"NoStaleLeaderRead"}


def test_a_high_watermark_that_falls(stage: Stage) -> None:
    stage.writer = []
    stage.reader = []
    stage.watcher = [listed(10, 4), listed(20, 3)]
    assert set(stage.breaches()) == {"HighWatermarkMonotonic"}


def test_a_group_that_is_told_an_older_offset(stage: Stage) -> None:
    stage.reader.append(told(70, 2))
    assert set(stage.breaches()) == {"GroupOffsetsMonotonic"}


def test_a_group_that_is_told_an_offset_that_nobody_committed(stage: Stage) -> None:
    stage.reader.append(told(70, 4))
    assert set(stage.breaches()) == {"GroupOffsetsMonotonic"}


def test_a_commit_of_unknown_outcome_may_count_or_not(stage: Stage) -> None:
    stage.reader.append(CommitBegun(60, 3, TOPIC, 0, 4))
    stage.reader.append(told(70, 4))
    assert stage.breaches() == {}


def test_a_commit_acknowledged_while_somebody_asks_may_count_or_not(stage: Stage) -> None:
    stage.reader[6:] = [told(55, 2), *committed(55, 2, 5)]
    assert stage.breaches() == {}


def test_two_brokers_that_say_that_they_lead_in_one_epoch(stage: Stage) -> None:
    stage.leaders.append(Led(1, f"{TOPIC}-0", 1))
    stage.leaders.append(Led(2, "unknown-0", 1))
    assert stage.breaches() == {}
    stage = Stage(stage.path / "again", leaders=[*stage.leaders, Led(2, f"{TOPIC}-0", 1)])
    stage.path.mkdir()
    assert set(stage.breaches()) == {"SingleLeaderPerEpoch"}


def test_logs_that_differ_in_the_same_epoch(stage: Stage) -> None:
    stage.is_whole = False
    stage.logs[2] = [*LOG[:-1], batch([3, 5], offset=3, epoch=2)]
    breaches = stage.breaches()
    assert "LogMatching" in breaches
    assert "CommittedPrefixEqual" not in breaches


def test_logs_that_differ_in_what_is_committed(stage: Stage) -> None:
    other = [batch([3, 4], offset=3, epoch=3)]
    stage.logs[2] = [*LOG[:2], marker(offset=3, epoch=3), *other]
    assert "CommittedPrefixEqual" in stage.breaches()


def test_a_client_that_is_told_an_error(stage: Stage) -> None:
    stage.writer.append(Failed(70, mark(5), "OUT_OF_ORDER_SEQUENCE_NUMBER"))
    breaches = stage.breaches()
    assert set(breaches) == {"NoUnexpectedError"}
    assert WRITER in breaches["NoUnexpectedError"]


def test_a_refused_record_that_no_log_has_is_as_it_should_be(stage: Stage) -> None:
    stage.writer.append(Refused(70, TOPIC, 0, mark(5)))
    assert stage.breaches() == {}


def test_a_refused_record_that_a_log_has(stage: Stage) -> None:
    """As if the broker had refused what it wrote."""
    stage.writer[-1] = Refused(44, TOPIC, 0, mark(4))
    breaches = stage.breaches()
    assert set(breaches) == {"RefusedRecordNotWritten"}
    assert "rd-east/4" in breaches["RefusedRecordNotWritten"]


def test_a_breach_tells_the_record_the_offset_and_the_broker(stage: Stage) -> None:
    stage.writer.append(acknowledged(70, 5, 5))
    breach = stage.breaches()["NoAcknowledgedRecordLost"]
    assert breach.startswith(
        "group 7: rd-east/5 was acknowledged at offset 5; broker 1 has nothing"
    )

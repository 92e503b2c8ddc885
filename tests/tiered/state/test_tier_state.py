"""What the tier's state answers (decision 0057)."""

import pytest
from tests.tiered.state.entries import BUCKET, FAR, Tier, entry, go_live, intend, retire

from strandline.model.ids import Epoch, Index, Offset
from strandline.tiered.state.commands import Checkpoint, GoLive
from strandline.tiered.state.encoding import UnknownRecordError, decode, encode
from strandline.tiered.state.retirement import Limits, retire_before
from strandline.tiered.state.tier import TierState

NO_LIMITS = Limits(-1, -1, -1, 1_000)


def test_partition_begins_where_live_objects_that_reach_the_local_log_begin() -> None:
    tier = Tier()
    assert tier.state.start_offset(Offset(0)) == 0
    tier.upload(10, 20, 30)
    assert tier.state.start_offset(Offset(30)) == 0
    assert tier.state.start_offset(Offset(25)) == 0
    assert tier.state.start_offset(Offset(31)) == 31  # The records between are nowhere.
    tier.done(retire(15))
    assert tier.state.start_offset(Offset(30)) == 10
    tier.state.delete_records(Index(99), Epoch(1), Offset(17))
    assert tier.state.start_offset(Offset(30)) == 17


def test_buckets_bridge_each_others_gaps() -> None:
    tier = Tier().upload(10, 20, bucket="a").upload(30, 40, bucket="b", start=15)
    assert tier.state.start_offset(Offset(40)) == 0
    assert [tuple(one) for one in tier.state.stretches(Offset(40))] == [
        ("a", 0, 15),
        ("b", 15, 40),
    ]


def test_covered_end_counts_copies_without_a_gap() -> None:
    tier = Tier().upload(10, 20, bucket="a").upload(10, bucket="b").upload(50, bucket="c", start=5)

    def covered(copies: int, *buckets: str, start: int = 0) -> int:
        return tier.state.covered_end(copies, buckets, from_offset=Offset(start))

    assert covered(0, "a", "b") == 10
    assert covered(1, "a", "b") == 20
    assert covered(1, "a", "b", "c") == 20  # c lacks the records below 5.
    assert covered(1, "a", "b", "c", start=5) == 50
    assert covered(0, "a", "never used") == 0
    assert covered(9, "a", "b") == 10  # More than there are: all.
    assert covered(1, start=7) == 7
    assert covered(1, "a", start=30) == 30
    tier.done(retire(10, bucket="a"))
    assert covered(1, "a") == 20  # What was retired is needed no more.


def test_object_of_an_offset() -> None:
    tier = Tier().upload(10, 20, 30)
    found = [tier.state.find(BUCKET, Offset(at)) for at in (0, 9, 10, 29, 30)]
    assert [one and one.name for one in found] == ["0-10", "0-10", "10-20", "20-30", None]
    assert tier.state.find("other", Offset(0)) is None


def test_epochs_before_the_local_log_come_from_the_entries() -> None:
    tier = Tier()
    for one in (
        entry(0, 10, epochs=((2, 0), (4, 6))),
        entry(10, 20, epochs=((4, 10),)),
        entry(20, 30, epochs=((7, 20), (8, 25))),
    ):
        base, end = one.base_offset, one.end_offset
        tier.done(intend(base, end), GoLive(BUCKET, one))

    def ask(epoch: int) -> tuple[int, int]:
        return tier.state.epoch_end_offset(
            Epoch(epoch), local_start=Offset(30), local_epoch=Epoch(9)
        )

    answers = [ask(epoch) for epoch in range(1, 9)]
    assert answers == [(1, 0), (2, 6), (2, 6), (4, 20), (4, 20), (4, 20), (7, 25), (8, 30)]
    at = [tier.state.epoch_at(Offset(one), local_start=Offset(30)) for one in (0, 5, 6, 19, 25)]
    assert at == [2, 2, 4, 4, 8]
    tier.done(retire(20))
    assert [ask(4), ask(7)] == [(4, 20), (7, 25)]


def test_epochs_cross_from_one_bucket_to_the_next() -> None:
    tier = Tier()
    for bucket, one in (
        ("a", entry(0, 10, epochs=((1, 0), (2, 5)))),
        ("b", entry(5, 20, epochs=((2, 5), (3, 10)))),
    ):
        tier.done(intend(one.base_offset, one.end_offset, bucket=bucket))
        tier.done(GoLive(bucket, one))
    answers = [
        tier.state.epoch_end_offset(Epoch(epoch), local_start=Offset(20), local_epoch=Epoch(4))
        for epoch in (0, 1, 2, 3)
    ]
    assert answers == [(0, 0), (1, 5), (2, 10), (3, 20)]


def test_checkpoint_restores_the_whole_state() -> None:
    tier = Tier().upload(10, 20, bucket="b").upload(10, bucket="a").done(retire(10, bucket="b"))
    tier.done(intend(20, 30, bucket="b"))
    tier.state.delete_records(Index(99), Epoch(1), Offset(3))
    payload = encode(tier.state.checkpoint())
    found = decode(payload)
    assert isinstance(found, Checkpoint)
    restored = TierState.restored(found)
    assert encode(restored.checkpoint()) == payload
    for state in (tier.state, restored):
        command = go_live(20, 30, bucket="b")
        assert state.apply(Index(100), Epoch(2), command, log_end=FAR) is None
    assert restored.lineage == tier.state.lineage
    assert encode(restored.checkpoint()) == encode(tier.state.checkpoint())


@pytest.mark.parametrize("payload", [b"", b"\xc1", encode(intend(0, 1))[:-1], b"\x92\x02\x90"])
def test_payload_of_another_format_is_refused(payload: bytes) -> None:
    with pytest.raises(UnknownRecordError):
        decode(payload)


def test_other_markers_make_another_lineage() -> None:
    one, two = Tier().upload(10), Tier().upload(10)
    assert one.state.lineage == two.state.lineage
    one.apply(intend(10, 20))
    two.apply(intend(10, 21))
    assert one.state.lineage != two.state.lineage


class TestRetention:
    """What is due to retire."""

    def due(self, tier: Tier, limits: Limits, *, local_start: int = 30) -> int | None:
        return retire_before(
            tier.state,
            BUCKET,
            limits,
            local_start=Offset(local_start),
            local_bytes=500,
            committed_end=Offset(40),
            now_ms=10_000,
        )

    def test_by_time(self) -> None:
        tier = Tier()
        for base, time in ((0, 100), (10, 5_000), (20, 100)):
            one = entry(base, base + 10, max_timestamp=time)
            tier.done(intend(base, base + 10), GoLive(BUCKET, one))
        assert self.due(tier, NO_LIMITS._replace(retention_ms=9_900)) is None
        assert self.due(tier, NO_LIMITS._replace(retention_ms=9_899)) == 10
        assert self.due(tier, NO_LIMITS._replace(retention_ms=5_000)) == 10  # One is young.
        assert self.due(tier, NO_LIMITS._replace(retention_ms=4_999)) == 30

    def test_by_bytes_with_the_local_ones(self) -> None:
        tier = Tier().upload(10, 20, 30)
        assert self.due(tier, NO_LIMITS._replace(retention_bytes=2_501)) is None
        assert self.due(tier, NO_LIMITS._replace(retention_bytes=2_500)) == 10
        assert self.due(tier, NO_LIMITS._replace(retention_bytes=0)) == 30

    def test_by_records(self) -> None:
        tier = Tier().upload(10, 20, 30)
        assert self.due(tier, NO_LIMITS._replace(retention_records=30)) == 10

    def test_deleted_records_go(self) -> None:
        tier = Tier().upload(10, 20, 30)
        tier.state.delete_records(Index(99), Epoch(1), Offset(25))
        assert self.due(tier, NO_LIMITS) == 20

    def test_objects_that_cannot_be_reached_go(self) -> None:
        tier = Tier().upload(10, 20, 30)
        assert self.due(tier, NO_LIMITS, local_start=31) == 30
        tier.upload(40, bucket="bridge", start=29)
        assert self.due(tier, NO_LIMITS, local_start=31) is None

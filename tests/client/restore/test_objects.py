"""A lost cluster's objects are copied into another cluster's prefix: all of them, checked, once.

Source: decisions 0063 and 0067."""

import asyncio
from asyncio import Runner
from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import msgspec
import pytest
from tests.client.restore.lost_cluster import CLUSTER, IDS, claim, put_export, put_snapshot
from tests.tiered.exports.stores import MemoryStore

from strandline.base.errors import OperatorError
from strandline.client.admin import NewTopic
from strandline.client.restore import objects
from strandline.client.restore.objects import (
    COPIES_AT_ONCE,
    Copied,
    Targets,
    _copy_all,
    _export_at,
    _new_topic,
    way_of,
)
from strandline.client.restore.plan import PlannedTopic, RestorePlan, plan_restore
from strandline.controller.placing.start_offsets import HISTORY
from strandline.model.cluster import Labels
from strandline.model.ids import Offset, first_epoch
from strandline.records.record import Record, build_batch
from strandline.tiered.exports.names import PartitionPlace
from strandline.tiered.exports.reading import find_topic, read_newest
from strandline.tiered.objects.store import ObjectAbsentError, StoreError
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.names import parse_segment_name
from strandline.tiered.segments.writer import SegmentWriter

URL = "file:///lost"
PLACE = PartitionPlace("new", UUID(int=9), 0)
TIERED = {"remote.storage.enable": "true"}


def segment(base: int, end: int) -> tuple[bytes, SegmentEntry]:
    """A whole object of partition 0 of topic orders, of about 2.5 MB."""
    writer = SegmentWriter(Offset(base), Offset(end))
    for at in range(base, end):
        record = Record(0, at, b"%d" % at, bytes([at % 251]) * 250_000)
        writer.add(bytes(build_batch([record], base_offset=at, epoch=1)))
    name = f"{CLUSTER}/{IDS['orders']}/0/{base:020d}-1-{base:016x}.segment"
    made = writer.finish(name)
    return b"".join(map(bytes, made.parts)), made.entry


class Lost:
    """A bucket with ten objects of one partition, and the plan to restore them."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.source, self.target = MemoryStore(), MemoryStore()
        made = [segment(base, base + 10) for base in range(0, 100, 10)]
        self.entries = tuple(entry for _, entry in made)
        runner.run(claim(self.source))
        runner.run(put_snapshot(self.source, at_ms=100))
        runner.run(put_export(self.source, 0, 100, at_ms=90, entries=self.entries))
        for data, entry in made:
            self.source.objects[entry.name] = (data, 0)
        self.plan: RestorePlan = runner.run(plan_restore({URL: self.source}))

    @property
    def topic(self) -> PlannedTopic:
        (found,) = [one for one in self.plan.topics if one.name == "orders"]
        return found

    def copy(self, *, last: int = 10) -> Copied:
        """Copy the first objects, or all ten."""
        copied = Copied()
        found = self.topic.partitions[0]
        assert found.export is not None
        live = found.export.live[:last]
        fewer = msgspec.structs.replace(found.export, live=live, end_offset=live[-1].end_offset)
        one = replace(found, export=fewer)
        assert one.export is not None
        export = _export_at(one.export, PLACE, self.topic)
        self.runner.run(_copy_all(self.source, self.target, one.objects, export, copied))
        return copied


@pytest.fixture
def lost() -> Iterator[Lost]:
    with asyncio.Runner() as runner:
        yield Lost(runner)


def test_the_copies_have_names_of_their_own_and_the_same_bytes(lost: Lost) -> None:
    before = dict(lost.source.objects)
    copied = lost.copy()
    sizes = sum(one.size_bytes for one in lost.entries)
    assert (copied.count, copied.total_bytes, copied.here_bytes) == (10, sizes, sizes)
    found = lost.runner.run(read_newest(lost.target, PLACE))
    assert found is not None
    assert (found.export.start_offset, found.export.end_offset) == (0, 100)
    assert found.export.high_watermark == 100
    for old, new in zip(lost.entries, found.export.live, strict=True):
        parsed = parse_segment_name(new.name)
        assert parsed is not None and (parsed.cluster_id, parsed.base_offset) == (
            "new",
            old.base_offset,
        )
        assert lost.target.objects[new.name][0] == lost.source.objects[old.name][0]
    assert lost.runner.run(find_topic(lost.target, "new", "orders")) == PLACE.topic_id
    assert lost.source.objects == before


def test_an_interrupted_run_goes_on_with_what_is_missing(lost: Lost) -> None:
    puts = 0

    def fail(operation: str, name: str) -> None:
        nonlocal puts
        puts += operation == "put"
        if puts > 5:
            raise StoreError("gone")

    lost.target.fail = fail
    with pytest.raises(StoreError):
        lost.copy()
    lost.target.fail = lambda operation, name: None
    copied = lost.copy()
    assert copied.kept_count >= 5 - COPIES_AT_ONCE and copied.count + copied.kept_count == 10
    again = lost.copy()
    assert (again.count, again.kept_count) == (0, 10)


def test_a_later_run_with_other_objects_says_so(lost: Lost) -> None:
    for last, end in ((6, 60), (10, 100), (10, 100), (8, 80)):
        lost.copy(last=last)
        found = lost.runner.run(read_newest(lost.target, PLACE))
        assert found is not None and found.export.end_offset == end


def test_a_missing_object_ends_it_before_anything_is_said(lost: Lost) -> None:
    lost.source.objects.pop(lost.entries[3].name)
    with pytest.raises(ObjectAbsentError):
        lost.copy()
    assert lost.runner.run(read_newest(lost.target, PLACE)) is None


@pytest.mark.parametrize("at", [1_000, 1_500_000, -20])
def test_a_wrong_byte_is_not_copied(lost: Lost, at: int) -> None:
    name = lost.entries[3].name
    data = bytearray(lost.source.objects[name][0])
    data[at] ^= 1
    lost.source.objects[name] = (bytes(data), 0)
    with pytest.raises(OperatorError, match="not what was uploaded"):
        lost.copy()
    assert lost.runner.run(read_newest(lost.target, PLACE)) is None


def test_the_way_is_told_and_a_topic_without_a_place_is_refused(lost: Lost) -> None:
    targets = Targets({"east": lost.target}, {"east": Labels("east")})
    stores = {URL: lost.source}
    one = lost.topic.partitions[0]
    plain = lost.topic

    def topic(**configs: str) -> PlannedTopic:
        return PlannedTopic(plain.name, plain.id, TIERED | configs, plain.partitions)

    assert way_of(topic(), one, stores, targets) == "to east, through this client"
    assert way_of(topic(), plain.partitions[1], stores, targets) == "nothing to copy"
    with pytest.raises(OperatorError, match="--records"):
        way_of(plain, one, stores, targets)
    residency = '{"residency":{"allow":[{"label":"region","op":"in","values":["west"]}]}}'
    with pytest.raises(OperatorError, match="allows none of the buckets east"):
        way_of(topic(**{"placement.policy": residency}), one, stores, targets)
    both = {"east": lost.target, "west": MemoryStore()}
    wider = Targets(both, {name: Labels(name) for name in both})
    assert way_of(topic(**{"placement.policy": residency}), one, stores, wider).startswith(
        "to west"
    )


def test_a_partition_goes_on_behind_all_epochs_and_offsets_of_the_lost_one(
    lost: Lost, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def check(client: object, topic: NewTopic, *, subject: str) -> None:
        asked.append(dict(topic.configs)[HISTORY])

    monkeypatch.setattr(objects, "check_topic", check)
    full, empty = lost.topic.partitions
    assert full.export is not None
    epoch = first_epoch(4) + 7
    number = msgspec.structs.replace(full.export.number, epoch=epoch)
    later = replace(full, export=msgspec.structs.replace(full.export, number=number))
    emptied = replace(
        full, index=1, start=full.end, export=msgspec.structs.replace(full.export, live=())
    )
    for parts, told in (
        ((full, empty), "east:0:100:1,-"),
        ((later, emptied), "east:0:100:5,:100:100:1"),
    ):
        topic = PlannedTopic("orders", IDS["orders"], TIERED, parts)
        _new_topic(object(), topic, ["east", ""], [UUID(int=1)])  # type: ignore[arg-type]
        assert asked.pop() == told

"""Decides what the next batch of a table reads, and what it finds missing.

Why:    the offsets of a batch are fixed before anything is read, so that the batch can be checked,
        told and repeated.
How:    progress + a snapshot of the topics -> positions and gaps -> ranges of offsets. Pure.

            position < first offset of the log   records were deleted before they were read
            position > end of the log            the log lost records that were read
            another topic id                     the topic was made anew under its name

        `--on-gap stop` refuses each; `record` goes on after deleted records and notes the gap;
        `start-anew` also begins a topic that was made anew, or a shorter log, from what is there.
Source: decisions/0050."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from strandline.base.errors import OperatorError
from strandline.pipeline.lake.cluster import NO_ID, Snapshot, TopicSnapshot
from strandline.pipeline.lake.progress import Batch, Gap, TopicProgress

OnGap = Literal["stop", "record", "start-anew"]

DELETED = "deleted before it was read"
SHORTER = "the log ends before it"
ANEW = "the topic was made anew"

Positions = Mapping[str, TopicProgress]
"""{topic: where it stands, with the gaps that led there}."""


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """How batches are planned."""

    table: str
    on_gap: OnGap
    batch_records: int
    """Most offsets of one batch."""


def positions(
    progress: Batch | None,
    snapshot: Snapshot,
    starts: Mapping[str, Mapping[int, int]],
    options: PlanOptions,
) -> dict[str, TopicProgress]:
    """Where reading goes on in each topic of the snapshot. `starts`: {topic: {partition: offset}}
    for topics that the table does not know. OperatorError for gaps that `on_gap` does not allow."""
    found = {}
    for name, topic in snapshot.topics.items():
        known = None if progress is None else progress.topics.get(name)
        if known is None:
            found[name] = TopicProgress(topic.id, starts[name])
        elif _is_another(known.id, topic.id):
            found[name] = _anew(name, known, topic, options)
        else:
            found[name] = _continued(name, known, topic, options)
    return found


def _is_another(known: str, found: str) -> bool:
    return NO_ID not in (known, found) and known != found


def _anew(
    name: str, known: TopicProgress, topic: TopicSnapshot, options: PlanOptions
) -> TopicProgress:
    if options.on_gap != "start-anew":
        raise OperatorError(
            f"topic {name} was deleted and made anew (id {topic.id}; {options.table} holds records "
            f"of {known.id}): fill a new table, or go on with the new topic's records by --on-gap "
            "start-anew"
        )
    gaps = [Gap(name, known.id, each, at, -1, ANEW) for each, at in known.next.items()]
    begun = dict.fromkeys(topic.starts, 0)
    fresh = _continued(name, TopicProgress(topic.id, begun), topic, options)
    return replace(fresh, gaps=(*gaps, *fresh.gaps))


def _continued(
    name: str, known: TopicProgress, topic: TopicSnapshot, options: PlanOptions
) -> TopicProgress:
    missing = sorted(known.next.keys() - topic.starts.keys())
    if missing:
        raise OperatorError(
            f"topic {name} has no partition {missing[0]}, from which {options.table} holds "
            "records: is this the right cluster?"
        )
    gaps: list[Gap] = []
    following: dict[int, int] = {}
    for partition, first in sorted(topic.starts.items()):
        # A partition that was added is read from its first record.
        at = known.next.get(partition, 0)
        end = topic.ends[partition]
        if at < first:
            gaps.append(Gap(name, topic.id, partition, at, first, DELETED))
            at = first
        elif at > end:
            gaps.append(Gap(name, topic.id, partition, end, at, SHORTER))
            at = end
        following[partition] = at
    _refuse(gaps, options)
    return TopicProgress(topic.id, following, gaps=tuple(gaps))


def _refuse(gaps: list[Gap], options: PlanOptions) -> None:
    shorter = [gap for gap in gaps if gap.reason == SHORTER]
    if shorter and options.on_gap != "start-anew":
        gap = shorter[0]
        raise OperatorError(
            f"{gap.topic}-{gap.partition} ends at offset {gap.first}, and {options.table} holds "
            f"records up to {gap.end}: the cluster lost records; if it will not get them back, go "
            "on from its end by --on-gap start-anew"
        )
    if gaps and options.on_gap == "stop":
        gap = gaps[0]
        more = f", and {len(gaps) - 1} more gaps" if len(gaps) > 1 else ""
        raise OperatorError(
            f"{gap.topic}-{gap.partition}: offsets {gap.first} to {gap.end - 1} were deleted "
            f"before they were read{more}: go on after them and note them in the table of gaps by "
            "--on-gap record"
        )


def lag(current: Positions, snapshot: Snapshot) -> int:
    """How many offsets are left to read."""
    return sum(
        max(0, snapshot.topics[name].readable_end(partition) - at)
        for name, topic in current.items()
        for partition, at in topic.next.items()
        if partition in snapshot.topics[name].ends
    )


def next_batch(
    current: Positions, snapshot: Snapshot, options: PlanOptions, *, fresh: bool
) -> Batch | None:
    """The next batch from these positions up to the snapshot's ends, or None if there is neither
    a record nor a gap. A `fresh` one, which takes up topics, is needed even if they are empty:
    where they begin must be noted. Its number, run and formats are the caller's."""
    left = {
        (name, partition): snapshot.topics[name].readable_end(partition) - at
        for name, topic in current.items()
        for partition, at in topic.next.items()
        if partition in snapshot.topics[name].ends
        and snapshot.topics[name].readable_end(partition) > at
    }
    gaps = [gap for topic in current.values() for gap in topic.gaps]
    if not left and not gaps and not fresh:
        return None
    shares = _shares(left, options.batch_records)
    topics = {}
    for name, topic in current.items():
        read = {
            partition: (at, at + shares[name, partition])
            for partition, at in topic.next.items()
            if shares.get((name, partition))
        }
        following = {**topic.next, **{one: end for one, (_, end) in read.items()}}
        topics[name] = TopicProgress(topic.id, following, read, topic.gaps)
    return Batch(number=0, cluster_id=snapshot.cluster_id, topics=topics)


def _shares(left: Mapping[tuple[str, int], int], most: int) -> dict[tuple[str, int], int]:
    """{place: how many of its offsets to read}: in proportion, at most `most` together, and at
    least one in all."""
    total = sum(left.values())
    if total <= most:
        return dict(left)
    shares = {place: count * most // total for place, count in left.items()}
    spare = most - sum(shares.values())
    for place in sorted(left, key=lambda one: left[one] - shares[one], reverse=True)[:spare]:
        shares[place] += 1
    return shares


def redo(planned: Batch, current: Positions, snapshot: Snapshot) -> Batch:
    """A batch whose side tables are written but whose rows are not, with what is left of it.

    Its ranges stay, so that the dead letters that were written stay true; offsets that are gone by
    now become gaps. `current`: positions that `positions` allowed."""
    topics = {}
    for name, topic in planned.topics.items():
        now = snapshot.topics.get(name)
        if now is None or _is_another(topic.id, now.id):
            lost = [Gap(name, topic.id, one, *ends, ANEW) for one, ends in topic.read.items()]
            topics[name] = replace(topic, read={}, gaps=(*topic.gaps, *lost))
            continue
        read, gaps = {}, list(topic.gaps)
        for partition, (first, end) in topic.read.items():
            begin = min(max(first, now.starts[partition]), end)
            if begin > first:
                gaps.append(Gap(name, topic.id, partition, first, begin, DELETED))
            if begin < end:
                read[partition] = (begin, end)
        topics[name] = replace(topic, read=read, gaps=tuple(gaps))
    return replace(planned, topics=topics)

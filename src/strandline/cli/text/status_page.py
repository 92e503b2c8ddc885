"""The page of `strandline cluster status`: what is down, stopped and at risk, what happens by
itself, and what to type.

Why:    the first command in an outage is read by a person who was asleep a minute ago: one page, in
        the order of the questions, and never "up" before that is known.
How:    one function for each section; each takes what the brokers told and gives lines.
Source: docs/operating/outages.md; docs/decisions/0046-cluster-status.md."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from strandline.cli.output import counted, ids, program
from strandline.cli.text.explaining import ranges
from strandline.client.operations.cluster_status import ClusterStatus
from strandline.client.operations.group_list import OFFSETS_TOPIC
from strandline.client.operations.lost_logs import LostLogs, split_leaderless
from strandline.client.operations.moments import lasting, time_text
from strandline.placement.survival.course import Course
from strandline.protocol.messages.describe_status import StatusBroker, StatusPartitions
from strandline.protocol.messages.describe_zones import ZoneHappening

TOPICS_SHOWN_MAX = 5
TIERED_BUCKETS = "tiered-buckets"
SETTINGS = "settings-differ"
LOW_QUORUM, TIERED_LAG, TIERED_FULL = "low-quorum", "tiered-lag", "tiered-full"
"""The controller's report of partitions that reject acks=all."""
OUTAGES = ("broker", "zone", "region", "network-cut", "planned")
"""Its reports that are about places. Those about partitions end half a minute after their cause."""
JUDGED_AFTER_MS = 12_000
"""After so much silence the controller has judged whether it is an outage: it takes 10 s."""
HEALTHY = "Nothing is down, stopped or at risk."
_ALONE = frozenset((Course.ELECTION, Course.ARBITRATION, Course.STANDS_IN))


@dataclass(frozen=True, slots=True)
class StatusPage:
    """Lines by section. `unknown`: what cannot be said yet, and why."""

    head: str
    unknown: tuple[str, ...]
    down: tuple[str, ...]
    stopped: tuple[str, ...]
    at_risk: tuple[str, ...]
    by_itself: tuple[str, ...]
    to_type: tuple[str, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether all is well, and that is known."""
        return not (self.unknown or self.down or self.stopped or self.at_risk)

    @property
    def sections(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """(title, lines) in the order in which they are read."""
        return (
            ("not known", self.unknown),
            ("down", self.down),
            ("stopped", self.stopped),
            ("at risk", self.at_risk),
            ("by itself", self.by_itself),
            ("to type", self.to_type),
        )


def page_of(found: ClusterStatus, wall_ms: int) -> StatusPage:
    """The page at this moment, in ms since 1970."""
    best = found.best
    here = sum(1 for one in found.brokers if found.is_answering(one.broker_id))
    controller = next((f"broker {one.broker_id}" for one in _controllers(found)), "none")
    return StatusPage(
        head=(
            f"cluster {best.cluster_id}: {counted(len(found.brokers), 'broker')}, {here} answer; "
            f"controller: {controller}"
        ),
        unknown=tuple(_unknown(found)),
        down=tuple(_down(found, wall_ms)),
        stopped=tuple(_stopped(found)),
        at_risk=tuple(_at_risk(found)),
        by_itself=tuple(_by_itself(found, wall_ms)),
        to_type=tuple(_to_type(found)),
    )


def _controllers(found: ClusterStatus) -> list[StatusBroker]:
    leading = {id for id, one in found.answers.items() if one.is_controller}
    return [one for one in found.brokers if one.broker_id in leading]


# ---- what is not known ---------------------------------------------------------------------------


def _unknown(found: ClusterStatus) -> Iterator[str]:
    why = found.why_no_controller()
    if why:
        yield f"{why}; the rest is what the brokers that answer see"
    elif not found.is_settled:
        yield (
            "the controller began to lead a moment ago: it does not know yet which brokers are "
            "silent; ask again in a few seconds"
        )
    if found.older:
        yield f"{_named(sorted(found.older))}: of a release that does not tell its status"


# ---- what is down --------------------------------------------------------------------------------


def _down(found: ClusterStatus, wall_ms: int) -> Iterator[str]:
    for where, brokers in _silent_groups(found):
        times = [found.since_ms(one.broker_id, wall_ms) for one in brokers]
        yield f"{where}: {_since(times, wall_ms)}"
    for one in found.brokers:
        heard_by = found.heard_by(one.broker_id)
        if heard_by and not found.is_answering(one.broker_id):
            hear = "hears" if len(heard_by) == 1 else "hear"
            yield (
                f"broker {one.broker_id}: no answer here, but {_named(heard_by)} {hear} it: cut "
                "off from here, or down since a moment ago: ask again in a few seconds"
            )
    for report in _happenings(found, "network-cut", "planned"):
        yield f"{report.kind}: {report.text}"


def _happenings(found: ClusterStatus, *kinds: str) -> Iterator[ZoneHappening]:
    """What the controller reports, of these kinds."""
    if found.zones is not None:
        yield from (one for one in found.zones.happenings if one.kind in kinds)


def _silent_groups(found: ClusterStatus) -> Iterator[tuple[str, list[StatusBroker]]]:
    """Silent brokers, with the words for them: a region that is silent as a whole is one line."""
    silent = [one for one in found.brokers if found.is_down(one.broker_id)]
    sizes = Counter(one.region for one in found.brokers)
    by_region: dict[str, list[StatusBroker]] = {}
    for one in silent:
        by_region.setdefault(one.region, []).append(one)
    for region, brokers in sorted(by_region.items()):
        if region and len(brokers) == sizes[region]:
            yield f"region {region} ({_named([one.broker_id for one in brokers])})", brokers
        else:
            for one in brokers:
                place = f" in region {region}" if region else ""
                yield f"broker {one.broker_id}{place}", [one]


def _since(times: Iterable[int | None], wall_ms: int) -> str:
    known = [one for one in times if one is not None]
    if not known:
        return "silent; no broker that answers has heard it since it started itself"
    return f"silent since {time_text(min(known))} ({lasting(wall_ms - min(known))})"


# ---- what is stopped -----------------------------------------------------------------------------


def _refusing(found: ClusterStatus) -> list[StatusPartitions]:
    return [one for answer in found.answers.values() for one in answer.refusing]


def _stopped(found: ClusterStatus) -> Iterator[str]:
    best = found.best
    topics = [one for one in best.leaderless if one.topic != OFFSETS_TOPIC]
    if topics:
        yield f"no leader: {_places(topics)}"
    refusing = _refusing(found)
    if refusing:
        yield f"acks=all is rejected: {_places(refusing)}"
    else:  # Leaders that do not answer here tell the controller.
        yield from (one.text for one in _happenings(found, LOW_QUORUM))
    groups = [one for one in best.leaderless if one.topic == OFFSETS_TOPIC]
    if groups:
        yield (
            f"consumer groups: {_count(groups)} of {best.offsets_partition_count} partitions of "
            f"{OFFSETS_TOPIC} have no leader; their groups have no coordinator"
        )
    yield from (one.text for one in _happenings(found, TIERED_FULL))
    if not found.has_controller:
        yield "without a controller: no topics, moves, promotions or new producers"


def _places(some: Sequence[StatusPartitions]) -> str:
    """`12 partitions: orders 0-3,7; payments 0`, and how many more topics."""
    indexes: dict[str, list[int]] = {}
    for one in some:
        indexes.setdefault(one.topic, []).extend(one.partitions)
    shown = [f"{name} {ranges(indexes[name])}" for name in sorted(indexes)[:TOPICS_SHOWN_MAX]]
    more = len(indexes) - len(shown)
    text = "; ".join(shown) + (f"; and {counted(more, 'more topic')}" if more else "")
    return f"{counted(_count(some), 'partition')}: {text}"


def _count(some: Iterable[StatusPartitions]) -> int:
    return sum(len(one.partitions) for one in some)


# ---- what is at risk -----------------------------------------------------------------------------


def _at_risk(found: ClusterStatus) -> Iterator[str]:
    best = found.best
    if best.thin:
        yield f"one more silent voter stops writes with acks=all: {_places(best.thin)}"
    losable = [one for one in best.leaderless if one.course in (Course.MAY_LACK, Course.GONE)]
    if losable:
        yield f"the brokers that are left may lack acknowledged records: {_places(losable)}"
    if best.fewer_voters_count:
        count = counted(best.fewer_voters_count, "partition")
        yield f"fewer voters than placement requires: {count}"
    if best.observers_vote_count:
        yield f"observers stand in for voters: {counted(best.observers_vote_count, 'partition')}"
    for lost in split_leaderless(found)[1]:
        yield f"{_lost_logs(lost)}: no leader by itself"
    yield from (one.text for one in _happenings(found, TIERED_LAG, TIERED_BUCKETS, SETTINGS))


def _lost_logs(lost: LostLogs) -> str:
    which = "all logs that are left" if lost.is_all else "too many logs"
    places = _places([StatusPartitions(lost.topic, list(lost.partitions))])
    return f"{places}: {which} are lost on {_named(lost.brokers)}"


# ---- what happens by itself ----------------------------------------------------------------------


def _by_itself(found: ClusterStatus, wall_ms: int) -> Iterator[str]:
    texts = {
        Course.ELECTION: "elect a leader within seconds",
        Course.ARBITRATION: "get a leader from the controller within seconds",
        Course.STANDS_IN: "get an observer that stands in, and take acks=all again",
    }
    told = [*split_leaderless(found)[0], *_refusing(found)]
    for course, text in texts.items():
        some = [one for one in told if one.course == course]
        if some:
            yield f"{_places(some)}: {text}"
    returning = [one for one in told if one.back and one.course not in _ALONE]
    if returning:
        yield f"{_places(returning)}: go on when {_back(returning)}"
    for fate, text, brokers in _fates(found):
        if fate == "held":
            yield f"replacement of {_named(brokers)}: held: {text}"
        elif fate == "lost":
            yield f"replacement of {_named(brokers)}: under way ({program()} cluster balance)"
        elif fate == "maintenance":
            yield f"replacement of {_named(brokers)}: none for a day, because of its maintenance"
    yield from _due(found, wall_ms)


def _due(found: ClusterStatus, wall_ms: int) -> Iterator[str]:
    """When the controller replaces single brokers. While a silence is young, it has not judged yet
    whether a zone or region is down, which would hold the replacement."""
    young: list[int] = []
    due: dict[str, list[int]] = {}
    for one in found.best.brokers:
        if one.fate == "due":
            since_ms = found.since_ms(one.broker_id, wall_ms)
            if since_ms is not None and wall_ms - since_ms < JUDGED_AFTER_MS:
                young.append(one.broker_id)
            else:
                when = f"in {lasting(one.due_ms)} ({time_text(wall_ms + one.due_ms)})"
                due.setdefault(when, []).append(one.broker_id)
    if young:
        yield (
            f"replacement of {_named(young)}: not decided yet: held if a zone or region counts as "
            "down after 10 s of silence; ask again in a few seconds"
        )
    for when, brokers in due.items():
        returns = "it returns" if len(brokers) == 1 else "they return"
        yield f"replacement of {_named(brokers)}: {when}, unless {returns}"


def _fates(found: ClusterStatus) -> list[tuple[str, str, list[int]]]:
    """(fate, words, brokers that share it), for all fates but "due"."""
    groups: dict[tuple[str, str], list[int]] = {}
    for one in found.best.brokers:
        if one.fate and one.fate != "due":
            groups.setdefault((one.fate, one.fate_text), []).append(one.broker_id)
    return [(fate, text, brokers) for (fate, text), brokers in groups.items()]


def _back(some: Sequence[StatusPartitions]) -> str:
    """Which brokers have to return, as far as one sentence says it."""
    brokers = sorted({broker for one in some for broker in one.missing})
    counts = {one.back for one in some}
    if len(counts) == 1 and all(sorted(one.missing) == brokers for one in some):
        verb = "returns" if counts == {1} else "return"
        return f"{min(counts)} of {_named(brokers)} {verb} with disks intact"
    return f"enough of {_named(brokers)} return with disks intact"


# ---- what to type --------------------------------------------------------------------------------


def _to_type(found: ClusterStatus) -> Iterator[str]:
    name = program()
    leaderless, lost = split_leaderless(found)
    told = [*leaderless, *_refusing(found)]
    if not found.has_controller:
        yield "start the controller's voters that are named above: nothing else can be decided"
    for topic, one in _first_of(told, Course.LET_LEAVE):
        yield f"{name} topic alter {topic} -c voters.shrink.enable=true    # {_what(one)}"
    for topic, one in _first_of(told, Course.LOWER):
        yield (
            f"{name} topic alter {topic} -c min.insync.replicas={one.left}    # acks=all goes on "
            "with fewer replicas"
        )
    losable = list(_first_of(told, Course.MAY_LACK)) + list(_first_of(told, Course.GONE))
    if losable:
        topic, one = losable[0]
        yield f"{name} partition survivors {topic} {one.partitions[0]}    # what is left of it"
        which = topic if len({each for each, _ in losable}) == 1 else "--all"
        if not found.has_controller:
            return  # A loss is declared by the controller.
        yield (
            f"{name} partition declare-lost {which} --dry-run    # the offsets at risk, if the "
            "brokers never return"
        )
    yield from _to_type_of_lost_logs(lost, has_controller=found.has_controller)
    # A broker that does not answer here may have lost its log, too.
    for topic, one in list(_first_of(told, Course.ELECTION))[:1]:
        yield (
            f"{name} partition survivors {topic} {one.partitions[0]}    # if it has no leader "
            "after a minute: whether logs were lost"
        )
    held = [brokers for fate, _, brokers in _fates(found) if fate == "held"]
    if held or any(True for _ in _happenings(found, *OUTAGES)):
        yield f"{name} zone status    # the outage by zones, and what `zone release` would start"
    if any(True for _ in _happenings(found, SETTINGS)):
        yield f"{name} doctor settings    # which brokers differ, and what to do"


def _to_type_of_lost_logs(lost: Sequence[LostLogs], *, has_controller: bool) -> Iterator[str]:
    """What helps where logs are lost, for the first such topic with and without buckets."""
    name = program()
    seen: set[bool] = set()
    for one in lost:
        if one.has_buckets in seen:
            continue
        seen.add(one.has_buckets)
        place = f"{one.topic} {one.partitions[0]}"
        if one.is_all and not one.has_buckets:
            why = "no log and no bucket: bring a disk back, or delete the topic"
        else:
            why = "which logs are left"
        yield f"{name} partition survivors {place}    # {why}"
        if one.has_buckets and has_controller:
            yield (
                f"{name} partition declare-lost {place} --from-bucket all --dry-run    # what the "
                "buckets have: the partition can begin anew with it"
            )
        if not one.is_all and has_controller:
            yield (
                f"{name} partition declare-lost {place} --dry-run    # the offsets at risk, if it "
                "goes on with the logs that are left"
            )


def _first_of(
    told: Iterable[StatusPartitions], course: Course
) -> Iterator[tuple[str, StatusPartitions]]:
    """Each topic with such partitions, and the first entry about it."""
    seen: set[str] = set()
    for one in told:
        if one.course == course and one.topic not in seen and len(seen) < TOPICS_SHOWN_MAX:
            seen.add(one.topic)
            yield one.topic, one


def _what(one: StatusPartitions) -> str:
    return f"{one.left} of {one.voters} voters are left and hold every acknowledged record"


def _named(brokers: Sequence[int]) -> str:
    return f"broker {brokers[0]}" if len(brokers) == 1 else f"brokers {ids(brokers)}"

"""How far each replica of each partition is, and who could not say.

Why:    what is compared must be committed, and must have had the time to arrive everywhere.
How:    every broker describes its replicas. The end of a partition is the highest high watermark
        that any replica knows. Replicas below it are asked again until they reach it, or until
        the time to wait is over.
Owns:   nothing; the client's view is a snapshot."""

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from strandline.base.errors import OperatorError, StrandlineError
from strandline.client.cluster import Client
from strandline.client.operations.topology import describe_brokers
from strandline.client.rights import missing_right
from strandline.client.views import ClusterView, TopicView
from strandline.model.access import Kind, Operation
from strandline.model.ids import BrokerId
from strandline.pipeline.audit.results import Place
from strandline.pipeline.audit.runners import Runner
from strandline.pipeline.audit.tasks import Seen, Target, Task, TaskResult
from strandline.protocol.errors import Error
from strandline.storage.digests.ranges import DigestKind

POLL_S = 0.1
DOWN = "the broker is down: the cluster does not list it"


@dataclass(slots=True)
class Replicas:
    """The replicas of one partition. `targets`: {broker: how it is asked}, of those that are up;
    `seen`: {broker: what it said last}; `first_seen`: what it said first; `problems`: {broker: why
    it cannot be compared}; `refused`: brokers that answer, but could not describe their replica
    yet."""

    topic: str
    partition: int
    brokers: tuple[int, ...]
    targets: dict[int, Target] = field(default_factory=dict)
    seen: dict[int, Seen] = field(default_factory=dict)
    first_seen: dict[int, Seen] = field(default_factory=dict)
    problems: dict[int, str] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)

    @property
    def end(self) -> int:
        """All below was committed when it was last looked at."""
        return max((one.high_watermark for one in self.seen.values()), default=0)

    @property
    def leader(self) -> int:
        """The broker that leads, -1 if none says so."""
        led = [(one.leader_epoch, broker) for broker, one in self.seen.items() if one.is_leader]
        return max(led, default=(-1, -1))[1]

    @property
    def skew(self) -> int:
        """How many records the slowest replica was behind the fastest at first; -1 if unknown."""
        marks = [one.high_watermark for one in self.first_seen.values()]
        return max(marks) - min(marks) if marks else -1

    def behind(self, end: int) -> set[int]:
        """The brokers that have not reached `end`, or cannot tell yet."""
        low = {broker for broker, seen in self.seen.items() if seen.high_watermark < end}
        return low | self.refused

    def apart(self) -> set[int]:
        """The brokers whose replicas begin at different offsets although nothing expires: a
        deletion of records may be on its way to some of them."""
        starts = {one.log_start for one in self.seen.values()}
        may_expire = any(one.may_expire for one in self.seen.values())
        return set() if may_expire or len(starts) < 2 else set(self.seen)

    def take(self, result: TaskResult) -> None:
        """Take what a broker says."""
        broker = result.task.target.broker
        self.refused.discard(broker)
        if result.problem or result.seen is None:
            self.problems[broker] = result.problem or "it does not describe its replica"
            self.seen.pop(broker, None)
            if not result.is_silent:
                self.refused.add(broker)
            return
        self.problems.pop(broker, None)
        self.seen[broker] = result.seen
        self.first_seen.setdefault(broker, result.seen)


def choose_topics(
    client: Client, names: Sequence[str], *, with_internal: bool
) -> tuple[ClusterView, list[TopicView]]:
    """The topics of these names, or all, without internal ones unless asked for. Raises
    OperatorError for a name that does not exist."""
    view = client.metadata(sorted(set(names)) or None)
    missing = [
        name
        for name in names
        if name not in view.topics
        or view.topics[name].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    ]
    hidden = [
        str(missing_right(client, Operation.READ, Kind.TOPIC, name))
        for name in names
        if name not in missing and view.topics[name].error_code == Error.TOPIC_AUTHORIZATION_FAILED
    ]
    if hidden:
        raise OperatorError(hidden[0], hidden[1:])
    if missing:
        raise OperatorError(f"topic {missing[0]} does not exist; see `strandline topic list`")
    chosen = [one for one in view.topics.values() if names or with_internal or not one.is_internal]
    if not chosen:
        raise OperatorError("there is no topic to audit; --include-internal adds internal ones")
    return view, sorted(chosen, key=lambda one: one.name)


def regions_of(client: Client, view: ClusterView, topics: Sequence[TopicView]) -> dict[int, str]:
    """{broker: its region}. Metadata has no broker that is down: for these the controller's labels
    are asked, which clusters of other brokers do not have."""
    found = {int(broker): each.rack for broker, each in view.brokers.items()}
    named = {int(one) for topic in topics for each in topic.partitions for one in each.replicas}
    if named - found.keys():
        with suppress(StrandlineError):
            placed = {int(each.id): each.labels.region for each in describe_brokers(client)}
            found = placed | found
    return found


def find_replicas(view: ClusterView, topics: Sequence[TopicView]) -> dict[Place, Replicas]:
    """The replicas of all partitions, as metadata names them."""
    found: dict[Place, Replicas] = {}
    for topic in topics:
        for partition in topic.partitions:
            one = Replicas(topic.name, partition.index, tuple(sorted(partition.replicas)))
            found[topic.name, partition.index] = one
            for broker in one.brokers:
                known = view.brokers.get(BrokerId(broker))
                if known is None:
                    one.problems[broker] = DOWN
                    continue
                one.targets[broker] = Target(
                    broker=broker,
                    host=known.address.host,
                    port=known.address.port,
                    topic=topic.name,
                    topic_id=str(topic.id),
                    partition=partition.index,
                )
    return found


def look(
    replicas: Mapping[Place, Replicas],
    runner: Runner,
    *,
    timeout_ms: int,
    only: Mapping[Place, Collection[int]] | None = None,
) -> int:
    """Have all replicas described, or `only` those on these brokers; returns the bytes on the
    wire."""
    wire_bytes = 0

    def take(result: TaskResult) -> None:
        nonlocal wire_bytes
        wire_bytes += result.wire_bytes
        target = result.task.target
        replicas[target.topic, target.partition].take(result)

    tasks = [
        Task(target, DigestKind.BYTES, (), timeout_ms)
        for place, one in replicas.items()
        for broker, target in one.targets.items()
        if only is None or broker in only.get(place, ())
    ]
    runner.run(tasks, take)
    return wire_bytes


def wait_in_step(
    replicas: Mapping[Place, Replicas],
    ends: Mapping[Place, int],
    runner: Runner,
    *,
    wait_ms: int,
    timeout_ms: int,
) -> int:
    """Ask replicas that have not reached their partition's end again, and those that begin apart,
    until they are in step or `wait_ms` are over; returns the bytes on the wire. Those that still
    lack records at the end get a problem."""
    until = time.monotonic() + wait_ms / 1000
    wire_bytes = 0
    while True:
        late = {place: one.behind(ends[place]) | one.apart() for place, one in replicas.items()}
        late = {place: brokers for place, brokers in late.items() if brokers}
        if not late or time.monotonic() >= until:
            break
        time.sleep(POLL_S)
        wire_bytes += look(replicas, runner, timeout_ms=timeout_ms, only=late)
    for place in late:
        one = replicas[place]
        for broker in one.behind(ends[place]) - one.refused:
            mark = one.seen[broker].high_watermark
            one.problems[broker] = (
                f"it is behind: it knows the records below offset {mark} to be committed, of those "
                f"below {ends[place]}"
            )
    return wire_bytes

"""Consumer groups of a drill: the effect of losing their coordinator, forecast and measured.

Why:    the leader of one partition of `__consumer_offsets` keeps a group's offsets; without that
        leader, members still read, but cannot commit.
How:    the drill makes a group of one member for each coordinator that is cut off, with a name that
        this broker coordinates. The member runs inside the command and, if possible, reads a
        partition that is led elsewhere, so that it waits for the coordinator alone. It commits
        whenever it receives records. A wait is the time between two successful commits. Without
        `__consumer_offsets`, which the first group of a cluster brings about, none is measured.
Owns:   the waits and how often members joined, until the groups are stopped.
Source: docs/decisions/0019-drills.md."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from strandline.base.errors import StrandlineError
from strandline.cli.drill.forecast import course
from strandline.cli.drill.load import RETRY_PAUSE_MS, Waits, end_wait, now_ms
from strandline.cli.text.live_cluster import LiveCluster
from strandline.client.admin import list_groups
from strandline.client.cluster import Client
from strandline.client.consumer import Consumer
from strandline.client.group_member import GroupMember
from strandline.coordinator.partitioning import partition_for
from strandline.model.ids import BrokerId

OFFSETS_TOPIC = "__consumer_offsets"
GROUPS_MAX = 10
NAMES_TRIED_MAX = 100_000
COMMIT_PAUSE_MS = 50
"""Between a commit and the next look for records."""
LEAVE_MS = 10_000


@dataclass(frozen=True, slots=True)
class GroupsForecast:
    """Groups with a coordinator that is cut off: their number, and how many of them would have
    no coordinator meanwhile."""

    coordinated: int
    stopped: int


@dataclass(frozen=True, slots=True)
class GroupWaits:
    """Waits of one group for a commit after the cut began. `goes_on`: whether another broker was
    expected to coordinate it; `joined`: how often its member had to join again."""

    group: str
    coordinator: BrokerId
    goes_on: bool
    longest_ms: int
    p50_ms: int
    joined: int


def forecast_groups(
    client: Client, cluster: LiveCluster, gone: Collection[BrokerId], *, decides: bool
) -> GroupsForecast:
    """Ask these brokers which groups they coordinate."""
    names = [one.id for one in list_groups(client, gone)]
    stopped = stopped_partitions(cluster, gone, decides=decides)
    count = _partition_count(cluster)
    return GroupsForecast(
        coordinated=len(names),
        stopped=sum(partition_for(one, partition_count=count) in stopped for one in names),
    )


def stopped_partitions(
    cluster: LiveCluster, gone: Collection[BrokerId], *, decides: bool
) -> frozenset[int]:
    """The partitions of `__consumer_offsets` that would take no commits."""
    down = {one.id for one in cluster.candidates if not one.is_up}
    return frozenset(
        one.index
        for topic in cluster.topics
        if topic.name == OFFSETS_TOPIC
        for one in topic.partitions
        if not course(topic, one, gone, down, decides=decides).acts_alone
    )


def _partition_count(cluster: LiveCluster) -> int:
    return next((len(one.partitions) for one in cluster.topics if one.name == OFFSETS_TOPIC), 1)


def choose_groups(
    prefix: str, leaders: Mapping[int, BrokerId], gone: Sequence[BrokerId]
) -> dict[str, BrokerId]:
    """{group: its coordinator}, at most one for each broker that goes. `leaders`: {partition of
    `__consumer_offsets`: its leader}, all of them."""
    wanted = set(leaders.values()) & set(gone[:GROUPS_MAX])
    found: dict[str, BrokerId] = {}
    for number in range(NAMES_TRIED_MAX):
        if not wanted:
            break
        name = f"{prefix}-{number}"
        leader = leaders[partition_for(name, partition_count=len(leaders))]
        if leader in wanted:
            wanted.remove(leader)
            found[name] = leader
    return found


def offsets_leaders(client: Client) -> dict[int, BrokerId]:
    """{partition of `__consumer_offsets`: its leader}; empty in a cluster without the topic. A
    drill does not make it, because no client can take it away."""
    topic = client.metadata([OFFSETS_TOPIC]).topics.get(OFFSETS_TOPIC)
    if topic is None or not topic.partitions:
        return {}
    return client.leaders(OFFSETS_TOPIC, deadline_ms=client.deadline())


class Groups:
    """See the module. `make_client` is called in each thread. Start once, stop once."""

    def __init__(
        self,
        make_client: Callable[[], Client],
        topic: str,
        coordinators: Mapping[str, BrokerId],
        *,
        partition: int,
        partitions: int,
    ) -> None:
        """`coordinators`: {group: its coordinator}; all read `partition` of `partitions`."""
        self._make_client = make_client
        self._topic = topic
        self._partition, self._partitions = partition, partitions
        self._coordinators = coordinators
        self._stops, self._is_abandoned = threading.Event(), False
        self._stopped_ms = 0
        self._waits = {one: Waits() for one in coordinators}
        self._joined = dict.fromkeys(coordinators, 0)
        self._threads = [
            threading.Thread(target=self._run, args=(one,), daemon=True) for one in coordinators
        ]

    @property
    def is_under_way(self) -> bool:
        """Whether every group has committed."""
        return all(one.ended for one in self._waits.values())

    def start(self) -> None:
        """Begin."""
        for one in self._threads:
            one.start()

    def stop(self) -> None:
        """Stop, and remove the groups; unfinished commits count as waits."""
        self._stopped_ms = now_ms()
        self._stops.set()
        for one in self._threads:
            if one.ident is not None:
                one.join()

    def abandon(self) -> None:
        """Stop without waiting for unfinished commits."""
        self._stopped_ms = self._stopped_ms or now_ms()
        self._stops.set()

    def wait_left(self, limit_ms: int) -> None:
        """Wait until the members have left their groups, or the limit."""
        until_ms = now_ms() + limit_ms
        for one in self._threads:
            if one.ident is not None:
                one.join(max(0, until_ms - now_ms()) / 1000)

    def waits(self, begun_ms: int, goes_on: Callable[[str], bool]) -> tuple[GroupWaits, ...]:
        """Of each group, by name."""
        return tuple(
            GroupWaits(
                group=group,
                coordinator=self._coordinators[group],
                goes_on=goes_on(group),
                longest_ms=waits.longest_ms(begun_ms),
                p50_ms=waits.p50_ms(begun_ms),
                joined=max(self._joined[group] - 1, 0),
            )
            for group, waits in sorted(self._waits.items())
        )

    def _run(self, group: str) -> None:
        waits = self._waits[group]
        with self._make_client() as client:
            member = GroupMember(client, group, self._topic, self._partitions)
            consumer = Consumer(client, self._topic, {self._partition: 0})
            last_ms = now_ms()
            while not self._stops.is_set():
                try:
                    if consumer.poll():
                        member.commit(consumer.positions)
                        now = now_ms()
                        waits.ended.append((now, now - last_ms))
                        last_ms = now
                    else:
                        member.heartbeat()
                    self._joined[group] = member.join_count
                    self._stops.wait(COMMIT_PAUSE_MS / 1000)
                except StrandlineError:
                    self._stops.wait(RETRY_PAUSE_MS / 1000)
            end_wait(waits, last_ms, self._stopped_ms)
            consumer.close()
            try:
                member.leave(client.transport.monotonic_ms() + LEAVE_MS)
            except StrandlineError:
                pass  # It expires by itself: its topic is gone, and its session ends.

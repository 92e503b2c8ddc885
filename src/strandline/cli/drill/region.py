"""A drill from start to end: cuts a region off under load, and reconnects it.

How:    baseline -> load -> cut -> verify the cut -> back -> steady -> read and compare
        After any failure, Ctrl-C among them, the drill ends the cut and removes its topic. If it
        cannot, it says what does: the brokers reconnect by themselves.
Source: docs/decisions/0019-drills.md."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from secrets import token_hex

from strandline.base.errors import OperatorError, StrandlineError
from strandline.cli.drill.forecast import loses_controller
from strandline.cli.drill.groups import (
    OFFSETS_TOPIC,
    Groups,
    GroupWaits,
    choose_groups,
    offsets_leaders,
    stopped_partitions,
)
from strandline.cli.drill.load import Load, now_ms
from strandline.cli.drill.steady import missing, remember
from strandline.cli.drill.topics import SOON_MS, TOPIC_PREFIX
from strandline.cli.drill.verdict import Verdict, compare
from strandline.cli.output import program
from strandline.cli.text.live_cluster import look
from strandline.client.admin import LATEST, NewTopic, create_topic, delete_topic, list_offsets
from strandline.client.cluster import Client
from strandline.client.consumer import Consumer
from strandline.client.errors import ClientError
from strandline.client.operations.isolation import end_isolation, isolate_broker, takes_clients
from strandline.client.operations.leadership import leader_waits
from strandline.client.operations.replica_status import replica_status
from strandline.client.operations.topology import describe_topology
from strandline.client.views import BrokerView
from strandline.coordinator.partitioning import partition_for
from strandline.model.cluster import Address
from strandline.model.ids import BrokerId

LOOK_MS = 250
BEGIN_MS = 1_000
"""So far ahead is the moment at which all are cut off: until then all must have been asked."""
ANSWER_MS = 500
END_ANSWER_MS = 2_000
"""How long a broker may take to end its cut."""
LEAVE_MS = 3_000
"""How long members may take to leave their groups after an interrupt."""
CHECK_MS = 1_000
END_MARGIN_MS = 500
"""So long before its end the cut is not checked any more: brokers end it by their own clocks."""
COUNTDOWN_MS = 10_000
TELL_FIRST_MS = 2_000
"""A wait shorter than that needs no word."""
CLIENT_MARGIN_MS = 60_000
"""Clients retry for this much longer than the cut."""
CONFIGS = (("retention.ms", "-1"), ("retention.bytes", "-1"), ("cleanup.policy", "delete"))


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a drill."""

    region: str
    duration_ms: int
    partitions: int
    steady_ms_max: int


@dataclass(frozen=True, slots=True)
class PartitionWaits:
    """How long the clients of one partition waited since the cut began. `leader`: before it."""

    partition: int
    leader: BrokerId
    producer_longest_ms: int
    producer_p50_ms: int
    consumer_longest_ms: int
    consumer_p50_ms: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a drill. `unsteady`: differences from before at the end of the time limit."""

    topic: str
    brokers: tuple[BrokerId, ...]
    waits: tuple[PartitionWaits, ...]
    verdict: Verdict
    given_up_count: int
    steady_after_ms: int
    unsteady: tuple[str, ...]
    groups: tuple[GroupWaits, ...] = ()
    """Empty where these brokers coordinated none."""

    @property
    def led_there_count(self) -> int:
        """Partitions that the region led; if 0, no client waited for another leader."""
        return sum(1 for one in self.waits if one.leader in self.brokers)

    @property
    def producer_rto_ms(self) -> int:
        """The longest that any producer waited."""
        return max(one.producer_longest_ms for one in self.waits)

    @property
    def consumer_rto_ms(self) -> int:
        """The longest that any consumer waited."""
        return max(one.consumer_longest_ms for one in self.waits)

    @property
    def group_rto_ms(self) -> int | None:
        """The longest that any group could not commit; None where none was measured."""
        return max((one.longest_ms for one in self.groups), default=None)


def brokers_of(client: Client, region: str) -> tuple[BrokerId, ...]:
    """The brokers of a region. Raises OperatorError unless all of them are up, and some broker
    elsewhere."""
    brokers = describe_topology(client).brokers
    there = [one for one in brokers if one.labels.region == region]
    if not there:
        known = sorted({one.labels.region for one in brokers if one.labels.region})
        raise OperatorError(f"no region {region}; known regions: {', '.join(known) or 'none'}")
    if not any(one.is_alive for one in brokers if one.labels.region != region):
        raise OperatorError(f"no broker outside {region} is up: the cluster would be down")
    down = [str(one.id) for one in there if not one.is_alive]
    if down:
        raise OperatorError(f"broker {', '.join(down)} of {region} is down already")
    return tuple(one.id for one in there)


def check_allowed(client: Client, brokers: Sequence[BrokerId], settings: Settings) -> None:
    """Raise what stands against cutting off any of them."""
    for broker in brokers:
        isolate_broker(
            client,
            broker,
            delay_ms=BEGIN_MS,
            duration_ms=settings.duration_ms,
            validate_only=True,
        )


def warn_of(
    leaders: Mapping[int, BrokerId],
    region: str,
    brokers: Collection[BrokerId],
    tell: Callable[[str], None],
) -> None:
    """Say so where the region leads none of the drill's partitions. `leaders`: of each of them."""
    if not set(leaders.values()) & set(brokers):
        tell(
            f"warning: {region} leads no partition of the drill's topic, so the drill cannot "
            "measure how long clients wait for a new leader: the cluster's default policy "
            "prefers other brokers, or --partitions is too small"
        )


class RegionDrill:
    """See the module. `tell` receives a line after each step."""

    def __init__(
        self,
        client: Client,
        make_client: Callable[[int], Client],
        settings: Settings,
        brokers: Sequence[BrokerId],
        tell: Callable[[str], None],
    ) -> None:
        """`make_client`: a client with a timeout in ms."""
        self._client = client
        self._make_client = make_client
        self._settings = settings
        self._brokers = tuple(brokers)
        self._tell = tell
        self._topic = f"{TOPIC_PREFIX}{token_hex(4)}"
        self._cut_brokers: dict[BrokerId, Address] = {}
        """{broker that was asked to cut itself off: where it serves clients}"""
        self._cut_until_ms = 0
        self._told_left_ms = 0
        self._is_created = False
        """Whether the topic certainly is."""

    def run(self) -> Outcome:
        """Do it; raises StrandlineError where it could not be done to its end."""
        settings = self._settings
        timeout_ms = settings.duration_ms + CLIENT_MARGIN_MS
        load = Load(lambda: self._make_client(timeout_ms), self._topic, settings.partitions)
        groups: list[Groups] = []
        try:
            # Inside, because an interrupted request may have created it.
            create_topic(
                self._client,
                NewTopic(self._topic, partitions=settings.partitions, configs=CONFIGS),
            )
            self._is_created = True
            self._tell(f"topic {self._topic}: {settings.partitions} producers and consumers")
            load.start()
            self._wait(lambda: load.is_under_way, self._client.timeout_ms, "not all clients run")
            leaders = self._client.leaders(self._topic, deadline_ms=self._client.deadline())
            groups.append(self._groups(leaders, timeout_ms))
            groups[0].start()
            return self._drill(load, groups[0])
        finally:
            self._clean_up(load, groups)

    def _clean_up(self, load: Load, groups: Sequence[Groups]) -> None:
        """End the cut if it is under way, and remove what the drill made. Interrupted once more,
        say what is left."""
        try:
            load.abandon()
            for one in groups:
                one.abandon()
            self._end_cut()
            for one in groups:
                one.wait_left(LEAVE_MS)
            self._remove_topic()
        except KeyboardInterrupt:
            self._tell(
                f"interrupted again: topic {self._topic} may be left, and brokers may be cut off "
                f"for {max(0, self._cut_until_ms - now_ms()) // 1000} s more; to end both: "
                f"{program()} drill cancel"
            )
            raise

    def _groups(self, leaders: Mapping[int, BrokerId], timeout_ms: int) -> Groups:
        """`leaders`: of the drill's topic."""
        led = offsets_leaders(self._client)
        if not led:
            self._tell("no consumer group was ever in this cluster: the drill measures none")
        coordinators = choose_groups(self._topic, led, self._brokers)
        staying = [one for one, leader in leaders.items() if leader not in self._brokers]
        return Groups(
            lambda: self._make_client(timeout_ms),
            self._topic,
            coordinators,
            partition=min(staying, default=0),
            partitions=self._settings.partitions,
        )

    def _drill(self, load: Load, groups: Groups) -> Outcome:
        limit_ms = self._client.timeout_ms
        self._wait(lambda: groups.is_under_way, limit_ms, "not every group commits")
        goes_on = self._groups_expected()
        found = replica_status(self._client)
        before = remember(found)
        leaders = {one.partition: one.leader for one in found if one.topic == self._topic}
        warn_of(leaders, self._settings.region, self._brokers, self._tell)
        known = self._client.metadata().brokers
        addresses = [known[broker].address for broker in self._brokers]
        begun_ms = self._cut(known)
        self._stay_cut(begun_ms + self._settings.duration_ms // 2)
        self._expect_cut(addresses)
        ended_ms = begun_ms + self._settings.duration_ms
        self._stay_cut(ended_ms)
        self._cut_brokers.clear()
        self._tell("the region is connected again")
        waits = partial(leader_waits, self._client)
        unsteady = self._wait_steady(lambda: missing(before, replica_status(self._client), waits))
        steady_ms = now_ms()
        groups.stop()
        load.stop_producing()
        until = now_ms() + self._client.timeout_ms
        while not load.is_read and now_ms() < until:
            time.sleep(LOOK_MS / 1000)
        load.stop()
        return Outcome(
            topic=self._topic,
            brokers=self._brokers,
            waits=tuple(_waits(load, begun_ms, leaders)),
            verdict=compare(
                [one for some in load.acknowledged for one in some],
                [one for some in load.consumed for one in some],
                read_all(self._client, self._topic),
            ),
            given_up_count=load.given_up_count,
            steady_after_ms=steady_ms - ended_ms,
            unsteady=tuple(unsteady),
            groups=groups.waits(begun_ms, goes_on),
        )

    def _groups_expected(self) -> Callable[[str], bool]:
        """A function that says whether another broker should coordinate a group."""
        if not offsets_leaders(self._client):
            return lambda _: False
        cluster = look(self._client, [OFFSETS_TOPIC], asks_leaders=True)
        decides = not loses_controller(self._client, cluster, self._brokers)
        stopped = stopped_partitions(cluster, self._brokers, decides=decides)
        count = len(cluster.topics[0].partitions)
        return lambda group: partition_for(group, partition_count=count) not in stopped

    def _cut(self, known: Mapping[BrokerId, BrokerView]) -> int:
        """Ask all of them; returns when it begins."""
        begins_ms = now_ms() + BEGIN_MS
        self._cut_until_ms = begins_ms + self._settings.duration_ms
        self._told_left_ms = self._settings.duration_ms
        asked: list[str] = []
        for broker in self._brokers:
            # Before the answer, which an interrupt may keep from coming.
            self._cut_brokers[broker] = known[broker].address
            try:
                isolate_broker(
                    self._client,
                    broker,
                    delay_ms=begins_ms - now_ms(),
                    duration_ms=self._settings.duration_ms,
                )
            except StrandlineError as error:
                if not asked:
                    raise
                within_s = (BEGIN_MS + self._settings.duration_ms) // 1000
                raise OperatorError(
                    f"{error}; broker {', '.join(asked)} reconnects by itself within {within_s} s"
                ) from error
            asked.append(str(broker))
        self._sleep_until(begins_ms)
        seconds = self._settings.duration_ms / 1000
        self._tell(
            f"brokers {', '.join(map(str, self._brokers))} are cut off for {seconds:g} s; Ctrl-C "
            f"ends that, and so does {program()} drill cancel"
        )
        return begins_ms

    def _stay_cut(self, moment_ms: int) -> None:
        """Wait, and count down; raises OperatorError if another command has ended the cut."""
        while (now := now_ms()) < moment_ms:
            left_ms = self._cut_until_ms - now
            if self._told_left_ms - left_ms >= COUNTDOWN_MS:
                self._told_left_ms -= COUNTDOWN_MS
                self._tell(f"cut off for {round(left_ms / 1000)} s more")
            self._sleep_until(min(moment_ms, now + CHECK_MS))
            if self._cut_until_ms - now_ms() > END_MARGIN_MS:
                broker, address = next(iter(self._cut_brokers.items()))
                if takes_clients(self._client, address, timeout_ms=ANSWER_MS):
                    raise OperatorError(
                        f"broker {broker} is not cut off any more: another command has ended the "
                        "drill, or the broker has restarted"
                    )

    def _end_cut(self) -> None:
        """End the cut before its time, if it is under way."""
        asked, self._cut_brokers = self._cut_brokers, {}
        left_ms = self._cut_until_ms - now_ms()
        for broker, address in asked.items() if left_ms > 0 else ():
            try:
                end_isolation(self._client, address, timeout_ms=END_ANSWER_MS)
                self._tell(f"broker {broker} is connected again")
            except StrandlineError as error:
                self._tell(
                    f"broker {broker} reconnects by itself within {left_ms // 1000 + 1} s: {error}"
                )

    def _expect_cut(self, addresses: Sequence[Address]) -> None:
        """What was asked for has to be the case: otherwise nothing is measured."""
        for broker, address in zip(self._brokers, addresses, strict=True):
            if takes_clients(self._client, address, timeout_ms=ANSWER_MS):
                raise OperatorError(f"broker {broker} should be cut off, but is not")

    def _remove_topic(self) -> None:
        with suppress(StrandlineError), self._make_client(SOON_MS) as soon:
            delete_topic(soon, self._topic)
            return
        try:
            delete_topic(self._client, self._topic)
        except StrandlineError as error:
            if type(error) is ClientError and not self._is_created:
                return  # The interrupt came before it was created.
            if self._is_deleted():
                return  # By `drill cancel`.
            self._tell(
                f"topic {self._topic} was not deleted: {error}; to delete it later: {program()} "
                "drill cancel"
            )

    def _is_deleted(self) -> bool:
        try:
            return self._topic not in self._client.metadata().topics
        except StrandlineError:
            return False

    def _wait_steady(self, look: Callable[[], list[str]]) -> list[str]:
        """What is still missing at the end of the time limit; empty if all is as before."""
        until = now_ms() + self._settings.steady_ms_max
        tell_ms = now_ms() + TELL_FIRST_MS
        while True:
            try:
                lines = look()
            except StrandlineError as error:
                lines = [str(error)]
            now = now_ms()
            if not lines or now >= until:
                return lines
            if now >= tell_ms:
                tell_ms = now + COUNTDOWN_MS
                more = f"; and {len(lines) - 1} more" if len(lines) > 1 else ""
                self._tell(
                    f"waiting until all is as before, for {(until - now) // 1000} s at most: "
                    f"{lines[0]}{more}"
                )
            time.sleep(LOOK_MS / 1000)

    def _wait(self, condition: Callable[[], bool], limit_ms: int, otherwise: str) -> None:
        until = now_ms() + limit_ms
        while not condition():
            if now_ms() >= until:
                raise OperatorError(f"topic {self._topic}: {otherwise}")
            time.sleep(LOOK_MS / 1000)

    def _sleep_until(self, moment_ms: int) -> None:
        time.sleep(max(moment_ms - now_ms(), 0) / 1000)


def read_all(client: Client, topic: str) -> dict[int, dict[int, bytes]]:
    """{partition: {offset: value}}, from the beginning to where it ends now."""
    ends = list_offsets(client, topic, LATEST)
    consumer = Consumer(client, topic, dict.fromkeys(ends, 0))
    found: dict[int, dict[int, bytes]] = {partition: {} for partition in ends}
    while any(consumer.positions[one] < end for one, end in ends.items()):
        for record in consumer.poll():
            found[record.partition][record.offset] = record.value or b""
    consumer.close()
    return found


def _waits(load: Load, begun_ms: int, leaders: Mapping[int, BrokerId]) -> Sequence[PartitionWaits]:
    return [
        PartitionWaits(
            partition=index,
            leader=leaders[index],
            producer_longest_ms=producer.longest_ms(begun_ms),
            producer_p50_ms=producer.p50_ms(begun_ms),
            consumer_longest_ms=consumer.longest_ms(begun_ms),
            consumer_p50_ms=consumer.p50_ms(begun_ms),
        )
        for index, (producer, consumer) in enumerate(
            zip(load.producer_waits, load.consumer_waits, strict=True)
        )
    ]

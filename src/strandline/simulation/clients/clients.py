"""The way between clients and brokers: requests and answers take time, keep order, or are lost.

Why:    a promise is measured by what a client was answered, and when. So a simulated request must
        travel like a real one, and be lost like one.
How:    requests of one client to one broker arrive in order, as on one connection. A broker without
        a process refuses requests. If a process dies before it answers, the client's own time-out
        ends the wait. Then the client opens a new connection, and requests that stalled on the old
        one may arrive after their repetition. Answers of a living broker are lost with their
        connection (`connections`).
Owns:   the present connections, and the times of the last arrivals on them.
Source: design section 10."""

import random
from collections.abc import Callable
from typing import TypeVar

from strandline.model.ids import NO_BROKER, BrokerId, GroupId
from strandline.simulation.clients.connections import Connection, Exchange
from strandline.simulation.clients.lookups import ask_leader
from strandline.simulation.world.broker_member import BrokerMember
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.member import Member
from strandline.simulation.world.scheduler import US_PER_MS

LATENCY_US = (100, 3_000)
LOOKUP_TIMEOUT_MS = 1_000

A = TypeVar("A")


class Client:
    """One client's connections. Subclasses say what is asked.

    `is_stopped`: it begins nothing new; what is under way ends."""

    def __init__(self, name: str, cluster: SimCluster, rng: random.Random) -> None:
        self.name = name
        self.cluster = cluster
        self.scheduler = cluster.scheduler
        self.rng = rng
        self.is_stopped = False
        self.connection = 1
        """The number of the latest connection to any broker."""
        self._last_arrival_us: dict[tuple[BrokerId, bool], int] = {}
        self._connections: dict[BrokerId, Connection] = {}
        """The present one to each broker that was asked something."""

    def connection_to(self, broker: BrokerId) -> Connection:
        """The present connection to `broker`; it is made where there is none."""
        return self._connections.setdefault(broker, Connection(broker))

    def stall(self, broker: BrokerId, delay_us: int | None) -> None:
        """What is sent to `broker` on the present connection comes so much later; None: never."""
        if delay_us is None:
            self.connection_to(broker).loses_requests = True
        else:
            self._last_arrival_us[broker, False] = self.scheduler.now_us + delay_us

    def reset(self, broker: BrokerId, *, drops_requests: bool) -> None:
        """The present connection to `broker` is reset, and the client notices: no answer comes on
        it any more, nor, if so, do requests that are under way."""
        connection = self.connection_to(broker)
        connection.is_reset = True
        connection.drops_requests = drops_requests
        self.reconnect(broker)

    def give_up(self, connection: Connection) -> None:
        """Reconnect, unless that connection was given up already."""
        if self._connections.get(connection.broker) is connection:
            self.reconnect(connection.broker)

    def reconnect(self, broker: BrokerId) -> None:
        """Give up the connection to `broker`: what is sent from now on waits for nothing before.

        Where answers were lost on it, all that is open fails: who has asked is told at once."""
        self.connection += 1
        self._last_arrival_us.pop((broker, False), None)
        self._last_arrival_us.pop((broker, True), None)
        connection = self._connections.pop(broker, None)
        if connection is not None and connection.is_faulty:
            connection.is_reset = True
            for exchange in connection.open:
                self.scheduler.after(0, exchange.lost)
            connection.open.clear()

    def start(self) -> None:
        """Begin to work."""

    def stop(self) -> None:
        """Begin nothing new."""
        self.is_stopped = True

    def ask(
        self,
        broker: BrokerId,
        request: Callable[[Member, Exchange], None],
        refused: Callable[[], None],
        *,
        lost: Callable[[], None] | None = None,
    ) -> None:
        """Run `request` in the process of `broker`, or call `refused` where there is none, and
        where the answer was lost with its connection, if nothing else is said for that (`lost`)."""
        connection = self.connection_to(broker)
        exchange = Exchange(self, connection, lost or refused)

        def arrive() -> None:
            if connection.drops_requests:
                return
            host = self.cluster.hosts[broker]
            if host.process is None:
                exchange.answer(refused)
                return
            host.process.after(0, run)

        def run() -> None:
            member = self.cluster.hosts[broker].program
            if member is not None:
                request(member, exchange)

        if not connection.loses_requests:
            self.scheduler.at(self.arrival_us(broker, is_answer=False), arrive)

    def find_leader(self, group: GroupId) -> BrokerId:
        """What any living broker knows at once; NO_BROKER where it does not know. For groups
        without a broker above them, which no request reaches."""
        up = [host for host in self.cluster.hosts.values() if host.program is not None]
        if not up:
            return NO_BROKER
        member = self.rng.choice(up).program
        return NO_BROKER if member is None else member.leader_of(group)

    def lookup(
        self,
        broker: BrokerId,
        question: Callable[[BrokerMember, Callable[[A], None], Callable[[str], None]], None],
        done: Callable[[A | None], None],
        *,
        timeout_ms: int = LOOKUP_TIMEOUT_MS,
    ) -> None:
        """Ask a whole broker something of `lookups`; None where no answer comes in time."""
        is_open = True

        def end(answer: A | None) -> None:
            nonlocal is_open
            if is_open:
                is_open = False
                timeout.cancel()
                done(answer)

        def give_up() -> None:
            self.reconnect(broker)
            end(None)

        def run(member: Member, exchange: Exchange) -> None:
            assert isinstance(member, BrokerMember)
            question(
                member,
                lambda answer: exchange.answer(lambda: end(answer)),
                lambda _: exchange.answer(lambda: end(None)),
            )

        timeout = self.scheduler.after(timeout_ms * US_PER_MS, give_up)
        self.ask(broker, run, lambda: end(None))

    def seek_leader(self, group: GroupId, done: Callable[[BrokerId], None]) -> None:
        """Find the leader: by a Metadata request to any broker where there are whole brokers.
        NO_BROKER where nobody knows."""
        if not self.cluster.scenario.has_brokers:
            done(self.find_leader(group))
            return
        topic = self.cluster.plan(group).name

        def ask(
            member: BrokerMember, found: Callable[[BrokerId], None], closed: Callable[[str], None]
        ) -> None:
            ask_leader(member, topic, found, closed)

        def end(leader: BrokerId | None) -> None:
            done(NO_BROKER if leader is None else leader)

        self.lookup(self.rng.choice(self.cluster.scenario.brokers), ask, end)

    def arrival_us(self, broker: BrokerId, *, is_answer: bool) -> int:
        """When what is sent now to `broker`, or by it, arrives: not before what was sent before."""
        due_us = self.scheduler.now_us + self.rng.randint(*LATENCY_US)
        due_us = max(due_us, self._last_arrival_us.get((broker, is_answer), 0) + 1)
        self._last_arrival_us[broker, is_answer] = due_us
        return due_us

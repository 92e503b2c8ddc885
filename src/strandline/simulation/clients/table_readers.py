"""A consumer that reads a compacted topic from its beginning, from one replica, again and again.

Why:    only a reader of a whole replica sees which keys it has deleted, and which came back.
How:    each turn reads one replica from the start of its log to its high watermark. A turn that
        takes longer than half of `delete.retention.ms` is given up: after that time the tombstone
        of a record that it read may be gone.
Owns:   what the present turn has read.
Source: Kafka's log compaction ("a consumer that reads from the beginning sees the final state")."""

import random
from functools import partial

from strandline.base.errors import ApiError
from strandline.model.ids import BrokerId, Offset
from strandline.records.batch import iterate_headers
from strandline.replication.replica.replica import Replica
from strandline.simulation.clients.clients import Client
from strandline.simulation.clients.connections import Exchange
from strandline.simulation.invariants.facts import TableRead
from strandline.simulation.scenarios.scenario import GroupPlan
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.member import Member
from strandline.simulation.world.scheduler import US_PER_MS

TURN_MS = (20, 300)
READ_BYTES = 64 * 1024


class _Turn:
    """`position`: what was read so far ends here; None at the beginning."""

    def __init__(self, plan: GroupPlan, broker: BrokerId, until_us: int) -> None:
        self.plan = plan
        self.broker = broker
        self.until_us = until_us
        self.position: Offset | None = None
        self.records: dict[Offset, bytes] = {}


class TableReader(Client):
    """See the module."""

    def __init__(self, name: str, cluster: SimCluster, rng: random.Random) -> None:
        super().__init__(name, cluster, rng)
        self.table_count = 0
        """Logs that were read to their end."""

    def start(self) -> None:
        """Read from now on."""
        self._next_turn()

    def _next_turn(self) -> None:
        if self.is_stopped:
            return
        plan = self.rng.choice(self.cluster.scenario.groups)
        limit_ms = self.cluster.scenario.log.delete_retention_ms // 2
        until_us = self.scheduler.now_us + limit_ms * US_PER_MS
        self._continue(_Turn(plan, self.rng.choice(plan.hosts), until_us))
        self.scheduler.after(self.rng.randint(*TURN_MS) * US_PER_MS, self._next_turn)

    def _continue(self, turn: _Turn) -> None:
        if self.scheduler.now_us < turn.until_us:
            self.ask(turn.broker, partial(self._read, turn), lambda: None)

    def _read(self, turn: _Turn, member: Member, exchange: Exchange) -> None:
        """Inside the broker."""
        replica = member.replication.replicas.get(turn.plan.group)
        if replica is None or replica.failed is not None:
            return
        position = replica.log_start_offset if turn.position is None else turn.position

        def done(data: bytes, error: ApiError | None) -> None:
            if error is None:
                self._on_read(turn, data, position, replica=replica, exchange=exchange)

        member.read(replica, position, READ_BYTES, done)

    def _on_read(
        self, turn: _Turn, data: bytes, position: Offset, *, replica: Replica, exchange: Exchange
    ) -> None:
        """Still inside the broker."""
        turn.records.update(self.cluster.values.read(data))
        for header in iterate_headers(data):
            position = max(position, header.next_offset)
        turn.position = position
        if data and position < replica.high_watermark:
            exchange.answer(lambda: self._continue(turn))
        elif exchange.settle() and self.scheduler.now_us < turn.until_us:
            self.table_count += 1
            self.cluster.checker.table_read(
                TableRead(self.name, turn.broker, turn.plan.group, position, turn.records)
            )

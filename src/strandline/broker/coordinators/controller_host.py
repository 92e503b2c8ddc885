"""The controller on this broker: replays group 0's log, and executes commands where it leads.

Why:    every broker answers from committed decisions that it has itself; only the leader decides.
How:    As the high watermark moves, committed records are applied and the subscribers of
        `on_applied` are called.
            A command goes to the leader, here or over `calls`. There commands run one after the
        other: decide on the committed state, append the records as one batch with acks=all, wait
        until they are applied, answer. Commands that concern one group each are carried out
        together (`command_batch`).
            A snapshot stands for the records before it (`broker.snapshots`). If one is adopted,
        `on_adopted` is called in the place of `on_applied`.
            If the answer to a command was lost, it is sent again only if carrying it out twice
        does no harm.
Owns:   the controller's state; one per broker.
Source: design section 3 ("decide, then do"); KIP-595 for the shape of it."""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from uuid import UUID

from strandline.base.clock import Clock
from strandline.base.errors import ApiError, StorageError, StrandlineError
from strandline.broker.coordinators.command_batch import OF_ONE_GROUP, CommandBatch
from strandline.broker.operations.reporting import Reporting
from strandline.broker.snapshots.snapshots import ControllerSnapshots
from strandline.controller.bucket_commands import IdentifyBucket
from strandline.controller.commands import (
    AllocateProducerIds,
    Answer,
    Command,
    EnsureInternalTopic,
    Refused,
    RegisterBroker,
    ReportVoters,
    RequestVoters,
    decode_answer,
    decode_command,
    encode,
)
from strandline.controller.machine import decide
from strandline.controller.placing.broker_removal import question_of
from strandline.controller.records import Record, decode_record, encode_record
from strandline.controller.state import ControllerState
from strandline.model.cluster import Cluster, Labels
from strandline.model.ids import CONTROLLER_GROUP, NO_BROKER, BrokerId, Offset
from strandline.network.calls import CallError
from strandline.protocol.errors import Error
from strandline.records import record as records
from strandline.records.batch import iterate_headers
from strandline.replication.host.replication import Replication
from strandline.replication.leader.appender import QUORUM_ACK
from strandline.replication.leader.requests import AppendResult
from strandline.replication.replica.replica import Replica
from strandline.replication.wire import Ability

METHOD = "controller.command"
DIRECTORY_METHOD = "broker.directory"
CALL_TIMEOUT_MS = 5_000
DIRECTORY_TIMEOUT_MS = 1_000
RETRY_MS = 50
UNREADABLE_RETRY_MS = 500
"""After so long an unreadable part of the log is read again: the other replicas repair it
meanwhile."""
SUBMIT_TIMEOUT_MS = 30_000
READ_BYTES = 1 << 20

_REPEATABLE = (
    RegisterBroker,
    EnsureInternalTopic,
    AllocateProducerIds,
    RequestVoters,
    ReportVoters,
    IdentifyBucket,
)
_log = logging.getLogger("strandline.controller")


class ControllerHost:
    """See the module."""

    def __init__(
        self,
        *,
        replication: Replication,
        clock: Clock,
        rng: random.Random,
        directory_id: str = "",
        buckets: Mapping[str, Labels] | None = None,
        disk_sharers: int = 1,
    ) -> None:
        self.state = ControllerState()
        self.on_applied: list[Callable[[Record], None]] = []
        self.on_adopted: list[Callable[[dict[str, UUID]], None]] = []
        """Called when a snapshot has taken the place of the state, with the topics that are gone:
        {name: id}. Any part of the state may have changed."""
        self.on_caught_up: list[Callable[[], None]] = []
        self.on_damaged: list[Callable[[], None]] = []
        """Called when committed records cannot be read here; reading is retried until they are
        repaired."""
        self._replication = replication
        self._clock = clock
        self._rng = rng
        self._directory_id = directory_id
        self._buckets = buckets or {}
        self.reporting = Reporting(replication, disk_sharers=disk_sharers)
        self._replica: Replica | None = None
        self._applied = Offset(0)
        self._applied_changed = asyncio.Event()
        self._turn = asyncio.Lock()
        self._command_batch = CommandBatch(self._turn, self._carry_out)
        self.snapshots = ControllerSnapshots(self, replication, clock)
        replication.calls.register(METHOD, self._on_call)
        replication.calls.register(DIRECTORY_METHOD, self._on_directory_call)

    @property
    def cluster(self) -> Cluster:
        """The committed state as replayed here. Read only."""
        return self.state.cluster

    @property
    def replica(self) -> Replica | None:
        """The replica of the controller's group here; None before it is open."""
        return self._replica

    @property
    def applied(self) -> Offset:
        """All records below this offset are in the state."""
        return self._applied

    @property
    def self_id(self) -> BrokerId:
        """This broker."""
        return self._replication.self_id

    @property
    def leader_id(self) -> BrokerId:
        """The controller as far as known here, or NO_BROKER."""
        replica = self._replica
        if replica is not None and replica.leader_id != NO_BROKER:
            return replica.leader_id
        entry = self._replication.leaders.get(CONTROLLER_GROUP)
        return NO_BROKER if entry is None else entry.leader

    @property
    def voters(self) -> tuple[BrokerId, ...]:
        """The voters of the controller's group by the log here; none before it is open."""
        return () if self._replica is None else self._replica.configuration.all_voters

    @property
    def is_here(self) -> bool:
        """Whether this broker believes that it is the controller."""
        return self._replica is not None and self._replica.is_leader

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller, and no other can be."""
        replica = self._replica
        if replica is None or self._applied < replica.high_watermark:
            return False  # It has not applied every committed decision yet.
        return replica.can_serve_reads

    @property
    def is_heard(self) -> bool:
        """Whether this broker believes that it is the controller, or hears the controller that
        it knows."""
        leader = self.leader_id
        return leader == self._replication.self_id or self._replication.is_peer_alive(leader)

    @property
    def epoch(self) -> int:
        """The epoch of the controller's group, as far as known here."""
        return 0 if self._replica is None else self._replica.epoch

    def alive(self) -> set[BrokerId]:
        """The registered brokers that are heard here now, and this one."""
        heard = {one for one in self.cluster.brokers if self._replication.is_peer_alive(one)}
        return heard | {self._replication.self_id}

    def silence_ms(self, broker: BrokerId) -> int | None:
        """How long ago this broker last heard that one; None: never."""
        return self._replication.silence_ms(broker)

    def load(self, *, is_new: bool) -> None:
        """Begin with the newest snapshot here, before the log is opened. `is_new`: see
        `ControllerSnapshots.load`. Raises OSError, OperatorError."""
        found = self.snapshots.load(is_new=is_new)
        if found is not None:
            self.adopt(found[1], found[0].offset)

    def start(self, replica: Replica) -> None:
        """Begin to apply group 0's log."""
        self._replica = replica
        self.snapshots.start(replica)
        self._apply()

    def stop(self) -> None:
        """End what runs in the background."""
        self.snapshots.stop()

    def adopt(self, state: ControllerState, offset: Offset) -> None:
        """Take the place of the state with one that has all records below `offset`."""
        assert offset > self._applied, "a state goes forward"
        before = self.cluster.topic_names
        self.state.adopt(state)
        self._applied = offset
        self._applied_changed.set()
        present = self.cluster.topic_names
        gone = {name: one for one, name in before.items() if one not in present}
        for callback in self.on_adopted:
            callback(gone)
        for caught_up in self.on_caught_up:
            caught_up()

    async def submit(self, command: Command, *, timeout_ms: int = SUBMIT_TIMEOUT_MS) -> Answer:
        """Have the controller carry out a command. Raises ApiError if no controller could be
        reached in time, or if it is not known whether the command was carried out
        (REQUEST_TIMED_OUT)."""
        deadline = self._clock.monotonic_ms() + timeout_ms
        while True:
            answer = await self._try(command, deadline)
            if answer is not None:
                return answer
            if self._clock.monotonic_ms() >= deadline:
                raise ApiError(Error.REQUEST_TIMED_OUT, "no controller answers")
            await self._sleep(RETRY_MS)

    async def _try(self, command: Command, deadline: int) -> Answer | None:
        """One attempt; None if another one may be made."""
        leader = self.leader_id
        if leader == NO_BROKER:
            return None
        if leader == self._replication.self_id:
            answer = await self.execute(command)
        else:
            left = max(1, min(CALL_TIMEOUT_MS, deadline - self._clock.monotonic_ms()))
            try:
                payload = await self._replication.calls.call(
                    leader, METHOD, encode(command), timeout_ms=left
                )
            except CallError as error:
                if error.was_sent and not isinstance(command, _REPEATABLE):
                    raise ApiError(Error.REQUEST_TIMED_OUT, str(error)) from error
                return None
            answer = decode_answer(payload)
        if isinstance(answer, Refused) and answer.error_code == Error.NOT_CONTROLLER:
            return None
        return answer

    async def _on_call(self, _: BrokerId, payload: bytes) -> bytes:
        return encode(await self.execute(decode_command(payload)))

    # ---- where this broker leads -----------------------------------------------------------------

    async def execute(self, command: Command) -> Answer:
        """Carry out a command here; `Refused` if this broker is not the controller."""
        if isinstance(command, OF_ONE_GROUP):
            return await self._command_batch.carry_out(command)
        async with self._turn:
            (answer,) = await self._carry_out((command,))
            return answer

    async def _carry_out(self, commands: Sequence[Command]) -> list[Answer]:
        """Called in turn. Several commands only if none depends on what another one changes."""
        replica = self._replica
        if replica is None or not replica.is_serving:
            return [self._not_controller()] * len(commands)
        epoch = replica.epoch
        question = question_of(commands[0]) if len(commands) == 1 else None
        reports = await self.reporting.ask(self.alive(), question) if question else {}
        await self._wait_applied(replica.log_end_offset, replica)
        alive = self.alive()
        for command in commands:
            if isinstance(command, RegisterBroker) and await self._is_replaced(command):
                alive.discard(command.broker)
        # Another controller may have decided something while brokers were asked.
        if replica.epoch != epoch or not self._knows_all(replica):
            return [self._not_controller()] * len(commands)
        without_tiering = self._without_tiering()
        decisions = [
            decide(
                self.state,
                command,
                alive=alive,
                rng=self._rng,
                voters=replica.configuration.all_voters,
                reports=reports,
                room=self.reporting.latest,
                buckets=self._buckets,
                without_tiering=without_tiering,
            )
            for command in commands
        ]
        decided = tuple(chain.from_iterable(one.records for one in decisions))
        if not decided:
            return [one.answer for one in decisions]
        result = await self._append(replica, decided)
        if result.error_code == Error.NONE:
            await self._wait_applied(Offset(result.base_offset + len(decided)), replica)
        return [
            (self._refused(command, result) if decision.records else None) or decision.answer
            for command, decision in zip(commands, decisions, strict=True)
        ]

    def _without_tiering(self) -> dict[BrokerId, bool]:
        """{broker whose release is not known to read TIER markers: whether it is known not to}."""
        contacts, own = self._replication.contacts, self._replication.self_id
        return {
            one: contacts.cannot_do(one, Ability.TIERING)
            for one in self.cluster.brokers
            if one != own and not contacts.can_do(one, Ability.TIERING)
        }

    @property
    def knows_everything(self) -> bool:
        """Whether this broker is the controller and has applied every decision: what is not in its
        state is not there."""
        return self._replica is not None and self._knows_all(self._replica)

    def _knows_all(self, replica: Replica) -> bool:
        """Whether this broker is the controller and has applied every decision."""
        return replica.can_serve_reads and self._applied >= replica.log_end_offset

    def _refused(self, command: Command, result: AppendResult) -> Refused | None:
        """The answer if the records of a command were not appended."""
        if result.error_code == Error.NONE:
            return None
        if result.error_code == Error.NOT_LEADER_OR_FOLLOWER:
            # The records may or may not survive: the command may have been carried out.
            if isinstance(command, _REPEATABLE):
                return self._not_controller()
            return Refused(Error.REQUEST_TIMED_OUT, "the controller moved meanwhile")
        return Refused(result.error_code, result.message)

    def _not_controller(self) -> Refused:
        return Refused(Error.NOT_CONTROLLER, "", self.leader_id)

    async def _is_replaced(self, command: RegisterBroker) -> bool:
        """Whether the broker that is heard under this id is another one than the registered one.

        A broker that lost its disk is heard before it registers again. Only the broker itself can
        tell its directory; if none answers, no broker uses the id."""
        known = self.state.directories.get(command.broker)
        if known is None or known.id == command.directory_id:
            return False
        if command.broker == self._replication.self_id:
            return False
        try:
            present = await self._replication.calls.call(
                command.broker, DIRECTORY_METHOD, b"", timeout_ms=DIRECTORY_TIMEOUT_MS
            )
        except CallError:
            return True
        return present.decode(errors="replace") != known.id

    async def _on_directory_call(self, _: BrokerId, payload: bytes) -> bytes:
        return self._directory_id.encode()

    async def _append(self, replica: Replica, decided: tuple[Record, ...]) -> AppendResult:
        now = self._clock.wall_ms()
        batch = records.build_batch(
            [
                records.Record(
                    offset_delta=delta, timestamp=now, key=None, value=encode_record(one)
                )
                for delta, one in enumerate(decided)
            ]
        )
        done: asyncio.Future[AppendResult] = asyncio.get_running_loop().create_future()

        def on_done(result: AppendResult) -> None:
            if not done.done():
                done.set_result(result)

        headers = list(iterate_headers(batch))
        replica.replicate([batch], headers, acks=QUORUM_ACK, done=on_done)
        return await done

    async def _wait_applied(self, offset: Offset, replica: Replica) -> None:
        """Wait until everything below `offset` is applied here, or this broker leads no more."""
        while self._applied < offset and replica.is_leader:
            self._applied_changed.clear()
            await self._applied_changed.wait()

    # ---- everywhere ------------------------------------------------------------------------------

    def _apply(self) -> None:
        """Apply what is committed and not applied yet; then watch for more."""
        replica = self._replica
        assert replica is not None
        before = self._applied
        is_damaged = False
        try:
            self._apply_visible(replica)
        except (OSError, StrandlineError) as error:
            is_damaged = isinstance(error, (OSError, StorageError)) and not replica.is_only_voter
            if not is_damaged:
                # This broker cannot follow the decisions any more.
                replica.fail(error)
        self._applied_changed.set()
        if is_damaged:
            self._clock.call_later(UNREADABLE_RETRY_MS, self._apply)
            for callback in self.on_damaged:
                callback()
        elif replica.failed is None:
            replica.watch(self._apply)
        if self._applied > before:
            for callback in self.on_caught_up:
                callback()
            self.snapshots.on_caught_up()

    def _apply_visible(self, replica: Replica) -> None:
        if self._applied < replica.log.start_offset:
            self.snapshots.check()  # `adopt` brings what is lacking.
            return
        while self._applied < replica.high_watermark and replica.failed is None:
            data = replica.read_verified(self._applied, READ_BYTES)
            if not data:
                break
            for header in iterate_headers(data):
                batch = data[header.position : header.position + header.size]
                for record in records.decode_records(batch):
                    offset = header.base_offset + record.offset_delta
                    if offset >= self._applied and record.value is not None:
                        self._apply_one(decode_record(record.value))
                self._applied = header.next_offset
                self.snapshots.on_applied(header.size)

    def _apply_one(self, record: Record) -> None:
        self.state.replay(record)
        for callback in self.on_applied:
            callback(record)

    async def _sleep(self, delay_ms: int) -> None:
        woken = asyncio.Event()
        self._clock.call_later(delay_ms, woken.set)
        await woken.wait()

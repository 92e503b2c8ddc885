"""Fences and appoints replicas, as the controller's leader asks.

Why:    a group without a quorum may go on only if every replica that could still help its old side
        is durably fenced.
How:    four calls from the controller's leader:

        led      which groups have a living leader, as far as known here? Leave them alone.
        unable   which replicas on this live broker count for no majority? Lost, failed or unopened
                 ones without a living leader, and those that keep a leader here from committing,
                 itself included.
        fence    move cores durably to the first epoch of a grant. Answer: where the log ends, and
                 how long a promise binds it: until then an earlier leader may answer reads, and no
                 replica is appointed.
        appoint  lead the group, if the log still ends there.

            An answer omits groups that are not open or not durable in time; the controller asks
        again. It names the brokers that are silent here: a voter must reach the others
        (`controller.arbitration.sides`).
Owns:   the fences that wait to be durable; one per broker.
Source: design section 6, 2; decisions 0016 and 0020."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

import msgspec

from strandline.base.errors import ProtocolError
from strandline.model.ids import NO_BROKER, BrokerId, Epoch, GroupId, Index, first_epoch
from strandline.network.calls import CallError, Calls
from strandline.raft.group.configuration import Configuration
from strandline.raft.messages import Appoint, Fence, Fenced
from strandline.replication.host.led_groups import LedGroups as LedReplicas
from strandline.replication.leader.replica_status import stalled_by
from strandline.replication.replica.replica import Replica
from strandline.replication.shared import Shared

T = TypeVar("T")
LED, UNABLE, FENCE, APPOINT = "led", "unable", "fence", "seat"
GROUPS_PER_CALL_MAX = 500
CALL_TIMEOUT_MS = 2_000
DURABLE_TIMEOUT_MS = 1_000


class LedGroups(msgspec.Struct, frozen=True, array_like=True):
    """Groups to check; in the answer, those of them for which it is true. `silent`: brokers that
    are silent there; empty from earlier releases."""

    groups: tuple[GroupId, ...]
    silent: tuple[BrokerId, ...] = ()


class UnableGroups(LedGroups, frozen=True, array_like=True):
    """`stalled`: groups that are led there, with the brokers that keep them from committing; empty
    from earlier releases."""

    stalled: tuple[tuple[GroupId, tuple[BrokerId, ...]], ...] = ()


class FenceGroups(msgspec.Struct, frozen=True, array_like=True):
    """Leave all epochs of these groups before the grant: [(group, grant)]."""

    groups: tuple[tuple[GroupId, int], ...]


class FencedGroup(msgspec.Struct, frozen=True, array_like=True):
    """The replica is durably in `epoch`; its log ends there. `configured`: see `Fenced`.

    `promised_ms`: how long from now an earlier leader's lease may count on it. `silent`: members of
    the group that are silent there."""

    group: GroupId
    epoch: Epoch
    last_epoch: Epoch
    last_index: Index
    lost_state: bool
    promised_ms: int
    configured: Index = Index(-1)
    silent: tuple[BrokerId, ...] = ()


class GroupAppointment(msgspec.Struct, frozen=True, array_like=True):
    """Lead the first epoch of `grant` with the log that ends there."""

    group: GroupId
    grant: int
    last_epoch: Epoch
    last_index: Index
    configuration: Configuration


_encoder = msgspec.msgpack.Encoder()
_led = msgspec.msgpack.Decoder(LedGroups)
_unable = msgspec.msgpack.Decoder(UnableGroups)
_fences = msgspec.msgpack.Decoder(FenceGroups)
_appointments = msgspec.msgpack.Decoder(GroupAppointment)
_answers = msgspec.msgpack.Decoder(tuple[FencedGroup, ...])


class Fencing:
    """See the module."""

    def __init__(
        self,
        replicas: Mapping[GroupId, Replica],
        led: LedReplicas,
        peers: Collection[BrokerId],
        calls: Calls,
        shared: Shared,
    ) -> None:
        self._self_id = shared.self_id
        self._replicas = replicas
        self._led = led
        self._peers = peers
        self._calls = calls
        self._clock = shared.clock
        self._contacts = shared.contacts
        self._bound_votes = shared.bound_votes
        self.closed: Callable[[], Collection[GroupId]] = tuple
        """The groups whose replica here could not be opened."""
        self._waiting: dict[GroupId, list[asyncio.Future[Fenced]]] = {}
        # {group: until when an earlier leader's lease may count on the replica here}
        self._promised_ms: dict[GroupId, int] = {}
        calls.register(LED, self._on_led)
        calls.register(UNABLE, self._on_unable)
        calls.register(FENCE, self._on_fence)
        calls.register(APPOINT, self._on_appoint)

    # ---- for the controller's leader -------------------------------------------------------------

    async def led(self, broker: BrokerId, groups: list[GroupId]) -> LedGroups:
        """Those of these groups of which a broker knows a living leader. Raises CallError."""
        question = _encoder.encode(LedGroups(tuple(groups)))
        if broker == self._self_id:
            answer = await self._on_led(broker, question)
        else:
            answer = await self._calls.call(broker, LED, question, timeout_ms=CALL_TIMEOUT_MS)
        return _decode(_led, answer)

    async def unable(self, broker: BrokerId) -> UnableGroups:
        """The groups in which a broker's replica cannot vote and knows no leader, and those in
        which it leads and cannot commit. Raises CallError."""
        if broker == self._self_id:
            answer = await self._on_unable(broker, b"")
        else:
            answer = await self._calls.call(broker, UNABLE, b"", timeout_ms=CALL_TIMEOUT_MS)
        return _decode(_unable, answer)

    async def fence(
        self, broker: BrokerId, groups: list[tuple[GroupId, int]]
    ) -> tuple[FencedGroup, ...]:
        """Fence groups at a broker; returns those that it has fenced. Raises CallError."""
        question = _encoder.encode(FenceGroups(tuple(groups)))
        if broker == self._self_id:
            answer = await self._on_fence(broker, question)
        else:
            answer = await self._calls.call(broker, FENCE, question, timeout_ms=CALL_TIMEOUT_MS)
        try:
            return _answers.decode(answer)
        except msgspec.DecodeError as error:
            raise CallError(f"bad answer to a fence request: {error}") from error

    async def appoint(self, broker: BrokerId, appointment: GroupAppointment) -> None:
        """Make a broker lead a group. Raises CallError."""
        question = _encoder.encode(appointment)
        if broker == self._self_id:
            await self._on_appoint(broker, question)
        else:
            await self._calls.call(broker, APPOINT, question, timeout_ms=CALL_TIMEOUT_MS)

    # ---- for the replicas here -------------------------------------------------------------------

    def on_fenced(self, group: GroupId, message: Fenced) -> None:
        """The core has answered a fence, durably."""
        for future in self._waiting.pop(group, ()):
            if not future.done():
                future.set_result(message)

    # ---- answering -------------------------------------------------------------------------------

    async def _on_led(self, sender: BrokerId, payload: bytes) -> bytes:
        try:
            request = _led.decode(payload)
        except msgspec.DecodeError as error:
            raise ProtocolError(f"bad request for led groups: {error}") from error
        led = tuple(one for one in request.groups if self._is_led(one))
        return _encoder.encode(LedGroups(led, self._silent()))

    def _is_led(self, group: GroupId) -> bool:
        replica = self._replicas.get(group)
        if replica is None or replica.failed is not None:
            return False
        return replica.is_leader or self._bound_votes.is_leader_alive(replica)

    async def _on_unable(self, sender: BrokerId, payload: bytes) -> bytes:
        open_ones = self._replicas
        unable = tuple(one for one in self.closed() if one not in open_ones) + tuple(
            replica.group
            for replica in open_ones.values()
            if (replica.failed is not None or replica.raft.has_lost_state)
            and not self._is_led(replica.group)
        )
        stalled = tuple(
            (replica.group, some) for replica in self._led.all if (some := stalled_by(replica))
        )
        return _encoder.encode(UnableGroups(unable, self._silent(), stalled))

    def _silent(self) -> tuple[BrokerId, ...]:
        return self._contacts.silent(self._peers)

    async def _on_fence(self, sender: BrokerId, payload: bytes) -> bytes:
        try:
            request = _fences.decode(payload)
        except msgspec.DecodeError as error:
            raise ProtocolError(f"bad fence request: {error}") from error
        waiting: dict[GroupId, tuple[int, asyncio.Future[Fenced]]] = {}
        for group, grant in request.groups[:GROUPS_PER_CALL_MAX]:
            replica = self._replicas.get(group)
            if replica is None or replica.failed is not None:
                continue
            promised_ms = self._promise_left_ms(replica)
            future: asyncio.Future[Fenced] = asyncio.get_running_loop().create_future()
            waiting[group] = promised_ms, future
            self._waiting.setdefault(group, []).append(future)
            replica.on_message(NO_BROKER, Fence(first_epoch(grant)))
        if waiting:
            futures = [future for _, future in waiting.values()]
            try:
                await asyncio.wait(futures, timeout=DURABLE_TIMEOUT_MS / 1000)
            finally:
                self._give_up({group: future for group, (_, future) in waiting.items()})
        answers: list[FencedGroup] = []
        for group, (promised_ms, future) in waiting.items():
            if future.done():
                # The replica may have been busy, and have promised a leader more meanwhile.
                replica = self._replicas.get(group)
                if replica is not None:
                    promised_ms = max(promised_ms, self._promise_left_ms(replica))
                answers.append(
                    _answer(group, future.result(), promised_ms, self._silent_of(replica))
                )
        return _encoder.encode(answers)

    def _silent_of(self, replica: Replica | None) -> tuple[BrokerId, ...]:
        members = () if replica is None else replica.configuration.members
        others = (one for one in members if one != self._self_id)
        return self._contacts.silent(others)

    def _give_up(self, fences: Mapping[GroupId, asyncio.Future[Fenced]]) -> None:
        """Stop waiting for fences that are not durable: a full disk may last for days."""
        for group, future in fences.items():
            if future.done():
                continue
            left = [one for one in self._waiting.pop(group, ()) if one is not future]
            if left:
                self._waiting[group] = left

    def _promise_left_ms(self, replica: Replica) -> int:
        """For how long a promise may still bind the replica. A fenced replica has forgotten its
        leader, but not its promise."""
        now = self._clock.monotonic_ms()
        until_ms = now + self._bound_votes.promised_ms(replica)
        until_ms = max(until_ms, self._promised_ms.get(replica.group, now))
        assert until_ms >= now, "a promise binds from now on, if at all"
        self._promised_ms[replica.group] = until_ms
        return until_ms - now

    async def _on_appoint(self, sender: BrokerId, payload: bytes) -> bytes:
        try:
            request = _appointments.decode(payload)
        except msgspec.DecodeError as error:
            raise ProtocolError(f"bad appointment request: {error}") from error
        replica = self._replicas.get(request.group)
        if replica is not None and replica.failed is None:
            epoch = first_epoch(request.grant)
            appointment = Appoint(
                epoch, request.last_epoch, request.last_index, request.configuration
            )
            replica.on_message(NO_BROKER, appointment)
        return b""


def _decode(decoder: msgspec.msgpack.Decoder[T], answer: bytes) -> T:
    try:
        return decoder.decode(answer)
    except msgspec.DecodeError as error:
        raise CallError(f"bad answer to a request about groups: {error}") from error


def _answer(
    group: GroupId, fenced: Fenced, promised_ms: int, silent: tuple[BrokerId, ...]
) -> FencedGroup:
    return FencedGroup(
        group,
        fenced.epoch,
        fenced.last_epoch,
        fenced.last_index,
        fenced.lost_state,
        promised_ms,
        fenced.configured,
        silent,
    )

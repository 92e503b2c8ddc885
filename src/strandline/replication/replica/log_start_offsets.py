"""A follower asks its leader where the partition begins, before clients read from it.

Why:    a follower that was away, or has just started, lacks the deletions of that time. It would
        serve deleted records until it receives the markers.
How:    first reader of a follower, in this contact with its leader --"where does it begin?"-->
        leader that holds its lease --> the follower serves nothing below that offset

        A contact lasts while the leader's heartbeats come without a gap. Meanwhile the leader hears
        this broker as well, and answers no deletion before this follower has flushed it
        (`Deletions.is_awaited`). So a follower asks again only when the contact breaks or another
        broker leads, however far behind it is; and one that no client reads never asks.
Owns:   nothing; `Deletions` keeps the answers.
Source: docs/decisions/0006-deleting-records.md."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping

import msgspec

from strandline.base.errors import ApiError, ProtocolError
from strandline.model.ids import NO_BROKER, BrokerId, Epoch, GroupId, Offset
from strandline.network.calls import CallError, Calls
from strandline.protocol.errors import Error
from strandline.replication.replica.delete_records import Contact
from strandline.replication.replica.replica import Replica
from strandline.replication.shared import Shared

METHOD = "start-of"
CALL_TIMEOUT_MS = 1_000
HEARTBEATS_AWAITED = 4

_log = logging.getLogger("strandline.replication")


class StartOf(msgspec.Struct, frozen=True, array_like=True):
    """ "Where does the partition of this group begin?" """

    group: GroupId


class StartFound(msgspec.Struct, frozen=True, array_like=True):
    """At `offset`, says the leader of `epoch`."""

    epoch: Epoch
    offset: Offset


_encoder = msgspec.msgpack.Encoder()
_questions = msgspec.msgpack.Decoder(StartOf)
_answers = msgspec.msgpack.Decoder(StartFound)


class LogStartOffsets:
    """See the module; one per broker."""

    def __init__(self, replicas: Mapping[GroupId, Replica], calls: Calls, shared: Shared) -> None:
        self._replicas = replicas
        self._calls = calls
        self._contacts = shared.contacts
        self._heartbeat_interval_ms = shared.settings.heartbeat_interval_ms
        self._tasks: set[asyncio.Task[None]] = set()
        calls.register(METHOD, self._on_question)

    def is_known(self, replica: Replica) -> bool:
        """Whether this follower knows of everything that was answered as deleted."""
        contact = self._contact(replica)
        return contact is not None and replica.deletions.reported_in == contact

    def ask(self, replicas: Collection[Replica], done: Callable[[], None]) -> None:
        """Ask the leaders of these followers, and call `done` once, when all have answered or it
        has taken too long: then it is still not known."""
        task = asyncio.get_running_loop().create_task(self._ask_all(replicas, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Cancel all questions."""
        for task in list(self._tasks):
            task.cancel()

    def _contact(self, replica: Replica) -> Contact | None:
        leader = replica.leader_id
        if leader == NO_BROKER:
            return None
        number = self._contacts.contact_with(leader)
        return None if number is None else Contact(leader, replica.epoch, number)

    async def _ask_all(self, replicas: Collection[Replica], done: Callable[[], None]) -> None:
        await asyncio.gather(*(self._ask(replica) for replica in replicas))
        done()

    async def _wait_contact(self, replica: Replica) -> Contact | None:
        """Wait a little for a heartbeat: a new follower may know its leader before one comes."""
        pause_s = self._heartbeat_interval_ms / 1000
        for _ in range(HEARTBEATS_AWAITED):
            contact = self._contact(replica)
            if contact is not None or not self._contacts.is_peer_alive(replica.leader_id):
                return contact
            await asyncio.sleep(pause_s)
        return self._contact(replica)

    async def _ask(self, replica: Replica) -> None:
        contact = await self._wait_contact(replica)
        if contact is None:
            return
        question = _encoder.encode(StartOf(replica.group))
        try:
            answer = _answers.decode(
                await self._calls.call(contact.leader, METHOD, question, timeout_ms=CALL_TIMEOUT_MS)
            )
        except (CallError, msgspec.DecodeError) as error:
            _log.info("%s: not known where it begins: %s", replica.name, error)
            return
        if answer.epoch == contact.epoch and self._contact(replica) == contact:
            replica.deletions.on_start_found(answer.offset, contact)

    async def _on_question(self, sender: BrokerId, payload: bytes) -> bytes:
        """A follower is about to be read."""
        try:
            question = _questions.decode(payload)
        except msgspec.DecodeError as error:
            raise ProtocolError(f"bad question for a start: {error}") from error
        replica = self._replicas.get(question.group)
        if replica is None or not (replica.can_serve_reads and replica.knows_start):
            raise ApiError(Error.NOT_LEADER_OR_FOLLOWER, "not led here, or not for certain")
        replica.deletions.note_asked(sender)
        return _encoder.encode(StartFound(replica.epoch, replica.log_start_offset))

"""Asks other replicas for the entries of a gap, and answers such requests.

Why:    no replica may have all of a gap, while several together do.
How:    `fetch` asks the leader first, then the others, and keeps what each has from the beginning
        of the rest on, until none has more. Then it asks from each later place that the index
        knows.
            A damaged replica gives what is sound before its damage. One that does not answer is not
        asked again in this attempt.
Owns:   only the handler of the request; one per broker.
Source: Protocol-Aware Recovery for Consensus-Based Storage, FAST'18; decision 0007."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from strandline.base.errors import ApiError, ProtocolError, StorageError
from strandline.model.ids import BrokerId, GroupId, Index
from strandline.network.calls import CallError, Calls
from strandline.protocol.errors import Error
from strandline.records.batch import crc_matches, iterate_headers
from strandline.replication.replica.replica import Replica
from strandline.storage.recovery.scrubbing import Gap

METHOD = "entries-of"
ANSWER_BYTES_MAX = 256 << 10
"""The most that one request asks for; a single batch may be larger."""
ANSWER_BYTES = (ANSWER_BYTES_MAX, 16 << 10, 1)
"""Sizes tried in turn if a part is damaged here, too; the last one reads a single batch."""
CALL_TIMEOUT_MS = 10_000
PIECES_MAX = 1_024
"""The most places in a gap from which one attempt asks."""

_log = logging.getLogger("strandline.replication")


class EntriesOf(msgspec.Struct, frozen=True, array_like=True):
    """Asks for the entries of these indexes; `last_index` is inclusive."""

    group: GroupId
    first_index: Index
    last_index: Index


class EntriesFound(msgspec.Struct, frozen=True, array_like=True):
    """Whole batches from the requested index to `last_index`, maybe less or more than requested. If
    they are damaged there, too: no data, and an index before the requested one.

    `is_compacted`: whether sizes may differ from those of an uncompacted log; earlier releases omit
    it."""

    last_index: Index
    data: bytes
    is_compacted: bool = False


_encoder = msgspec.msgpack.Encoder()
_questions = msgspec.msgpack.Decoder(EntriesOf)
_answers = msgspec.msgpack.Decoder(EntriesFound)


@dataclass(frozen=True, slots=True)
class Patch:
    """The bytes for a gap, or for a part of one, and the broker that had them."""

    gap: Gap
    data: bytes
    helper: BrokerId


@dataclass(slots=True)
class RepairAttempt:
    """One attempt to repair a log: brokers that have lost some of what no replica has, and brokers
    that did not answer."""

    lost_at: set[BrokerId] = field(default_factory=set)
    silent: set[BrokerId] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one replica had; `hindrance`: why it is not more."""

    data: bytes
    was_answered: bool
    is_damaged: bool
    hindrance: str


class GapFetch:
    """See the module."""

    def __init__(self, replicas: Mapping[GroupId, Replica], calls: Calls) -> None:
        self._replicas = replicas
        self._calls = calls
        calls.register(METHOD, self._on_question)

    # ---- asking ----------------------------------------------------------------------------------

    async def fetch(self, replica: Replica, gap: Gap, attempt: RepairAttempt) -> list[Patch]:
        """The bytes that other replicas have for a gap, or for parts of it, ascending."""
        found: list[Patch] = []
        for piece in _pieces(gap):
            if found and found[-1].gap.end.position > piece.start.position:
                continue
            patch = await self._fetch(replica, piece, attempt)
            if patch is not None:
                found.append(patch)
            if replica.log.mending.find_again(gap) != gap:
                return []  # The log has changed meanwhile.
        return found

    async def _fetch(self, replica: Replica, gap: Gap, attempt: RepairAttempt) -> Patch | None:
        """The bytes that other replicas have from the beginning of a gap on."""
        mending = replica.log.mending
        data, rest, helper = b"", gap, None
        lost: set[BrokerId] = set()
        is_gaining = True
        while is_gaining and not _is_whole(rest):
            is_gaining = False
            has_reported = replica.is_leader or not replica.raft.is_compacted
            for peer in _peers(replica):
                if peer in attempt.silent:
                    continue
                if not has_reported and peer != replica.leader_id:
                    break  # Try later: the leader may still count this log as clean.
                answer = await self._fetch_from(peer, replica, rest, attempt)
                if mending.find_again(gap) is None:
                    return None
                has_reported |= answer.was_answered
                part, end = mending.fitting_start(rest, answer.data)
                if part:
                    data, helper, rest = data + part, peer, replace(rest, start=end)
                    lost.clear()
                    is_gaining = True
                if _is_whole(rest):
                    break
                if answer.is_damaged:
                    lost.add(peer)
                text = "%s: broker %d does not have all of a gap: %s"
                _log.warning(text, replica.name, peer, answer.hindrance)
        if not _is_whole(rest):
            attempt.lost_at |= lost
        target = mending.part(gap, data, rest.start, is_same=not replica.raft.is_compacted)
        return None if target is None or helper is None else Patch(target, data, helper)

    async def _fetch_from(
        self, peer: BrokerId, replica: Replica, gap: Gap, attempt: RepairAttempt
    ) -> _Answer:
        """The bytes that one other replica has from the beginning of a gap on."""
        parts: list[bytes] = []
        index = gap.start.raft_index
        was_answered = is_damaged = False
        hindrance = "it has other entries"
        while index <= gap.last_index:
            question = _encoder.encode(EntriesOf(replica.group, index, gap.last_index))
            try:
                answer = _answers.decode(
                    await self._calls.call(peer, METHOD, question, timeout_ms=CALL_TIMEOUT_MS)
                )
            except msgspec.DecodeError as error:
                was_answered, hindrance = True, str(error)
                break
            except CallError as error:
                hindrance = str(error)
                if error.was_answered:
                    was_answered = True
                else:
                    attempt.silent.add(peer)
                break
            was_answered = True
            if answer.is_compacted:
                replica.set_compacted()  # This broker may learn it later than others.
            if answer.last_index < index:
                is_damaged, hindrance = True, f"index {index} is damaged there, too"
                break
            parts.append(answer.data)
            index = Index(answer.last_index + 1)
        return _Answer(b"".join(parts), was_answered, is_damaged, hindrance)

    # ---- answering -------------------------------------------------------------------------------

    async def _on_question(self, sender: BrokerId, payload: bytes) -> bytes:
        """Another replica has lost some entries: return those here, with verified checksums."""
        try:
            question = _questions.decode(payload)
        except msgspec.DecodeError as error:
            raise ProtocolError(f"bad question for entries: {error}") from error
        replica = self._replicas.get(question.group)
        if (
            replica is None
            or replica.failed is not None
            or question.first_index < replica.log.start_index
            or question.first_index > replica.log.last_index
        ):
            raise ApiError(Error.OFFSET_OUT_OF_RANGE, "these entries are not here, or not yet")
        is_compacted = replica.raft.is_compacted
        if is_compacted and not replica.raft.knows_configuration:
            # This broker may have left the group: its log may have what others have removed since
            # (`raft/follower/stale_log_reset.py`).
            raise ApiError(Error.OFFSET_OUT_OF_RANGE, "this log is not known to be up to date")
        for count in ANSWER_BYTES:
            try:
                entries = replica.log.read_entries(question.first_index, count)
                _verify_checksums(replica, entries.data)
            except (OSError, StorageError) as error:
                replica.on_unreadable(error)
            else:
                found = EntriesFound(entries.last_index, entries.data, is_compacted)
                return _encoder.encode(found)
        nothing = EntriesFound(Index(question.first_index - 1), b"", is_compacted)
        return _encoder.encode(nothing)


def _peers(replica: Replica) -> list[BrokerId]:
    """The other members, the leader first."""
    peers = [peer for peer in replica.configuration.members if peer != replica.self_id]
    return sorted(peers, key=lambda peer: peer != replica.leader_id)


def _pieces(gap: Gap) -> Iterator[Gap]:
    """A gap, then what of it begins at each later place that the index knows."""
    yield gap
    position = gap.start.position
    for _ in range(PIECES_MAX):
        try:
            position = gap.segment.index.after(position, gap.end.position)
            if position >= gap.end.position:
                return
            start = gap.segment.place_before(position)
            until = gap.segment.index.after(position, gap.end.position)
            end = gap.end if until >= gap.end.position else gap.segment.place_before(until)
        except (OSError, StorageError):
            return  # Without an index there are no known places.
        yield replace(gap, start=start, end=end)


def _is_whole(rest: Gap) -> bool:
    """Whether nothing of a gap is missing."""
    return rest.start.raft_index >= rest.end.raft_index


def _verify_checksums(replica: Replica, data: bytes) -> None:
    """Verify the checksums: bytes read before may have been damaged since."""
    for header in iterate_headers(data):
        if not crc_matches(data, header):
            raise StorageError(
                replica.log.directory,
                header.position,
                expected=f"the batch of offset {header.base_offset} with the right checksum",
                found="damaged bytes",
            )

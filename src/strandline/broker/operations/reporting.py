"""Asks brokers for reports that the controller needs, and answers for this broker.

How:    All brokers that are heard are asked at the same time. A broker that does not answer within
        `CALL_TIMEOUT_MS` is left out: a decision waits for the reports.
            Brokers that share a disk report their shares of it. The sum over them is the disk, so
        its free space counts once, and together they relieve it once.
Owns:   the free space that each broker reported last, until it is forgotten.
Source: `controller.reports`."""

import asyncio
from collections.abc import Callable, Collection, Iterable

import msgspec

from strandline.base.errors import ProtocolError
from strandline.controller.reports import LogReport, Question, Report, Reports
from strandline.model.ids import CONTROLLER_GROUP, BrokerId, GroupId
from strandline.network.calls import CallError
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica

METHOD = "broker.report"
CALL_TIMEOUT_MS = 1_000


def is_led(replica: Replica) -> bool:
    """Whether the replica leads and may serve, or its leader is alive, as far as this broker
    knows."""
    if replica.is_leader:
        return replica.can_serve_reads
    return replica.shared.bound_votes.is_leader_alive(replica)


class Reporting:
    """See the module."""

    def __init__(self, replication: Replication, *, disk_sharers: int = 1) -> None:
        self.latest: dict[BrokerId, Report] = {}
        """{broker: the space on its disk in its last report}"""
        self.closed: Callable[[], Collection[GroupId]] = tuple
        """Groups whose log this broker should have and cannot open."""
        self.lagging: Callable[[], Collection[GroupId]] = tuple
        """Groups led here that are late in tiered storage."""
        self.full: Callable[[], Collection[GroupId]] = tuple
        """Groups led here that refuse writes, for too much waits for a bucket."""
        self.full_in_ms: Callable[[], int | None] = _never
        """How long until this broker's disk is full, or such a group is; None if not coming."""
        self.buckets: Callable[[], dict[str, str]] = dict
        """{bucket in this broker's file: why it is not used; empty if nothing is wrong}"""
        self._replication = replication
        self._disk_sharers = disk_sharers
        self._questions = msgspec.msgpack.Decoder(Question)
        self._reports = msgspec.msgpack.Decoder(Report)
        replication.calls.register(METHOD, self._on_call)

    async def ask(
        self, brokers: Iterable[BrokerId], question: Question, *, keeps_room: bool = True
    ) -> Reports:
        """{broker: its report}, without the brokers that do not answer.

        `keeps_room`: false on a broker that is not the controller: it would not ask again, and use
        old reports once it is."""
        peers = sorted(brokers)
        answers = await asyncio.gather(*(self._ask(one, question) for one in peers))
        found = {
            one: report for one, report in zip(peers, answers, strict=True) if report is not None
        }
        for one, report in found.items() if keeps_room else ():
            self.latest[one] = Report(report.used_bytes, report.free_bytes)
        return found

    async def _ask(self, broker: BrokerId, question: Question) -> Report | None:
        try:
            if broker == self._replication.self_id:
                return self._report(question)
            payload = msgspec.msgpack.encode(question)
            answer = await self._replication.calls.call(
                broker, METHOD, payload, timeout_ms=CALL_TIMEOUT_MS
            )
            return self._reports.decode(answer)
        except (CallError, msgspec.MsgspecError, OSError):
            return None

    async def _on_call(self, sender: BrokerId, payload: bytes) -> bytes:
        try:
            question = self._questions.decode(payload)
        except msgspec.MsgspecError as error:
            raise ProtocolError(f"broker {sender} sent an unreadable question") from error
        return msgspec.msgpack.encode(self._report(question))

    def _report(self, question: Question) -> Report:
        """Raises OSError."""
        used_bytes, free_bytes = self._replication.space()
        here = [one for one in self._replication.replicas.values() if one.failed is None]
        sizes = {}
        if question.sizes:
            sizes = {one.group: one.log.size_bytes() for one in here}
            sizes.pop(CONTROLLER_GROUP, None)
        behind = {}
        for one in here if question.leads else ():
            if one.can_serve_reads:
                in_sync = one.in_sync()
                voters = one.configuration.all_voters
                behind[one.group] = tuple(voter for voter in voters if voter not in in_sync)
        hears = None
        if question.hears:
            known = (self._replication.self_id, *self._replication.peers)
            hears = tuple(one for one in known if self._replication.is_peer_alive(one))
        refusing: tuple[GroupId, ...] = ()
        leaderless: tuple[GroupId, ...] = ()
        lagging: tuple[GroupId, ...] = ()
        full: tuple[GroupId, ...] = ()
        full_in_ms: int | None = None
        if question.refuses:
            led = (one for one in here if one.can_serve_reads)
            refusing = tuple(one.group for one in led if one.appender.lacks_voters)
            leaderless = self._leaderless()
            lagging, full = tuple(self.lagging()), tuple(self.full())
            full_in_ms = self.full_in_ms()
        logs = {one.group: self._log(one) for one in here if one.group in question.logs}
        return Report(
            used_bytes=used_bytes // self._disk_sharers,
            free_bytes=free_bytes // self._disk_sharers,
            sizes=sizes,
            behind=behind,
            hears=hears,
            refusing=refusing,
            logs=logs,
            leaderless=leaderless,
            lagging=lagging,
            full=full,
            full_in_ms=-1 if full_in_ms is None else full_in_ms,
            buckets=self.buckets() if question.refuses else None,
            election_timeout_ms=self._replication.settings.election_timeout_ms
            if question.refuses
            else 0,
        )

    def _leaderless(self) -> tuple[GroupId, ...]:
        here = self._replication.replicas.values()
        not_led = [one.group for one in here if one.failed is not None or not is_led(one)]
        return tuple(one for one in (*not_led, *self.closed()) if one != CONTROLLER_GROUP)

    def _log(self, replica: Replica) -> LogReport:
        return LogReport(
            is_led=is_led(replica),
            epoch=replica.epoch,
            last_epoch=replica.log.last_epoch,
            last_index=replica.log.last_index,
            start=replica.log_start_offset,
            committed=replica.committed_end,
            end=replica.log_end_offset,
            has_lost=replica.raft.has_lost_state,
            leader=replica.leader_id,
        )


def _never() -> None:
    return None

"""Turns ledgers and logs into the facts that promises are judged by, in the order of time.

How:    an answer counts from when its client knew it, a request from before the client sent it. So
        a doubt about the order of two moments never breaks a promise.
Owns:   nothing; reads what clients and brokers left."""

from collections.abc import Iterable, Sequence
from functools import partial

from chaos import ledger
from chaos.brokers import Led
from chaos.ledger import LedgerReader
from chaos.promises import Judge
from chaos.replica_logs import LogReader, Place, ReplicaLog
from strandline.model.ids import BrokerId, Epoch, GroupId, Index, Offset
from strandline.simulation.invariants.facts import (
    Acknowledged,
    CommitBegun,
    CommitEnded,
    LeaderKnown,
    OffsetFetched,
    RecordsRead,
)

EVERYTHING = Offset(1 << 62)
CONSUMERS_FROM = 100
"""Clients take the place of brokers in facts about what was read: their numbers begin here."""


class History:
    """See the module. `groups`: {(topic, partition): the Raft group of the partition}."""

    def __init__(self, judge: Judge, groups: dict[Place, GroupId]) -> None:
        self._judge = judge
        self._groups = groups
        self._clients: dict[str, BrokerId] = {}
        self._commits: dict[tuple[str, int, Place], int] = {}

    def replay(self, ledgers: Iterable[LedgerReader]) -> None:
        """Everything that clients saw."""
        moments = []
        for reader in ledgers:
            client = reader.client
            number = BrokerId(CONSUMERS_FROM + len(self._clients))
            self._clients[client.name] = number
            for entry in reader.entries[1:]:
                moments += self._moments(client, number, entry)
        moments.sort(key=lambda moment: moment[0])
        for _, act in moments:
            act()

    def lead(self, told: Iterable[Led]) -> int:
        """Who said that it leads; what nobody has a log of is passed over. Returns how many that
        leaves."""
        count = 0
        groups = {
            f"{topic}-{partition}": group for (topic, partition), group in self._groups.items()
        }
        for one in told:
            if one.partition in groups:
                count += 1
                broker, group = BrokerId(one.broker), groups[one.partition]
                fact = LeaderKnown(broker, group, Epoch(one.epoch), leader=broker)
                self._judge.show(lambda promise, fact=fact: promise.on_leader_known(fact))  # type: ignore[misc]
        return count

    def audit(
        self, logs: Sequence[ReplicaLog], commits: dict[GroupId, Index], ours: Iterable[str]
    ) -> None:
        """Everything on the disks. `commits`: {group: the last index, which all replicas have}, of
        groups that agree; `ours`: the topics that clients of this run wrote to."""
        reader, topics = LogReader(), set(ours)
        for log in logs:
            fact = reader.audit(log, commit=commits.get(log.group), is_ours=log.place[0] in topics)
            self._judge.show(lambda promise, fact=fact: promise.on_log_audited(fact))  # type: ignore[misc]

    def _moments(
        self, client: ledger.Client, number: BrokerId, entry: ledger.Entry
    ) -> list[tuple[int, partial[None]]]:
        """When what an entry tells took place."""
        match entry:
            case ledger.Acknowledged():
                return [(entry.at_ns, partial(self._acknowledged, client, entry))]
            case ledger.Read():
                return [(entry.at_ns, partial(self._read, number, entry))]
            case ledger.Listed():
                return [
                    (entry.begun_ns, partial(self._listed, number, entry, is_asked=True)),
                    (entry.at_ns, partial(self._listed, number, entry, is_asked=False)),
                ]
            case ledger.CommitBegun():
                return [(entry.at_ns, partial(self._commit_begun, client, entry))]
            case ledger.CommitDone():
                return [(entry.at_ns, partial(self._commit_done, client, entry))]
            case ledger.Told():
                asked = _Asked()
                return [
                    (entry.begun_ns, partial(self._asked, client, asked)),
                    (entry.at_ns, partial(self._told, client, entry, asked)),
                ]
            case ledger.Failed():
                breach = f"NoUnexpectedError: {client.name} was told {entry.error} for {entry.what}"
                return [(entry.at_ns, partial(self._judge.fail, breach))]
            case ledger.Refused():
                return [(entry.at_ns, partial(self._refused, entry))]
            case ledger.Client() | ledger.Probed() | ledger.Leaked():
                return []  # `access.promises` judges what was probed.

    def _acknowledged(self, client: ledger.Client, entry: ledger.Acknowledged) -> None:
        group, value = self._groups[entry.topic, entry.partition], entry.mark.encode()
        if entry.offset == ledger.UNKNOWN_OFFSET:
            self._judge.unplaced.add(group, value)
            return
        fact = Acknowledged(
            group=group,
            producer=client.name,
            is_idempotent=client.is_idempotent,
            acks=client.acks,
            base_offset=Offset(entry.offset),
            values=[value],
        )
        self._judge.show(lambda promise: promise.on_acknowledged(fact))

    def _refused(self, entry: ledger.Refused) -> None:
        group = self._groups[entry.topic, entry.partition]
        self._judge.refused.add(group, entry.mark.encode())

    def _read(self, number: BrokerId, entry: ledger.Read) -> None:
        fact = RecordsRead(
            consumer=str(number),
            broker=number,
            life=entry.life,
            group=self._groups[entry.topic, entry.partition],
            position=Offset(entry.position),
            records=[(Offset(offset), mark.encode()) for offset, mark in entry.records],
            committed_end=EVERYTHING,
            visible_end=EVERYTHING,
            high_watermark=Offset(0),
            is_leader_read=False,
        )
        self._judge.show(lambda promise: promise.on_records_read(fact))

    def _listed(self, number: BrokerId, entry: ledger.Listed, *, is_asked: bool) -> None:
        """When it was asked, what a leader must know; when it is answered, what others must."""
        fact = RecordsRead(
            consumer=str(number),
            broker=number,
            life=0,
            group=self._groups[entry.topic, entry.partition],
            position=Offset(0),
            records=[],
            committed_end=EVERYTHING,
            visible_end=EVERYTHING,
            high_watermark=Offset(entry.high_watermark),
            is_leader_read=is_asked,
        )
        self._judge.show(lambda promise: promise.on_records_read(fact))

    def _commit_begun(self, client: ledger.Client, entry: ledger.CommitBegun) -> None:
        place = (entry.topic, entry.partition)
        fact = CommitBegun(self._groups[place], Offset(entry.offset))
        key = (client.name, entry.number, place)
        self._commits[key] = self._judge.offsets_of(client.group).on_begun(fact)

    def _commit_done(self, client: ledger.Client, entry: ledger.CommitDone) -> None:
        place = (entry.topic, entry.partition)
        number = self._commits[client.name, entry.number, place]
        self._judge.offsets_of(client.group).on_ended(
            CommitEnded(self._groups[place], number, is_applied=True)
        )

    def _asked(self, client: ledger.Client, asked: "_Asked") -> None:
        asked.moment = self._judge.offsets_of(client.group).moment

    def _told(self, client: ledger.Client, entry: ledger.Told, asked: "_Asked") -> None:
        group = self._groups[entry.topic, entry.partition]
        fact = OffsetFetched(group, entry.offset, asked.moment)
        offsets = self._judge.offsets_of(client.group)
        self._judge.guard(lambda: offsets.on_fetched(fact))


class _Asked:
    """The moment before a consumer asked."""

    moment = 0

"""What must come true once every fault is over: every client is served, and replicas agree.

How:    writes with acks=all on every partition -> reads and commits by every group -> the placed
        voters vote, and no others -> all requests in flight are acknowledged -> the groups have
        read everything -> the replicas have equal logs. Each has a bound; beyond it `Progress`,
        `VotersReturn` or `Convergence` is broken.
Source: `strandline.simulation.invariants.verdicts`."""

import time
from collections.abc import Callable, Iterable

from chaos import ledger
from chaos.ledger import LedgerReader, now_ns
from chaos.promises import Judge
from chaos.replica_logs import Place, ReplicaLog
from chaos.workload import VOTERS, Workload, partitions
from strandline.model.ids import GroupId, Index
from strandline.simulation.invariants.invariants import QUORUM_ACK

WRITES_TIMEOUT_S = 60.0
GROUPS_TIMEOUT_S = 90.0
VOTERS_TIMEOUT_S = 90.0
DRAIN_TIMEOUT_S = 90.0
CONVERGENCE_TIMEOUT_S = 60.0
END_TIMEOUT_S = 30.0
POLL_S = 0.5


class Ending:
    """The last part of a run; `look` is called while it waits."""

    def __init__(self, workload: Workload, judge: Judge, look: Callable[[], None]) -> None:
        self._workload = workload
        self._judge = judge
        self._look = look

    def play(self) -> None:
        """All but what is on the disks. Afterwards no client runs."""
        whole_ns = now_ns()
        self._expect(
            lambda: self._without_writes(whole_ns),
            f"no write was acknowledged within {WRITES_TIMEOUT_S:.0f} s after the last fault by",
            timeout_s=WRITES_TIMEOUT_S,
        )
        self._expect(
            lambda: self._without_reads(whole_ns),
            f"nothing new was read within {GROUPS_TIMEOUT_S:.0f} s after the last fault by",
            timeout_s=GROUPS_TIMEOUT_S,
        )
        self._workload.look_at_voters()
        self._expect(
            lambda: [] if self._workload.have_ended(VOTERS) else ["see the log of `voters`"],
            f"others vote than should {VOTERS_TIMEOUT_S:.0f} s after that:",
            timeout_s=VOTERS_TIMEOUT_S,
            promise="VotersReturn",
        )
        self._workload.forget(VOTERS)
        self._workload.ask_to_end("producer")
        self._expect(
            lambda: [] if self._workload.have_ended("producer") else ["producers"],
            f"records are unanswered after {DRAIN_TIMEOUT_S:.0f} s, of",
            timeout_s=DRAIN_TIMEOUT_S,
        )
        self._workload.forget("producer")
        self._workload.read_on()
        self._expect(
            self._unread,
            f"not everything was read and committed {DRAIN_TIMEOUT_S:.0f} s after the last write:",
            timeout_s=DRAIN_TIMEOUT_S,
        )
        for role in ("consumer", "watcher", "prober"):
            self._workload.ask_to_end(role)
        for role in ("consumer", "watcher", "prober"):
            self._expect(
                lambda role=role: [] if self._workload.have_ended(role) else [role],  # type: ignore[misc]
                f"clients did not end within {END_TIMEOUT_S:.0f} s:",
                timeout_s=END_TIMEOUT_S,
            )
            self._workload.forget(role)
        self._workload.read_on()

    def wait_converged(self, logs: list[ReplicaLog]) -> dict[GroupId, Index]:
        """{group: the last index, which all replicas have}; without groups that do not agree."""
        by_group: dict[GroupId, list[ReplicaLog]] = {}
        for log in logs:
            by_group.setdefault(log.group, []).append(log)
        ends = {group: {log.end() for log in replicas} for group, replicas in by_group.items()}

        def different() -> list[str]:
            for group, found in ends.items():
                if len(found) > 1:
                    ends[group] = {log.end() for log in by_group[group]}
            return [
                f"{name_of(by_group[group][0].place)} "
                + str({log.broker: log.end() for log in by_group[group]})
                for group, found in ends.items()
                if len(found) > 1
            ]

        self._expect(
            different,
            f"(last index, epoch) still differ after {CONVERGENCE_TIMEOUT_S:.0f} s:",
            timeout_s=CONVERGENCE_TIMEOUT_S,
            promise="Convergence",
        )
        return {group: max(found)[0] for group, found in ends.items() if len(found) == 1}

    def _expect(
        self,
        missing: Callable[[], list[str]],
        breach: str,
        *,
        timeout_s: float,
        promise: str = "Progress",
    ) -> None:
        """Wait until nothing is missing."""
        until = time.monotonic() + timeout_s
        while found := missing():
            if time.monotonic() > until:
                self._judge.fail(f"{promise}: {breach} {', '.join(found[:4])}")
                return
            time.sleep(POLL_S)
            self._look()

    def _without_writes(self, since_ns: int) -> list[str]:
        """Producers with acks=all and partitions without a write that began and ended since."""
        missing: set[str] = set()
        for reader in self._workload.living("producer"):
            if not reader.has_begun:
                missing.add("a client that has not begun")
            elif reader.client.acks == QUORUM_ACK:
                found = {
                    (entry.topic, entry.partition)
                    for entry in _newest(reader, since_ns)
                    if isinstance(entry, ledger.Acknowledged) and entry.sent_ns >= since_ns
                }
                missing |= {
                    f"{reader.client.name} to {name_of(place)}"
                    for place in set(partitions()) - found
                }
        return sorted(missing)

    def _without_reads(self, since_ns: int) -> list[str]:
        """Groups and partitions that nobody read and committed what was written since."""
        begun = {
            place: min(
                entry.offset
                for reader in self._workload.by_role("producer")
                for entry in _newest(reader, since_ns)
                if isinstance(entry, ledger.Acknowledged)
                and (entry.topic, entry.partition) == place
                and entry.sent_ns >= since_ns
            )
            for place in _written(self._workload.by_role("producer"), since_ns)
        }
        return self._behind({place: offset + 1 for place, offset in begun.items()})

    def _unread(self) -> list[str]:
        """Groups and partitions where the group has not come to the last acknowledged record."""
        ends: dict[Place, int] = {}
        for reader in self._workload.by_role("producer"):
            if reader.client.acks == QUORUM_ACK:
                for entry in reader.all_of(ledger.Acknowledged):
                    place = (entry.topic, entry.partition)
                    ends[place] = max(ends.get(place, 0), entry.offset + 1)
        return self._behind(ends)

    def _behind(self, ends: dict[Place, int]) -> list[str]:
        reached: dict[str, dict[Place, int]] = {}
        for reader in self._workload.by_role("consumer"):
            places = reached.setdefault(reader.client.group, {})
            begun: dict[tuple[int, Place], int] = {}
            for entry in reader.entries:
                if isinstance(entry, ledger.CommitBegun):
                    begun[entry.number, (entry.topic, entry.partition)] = entry.offset
                elif isinstance(entry, ledger.CommitDone):
                    place = (entry.topic, entry.partition)
                    places[place] = max(places.get(place, 0), begun[entry.number, place])
        return sorted(
            f"{group} in {name_of(place)}"
            for group, places in reached.items()
            for place, end in ends.items()
            if places.get(place, 0) < end
        )


def name_of(place: Place) -> str:
    """As people write it."""
    return f"{place[0]}-{place[1]}"


def _newest(reader: LedgerReader, since_ns: int) -> Iterable[ledger.Entry]:
    """The entries of acknowledgements since a moment; a ledger is in the order of time."""
    for entry in reversed(reader.entries):
        if isinstance(entry, ledger.Acknowledged):
            if entry.at_ns < since_ns:
                return
            yield entry


def _written(readers: list[LedgerReader], since_ns: int) -> set[Place]:
    return {
        (entry.topic, entry.partition)
        for reader in readers
        for entry in _newest(reader, since_ns)
        if isinstance(entry, ledger.Acknowledged) and entry.sent_ns >= since_ns
    }

"""What is printed: a line for each fault, the counts, and the verdict."""

import itertools
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from chaos import ledger
from chaos.access.plan import AccessFault
from chaos.ledger import LedgerReader
from chaos.mixed_releases import MixedReleases
from chaos.plan import Plan
from chaos.replica_logs import Place
from strandline.model.ids import GroupId
from strandline.simulation.invariants.invariants import QUORUM_ACK

NS_PER_S = 1_000_000_000
MINUTE_MS = 60_000


class Report:
    """Everything that is said."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)

    def say(self, line: str) -> None:
        """One line."""
        self._console.print(line, markup=False)
        sys.stdout.flush()

    def plan(self, plan: Plan) -> None:
        """The whole plan, before anything is done."""
        minutes = plan.duration_ms / MINUTE_MS
        self.say(
            f"seed {plan.seed}: {len(plan.faults)} faults in {minutes:g} minutes; "
            f"{'machine' if plan.cores else 'broker'} {plan.small_disk} has a small disk"
            + (", and sets space aside" if plan.preallocates else "")
        )
        for fault in plan.faults:
            self.say(f"  {fault}")

    def counts(self, plan: Plan, ledgers: Sequence[LedgerReader]) -> None:
        """What the clients did, and what was done to the brokers."""
        clients = Table(title="clients", title_justify="left")
        clients.add_column("client")
        clients.add_column("what")
        clients.add_column("count", justify="right")
        clients.add_column("longest gap", justify="right")
        for reader in ledgers:
            times, count, what = _work_of(reader)
            clients.add_row(reader.client.name, what, f"{count:,}", _gap(times))
        writes = _writes_of(ledgers)
        everything = [at for times in writes.values() for at in times]
        clients.add_row("any of them", "write, acks=all", f"{len(everything):,}", _gap(everything))
        for (topic, number), times in sorted(writes.items()):
            clients.add_row(f"{topic}-{number}", "write, acks=all", f"{len(times):,}", _gap(times))
        self._console.print(clients)
        faults = Table(title="faults", title_justify="left")
        faults.add_column("kind")
        faults.add_column("count", justify="right")
        for kind, count in plan.counts().most_common():
            faults.add_row(kind, str(count))
        self._console.print(faults)

    def access(
        self,
        faults: Sequence[AccessFault],
        refused: Mapping[str, int],
        *,
        refused_writes: int,
        commands: int,
    ) -> None:
        """What was done to access, and what was refused."""
        of_kind = Counter(fault.kind.value for fault in faults)
        self.say("faults of access: " + _listed(of_kind))
        self.say(f"commands that succeeded: {commands}; writes refused: {refused_writes}")
        self.say("probes refused: " + _listed(refused))

    def verdict(
        self,
        plan: Plan,
        breaches: Mapping[str, str],
        *,
        command: str,
        groups: Mapping[Place, GroupId],
        work: Path,
    ) -> None:
        """Whether every promise held; if not, all that is needed to look into it. `command`: what
        does the same again."""
        if not breaches:
            self.say("every promise held")
            return
        for promise, how in breaches.items():
            self.say(f"BROKEN {promise}: {how}")
        names = {group: f"{topic}-{number}" for (topic, number), group in groups.items()}
        mentioned = [
            f"group {group} is {name}"
            for group, name in names.items()
            if any(f"group {group}:" in how for how in breaches.values())
        ]
        for line in mentioned:
            self.say(line)
        self.say(f"seed {plan.seed}; to repeat: {command}")
        self.say(f"logs, ledgers and data: {work}")


def command_of(
    plan: Plan, *, is_secure: bool = False, releases: MixedReleases | None = None
) -> str:
    """What does the same again."""
    options = " SECURE=1" if is_secure else ""
    options += f" CORES={plan.cores}" if plan.cores else ""
    options += f" EARLIER={releases.checkout}" if releases else ""
    return f"make chaos SEED={plan.seed} MINUTES={plan.duration_ms / MINUTE_MS:g}{options}"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "none"


def _work_of(reader: LedgerReader) -> tuple[list[int], int, str]:
    """(when something was acknowledged, how many records, in words)."""
    client = reader.client
    if client.acks:
        times = [entry.at_ns for entry in reader.all_of(ledger.Acknowledged)]
        acks = "all" if client.acks == QUORUM_ACK else str(client.acks)
        return times, len(times), f"acknowledged, acks={acks}"
    if client.group:
        reads = reader.all_of(ledger.Read)
        count = sum(len(entry.records) for entry in reads)
        return [entry.at_ns for entry in reads], count, f"read, group {client.group}"
    answers = reader.all_of(ledger.Listed)
    return [entry.at_ns for entry in answers], len(answers), "answers of leaders"


def _writes_of(ledgers: Iterable[LedgerReader]) -> dict[Place, list[int]]:
    """{partition: when writes with acks=all were acknowledged on it}."""
    found: dict[Place, list[int]] = {}
    for reader in ledgers:
        if reader.client.acks == QUORUM_ACK:
            for entry in reader.all_of(ledger.Acknowledged):
                found.setdefault((entry.topic, entry.partition), []).append(entry.at_ns)
    return found


def _gap(times: list[int]) -> str:
    ordered = sorted(times)
    gaps = [later - earlier for earlier, later in itertools.pairwise(ordered)]
    return f"{max(gaps, default=0) / NS_PER_S:.1f} s"

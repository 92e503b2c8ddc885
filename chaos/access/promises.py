"""What clients without a right must never get, and what a refusal means.

Source: docs/internals/chaos.md; `chaos.promises` has the others."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from chaos import ledger
from chaos.access.plan import AccessFault, AccessKind
from chaos.ledger import LedgerReader
from chaos.promises import Judge

RULE_FAULTS_MIN = 3
"""From so many on, at least one write must have met a right that was taken away."""
REFUSED = "refused"
SERVES = "serves"


def judge_probes(readers: Iterable[LedgerReader], judge: Judge) -> Counter[str]:
    """Break the promise for each leak; {what was asked: how often it was refused}."""
    refused: Counter[str] = Counter()
    for reader in readers:
        for leak in reader.all_of(ledger.Leaked):
            judge.fail(
                f"NoAnswerWithoutRight: {reader.client.name} asked broker {leak.broker} as "
                f"{leak.what}: {leak.got}"
            )
        for probe in reader.all_of(ledger.Probed):
            refused[probe.what] += probe.outcome == REFUSED
    return refused


def judge_rules(faults: Sequence[AccessFault], refused_count: int, judge: Judge) -> None:
    """A right that was taken away counts."""
    taken = sum(one.kind is AccessKind.RULE for one in faults)
    if taken >= RULE_FAULTS_MIN and not refused_count:
        judge.fail(f"TakenRightCounts: no write was refused, a right was taken {taken} times")


def judge_impostors(directories: Iterable[Path], judge: Judge) -> None:
    """No broker with a wrong certificate got so far as to serve."""
    for directory in directories:
        text = (directory / "broker.log").read_text(errors="replace")
        if SERVES in text:
            judge.fail(f"ImpostorStaysOut: see {directory}/broker.log")

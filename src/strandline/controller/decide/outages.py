"""Records an operator's ruling on a zone or region, and the controller's own findings.

Why:    a hold must outlive the controller that began it.
How:    The controller refuses a ruling that would change nothing, and one that declares brokers
        lost which it or others hear; it asks the others. Notes are compare and set: if one does not
        fit, the controller looks again in a second. The record is an empty change of configuration
        with one more field, so earlier versions read it correctly.
Source: decision 0018."""

from dataclasses import replace

from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.outage_commands import (
    DomainAnswer,
    DomainNote,
    NoteOutages,
    OutagesNoted,
    RuleDomain,
)
from strandline.controller.outages.domains import full_name, members, short_name, widening
from strandline.controller.outages.happenings import brokers_text
from strandline.controller.outages.marks import Share, configured
from strandline.controller.outages.sight import Verdict, look
from strandline.controller.records import ConfigsChanged, DomainRuled
from strandline.model.cluster import NO_END_MS, Domain, Outage, Ruling
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error


def decide_rule_domain(facts: Facts, command: RuleDomain) -> Decision:
    """Record the ruling, or refuse it with the reason."""
    labels = {one.id: one.labels for one in facts.brokers}
    known = members(labels)
    if command.domain not in known:
        names = ", ".join(short_name(one, known) for one in known) or "none"
        raise refuse(
            Error.INVALID_REQUEST,
            f"no broker is in {'/'.join(command.domain)[:80]!a}: zones and regions are {names}",
        )
    name = full_name(command.domain, known)
    before = facts.state.cluster.outages.get(command.domain, Outage())
    ruling, until_ms = command.ruling, command.until_ms
    match ruling:
        case Ruling.RELEASE if not before.is_down and not _is_down_or_held_around(facts, command):
            if before.ruling is Ruling.HOLD:
                ruling, until_ms = Ruling.NONE, NO_END_MS
            elif not known[command.domain] & _cut_off(facts):
                text = f"{name} is not down, and no operator holds it: no repair waits for it"
                raise refuse(Error.POLICY_VIOLATION, text)
        case Ruling.LOST:
            _require_silence(facts, name, command.domain, known[command.domain])
        case Ruling.NONE:
            until_ms = NO_END_MS
    after = replace(before, ruling=ruling, until_ms=until_ms)
    records = () if after == before else (_record((command.domain, after)),)
    return Decision(DomainAnswer(after), records)


def _is_down_or_held_around(facts: Facts, command: RuleDomain) -> bool:
    """Whether its brokers are held because its region is down or held, or a zone in it is down."""
    for domain, outage in facts.state.cluster.outages.items():
        if domain in widening(command.domain)[1:]:
            if outage.is_down or outage.ruling is Ruling.HOLD:
                return True
        elif command.domain in widening(domain)[1:] and outage.is_down:
            return True
    return False


def _require_silence(facts: Facts, name: str, domain: Domain, inside: frozenset[BrokerId]) -> None:
    """Refuse a loss if the controller or another broker hears one of the brokers."""
    cut = _cut_off(facts)
    living = inside & cut.union(facts.alive)
    share = Share(len(inside), len(inside) - len(living))
    if not share.is_below(configured(facts.config)(domain).low_percent):
        verb = "is" if len(living) == 1 else "are"
        text = f"{name} is not lost: {brokers_text(living)} of its {len(inside)} {verb} heard"
        if living <= cut:
            text += ", though not by the controller"
        elif living & cut:
            text += f", {brokers_text(living & cut)} not by the controller"
        raise refuse(Error.POLICY_VIOLATION, text)


def _cut_off(facts: Facts) -> frozenset[BrokerId]:
    """The brokers that live by others' reports for this command, and that the controller does
    not hear."""
    hears = {one: report.hears for one, report in facts.reports.items() if report.hears is not None}
    labels = {one.id: one.labels for one in facts.brokers}
    return frozenset(
        one
        for one, seen in look(labels, hears, controller=None).items()
        if one in facts.down and seen.hearing and seen.verdict is Verdict.CUT
    )


def decide_note_outages(facts: Facts, command: NoteOutages) -> Decision:
    """Note what still fits."""
    notes = [one for one in command.notes if _fits(facts, one)]
    answer = OutagesNoted(tuple(one.domain for one in notes))
    if not notes:
        return Decision(answer)
    return Decision(answer, (_record(*((one.domain, one.after) for one in notes)),))


def _fits(facts: Facts, note: DomainNote) -> bool:
    return facts.state.cluster.outages.get(note.domain, Outage()) == note.before


def _record(*ruled: tuple[Domain, Outage]) -> ConfigsChanged:
    outages = tuple(
        DomainRuled(domain, one.is_down, one.ruling, one.until_ms, one.since_ms)
        for domain, one in ruled
    )
    return ConfigsChanged("cluster", "", {}, outages)

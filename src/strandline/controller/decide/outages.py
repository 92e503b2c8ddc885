"""Records an operator's ruling on a zone or region, and what the controller found about it.

Why:    a hold that the next controller does not know is none.
How:    A ruling is refused if it would change nothing, or if the brokers that it declares lost are
        heard by the controller or by others; the controller asks these. Notes are compare and set:
        the controller looks again in a second at what does not fit. The record is an empty change
        of configuration with this in it, so versions that do not know of it read it correctly.
Source: decision 0018."""

from strandline.controller.commands import (
    DomainAnswer,
    DomainNote,
    NoteOutages,
    OutagesNoted,
    RuleDomain,
)
from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.outages.domains import full_name, members, short_name, widening
from strandline.controller.outages.happenings import brokers_text
from strandline.controller.outages.marks import Share, configured
from strandline.controller.outages.sight import Verdict, look
from strandline.controller.records import ConfigsChanged, DomainRuled
from strandline.model.cluster import NO_END_MS, Domain, Outage, Ruling
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error


def decide_rule_domain(facts: Facts, command: RuleDomain) -> Decision:
    """Take the ruling down, or say why it would be wrong."""
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
                text = f"{name} is not down, and nobody holds it: nothing waits for it"
                raise refuse(Error.POLICY_VIOLATION, text)
        case Ruling.LOST:
            _require_silence(facts, name, command.domain, known[command.domain])
        case Ruling.NONE:
            until_ms = NO_END_MS
    after = Outage(before.is_down, ruling, until_ms)
    records = () if after == before else (_record((command.domain, after)),)
    return Decision(DomainAnswer(after), records)


def _is_down_or_held_around(facts: Facts, command: RuleDomain) -> bool:
    """Whether brokers of it are held as its region is down or held, or a zone in it is down."""
    for domain, outage in facts.state.cluster.outages.items():
        if domain in widening(command.domain)[1:]:
            if outage.is_down or outage.ruling is Ruling.HOLD:
                return True
        elif command.domain in widening(domain)[1:] and outage.is_down:
            return True
    return False


def _require_silence(facts: Facts, name: str, domain: Domain, inside: frozenset[BrokerId]) -> None:
    """An operator may be wrong about what is lost: a broker that any other hears is not."""
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
    hears = {one: told.hears for one, told in facts.reports.items() if told.hears is not None}
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
        DomainRuled(domain, one.is_down, one.ruling, one.until_ms) for domain, one in ruled
    )
    return ConfigsChanged("cluster", "", {}, outages)

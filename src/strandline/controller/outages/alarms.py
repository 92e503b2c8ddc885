"""Events that have begun or are over, each reported once. Pure.

Why:    operators turn off an alarm that repeats itself, and one that never ends.
How:    Compare the present events with the last ones. If only the name changes (a broker whose zone
        is now down too), nothing is over. A new controller begins with the events of the log, so it
        does not repeat the reports of the one before it.
            A receiver of posts keeps a list by class and subject. For it the old name is over, too,
        and a new controller posts the present events again: the one before it may have failed to.
Owns:   the reported events that are not over; on the active controller.
Source: design section 8; decision 0018."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from strandline.controller.outages.domains import (
    full_name,
    is_region,
    region_of,
    ruled_by,
    widening,
)
from strandline.controller.outages.happenings import MINUTE_MS, Happening, Kind, brokers_text
from strandline.controller.outages.judging import Judgement, Scene
from strandline.controller.outages.sight import Verdict
from strandline.model.cluster import Domain, Outage, Ruling
from strandline.model.ids import BrokerId


@dataclass(frozen=True, slots=True)
class Alarm:
    """An event has begun, or is over. `is_posted_only`: operators have read it, perhaps by another
    name; it is for receivers that keep a list by class and subject."""

    kind: Kind
    subject: str
    is_over: bool
    text: str
    is_posted_only: bool = False


class Alarms:
    """See the module."""

    def __init__(self) -> None:
        self._reported: dict[tuple[Kind, str], Happening] = {}
        self._is_new = True

    def step(
        self, judgement: Judgement, scene: Scene, noted: Collection[BrokerId] = ()
    ) -> list[Alarm]:
        """The reports that are due. `noted`: the brokers that are silent by the log."""
        if not judgement.is_settled:
            return []
        now = {one.key: one for one in judgement.happenings}
        found: list[Alarm] = []
        if self._is_new:
            self._is_new = False
            self._reported = {one.key: one for one in _inherited(judgement, scene, noted)}
            found += (_begun(now[key], is_posted_only=True) for key in self._reported if key in now)
        ended = [one for key, one in self._reported.items() if key not in now]
        found += (_begun(one) for key, one in now.items() if key not in self._reported)
        self._reported = now
        for one in ended:
            text = _end_of(one, judgement, scene)
            said = text or _renaming_of(one, judgement)
            found.append(Alarm(one.kind, one.subject, True, said, is_posted_only=not text))
        return found


def _begun(one: Happening, *, is_posted_only: bool = False) -> Alarm:
    return Alarm(one.kind, one.subject, False, one.text, is_posted_only)


def _inherited(
    judgement: Judgement, scene: Scene, noted: Collection[BrokerId]
) -> Iterator[Happening]:
    known = judgement.domains
    for domain in known:
        if not _is_noted(scene.outages, domain) or (
            not is_region(domain) and _is_noted(scene.outages, region_of(domain))
        ):
            continue
        kind = Kind.REGION if is_region(domain) else Kind.ZONE
        ruled = ruled_by(domain, scene.outages)
        if ruled is not None and scene.outages[ruled].ruling is Ruling.HOLD:
            kind = Kind.PLANNED
        yield Happening(kind, full_name(domain, known), "", scene.now_ms, domain=domain)
    for one in judgement.happenings:
        if one.domain is None and one.kind is not Kind.CUT and one.brokers <= set(noted):
            yield one


def _is_noted(outages: Mapping[Domain, Outage], domain: Domain) -> bool:
    return domain in outages and outages[domain].is_down


def _end_of(one: Happening, judgement: Judgement, scene: Scene) -> str:
    """The text for the end of an event; empty if it goes on, perhaps by another name."""
    minutes = (scene.now_ms - one.since_ms) // MINUTE_MS
    after = f", after {minutes} min" if minutes else ""
    if one.domain is not None:
        view = judgement.domains.get(one.domain)
        if view is None:
            return f"{one.subject} has no brokers any more"
        if view.is_down:
            return ""
        heard = f"{view.total - len(view.silent)} of {view.total} brokers reachable"
        uncounted = view.planned & scene.condition.down_since_ms.keys()
        if not uncounted:
            return f"{one.subject} is back, {heard}{after}"
        verb = "counts" if len(uncounted) == 1 else "count"
        return (
            f"{one.subject} is no longer down, {heard}; {brokers_text(uncounted)} no longer {verb}"
            f": in maintenance, or being decommissioned{after}"
        )
    if one.over:
        return one.over + after
    if one.kind is Kind.CUT:
        seen = [judgement.seen[broker] for broker in one.brokers if broker in judgement.seen]
        if any(what.verdict is not Verdict.HEARD for what in seen):
            return ""
        return f"{one.subject} is connected again{after}"
    if one.brokers & scene.condition.down_since_ms.keys():
        return ""
    return f"{one.subject} is back{after}"


def _renaming_of(one: Happening, judgement: Judgement) -> str:
    """The text for an event that goes on by another name."""
    for other in judgement.happenings:
        is_wider = one.domain is not None and other.domain in widening(one.domain)
        if is_wider or one.brokers & other.brokers:
            return f"{one.subject} continues as {other.kind}: {other.subject}"
    seen = [judgement.seen[broker] for broker in one.brokers if broker in judgement.seen]
    if any(what.verdict is Verdict.CUT for what in seen):
        return f"{one.subject}: its heartbeats reach some brokers only"
    return f"{one.subject} is no longer reported by this name"

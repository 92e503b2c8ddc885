"""Which zones hear which brokers: a cut link is not a dead broker. Pure.

Why:    the controller alone cannot tell a dead broker from one that it does not reach. The balancer
        must not replace a broker that others hear.
How:    Every broker that the controller hears reports which brokers it hears. A zone hears a broker
        if any of its brokers does: hearing proves that the other lives, not hearing proves little.
        A broker is silent if neither the controller nor half of the reporting zones hear it; it is
        cut off if some zones hear it and others do not. The controller's own view is one report.
Owns:   nothing.
Source: design section 8; decision 0018."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from strandline.controller.outages.domains import vantage_of
from strandline.model.cluster import Domain, Labels
from strandline.model.ids import BrokerId


class Verdict(Enum):
    """The conclusion about a broker."""

    HEARD = "heard"
    CUT = "cut"
    """Some hear it, others do not; it lives."""
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class Seen:
    """A broker, as the reporting zones hear it. Both lists are sorted."""

    verdict: Verdict
    hearing: tuple[Domain, ...] = ()
    """The zones that hear it."""
    deaf: tuple[Domain, ...] = ()
    """Those that do not."""


Hearing = Mapping[BrokerId, Collection[BrokerId]]
"""{reporting broker: the brokers that it hears}, the controller included."""


def look(
    brokers: Mapping[BrokerId, Labels], hears: Hearing, controller: BrokerId | None
) -> dict[BrokerId, Seen]:
    """The verdict about each broker. `controller`: the broker whose report alone proves life;
    None: there is none."""
    vantages = {one: vantage_of(one, labels) for one, labels in brokers.items()}
    observers: dict[Domain, list[BrokerId]] = {}
    for observer in sorted(hears):
        if observer in vantages:
            observers.setdefault(vantages[observer], []).append(observer)
    return {one: _seen(one, hears, observers, controller) for one in brokers}


def _seen(
    broker: BrokerId,
    hears: Hearing,
    observers: Mapping[Domain, list[BrokerId]],
    controller: BrokerId | None,
) -> Seen:
    hearing: list[Domain] = []
    deaf: list[Domain] = []
    for vantage in sorted(observers):
        others = [one for one in observers[vantage] if one != broker]
        if others:
            (hearing if any(broker in hears[one] for one in others) else deaf).append(vantage)
    heard = () if controller is None else hears.get(controller, ())
    if broker == controller or broker in heard:
        verdict = Verdict.CUT if deaf else Verdict.HEARD
    else:
        verdict = Verdict.SILENT if len(deaf) > len(hearing) else Verdict.CUT
    return Seen(verdict, tuple(hearing), tuple(deaf))

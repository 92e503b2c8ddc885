"""Commands about silent brokers, and zones or regions that are down, with their answers; see
`commands`.

Source: decision 0018."""

import msgspec

from strandline.model.cluster import NO_END_MS, Domain, Outage, Ruling
from strandline.model.ids import BrokerId


class LastSeenNote(msgspec.Struct, frozen=True, array_like=True):
    """A broker has been silent for `silent_ms`, or is heard (None). `before_ms`: the recorded
    value; `since_ms`: since when it is silent, in milliseconds since 1970."""

    broker: BrokerId
    before_ms: int | None
    silent_ms: int | None
    since_ms: int | None = None


class NoteLastSeen(msgspec.Struct, frozen=True, tag="NoteSilences"):
    """The controller records which brokers are silent, each broker for itself."""

    notes: tuple[LastSeenNote, ...]


class RuleDomain(msgspec.Struct, frozen=True, tag=True):
    """An operator rules on a zone or region, until the given time."""

    domain: Domain
    ruling: Ruling
    until_ms: int = NO_END_MS


class DomainNote(msgspec.Struct, frozen=True, array_like=True):
    """The present state of a zone or region; `before`: its recorded state."""

    domain: Domain
    before: Outage
    after: Outage


class NoteOutages(msgspec.Struct, frozen=True, tag=True):
    """The controller records which domains are down, and which rulings are over; each for
    itself."""

    notes: tuple[DomainNote, ...]


class LastSeenNoted(msgspec.Struct, frozen=True, tag="SilencesNoted"):
    """The changes that still fitted were recorded."""

    error_code: int = 0


class DomainAnswer(msgspec.Struct, frozen=True, tag=True):
    """The state of the zone or region now."""

    outage: Outage
    error_code: int = 0


class OutagesNoted(msgspec.Struct, frozen=True, tag=True):
    """The zones and regions whose change was recorded; the others had changed meanwhile."""

    domains: tuple[Domain, ...]
    error_code: int = 0

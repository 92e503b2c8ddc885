"""Present events: a broker, a zone or a region is down, a link is cut, a maintenance is planned;
partitions continue with fewer voters (`voting`).

Why:    an operator woken at night must see at once which of these it is, with the numbers.
How:    Each has a key that stays the same while it lasts, so that it is reported once when it
        begins and once when it is over; and a text with the numbers.
Owns:   nothing.
Source: design section 8."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from strandline.model.cluster import Domain
from strandline.model.ids import BrokerId

MINUTE_MS = 60_000


class Kind(StrEnum):
    """The class of a happening."""

    BROKER = "broker"
    ZONE = "zone"
    REGION = "region"
    CUT = "network-cut"
    PLANNED = "planned"
    FEWER_VOTERS = "fewer-voters"
    OBSERVERS_VOTE = "observers-vote"
    LOW_QUORUM = "low-quorum"
    NO_LEADER = "no-leader"
    TIERED_LAG = "tiered-lag"
    TIERED_BUCKETS = "tiered-buckets"
    TIERED_FULL = "tiered-full"
    SETTINGS = "settings-differ"


@dataclass(frozen=True, slots=True)
class Happening:
    """An event that lasts. `subject`: the broker, zone or region, by name; `text`: a sentence with
    the numbers; `brokers`: those concerned; `domain`: the zone or region that is down, if any;
    `over`: the text for its end, if nothing else reports that."""

    kind: Kind
    subject: str
    text: str
    since_ms: int
    """Monotonic."""
    brokers: frozenset[BrokerId] = frozenset()
    domain: Domain | None = None
    over: str = ""

    @property
    def key(self) -> tuple[Kind, str]:
        """The identity of the event: the same while it lasts."""
        return self.kind, self.subject


def clock_time(wall_ms: int) -> str:
    """The time of day, as in "12:03 UTC"."""
    minutes = wall_ms // MINUTE_MS
    return f"{minutes // 60 % 24:02}:{minutes % 60:02} UTC"


def brokers_text(brokers: Iterable[BrokerId]) -> str:
    """Brokers in words: "broker 4", "brokers 4, 5"."""
    listed = sorted(brokers)
    noun = "broker" if len(listed) == 1 else "brokers"
    return f"{noun} {', '.join(map(str, listed))}"

"""Why replicas move, and why others do not: codes, with their numbers.

Why:    users of other systems complain most of "stalled" without a reason.
How:    one table of codes. Partitions with the same reason are counted together, and reported with
        the first names.
Source: STYLE, rule 4; reference "what users ask for" 12."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from strandline.model.ids import BrokerId

MOVES = {
    "broker-lost": "a replica's broker is lost",
    "decommission": "a replica's broker is being decommissioned",
    "best-effort": "a replica's broker is lost, and its replacement breaks the policy least",
    "policy-broken": "the replicas break the policy",
    "disk-high": "a replica's disk is too full",
    "policy-dearer": "the policy prefers other brokers",
    "undo": "the decommission that moved it was cancelled",
    "uneven": "a broker holds more replicas than another suitable broker",
    "leaders": "the policy prefers another leader; no data moves",
    "leaders-uneven": "a broker leads more than another that is preferred equally; no data moves",
}
"""Why replicas move."""

WAITS = {
    "no-quorum": "too few replicas are up to move anything",
    "disk-full": "the disks of all possible targets are too full",
    "disk-high": "a disk is too full, and no broker can take its replicas",
    "needs-broker": "no broker can take a replica's place",
    "cannot-be-met": "the available brokers cannot meet the policy",
    "no-label": "a replica's broker lacks a label that the policy needs",
    "zone-down": "a zone or region is down or held, until it returns or an operator releases it",
    "cut-off": "a broker is cut off from the controller, but other brokers reach it",
    "broker-down": "a broker is down, but not for long enough to be replaced",
    "turn": "the limit of concurrent moves is reached",
    "calm": "improvements wait until every broker is up and nothing urgent moves",
    "by-hand": "an operator moves the partition",
    "stopped": "an operator stopped the move",
    "paused": "balancer.enable is false",
    "new-replica-down": "a move has started, and a broker that gets a replica is down",
    "leader-down": "a move has started, and the partition has no leader",
    "copies-halted": "a move has started, and a key set to 0 halts its copies",
}
"""Why replicas do not move."""

Wait = tuple[str, str]
"""A code of these, and a text."""

EXAMPLES_MAX = 3


@dataclass(slots=True)
class Waiting:
    """Partitions that wait for the same reason."""

    count: int = 0
    examples: list[str] = field(default_factory=list)
    leaving: Counter[BrokerId] = field(default_factory=Counter)
    """{broker being decommissioned: how many of these it holds}"""


class Waits:
    """The partitions that wait, by code and text."""

    def __init__(self) -> None:
        self._found: dict[Wait, Waiting] = {}

    def add(self, code: str, text: str, partition: str, leaving: Iterable[BrokerId] = ()) -> None:
        """One partition waits. `leaving`: brokers that hold it and are being decommissioned."""
        assert code in WAITS, code
        one = self._found.setdefault((code, text), Waiting())
        one.count += 1
        one.leaving.update(leaving)
        if len(one.examples) < EXAMPLES_MAX:
            one.examples.append(partition)

    def note(self, code: str, text: str) -> None:
        """Note a reason that is not about partitions."""
        assert code in WAITS, code
        self._found.setdefault((code, text), Waiting())

    @property
    def found(self) -> Mapping[tuple[str, str], Waiting]:
        """{(code, words): partitions}, in the order of the codes, the most partitions first."""
        order = list(WAITS)
        keys = sorted(
            self._found, key=lambda key: (order.index(key[0]), -self._found[key].count, key[1])
        )
        return {key: self._found[key] for key in keys}

"""The candidates for replicas as bits of an int, and what may fail together as masks over them.

Why:    a solver asks the same questions of hundreds of brokers thousands of times: one `&` of two
        ints answers for all of them.
How:    bit i stands for the i-th candidate by broker id. A label splits the candidates into
        domains, each a mask. The levels region > zone > rack > host nest: zone "a" of two regions
        is two zones, so their domains carry the path. Other labels stand for themselves, and
        `broker` makes each candidate its own domain.
Owns:   nothing; made anew for each decision.
Source: design section 7; decision 0008."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.topology.labels import BROKER_LABEL

LEVELS = ("region", "zone", "rack", "host")
"""The nested levels, widest first."""


class BrokerState(Enum):
    """Whether a broker may be given replicas."""

    ACTIVE = "active"
    DOWN = "down"
    MAINTENANCE = "in maintenance"
    DECOMMISSIONING = "being decommissioned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A broker as the solver sees it."""

    id: BrokerId
    labels: Labels
    state: BrokerState = BrokerState.ACTIVE
    replicas: int = 0
    """How many replicas it holds."""
    leaders: int = 0
    """How many partitions it is the preferred leader of."""
    replicas_max: int | None = None
    """How many replicas it may hold."""
    disk_used_percent: int = 0
    """Of its disk, 0 to 100."""
    is_heard: bool = True
    """Whether it is up, whatever is wanted of it; one whose state is DOWN is not."""

    @property
    def is_up(self) -> bool:
        """Whether it is there now: one that is to leave may be, and one in maintenance."""
        return self.is_heard and self.state is not BrokerState.DOWN


@dataclass(frozen=True, slots=True)
class Domains:
    """How one label splits the candidates. Domains are numbered from 0."""

    label: str
    of: tuple[int, ...]
    """By bit: the number of the candidate's domain."""
    masks: tuple[int, ...]
    """By domain: its candidates."""
    names: tuple[str, ...]
    """By domain: its path for people, "east/a"; "" where nothing is said."""
    values: tuple[str, ...]
    """By domain: the value of the label itself."""


def domain_of(labels: Labels, label: str) -> tuple[str, ...]:
    """The domain that a label puts a broker in: its path for the nested levels.

    What is not said is one shared domain, never one of its own."""
    if label in LEVELS:
        return tuple(labels.get(level) for level in LEVELS[: LEVELS.index(label) + 1])
    return (labels.get(label),)


def as_staying(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The candidates as if none were to leave: until its replicas have moved, a broker may hold
    them."""
    return tuple(
        replace(one, state=BrokerState.ACTIVE if one.is_heard else BrokerState.DOWN)
        if one.state is BrokerState.DECOMMISSIONING
        else one
        for one in candidates
    )


class Universe:
    """All candidates of one decision. The order in which they are given does not matter."""

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self.candidates = tuple(sorted(candidates, key=lambda one: one.id))
        self.index = {one.id: bit for bit, one in enumerate(self.candidates)}
        """{broker: its bit}"""
        assert len(self.index) == len(self.candidates), "a broker is a candidate once"
        self.all = (1 << len(self.candidates)) - 1
        self._domains: dict[str, Domains] = {}

    def domains(self, label: str) -> Domains:
        """How a label splits the candidates; made once for each label."""
        if label not in self._domains:
            self._domains[label] = self._split(label)
        return self._domains[label]

    def where(self, label: str, values: Iterable[str]) -> int:
        """The candidates whose label has one of these values."""
        wanted = frozenset(values)
        return self.mask(
            bit for bit in range(len(self.candidates)) if self.value(bit, label) in wanted
        )

    def value(self, bit: int, label: str) -> str:
        """A candidate's label; `broker` is its id."""
        one = self.candidates[bit]
        return str(one.id) if label == BROKER_LABEL else one.labels.get(label)

    @staticmethod
    def mask(bits: Iterable[int]) -> int:
        """These bits, set."""
        mask = 0
        for bit in bits:
            mask |= 1 << bit
        return mask

    def brokers(self, mask: int) -> tuple[BrokerId, ...]:
        """The broker ids of a mask, ascending."""
        return tuple(self.candidates[bit].id for bit in bits_of(mask))

    def _split(self, label: str) -> Domains:
        keys: list[tuple[str, ...]] = [
            (str(one.id),) if label == BROKER_LABEL else domain_of(one.labels, label)
            for one in self.candidates
        ]
        numbers: dict[tuple[str, ...], int] = {}
        of = tuple(numbers.setdefault(key, len(numbers)) for key in keys)
        masks = [0] * len(numbers)
        for bit, number in enumerate(of):
            masks[number] |= 1 << bit
        return Domains(
            label=label,
            of=of,
            masks=tuple(masks),
            names=tuple("/".join(filter(None, key)) for key in numbers),
            values=tuple(key[-1] for key in numbers),
        )


def bits_of(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low

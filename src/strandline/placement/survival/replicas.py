"""A partition's replicas with roles and labels, and the quorum rule that decides what they survive.

How:    N voters; W = max(majority, min(min.insync.replicas, N)). Writes go on by themselves while
        at most N - W voters are lost. An acknowledged write is on W voters at least, so it is there
        while at most W - 1 are lost. Observers count for nothing until they can be promoted.
Source: design section 6."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.policy.document import Goal, Role, goal_levels
from strandline.placement.survival.losses import LostDomains, worst_mask
from strandline.placement.topology.labels import BROKER_LABEL
from strandline.placement.topology.universe import LEVELS, domain_of

LOSS_LEVELS = (*LEVELS, "upgrade_domain", BROKER_LABEL)
"""What can be lost, widest first; an upgrade domain lies across the nested levels."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica: its broker, where that is, and what it does."""

    broker: BrokerId
    labels: Labels
    role: Role = "voter"


def domain_at(one: Replica, level: str) -> tuple[str, ...]:
    """The domain of a level that a replica is lost with, as a path."""
    return (str(one.broker),) if level == BROKER_LABEL else domain_of(one.labels, level)


@dataclass(frozen=True, slots=True)
class Quorum:
    """How many voters there are and how many a write needs. `asked`: how many of them acks=all
    asks for, where that may be more."""

    voters: int
    write_quorum: int
    asked: int = 0

    @classmethod
    def of(cls, voters: int, min_insync_replicas: int) -> "Quorum":
        """The quorum of so many voters; without voters it is empty."""
        majority = voters // 2 + 1 if voters else 0
        return cls(voters, max(majority, min(min_insync_replicas, voters)))

    @property
    def stops_at(self) -> int:
        """The number of lost voters at which writes stop; below 1 where they have."""
        return self.voters - max(self.write_quorum, self.asked) + 1

    @property
    def loses_at(self) -> int:
        """The number of lost voters at which an acknowledged write may be lost with them."""
        return self.write_quorum


class Placement:
    """Replicas of one partition, with their voters' domains as masks over the voters."""

    def __init__(
        self,
        replicas: Sequence[Replica],
        *,
        min_insync_replicas: int = 1,
        quorum: Quorum | None = None,
        down: Collection[BrokerId] = (),
        behind: Collection[BrokerId] = (),
    ) -> None:
        """`quorum`: where that is not the quorum of these replicas alone. `down`: brokers of the
        cluster that are down; `behind`: those that are up and whose replicas are not in sync."""
        self.replicas = tuple(replicas)
        self.voters = tuple(one for one in replicas if one.role == "voter")
        self.quorum = quorum or Quorum.of(len(self.voters), min_insync_replicas)
        self.down = frozenset(down)
        self.behind = frozenset(behind)
        self._domains: dict[str, dict[tuple[str, ...], int]] = {}

    @property
    def lost(self) -> tuple[BrokerId, ...]:
        """The voters on which no write can count now."""
        absent = self.down | self.behind
        return tuple(one.broker for one in self.voters if one.broker in absent)

    @property
    def has_stopped(self) -> bool:
        """Whether so many are lost that writes have stopped, those with acks=all at least."""
        return len(self.lost) >= self.quorum.stops_at

    def at_present(
        self, *, down: Collection[BrokerId] = (), behind: Collection[BrokerId] = ()
    ) -> "Placement":
        """The same replicas and quorum, while these brokers are down or behind."""
        return Placement(self.replicas, quorum=self.quorum, down=down, behind=behind)

    def without(self, lost: Collection[BrokerId]) -> "Placement":
        """The replicas that are left when these brokers are lost; the quorum stays what it is."""
        left = [one for one in self.replicas if one.broker not in lost]
        return Placement(left, quorum=self.quorum)

    def domains(self, level: str) -> dict[tuple[str, ...], int]:
        """{domain: mask of its voters}, in the order of the voters."""
        if level not in self._domains:
            masks: dict[tuple[str, ...], int] = {}
            for bit, voter in enumerate(self.voters):
                domain = domain_at(voter, level)
                masks[domain] = masks.get(domain, 0) | 1 << bit
            self._domains[level] = masks
        return self._domains[level]

    def unlabelled(self, level: str) -> tuple[BrokerId, ...]:
        """The voters' brokers that do not say where they are on this level."""
        if level == BROKER_LABEL:
            return ()
        return tuple(one.broker for one in self.voters if not one.labels.get(level))

    def lost_by(self, goal: Goal) -> int:
        """The voters that the worst choice of such losses takes, as a mask over the voters."""
        return worst_mask(
            [
                LostDomains(tuple(self.domains(level).values()), count)
                for level, count in goal_levels(goal).items()
            ]
        )

    def survives(self, goal: Goal, *, lost_max: int) -> bool:
        """Whether such losses never take more than `lost_max` voters."""
        return self.lost_by(goal).bit_count() <= lost_max


def format_domain(domain: tuple[str, ...]) -> str:
    """The path of a domain for people: "east/a"; "?" stands for a missing label."""
    return "/".join(part or "?" for part in domain)

"""What becomes of partitions while brokers are silent: by itself, or after which help. Pure.

Why:    an operator in an outage asks for each partition that has stopped whether to wait or to act.
How:    `placement.survival.courses` judges losses before they happen; here the same function judges
        the loss that has happened, by the voters in force and the brokers that are heard.
Owns:   nothing.
Source: docs/decisions/0046-cluster-status.md; decision 0026."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId
from strandline.placement.survival.course import Course
from strandline.placement.survival.courses import COUNTED, REGION_LOST, Rules, course_of
from strandline.placement.survival.replicas import Quorum


@dataclass(frozen=True, slots=True)
class Outlook:
    """A partition in an outage. `left`: voters that are heard; `missing`: those that are not;
    `back`: so many of them have to return before it goes on by itself, 0 if it does anyway."""

    course: Course
    voters: int
    left: int
    back: int
    missing: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """The brokers around a partition. `regions`: {broker: its region}; `has_controller`: whether
    a controller decides."""

    heard: Collection[BrokerId]
    regions: Mapping[BrokerId, str]
    has_controller: bool


def outlook(partition: Partition, rules: Rules, around: Around) -> Outlook:
    """What becomes of a partition without a leader."""
    voters = partition.voters
    missing = tuple(sorted(one for one in voters if one not in around.heard))
    count, left = len(voters), len(voters) - len(missing)
    majority = count // 2 + 1
    quorum = Quorum(count, max(majority, min(partition.floor, count)))
    observers = _promotable(partition, rules, around, missing)

    def course(left: int) -> Course:
        if left >= majority:
            return Course.ELECTION
        without = not around.has_controller
        return course_of(quorum, left, observers, rules, without_controller=without)

    found = course(left)
    if partition.is_declared:  # All survivors must answer before the controller seats one.
        found = Course.RETURN if missing or not around.has_controller else Course.ARBITRATION
    back = 0
    if not found.acts_alone:
        returns = range(1, len(missing) + 1)
        back = next((one for one in returns if course(left + one).acts_alone), len(missing))
    return Outlook(found, count, left, back, missing)


def refusal(partition: Partition, rules: Rules, around: Around) -> Outlook:
    """What becomes of a partition that is led and refuses acks=all."""
    voters = partition.voters
    missing = tuple(sorted(one for one in partition.replicas if one not in around.heard))
    left = len([one for one in voters if one in around.heard])
    lacking = max(1, min(rules.min_insync_replicas, len(partition.replicas)) - left)
    observers = _promotable(partition, rules, around, missing)
    stands_in = around.has_controller and rules.shrinks and observers >= lacking
    course = Course.STANDS_IN if stands_in else Course.LOWER
    return Outlook(course, len(partition.replicas), left, 0 if stands_in else lacking, missing)


def is_thin(partition: Partition, rules: Rules, heard: Collection[BrokerId]) -> bool:
    """Whether a replica is silent, and one more silent voter would stop writes with acks=all."""
    if all(one in heard for one in partition.hosts):
        return False
    voters = partition.voters
    left = sum(1 for one in voters if one in heard)
    asked = min(rules.min_insync_replicas, len(partition.replicas))
    return left - 1 < max(len(voters) // 2 + 1, asked)


def _promotable(
    partition: Partition, rules: Rules, around: Around, missing: Collection[BrokerId]
) -> int:
    """How many observers would be promoted, if voters may leave."""
    idle = [
        one for one in partition.observers if one in around.heard and one not in partition.voters
    ]
    if rules.promotion in COUNTED:
        return len(idle)
    if rules.promotion != REGION_LOST:
        return 0
    alive = {around.regions.get(one, "") for one in around.heard}
    gone = sum(1 for one in missing if around.regions.get(one, "") not in alive)
    return min(len(idle), gone)

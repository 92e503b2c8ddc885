"""What becomes of a partition in an outage. Source: docs/decisions/0046-cluster-status.md."""

from dataclasses import replace

import pytest

from strandline.controller.outages.outlook import Around, is_thin, outlook, refusal
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId
from strandline.placement.survival.course import Course
from strandline.placement.survival.courses import Rules

ALL = tuple(map(BrokerId, (1, 2, 3, 4, 5)))
REGIONS = {BrokerId(1): "east", BrokerId(2): "east", BrokerId(3): "west", BrokerId(4): "west"}


def partition(*voters: int, observers: tuple[int, ...] = (), floor: int = 0) -> Partition:
    return Partition(
        topic="t",
        index=0,
        group=GroupId(1),
        replicas=tuple(map(BrokerId, voters)),
        observers=tuple(map(BrokerId, observers)),
        floor=floor,
    )


def around(*heard: int, controller: bool = True) -> Around:
    return Around(heard=frozenset(map(BrokerId, heard)), regions=REGIONS, has_controller=controller)


STRICT, SHRINKS = Rules(2), Rules(2, shrinks=True)
EAGER = Rules(2, shrinks=True, promotion="under-min-isr")
REGIONAL = Rules(2, shrinks=True, promotion="region-lost")


@pytest.mark.parametrize(
    ("one", "rules", "heard", "course", "back"),
    [
        (partition(1, 2, 3), STRICT, (1, 2), Course.ELECTION, 0),
        (partition(1, 2, 3), STRICT, (1,), Course.MAY_LACK, 1),
        (partition(1, 2, 3), STRICT, (4,), Course.GONE, 2),
        (partition(1, 2, 3, 4), STRICT, (1, 2), Course.LET_LEAVE, 1),
        (partition(1, 2, 3, 4), SHRINKS, (1, 2), Course.ARBITRATION, 0),
        # All three have every acknowledged record, as their leader promised.
        (partition(1, 2, 3, floor=3), Rules(1, shrinks=True), (1,), Course.ARBITRATION, 0),
        (partition(1, 3), SHRINKS, (1,), Course.LOWER, 1),
        (partition(1, 3, observers=(4,)), EAGER, (1, 4), Course.STANDS_IN, 0),
        (partition(1, 3, observers=(4,)), EAGER, (1,), Course.LOWER, 1),
        (partition(1, 3, observers=(2,)), REGIONAL, (1, 2), Course.STANDS_IN, 0),
        # Its region is heard: no region is lost.
        (partition(1, 3, observers=(2,)), REGIONAL, (1, 2, 4), Course.LOWER, 1),
    ],
)
def test_what_becomes_of_a_partition_without_a_leader(
    one: Partition, rules: Rules, heard: tuple[int, ...], course: Course, back: int
) -> None:
    found = outlook(one, rules, around(*heard))
    assert (found.course, found.back) == (course, back)
    assert found.left == len(set(one.replicas) & set(heard))
    assert set(found.missing) == set(one.replicas) - set(heard)


def test_without_a_controller_no_replica_is_appointed() -> None:
    found = outlook(partition(1, 2, 3, 4), SHRINKS, around(1, 2, controller=False))
    assert (found.course, found.back) == (Course.RETURN, 1)
    found = outlook(partition(1, 2, 3), STRICT, around(1, 2, controller=False))
    assert found.course is Course.ELECTION


def test_after_a_declared_loss_all_survivors_are_needed() -> None:
    one = replace(partition(1, 2, 3), is_declared=True, acting=(BrokerId(1), BrokerId(2)))
    assert outlook(one, STRICT, around(1, 2)).course is Course.ARBITRATION
    assert outlook(one, STRICT, around(1)).course is Course.RETURN


def test_a_partition_that_refuses_waits_for_an_observer_or_for_its_voters() -> None:
    acting = replace(partition(1, 3, observers=(4,)), acting=(BrokerId(1),))
    found = refusal(acting, EAGER, around(1, 4))
    assert (found.course, found.back, found.missing) == (Course.STANDS_IN, 0, (3,))
    found = refusal(acting, EAGER, around(1))
    assert (found.course, found.back, found.left) == (Course.LOWER, 1, 1)


@pytest.mark.parametrize(
    ("heard", "rules", "thin"),
    [
        ((1, 2, 3), STRICT, False),  # Nothing is lost yet.
        ((1, 2), STRICT, True),
        ((1, 2, 3, 4), Rules(4), True),
        ((1, 2, 3, 4), Rules(1), False),
    ],
)
def test_one_more_loss_counts_only_after_a_first_one(
    heard: tuple[int, ...], rules: Rules, thin: bool
) -> None:
    voters = (1, 2, 3) if len(heard) < 4 else (1, 2, 3, 4, 5)
    assert is_thin(partition(*voters), rules, frozenset(map(BrokerId, heard))) is thin

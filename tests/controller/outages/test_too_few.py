"""Which partitions take no acks=all for who is silent. Source: design section 8."""

import pytest

from strandline.controller.outages.too_few import TooFew
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId

GROUP = GroupId(7)


def brokers(*ids: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, ids))


@pytest.mark.parametrize(
    ("voters", "min_insync", "silent", "refuses"),
    [
        ((1, 2, 3), 3, (3,), True),
        ((1, 2, 3), 5, (3,), True),  # As with Kafka, more than there are asks for all.
        ((1, 2, 3), 2, (3,), False),
        ((1, 2, 3), 3, (4,), False),
        ((1, 2, 3), 3, (2, 3), False),  # Nobody leads.
        ((1, 2, 3, 4), 3, (4,), False),
        ((1, 2, 3, 4, 5), 4, (4, 5), True),
        ((1, 2, 3, 4, 5), 4, (5,), False),
        ((1,), 1, (1,), False),
    ],
)
def test_more_than_a_majority_is_asked_for_and_fewer_are_heard(
    voters: tuple[int, ...], min_insync: int, silent: tuple[int, ...], *, refuses: bool
) -> None:
    groups = {GROUP: Partition("flights", 0, GROUP, brokers(*voters))}
    found = TooFew().found(
        groups,
        version=1,
        silent=frozenset(brokers(*silent)),
        min_insync_of=lambda _: min_insync,
    )
    assert found == ({GROUP} if refuses else set())


def test_it_is_looked_at_anew_when_somebody_else_is_silent_or_the_state_has_moved_on() -> None:
    known, asked = TooFew(), []

    def min_insync_of(partition: Partition) -> int:
        asked.append(partition.group)
        return 3

    def found(version: int, *silent: int) -> bool:
        return GROUP in known.found(
            {GROUP: Partition("flights", 0, GROUP, brokers(1, 2, 3))},
            version=version,
            silent=frozenset(brokers(*silent)),
            min_insync_of=min_insync_of,
        )

    assert found(1, 3) and found(1, 3) and len(asked) == 1
    assert not found(1) and len(asked) == 1
    assert found(1, 3) and found(2, 3) and len(asked) == 3

"""What is decided together for several groups is what would be decided one after the other.

Source: decision 0032."""

import random
from uuid import UUID

import pytest
from tests.controller.controller_world import World, brokers

from strandline.broker.coordinators.command_batch import OF_ONE_GROUP
from strandline.controller.commands import AppointLeader, BeginGrant, ReportVoters, RequestVoters
from strandline.controller.records import Assignment, TopicCreated
from strandline.model.ids import Epoch, GroupId, Index, first_epoch

GROUPS = tuple(map(GroupId, range(1, 7)))


class Partitions(World):
    """Six partitions with voters 1 to 3, and 4 as their observer."""

    def __init__(self) -> None:
        super().__init__(("east", "west", "south") * 2)
        made = tuple(Assignment(one, brokers(1, 2, 3), brokers(4)) for one in GROUPS)
        self.commit((TopicCreated(name="t", id=UUID(int=7), partitions=made),))

    def command(self, rng: random.Random, group: GroupId) -> OF_ONE_GROUP:
        """Something that may come for a group, in time or late."""
        partition = self.state.cluster.groups[group]
        grant = partition.grant - rng.choice((0, 0, 0, 1))
        epoch = Epoch(first_epoch(grant) + rng.choice((0, 1))) if grant >= 0 else Epoch(1)
        voters = rng.choice((brokers(1, 2), brokers(1, 2, 3), brokers(2, 3, 4), brokers(5)))
        match rng.randrange(4):
            case 0:
                others = tuple(one for one in brokers(1, 2, 3, 4) if one not in voters)
                return RequestVoters(group, partition.version, voters, others, epoch)
            case 1:
                granted = partition.pending or voters
                return ReportVoters(group, partition.last_version, granted, epoch)
            case 2:
                return BeginGrant(group, grant)
            case _:
                ends = tuple((one, Epoch(0), Index(7 + one)) for one in brokers(1, 2, 3))
                return AppointLeader(group=group, grant=grant, ends=ends[rng.randrange(2) :])


@pytest.mark.parametrize("seed", range(30))
def test_decisions_on_different_groups_rest_on_nothing_the_others_change(seed: int) -> None:
    rng = random.Random(seed)
    together, one_by_one = Partitions(), Partitions()
    for _ in range(20):
        groups = rng.sample(GROUPS, rng.randint(2, len(GROUPS)))
        commands = [together.command(rng, group) for group in groups]
        decisions = [together.decide(command) for command in commands]
        together.commit([record for one in decisions for record in one.records])
        assert [one_by_one.run(command) for command in commands] == [
            one.answer for one in decisions
        ]
        assert together.log == one_by_one.log
        assert together.state.cluster == one_by_one.state.cluster
    assert any(one.grant for one in together.state.cluster.groups.values())

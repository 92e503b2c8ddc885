"""Begins grants, and chooses who leads them: for groups that cannot go on by themselves.

Why:    what is left of a group may hold everything that was acknowledged, and elect nobody.
How:    compare and set on the number of the grant. `controller.arbiter` chooses, among those that
        may have voted: they hold all that was acknowledged. The voters of the successor are those
        that were fenced, may vote, and whose log ends in the same epoch as the leader's and not
        far before it: nobody's writes wait for one who has much to catch up.
Source: design section 6, rules R3 and R4; decisions 0016 and 0020."""

from strandline.controller.arbiter import register_of
from strandline.controller.commands import BeginGrant, SeatLeader, VotersNoted
from strandline.controller.decide.voters import find_group
from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.records import GrantBegun, GroupSeated
from strandline.model.cluster import Partition, Roles
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.raft.messages import Fenced

LAG_COUNT_MAX = 64
"""So many entries at most a voter of the successor lacks: no more than what was on its way."""


def decide_begin_grant(facts: Facts, command: BeginGrant) -> Decision:
    """Fence the group off, unless that was done."""
    partition = find_group(facts, command.group)
    if partition.grant == command.grant + 1:
        return Decision(VotersNoted())
    if partition.grant != command.grant or partition.is_fenced:
        raise refuse(Error.INVALID_REQUEST, f"{partition.name}: its grant is {partition.grant}")
    return Decision(VotersNoted(), (GrantBegun(partition.group, partition.grant + 1),))


def decide_seat_leader(facts: Facts, command: SeatLeader) -> Decision:
    """Seat the best of those logs, where they hold all that was acknowledged."""
    partition = find_group(facts, command.group)
    if partition.grant != command.grant:
        raise refuse(Error.INVALID_REQUEST, f"{partition.name}: its grant is {partition.grant}")
    if not partition.is_fenced:
        return Decision(VotersNoted())
    register = register_of(partition)
    fenced = {
        broker: Fenced(register.epoch, epoch, index, amnesiac=False)
        for broker, epoch, index in command.ends
        if broker in partition.hosts
    }
    voters = {one for each in partition.possible for one in each}
    leader = register.choose({one: fenced[one] for one in fenced if one in voters})
    if leader is None:
        raise refuse(
            Error.INVALID_REQUEST, f"{partition.name}: too few voters were fenced: {len(fenced)}"
        )
    best = fenced[leader]
    roles = _successor(partition, best, fenced)
    seated = GroupSeated(
        group=partition.group,
        grant=partition.grant,
        version=partition.last_version + 1,
        voters=roles.voters,
        observers=roles.observers,
        leader=leader,
        last_epoch=best.last_epoch,
        last_index=best.last_index,
    )
    return Decision(VotersNoted(), (seated,))


def _successor(partition: Partition, best: Fenced, fenced: dict[BrokerId, Fenced]) -> Roles:
    may_vote = {*partition.replicas, *(one for each in partition.possible for one in each)}
    near = {
        broker
        for broker, one in fenced.items()
        if one.last_epoch == best.last_epoch and one.last_index >= best.last_index - LAG_COUNT_MAX
    }
    voters = tuple(one for one in partition.hosts if one in may_vote and one in near)
    observers = tuple(one for one in partition.hosts if one not in voters)
    return Roles(voters, observers)

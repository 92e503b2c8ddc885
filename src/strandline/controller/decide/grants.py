"""Begins grants, and chooses their leaders, for groups that cannot continue by themselves.

Why:    the remaining members of a group may hold every acknowledged record, and elect no leader.
How:    Compare and set on the number of the grant. `controller.arbiter` names the best logs among
        the possible voters: they hold every acknowledged record. Of equal logs this takes the
        preferred leader's, or another voter's (`_first`). The successor's voters are the fenced
        members that may vote and whose log ends in the same epoch as the leader's and not far
        before it: no write waits for a voter that has much to catch up. After a declared loss the
        controller may have fenced observers too; of these only the leader votes.
            A replica that is not certainly a voter may have left since, and keep entries that the
        others removed. If its log lacks the leader's last configuration, it cannot tell, and it
        does not vote.
Source: design section 6, rules R3 and R4; decisions 0016, 0020 and 0038."""

from collections.abc import Collection

from strandline.controller.arbitration.arbiter import register_of
from strandline.controller.commands import AppointLeader, BeginGrant, VotersNoted
from strandline.controller.decide.voters import find_group, next_grant
from strandline.controller.decision import Decision, Facts, maintained_of, refuse
from strandline.controller.records import GrantBegun, LeaderAppointed
from strandline.model.cluster import Cluster, Partition, Roles
from strandline.model.ids import BrokerId, Epoch, Index, first_epoch
from strandline.protocol.errors import Error
from strandline.raft.messages import Fenced

SPREAD = 2_654_435_761
"""Groups that differ by any step come to different brokers (Fibonacci hashing)."""
LAG_COUNT_MAX = 64
"""How many entries a voter of the successor may lack: no more than a leader has in flight."""


def decide_begin_grant(facts: Facts, command: BeginGrant) -> Decision:
    """Fence the group off, unless the grant has begun."""
    partition = find_group(facts, command.group)
    if partition.grant == command.grant + 1:
        return Decision(VotersNoted())
    if partition.grant != command.grant or partition.is_fenced:
        raise refuse(Error.INVALID_REQUEST, f"{partition.name}: its grant is {partition.grant}")
    return Decision(VotersNoted(), (GrantBegun(partition.group, next_grant(partition)),))


def decide_appoint_leader(facts: Facts, command: AppointLeader) -> Decision:
    """Appoint the best of those logs, if they hold every acknowledged record."""
    partition = find_group(facts, command.group)
    if partition.grant != command.grant:
        raise refuse(Error.INVALID_REQUEST, f"{partition.name}: its grant is {partition.grant}")
    if not partition.is_fenced:
        return Decision(VotersNoted())
    register = register_of(partition)
    configured = dict(zip(command.ends, command.configured, strict=False))
    fenced = {
        end[0]: Fenced(register.epoch, *end[1:], False, configured.get(end, Index(-1)))
        for end in command.ends
        if end[0] in partition.hosts
    }
    voters = {one for each in partition.possible for one in each}
    fenced = {one: fenced[one] for one in fenced if one in voters or not partition.is_declared}
    equal = register.candidates({one: fenced[one] for one in fenced if one in voters})
    if not equal:
        raise refuse(
            Error.INVALID_REQUEST, f"{partition.name}: too few voters were fenced: {len(fenced)}"
        )
    cluster = facts.state.cluster
    leader = _declared(partition, _first(partition, equal, cluster), fenced, cluster)
    best = fenced[leader]
    given_up = cluster.given_up(partition)
    roles = _successor(partition, leader, fenced)
    appointed = LeaderAppointed(
        group=partition.group,
        grant=partition.grant,
        version=partition.last_version + 1,
        voters=roles.voters,
        observers=tuple(one for one in roles.observers if one not in given_up),
        leader=leader,
        last_epoch=best.last_epoch,
        last_index=best.last_index,
    )
    return Decision(VotersNoted(), (appointed,))


def _first(partition: Partition, equal: Collection[BrokerId], cluster: Cluster) -> BrokerId:
    """The member that leads, of those with equal logs.

    Of the partition's own voters that are not in maintenance: the preferred leader, or else
    the one that the group's number picks; otherwise one surviving broker would lead all the groups
    of a lost region. If the last appointed leader has not reported, the next one leads: the last
    one may be unable to."""
    maintained = maintained_of(cluster)
    own = [one for one in partition.replicas if one in equal] or sorted(equal)
    able = [one for one in own if one not in maintained] or own
    begin = 0 if able[0] == partition.replicas[0] else partition.group * SPREAD >> 16
    return able[(begin + len(partition.possible) - 1) % len(able)]


def _declared(
    partition: Partition, best: BrokerId, fenced: dict[BrokerId, Fenced], cluster: Cluster
) -> BrokerId:
    """The leader after a declared loss: the one chosen then, if no member has met it, if it still
    has the log that the operator saw, and if no member has more. Raises ApiError otherwise."""
    if not partition.is_declared:
        return best
    loss = partition.losses[-1]
    if fenced[best].last_epoch >= first_epoch(loss.grant):
        as_good = [one for one in fenced if _end(fenced[one]) == _end(fenced[best])]
        return _first(partition, as_good, cluster)
    ends = {one: _end(fenced[one]) for one in loss.survivors}
    shown = loss.last
    other = [one for one in loss.survivors if ends[one] > shown[one]]
    if ends[loss.leader] < shown[loss.leader]:
        other.append(loss.leader)
    if other:
        raise refuse(
            Error.INVALID_REQUEST,
            f"{partition.name}: the log of broker {other[0]} does not end where it did when a loss "
            "was declared: declare it again",
        )
    return loss.leader


def _successor(partition: Partition, leader: BrokerId, fenced: dict[BrokerId, Fenced]) -> Roles:
    best = fenced[leader]
    may_vote = {*partition.replicas, leader}
    # After a declaration the first of these are all that were left, with observers.
    for voters in partition.possible[1 if partition.is_declared else 0 :]:
        may_vote.update(voters)
    certain = () if partition.is_declared else partition.voters
    near = {
        broker
        for broker, one in fenced.items()
        if one.last_epoch == best.last_epoch
        and one.last_index >= best.last_index - LAG_COUNT_MAX
        and (broker in certain or one.last_index >= best.configured)
    }
    voters = tuple(one for one in partition.hosts if one in may_vote and one in near)
    observers = tuple(one for one in partition.hosts if one not in voters)
    return Roles(voters, observers)


def _end(one: Fenced) -> tuple[Epoch, Index]:
    return one.last_epoch, one.last_index

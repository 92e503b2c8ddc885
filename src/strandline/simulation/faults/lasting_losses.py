"""So many brokers, or their disks, are gone for good that only a declared loss lets a group go on.

Why:    a declaration gives up records; nothing else in a seed ever does.
How:    fewer of a group's voters are left than hold everything. Before the others die, a cut mostly
        keeps the latest records from those that are left. The disks of the dead are gone, or some,
        or none. The dead return one by one, early or late, with what they have; `loss_declarations`
        does not wait for them. Or they return together, and reach only each other for a while: a
        majority, as far as they know. A majority of the controller's voters is always left, and of
        each group a replica with its log: a voter, or an observer if all voters are lost. Without
        that, no loss can be declared.
Owns:   nothing; see `targeted_faults`, whose means it uses.
Source: docs/decisions/0026 and 0027; design section 6, 3."""

import random
from collections.abc import Collection

from strandline.model.ids import BrokerId, GroupId
from strandline.raft.group.configuration import Configuration
from strandline.simulation.faults.fault_targets import End
from strandline.simulation.faults.targeted_faults import Script, TargetedFault
from strandline.simulation.world.cluster import SimCluster

LOOK_MS = 10
CUT_SHARE = 0.8
LAG_MS = (300, 1_800)
"""How long they write before, without the replicas that will be left."""
HEALED_MS = (1, 200)
BACK_MS = (50, 3_500)
"""Between two returns."""
APART_SHARE = 0.4
APART_MS = (500, 4_000)
"""So long until they come back together, and then until they reach the others."""
TOGETHER_MS = (1, 100)
LEADER_SHARE = 0.5
"""How often the leader is left, with records that no other replica has."""
WITNESS_SHARE = 0.3
"""How often a replica without a vote is lost, too."""

NOBODY_SHARE = 0.3
"""How often no voter is left, where there is an observer."""

Chosen = tuple[GroupId, frozenset[BrokerId], frozenset[BrokerId]]
"""The group, which of its voters are left (none: its observers are), and which are lost."""


def lose_for_good(cluster: SimCluster, rng: random.Random) -> End | None:
    """See the module."""
    one = TargetedFault(cluster, rng)
    one.run(_lose(one))
    return one.end


def _lose(one: TargetedFault) -> Script:
    cluster, rng = one.cluster, one.rng
    disk_share = rng.choice((0.0, 0.5, 1.0, 1.0))
    while True:
        chosen = _choose(cluster, rng)
        if chosen is None:
            yield LOOK_MS
            continue
        group, left, lost = chosen
        if rng.random() < CUT_SHARE:
            behind = left or _observers(cluster, group, lost)
            alone = behind if rng.random() < 0.7 else frozenset((rng.choice(sorted(behind)),))
            one.part((alone, frozenset(lost)))
            yield rng.randint(*LAG_MS)
        if _is_short(cluster, group, left=left, lost=lost):
            break
        one.part()
        yield LOOK_MS
    order = rng.sample(sorted(lost), len(lost))
    for broker in order:
        takes_disk = rng.random() < disk_share
        one.fail(broker, takes_disk=takes_disk)
        if rng.random() < 0.3:
            yield rng.randint(1, 50)
    yield rng.randint(*HEALED_MS)
    one.part()
    is_apart = rng.random() < APART_SHARE
    if is_apart:
        yield rng.randint(*APART_MS)
        one.isolate(frozenset(lost))
    for broker in rng.sample(order, len(order)):
        yield rng.randint(*(TOGETHER_MS if is_apart else BACK_MS))
        one.start(broker)
    if is_apart:
        yield rng.randint(*APART_MS)
        one.part()


def _choose(cluster: SimCluster, rng: random.Random) -> Chosen | None:
    """A group with a leader, and which of its replicas will be left."""
    leaves_nobody = random.Random(f"no voter {cluster.scenario.seed}").random() < NOBODY_SHARE
    for replica in cluster.leading_replicas(rng):
        voters = replica.configuration.all_voters
        is_planned = any(replica.group == plan.group for plan in cluster.scenario.groups)
        if not is_planned or len(voters) < 3 or not replica.can_serve_reads:
            continue
        if leaves_nobody and _is_short(cluster, replica.group, left=frozenset(), lost=voters):
            return replica.group, frozenset(), frozenset(voters)
        for _ in range(8):
            left = frozenset(rng.sample(sorted(voters), rng.randint(1, len(voters) - 2)))
            if rng.random() < LEADER_SHARE and replica.self_id not in left:
                left = frozenset((replica.self_id, *sorted(left)[1:]))
            witnesses = replica.configuration.observers
            lost = {one for one in voters if one not in left}
            lost.update(one for one in sorted(witnesses) if rng.random() < WITNESS_SHARE)
            if _is_short(cluster, replica.group, left=left, lost=lost):
                return replica.group, left, frozenset(lost)
    return None


def _is_short(
    cluster: SimCluster, group: GroupId, *, left: Collection[BrokerId], lost: Collection[BrokerId]
) -> bool:
    """Whether those who are left hold too little, and yet something may be declared: of every
    group, for all may lose a disk."""
    seeds = set(cluster.scenario.seeds)
    if 2 * len(seeds.difference(lost)) <= len(seeds):
        return False
    for plan in cluster.scenario.groups:
        possible = cluster.disk_losses.voters_of(plan.group)
        known = [
            one.configuration.all_voters for one in cluster.replicas() if one.group == plan.group
        ]
        if possible is None:
            return False
        has_voters = all(set(one).difference(lost) for one in (*possible, *known))
        if not has_voters and (left or not _observers(cluster, plan.group, lost)):
            return False
        if plan.group == group:
            if left and not all(set(one).intersection(left) for one in (*possible, *known)):
                return False
            if all(Configuration(one).holds_commits(set(one).difference(lost)) for one in possible):
                return False
    return True


def _observers(
    cluster: SimCluster, group: GroupId, lost: Collection[BrokerId]
) -> frozenset[BrokerId]:
    """The replicas without a vote that are left of a group, with its log and its state."""
    replicas = [one for one in cluster.replicas() if one.group == group]
    voters = {one for each in replicas for one in each.configuration.all_voters}
    return frozenset(
        one.self_id
        for one in replicas
        if one.self_id not in {*lost, *voters} and not one.raft.has_lost_state
    )

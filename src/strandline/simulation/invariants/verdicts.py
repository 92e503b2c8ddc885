"""Waits, after the last fault, until the cluster works, agrees and falls silent.

Why:    a cluster needs time to recover by itself; one place says how long each step may take.
How:    every group takes a write, and the consumer group works -> every placement keeps its policy
        -> near readers have read all -> the replicas of each group agree on leader and log ->
        brokers send at most a heartbeat and an answer an interval. Each outcome is a fact, which
        `endings` judges.
Source: design section 10 (Progress); section 5 (an idle group costs nothing)."""

import random

from strandline.base.network import Lane
from strandline.controller.arbitration.promotion import Bounds
from strandline.controller.decision import leaving_of, maintained_of
from strandline.model.ids import BrokerId, GroupId, Offset
from strandline.network.opening import UNACKNOWLEDGED_MAX_MS
from strandline.simulation.clients.group_consumers import SESSION_TIMEOUT_MS
from strandline.simulation.clients.load import Load
from strandline.simulation.clients.producers import Producer
from strandline.simulation.faults.kinds import BAD_DISKS
from strandline.simulation.invariants.facts import (
    BalanceAwaited,
    IdlePassed,
    RestAwaited,
    ServiceAwaited,
    Subject,
)
from strandline.simulation.invariants.placements import placement_of
from strandline.simulation.scenarios.scenario import GroupPlan, ProducerPlan
from strandline.simulation.world.broker_member import BrokerMember
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.scheduler import US_PER_MS

PROGRESS_MS = 20_000 + UNACKNOWLEDGED_MAX_MS
"""An election may run over connections that died silently, and the new leader may then find that
its connections for appends are dead too."""
GROUP_PROGRESS_MS = 40_000
CONVERGENCE_MS = 20_000
GAIN_MS = 5_000
"""After that, a late replica must gain something in so long."""
IDLE_COUNT_MAX = 3
"""So many times in a row it may gain nothing: brokers detect a dead connection after 10 s."""
BALANCE_MS = 30_000
BALANCE_FACTOR = 4
"""So many times `broker.lost.after.ms`: brokers that came and went must stay up for a while."""
DEMOTION_MS = Bounds().demote_ms
"""How long each promoted observer waits before its demotion, one after the other."""
REPLACEMENT_MS = 3_000
"""After so long an operator replaces a bad disk."""
LOOK_MS = 100
"""How often the waits below check their condition."""
SESSIONS_END_MS = 3 * SESSION_TIMEOUT_MS
REST_INTERVALS = 5
REST_ATTEMPTS = 30


class DiskReplacer:
    """An operator who replaces a bad disk, once: if the broker keeps a log closed, it starts with
    an empty data directory."""

    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster
        self._due_us = cluster.scheduler.now_us + REPLACEMENT_MS * US_PER_MS
        self._may_act = bool(cluster.begun_kinds & BAD_DISKS)

    def look(self) -> None:
        """Replace the disk, if it is time and the broker keeps a log closed."""
        cluster = self._cluster
        if not self._may_act or cluster.scheduler.now_us < self._due_us:
            return
        broker = cluster.scenario.rotting_broker
        groups = cluster.scenario.groups
        plans = [plan for plan in groups if broker in (*plan.voters, *plan.observers)]
        held = {replica.group for replica in cluster.replicas() if replica.self_id == broker}
        if all(plan.group in held for plan in plans) or not cluster.disk_losses.may_replace(broker):
            return
        self._may_act = False
        cluster.disk_losses.lose(broker)
        cluster.restart(broker)


def await_writes(cluster: SimCluster, load: Load) -> None:
    """Write to every group until each has taken one."""
    writers = [
        Producer(
            ProducerPlan(
                name=f"w{plan.group}",
                group=plan.group,
                acks=-1,
                is_idempotent=False,
                interval_ms=50,
                value_bytes_max=20,
            ),
            cluster,
            random.Random(cluster.rng.getrandbits(64)),
            producer_id=-1,
        )
        for plan in cluster.scenario.groups
    ]
    for writer in writers:
        writer.start()
    limit_us = cluster.scheduler.now_us + PROGRESS_MS * US_PER_MS
    replacer = DiskReplacer(cluster)
    while not cluster.scheduler.run_until_true(
        lambda: all(writer.acknowledged_count for writer in writers),
        limit_us=min(limit_us, cluster.scheduler.now_us + LOOK_MS * US_PER_MS),
    ):
        if cluster.scheduler.now_us >= limit_us:
            break
        replacer.look()
    for writer in writers:
        group = writer.plan.group
        refusal = "" if writer.acknowledged_count else f"{cluster.plan(group).name} took no write"
        cluster.checker.service_awaited(ServiceAwaited(refusal, PROGRESS_MS, Subject(group)))
        writer.stop()
    load.producers.extend(writers)


def await_group(cluster: SimCluster, load: Load) -> None:
    """Wait until every member of the consumer group has got its share again, and one has
    committed."""
    members = load.group_consumers
    if not members or cluster.is_over:
        return
    commits = sum(one.commit_count for one in members)
    joins = {one.name: one.generation_count for one in members}
    limit_us = cluster.scheduler.now_us + GROUP_PROGRESS_MS * US_PER_MS
    done = cluster.scheduler.run_until_true(
        lambda: (
            sum(one.commit_count for one in members) > commits
            and all(one.is_working or one.generation_count > joins[one.name] for one in members)
        ),
        limit_us=limit_us,
    )
    if not cluster.is_over:
        refusal = "" if done else "the consumer group did not work"
        cluster.checker.service_awaited(ServiceAwaited(refusal, GROUP_PROGRESS_MS))


def await_near_readers(cluster: SimCluster, load: Load) -> None:
    """Wait until near readers have all records that were visible when this began."""
    if not load.near_readers or cluster.is_over:
        return
    ends: dict[GroupId, Offset] = {}
    for replica in cluster.replicas():
        ends[replica.group] = max(replica.high_watermark, ends.get(replica.group, Offset(0)))
    late = load.near_readers
    for one in late:
        one.stays = True
    limit_us = cluster.scheduler.now_us + PROGRESS_MS * US_PER_MS
    while late and cluster.scheduler.now_us < limit_us and not cluster.is_over:
        cluster.advance(LOOK_MS)
        late = [one for one in late if one.position < ends.get(one.plan.group, 0)]
    if cluster.is_over:
        return
    for one in late:
        end = ends[one.plan.group]
        what = f"{one.name} is at {one.position} of {end} of {one.plan.name}, and asks {one.asked}"
        subject = Subject(one.plan.group, one.position)
        cluster.checker.service_awaited(ServiceAwaited(what, PROGRESS_MS, subject))


def await_balance(cluster: SimCluster, load: Load) -> None:
    """Wait until the balancer has nothing to do."""
    lost_after_ms = cluster.scenario.lost_after_ms
    if not lost_after_ms or cluster.is_over:
        return
    observers = (len(plan.observers) for plan in cluster.scenario.groups if plan.promotion)
    limit_ms = BALANCE_MS + BALANCE_FACTOR * lost_after_ms + DEMOTION_MS * max(observers, default=0)
    limit_us = cluster.scheduler.now_us + limit_ms * US_PER_MS
    while (
        (left := _imbalance(cluster, load))
        and cluster.scheduler.now_us < limit_us
        and not cluster.is_over
    ):
        cluster.advance(100)
    if not cluster.is_over:
        cluster.checker.balance_awaited(BalanceAwaited(left, limit_ms))


def _imbalance(cluster: SimCluster, load: Load) -> str:
    """The balancer's unfinished work; empty for none."""
    if not all(one.is_done for one in load.operators):
        return "an operator could not set a configuration"
    members = [host.program for host in cluster.hosts.values()]
    active = next(
        (one for one in members if isinstance(one, BrokerMember) and one.findings is not None),
        None,
    )
    if active is None or active.findings is None or not active.findings.round_count:
        return "no balancer has looked"
    state = active.made.controller.cluster
    for operator in load.operators:
        if misplaced_broker := operator.misplaced_broker(state) or operator.reassert(state):
            return misplaced_broker
    for group in sorted(state.groups):
        partition = state.groups[group]
        known = placement_of(partition, state)
        if partition.is_moving:
            return f"{partition.name} moves from {partition.replicas} to {partition.target}"
        if known is not None and not known.is_right:
            return f"{partition.name} is on brokers {partition.replicas}: {known.question}"
        if partition.acting or partition.pending or partition.is_fenced or partition.appointment:
            return f"{partition.name} has voters {partition.possible} for {partition.replicas}"
    for domain in sorted(state.outages):
        return f"{'/'.join(domain)} counts as down, and every broker is up"
    for broker in sorted(leaving_of(state)):
        held = [one.name for one in state.groups.values() if broker in one.hosts]
        if held:
            return f"broker {broker} is to leave and holds {', '.join(sorted(held))}"
    maintained = maintained_of(state)
    for replica in cluster.replicas():
        is_led_here = replica.self_id in maintained and replica.group in state.groups
        if is_led_here and replica.is_serving and set(replica.in_sync()) - maintained:
            return f"broker {replica.self_id} is in maintenance and leads {replica.name}"
    if full := sorted(active.findings.condition.full):
        return f"brokers whose disks are too full: {', '.join(map(str, full))}"
    waits = [f"{code}: {text}" for code, text in active.findings.waits.found]
    return "; ".join(waits)


def await_rest(cluster: SimCluster, load: Load) -> None:
    """Wait until every request is answered, and all members of a group have all of its log.

    While a late replica on a slow link gains, the wait goes on."""
    limit_us = cluster.scheduler.now_us + CONVERGENCE_MS * US_PER_MS
    replacer = DiskReplacer(cluster)
    missing, idle_count = _missing_count(cluster), 0
    while not cluster.is_over and not _has_converged(cluster, load):
        replacer.look()
        if cluster.scheduler.now_us >= limit_us:
            before, missing = missing, _missing_count(cluster)
            idle_count = 0 if missing < before else idle_count + 1
            if idle_count == IDLE_COUNT_MAX:
                break
            limit_us += GAIN_MS * US_PER_MS
        cluster.advance(LOOK_MS)
    if not cluster.is_over:
        cluster.checker.rest_awaited(_what_is_under_way(cluster, load))


def _missing_count(cluster: SimCluster) -> int:
    """How many records of their leaders the members of groups lack, in all."""
    missing = 0
    for leader in cluster.replicas():
        if leader.is_serving:
            members = leader.configuration.members
            held = [one for one in cluster.replicas() if one.group == leader.group]
            ends = [one.log_end_offset for one in held if one.self_id in members]
            missing += sum(leader.log_end_offset - min(end, leader.log_end_offset) for end in ends)
    return missing + sum(cluster.tier_audit.pending().values())


def _has_converged(cluster: SimCluster, load: Load) -> bool:
    return (
        all(producer.is_idle for producer in load.producers)
        and not any(_divergence(cluster, plan) for plan in cluster.scenario.groups)
        and not _moving_brokers(cluster)
        and not cluster.tier_audit.pending()
    )


def _moving_brokers(cluster: SimCluster) -> list[BrokerId]:
    """The brokers that know of replicas that still move."""
    members = [host.program for host in cluster.hosts.values()]
    return [one.broker for one in members if isinstance(one, BrokerMember) and one.is_moving]


def _divergence(cluster: SimCluster, plan: GroupPlan) -> str:
    """What keeps a group from being at rest; empty when nothing does."""
    replicas = {r.self_id: r for r in cluster.replicas() if r.group == plan.group}
    leaders = [r for r in replicas.values() if r.is_serving]
    if len(leaders) != 1:
        return f"{plan.name} is led by {[r.self_id for r in leaders]}"
    leader = leaders[0]
    end = leader.log_end_offset
    wanted = (leader.self_id, leader.epoch, end, end)
    for broker in leader.configuration.members:
        replica = replicas.get(broker)
        if replica is None:
            return f"{plan.name}: broker {broker} is not there"
        found = (
            replica.leader_id,
            replica.epoch,
            replica.log_end_offset,
            replica.high_watermark,
        )
        if found != wanted:
            return (
                f"{plan.name}: (leader, epoch, log end, high watermark) of broker {broker} is "
                f"{found}, of the leader, broker {leader.self_id}, {wanted}"
            )
    return ""


def _what_is_under_way(cluster: SimCluster, load: Load) -> RestAwaited:
    for plan in cluster.scenario.groups:
        divergence = _divergence(cluster, plan)
        if divergence:
            return RestAwaited(divergence, Subject(plan.group))
    moving = _moving_brokers(cluster)
    if moving:
        return RestAwaited(f"brokers {moving} wait for replicas that move")
    pending = cluster.tier_audit.pending()
    if pending:
        return RestAwaited(f"buckets lack records, or keep objects: {pending}")
    waiting = [producer for producer in load.producers if not producer.is_idle]
    if not waiting:
        return RestAwaited("")
    names = [producer.name for producer in waiting]
    return RestAwaited(f"producers {names} are not answered", Subject(waiting[0].plan.group))


def observe_rest(cluster: SimCluster, load: Load) -> None:
    """What stalled in a cut may still arrive for a while, sessions of consumers end, and followers
    tell how far they have compacted; then there must be silence."""
    if load.group_consumers:
        cluster.advance(SESSIONS_END_MS)
    compacted, idle_count = _compacted_count(cluster), 0
    while True:
        fact = _observe_idle(
            cluster, REST_INTERVALS * cluster.scenario.settings.heartbeat_interval_ms
        )
        before, compacted = compacted, _compacted_count(cluster)
        idle_count = idle_count + 1 if compacted == before else 0
        if not fact.noise() or idle_count == REST_ATTEMPTS:
            break
    cluster.checker.idle_passed(fact)


def _compacted_count(cluster: SimCluster) -> int:
    """How many entries of their logs all replicas have compacted, in all."""
    return sum(replica.log.compacted_index + 1 for replica in cluster.replicas())


def _observe_idle(cluster: SimCluster, duration_ms: int) -> IdlePassed:
    before = dict(cluster.fabric.counters.sent_count)
    cluster.advance(duration_ms)
    counts: dict[Lane, dict[tuple[BrokerId, BrokerId], int]] = {lane: {} for lane in Lane}
    for way, count in cluster.fabric.counters.sent_count.items():
        source, target, lane = way
        counts[lane][source, target] = count - before.get(way, 0)
    return IdlePassed(
        duration_ms=duration_ms,
        heartbeat_interval_ms=cluster.scenario.settings.heartbeat_interval_ms,
        control_counts=counts[Lane.CONTROL],
        bulk_counts=counts[Lane.BULK],
    )

"""Records an operator's declaration that replicas are gone for good, as the last resort.

Why:    it gives up records that only these replicas had. So the controller refuses it unless
        nothing else lets the group continue, and unless the operator saw which offsets are at risk.
How:    for this command the controller asks the brokers that it hears which brokers they hear and
        where their logs of the group end (`controller.reports`):

            a replica that is given up is heard                          a cut is no loss
            another holder of the log does not report it                 wait, or give it up, too
            led, electable, or whole without those given up              nothing need be lost;
                                                                         if a cut keeps voters from
                                                                         electing, repair it
            a replica that lost its log, and has not rejoined, has more  it may be needed, and
            than others                                                  cannot be appointed
            none is named, and no replica that is heard lost its log     name one
            the logs, or the grant, differ from those shown              look again

        The record names the member that is appointed, and where the logs end. If they end elsewhere
        by then, no member is appointed (`grants`), and the operator must look again.
            The controller appoints an observer if its log is the best that is left. All observers
        whose logs prove something are survivors: they are among the voters that may be in force
        from the record on. The controller fences them as it fences voters, and waits for them. An
        unfenced one could learn late, from a replica that was given up, of a commit that the next
        leader lacks.
Source: decisions 0026 and 0027; `controller.survivors`."""

from collections.abc import Collection, Sequence

from strandline.config.topic import TopicConfig
from strandline.controller.arbitration.arbiter import register_of
from strandline.controller.arbitration.sides import Reach, cuts_of, sides_of
from strandline.controller.arbitration.survivors import (
    GroupStatus,
    SurvivingLog,
    Survivors,
    assess,
    has_all_of,
)
from strandline.controller.decide.voters import find_group, next_grant
from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.loss_commands import (
    DeclareLost,
    LossDeclared,
    RecoverPartition,
    ShownLog,
)
from strandline.controller.placing.policies import SHRINK, derived_defaults
from strandline.controller.records import ReplicasDeclaredLost
from strandline.model.cluster import Loss, LostReplica, Partition
from strandline.model.ids import BrokerId, Epoch, Index
from strandline.protocol.errors import Error

BY_CHARACTERS_MAX = 200
OR_BUCKETS = ", or begin with what its buckets have: --from-bucket all"


def decide_declare_lost(facts: Facts, command: DeclareLost) -> Decision:
    """Give up these replicas, or refuse with the reason."""
    partition = find_group(facts, command.group)
    brokers = set(command.brokers)
    for last in partition.losses[-1:]:
        is_last = last.grant == partition.grant == command.grant + 1
        if is_last and {one.broker for one in last.lost} == brokers:
            return Decision(LossDeclared(last, command.shown))
    logs = logs_left(facts, partition, command)
    loss = _loss(facts, partition, command, logs)
    answer = LossDeclared(loss, shown_of(logs))
    if command.validate_only:
        return Decision(answer)
    require_shown(partition, answer, command)
    return Decision(answer, (ReplicasDeclaredLost(partition.group, loss),))


def logs_left(
    facts: Facts, partition: Partition, command: DeclareLost | RecoverPartition
) -> tuple[SurvivingLog, ...]:
    """The logs of all holders that the command does not give up by name. Raises ApiError if it
    rests on another grant, names a broker that is heard or none that holds the log, or if a log is
    not known."""
    brokers = set(command.brokers)
    if partition.grant != command.grant:
        raise refuse(
            Error.INVALID_REQUEST,
            f"{partition.name}: its grant is {partition.grant}, not {command.grant}: "
            "show the logs left again",
        )
    names_none = not brokers and not _has_empty(facts, partition)
    if names_none:
        _require_missing_voter(facts, partition)
    if names_none or not brokers.issubset(partition.hosts):
        raise refuse(
            Error.INVALID_REQUEST,
            f"{partition.name} is on brokers {_ids(partition.hosts)}: name those of them that are "
            "gone for good",
        )
    _require_silence(facts, partition, brokers)
    return _logs(facts, partition, brokers)


def shown_of(logs: Collection[SurvivingLog]) -> tuple[ShownLog, ...]:
    """The logs as an operator is shown them."""
    return tuple(
        ShownLog(one.broker, one.last_epoch, one.last_index, one.committed, one.end)
        for one in sorted(logs, key=lambda one: one.broker)
    )


def require_shown(
    partition: Partition, answer: LossDeclared, command: DeclareLost | RecoverPartition
) -> None:
    """Raises ApiError if the logs are not those that the operator was shown."""
    if set(answer.logs) != set(command.shown):
        raise refuse(
            Error.INVALID_REQUEST,
            f"{partition.name}: the logs left have changed: show them again",
        )


def lost_replicas(facts: Facts, brokers: Collection[BrokerId]) -> tuple[LostReplica, ...]:
    """The replicas there, each with its broker's last registration."""
    directories, cluster = facts.state.directories, facts.state.cluster
    return tuple(
        LostReplica(
            one,
            directories[one].id if one in directories else "",
            cluster.brokers[one].incarnation if one in cluster.brokers else "",
        )
        for one in sorted(brokers)
    )


def _has_empty(facts: Facts, partition: Partition) -> bool:
    """Whether a heard broker has lost its log of the partition. Then there may be no broker to
    name, and too few logs."""
    report = (facts.reports.get(one) for one in partition.hosts)
    logs = (one.logs.get(partition.group) for one in report if one is not None)
    return any(one is not None and one.has_lost for one in logs)


def _require_missing_voter(facts: Facts, partition: Partition) -> None:
    """Refuse a command that names no broker if a majority answers: name the link to repair."""
    logs = [one for one in (_log_of(facts, partition, host) for host in partition.hosts) if one]
    standing = assess_logs(partition, logs).standing
    if standing in (GroupStatus.LED, GroupStatus.ELECTABLE):
        raise refuse(Error.POLICY_VIOLATION, why_refused(facts, partition, logs, standing))


def _require_silence(facts: Facts, partition: Partition, brokers: Collection[BrokerId]) -> None:
    """Refuse if another broker hears a named one: it may continue, so its log counts."""
    for broker in sorted(brokers):
        if broker in facts.alive:
            raise refuse(
                Error.POLICY_VIOLATION,
                f"{partition.name}: broker {broker} reaches the controller: it is not lost",
            )
    for other in sorted(facts.alive):
        report = facts.reports.get(other)
        if report is None or report.hears is None:
            raise refuse(
                Error.REQUEST_TIMED_OUT,
                f"{partition.name}: broker {other} does not report which brokers it hears: "
                "try again",
            )
        heard = sorted(set(report.hears) & set(brokers))
        if heard:
            raise refuse(
                Error.POLICY_VIOLATION,
                f"{partition.name}: broker {heard[0]} reaches broker {other}: a cut is not a loss",
            )


def _logs(
    facts: Facts, partition: Partition, brokers: Collection[BrokerId]
) -> tuple[SurvivingLog, ...]:
    """The logs of all holders that are not given up."""
    logs = []
    for broker in partition.hosts:
        if broker in brokers:
            continue
        log = _log_of(facts, partition, broker)
        if log is None:
            raise refuse(
                Error.POLICY_VIOLATION,
                f"{partition.name}: broker {broker} is up, but its log is not open: try again; "
                "if its log is unusable, stop the broker and give it up too"
                if broker in facts.alive
                else f"{partition.name}: broker {broker} is unreachable: bring it back, or "
                "give it up too",
            )
        logs.append(log)
    return tuple(logs)


def _log_of(facts: Facts, partition: Partition, broker: BrokerId) -> SurvivingLog | None:
    """The broker's report of its log; None if it does not answer, or the log is not open."""
    report = facts.reports.get(broker)
    log = None if report is None else report.logs.get(partition.group)
    if log is None:
        return None
    return SurvivingLog(
        broker=broker,
        is_led=log.is_led,
        last_epoch=log.last_epoch,
        last_index=log.last_index,
        start=log.start,
        committed=log.committed,
        end=log.end,
        has_lost=log.has_lost,
        epoch=log.epoch,
        leader=log.leader,
    )


def assess_logs(partition: Partition, logs: Collection[SurvivingLog]) -> Survivors:
    """What these logs can do, by all voters that may be in force."""
    return assess(partition.possible, logs, needs_all=partition.is_declared, floor=partition.floor)


def _loss(
    facts: Facts, partition: Partition, command: DeclareLost, logs: tuple[SurvivingLog, ...]
) -> Loss:
    found = assess_logs(partition, logs)
    why = why_refused(facts, partition, logs, found.standing)
    if why:
        raise refuse(Error.POLICY_VIOLATION, why)
    sound = {one.broker: one for one in logs if not one.has_lost}
    assert found.best is not None
    leader = sound[found.best]
    _require_less(partition, leader, [one for one in logs if one.has_lost])
    lost = lost_replicas(facts, command.brokers)
    survivors = tuple(one for one in partition.hosts if one in sound)
    return Loss(
        grant=next_grant(partition),
        lost=lost,
        survivors=survivors,
        ends=tuple(
            (Epoch(sound[one].last_epoch), Index(sound[one].last_index)) for one in survivors
        ),
        leader=leader.broker,
        committed=found.committed,
        end=leader.end,
        by=command.by[:BY_CHARACTERS_MAX],
        at_ms=command.at_ms,
    )


def why_refused(
    facts: Facts, partition: Partition, logs: Collection[SurvivingLog], standing: GroupStatus
) -> str:
    """Why a declaration is not necessary or not possible; empty if it is both."""
    match standing:
        case GroupStatus.ELECTABLE:
            return _why_electable(facts, partition, logs)
        case GroupStatus.LED:
            return f"{partition.name}: it has a leader, or had one a moment ago: nothing is lost"
        case GroupStatus.WHOLE:
            who = _appointment_text(facts, partition, "one of them")
            return f"{partition.name}: the replicas left hold every acknowledged record: {who}"
        case GroupStatus.NO_LOG:
            topic = facts.state.cluster.topics[partition.topic]
            defaults = facts.state.cluster.cluster_configs
            is_tiered = TopicConfig.from_overrides(defaults, topic.configs).remote_storage_enable
            return (
                f"{partition.name}: no usable log is left: bring one of its brokers back with "
                f"its disk intact{OR_BUCKETS if is_tiered else ''}"
            )
        case GroupStatus.SHORT:
            return ""


def _why_electable(facts: Facts, partition: Partition, logs: Collection[SurvivingLog]) -> str:
    """The remedy if a majority answers, and none of them leads."""
    able = {one.broker for one in logs if not one.has_lost}
    silent = {
        one: [other for other in facts.alive if other not in report.hears]
        for one, report in facts.reports.items()
        if report.hears is not None
    }
    reach = Reach(frozenset(facts.alive), cuts_of(silent, facts.alive))
    voters = {one for voters in partition.possible for one in voters}
    sides = sides_of(frozenset(able & voters), reach.cuts)
    possible = register_of(partition).possible
    if any(all(one.wins_election(side) for one in possible) for side in sides):
        return (
            f"{partition.name}: a majority of its voters is left, and elects a leader in seconds; "
            "if not, `zone status` shows which heartbeats are missing"
        )
    return (
        f"{partition.name}: a majority of its voters answers, so nothing need be lost, but "
        f"{_cuts_text(sides)}: repair the link (`zone status` shows which heartbeats are missing); "
        f"{_meanwhile(facts, partition, reach, able)}"
    )


def _cuts_text(sides: Sequence[frozenset[BrokerId]]) -> str:
    """The voters that do not hear each other, if they are on more than one side."""
    if len(sides) == 2 and sides[0].isdisjoint(sides[1]):
        one, other = (
            f"broker{'s' * (len(side) > 1)} {_ids(sorted(side))}" for side in sorted(sides, key=min)
        )
        return f"{one} and {other} do not reach each other"
    together = sorted(sorted(side) for side in sides if len(side) > 1)
    if not together:
        return "none of them reach each other"
    return f"only these reach each other: brokers {'; '.join(map(_ids, together))}"


def _meanwhile(facts: Facts, partition: Partition, reach: Reach, able: Collection[BrokerId]) -> str:
    chosen = partition.appointment
    if chosen is not None:
        return (
            f"or wait: the controller has appointed broker {chosen.leader}, and waits "
            "until it leads"
        )
    if not reach.may_appoint(partition, able):
        return "until then no leader is appointed: no side is certain to hold every record"
    return f"or {_appointment_text(facts, partition, 'one side')}"


def _appointment_text(facts: Facts, partition: Partition, chosen: str) -> str:
    """The remedy if the controller may appoint `chosen`."""
    cluster = facts.state.cluster
    own, defaults = cluster.topics[partition.topic].configs, cluster.cluster_configs
    config = TopicConfig.from_overrides(defaults, own, derived_defaults(own, defaults))
    if config.voters_shrink_enable or partition.is_fenced:
        return f"wait: the controller appoints {chosen}, in seconds"
    return f"set {SHRINK}=true: the controller then appoints {chosen}, in seconds"


def _require_less(
    partition: Partition, leader: SurvivingLog, others: Collection[SurvivingLog]
) -> None:
    """A broker that lost its log, and has not rejoined, cannot be appointed, and must not have more
    than the leader."""
    for one in others:
        ahead = (one.last_epoch, one.last_index) > (leader.last_epoch, leader.last_index)
        if ahead or not (one.committed <= leader.committed or has_all_of(leader, one)):
            raise refuse(
                Error.POLICY_VIOLATION,
                f"{partition.name}: broker {one.broker}, which may not lead because it lost its "
                "log and has not rejoined, may hold more than any other replica left: its log "
                f"ends at offset {one.end}; bring another one back, or stop it and give it up too",
            )


def _ids(brokers: Collection[BrokerId]) -> str:
    return ", ".join(map(str, brokers))

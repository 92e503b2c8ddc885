"""For each class of loss: whether a topic survives it without an operator, as text.

Why:    the same words when a topic is created and later.
How:    computed from the placed replicas, `min.insync.replicas`, `voters.shrink.enable`, the
        controller's voters and the cluster's outage marks, as far as these are known. While
        something is down or behind, a second table begins from that.
Source: decision 0026; `placement.explain.outcomes`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from strandline.base.json_value import Json
from strandline.cli.output import Table, print_line, print_table

if TYPE_CHECKING:
    from strandline.cli.text.live_cluster import LiveCluster, LiveTopic
    from strandline.client.cluster import Client
    from strandline.placement.explain.outcomes import Outcome
    from strandline.placement.explain.topics import PartitionState
    from strandline.placement.policy.document import Promotion
    from strandline.placement.solver.request import Request
    from strandline.placement.survival.courses import Rules
    from strandline.placement.survival.regions import Regions
    from strandline.placement.survival.replicas import Placement, Replica
    from strandline.placement.topology.universe import Universe

OUTAGE_KEYS = (
    "outage.brokers.min",
    "outage.high.percent",
    "outage.low.percent",
    "outage.marks",
)
"""The keys of the cluster by which a region is taken for down."""
NO_MAJORITY = "the controller has no majority either"


@dataclass(frozen=True, slots=True)
class LossForecast:
    """What each class of loss does to a topic, and what its promotion does not do, as notes.
    `now`: what further losses do to the partitions that accept writes, while something is down or
    behind, or others vote; else empty."""

    topic: "LiveTopic"
    outcomes: "tuple[Outcome, ...]"
    notes: tuple[str, ...]
    now: "tuple[Outcome, ...]" = ()
    rules: "Rules | None" = None


def look_at_losses(client: "Client", names: Sequence[str]) -> dict[str, LossForecast]:
    """By topic; nothing where the cluster does not say."""
    from strandline.base.errors import StrandlineError
    from strandline.cli.text.live_cluster import look

    try:
        cluster = look(client, names)
    except StrandlineError:
        return {}
    return forecast_losses(client, cluster)


def forecast_losses(
    client: "Client", cluster: "LiveCluster", rules: "Mapping[str, Rules] | None" = None
) -> dict[str, LossForecast]:
    """By topic, of a cluster that was looked at. `rules`: as `rules_of` says, if it was asked."""
    by_topic = rules_of(client, cluster) if rules is None else rules
    return {one.name: _forecast_topic(one, cluster, by_topic[one.name]) for one in cluster.topics}


def rules_of(client: "Client", cluster: "LiveCluster") -> "dict[str, Rules]":
    """By topic, by which rules partitions go on after losses."""
    controllers = controller_voters(client, cluster)
    promotions = {one.request.policy.promotion for one in cluster.topics}
    regions = regions_of(client, cluster, promotions)
    return {
        one.name: _rules(
            one.request, controllers, regions, shrinks=one.shrinks, promises=not one.caches
        )
        for one in cluster.topics
    }


def rules_of_new(
    client: "Client", cluster: "LiveCluster", request: "Request", *, shrinks: bool
) -> "Rules":
    """By which rules the partitions of a topic that is not there go on. `shrinks`: whether its
    voters may leave."""
    regions = regions_of(client, cluster, {request.policy.promotion})
    return _rules(request, controller_voters(client, cluster), regions, shrinks=shrinks)


def _rules(
    request: "Request",
    controllers: "Sequence[Replica]",
    regions: "Regions",
    *,
    shrinks: bool,
    promises: bool = True,
) -> "Rules":
    from strandline.placement.survival.courses import Rules

    return Rules(
        min_insync_replicas=request.min_insync_replicas,
        shrinks=shrinks,
        controllers=controllers,
        promotion=request.policy.promotion,
        regions=regions,
        promises=promises,
    )


def controller_voters(client: "Client", cluster: "LiveCluster") -> "tuple[Replica, ...]":
    """The controller's voters with their labels; empty if no broker names them."""
    from strandline.client.operations import broker_configs
    from strandline.placement.survival.replicas import Replica

    heard = [one.id for one in cluster.candidates if one.is_heard]
    heard.sort(key=lambda broker: broker != cluster.controller)  # It is up.
    seeds = broker_configs.controller_voters(client, heard)
    return tuple(Replica(one.id, one.labels) for one in cluster.candidates if one.id in seeds)


def regions_of(
    client: "Client", cluster: "LiveCluster", promotions: "Collection[Promotion]"
) -> "Regions":
    """How many silent brokers make a region count as down, if a promotion depends on it;
    otherwise without brokers, as also if the cluster does not answer."""
    from strandline.base.errors import StrandlineError
    from strandline.cli.text.live_cluster import THE_CLUSTER
    from strandline.client.operations.configs import describe_configs
    from strandline.config.cluster import ClusterConfig
    from strandline.controller.outages.regions import regions_of as count_silent
    from strandline.placement.survival.courses import REGION_LOST
    from strandline.placement.survival.regions import Regions

    if REGION_LOST not in promotions:
        return Regions()
    try:
        rows = describe_configs(client, [THE_CLUSTER], OUTAGE_KEYS)[THE_CLUSTER]
    except StrandlineError:
        return Regions()
    config = ClusterConfig.from_values({one.name: one.value for one in rows})
    return count_silent({one.id: one.labels for one in cluster.candidates}, config)


def _forecast_topic(topic: "LiveTopic", cluster: "LiveCluster", rules: "Rules") -> LossForecast:
    """The effect of each class of loss on a topic, as placed and from now."""
    from strandline.model.cluster import Roles
    from strandline.placement.explain.outcomes import outcomes
    from strandline.placement.explain.topics import placement_of
    from strandline.placement.topology.universe import Universe, as_staying

    universe = Universe(as_staying(cluster.candidates))
    alike: dict[Roles, list[int]] = {}
    for one in topic.partitions:
        alike.setdefault(one.roles, []).append(one.index)
    placements = [
        (placement_of(universe, roles, topic.request), tuple(indexes))
        for roles, indexes in alike.items()
    ]
    goals = topic.request.policy.survive
    present = at_present(topic, cluster, universe)
    is_same = not any(one.lost for one, _ in present) and not any(
        one.acting for one in topic.partitions
    )
    going = [(one, indexes) for one, indexes in present if not one.has_stopped]
    return LossForecast(
        topic,
        outcomes(placements, rules, goals=goals),
        _notes(topic, [one for one, _ in placements], rules.regions),
        rules=rules,
        now=() if is_same or not going else outcomes(going, rules, goals=goals),
    )


def at_present(
    topic: "LiveTopic", cluster: "LiveCluster", universe: "Universe"
) -> "list[tuple[Placement, tuple[int, ...]]]":
    """[(how partitions vote now, beside what is down and behind; these partitions)]"""
    from strandline.placement.explain.topics import placement_of

    down = frozenset(one.id for one in cluster.candidates if not one.is_up)
    alike: dict[object, tuple[PartitionState, list[int]]] = {}
    for one in topic.partitions:
        kind = one.roles, one.acting, tuple(sorted(one.behind))
        alike.setdefault(kind, (one, []))[1].append(one.index)
    return [
        (
            placement_of(universe, one.roles, topic.request, one.acting).at_present(
                down=down, behind=one.behind
            ),
            tuple(indexes),
        )
        for one, indexes in alike.values()
    ]


def _notes(
    topic: "LiveTopic", placements: "Sequence[Placement]", regions: "Regions"
) -> tuple[str, ...]:
    """Regions without a stand-in."""
    from strandline.placement.survival.courses import REGION_LOST

    if topic.request.policy.promotion != REGION_LOST or not regions.brokers:
        return ()
    never = regions.never_down(placements)
    if not never:
        return ()
    noun = "region" if len(never) == 1 else "regions"
    have, their = ("has", "its") if len(never) == 1 else ("have", "their")
    return (
        f"{REGION_LOST}: {noun} {', '.join(never)} {have} fewer brokers than "
        f"outage.brokers.min, too few to count as down: no observer stands in for {their} "
        "voters",
    )


def losses_json(forecast: LossForecast, *, now: bool = False) -> list[Json]:
    """As JSON, each with its text; `now`: of further losses."""
    from strandline.cli.text.explaining import builtins

    told: list[Json] = []
    for one in forecast.now if now else forecast.outcomes:
        fields = builtins(one)
        assert isinstance(fields, dict)
        told.append({**fields, "text": tell(forecast.topic, one)})
    return told


def tell_losses(forecast: LossForecast) -> None:
    """Print a table: whether an operator must act after each class of loss, and how; and another of
    further losses, while something is down or behind."""
    name = forecast.topic.name
    if forecast.outcomes:
        title = f"topic {name}, as placed, if all of these are lost at the same time:"
        _tell_table(forecast.topic, forecast.outcomes, title, len(forecast.topic.partitions))
    if forecast.now:
        count = len({index for one in forecast.now for index in one.partitions})
        title = f"topic {name}, from now, if all of these are lost as well:"
        print_line("")
        _tell_table(forecast.topic, forecast.now, title, count)


def _tell_table(topic: "LiveTopic", found: "Sequence[Outcome]", title: str, count: int) -> None:
    """`count`: of how many partitions the table tells."""
    from strandline.cli.text.explaining import partitions_named

    rows = []
    for one in found:
        is_some = len(one.partitions) < count
        which = f" ({partitions_named(one.partitions)})" if is_some else ""
        rows.append((_loss(one), _who(one), _data(one), tell(topic, one) + which))
    print_line(title)
    print_table(Table(heads=("LOST", "ACTS", "ACKNOWLEDGED WRITES", "HOW"), rows=rows))


def _loss(one: "Outcome") -> str:
    return f"{one.loss}, cut off" if one.is_cut and not one.is_link else one.loss


def _who(one: "Outcome") -> str:
    return "by itself" if one.acts_alone else "operator"


def _data(one: "Outcome") -> str:
    from strandline.placement.survival.course import Course

    if one.keeps_data:
        return "kept"
    return "lost" if one.course == Course.GONE and not one.observers else "may be lost"


def tell(topic: "LiveTopic", one: "Outcome") -> str:
    """One line: what happens, and what an operator must do."""
    from strandline.placement.survival.course import Course

    if one.is_link:
        return _tell_link(topic, one)
    there = f"{one.left} of {one.voters} voters"
    verb = "is" if one.left == 1 else "are"
    match one.course:
        case Course.ELECTION if one.is_cut:
            side = "that was cut off" if one.is_inside else "that was not cut off"
            return f"the side {side} continues, with {there}; the other waits until the cut ends"
        case Course.ELECTION:
            if one.left == 1:
                return "the only voter is left, and leads"
            return f"{there} are left, and elect a leader if it is lost"
        case Course.ARBITRATION:
            return _appoints(one)
        case Course.STANDS_IN:
            stand = "stands" if one.stand_ins == 1 else "stand"
            then = f"then{_once(one)} {_stand_ins(one)} {stand} in"
            return f"{_go_on(one)}; {then}: acks=all goes on"
        case Course.LOWER:
            return (
                f"{_go_on(one)}; acks=all is refused until: {_alter(topic, one, lets_leave=False)}"
            )
        case Course.LET_LEAVE:
            comes = f", with {_stand_ins(one)}{_once(one) or ','}" if one.stand_ins else ""
            holds, continues = ("holds", "continues") if one.left == 1 else ("hold", "continue")
            return (
                f"no leader; {_rest(one)} {holds} every acknowledged record, and "
                f"{continues}{comes} after: {_alter(topic, one, lets_leave=True)}"
            )
        case Course.RETURN:
            return _tell_return(one, there)
        case Course.MAY_LACK:
            return (
                f"no leader; {there} {verb} left: bring {one.back} more back, or see what may "
                f"be lost: strandline partition survivors {topic.name} PARTITION"
            )
        case Course.GONE:
            return _tell_gone(topic, one)


def _tell_link(topic: "LiveTopic", one: "Outcome") -> str:
    """The same if only the link between two regions is cut, and no broker is lost."""
    from strandline.placement.survival.course import Course

    there = f"{one.left} of {one.voters} voters"
    nobody = "neither side elects a leader: "
    is_one = one.left == 1
    goes_on = "the only voter continues" if is_one else f"{there} continue with their leader"
    if one.left <= one.voters // 2:
        goes_on = f"{nobody}the controller appoints a leader on one side, with {there}"
    match one.course:
        case Course.STANDS_IN:
            stand = "stands" if one.stand_ins == 1 else "stand"
            return f"{goes_on}; then {_stand_ins(one)} {stand} in: acks=all goes on"
        case Course.LOWER:
            return (
                f"{goes_on}; acks=all is refused until the link is repaired, or: "
                f"{_alter(topic, one, lets_leave=False)}"
            )
        case Course.LET_LEAVE:
            comes = f" and {_stand_ins(one)}" if one.stand_ins else ""
            return (
                f"{nobody}repair the link, or let the controller appoint a leader on one side, "
                f"with {there}{comes}, which hold{'s' if is_one and not comes else ''} every "
                "acknowledged record: "
                f"{_alter(topic, one, lets_leave=True)}"
            )
        case Course.RETURN if one.without_controller:
            return f"{NO_MAJORITY}, or is unreachable: repair the link"
        case Course.RETURN:
            return (
                f"min.insync.replicas requires {one.write_quorum} of {one.voters}, and "
                f"{one.left} reach{'es' if is_one else ''} the leader: acks=all waits: repair the "
                "link"
            )
        case _:
            return f"{goes_on}; the others catch up when the link is repaired"


def _stand_ins(one: "Outcome") -> str:
    return f"{one.stand_ins} observer{'' if one.stand_ins == 1 else 's'}"


def _once(one: "Outcome") -> str:
    return ", once the region counts as down," if one.awaits_region else ""


def _tell_gone(topic: "LiveTopic", one: "Outcome") -> str:
    why = f", and {NO_MAJORITY}" if one.without_controller else ""
    text = f"no voter is left{why}: bring {one.back} back"
    if not one.observers:
        return text
    which = f"{topic.name} PARTITION"
    text = f"{text}; or see what may be lost: strandline partition survivors {which}"
    if one.without_controller:  # A declaration needs the controller.
        return text
    return (
        f"{text}, and let an observer continue without it: strandline partition declare-lost "
        f"{which}"
    )


def _rest(one: "Outcome") -> str:
    """The voters that are not lost."""
    if one.left == 1:
        return f"the remaining voter of {one.voters}"
    return f"the remaining {one.left} of {one.voters} voters"


def _appoints(one: "Outcome") -> str:
    if one.left == 1:
        return f"the controller appoints {_rest(one)} as leader"
    return f"the controller appoints a leader among {_rest(one)}"


def _go_on(one: "Outcome") -> str:
    """How voters continue that are fewer than acks=all requires."""
    if one.left <= one.voters // 2:
        return _appoints(one)
    return f"{_rest(one)} continue{'s' if one.left == 1 else ''}"


def _tell_return(one: "Outcome", there: str) -> str:
    if one.without_controller:
        why = NO_MAJORITY
    elif one.left > one.voters // 2:
        why = f"min.insync.replicas requires {one.write_quorum} of {one.voters}: acks=all waits"
    else:
        why = f"{there} cannot elect a leader"
    return f"{why}: {'repair the link' if one.is_cut else f'bring {one.back} back'}"


def _alter(topic: "LiveTopic", one: "Outcome", *, lets_leave: bool) -> str:
    words = [f"strandline topic alter {topic.name}"]
    if lets_leave:
        words.append("-c voters.shrink.enable=true")
    if one.left + one.stand_ins < min(topic.request.min_insync_replicas, one.voters):
        words.append(f"-c min.insync.replicas={one.left}")
    return " ".join(words)

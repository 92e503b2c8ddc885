"""`strandline topic explain`: where replicas are and why, what survives, and the cost.

Source: docs/reference/cli.md; docs/operating/placement.md."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.json_value import Json
from strandline.cli.options import (
    DEFAULT_TIMEOUT_S,
    AsJson,
    Bootstrap,
    PriceFile,
    Timeout,
    open_client,
)
from strandline.cli.output import Table, ids, print_line, print_more, print_table, show

if TYPE_CHECKING:
    from strandline.cli.text.live_cluster import LiveCluster, LiveTopic
    from strandline.cli.text.losses import LossForecast
    from strandline.client.cluster import Client
    from strandline.client.operations.leadership import LeaderWaiting
    from strandline.model.cluster import Roles
    from strandline.model.ids import BrokerId
    from strandline.placement.explain.explanation import Explanation
    from strandline.placement.explain.prices import Prices
    from strandline.placement.explain.topics import PartitionState, TopicExplanation
    from strandline.placement.solver.refusal import Refusal
    from strandline.placement.survival.courses import Rules
    from strandline.protocol.messages.describe_losses import DeclaredLoss
    from strandline.protocol.messages.describe_writers import WrittenPartition

ALIKE_SHOWN_MAX = 20
WAITS_SHOWN_MAX = 10


def explain(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The topic.")],
    partition: Annotated[
        int | None,
        typer.Option("--partition", min=0, help="Explain this one; default: one of the weakest."),
    ] = None,
    prices: PriceFile = None,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Explain where replicas are and why, whether they satisfy the policy, what survives as
    placed and now, which losses need an operator, what a write waits for, and what crosses
    regions."""
    from strandline.cli.text.declared_losses import declared_json
    from strandline.cli.text.explaining import builtins, check_prices, read_prices
    from strandline.cli.text.live_cluster import look
    from strandline.cli.text.losses import forecast_losses, losses_json, rules_of
    from strandline.cli.text.policy_notes import notes_on
    from strandline.cli.text.writers import writers_json
    from strandline.client.operations.losses import describe_losses
    from strandline.placement.explain.topics import explain_topic

    table = read_prices(prices)
    with open_client(bootstrap, timeout) as client:
        cluster = look(client, [name], asks_leaders=True)
        (topic,) = cluster.topics
        written = _writers(client, topic)
        waits = _led_elsewhere(client, cluster, name)
        rules = rules_of(client, cluster)
        losses = forecast_losses(client, cluster, rules)[name]
        declared = describe_losses(client, [name])
    check_prices(table, prices, cluster.candidates)
    notes = [*notes_on(topic.request.policy, cluster.candidates), *losses.notes]
    brokers = cluster.candidates
    told = explain_topic(topic.request, brokers, topic.partitions, prices=table, rules=rules[name])
    index = told.alike[0].partitions[0] if partition is None else partition
    one = _partition(topic, index)
    closely = _explain_partition(topic, cluster, one, rules[name], prices=table)
    found = _mended(topic, cluster, one, closely)

    def people() -> None:
        currency = "" if table is None else table.currency
        _tell_topic(topic, told, waits, notes=notes, currency=currency)
        _tell_written(written)
        _tell_losses(losses, declared)
        _tell_partition(one, closely, cluster)
        if found is not None:
            _tell_repair(topic, one, found)

    show(
        {
            "topic": name,
            "policy_key": topic.policy_key,
            "min_insync_replicas": topic.request.min_insync_replicas,
            "explanation": builtins(told),
            "losses": losses_json(losses),
            "losses_now": losses_json(losses, now=True),
            "declared_lost": declared_json(name, declared),
            "partition": index,
            "leader": one.leader,
            "leaders_elsewhere": builtins(waits),
            "notes": notes,
            "details": builtins(closely),
            "writers": writers_json(written),
            **_mended_json(found),
        },
        as_json=as_json,
        people=people,
    )


def _writers(client: "Client", topic: "LiveTopic") -> "list[WrittenPartition]":
    """Regions that write most, if leaders follow the writers."""
    from strandline.client.operations.writers import describe_writers

    if not topic.request.policy.leaders.follow:
        return []
    return describe_writers(client, client.topic(topic.name))


def _tell_written(written: "list[WrittenPartition]") -> None:
    from strandline.cli.text.writers import tell_writers

    if written:
        tell_writers(written)


def _tell_losses(losses: "LossForecast", declared: "Sequence[DeclaredLoss]") -> None:
    from strandline.cli.text.declared_losses import tell_declared
    from strandline.cli.text.losses import tell_losses

    print_line("")
    tell_losses(losses)
    tell_declared(losses.topic.name, declared)


def _explain_partition(
    topic: "LiveTopic",
    cluster: "LiveCluster",
    one: "PartitionState",
    rules: "Rules",
    *,
    prices: "Prices | None",
) -> "Explanation":
    from strandline.placement.explain.explanation import explain
    from strandline.placement.solver.judge import seated

    return explain(
        topic.request,
        cluster.candidates,
        seated(one.placed),
        prices=prices,
        behind=one.behind,
        acting=one.acting,
        rules=rules,
    )


def _mended(
    topic: "LiveTopic", cluster: "LiveCluster", state: "PartitionState", told: "Explanation"
) -> "Roles | Refusal | None":
    """What would be right, where something is not."""
    from strandline.placement.explain.repairs import repaired

    if told.judgement.is_right and not told.broken:
        return None
    return repaired(topic.request, cluster.candidates, state.placed)


def _partition(topic: "LiveTopic", index: int) -> "PartitionState":
    from strandline.base.errors import OperatorError

    if index >= len(topic.partitions):
        last = len(topic.partitions) - 1
        raise OperatorError(
            f"topic {topic.name} has no partition {index}: its partitions are 0 to {last}"
        )
    return topic.partitions[index]


def _led_elsewhere(client: "Client", cluster: "LiveCluster", name: str) -> "list[LeaderWaiting]":
    """Partitions of a topic that their leaders should hand over."""
    from strandline.client.operations.leadership import describe_leadership
    from strandline.model.ids import NO_BROKER

    leaders = sorted(one for one in cluster.led if one != NO_BROKER)
    return [one for one in describe_leadership(client, leaders) if one.topic == name]


def _tell_topic(
    topic: "LiveTopic",
    told: "TopicExplanation",
    waits: "Sequence[LeaderWaiting]",
    *,
    notes: "Sequence[str]",
    currency: str,
) -> None:
    from strandline.cli.text.explaining import few, tell_survival
    from strandline.cli.text.policy_notes import tell_notes

    count = len(topic.partitions)
    voters, observers = _counts(told)
    of = f"{voters} replicas"
    if observers != "0":
        of = f"{voters} voters and {observers} observer{'s' * (observers != '1')}"
    print_line(
        f"topic {topic.name}: {count} partition{'s' * (count > 1)} of {of}, "
        f"min.insync.replicas={topic.request.min_insync_replicas}"
    )
    print_line(f"policy: {policy_of(topic, told)}")
    tell_notes(notes)
    tell_survival(told.writes, told.data, but_not=told.writes_but_not, before="as placed, ")
    _tell_now(told)
    for line in told.missing:
        print_line(line)
    if told.elsewhere:
        print_line(
            f"not led as the policy prefers: {_partitions(told.elsewhere)}; leadership returns "
            "once a preferred replica has been in sync for a while"
        )
    for one in waits[:WAITS_SHOWN_MAX]:
        print_line(
            f"partition {one.partition} is led by broker {one.leader}, not {one.preferred} "
            f"({one.code}): {one.text}"
        )
    if len(waits) > WAITS_SHOWN_MAX:
        print_line(f"and {len(waits) - WAITS_SHOWN_MAX} more; --json shows all")
    if told.leaderless:
        print_line(f"without a leader: {_partitions(told.leaderless)}")
    if told.unplaced:
        print_line(f"brokers {few(told.unplaced)} have no region label: they count as one region")
    print_line(f"bytes that cross regions per byte produced: {round(told.cross_region, 2):g}")
    _tell_waits(told)
    if told.per_gb is not None:
        print_line(f"replicating a GB costs {told.per_gb:f} {currency}")
    print_line("")
    _tell_alike(told, has_policy=bool(topic.policy_key))


def _tell_waits(told: "TopicExplanation") -> None:
    from strandline.cli.text.explaining import milliseconds

    known = sorted(one.commit_ms for one in told.waits if one.commit_ms is not None)
    if known:
        least, most = milliseconds(known[0]), milliseconds(known[-1])
        span = least if least == most else f"{least} to {most}"
        print_line(f"a write waits {span} for its quorum, with the current leaders")
    unknown = [index for one in told.waits if one.commit_ms is None for index in one.partitions]
    if unknown:
        print_line(f"wait of a write not measured for {_partitions(unknown)}")


def replica_counts(told: "TopicExplanation") -> str:
    """How many replicas partitions have: `5`, or `3 to 5`; `3 +1` with an observer."""
    voters, observers = _counts(told)
    return voters if observers == "0" else f"{voters} +{observers}"


def _counts(told: "TopicExplanation") -> tuple[str, str]:
    """(how many voters partitions have, how many observers)"""
    voters = [len(one.voters) for one in told.alike]
    return _span(voters), _span([len(one.observers) for one in told.alike])


def _span(counts: "Sequence[int]") -> str:
    return str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def policy_of(topic: "LiveTopic", told: "TopicExplanation") -> str:
    """The policy, and where it is set."""
    from strandline.cli.text.live_cluster import key_of_the_cluster

    if not topic.policy_key:
        return "none: replicas are spread over regions, zones, racks and hosts"
    owner = "the cluster" if key_of_the_cluster(topic.policy_key) else "the topic"
    return f"{told.policy} ({topic.policy_key} of {owner})"


def _tell_now(told: "TopicExplanation") -> None:
    from strandline.cli.text.explaining import tell_survival

    down = sorted({broker for one in told.alike for broker in one.down})
    behind = [index for one in told.alike if one.behind for index in one.partitions]
    acting = [index for one in told.alike if one.acting for index in one.partitions]
    if not down and not behind and not acting:
        return
    stopped = [index for one in told.alike if one.has_stopped for index in one.partitions]
    what = [f"{_brokers(down)} {'is' if len(down) == 1 else 'are'} down"] if down else []
    what += [f"replicas of {_partitions(behind)} are behind"] if behind else []
    if acting:
        what.append(f"{_partitions(acting)} run{'s' * (len(acting) == 1)} with other voters")
    print_line(f"{', and '.join(what)}:")
    if stopped:
        which = _partitions(stopped)
        print_line(f"  acks=all is refused by {which} until enough replicas are in sync again")
    if len(stopped) < sum(len(one.partitions) for one in told.alike):
        before = "  of the others, " if stopped else "  "
        tell_survival(
            told.writes_now,
            told.data_now,
            but_not=told.writes_now_but_not,
            before=before,
            further="further ",
        )


def _brokers(some: "Sequence[BrokerId]") -> str:
    return f"broker{'s' * (len(some) > 1)} {ids(some)}"


def _partitions(some: "Sequence[int]") -> str:
    from strandline.cli.text.explaining import ranges

    return f"partition{'s' * (len(some) > 1)} {ranges(some)}"


def _tell_alike(told: "TopicExplanation", *, has_policy: bool) -> None:
    from strandline.cli.text.explaining import ranges

    has_behind = any(one.behind for one in told.alike)
    has_observers = any(one.observers for one in told.alike)
    has_acting = any(one.acting for one in told.alike)
    rows = [
        (
            ranges(one.partitions),
            ids(one.voters),
            *([ids(one.observers)] if has_observers else []),
            f"{one.write_quorum} of {len(one.voters)}",
            *([ids(one.voting)] if has_acting else []),
            ids(one.down),
            *([ids(one.behind)] if has_behind else []),
            *([f"no: {'; '.join(one.faults)}" if one.faults else "yes"] if has_policy else []),
        )
        for one in told.alike[:ALIKE_SHOWN_MAX]
    ]
    heads = (
        "PARTITIONS",
        "VOTERS" if has_observers else "REPLICAS",
        *(["OBSERVERS"] if has_observers else []),
        "A WRITE IS ON",
        *(["VOTE NOW"] if has_acting else []),
        "DOWN",
        *(["BEHIND"] if has_behind else []),
        *(["SATISFIES THE POLICY"] if has_policy else []),
    )
    print_table(Table(heads=heads, rows=rows))
    print_more(len(told.alike) - ALIKE_SHOWN_MAX)


def _tell_partition(state: "PartitionState", told: "Explanation", cluster: "LiveCluster") -> None:
    from strandline.cli.text.explaining import tell_failures, tell_replicas, tell_ways

    led = "without a leader" if state.leader < 0 else f"led by broker {state.leader}"
    moving = f", gets {_brokers(state.adding)}" if state.adding else ""
    brokers = {one.id: one for one in cluster.candidates}
    print_line("")
    tell_replicas(
        told, brokers, title=f"partition {state.index}, {led}{moving}:", behind=state.behind
    )
    survival = told.now or told.survival
    if not survival.has_stopped:
        print_line("")
        tell_failures(survival)
    print_line("")
    tell_ways(told)


def _mended_json(found: "Roles | Refusal | None") -> dict[str, Json]:
    from strandline.model.cluster import Roles

    return {
        "mended": list(found.all) if isinstance(found, Roles) else None,
        "mended_observers": list(found.observers) if isinstance(found, Roles) else None,
    }


def _tell_repair(topic: "LiveTopic", state: "PartitionState", found: "Roles | Refusal") -> None:
    from strandline.cli.output import program
    from strandline.cli.text.explaining import roles
    from strandline.placement.solver.refusal import Refusal

    print_line("")
    if isinstance(found, Refusal):
        first, *others = found.lines()
        print_line(f"no placement satisfies the policy: {first}")
        for line in others:
            print_line(f"  {line}")
        return
    is_list = not state.observers and not found.observers
    if state.observers and len(state.observers) == len(found.observers):
        stay = set(state.observers) & set(found.voters) | set(state.voters) & set(found.observers)
        is_list = not stay and len(state.voters) == len(found.voters)
    if not is_list:  # A list of brokers says nothing of roles.
        print_line(f"the balancer moves it to satisfy the policy, for example to {roles(found)}")
    else:
        to = ",".join(map(str, found.all))
        print_line("this would satisfy the policy:")
        print_line(f"  {program()} partition move {topic.name} {state.index} --to {to}")

"""`strandline topic create --dry-run` and `alter --dry-run`: what they would do.

Source: docs/reference/cli.md; docs/operating/placement.md."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from strandline.base.json_value import Json
from strandline.cli.output import counted, ids, print_line, show

if TYPE_CHECKING:
    from strandline.cli.text.live_cluster import LiveCluster, LiveTopic
    from strandline.cli.text.losses import LossForecast
    from strandline.client.admin import NewTopic
    from strandline.client.cluster import Client
    from strandline.placement.explain.topics import TopicExplanation

NOTHING_CHANGED = "nothing changed"


def show_create(client: "Client", topics: "Sequence[NewTopic]", *, as_json: bool) -> None:
    """Print where these topics could go and what they survive; raises ApiError if the controller
    would refuse one."""
    from strandline.cli.text.live_cluster import look, topic_defaults
    from strandline.cli.text.policy_notes import more_than_voters, notes_on_changes, tell_notes
    from strandline.cli.text.would_be import new_topic
    from strandline.client.admin import check_topic

    for one in topics:
        check_topic(client, one, subject=f"topic {one.name}")
    cluster, defaults = look(client, ()), topic_defaults(client)
    found = [new_topic(client, cluster, defaults, one) for one in topics]
    forecasts = _forecasts(client, cluster, found)
    notes = notes_on_changes(client, dict(topics[0].configs))
    for topic in found:
        least, voters = topic.request.min_insync_replicas, len(topic.partitions[0].voters)
        notes += more_than_voters(f"topic {topic.name}", least, voters)
    notes += dict.fromkeys(note for one in forecasts.values() for note in one.notes)

    def people() -> None:
        for topic in found:
            first = topic.partitions[0]
            watch = f" +{ids(first.observers)}" if first.observers else ""
            print_line(
                f"topic {topic.name} would be created: "
                f"{counted(len(topic.partitions), 'partition')}, "
                f"for example the first on brokers {ids(first.voters)}{watch}"
            )
            _tell(topic, cluster, forecasts[topic.name])
        tell_notes(notes)
        print_line(NOTHING_CHANGED)

    told = [_describe(one, cluster, forecasts[one.name]) for one in found]
    show({"created": False, "topics": [*told], "notes": notes}, as_json=as_json, people=people)


def show_alter(
    client: "Client", names: Sequence[str], changes: Mapping[str, str | None], *, as_json: bool
) -> None:
    """Print what these topics would survive, and what another policy would move; raises ApiError
    if the controller would refuse a change."""
    from strandline.cli.commands.policy_topic import preview_topic
    from strandline.cli.text.live_cluster import look, topic_defaults
    from strandline.cli.text.policy_notes import notes_on_changes, notes_on_min_insync, tell_notes
    from strandline.cli.text.would_be import with_changes
    from strandline.client.operations.configs import alter_topic_configs
    from strandline.controller.placing.policies import MIN_INSYNC, POLICY, TOPIC_POLICY_KEYS
    from strandline.placement.policy.text import decode_policy

    for name in names:
        alter_topic_configs(client, name, changes, validate_only=True)
    policy = changes.get(POLICY)
    if policy and len(names) == 1 and len(changes) == 1:
        preview_topic(client, names[0], decode_policy(policy), as_json=as_json)
        return
    cluster, defaults = look(client, names), topic_defaults(client)
    found = [with_changes(one, changes, defaults) for one in cluster.topics]
    forecasts = _forecasts(client, cluster, found)
    notes = notes_on_changes(client, changes)
    if MIN_INSYNC in changes:
        notes += notes_on_min_insync(client, names, changes)
    if not changes.keys().isdisjoint(TOPIC_POLICY_KEYS):
        notes.append(
            "another policy moves replicas; to see which: strandline policy test FILE --topic NAME"
        )

    def people() -> None:
        for topic in found:
            print_line(f"topic {topic.name} would change; as placed now:")
            _tell(topic, cluster, forecasts[topic.name])
        tell_notes(notes)
        print_line(NOTHING_CHANGED)

    told = [_describe(one, cluster, forecasts[one.name]) for one in found]
    show({"altered": [], "topics": [*told], "notes": notes}, as_json=as_json, people=people)


def _forecasts(
    client: "Client", cluster: "LiveCluster", topics: "Sequence[LiveTopic]"
) -> "dict[str, LossForecast]":
    from dataclasses import replace

    from strandline.cli.text.losses import forecast_losses

    return forecast_losses(client, replace(cluster, topics=tuple(topics)))


def _explained(
    topic: "LiveTopic", cluster: "LiveCluster", forecast: "LossForecast"
) -> "TopicExplanation":
    from strandline.placement.explain.topics import explain_topic

    return explain_topic(topic.request, cluster.candidates, topic.partitions, rules=forecast.rules)


def _tell(topic: "LiveTopic", cluster: "LiveCluster", forecast: "LossForecast") -> None:
    from strandline.cli.text.explaining import tell_survival
    from strandline.cli.text.losses import tell_losses

    told = _explained(topic, cluster, forecast)
    tell_survival(told.writes, told.data, but_not=told.writes_but_not, before="  ")
    tell_losses(forecast)


def _describe(topic: "LiveTopic", cluster: "LiveCluster", forecast: "LossForecast") -> Json:
    from strandline.cli.text.explaining import builtins
    from strandline.cli.text.losses import losses_json

    told = _explained(topic, cluster, forecast)
    return {
        "name": topic.name,
        "partitions": len(topic.partitions),
        "replicas": [list(one.placed.all) for one in topic.partitions],
        "observers": [list(one.observers) for one in topic.partitions],
        "writes": builtins(told.writes),
        "data": builtins(told.data),
        "losses": [*losses_json(forecast)],
    }

"""Changes configuration key by key: of a topic, of the whole cluster, or of a single broker.

Why:    all configuration passes here. So this refuses an unknown name or value, with the reason.
How:    Each resource changes as a whole or not at all. Operations can append to lists and subtract
        from them. The cluster must be able to meet a new policy; replicas then move to it (decision
        0010). For a single broker a command can set only its desired life (decision 0011), not the
        keys of its file.
            A command that replaces a resource's configuration resets the keys of Kafka's that it
        does not name (decision 0045).
Source: Kafka's AlterConfigs and IncrementalAlterConfigs (KIP-133, KIP-339)."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from strandline.base.errors import ApiError
from strandline.config.broker_life import LIFE_KEYS_BY_NAME, validate_life_config
from strandline.config.cluster import CLUSTER_KEYS_BY_NAME, validate_cluster_config
from strandline.config.kafka.table import FIXED_KEYS_BY_NAME
from strandline.config.keys import Key, ValueType, format_value
from strandline.config.topic import TOPIC_KEYS_BY_NAME, conflict_of, validate_topic_config
from strandline.controller.commands import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    ResourceChanges,
    ResourceResult,
    ResourceResults,
    ResourceType,
)
from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.names import check_topic_name
from strandline.controller.placing.broker_removal import LifeChecks
from strandline.controller.placing.policies import canonical_policy
from strandline.controller.placing.policy_changes import PolicyChecks
from strandline.controller.placing.read_replicas import require_same_source
from strandline.controller.placing.tiering import require_tiering_change
from strandline.controller.records import ConfigsChanged, Record, Scope
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error

CONFIG_VALUE_CHARACTERS_MAX = 4096


@dataclass(frozen=True, slots=True)
class _Resource:
    """A resource with configuration: its table, and its present values."""

    scope: Scope
    name: str
    keys: Mapping[str, Key]
    own: Mapping[str, str]
    inherited: Mapping[str, str]
    """Values by cluster-wide name, for keys that the resource itself does not set."""
    validate: Callable[[str, str], str | None]

    @property
    def invalid(self) -> Error:
        """Kafka's code for a value that the resource may not have."""
        return Error.INVALID_CONFIG if self.scope == "topic" else Error.INVALID_REQUEST

    def present(self, row: Key) -> str:
        """The value in force, as text."""
        fallback = format_value(row.default) if row.default is not None else ""
        return self.own.get(row.name, self.inherited.get(row.cluster_name, fallback))


def decide_alter_configs(facts: Facts, command: AlterConfigs) -> Decision:
    """Change each resource, or refuse it with the reason."""
    named = Counter((resource.type, resource.name) for resource in command.resources)
    cluster, checks, lives = facts.state.cluster, PolicyChecks(facts), LifeChecks(facts)
    records: list[Record] = []
    results: dict[tuple[int, str], ResourceResult] = {}
    for changes in command.resources:
        target = (changes.type, changes.name)
        try:
            if named[target] > 1:
                raise refuse(Error.INVALID_REQUEST, "Each resource must appear at most once.")
            resource = _find(facts, changes)
            values = _change(resource, changes)
            _check_conflicts(facts, resource, values)
            if resource.scope == "topic":
                checks.check_topic(cluster.topics[resource.name], values)
                after = _after(resource, values)
                require_tiering_change(facts, resource.own, after)
                require_same_source(resource.own, after)
            elif resource.scope == "broker":
                lives.check(BrokerId(int(resource.name)), values)
            else:
                checks.check_default(values)
            if values:
                records.append(ConfigsChanged(resource.scope, resource.name, values))
            results[target] = ResourceResult(*target)
        except ApiError as error:
            results[target] = ResourceResult(*target, error.code, error.message)
    answer = ResourceResults(tuple(results.values()))
    return Decision(answer, () if command.validate_only else tuple(records))


def _find(facts: Facts, changes: ResourceChanges) -> _Resource:
    cluster = facts.state.cluster
    if changes.type == ResourceType.TOPIC:
        if not changes.name:
            raise refuse(
                Error.INVALID_REQUEST,
                "There is no default of all topics: set the broker default, whose keys give it.",
            )
        check_topic_name(changes.name)
        topic = cluster.topics.get(changes.name)
        if topic is None:
            raise refuse(
                Error.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{changes.name}' does not exist."
            )
        return _Resource(
            scope="topic",
            name=topic.name,
            keys=TOPIC_KEYS_BY_NAME,
            own=topic.configs,
            inherited=cluster.cluster_configs,
            validate=validate_topic_config,
        )
    if changes.type == ResourceType.BROKER and not changes.name:
        return _Resource(
            scope="cluster",
            name="",
            keys=CLUSTER_KEYS_BY_NAME,
            own=cluster.cluster_configs,
            inherited={},
            validate=validate_cluster_config,
        )
    if changes.type == ResourceType.BROKER:
        known = [one for one in cluster.brokers if str(one) == changes.name]
        if not known:
            raise refuse(
                Error.BROKER_ID_NOT_REGISTERED, f"there is no broker {changes.name[:20]!a}"
            )
        return _Resource(
            scope="broker",
            name=changes.name,
            keys=LIFE_KEYS_BY_NAME,
            own=cluster.broker_configs.get(known[0], {}),
            inherited={},
            validate=validate_life_config,
        )
    if changes.type in (ResourceType.GROUP, ResourceType.CLIENT_METRICS):
        raise refuse(
            Error.INVALID_REQUEST,
            "The keys of groups and of client metrics cannot be altered: nothing here reads them. "
            "Those of classic groups are cluster-wide keys (group.*).",
        )
    raise refuse(Error.INVALID_REQUEST, f"there is no resource type {changes.type}")


def _change(resource: _Resource, changes: ResourceChanges) -> dict[str, str | None]:
    """The new values of the resource; None for removed ones."""
    values: dict[str, str | None] = {}
    for change in changes.changes:
        if change.key in values:
            raise refuse(Error.INVALID_REQUEST, f"{change.key[:200]} is changed twice")
        row = resource.keys.get(change.key)
        if row is None:
            reason = resource.validate(change.key, "") or "unknown key"
            is_fixed = resource.scope != "topic" and change.key in FIXED_KEYS_BY_NAME
            raise refuse(Error.INVALID_REQUEST if is_fixed else Error.INVALID_CONFIG, reason)
        values[change.key] = _new_value(resource, row, change)
    if changes.replaces:
        for name in resource.own:
            row = resource.keys.get(name)
            if row is None or not row.own:
                values.setdefault(name, None)
    return values


def _check_conflicts(facts: Facts, resource: _Resource, values: Mapping[str, str | None]) -> None:
    """Refuse values that contradict each other; raises ApiError."""
    kept = _after(resource, values)
    if resource.scope == "topic":
        reason = conflict_of(facts.state.cluster.cluster_configs, kept)
    elif resource.scope == "cluster":
        reason = conflict_of(kept, {})
    else:
        reason = None
    if reason is not None:
        raise refuse(resource.invalid, reason)


def _after(resource: _Resource, values: Mapping[str, str | None]) -> dict[str, str]:
    after = {**resource.own, **values}
    return {name: value for name, value in after.items() if value is not None}


def _new_value(resource: _Resource, row: Key, change: ConfigChange) -> str | None:
    if change.operation == ConfigOperation.DELETE:
        return None
    if change.value is None:
        raise refuse(Error.INVALID_REQUEST, f"Null value not supported for {row.name}")
    if len(change.value) > CONFIG_VALUE_CHARACTERS_MAX:
        raise refuse(
            Error.INVALID_CONFIG,
            f"{row.name} is longer than {CONFIG_VALUE_CHARACTERS_MAX} characters",
        )
    match change.operation:
        case ConfigOperation.SET:
            value = canonical_policy(row.name, change.value)
        case ConfigOperation.APPEND | ConfigOperation.SUBTRACT:
            value = _changed_list(row, resource.present(row), change)
        case _:
            raise refuse(Error.INVALID_REQUEST, f"unknown operation {change.operation}")
    reason = resource.validate(row.name, value)
    if reason is not None:
        raise refuse(resource.invalid, reason)
    return value


def _changed_list(row: Key, present: str, change: ConfigChange) -> str:
    if row.type is not ValueType.LIST:
        raise refuse(Error.INVALID_CONFIG, f"{row.name} is not a list: set it")
    assert change.value is not None
    parts = [part.strip() for part in present.split(",") if part.strip()]
    named = [part.strip() for part in change.value.split(",") if part.strip()]
    if change.operation == ConfigOperation.APPEND:
        parts += [part for part in named if part not in parts]
    else:
        parts = [part for part in parts if part not in named]
    return ",".join(parts)

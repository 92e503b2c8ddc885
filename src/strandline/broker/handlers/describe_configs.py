"""DescribeConfigs: every key of a topic, a broker or a group, its value, and where that comes from;
and the levels of a broker's loggers.

How:    groups and client metrics subscriptions have Kafka's defaults under every name, as in
        Kafka. Nothing here reads them, so they are read-only.
Source: KIP-133, KIP-226, KIP-412, KIP-569, KIP-714, KIP-848."""

from collections.abc import Collection

from strandline.base.errors import ApiError
from strandline.broker.access.config_rights import require_config_right
from strandline.broker.context import RequestContext, Services
from strandline.broker.operations.log_levels import (
    BROKER_LOGGER,
    levels,
    require_own_loggers,
)
from strandline.broker.server.request_limits import distinct
from strandline.config.effective import (
    EffectiveValue,
    broker_values,
    client_metrics_values,
    cluster_values,
    group_values,
    topic_values,
)
from strandline.config.keys import ValueType
from strandline.controller.commands import ResourceType
from strandline.controller.names import check_topic_name
from strandline.controller.placing.policies import derived_defaults
from strandline.model.access import Operation
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

_LOGGER_SOURCE = 6


async def handle(
    request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResponse:
    """Describe each resource; a resource that cannot be described has an error."""
    return DescribeConfigsResponse(
        results=[_describe(context, one, request) for one in distinct(request.resources, _name_of)]
    )


def _name_of(resource: DescribeConfigsResource) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name


def _describe(
    context: RequestContext, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> DescribeConfigsResult:
    services = context.services
    result = DescribeConfigsResult(
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
    wanted: Collection[str] | None = resource.configuration_keys or None
    try:
        require_config_right(
            context,
            Operation.DESCRIBE_CONFIGS,
            resource.resource_type,
            resource.resource_name,
        )
        if resource.resource_type == BROKER_LOGGER:
            require_own_loggers(services.broker_id, resource.resource_name)
            result.configs = _levels(wanted)
            return result
        values = _values(services, resource)
    except ApiError as error:
        result.error_code = error.code
        result.error_message = error.message
        return result
    result.configs = [
        _row(value, request) for value in values if wanted is None or value.key.name in wanted
    ]
    return result


def _levels(wanted: Collection[str] | None) -> list[DescribeConfigsResourceResult]:
    return [
        DescribeConfigsResourceResult(
            name=name, value=level, config_source=_LOGGER_SOURCE, documentation=None
        )
        for name, level in levels().items()
        if wanted is None or name in wanted
    ]


def _values(services: Services, resource: DescribeConfigsResource) -> list[EffectiveValue]:
    cluster = services.cluster
    name = resource.resource_name
    if resource.resource_type == ResourceType.TOPIC:
        check_topic_name(name)
        topic = cluster.topics.get(name)
        if topic is None:
            raise ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        derived = derived_defaults(topic.configs, cluster.cluster_configs)
        return topic_values(cluster.cluster_configs, topic.configs, derived)
    if resource.resource_type == ResourceType.GROUP:
        if not name:
            raise ApiError(Error.INVALID_REQUEST, "a group needs a name")
        return group_values(cluster.cluster_configs)
    if resource.resource_type == ResourceType.CLIENT_METRICS:
        if not name:
            raise ApiError(Error.INVALID_REQUEST, "a client metrics subscription needs a name")
        return client_metrics_values()
    if resource.resource_type != ResourceType.BROKER:
        raise ApiError(Error.INVALID_REQUEST, f"there is no resource type {resource.resource_type}")
    if not name:
        return cluster_values(cluster.cluster_configs)
    if name != str(services.broker_id):
        raise ApiError(
            Error.INVALID_REQUEST, f"this is broker {services.broker_id}: ask broker {name} itself"
        )
    wanted = cluster.broker_configs.get(services.broker_id, {})
    return broker_values(services.config, cluster.cluster_configs, wanted)


def _row(value: EffectiveValue, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    is_sensitive = value.key.type is ValueType.PASSWORD
    return DescribeConfigsResourceResult(
        name=value.key.name,
        value=None if is_sensitive else value.value,
        read_only=value.read_only,
        config_source=int(value.source),
        is_sensitive=is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=one.name, value=one.value, source=int(one.source))
            for one in (value.synonyms if request.include_synonyms else ())
            if one.name and one.value is not None and not is_sensitive
        ],
        config_type=value.key.type.value,
        documentation=value.key.doc if request.include_documentation else None,
    )

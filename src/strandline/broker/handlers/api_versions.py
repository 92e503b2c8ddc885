"""ApiVersions: what this broker speaks, straight from the handler table.

Why:    it is the first request of every connection, and the only one that may come in a version
        that this broker does not know. Then the answer, in version 0, names a version to retry
        with.
How:    Strandline's own APIs are named in version 0 alone, in which its client asks: some clients
        of Kafka fail on a key that they do not know.
        The features of the cluster come with it, and an epoch that says that there are no others.
Source: KIP-511, KIP-584, KIP-1242 (misrouted connections); kafka-protocol reference 7.1 (Produce is
        advertised from 0) and 8.6."""

import re
from functools import lru_cache

from strandline.broker import features
from strandline.broker.context import API_VERSIONS_KEY, RequestContext, Services
from strandline.broker.server.request_limits import ITEM_COUNT_MAX
from strandline.protocol.apis import APIS, OWN_APIS_FROM
from strandline.protocol.codec import decode, encode
from strandline.protocol.errors import Error
from strandline.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

SOFTWARE_SINCE_VERSION = 3
SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
LEVEL_0_SINCE_VERSION = 4
OWN_APIS_IN_VERSION = 0

Offered = tuple[tuple[int, tuple[int, int]], ...]
"""(API key, (lowest, highest version)), ascending."""


def start(context: RequestContext) -> None:
    """Answer at once."""
    api = APIS[API_VERSIONS_KEY]
    if not api.supports(context.api_version):
        body = _unsupported()
    else:
        assert context.frame is not None
        request, _ = decode(
            ApiVersionsRequest,
            context.frame,
            context.position,
            context.api_version,
            items_max=ITEM_COUNT_MAX,
        )
        if not _names_its_software(request, context.api_version):
            body = _refuse(context.api_version)
        elif _means_another(request, context.services):
            body = _go_elsewhere(context.api_version)
        else:
            offered = tuple(context.services.offered_apis.items())
            body = _answer(context.api_version, offered, throttle_ms=context.throttle_ms)
    context.respond((body,))


def _names_its_software(request: ApiVersionsRequest, version: int) -> bool:
    """Whether name and version are words; metrics and logs of Kafka carry them."""
    return version < SOFTWARE_SINCE_VERSION or all(
        SOFTWARE.fullmatch(text)
        for text in (request.client_software_name, request.client_software_version)
    )


def _means_another(request: ApiVersionsRequest, services: Services) -> bool:
    """Whether the client names another broker: its connection was misrouted."""
    return request.cluster_id is not None and (
        request.cluster_id != services.cluster.cluster_id or request.node_id != services.broker_id
    )


def _answer(version: int, offered: Offered, *, throttle_ms: int) -> bytes:
    if not throttle_ms:
        return _usual_answer(version, offered)
    response = _response(version, offered)
    response.throttle_time_ms = throttle_ms
    return bytes(encode(response, version))


@lru_cache(maxsize=16)
def _usual_answer(version: int, offered: Offered) -> bytes:
    return bytes(encode(_response(version, offered), version))


def _response(version: int, offered: Offered) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=first, max_version=last)
            for key, (first, last) in offered
            if key < OWN_APIS_FROM or version == OWN_APIS_IN_VERSION
        ],
        supported_features=_supported(version),
        finalized_features_epoch=features.FINALIZED_EPOCH,
        finalized_features=[
            FinalizedFeatureKey(one.name, one.level, one.level)
            for one in features.FEATURES
            if one.level
        ],
    )


def _supported(version: int) -> list[SupportedFeatureKey]:
    """Old clients stumble over levels from 0: their version of the answer leaves those out."""
    return [
        SupportedFeatureKey(one.name, one.min_version, one.max_version)
        for one in features.FEATURES
        if one.min_version or version >= LEVEL_0_SINCE_VERSION
    ]


def _refuse(version: int) -> bytes:
    return bytes(encode(ApiVersionsResponse(error_code=Error.INVALID_REQUEST), version))


def _go_elsewhere(version: int) -> bytes:
    return bytes(encode(ApiVersionsResponse(error_code=Error.REBOOTSTRAP_REQUIRED), version))


def _unsupported() -> bytes:
    response = ApiVersionsResponse(
        error_code=Error.UNSUPPORTED_VERSION, api_keys=[_row(API_VERSIONS_KEY)]
    )
    return bytes(encode(response, 0))


def _row(key: int) -> ApiVersion:
    api = APIS[key]
    return ApiVersion(api_key=key, min_version=api.advertised_min, max_version=api.max_version)

"""What a broker speaks: the first thing a client asks.

Why:    a client that asks in a version unknown here gets version 0 of the answer with error 35, and
        asks again.
How:    the response always travels under header version 0, so that it can be read before anything
        is agreed.
Source: KIP-35, KIP-482, KIP-584 (features), KIP-1242 (version 5: the client says whom it means to
        reach)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class ApiVersionsRequest(Message):
    """Says who asks; from version 5 also whom it means to ask."""

    API_KEY = 18
    VERSIONS = "0-5"
    FLEXIBLE = "3+"

    client_software_name: Annotated[str, F("string", "3+")] = ""
    client_software_version: Annotated[str, F("string", "3+")] = ""
    cluster_id: Annotated[str | None, F("string", "5+", nullable="5+")] = None
    node_id: Annotated[int, F("int32", "5+")] = -1  # -1: not said


class ApiVersion(Message):
    """One API and the versions of it that the broker takes."""

    api_key: Annotated[int, F("int16")] = 0
    min_version: Annotated[int, F("int16")] = 0
    max_version: Annotated[int, F("int16")] = 0


class SupportedFeatureKey(Message):
    """A feature and the levels this broker could run at."""

    name: Annotated[str, F("string", "3+")] = ""
    min_version: Annotated[int, F("int16", "3+")] = 0
    max_version: Annotated[int, F("int16", "3+")] = 0


class FinalizedFeatureKey(Message):
    """A feature and the level the whole cluster runs at."""

    name: Annotated[str, F("string", "3+")] = ""
    max_version_level: Annotated[int, F("int16", "3+")] = 0
    min_version_level: Annotated[int, F("int16", "3+")] = 0


class ApiVersionsResponse(Message):
    """The APIs, and the features of the cluster as tagged fields."""

    API_KEY = ApiVersionsRequest.API_KEY
    VERSIONS = "0-5"
    FLEXIBLE = "3+"

    error_code: Annotated[int, F("int16")] = 0
    api_keys: Annotated[list[ApiVersion], F("[]struct")] = []
    throttle_time_ms: Annotated[int, F("int32", "1+")] = 0
    supported_features: Annotated[list[SupportedFeatureKey], F("[]struct", "3+", tag=0)] = []
    finalized_features_epoch: Annotated[int, F("int64", "3+", tag=1)] = -1  # -1: unknown
    finalized_features: Annotated[list[FinalizedFeatureKey], F("[]struct", "3+", tag=2)] = []
    # history; always false here
    zk_migration_ready: Annotated[bool, F("bool", "3+", tag=3)] = False

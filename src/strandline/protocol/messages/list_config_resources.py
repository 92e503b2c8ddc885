"""Lists the resources that have configuration. Version 0 lists client metrics subscriptions only.

Source: KIP-714 (version 0), KIP-1142 (version 1)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class ListConfigResourcesRequest(Message):
    """The types asked for; none: all."""

    API_KEY = 74
    VERSIONS = "0-1"
    FLEXIBLE = "0+"

    # as in DescribeConfigs
    resource_types: Annotated[list[int], F("[]int8", "1+")] = []


class ConfigResource(Message):
    """A resource that has configuration."""

    resource_name: Annotated[str, F("string")] = ""
    resource_type: Annotated[int, F("int8", "1+")] = 16


class ListConfigResourcesResponse(Message):
    """The resources."""

    API_KEY = ListConfigResourcesRequest.API_KEY
    VERSIONS = "0-1"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    config_resources: Annotated[list[ConfigResource], F("[]struct")] = []

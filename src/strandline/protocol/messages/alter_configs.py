"""Replaces the whole configuration of a resource: old clients; see `incremental_alter_configs`.

Source: KIP-133."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class AlterableConfig(Message):
    """One key to change."""

    name: Annotated[str, F("string")] = ""
    value: Annotated[str | None, F("string", nullable="0+")] = ""


class AlterConfigsResource(Message):
    """A resource and the keys to change."""

    resource_type: Annotated[int, F("int8")] = 0  # as in DescribeConfigs
    resource_name: Annotated[str, F("string")] = ""
    configs: Annotated[list[AlterableConfig], F("[]struct")] = []


class AlterConfigsRequest(Message):
    """Resources with their new configuration; with `validate_only` nothing changes."""

    API_KEY = 33
    VERSIONS = "0-2"
    FLEXIBLE = "2+"

    resources: Annotated[list[AlterConfigsResource], F("[]struct")] = []
    validate_only: Annotated[bool, F("bool")] = False


class AlterConfigsResourceResponse(Message):
    """The result for one resource."""

    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""
    resource_type: Annotated[int, F("int8")] = 0
    resource_name: Annotated[str, F("string")] = ""


class AlterConfigsResponse(Message):
    """One answer per resource."""

    API_KEY = AlterConfigsRequest.API_KEY
    VERSIONS = "0-2"
    FLEXIBLE = "2+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    responses: Annotated[list[AlterConfigsResourceResponse], F("[]struct")] = []

"""Changes single configuration keys and leaves the others alone.

Source: KIP-339."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class AlterableConfig(Message):
    """One key to change."""

    name: Annotated[str, F("string")] = ""
    # 0 set, 1 delete, 2 append to a list, 3 subtract from a list
    config_operation: Annotated[int, F("int8")] = 0
    value: Annotated[str | None, F("string", nullable="0+")] = ""


class AlterConfigsResource(Message):
    """A resource and the keys to change."""

    resource_type: Annotated[int, F("int8")] = 0  # as in DescribeConfigs
    resource_name: Annotated[str, F("string")] = ""
    configs: Annotated[list[AlterableConfig], F("[]struct")] = []


class IncrementalAlterConfigsRequest(Message):
    """Resources to change; with `validate_only` nothing happens."""

    API_KEY = 44
    VERSIONS = "0-1"
    FLEXIBLE = "1+"

    resources: Annotated[list[AlterConfigsResource], F("[]struct")] = []
    validate_only: Annotated[bool, F("bool")] = False


class AlterConfigsResourceResponse(Message):
    """The result for one resource."""

    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""
    resource_type: Annotated[int, F("int8")] = 0
    resource_name: Annotated[str, F("string")] = ""


class IncrementalAlterConfigsResponse(Message):
    """One answer per resource."""

    API_KEY = IncrementalAlterConfigsRequest.API_KEY
    VERSIONS = "0-1"
    FLEXIBLE = "1+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    responses: Annotated[list[AlterConfigsResourceResponse], F("[]struct")] = []

"""Reads the configuration of topics, brokers and groups, with where each value comes from.

Source: KIP-133, KIP-226 (synonyms), KIP-569 (types and documentation, version 3)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class DescribeConfigsResource(Message):
    """A resource and the keys asked for."""

    # 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group
    resource_type: Annotated[int, F("int8")] = 0
    # of brokers: the id, or empty for the cluster-wide default
    resource_name: Annotated[str, F("string")] = ""
    # null: all keys
    configuration_keys: Annotated[list[str] | None, F("[]string", nullable="0+")] = []


class DescribeConfigsRequest(Message):
    """Resources to describe."""

    API_KEY = 32
    VERSIONS = "1-4"
    FLEXIBLE = "4+"

    resources: Annotated[list[DescribeConfigsResource], F("[]struct")] = []
    include_synonyms: Annotated[bool, F("bool", "1+")] = False
    include_documentation: Annotated[bool, F("bool", "3+")] = False


class DescribeConfigsSynonym(Message):
    """A place where the value could have come from, the strongest first."""

    name: Annotated[str, F("string", "1+")] = ""
    value: Annotated[str | None, F("string", "1+", nullable="0+")] = ""
    source: Annotated[int, F("int8", "1+")] = 0  # as `config_source`


class DescribeConfigsResourceResult(Message):
    """One key with its value."""

    name: Annotated[str, F("string")] = ""
    value: Annotated[str | None, F("string", nullable="0+")] = ""  # null when sensitive
    read_only: Annotated[bool, F("bool")] = False
    # 1 topic, 2 broker, 3 all brokers, 4 broker file, 5 default, 6 logger, 7 metrics, 8 group
    config_source: Annotated[int, F("int8", "1+")] = -1
    is_sensitive: Annotated[bool, F("bool")] = False
    synonyms: Annotated[list[DescribeConfigsSynonym], F("[]struct", "1+")] = []
    # 1 bool, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 secret
    config_type: Annotated[int, F("int8", "3+")] = 0
    documentation: Annotated[str | None, F("string", "3+", nullable="0+")] = ""


class DescribeConfigsResult(Message):
    """The configuration of one resource."""

    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""
    resource_type: Annotated[int, F("int8")] = 0
    resource_name: Annotated[str, F("string")] = ""
    configs: Annotated[list[DescribeConfigsResourceResult], F("[]struct")] = []


class DescribeConfigsResponse(Message):
    """One answer per resource."""

    API_KEY = DescribeConfigsRequest.API_KEY
    VERSIONS = "1-4"
    FLEXIBLE = "4+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    results: Annotated[list[DescribeConfigsResult], F("[]struct")] = []

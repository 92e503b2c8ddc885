"""Creates topics.

Source: KIP-464 (default counts with -1, version 4), KIP-525 (the answer carries the configuration,
        version 5), KIP-516 (topic id, version 7)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from strandline.protocol.table import NO_ID, F, Message


class CreatableReplicaAssignment(Message):
    """Which brokers hold one partition; the first leads."""

    partition_index: Annotated[int, F("int32")] = 0
    broker_ids: Annotated[list[int], F("[]int32")] = []


class CreatableTopicConfig(Message):
    """One configuration key; null means the default."""

    name: Annotated[str, F("string")] = ""
    value: Annotated[str | None, F("string", nullable="0+")] = ""


class CreatableTopic(Message):
    """A topic to create: by counts, or by an assignment of every partition."""

    name: Annotated[str, F("string")] = ""
    num_partitions: Annotated[int, F("int32")] = 0  # -1: the default, or an assignment is given
    replication_factor: Annotated[int, F("int16")] = 0  # -1: the default, or an assignment is given
    assignments: Annotated[list[CreatableReplicaAssignment], F("[]struct")] = []
    configs: Annotated[list[CreatableTopicConfig], F("[]struct")] = []


class CreateTopicsRequest(Message):
    """Topics to create; with `validate_only` nothing happens."""

    API_KEY = 19
    VERSIONS = "2-7"
    FLEXIBLE = "5+"

    topics: Annotated[list[CreatableTopic], F("[]struct")] = []
    timeout_ms: Annotated[int, F("int32")] = 60000
    validate_only: Annotated[bool, F("bool", "1+")] = False


class CreatableTopicConfigs(Message):
    """One key of the configuration that the new topic has."""

    name: Annotated[str, F("string", "5+")] = ""
    value: Annotated[str | None, F("string", "5+", nullable="5+")] = ""
    read_only: Annotated[bool, F("bool", "5+")] = False
    config_source: Annotated[int, F("int8", "5+")] = -1  # as in DescribeConfigs
    is_sensitive: Annotated[bool, F("bool", "5+")] = False


class CreatableTopicResult(Message):
    """The topic created, or why not."""

    name: Annotated[str, F("string")] = ""
    topic_id: Annotated[UUID, F("uuid", "7+")] = NO_ID
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", "1+", nullable="0+")] = ""
    topic_config_error_code: Annotated[int, F("int16", "5+", tag=0)] = 0  # why `configs` is missing
    num_partitions: Annotated[int, F("int32", "5+")] = -1
    replication_factor: Annotated[int, F("int16", "5+")] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, F("[]struct", "5+", nullable="5+")] = []


class CreateTopicsResponse(Message):
    """One answer per topic."""

    API_KEY = CreateTopicsRequest.API_KEY
    VERSIONS = "2-7"
    FLEXIBLE = "5+"

    throttle_time_ms: Annotated[int, F("int32", "2+")] = 0
    topics: Annotated[list[CreatableTopicResult], F("[]struct")] = []

"""Brokers, topics and leaders: how a client learns where to go.

Source: KIP-516 (topic ids, versions 10 and 12), KIP-430 (authorized operations), KIP-1102
        (top-level error, version 13)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from strandline.protocol.table import NO_ID, F, Message


class MetadataRequestTopic(Message):
    """A topic by name, or from version 12 by id with a null name."""

    topic_id: Annotated[UUID, F("uuid", "10+")] = NO_ID
    name: Annotated[str | None, F("string", nullable="10+")] = ""


class MetadataRequest(Message):
    """Asks for some topics, or for all with null (version 0: with an empty list)."""

    API_KEY = 3
    VERSIONS = "0-13"
    FLEXIBLE = "9+"

    # null: all topics
    topics: Annotated[list[MetadataRequestTopic] | None, F("[]struct", nullable="1+")] = []
    allow_auto_topic_creation: Annotated[bool, F("bool", "4+")] = True
    include_cluster_authorized_operations: Annotated[bool, F("bool", "8-10")] = False
    include_topic_authorized_operations: Annotated[bool, F("bool", "8+")] = False


class MetadataResponseBroker(Message):
    """A live broker and where its clients reach it."""

    node_id: Annotated[int, F("int32")] = 0
    host: Annotated[str, F("string")] = ""
    port: Annotated[int, F("int32")] = 0
    rack: Annotated[str | None, F("string", "1+", nullable="1+")] = None


class MetadataResponsePartition(Message):
    """A partition, its leader and its replicas by broker id."""

    error_code: Annotated[int, F("int16")] = 0
    partition_index: Annotated[int, F("int32")] = 0
    leader_id: Annotated[int, F("int32")] = 0  # -1: none
    leader_epoch: Annotated[int, F("int32", "7+")] = -1
    replica_nodes: Annotated[list[int], F("[]int32")] = []
    isr_nodes: Annotated[list[int], F("[]int32")] = []
    # replicas on brokers that are down
    offline_replicas: Annotated[list[int], F("[]int32", "5+")] = []


class MetadataResponseTopic(Message):
    """A topic, or why there is no answer for it."""

    error_code: Annotated[int, F("int16")] = 0
    # null: the id asked for is unknown
    name: Annotated[str | None, F("string", nullable="12+")] = ""
    topic_id: Annotated[UUID, F("uuid", "10+")] = NO_ID
    is_internal: Annotated[bool, F("bool", "1+")] = False
    partitions: Annotated[list[MetadataResponsePartition], F("[]struct")] = []
    # bit set; this value: not asked for
    topic_authorized_operations: Annotated[int, F("int32", "8+")] = -(2**31)


class MetadataResponse(Message):
    """Brokers, then topics."""

    API_KEY = MetadataRequest.API_KEY
    VERSIONS = "0-13"
    FLEXIBLE = "9+"

    throttle_time_ms: Annotated[int, F("int32", "3+")] = 0
    brokers: Annotated[list[MetadataResponseBroker], F("[]struct")] = []
    cluster_id: Annotated[str | None, F("string", "2+", nullable="2+")] = None
    # any broker that takes administrative requests
    controller_id: Annotated[int, F("int32", "1+")] = -1
    topics: Annotated[list[MetadataResponseTopic], F("[]struct")] = []
    # bit set; this value: not asked for
    cluster_authorized_operations: Annotated[int, F("int32", "8-10")] = -(2**31)
    # REBOOTSTRAP_REQUIRED sends the client to its seeds
    error_code: Annotated[int, F("int16", "13+")] = 0

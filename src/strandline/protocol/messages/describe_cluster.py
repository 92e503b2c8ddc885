"""Cluster id and brokers, without any topic.

Source: KIP-700, KIP-919 (endpoint type, version 1), KIP-1073 (fenced brokers, version 2)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class DescribeClusterRequest(Message):
    """Asks for the brokers."""

    API_KEY = 60
    VERSIONS = "0-2"
    FLEXIBLE = "0+"

    include_cluster_authorized_operations: Annotated[bool, F("bool")] = False
    endpoint_type: Annotated[int, F("int8", "1+")] = 1  # 1 brokers, 2 controllers
    include_fenced_brokers: Annotated[bool, F("bool", "2+")] = False


class DescribeClusterBroker(Message):
    """A broker and where its clients reach it."""

    broker_id: Annotated[int, F("int32")] = 0
    host: Annotated[str, F("string")] = ""
    port: Annotated[int, F("int32")] = 0
    rack: Annotated[str | None, F("string", nullable="0+")] = None
    is_fenced: Annotated[bool, F("bool", "2+")] = False


class DescribeClusterResponse(Message):
    """The cluster and its brokers."""

    API_KEY = DescribeClusterRequest.API_KEY
    VERSIONS = "0-2"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = None
    endpoint_type: Annotated[int, F("int8", "1+")] = 1
    cluster_id: Annotated[str, F("string")] = ""
    controller_id: Annotated[int, F("int32")] = -1  # any broker that takes administrative requests
    brokers: Annotated[list[DescribeClusterBroker], F("[]struct")] = []
    # bit set; this value: not asked for
    cluster_authorized_operations: Annotated[int, F("int32")] = -(2**31)

"""Asks a cluster what `strandline doctor` judges.

How:    as a stranger: a connection without a login and without a certificate, first without TLS,
        then with. Metadata tells what it may do (KIP-430), and changes nothing. As the user of a
        client's configuration file: rules, users, and the keys of each broker's file.
Source: KIP-430, KIP-140, KIP-554, KIP-546."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from socket import gaierror

from strandline.base.errors import ApiError, StrandlineError
from strandline.client.cluster import Client
from strandline.client.errors import CannotConnectError, ClientError
from strandline.client.operations.broker_configs import (
    BROKER_RESOURCE,
    asked_resource,
    read_configs,
)
from strandline.client.wire.connection import Connection
from strandline.client.wire.transport import TcpTransport, Transport
from strandline.config.addresses import format_address
from strandline.model.access import Operation
from strandline.model.cluster import Address
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from strandline.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from strandline.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from strandline.protocol.messages.describe_status import (
    DescribeStatusRequest,
    DescribeStatusResponse,
)
from strandline.protocol.messages.metadata import MetadataRequest, MetadataResponse
from strandline.security.doctor.cluster import Stranger

TIMEOUT_MS = 5_000
"""For each request of a stranger."""
_DEFAULT = 1
"""The match type of DescribeClientQuotas for the default entity."""


@dataclass(frozen=True, slots=True)
class Told:
    """`configs`: {broker: {key: value}}, of those that answer. `addresses`: of the brokers.
    `failures`: {broker that is up and does not tell: why}."""

    configs: Mapping[BrokerId, Mapping[str, str]] = field(default_factory=dict)
    addresses: tuple[Address, ...] = ()
    failures: Mapping[BrokerId, StrandlineError] = field(default_factory=dict)


def meet_stranger(address: Address, *, timeout_ms: int = TIMEOUT_MS) -> Stranger:
    """What a client without a login and a certificate gets at an address. Raises
    CannotConnectError if nothing listens there."""
    name = format_address(address)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    for context in (None, tls):
        transport = TcpTransport(context)
        try:
            return _look(transport, address, is_tls=context is not None, timeout_ms=timeout_ms)
        except CannotConnectError as error:
            if isinstance(error.__cause__, ConnectionRefusedError | TimeoutError | gaierror):
                raise
        except ClientError:
            continue  # It speaks something else.
    return Stranger(address=name)


def ask_brokers(client: Client) -> Told:
    """The configuration of each broker, with the keys of its file. Raises StrandlineError if none
    answers."""
    view = client.metadata()
    configs: dict[BrokerId, Mapping[str, str]] = {}
    failures: dict[BrokerId, StrandlineError] = {}
    for broker in view.brokers:
        request = DescribeConfigsRequest(
            resources=[asked_resource(BROKER_RESOURCE, str(broker), None)]
        )
        try:
            answer = client.ask(
                broker, request, DescribeConfigsResponse, deadline_ms=client.look_deadline()
            )
            rows = read_configs(answer)[str(broker)]
        except StrandlineError as error:
            failures[broker] = error
            continue
        configs[broker] = {one.name: one.value for one in rows}
    if failures and not configs:
        raise next(iter(failures.values()))
    return Told(configs, tuple(one.address for one in view.brokers.values()), failures)


def silent_brokers(client: Client, told: Told) -> list[BrokerId]:
    """Registered brokers that are not heard, as the first of the others that answers sees it."""
    for broker in told.configs:
        answer = client.look(broker, DescribeStatusRequest(), DescribeStatusResponse)
        if answer is not None:
            return sorted(BrokerId(one.broker_id) for one in answer.brokers if not one.is_heard)
    return []


def has_default_quota(client: Client) -> bool | None:
    """Whether users without a quota of their own have one; None if the cluster does not say."""
    request = DescribeClientQuotasRequest(
        components=[ComponentData(entity_type="user", match_type=_DEFAULT, match=None)]
    )
    try:
        answer = client.ask_any(
            request, DescribeClientQuotasResponse, deadline_ms=client.look_deadline()
        )
    except (ApiError, ClientError):
        return None
    return None if answer.error_code else bool(answer.entries)


def _look(transport: Transport, address: Address, *, is_tls: bool, timeout_ms: int) -> Stranger:
    connection = Connection(
        transport, address, client_id="strandline-doctor", timeout_ms=timeout_ms
    )
    try:
        request = MetadataRequest(
            topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True
        )
        seen = connection.call(request, MetadataResponse, timeout_ms)
        cluster = connection.call(
            DescribeClusterRequest(include_cluster_authorized_operations=True),
            DescribeClusterResponse,
            timeout_ms,
        )
    finally:
        connection.close()
    return Stranger(
        address=format_address(address),
        is_served=True,
        is_tls=is_tls,
        cluster=_operations(cluster.cluster_authorized_operations),
        topics={
            one.name: _operations(one.topic_authorized_operations)
            for one in seen.topics
            if one.name and not one.error_code
        },
    )


def _operations(bits: int) -> frozenset[Operation]:
    """The operations of a bit set; none if it was not answered."""
    if bits < 0:
        return frozenset()
    return frozenset(one for one in Operation if bits >> one & 1)

"""What Kafka answers without an authoriser and without authentication.

Source: KIP-48, KIP-140, KIP-546, KIP-554; Apache Kafka 4.3.1 in the same state."""

import pytest
from tests.broker.broker_world import BrokerWorld

from strandline.protocol.errors import Error
from strandline.protocol.messages.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from strandline.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from strandline.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from strandline.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from strandline.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from strandline.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from strandline.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from strandline.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from strandline.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_access_rules_are_refused_each_for_itself(world: BrokerWorld, version: int) -> None:
    described = world.ask(DescribeAclsRequest(), DescribeAclsResponse, version)
    assert described.error_code == Error.SECURITY_DISABLED
    assert described.error_message and described.resources == []
    request = CreateAclsRequest([AclCreation(2, "t"), AclCreation(2, "u")])
    created = world.ask(request, CreateAclsResponse, version)
    assert [one.error_code for one in created.results] == [Error.SECURITY_DISABLED] * 2
    assert all(one.error_message for one in created.results)
    deleted = world.ask(DeleteAclsRequest([DeleteAclsFilter(2, None)]), DeleteAclsResponse, version)
    (one,) = deleted.filter_results
    assert (one.error_code, one.matching_acls) == (Error.SECURITY_DISABLED, [])


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_connection_without_authentication_gets_no_token(
    world: BrokerWorld, version: int
) -> None:
    refused = Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    made = world.ask(CreateDelegationTokenRequest(), CreateDelegationTokenResponse, version)
    assert (made.error_code, made.token_id, made.hmac) == (refused, "", b"")
    assert (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms) == (-1,) * 3
    listed = world.ask(DescribeDelegationTokenRequest(), DescribeDelegationTokenResponse, version)
    assert (listed.error_code, listed.tokens) == (refused, [])
    if version <= 2:
        renewed = world.ask(
            RenewDelegationTokenRequest(b"x"), RenewDelegationTokenResponse, version
        )
        ended = world.ask(
            ExpireDelegationTokenRequest(b"x"), ExpireDelegationTokenResponse, version
        )
        for one in (renewed, ended):
            assert (one.error_code, one.expiry_timestamp_ms) == (refused, -1)


def test_no_client_has_a_quota(world: BrokerWorld) -> None:
    for components in ([], [ComponentData("user", 2, None)], [ComponentData("ip", 0, "10.0.0.1")]):
        for version in (0, 1):
            request = DescribeClientQuotasRequest(components)
            answer = world.ask(request, DescribeClientQuotasResponse, version)
            assert (answer.error_code, answer.entries) == (0, [])


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([ComponentData("", 2, None)], Error.INVALID_REQUEST),
        ([ComponentData("broker", 2, None)], Error.UNSUPPORTED_VERSION),
        ([ComponentData("user", 3, None)], Error.INVALID_REQUEST),
        ([ComponentData("user", 0, None)], Error.INVALID_REQUEST),
        ([ComponentData("user", 0, "a"), ComponentData("user", 2, None)], Error.INVALID_REQUEST),
        ([ComponentData("ip", 2, None), ComponentData("user", 2, None)], Error.INVALID_REQUEST),
    ],
)
def test_a_filter_that_cannot_be_one_is_refused(
    world: BrokerWorld, components: list[ComponentData], code: int
) -> None:
    request = DescribeClientQuotasRequest(components)
    answer = world.ask(request, DescribeClientQuotasResponse, 1)
    assert (answer.error_code, answer.entries) == (code, None)
    assert answer.error_message


def test_no_user_has_a_password(world: BrokerWorld) -> None:
    for users in (None, []):
        request = DescribeUserScramCredentialsRequest(users)
        answer = world.ask(request, DescribeUserScramCredentialsResponse, 0)
        assert (answer.error_code, answer.results) == (0, [])
    request = DescribeUserScramCredentialsRequest([UserName("a"), UserName("b"), UserName("b")])
    answer = world.ask(request, DescribeUserScramCredentialsResponse, 0)
    assert {one.user: one.error_code for one in answer.results} == {
        "a": Error.RESOURCE_NOT_FOUND,
        "b": Error.DUPLICATE_RESOURCE,
    }

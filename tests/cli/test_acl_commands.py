"""`strandline acl` refuses rules that would never mean what they say, and says what it did.

What a refusal by the broker says."""

import pytest
from tests.cli.command_line import Run, run
from tests.client.fake_cluster import FakeCluster, FakeTransport

from strandline.cli.commands import acl
from strandline.client.cluster import Client
from strandline.protocol.errors import Error
from strandline.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from strandline.protocol.messages.describe_acls import DescribeAclsResponse

__all__ = ["run"]  # The fixture.


def test_a_prefix_that_no_topic_has_is_refused_before_any_cluster_is_asked(run: Run) -> None:
    rule = ("--allow-principal", "User:mia", "--topic", "*", "--prefixed")
    code, out, err = run("acl", "create", *rule)
    assert (code, out) == (1, "")
    assert err == "error: --prefixed --topic *: no topic begins with *; * alone is every topic\n"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    made = FakeCluster()
    client = Client(made.bootstrap, timeout_ms=5_000, transport=FakeTransport(made))
    monkeypatch.setattr(acl, "open_client", lambda bootstrap, timeout: client)
    return made


def test_a_deletion_says_that_rules_are_gone(run: Run, fake: FakeCluster) -> None:
    rule = DeleteAclsMatchingAcl(
        resource_type=2,
        resource_name="t",
        pattern_type=3,
        principal="User:mia",
        host="*",
        operation=3,
        permission_type=3,
    )
    fake.extra["DeleteAcls"] = lambda *_: DeleteAclsResponse(
        filter_results=[DeleteAclsFilterResult(matching_acls=[rule])]
    )
    code, out, _ = run("acl", "delete", "--topic", "t")
    assert (code, out.splitlines()[-1]) == (0, "1 rule removed")


def test_a_refusal_says_where_the_right_is_named(run: Run, fake: FakeCluster) -> None:
    fake.extra["DescribeAcls"] = lambda *_: DescribeAclsResponse(
        error_code=Error.CLUSTER_AUTHORIZATION_FAILED, error_message="Authorization failed."
    )
    code, _, err = run("acl", "list")
    first, second = err.splitlines()
    assert (code, first) == (
        1,
        "error: the rules: Authorization failed. (CLUSTER_AUTHORIZATION_FAILED)",
    )
    assert "docs/operating/security-rules.md" in second

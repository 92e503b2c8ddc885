"""Principals and sessions. Source: Kafka's KafkaPrincipal; docs/decisions/0069-access.md."""

import pytest

from strandline.security.session import ANONYMOUS, Principal, Session


def test_a_principal_is_written_as_rules_name_it() -> None:
    assert str(Principal.user("alice")) == "User:alice"
    assert str(ANONYMOUS) == "User:ANONYMOUS"


@pytest.mark.parametrize("name", ["alice", "CN=alice,O=us", "a:b", "*", "Zoë"])
def test_a_written_principal_is_read_back(name: str) -> None:
    assert Principal.parse(f"User:{name}") == Principal.user(name)


@pytest.mark.parametrize("text", ["", "alice", "User:", ":alice"])
def test_text_without_a_kind_or_a_name_is_no_principal(text: str) -> None:
    with pytest.raises(ValueError, match="must be User:NAME"):
        Principal.parse(text)


def test_a_session_without_authentication_is_anonymous_and_may_send_requests() -> None:
    session = Session(host="10.0.0.1")
    assert session.principal == ANONYMOUS
    assert session.is_authenticated
    assert session.ends_at_ms is None

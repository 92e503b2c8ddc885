"""Which client may see which page of the HTTP port (decision 0069).

How:    the gate itself, with a broker's own logins and rules; requests over sockets are in
        tests/integration/test_http_tokens.py."""

import asyncio
import base64
import json
import logging
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace

import pytest
from joserfc import jwk, jwt

from strandline.admin.http_access import HttpAccess
from strandline.admin.http_server import Answer, Asker
from strandline.broker.access.authorisation import Authorisation
from strandline.broker.authentication import failure_delays
from strandline.broker.authentication.logins import Logins
from strandline.config.load import load_broker_config
from strandline.model.access import (
    CLUSTER_NAME,
    Kind,
    Operation,
    PatternType,
    Permission,
    Rule,
)
from strandline.model.cluster import Cluster
from strandline.model.ids import BrokerId
from strandline.security.audit.event import AuditEvent, EventKind
from strandline.security.http_tokens import HttpTokens, create_token

EXP_S = 4_000_000_000
KEY = jwk.ECKey.generate_key("P-256", {"kid": "one"})
PAGES = ("/", "/metrics", "/v1/topics/x", "/no-such-page")
HEALTH = ("/healthz", "/readyz")


@dataclass
class World:
    """A gate, and what it asks."""

    directory: Path
    more: str = ""
    enforces: bool = False
    is_ready: bool = True
    cluster: Cluster = field(default_factory=Cluster)
    audited: list[AuditEvent] = field(default_factory=list)

    def open(self, *, with_file: bool = True) -> HttpAccess:
        keys = self.directory / "keys.json"
        keys.write_text(json.dumps({"keys": [KEY.as_dict(private=False)]}))
        access = "[access]\nenforce_rules = true\nsuper_users = ['User:admin']\n"
        config = load_broker_config(
            '[broker]\nid = 1\ndata_directory = "/d"\n[cluster]\nseeds = ["1@127.0.0.1:33145"]\n'
            f"{access if self.enforces else ''}"
            "[oauthbearer]\nexpected_issuer = 'i'\nexpected_audience = ['a']\n"
            f"jwks_endpoint_url = 'file://{keys}'\n[metrics]\nport = 9404\n{self.more}",
            file="f",
            environment={},
        )
        services = SimpleNamespace(
            logins=Logins(config, self.cluster, wall_ms=lambda: 1_000_000),
            access=Authorisation(config.access, self.cluster, broker_id=BrokerId(1)),
            audit=SimpleNamespace(add=self.audited.append),
        )
        tokens = HttpTokens(self.directory / "tokens.jsonl") if with_file else None
        broker = SimpleNamespace(services=services)
        return HttpAccess(
            config.metrics,
            tokens,
            broker,  # type: ignore[arg-type]
            is_ready=lambda: self.is_ready,
        )


def asker(*authorization: str, has_certificate: bool = False) -> Asker:
    return Asker("10.0.0.1", has_certificate, authorization)


def ask(gate: HttpAccess, one: Asker, path: str = "/metrics") -> Answer | None:
    return asyncio.run(gate.refuse(one, path))


def status(answer: Answer | None) -> int:
    return 200 if answer is None else answer.status.value


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def bearer(sub: str, **claims: object) -> str:
    known = {"iss": "i", "aud": "a", "sub": sub, "exp": EXP_S} | claims
    return "Bearer " + jwt.encode({"alg": "ES256", "kid": "one"}, known, KEY)


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure_delays, "DELAY_FIRST_MS", 0)


@pytest.fixture
def token(tmp_path: Path) -> str:
    return create_token(tmp_path / "tokens.jsonl", "prometheus")


@pytest.mark.parametrize(
    ("more", "pages", "health"),
    [
        ("tokens_file = '/t'", 401, 401),
        ("tokens_file = '/t'\nanonymous = 'none'", 401, 401),
        ("tokens_file = '/t'\nanonymous = 'health'", 401, 200),
        ("tokens_file = '/t'\nanonymous = 'read'", 200, 200),
        ("oauthbearer = true", 401, 401),
        ("anonymous = 'health'", 401, 200),
        ("", 200, 200),
    ],
)
def test_what_a_client_without_credentials_sees(
    tmp_path: Path, token: str, more: str, pages: int, health: int
) -> None:
    world = World(tmp_path, more)
    gate = world.open()
    assert {status(ask(gate, asker(), path)) for path in PAGES} == {pages}
    assert {status(ask(gate, asker(), path)) for path in HEALTH} == {health}
    assert not world.audited, "it has tried nothing"
    assert status(ask(gate, asker(has_certificate=True))) == 200


def test_a_token_of_the_file_sees_every_page_however_it_is_sent(tmp_path: Path, token: str) -> None:
    gate = World(tmp_path, "tokens_file = '/t'").open()
    for sent in (f"Bearer {token}", f"bearer  {token} ", basic("", token), basic("any", token)):
        for path in (*PAGES, *HEALTH):
            assert ask(gate, asker(sent), path) is None, sent


def test_what_is_no_token_is_refused_and_told(
    tmp_path: Path, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path, "tokens_file = '/t'\noauthbearer = true")
    gate = world.open()
    caplog.set_level(logging.WARNING)
    wrong: tuple[tuple[str, ...], ...] = (
        ("",),
        ("Bearer",),
        ("Bearer ",),
        (token,),
        (f"Digest {token}",),
        (f"Bearer {token}x",),
        (f"Bearer {token[:-1]}",),
        (f"Bearer {token} {token}",),
        (f"Bearer {token}", f"Bearer {token}"),
        (basic(token, ""),),
        (basic(token, "x"),),
        ("Basic " + token,),
        ("Basic \xff",),
        ("Bearer a.b.c",),
        (bearer("admin", aud="mail"),),
        (bearer("admin", exp=1),),
    )
    for one in wrong:
        refused = ask(gate, asker(*one))
        assert refused is not None and refused.status is HTTPStatus.UNAUTHORIZED, one
        names = [value.split()[0] for name, value in refused.headers if name == "WWW-Authenticate"]
        assert names == ["Bearer", "Basic"]
        assert 'error="invalid_token"' in dict(refused.headers[:1])["WWW-Authenticate"]
    assert len(world.audited) == len(wrong)
    for event in world.audited:
        assert (event.kind, event.is_allowed, event.listener) == (
            EventKind.LOGIN,
            False,
            "[metrics]",
        )
        assert (event.principal, event.address) == ("unknown", "10.0.0.1")
    assert {one.mechanism for one in world.audited} == {"TOKEN", "OAUTHBEARER"}
    assert "10.0.0.1 at the HTTP port failed to authenticate: an unknown token" in caplog.text
    assert token[:-1] not in caplog.text + repr(world.audited)


def test_each_failure_of_an_address_waits_longer_and_a_success_forgives(
    tmp_path: Path, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failure_delays, "DELAY_FIRST_MS", 100)
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    gate = World(tmp_path, "tokens_file = '/t'").open()
    for _ in range(8):
        ask(gate, asker("Bearer x"))
    assert waited == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert ask(gate, asker(f"Bearer {token}")) is None
    ask(gate, asker("Bearer x"))
    assert waited[-1] == 0.1
    ask(gate, asker())
    assert len(waited) == 9, "a browser's first request is no failure"


def rule(principal: str, permission: Permission = Permission.ALLOW) -> Rule:
    return Rule(
        Kind.CLUSTER,
        PatternType.LITERAL,
        CLUSTER_NAME,
        principal,
        "*",
        Operation.DESCRIBE,
        permission,
    )


def test_a_token_of_the_provider_sees_what_the_rules_let_its_user_see(tmp_path: Path) -> None:
    world = World(tmp_path, "oauthbearer = true", enforces=True)
    gate = world.open(with_file=False)
    assert status(ask(gate, asker(bearer("admin")))) == 200
    assert status(ask(gate, asker(basic("mia", bearer("admin").split()[1])))) == 200
    assert status(ask(gate, asker(bearer("mia")))) == 403
    assert status(ask(gate, asker(bearer("mia")), "/healthz")) == 200
    (event,) = world.audited
    assert (event.kind, event.principal, event.resource_type, event.operation, event.api) == (
        EventKind.REFUSAL,
        "User:mia",
        "CLUSTER",
        "DESCRIBE",
        "/metrics",
    )
    world.cluster.access.rules[rule("User:mia")] = None
    world.cluster.access.version += 1
    assert status(ask(gate, asker(bearer("mia")))) == 200
    world.is_ready = False
    assert status(ask(gate, asker(bearer("mia")))) == 503, "its rules may be older ones"
    assert status(ask(gate, asker(bearer("mia")), "/healthz")) == 200


def test_without_rules_every_user_of_the_provider_sees_every_page(tmp_path: Path) -> None:
    gate = World(tmp_path, "oauthbearer = true").open(with_file=False)
    assert status(ask(gate, asker(bearer("mia")))) == 200


def test_tokens_of_a_provider_hold_only_where_they_are_taken(tmp_path: Path, token: str) -> None:
    gate = World(tmp_path, "tokens_file = '/t'").open()
    assert status(ask(gate, asker(bearer("admin")))) == 401
    gate = World(tmp_path, "oauthbearer = true").open(with_file=False)
    assert status(ask(gate, asker(f"Bearer {token}"))) == 401

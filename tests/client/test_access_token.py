"""A client's tokens: from a file, and from an identity provider that may be of no use.

Source: RFC 6749, section 4.4; decision 0069."""

import base64
import contextlib
import http.server
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from strandline.client.wire import access_token
from strandline.client.wire.access_token import ClientCredentials, TokenError, TokenFile
from strandline.client.wire.login import LoginError
from strandline.client.wire.token_login import TokenLogin
from strandline.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from strandline.protocol.messages.sasl_handshake import SaslHandshakeResponse
from strandline.protocol.table import Message

PLAIN = ssl.create_default_context()
SECRET = "s3cret:of=the client"


def token_of(**claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{body}.c2ln"


def test_a_file_is_read_for_each_login(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(token_of(sub="mia") + "\n")
    source = TokenFile(path)
    assert (source.token(), source.subject) == (token_of(sub="mia"), "mia")
    path.write_text("opaque-token")
    assert (source.token(), source.subject) == ("opaque-token", "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "cannot read the token: No such file"),
        ("", "has no token"),
        ("two words", "what it has is none"),
        ("x\x01auth=Bearer y", "what it has is none"),
        ("x" * 70_000, "more than 65536 bytes"),
    ],
)
def test_a_file_without_a_token_is_told(tmp_path: Path, text: str | None, reason: str) -> None:
    path = tmp_path / "token"
    if text is not None:
        path.write_text(text)
    with pytest.raises(TokenError, match=reason) as raised:
        TokenFile(path).token()
    assert str(path) in str(raised.value) and "\n" not in str(raised.value)


Answer = Callable[[http.server.BaseHTTPRequestHandler], None]


class Provider:
    """What it was asked, and what it answers."""

    def __init__(self, *answers: tuple[int, object]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, dict[str, list[str]]]] = []
        self.url = ""


@contextlib.contextmanager
def served(provider: Provider) -> Iterator[Provider]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            authorization = self.headers["Authorization"]
            provider.asked.append((self.headers["Content-Type"], authorization, parse_qs(body)))
            status, answer = provider.answers.pop(0)
            self.send_response(status)
            if status == 302:
                self.send_header("Location", provider.url)
            self.end_headers()
            text = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        provider.url = f"http://127.0.0.1:{server.server_port}/token"
        yield provider
        server.shutdown()
        thread.join()


class Clock:
    """Seconds."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def credentials(provider: Provider, clock: Clock, scope: str = "") -> ClientCredentials:
    return ClientCredentials(
        provider.url, "app", SECRET, scope=scope, context=PLAIN, monotonic_s=clock
    )


def test_a_provider_gives_a_token_which_is_kept_for_most_of_its_time() -> None:
    answers = [(200, {"access_token": f"token-{n}", "expires_in": 100}) for n in range(3)]
    with served(Provider(*answers)) as provider:
        clock = Clock()
        source = credentials(provider, clock, "read write")
        assert source.token() == source.token() == "token-0"
        clock.now_s += 79
        assert source.token() == "token-0"
        clock.now_s += 2
        assert source.token() == "token-1"
        source.drop()
        assert source.token() == "token-2"
    pair = base64.b64encode(f"app:{SECRET}".encode()).decode()
    asked = {"grant_type": ["client_credentials"], "scope": ["read write"]}
    assert provider.asked[0] == ("application/x-www-form-urlencoded", f"Basic {pair}", asked)
    assert len(provider.asked) == 3


def test_the_end_of_a_token_is_in_the_token_if_the_provider_does_not_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.time", lambda: 1_000.0)
    ending = [{"access_token": token_of(sub="a", exp=1_100)}, {"access_token": token_of(sub="b")}]
    with served(Provider((200, ending[0]), (200, ending[1]), (200, ending[1]))) as provider:
        clock = Clock()
        source = credentials(provider, clock)
        subjects = []
        for passed_s in (0, 79, 2, 0):
            clock.now_s += passed_s
            source.token()
            subjects.append(source.subject)
        assert subjects == ["a", "a", "b", "b"]
        assert len(provider.asked) == 3, "the end of the second one is not known"


def test_a_token_is_used_to_its_end_while_the_provider_is_away() -> None:
    first, last = ((200, {"access_token": one, "expires_in": 100}) for one in ("first", "last"))
    away = (503, b"")
    with served(Provider(first, away, away, away, last)) as provider:
        clock = Clock()
        source = credentials(provider, clock)
        found = []
        for passed_s in (0, 85, 0.5, 1, 13.4):
            clock.now_s += passed_s
            found.append((source.token(), len(provider.asked)))
        assert found == [("first", 1), ("first", 2), ("first", 2), ("first", 3), ("first", 4)]
        clock.now_s += 1
        assert source.token() == "last"
        provider.answers.append(away)
        clock.now_s += 100
        with pytest.raises(TokenError, match="it answers 503"):
            source.token()


def test_a_user_is_named_without_a_request(tmp_path: Path) -> None:
    provider = Provider()
    provider.url = "http://127.0.0.1:1/token"
    assert credentials(provider, Clock()).subject == ""
    assert TokenFile(tmp_path / "no-such").subject == ""


REFUSED = {"error": "invalid_client", "error_description": "no such client"}


@pytest.mark.parametrize(
    ("status", "answer", "reason"),
    [
        (401, REFUSED, "it answers 401: invalid_client: no such client"),
        (400, {"error": "a\nb"}, "it answers 400"),
        (500, b"<html>", "it answers 500"),
        (302, b"", "it answers 302"),
        (200, b"token", "its answer is no JSON object"),
        (200, [], "its answer is no JSON object"),
        (200, b"[" * 10_000, "its answer is no JSON object"),
        (200, {}, "has no token"),
        (200, {"access_token": 7, "expires_in": "x"}, None),
        (200, {"access_token": "a b"}, "what it has is none"),
        (200, {"access_token": "x" * 70_000}, "more than 65536 bytes"),
        (200, b"x" * 300_000, "more than 262144 bytes"),
    ],
)
def test_a_provider_that_gives_no_token_is_told_in_one_line(
    status: int, answer: object, reason: str | None
) -> None:
    with served(Provider((status, answer))) as provider:
        source = credentials(provider, Clock())
        if reason is None:
            assert source.token() == "7"
            return
        with pytest.raises(TokenError) as raised:
            source.token()
    text = str(raised.value)
    assert reason in text and provider.url in text and "\n" not in text
    assert SECRET not in text and base64.b64encode(SECRET.encode()).decode() not in text


def test_a_provider_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_token, "FETCH_MS", 50)
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        provider = Provider()
        provider.url = f"http://127.0.0.1:{silent.getsockname()[1]}/token"
        with pytest.raises(TokenError, match=r"no whole answer within 0\.05 s"):
            credentials(provider, Clock()).token()


# ---- the login -----------------------------------------------------------------------------------


def answering(*answers: SaslAuthenticateResponse) -> Callable[..., Message]:
    left = [SaslHandshakeResponse(), *answers]
    return lambda request, response: left.pop(0)


def test_a_login_tells_how_long_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(token_of(sub="mia"))
    login = TokenLogin(TokenFile(path))
    done = SaslAuthenticateResponse(session_lifetime_ms=4_000)
    assert login.run(answering(done)) == 4_000  # type: ignore[arg-type]
    assert login.user == "mia" and token_of(sub="mia") not in repr(login)


def test_a_token_that_a_broker_refuses_is_told_and_not_kept() -> None:
    tokens = [(200, {"access_token": f"token-{n}", "expires_in": 100}) for n in range(2)]
    with served(Provider(*tokens)) as provider:
        source = credentials(provider, Clock())
        challenge = SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}')
        refused = SaslAuthenticateResponse(error_code=58, error_message="Authentication failed")
        with pytest.raises(LoginError, match=r"the login of the token of http.*: Authentication"):
            TokenLogin(source).run(answering(challenge, refused))  # type: ignore[arg-type]
        assert source.token() == "token-1"

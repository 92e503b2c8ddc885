"""Commands reach a cluster with TLS (decision 0069)."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.client.client_config import read_client_config
from strandline.client.command_line import CLIENT_CONFIG_VARIABLE, take_client_config
from strandline.client.wire.access_token import ClientCredentials, TokenFile
from strandline.client.wire.login import Login
from strandline.client.wire.token_login import TokenLogin
from strandline.client.wire.transport import TcpTransport
from strandline.model.cluster import Address
from strandline.security.authority import Authority, Files

TIMEOUT_MS = 20_000


def write(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "client.properties"
    path.write_text("\n".join(("# a comment", "", *lines, "linger.ms = 5")) + "\n")
    return path


@contextmanager
def echoing(files: Files, *, is_tls: bool = True) -> Iterator[Address]:
    """A server that wants certificates and sends back what it gets, 100 KB at a time."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    context.load_verify_locations(files.trust)
    context.verify_mode = ssl.CERT_REQUIRED
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        sock, _ = listener.accept()
        with sock:
            if not is_tls:
                sock.recv(100)
                sock.sendall(b"what is this?")
                return
            try:
                with context.wrap_socket(sock, server_side=True) as secured:
                    while data := secured.recv(100_000):
                        secured.sendall(data)
            except OSError:
                return

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield Address("localhost", listener.getsockname()[1])
    finally:
        thread.join()
        listener.close()


@pytest.mark.parametrize("spelling", ["java", "librdkafka"])
def test_both_spellings_lead_to_a_connection_with_certificates(
    tmp_path: Path, spelling: str
) -> None:
    authority = Authority(tmp_path)
    server, own = authority.issue("server"), authority.issue("app")
    if spelling == "java":
        store = tmp_path / "keystore.pem"
        store.write_bytes(own.key.read_bytes() + own.certificate.read_bytes())
        lines = [
            f"ssl.truststore.location={own.trust}",
            "ssl.truststore.type=PEM",
            f"ssl.keystore.location={store}",
            "ssl.keystore.type=PEM",
        ]
    else:
        lines = [
            f"ssl.ca.location={own.trust}",
            f"ssl.certificate.location = {own.certificate}",
            f"ssl.key.location = {own.key}",
        ]
    path = write(tmp_path, "security.protocol=SSL", "bootstrap.servers=b1:9093,b2:9093", *lines)
    config = read_client_config(path)
    assert config.bootstrap == "b1:9093,b2:9093"
    with echoing(server) as address:
        transport = TcpTransport(config.tls)
        stream = transport.connect(address, TIMEOUT_MS)
        stream.send([b"x" * 100_000], TIMEOUT_MS)
        assert bytes(stream.receive(10, TIMEOUT_MS)) == b"x" * 10
        # The rest of a record is off the socket: the kernel does not report it.
        assert transport.wait_readable([stream], TIMEOUT_MS) == [stream]
        assert bytes(stream.receive(99_990, TIMEOUT_MS)) == b"x" * 99_990
        stream.close()


def test_a_server_that_is_not_trusted_or_has_no_tls_is_told(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path / "other")
    files = authority.issue("server")
    trusting = write(tmp_path, "security.protocol=ssl", f"ssl.ca.location={other.trust}")
    config = read_client_config(trusting)
    with (
        echoing(files) as address,
        pytest.raises(ConnectionError, match="its certificate is not accepted: "),
    ):
        TcpTransport(config.tls).connect(address, TIMEOUT_MS)
    with (
        echoing(files, is_tls=False) as address,
        pytest.raises(ConnectionError, match="it answers without TLS"),
    ):
        TcpTransport(config.tls).connect(address, TIMEOUT_MS)


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        ("none", "it requires a certificate of its clients"),
        ("a stranger's", "it does not accept this client's certificate"),
    ],
)
def test_a_server_that_refuses_the_client_says_why(tmp_path: Path, shown: str, reason: str) -> None:
    authority = Authority(tmp_path)
    files = authority.issue("server")
    lines = ["security.protocol=ssl", f"ssl.ca.location={files.trust}"]
    if shown != "none":
        own = Authority(tmp_path / "other").issue("app")
        lines += [f"ssl.certificate.location={own.certificate}", f"ssl.key.location={own.key}"]
    config = read_client_config(write(tmp_path, *lines))
    with echoing(files) as address, pytest.raises(ConnectionError) as raised:
        stream = TcpTransport(config.tls).connect(address, TIMEOUT_MS)
        try:
            stream.receive(1, TIMEOUT_MS)
        finally:
            stream.close()
    assert str(raised.value) == reason


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            ["security.protocol=TLS"],
            "security.protocol is 'TLS', not one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        (
            ["security.protocol=SASL_SSL", "sasl.mechanism=GSSAPI"],
            "sasl.mechanism is 'GSSAPI', not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        ),
        (
            ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", "sasl.username=a"],
            "a login needs sasl.username and sasl.password, or sasl.jaas.config",
        ),
        (["security.protocol=SSL", "ssl.engine.factory.class=x"], "this key is not known here"),
        (
            ["security.protocol=SSL", "ssl.truststore.location=/x.jks"],
            "only PEM files are read: write ssl.truststore.type=PEM",
        ),
        (["security.protocol=SSL", "ssl.ca.location=/no/such"], "cannot read /no/such: No such"),
        (["security.protocol=SSL", "ssl.ca.location={text}"], "has no certificate in PEM"),
        (["security.protocol=SSL", "ssl.certificate.location={text}"], "are no certificate in PEM"),
        (["nonsense"], "line 3 must be name=value"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_in_one_line(
    tmp_path: Path, lines: list[str], reason: str
) -> None:
    text = tmp_path / "text"
    text.write_text("hello")
    path = write(tmp_path, *(one.replace("{text}", str(text)) for one in lines))
    with pytest.raises(OperatorError) as raised:
        read_client_config(path)
    assert reason in str(raised.value) and str(raised.value).startswith(str(path))
    assert "\n" not in str(raised.value)


def test_a_file_without_a_protocol_is_of_a_cluster_without_tls(tmp_path: Path) -> None:
    assert read_client_config(write(tmp_path, "ssl.engine.factory.class=x")).tls is None


@pytest.mark.parametrize(
    ("given", "left", "file"),
    [
        (["topic", "list"], ["topic", "list"], None),
        (["topic", "list", "--client-config", "f"], ["topic", "list"], "f"),
        (["--client-config=f", "topic", "list", "-b", "x"], ["topic", "list", "-b", "x"], "f"),
        (
            ["produce", "--", "--client-config", "f"],
            ["produce", "--", "--client-config", "f"],
            None,
        ),
    ],
)
def test_the_option_may_stand_anywhere(
    monkeypatch: pytest.MonkeyPatch, given: list[str], left: list[str], file: str | None
) -> None:
    import os

    monkeypatch.setenv(CLIENT_CONFIG_VARIABLE, "")
    assert take_client_config(given) == left
    assert (os.environ[CLIENT_CONFIG_VARIABLE] or None) == file


def test_the_option_without_a_file_is_refused() -> None:
    with pytest.raises(OperatorError, match="--client-config: name a file"):
        take_client_config(["topic", "list", "--client-config"])


@pytest.mark.parametrize(
    "lines",
    [
        ["sasl.mechanisms=SCRAM-SHA-512", 'sasl.username=al"ice', "sasl.password=p=w;d"],
        [
            "sasl.mechanism=SCRAM-SHA-512",
            "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
            'username="al\\"ice" password="p=w;d";',
        ],
    ],
)
def test_a_login_in_either_spelling(tmp_path: Path, lines: list[str]) -> None:
    config = read_client_config(write(tmp_path, "security.protocol=SASL_PLAINTEXT", *lines))
    assert config.tls is None
    assert config.login == Login("SCRAM-SHA-512", 'al"ice', "p=w;d")
    assert "p=w;d" not in repr(config)


URL = "sasl.oauthbearer.token.endpoint.url=https://id.example/token"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


@pytest.mark.parametrize(
    "lines",
    [
        [
            "sasl.mechanisms=OAUTHBEARER",
            "sasl.oauthbearer.method=oidc",
            "sasl.oauthbearer.client.id=app",
            "sasl.oauthbearer.client.secret=s3cret",
            "sasl.oauthbearer.scope=kafka",
        ],
        [
            "sasl.mechanism=OAUTHBEARER",
            "sasl.login.callback.handler.class="
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
            f'sasl.jaas.config={MODULE} clientId="app" clientSecret="s3cret" scope="kafka";',
        ],
        [
            "sasl.mechanism=OAUTHBEARER",
            "sasl.oauthbearer.client.credentials.client.id=app",
            "sasl.oauthbearer.client.credentials.client.secret=s3cret",
            "sasl.oauthbearer.scope=kafka",
        ],
    ],
)
def test_tokens_of_a_provider_in_each_spelling(tmp_path: Path, lines: list[str]) -> None:
    config = read_client_config(write(tmp_path, "security.protocol=SASL_PLAINTEXT", URL, *lines))
    assert isinstance(config.login, TokenLogin)
    source = config.login.source
    assert isinstance(source, ClientCredentials) and source.place == "https://id.example/token"
    assert (source._client_id, source._client_secret, source._scope) == ("app", "s3cret", "kafka")
    assert "s3cret" not in repr(config)


def test_a_token_in_a_file(tmp_path: Path) -> None:
    lines = [
        "sasl.mechanism=OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url=file:///etc/a%20token",
        f"sasl.jaas.config={MODULE};",
    ]
    config = read_client_config(write(tmp_path, "security.protocol=SASL_PLAINTEXT", *lines))
    assert config.login == TokenLogin(TokenFile(Path("/etc/a token")))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "token.endpoint.url must be given with sasl.mechanism=OAUTHBEARER: file:///PATH"),
        (["sasl.oauthbearer.token.endpoint.url=http://id.example/"], "must be https://HOST/PATH"),
        ([URL], "sasl.oauthbearer.client.id must be given with sasl.oauthbearer.token"),
        ([URL, "sasl.oauthbearer.client.id=a"], "sasl.oauthbearer.client.secret must be given"),
        ([URL, "sasl.oauthbearer.method=default"], "sasl.oauthbearer.method must be oidc"),
        (
            [URL, "sasl.oauthbearer.grant.type=urn:x"],
            "sasl.oauthbearer.grant.type must be client_credentials",
        ),
        (
            [
                URL,
                "sasl.oauthbearer.client.id=a",
                "sasl.oauthbearer.client.secret=b",
                "https.ca.location=/no/such",
            ],
            "https.ca.location: /no/such is no PEM file of certificates",
        ),
        ([URL, "sasl.oauthbearer.extensions=a=b"], "this key is not known here: take it out"),
    ],
)
def test_tokens_that_cannot_be_had_are_told_in_one_line(
    tmp_path: Path, lines: list[str], reason: str
) -> None:
    start = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=OAUTHBEARER"]
    path = write(tmp_path, *start, *lines)
    with pytest.raises(OperatorError) as raised:
        read_client_config(path)
    assert reason in str(raised.value) and str(raised.value).startswith(str(path))

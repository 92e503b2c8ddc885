"""The TLS of a port: bad files, reloads, names asked for. Source: docs/decisions/0069-access.md."""

import os
import shutil
import socket
import ssl
from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.security.authority import Authority, Files
from strandline.security.tls import Pair, ServerTls, TlsSettings


def settings_of(files: Files, *more: Files, client_certificates: str = "none") -> TlsSettings:
    return TlsSettings(
        place="[[listener]] A",
        pairs=tuple(Pair(one.certificate, one.key) for one in (files, *more)),
        trust=files.trust if client_certificates != "none" else None,
        client_certificates=client_certificates,
    )


def meet(
    tls: ServerTls, trust: Path, *, own: Files | None = None, host: str = "localhost"
) -> tuple[str, str]:
    """A client's handshake: the names of the server's and of the client's certificate, as the
    other side has them. Raises ssl.SSLError, as either side does."""
    client = ssl.create_default_context(cafile=str(trust))
    if own is not None:
        client.load_cert_chain(own.certificate, own.key)
    one, other = socket.socketpair()
    one.setblocking(False)
    other.setblocking(False)
    with (
        tls.context.wrap_socket(one, server_side=True, do_handshake_on_connect=False) as accepted,
        client.wrap_socket(other, server_hostname=host, do_handshake_on_connect=False) as opened,
    ):
        waiting = [opened, accepted]
        while waiting:
            for sock in list(waiting):
                try:
                    sock.do_handshake()
                    waiting.remove(sock)
                except ssl.SSLWantReadError:
                    continue
        return common_name(opened), common_name(accepted)


def common_name(sock: ssl.SSLSocket) -> str:
    subject = (sock.getpeercert() or {}).get("subject", ())
    return "".join(value for part in subject for name, value in part if name == "commonName")


def take(source: Files, target: Files) -> None:
    """Put other files in the place of some."""
    for old, new in zip(
        (target.certificate, target.key), (source.certificate, source.key), strict=True
    ):
        shutil.copy(new, f"{old}.new")
        os.replace(f"{old}.new", old)


def test_a_client_sees_the_certificate_and_the_server_the_clients(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = ServerTls(settings_of(authority.issue("server"), client_certificates="required"))
    assert meet(tls, authority.trust, own=authority.issue("app")) == ("server", "app")
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        meet(tls, authority.trust)
    stranger = Authority(tmp_path / "other").issue("app")
    with pytest.raises(ssl.SSLCertVerificationError):
        meet(tls, authority.trust, own=stranger)


def test_a_certificate_that_is_requested_may_be_missing_but_not_wrong(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = ServerTls(settings_of(authority.issue("server"), client_certificates="requested"))
    assert meet(tls, authority.trust) == ("server", "")
    assert meet(tls, authority.trust, own=authority.issue("app")) == ("server", "app")
    expired = authority.issue("old", days=-1)
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate has expired"):
        meet(tls, authority.trust, own=expired)


def test_old_versions_of_tls_are_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    files = authority.issue("server")
    assert ServerTls(settings_of(files)).context.minimum_version is ssl.TLSVersion.TLSv1_2
    newest = TlsSettings(place="A", pairs=(Pair(files.certificate, files.key),), version_min="1.3")
    assert ServerTls(newest).context.minimum_version is ssl.TLSVersion.TLSv1_3


def test_changed_files_are_in_use_for_the_next_handshake(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    files = authority.issue("server")
    tls = ServerTls(settings_of(files))
    assert not tls.reload_if_changed()
    take(authority.issue("renewed", days=900), files)
    ends_at_ms = tls.ends_at_ms
    assert tls.reload_if_changed()
    assert not tls.reload_if_changed()
    assert meet(tls, authority.trust) == ("renewed", "")
    assert tls.ends_at_ms > ends_at_ms


def test_a_certificate_whose_key_is_not_there_yet_is_not_taken(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    files = authority.issue("server")
    tls = ServerTls(settings_of(files))
    renewed = authority.issue("renewed")
    shutil.copy(renewed.certificate, files.certificate)
    with pytest.raises(OperatorError, match="is not the one of the certificate in"):
        tls.reload_if_changed()
    assert meet(tls, authority.trust) == ("server", "")
    assert not tls.reload_if_changed(), "it complains once"
    shutil.copy(renewed.key, files.key)
    assert tls.reload_if_changed()
    assert meet(tls, authority.trust) == ("renewed", "")


def test_trust_that_is_taken_away_holds_no_longer(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path / "other")
    files = authority.issue("server")
    app, stranger = authority.issue("app"), other.issue("stranger")
    both = authority.trust.read_bytes() + other.trust.read_bytes()
    trust = tmp_path / "trust.pem"
    trust.write_bytes(both)
    tls = ServerTls(
        settings_of(Files(files.certificate, files.key, trust), client_certificates="required")
    )
    assert meet(tls, authority.trust, own=stranger) == ("server", "stranger")
    trust.write_bytes(authority.trust.read_bytes())
    assert tls.reload_if_changed()
    with pytest.raises(ssl.SSLCertVerificationError):
        meet(tls, authority.trust, own=stranger)
    assert meet(tls, authority.trust, own=app) == ("server", "app")


def test_the_certificate_is_the_one_for_the_host_that_the_client_asks_for(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    inner = authority.issue("inner", dns=("broker.internal", "shared.example"))
    public = authority.issue("public", dns=("*.public.example", "shared.example"))
    tls = ServerTls(settings_of(inner, public, client_certificates="requested"))
    app = authority.issue("app")
    for host, name in (
        ("broker.internal", "inner"),
        ("b1.public.example", "public"),
        ("shared.example", "inner"),
    ):
        assert meet(tls, authority.trust, own=app, host=host) == (name, "app")
    stranger = Authority(tmp_path / "other").issue("app")
    with pytest.raises(ssl.SSLCertVerificationError):
        meet(tls, authority.trust, own=stranger, host="b1.public.example")


@pytest.mark.parametrize(
    ("breakage", "reason"),
    [
        ("no certificate", "cannot read .*server.pem: No such file or directory"),
        ("no key", "cannot read .*server.key: No such file or directory"),
        ("no trust", "cannot read .*ca.pem: No such file or directory"),
        ("other key", "the key in .*server.key is not the one of the certificate in .*server.pem"),
        ("text for a certificate", "server.pem has no certificate in PEM"),
        ("text for a key", "server.key has no private key in PEM"),
        ("damaged key", "server.pem or .*server.key is damaged"),
        ("text for trust", "ca.pem has no certificate in PEM"),
        ("locked key", "server.key needs a password: write the key without one"),
    ],
)
def test_files_that_cannot_be_used_are_told_in_one_line(
    tmp_path: Path, breakage: str, reason: str
) -> None:
    authority = Authority(tmp_path)
    files = authority.issue("server")
    match breakage:
        case "no certificate":
            files.certificate.unlink()
        case "no key":
            files.key.unlink()
        case "no trust":
            files.trust.unlink()
        case "other key":
            shutil.copy(authority.issue("other").key, files.key)
        case "text for a certificate":
            files.certificate.write_text("hello")
        case "text for a key":
            files.key.write_text("hello")
        case "damaged key":
            files.key.write_text(files.key.read_text().replace("M", "N"))
        case "text for trust":
            files.trust.write_text("hello")
        case "locked key":
            lock(files.key)
    with pytest.raises(OperatorError, match=rf"^\[\[listener\]\] A: .*{reason}") as raised:
        ServerTls(settings_of(files, client_certificates="required"))
    assert "\n" not in str(raised.value)


def lock(key: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    loaded = serialization.load_pem_private_key(key.read_bytes(), None)
    key.write_bytes(
        loaded.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )

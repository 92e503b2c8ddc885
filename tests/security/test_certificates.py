"""Names in certificates are written as Kafka writes them. Source: RFC 2253; Java's
X500Principal.getName, whose results stand here."""

import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from strandline.security import certificates
from strandline.security.authority import Authority
from strandline.security.certificates import (
    distinguished_name,
    host_names,
    is_named,
    not_after_ms,
    uri_names,
)

EMAIL_DER = "160f64756b65406f72672e6578616d706c65"


def der_of(file: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(file.read_text())


@pytest.mark.parametrize(
    "subject",
    ["CN=Duke", "CN=Duke,OU=ServiceUsers,O=Org,C=US", "CN=a b,OU=x,OU=y,O=z", "CN=Zoë,L=Köln"],
)
def test_a_name_begins_with_its_most_specific_part(tmp_path: Path, subject: str) -> None:
    files = Authority(tmp_path).issue("one", subject=subject)
    assert distinguished_name(der_of(files.certificate)) == subject


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ([(NameOID.COMMON_NAME, 'a,b+c"d\\e<f>g;h=i')], 'CN=a\\,b\\+c\\"d\\\\e\\<f\\>g\\;h=i'),
        ([(NameOID.COMMON_NAME, " a "), (NameOID.USER_ID, "#1")], "UID=\\#1,CN=\\ a\\ "),
        (
            [(NameOID.COMMON_NAME, "x"), (NameOID.EMAIL_ADDRESS, "duke@org.example")],
            f"1.2.840.113549.1.9.1=#1610{b'duke@org.example'.hex()},CN=x",
        ),
        ([(NameOID.SERIAL_NUMBER, "x" * 60)], f"2.5.4.5=#133c{b'x'.hex() * 60}"),
        ([(NameOID.SURNAME, "x" * 200)], f"2.5.4.4=#0c81c8{b'x'.hex() * 200}"),
    ],
)
def test_special_characters_and_attributes_are_written_as_java_does(
    monkeypatch: pytest.MonkeyPatch, attributes: list[tuple[x509.ObjectIdentifier, str]], text: str
) -> None:
    class Certificate:
        subject = x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])

    monkeypatch.setattr(certificates.x509, "load_der_x509_certificate", lambda _: Certificate)
    assert distinguished_name(b"") == text


def test_uris_and_hosts_of_a_certificate_are_found(tmp_path: Path) -> None:
    files = Authority(tmp_path).issue(
        "one", dns=("B1.example", "*.east.example"), uris=("strandline://c/broker/1",)
    )
    assert uri_names(der_of(files.certificate)) == ("strandline://c/broker/1",)
    assert host_names(files.certificate) == ("b1.example", "*.east.example")
    bare = Authority(tmp_path, "other").issue("two", dns=(), ips=())
    assert uri_names(der_of(bare.certificate)) == ()
    assert host_names(bare.certificate) == ()


@pytest.mark.parametrize(
    ("host", "is_for"),
    [
        ("b1.example", True),
        ("B1.EXAMPLE.", True),
        ("x.east.example", True),
        ("x.y.east.example", False),
        ("east.example", False),
        ("", False),
    ],
)
def test_a_star_stands_for_one_label(host: str, is_for: bool) -> None:
    assert is_named(host, ("b1.example", "*.east.example")) is is_for


def test_the_end_of_a_certificate_is_read(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    later = not_after_ms(authority.issue("a", days=20).certificate)
    sooner = not_after_ms(authority.issue("b", days=10).certificate)
    assert later - sooner == pytest.approx(10 * 86_400_000, abs=60_000)

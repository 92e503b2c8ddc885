"""An authority of one's own, and the certificates that it issues, as PEM files.

Why:    a development cluster and the tests have TLS without a company's authority.
Owns:   its key: in memory, and in `NAME.key` of its directory, which no other user may read.
Source: RFC 5280; decision 0069."""

import datetime
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_OIDS = {
    "CN": NameOID.COMMON_NAME,
    "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "O": NameOID.ORGANIZATION_NAME,
    "L": NameOID.LOCALITY_NAME,
    "ST": NameOID.STATE_OR_PROVINCE_NAME,
    "C": NameOID.COUNTRY_NAME,
}


@dataclass(frozen=True)
class Files:
    """A certificate with its key, and the authority's certificate."""

    certificate: Path
    key: Path
    trust: Path


class Authority:
    """Issues certificates into a directory; it is the same one again if its files are there."""

    def __init__(self, directory: Path, name: str = "ca") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._name = _name(f"CN={name}")
        self.trust = directory / f"{name}.pem"
        key_file = directory / f"{name}.key"
        if self.trust.exists() and key_file.exists():
            known = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
            assert isinstance(known, ec.EllipticCurvePrivateKey)
            self._key = known
            return
        self._key = ec.generate_private_key(ec.SECP256R1())
        own = _builder(self._name, self._name, self._key.public_key(), days=3_650)
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        own = own.add_extension(_usage(is_authority=True), critical=True)
        own = own.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
        )
        _write_key(key_file, self._key)
        self.trust.write_bytes(_pem(own.sign(self._key, hashes.SHA256())))

    def issue(
        self,
        name: str,
        *,
        subject: str = "",
        dns: tuple[str, ...] = ("localhost",),
        ips: tuple[str, ...] = ("127.0.0.1",),
        uris: tuple[str, ...] = (),
        days: int = 365,
    ) -> Files:
        """A certificate with its key in `name.pem` and `name.key`. `subject`: "CN=a,O=b"; with
        negative `days` it has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(subject or f"CN={name}"), self._name, key.public_key(), days=days)
        names: list[x509.GeneralName] = [x509.DNSName(one) for one in dns]
        names += [x509.IPAddress(ipaddress.ip_address(one)) for one in ips]
        names += [x509.UniformResourceIdentifier(one) for one in uris]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
            critical=False,
        )
        certificate = self._directory / f"{name}.pem"
        certificate.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        key_file = self._directory / f"{name}.key"
        _write_key(key_file, key)
        return Files(certificate, key_file, self.trust)


def _name(text: str) -> x509.Name:
    """The name of "CN=a,O=b": the most specific part first, as RFC 4514 writes it."""
    parts = [part.partition("=") for part in text.split(",")]
    return x509.Name([x509.NameAttribute(_OIDS[kind], value) for kind, _, value in reversed(parts)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    end = now + datetime.timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, end) - datetime.timedelta(days=1))
        .not_valid_after(end)
    )


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    data = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)

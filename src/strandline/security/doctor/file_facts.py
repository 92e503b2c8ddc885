"""What the disk says of the files that a broker's file names.

Why:    findings are pure; this is the only part that reads.
Owns:   nothing.
Source: docs/operating/security.md, "What is open"."""

import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa

from strandline.base.errors import OperatorError
from strandline.config.broker import BrokerConfig
from strandline.model.access import ScramSecret
from strandline.security.sasl.users_file import read_users_file

RSA_BITS_MIN = 2048
CURVE_BITS_MIN = 256


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """One certificate of a PEM file. `weakness`: why its key or signature is weak, or empty."""

    subject: str
    ends_at_ms: int
    weakness: str = ""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """`modes`: {path: its permission bits}, of what is there. `certificates`: {path: those in it}.
    `users`: those of the users file. `unread`: {path: why it could not be read}."""

    modes: dict[str, int] = field(default_factory=dict)
    certificates: dict[str, tuple[CertificateFacts, ...]] = field(default_factory=dict)
    users: tuple[ScramSecret, ...] = ()
    unread: dict[str, str] = field(default_factory=dict)


def read_facts(config: BrokerConfig, file: Path) -> FileFacts:
    """The facts of a broker's file; `file`: where it is."""
    facts: dict[str, tuple[CertificateFacts, ...]] = {}
    unread: dict[str, str] = {}
    for path in certificate_files(config):
        try:
            facts[path] = tuple(read_certificates(Path(path)))
        except OSError as error:
            unread[path] = error.strerror or str(error)
        except ValueError:
            unread[path] = "has no certificate in PEM"
    users: tuple[ScramSecret, ...] = ()
    if config.access.users_file:
        try:
            users = tuple(read_users_file(Path(config.access.users_file)).values())
        except OperatorError as error:
            unread[config.access.users_file] = str(error).partition(": ")[2] or str(error)
    return FileFacts(_modes((str(file), *secret_files(config))), facts, users, unread)


def certificate_files(config: BrokerConfig) -> tuple[str, ...]:
    """The files of certificates that it shows or trusts, each once."""
    found = [config.rpc.certificate, config.rpc.trust]
    found += [config.metrics.certificate, config.metrics.trust]
    for entry in config.listener_entries:
        found += [entry.certificate, entry.trust]
        found += [one.partition("=")[0] for one in entry.more_certificates]
    return tuple(dict.fromkeys(one for one in found if one))


def key_files(config: BrokerConfig) -> tuple[str, ...]:
    """The files of private keys, each once."""
    found = [config.rpc.private_key, config.metrics.private_key]
    for entry in config.listener_entries:
        found.append(entry.private_key)
        found += [one.partition("=")[2] for one in entry.more_certificates]
    return tuple(dict.fromkeys(one for one in found if one))


def secret_files(config: BrokerConfig) -> tuple[str, ...]:
    """Files and directories that only the broker's user should reach."""
    others = (
        config.broker.data_directory,
        config.access.users_file,
        config.access.audit_file,
        config.tiered.credentials_file,
        config.metrics.tokens_file,
    )
    return (*key_files(config), *(one for one in others if one))


def read_certificates(file: Path) -> Iterator[CertificateFacts]:
    """The certificates of a PEM file. Raises OSError, ValueError."""
    for one in x509.load_pem_x509_certificates(file.read_bytes()):
        yield CertificateFacts(
            one.subject.rfc4514_string(),
            int(one.not_valid_after_utc.timestamp() * 1000),
            weakness_of(one),
        )


def weakness_of(certificate: x509.Certificate) -> str:
    """Why a certificate's key or signature is weak; empty if it is not. The signature of an
    authority on itself proves nothing, whatever it is made of."""
    key = certificate.public_key()
    if isinstance(key, rsa.RSAPublicKey | dsa.DSAPublicKey) and key.key_size < RSA_BITS_MIN:
        return f"has a key of {key.key_size} bits"
    if isinstance(key, ec.EllipticCurvePublicKey) and key.key_size < CURVE_BITS_MIN:
        return f"has a key of {key.key_size} bits on its curve"
    is_own = certificate.issuer == certificate.subject
    hash_ = certificate.signature_hash_algorithm
    if isinstance(hash_, hashes.SHA1 | hashes.MD5) and not is_own:
        return f"is signed with {hash_.name.upper()}"
    return ""


def _modes(paths: Iterable[str]) -> dict[str, int]:
    modes: dict[str, int] = {}
    for path in paths:
        try:
            modes[path] = stat.S_IMODE(Path(path).stat().st_mode)
        except OSError:
            continue
    return modes

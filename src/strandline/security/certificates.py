"""What a certificate says: its names, the principal's name, and until when it holds.

Why:    principals, brokers' identities and alarms about expiry come from certificates, and rules
        match a name's text, so it is written as Kafka writes it.
How:    A name is written by RFC 2253, as Java does: the most specific part first; attributes
        without a short name there as their number and `#` with the value's bytes in hexadecimal.
Owns:   nothing.
Source: RFC 2253 and 5280; Java's X500Principal.getName; docs/decisions/0069-access.md."""

from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

_SHORT_NAMES = {
    NameOID.COMMON_NAME: "CN",
    NameOID.LOCALITY_NAME: "L",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.COUNTRY_NAME: "C",
    NameOID.STREET_ADDRESS: "STREET",
    NameOID.DOMAIN_COMPONENT: "DC",
    NameOID.USER_ID: "UID",
}
_ESCAPED = frozenset(',+"\\<>;')
_LONG_LENGTH = 0x80


def distinguished_name(der: bytes) -> str:
    """The subject's name of a certificate in DER. Raises ValueError if that cannot be read."""
    subject = x509.load_der_x509_certificate(der).subject
    return ",".join(
        "+".join(_attribute(one) for one in part) for part in reversed(list(subject.rdns))
    )


def uri_names(der: bytes) -> tuple[str, ...]:
    """The URIs among the subject's alternative names. Raises ValueError."""
    try:
        names = x509.load_der_x509_certificate(der).extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
    except x509.ExtensionNotFound:
        return ()
    return tuple(names.value.get_values_for_type(x509.UniformResourceIdentifier))


def host_names(file: Path) -> tuple[str, ...]:
    """The host names of the first certificate in a PEM file, in small letters. Raises OSError,
    ValueError."""
    try:
        names = _first(file).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return ()
    return tuple(one.lower() for one in names.value.get_values_for_type(x509.DNSName))


def der_of(file: Path) -> bytes:
    """The first certificate in a PEM file, in DER. Raises OSError, ValueError."""
    return _first(file).public_bytes(Encoding.DER)


def not_after_ms(file: Path) -> int:
    """Until when the first certificate in a PEM file holds, in milliseconds since 1970. Raises
    OSError, ValueError."""
    return int(_first(file).not_valid_after_utc.timestamp() * 1000)


def is_named(host: str, names: tuple[str, ...]) -> bool:
    """Whether a certificate with these host names is for a host; `*.example` is for one label."""
    host = host.lower().rstrip(".")
    _, dot, parent = host.partition(".")
    return host in names or (bool(dot) and f"*.{parent}" in names)


def _first(file: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificates(file.read_bytes())[0]


def _attribute(attribute: x509.NameAttribute[str | bytes]) -> str:
    short = _SHORT_NAMES.get(attribute.oid)
    if short is None or isinstance(attribute.value, bytes):
        return f"{attribute.oid.dotted_string}=#{_value_der(attribute).hex()}"
    return f"{short}={_escape(attribute.value)}"


def _escape(value: str) -> str:
    text = "".join(f"\\{one}" if one in _ESCAPED else one for one in value)
    if text[:1] in (" ", "#"):
        text = f"\\{text}"
    if len(text) > 1 and text.endswith(" "):
        text = f"{text[:-1]}\\ "
    return text


def _value_der(attribute: x509.NameAttribute[str | bytes]) -> bytes:
    """The value as it stands in the certificate: the name of this attribute alone is a sequence of
    sets of sequences of its number and the value."""
    der = x509.Name([attribute]).public_bytes()
    for _ in range(3):
        der = der[_content_start(der) :]
    return der[_content_start(der) + _content_size(der) :]


def _content_start(der: bytes) -> int:
    return 2 if der[1] < _LONG_LENGTH else 2 + der[1] - _LONG_LENGTH


def _content_size(der: bytes) -> int:
    if der[1] < _LONG_LENGTH:
        return der[1]
    return int.from_bytes(der[2 : _content_start(der)], "big")

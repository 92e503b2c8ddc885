"""What else than a Kafka broker may have answered, by the first bytes.

Why:    a wrong port is the usual mistake; "an answer of 1213486160 bytes" names nothing to mend.
Source: RFC 9112 (HTTP), RFC 8446 (TLS records), RFC 4253 (SSH); STYLE, "Errors"."""

_HTTP = "HTTP answers there: it may be the port of a console or of metrics"
_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"HTTP", _HTTP),
    (b"<!DO", _HTTP),
    (b"<htm", _HTTP),
    (b"<HTM", _HTTP),
    (b"\x15\x03", "TLS answers there: it expects an encrypted connection"),
    (b"\x16\x03", "TLS answers there: it expects an encrypted connection"),
    (b"SSH-", "SSH answers there"),
    (b"-ERR", "Redis answers there"),
    (b"-NOA", "Redis answers there"),
    (b"RFB ", "VNC answers there"),
    (b"220", "a mail or FTP server answers there"),
)


def what_answered(beginning: bytes) -> str | None:
    """Who answers with these first bytes, as words; None where they may be an answer's size."""
    for known, told in _BEGINNINGS:
        if beginning.startswith(known):
            return told
    if all(32 <= byte < 127 or byte in b"\r\n\t" for byte in beginning):
        return f"text answers there, beginning with {beginning.decode()!a}"
    return None

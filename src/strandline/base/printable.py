"""Text that others have named, as it may be shown: nothing in it steers a terminal or a reader.

Why:    a client id, a group or a principal may have escape sequences that rewrite a terminal, line
        breaks that forge a line of a log, or marks that reverse the text after them.
How:    control characters (C0, C1), line and paragraph separators, marks of direction, characters
        without width, tags and lone surrogates become escapes as `\\x1b` or `\\u202e`.
Owns:   nothing.
Source: Unicode 15, sections 23.1 to 23.9; ECMA-48; decision 0069."""

import re

_STEERING = (
    "\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
_ANY = re.compile(f"[{_STEERING}]")
_NO_BREAKS = re.compile(f"(?![\n\t])[{_STEERING}]")
_BMP_END, _BYTE_END = 0x10000, 0x100


def printable(text: str, *, keeps_breaks: bool = False) -> str:
    """The text with escapes. `keeps_breaks`: line breaks and tabs are the program's own."""
    if text.isascii() and text.isprintable():
        return text
    return (_NO_BREAKS if keeps_breaks else _ANY).sub(_escape, text)


def printable_json(text: str) -> str:
    """A JSON document, with the escapes of JSON: it says the same. Line breaks between its values
    stay."""
    return _NO_BREAKS.sub(_escape_json, text)


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    if number < _BYTE_END:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < _BMP_END else f"\\U{number:08x}"


def _escape_json(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))

"""`KEY=VALUE` settings from the command line."""

from collections.abc import Sequence

from strandline.base.errors import OperatorError


def parse_settings(words: Sequence[str], *, option: str) -> dict[str, str]:
    """`KEY=VALUE` words as a mapping; the later of two equal keys wins."""
    settings: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key.strip() or not equals:
            raise OperatorError(f"{option} {word}: expected KEY=VALUE")
        settings[key.strip()] = value.strip()
    return settings

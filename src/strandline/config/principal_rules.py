r"""Turns the name in a client's certificate into the name of a principal, by rules.

Why:    rules and quotas name users; certificates have names like `CN=app,OU=orders,O=us`.
How:    Kafka's syntax, rules with commas between:
            DEFAULT                     the whole name
            RULE:pattern/replacement/   if the pattern matches the whole name; $1 is a group
            RULE:pattern/replacement/L  and in small letters; U: in capitals
        The first rule that matches decides. In both parts `\/` is a slash.
Owns:   nothing.
Source: Kafka's SslPrincipalMapper (KIP-371) and `ssl.principal.mapping.rules`."""

import re
from dataclasses import dataclass

from strandline.config.keys import Value

DEFAULT = "DEFAULT"
_PART = r"((?:\\.|[^\\/])*)"
_RULE = re.compile(rf"\s*(?:(DEFAULT)|RULE:{_PART}/{_PART}/([LU]?))\s*(?:,|$)", re.DOTALL)
_REFERENCE = re.compile(r"\\(.)|\$([0-9])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Rule:
    """A pattern for a whole name, and what the name becomes; no pattern: it stays as it is."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """The name that it becomes, None if the pattern does not match."""
        if self.pattern is None:
            return name
        match = self.pattern.fullmatch(name)
        if match is None:
            return None
        made = _REFERENCE.sub(lambda found: _referred(match, found), self.replacement)
        if self.case:
            return made.lower() if self.case == "L" else made.upper()
        return made


class PrincipalRules:
    """The rules of one listener. Raises ValueError with the reason if the text is no rules."""

    def __init__(self, text: str = DEFAULT) -> None:
        self._rules: list[_Rule] = []
        position = 0
        text = text.strip() or DEFAULT
        while position < len(text):
            found = _RULE.match(text, position)
            if found is None:
                raise ValueError(
                    f"must be DEFAULT, or RULE:pattern/replacement/ with L or U behind it, not "
                    f"{text[position:].strip()!r}"
                )
            self._rules.append(_rule(found))
            position = found.end()

    def principal_name(self, name: str) -> str | None:
        """The name of the principal for the name in a certificate; None if no rule matches."""
        for rule in self._rules:
            made = rule.apply(name)
            if made is not None:
                return made
        return None


def check_principal_rules(value: Value) -> str | None:
    """The reason why a text is no rules, or None."""
    try:
        PrincipalRules(str(value))
    except ValueError as error:
        return str(error)
    return None


def _rule(found: re.Match[str]) -> _Rule:
    is_default, pattern, replacement, case = found.groups()
    if is_default:
        return _Rule()
    try:
        return _Rule(re.compile(pattern), replacement, case)
    except re.error as error:
        raise ValueError(f"has the pattern {pattern!r}, which is wrong: {error}") from None


def _referred(match: re.Match[str], found: re.Match[str]) -> str:
    """What a `$1` or an escaped character in a replacement stands for. A number that is no group
    stands for itself."""
    escaped, number = found.groups()
    if escaped is not None:
        return str(escaped)
    if int(number) > (match.re.groups or 0):
        return found.group()
    return match.group(int(number)) or ""

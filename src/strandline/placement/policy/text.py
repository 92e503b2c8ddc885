"""A policy's text: JSON or YAML in, strictly, and canonical JSON out.

Why:    operators notice a misspelt field that is silently ignored only in the outage. This refuses
        it in one line that says what to write.
How:    YAML's safe loader without aliases (a short text could grow without bound), tags, and names
        given twice; JSON the same. msgspec then checks types; `checks.py` what types cannot say.
Source: decision 0008; STYLE, "Configuration"."""

import json
import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, TypeVar

import msgspec
import yaml

from strandline.base.errors import OperatorError
from strandline.placement.policy.checks import check_policy
from strandline.placement.policy.document import (
    Goal,
    LabelCount,
    Leaders,
    Policy,
    Residency,
    Rule,
    Selector,
    Spread,
)
from strandline.placement.policy.goals import read_goals

POLICY_CHARACTERS_MAX = 16_384
_FIELDS = [
    name
    for part in (Policy, Rule, Spread, Selector, LabelCount, Leaders, Residency, Goal)
    for name in part.__struct_fields__
]
_AT = re.compile(r" - at `\$\.?(.*?)`$")
_UNKNOWN = re.compile(r"unknown field `(.*?)`")
_encoder = msgspec.json.Encoder()
T = TypeVar("T")


def decode_policy(text: str, *, source: str = "placement.policy") -> Policy:
    """Read and check a policy; raises OperatorError: one line, beginning with `source`."""
    raw = read_document(text, source=source)
    try:
        if "survive" in raw:
            raw["survive"] = read_goals(raw["survive"])
        policy = msgspec.convert(raw, Policy)
        check_policy(policy)
    except msgspec.ValidationError as error:
        raise OperatorError(f"{source}: {_explain(str(error))}") from None
    except OperatorError as error:
        raise OperatorError(f"{source}: {error}") from None
    return policy


def encode_policy(policy: Policy) -> str:
    """The canonical text: JSON without spaces and defaults, fields in the document's order."""
    return _encoder.encode(policy).decode()


def read_document(
    text: str, *, source: str, characters_max: int = POLICY_CHARACTERS_MAX
) -> dict[str, Any]:
    """A JSON or YAML text as an object; raises OperatorError with one line."""
    if len(text) > characters_max:
        raise OperatorError(f"{source}: {len(text)} characters: write at most {characters_max}")
    try:
        raw = _read(text)
        # Refuses half characters (surrogates), which cannot be encoded again.
        _encoder.encode(raw)
    except RecursionError:
        raise OperatorError(f"{source}: is nested too deeply: write it flat") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise OperatorError(f"{source}: is neither JSON nor YAML: {_one_line(error)}") from None
    if not isinstance(raw, dict) or not all(isinstance(name, str) for name in raw):
        raise OperatorError(f"{source}: must be an object with names, like survive: region")
    return raw


def read_as(
    cls: type[T],
    text: str,
    *,
    source: str,
    example: str,
    strict: bool = True,
    characters_max: int = POLICY_CHARACTERS_MAX,
) -> T:
    """A JSON or YAML text as a `cls`; raises OperatorError with one line, `example` at its end."""
    document = read_document(text, source=source, characters_max=characters_max)
    try:
        return msgspec.convert(document, cls, strict=strict)
    except msgspec.ValidationError as error:
        raise OperatorError(f"{source}: {error}: write {example}") from None


def _read(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except json.JSONDecodeError:
        if text.lstrip().startswith('{"'):
            raise
    return yaml.load(text, _Loader)


def _once(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"gives {name[:80]!r} twice: keep one of them")
        found[name] = value
    return found


def _no_constant(word: str) -> object:
    raise ValueError(f"{word} is no number: write a whole number")


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Without aliases, tags, and names given twice."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark
            raise ValueError(f"has an alias in line {mark.line + 1}: write it out")
        event = self.peek_event()
        if getattr(event, "tag", None) is not None:
            raise ValueError(f"has a tag in line {event.start_mark.line + 1}: leave it out")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, *, deep: bool = False) -> dict[Any, Any]:
        names = [self.construct_object(name, deep=True) for name, _ in node.value]
        for name in names:
            if not isinstance(name, str):
                line = node.start_mark.line + 1
                raise ValueError(f"has the name {name!r} in line {line}: put it in quotes")
            if names.count(name) > 1:
                raise ValueError(f"gives {name[:80]!r} twice: keep one of them")
        found: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return found


def _one_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    text = getattr(error, "problem", None) or str(error)
    if mark is not None:
        text = f"{text} in line {mark.line + 1}"
    text = " ".join(str(text).split())
    return text if len(text) <= 200 else text[:197] + "..."


def _explain(message: str) -> str:
    at = _AT.search(message)
    place = at[1] if at else ""
    reason = _one_line(ValueError(_AT.sub("", message)))
    unknown = _UNKNOWN.search(reason)
    if unknown:
        close = get_close_matches(unknown[1], _FIELDS, n=1, cutoff=0.6)
        reason = f"unknown field {unknown[1]!r}"
        reason += f" (did you mean {close[0]}?)" if close else ": leave it out"
    elif reason.startswith("Expected `str`, got"):
        reason += ": put it in quotes"
    return f"{place}: {reason}" if place else reason

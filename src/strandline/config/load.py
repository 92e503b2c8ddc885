"""Reads a broker's configuration: the text of its file, overridden by the environment.

Why:    a misspelt key that is silently ignored shows only in production; the loader refuses it and
        suggests the nearest known name.
How:    STRANDLINE_SECTION__KEY in the environment wins over the file; a double underscore is a
        level (STRANDLINE_BROKER__LABELS__REGION). Each mistake becomes one line,
        `FILE: [section] key: reason`; `load_broker_config` raises the first and counts the rest.
Source: STYLE, "Configuration"."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from strandline.base.errors import OperatorError
from strandline.config.broker import ENTRIES, SECTIONS, BrokerConfig, section_field
from strandline.config.keys import Key, Value, ValueType, keys_of
from strandline.config.relations import broken_relations

ENVIRONMENT_PREFIX = "STRANDLINE_"
_ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class Mistake:
    """Something wrong: where (a file or "environment"), at which key ("" for the file), and why."""

    source: str
    place: str
    reason: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.source, self.place, self.reason) if part)


@dataclass(slots=True)
class _Reading:
    """The values read so far, {section: {key: value}}, and all mistakes in them."""

    values: dict[str, dict[str, Value]] = field(default_factory=dict)
    # Sections that stand several times: {section: [{key: value}]}, in the file's order.
    entries: dict[str, list[dict[str, Value]]] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)


_KEYS: dict[str, dict[str, Key]] = {
    section: {row.name: row for row in keys_of(body)} for section, body in SECTIONS.items()
}
_ENTRY_KEYS: dict[str, dict[str, Key]] = {
    section: {row.name: row for row in keys_of(body)} for section, body in ENTRIES.items()
}


def load_broker_config(
    text: str, *, file: str, environment: Mapping[str, str] | None = None
) -> BrokerConfig:
    """The configuration in `text`; raises OperatorError with one line for the first mistake."""
    config, mistakes = read_broker_config(text, file=file, environment=environment)
    if config is None:
        others = len(mistakes) - 1
        more = f" (and {others} more: `strandline config check {file}` lists all)" if others else ""
        raise OperatorError(f"{mistakes[0]}{more}")
    return config


def read_broker_config(
    text: str, *, file: str, environment: Mapping[str, str] | None = None
) -> tuple[BrokerConfig | None, list[Mistake]]:
    """The configuration in `text`, or None and every mistake in it, in the order of the file."""
    reading = _Reading()
    try:
        _read_table(tomllib.loads(text), "", file, reading)
    except tomllib.TOMLDecodeError as error:
        return None, [Mistake(file, "", f"is not TOML: {_one_line(str(error))}")]
    _read_environment(environment or {}, reading)
    _find_missing(file, reading)
    if reading.mistakes:
        return None, reading.mistakes
    sections = {
        section_field(section): body(**reading.values.get(section, {}))
        for section, body in SECTIONS.items()
    }
    for section, body in ENTRIES.items():
        entries = tuple(body(**values) for values in reading.entries.get(section, ()))
        sections[f"{section_field(section)}_entries"] = entries
    config = BrokerConfig(**sections)
    reading.mistakes += [Mistake(file, place, reason) for place, reason in broken_relations(config)]
    return (None if reading.mistakes else config), reading.mistakes


def _read_table(table: Mapping[str, object], section: str, source: str, reading: _Reading) -> None:
    for name, value in table.items():
        path = f"{section}.{name}" if section else name
        row = _KEYS.get(section, {}).get(name)
        if row is not None:
            try:
                _store(row, section, _native(row, value), reading)
            except ValueError as error:
                reading.mistakes.append(Mistake(source, f"[{section}] {name}", str(error)))
        elif isinstance(value, dict) and path in SECTIONS:
            _read_table(value, path, source, reading)
        elif isinstance(value, list) and path in ENTRIES:
            _read_entries(value, path, source, reading)
        elif isinstance(value, dict):
            reason = f"unknown section{_suggest(path, SECTIONS)}"
            reading.mistakes.append(Mistake(source, f"[{path}]", reason))
        else:
            reason = f"unknown key{_suggest_key(section, name)}"
            place = f"[{section}] {name}" if section else name
            reading.mistakes.append(Mistake(source, place, reason))


def _read_entries(entries: list[object], section: str, source: str, reading: _Reading) -> None:
    """Read a section that stands several times: [[section]]."""
    rows = _ENTRY_KEYS[section]
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict):
            reason = f"must be a section of its own: [[{section}]]"
            reading.mistakes.append(Mistake(source, section, reason))
            continue
        given = entry.get("name")
        place = f"[[{section}]] {given if isinstance(given, str) and given else number}"
        values: dict[str, Value] = {}
        wrong = set()
        for name, value in entry.items():
            row = rows.get(name)
            try:
                if row is None:
                    plain = f" (it belongs under [{section}]: here write bind or advertised)"
                    is_plain = name in _KEYS.get(section, {})
                    raise ValueError(f"unknown key{plain if is_plain else _suggest(name, rows)}")
                values[name] = _native(row, value)
                row.require(values[name])
            except ValueError as error:
                wrong.add(name)
                reading.mistakes.append(Mistake(source, f"{place} {name}", str(error)))
        for row in rows.values():
            if row.default is None and row.name not in values and row.name not in wrong:
                reason = f'is missing; give for example {row.name} = "{row.example}"'
                reading.mistakes.append(Mistake(source, f"{place} {row.name}", reason))
        reading.entries.setdefault(section, []).append(values)


def _read_environment(environment: Mapping[str, str], reading: _Reading) -> None:
    for variable in sorted(environment):
        if not variable.startswith(ENVIRONMENT_PREFIX) or "__" not in variable:
            continue
        path = variable.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")
        section, name = ".".join(path[:-1]), path[-1]
        row = _KEYS.get(section, {}).get(name)
        if row is None:
            known = {variable_name(s, k): None for s, rows in _KEYS.items() for k in rows}
            reason = f"unknown key{_suggest(variable, known)}"
            reading.mistakes.append(Mistake(_ENVIRONMENT, variable, reason))
            continue
        try:
            _store(row, section, row.parse(environment[variable]), reading)
        except ValueError as error:
            reading.mistakes.append(Mistake(_ENVIRONMENT, variable, str(error)))


def variable_name(section: str, name: str) -> str:
    """The environment variable that overrides a key."""
    return ENVIRONMENT_PREFIX + "__".join((*section.split("."), name)).upper()


def _store(row: Key, section: str, value: Value, reading: _Reading) -> None:
    row.require(value)
    reading.values.setdefault(section, {})[row.name] = value


def _native(row: Key, value: object) -> Value:
    """A TOML value as a configuration value; raises ValueError when it is of another type."""
    match row.type, value:
        case ValueType.BOOLEAN, bool():
            return value
        case ((ValueType.INT | ValueType.LONG), int()) if not isinstance(value, bool):
            return value
        case ValueType.STRING, str():
            return value
        case ValueType.LIST, list() if all(isinstance(part, str) for part in value):
            return tuple(value)
        case _:
            wanted = {
                ValueType.BOOLEAN: "true or false",
                ValueType.STRING: "a string in quotes",
                ValueType.LIST: "a list of strings",
            }.get(row.type, "a whole number")
            raise ValueError(f"must be {wanted}, not {_one_line(repr(value))}")


def _find_missing(file: str, reading: _Reading) -> None:
    wrong = {mistake.place for mistake in reading.mistakes}
    for section, rows in _KEYS.items():
        for row in rows.values():
            place = f"[{section}] {row.name}"
            given = row.name in reading.values.get(section, {})
            if row.default is None and not given and place not in wrong:
                example = row.example if row.example.isdigit() else f'"{row.example}"'
                if row.type is ValueType.LIST:
                    example = f"[{example}]"
                reason = f"is missing; give for example {row.name} = {example}"
                reading.mistakes.append(Mistake(file, place, reason))


def _suggest_key(section: str, name: str) -> str:
    if name in _ENTRY_KEYS.get(section, {}):
        return f" (it belongs under [[{section}]], which takes the place of [{section}])"
    close = _suggest(name, _KEYS.get(section, {}))
    owner = next((known for known, rows in _KEYS.items() if name in rows), None)
    return f" (it belongs under [{owner}])" if owner and not close else close


def _suggest(name: str, known: Mapping[str, object]) -> str:
    whole = [one for one in known if one.endswith(f"_{name}")]
    close = whole[:1] or get_close_matches(name, known, n=1, cutoff=0.6)
    return f" (did you mean {close[0]}?)" if close else ""


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 200 else text[:197] + "..."

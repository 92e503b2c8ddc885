"""Writes a row of Kafka's broker keys.

How:    a stored key can be set at run time, in Kafka and here; a fixed one cannot be set here.
Source: decision 0045."""

from strandline.config.keys import Key, Value, ValueType

BOOLEAN, STRING, INT, SHORT = ValueType.BOOLEAN, ValueType.STRING, ValueType.INT, ValueType.SHORT
LONG, DOUBLE, LIST = ValueType.LONG, ValueType.DOUBLE, ValueType.LIST
CLASS, PASSWORD = ValueType.CLASS, ValueType.PASSWORD


def fixed(name: str, type_: ValueType, default: Value | None, doc: str) -> Key:
    """A key that cannot be changed at run time; without a default it has no value."""
    return Key(name=name, type=type_, default=default, doc=doc)


def stored(
    name: str,
    type_: ValueType,
    default: Value | None,
    doc: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
) -> Key:
    """A key that is stored, and changes nothing."""
    return Key(
        name=name,
        type=type_,
        default=default,
        doc=f"{doc} The value is stored and changes nothing.",
        minimum=minimum,
        maximum=maximum,
        choices=choices,
        reloadable=True,
    )

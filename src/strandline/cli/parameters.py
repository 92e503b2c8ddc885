"""Reads plain options and arguments without pydantic.

Why:    Typer imports pydantic to turn texts into the types of parameters, which takes a quarter of
        the CPU time of `cluster status`, the first command in an outage.
How:    `read_plainly` puts `_reader` where Typer makes the readers of parameters. Texts, and
        numbers within their bounds, are read here. Every other type, and every value that is not
        plain, goes to Typer's own reader: it means the same, and its refusals read the same.
Source: docs/decisions/0046-cluster-status.md."""

import re
from dataclasses import dataclass
from math import inf
from typing import Any, get_args

import typer.core
from typer._coercion import RuntimeParam, TypeDescriptor, build_runtime_param

_WHOLE = re.compile(r"-?[0-9]{1,18}")
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
_PLAIN = (str, int, float, bool)


class _NotPlainError(Exception):
    """Typer has to read the value."""


@dataclass(frozen=True)
class PlainParam(RuntimeParam):
    """Reads a text, a number, or a list of either."""

    descriptor: TypeDescriptor

    def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
        annotation = self.annotation
        try:
            if annotation in _PLAIN:
                return self._read(annotation, value)
            (kind,) = get_args(annotation)
            if not isinstance(value, list | tuple):
                raise _NotPlainError
            return [self._read(kind, one) for one in value]
        except _NotPlainError:
            return build_runtime_param(self.descriptor)._coerce_value(value, param=param, ctx=ctx)

    def _read(self, kind: object, value: object) -> str | int | float:
        if kind is str or kind is bool:
            if isinstance(value, str if kind is str else bool):
                return value
            raise _NotPlainError
        form = _WHOLE if kind is int else _NUMBER
        if isinstance(value, str) and form.fullmatch(value):
            number: int | float = int(value) if kind is int else float(value)
        elif type(value) is int or (type(value) is float and kind is float):
            number = value if kind is int else float(value)
        else:
            raise _NotPlainError
        low, high = self.parameter_info.min, self.parameter_info.max
        if not (-inf if low is None else low) <= number <= (inf if high is None else high):
            raise _NotPlainError
        return number


def read_plainly() -> None:
    """Have Typer use `PlainParam` where it is enough; for this process."""
    vars(typer.core)["build_runtime_param"] = _reader


def _reader(descriptor: TypeDescriptor) -> RuntimeParam:
    annotation, told = descriptor.annotation, descriptor.parameter_info
    is_plain = annotation in _PLAIN or (
        descriptor.is_list and len(get_args(annotation)) == 1 and get_args(annotation)[0] in _PLAIN
    )
    if not is_plain or descriptor.is_path or descriptor.is_file or told.parser or told.clamp:
        return build_runtime_param(descriptor)
    return PlainParam(parameter_info=told, annotation=annotation, descriptor=descriptor)

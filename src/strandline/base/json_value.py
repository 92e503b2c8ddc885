"""The type of JSON values, for output that programs read: `--json`, pages over HTTP."""

from collections.abc import Sequence

Json = str | int | float | bool | None | Sequence["Json"] | dict[str, "Json"]

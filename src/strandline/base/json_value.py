"""What JSON can say, for what is told to programs: `--json`, pages over HTTP."""

from collections.abc import Sequence

Json = str | int | float | bool | None | Sequence["Json"] | dict[str, "Json"]

"""What the commands write: results on stdout, progress on stderr."""

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def screen() -> "Console":
    """Where progress is shown: stderr, so that results alone are on stdout."""
    from rich.console import Console

    return Console(stderr=True)


def write_json(content: dict[str, object]) -> None:
    """One JSON object as one line."""
    write_line(json.dumps(content))


def write_line(line: str) -> None:
    """One line of a result."""
    sys.stdout.write(line + "\n")

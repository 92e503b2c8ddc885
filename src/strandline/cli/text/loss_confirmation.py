"""The question before a loss is declared, and the name of the user that answers it.

Source: decision 0027."""

import sys
from dataclasses import dataclass

NOTHING_DONE = "nothing done; without --dry-run the command asks, and declares these losses"


@dataclass(frozen=True, slots=True)
class How:
    """What the options ask for: no question, no declaration, JSON."""

    is_sure: bool
    is_dry: bool
    as_json: bool


def confirm(expected: str) -> None:
    """Ask the operator to type this, the topic's name or a number of partitions; raises
    OperatorError if it is something else."""
    from strandline.base.errors import OperatorError

    sys.stderr.write(
        "A process of those brokers that still runs continues by itself: stop it. When those "
        f"brokers return, they drop their copies.\nType {expected} to continue: "
    )
    sys.stderr.flush()
    if sys.stdin.readline().strip() != expected:
        raise OperatorError(f"not {expected}: nothing done (--yes skips the question)")


def declaring_user() -> str:
    """The user who declares the loss, as USER@HOST."""
    import getpass
    import socket

    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = "unknown"
    return f"{name}@{socket.gethostname()}"

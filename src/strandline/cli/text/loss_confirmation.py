"""The question before a loss is declared, the name of the user that answers it, and the answer of
a cluster without a controller.

Source: decision 0027."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strandline.base.errors import StrandlineError
    from strandline.model.ids import BrokerId

_F = TypeVar("_F")
NOTHING_DONE = "nothing done; without --dry-run the command asks, and declares these losses"
NOTHING_YET = "nothing done; a loss can be declared once there is a controller"


@dataclass(frozen=True, slots=True)
class How:
    """What the options ask for: no question, no declaration, JSON."""

    is_sure: bool
    is_dry: bool
    as_json: bool


@dataclass(frozen=True, slots=True)
class Candidate(Generic[_F]):
    """A partition whose loss may be declared, with its forecast. `lost`: brokers given up by
    name."""

    topic: str
    partition: int
    lost: "tuple[BrokerId, ...]"
    forecast: _F

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


def confirm_all(candidates: "Sequence[Candidate[_F]]") -> None:
    """Ask once for all of them: for the topic's name, or for the number of partitions."""
    topics = {one.topic for one in candidates}
    confirm(topics.pop() if len(topics) == 1 else str(len(candidates)))


def not_now(error: "StrandlineError") -> "StrandlineError":
    """The same error, which says that no controller answers, with what can be done meanwhile."""
    from strandline.base.errors import OperatorError

    return OperatorError(
        f"{error}; until then no loss can be declared; --dry-run shows the offsets at risk by the "
        "logs that answer"
    )


def estimate_line(without: str) -> str:
    """The line below offsets that were not told by the controller. `without`: why it was not
    asked."""
    return (
        f"by the logs that answer here, not by the controller: {without}. It decides by the logs "
        "that it finds then"
    )


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

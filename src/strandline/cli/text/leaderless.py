"""What to type if a partition has no leader.

Why:    the error mentions an election, as Kafka's does, and clients wait for its end. If the voters
        left cannot elect a leader, it never ends; `replica status` shows this for each partition,
        and what helps."""

from collections.abc import Iterator
from contextlib import contextmanager

from strandline.base.errors import ApiError


@contextmanager
def point_to_status(topic: str) -> Iterator[None]:
    """Add the command to type to the error for a partition without a leader."""
    from strandline.cli.output import program
    from strandline.protocol.errors import Error

    try:
        yield
    except ApiError as error:
        if error.code != Error.LEADER_NOT_AVAILABLE:
            raise
        help_ = f"to see why, and what helps: {program()} replica status --topics {topic}"
        raise ApiError(error.code, f"{error}; {help_}") from error

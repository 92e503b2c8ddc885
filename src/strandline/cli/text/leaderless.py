"""What to type where nobody leads a partition.

Why:    the refusal speaks of an election, as Kafka's does, and clients wait for its end. Where the
        voters that are left cannot elect anybody there is no end, and `replica status` says so for
        each partition, and what helps."""

from collections.abc import Iterator
from contextlib import contextmanager

from strandline.base.errors import ApiError


@contextmanager
def point_to_status(topic: str) -> Iterator[None]:
    """Add what to type to the refusal of who found a partition without a leader to the end."""
    from strandline.cli.output import program
    from strandline.protocol.errors import Error

    try:
        yield
    except ApiError as error:
        if error.code != Error.LEADER_NOT_AVAILABLE:
            raise
        help_ = f"to see why, and what helps: {program()} replica status {topic}"
        raise ApiError(error.code, f"{error}; {help_}") from error

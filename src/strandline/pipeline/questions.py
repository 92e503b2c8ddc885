"""Questions to a table, as the command line asks them."""

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.base.errors import OperatorError


@dataclass(frozen=True, slots=True)
class MeanQuestion:
    """The mean of expression `of`, by each of the expressions `by`; Spark SQL over the table."""

    by: tuple[str, ...]
    of: str


def parse_question(by: Sequence[str], mean: str | None) -> MeanQuestion | None:
    """The question that --by and --mean ask together; None when there is neither."""
    if not by and mean is None:
        return None
    if not by or mean is None:
        raise OperatorError("--by and --mean: give both or neither")
    return MeanQuestion(tuple(by), mean)

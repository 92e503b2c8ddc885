"""`strandline pipeline aggregate`: means over a table, by group."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from strandline.base.errors import OperatorError
from strandline.pipeline.commands.options import (
    ByOption,
    ConfOption,
    JarsOption,
    JsonOption,
    MasterOption,
    MeanOption,
    TableArgument,
    session_options,
)
from strandline.pipeline.commands.output import screen, write_json
from strandline.pipeline.locations import existing_table
from strandline.pipeline.questions import MeanQuestion, parse_question
from strandline.pipeline.runtime.session import LOCAL_MASTER, open_session

if TYPE_CHECKING:
    from strandline.pipeline.aggregate import GroupMean


def aggregate(
    table: TableArgument,
    *,
    by: ByOption = None,
    mean: MeanOption = None,
    master: MasterOption = LOCAL_MASTER,
    jars: JarsOption = None,
    conf: ConfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Average columns of a table, by group: --by carrier --mean value.arr_delay."""
    location = existing_table(table)
    question = parse_question(by or (), mean)
    if question is None:
        raise OperatorError("nothing to count: give --by and --mean")
    session = session_options("aggregate", master=master, jars=jars, conf=conf)
    with screen().status("starting Spark") as status, open_session(session) as spark:
        from strandline.pipeline.aggregate import mean_by

        status.update(f"counting {table}")
        means = mean_by(spark, location, question)
    if as_json:
        write_json(means_json(question, means))
        return
    draw_means(question, means)


def means_json(question: MeanQuestion, means: Sequence["GroupMean"]) -> dict[str, object]:
    """The answer for programs."""
    groups = [asdict(each) for each in means]
    return {"by": question.by, "mean": question.of, "groups": groups}


def draw_means(question: MeanQuestion, means: Sequence["GroupMean"]) -> None:
    """The answer as a table on standard output."""
    from rich.console import Console
    from rich.table import Table

    drawn = Table(*question.by, title=f"mean of {question.of}")
    for name in ("mean", "values", "rows"):
        drawn.add_column(name, justify="right")
    for each in means:
        shown = "-" if each.mean is None else f"{each.mean:.6f}"
        names = ("-" if part is None else part for part in each.group)
        drawn.add_row(*names, shown, f"{each.values:,}", f"{each.rows:,}")
    Console().print(drawn)

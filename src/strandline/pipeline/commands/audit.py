"""`strandline pipeline audit`: whether all replicas, and all buckets, hold the same records."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.errors import OperatorError, StrandlineError
from strandline.client.buckets.options import BucketOptions, bucket_options
from strandline.client.errors import CannotConnectError
from strandline.pipeline.audit.job import RANGE_BYTES, Audit, AuditOptions, Progress
from strandline.pipeline.audit.report import render_report
from strandline.pipeline.audit.results import AuditResult, Verdict
from strandline.pipeline.audit.runners import SparkRunner, ThreadRunner
from strandline.pipeline.audit.table import check_directory, write_table
from strandline.pipeline.audit.text import as_json as result_json
from strandline.pipeline.audit.text import lines_of
from strandline.pipeline.commands.options import (
    BootstrapOption,
    BucketCredentialsOption,
    BucketsOption,
    ConfOption,
    JarsOption,
    JsonOption,
    find_cluster,
    session_options,
)
from strandline.pipeline.commands.output import screen, write_json, write_line
from strandline.pipeline.reports.page import check_writable, write_page
from strandline.pipeline.runtime.session import is_submitted, open_session

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

EXIT_CODES = {Verdict.EQUAL: 0, Verdict.DIFFERENT: 1, Verdict.INCOMPLETE: 3}
REFUSED = 2
"""The audit did not begin: bad options, or a topic that does not exist."""
NO_MASTER = ""


def audit(
    context: typer.Context,
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC]...", help="Topics; default: all.")
    ] = None,
    *,
    bootstrap: BootstrapOption = "",
    include_internal: Annotated[
        bool, typer.Option("--include-internal", help="Internal topics too.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(help="Write the result as one HTML page.", metavar="FILE")
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(help="Add a Parquet file with all ranges to a directory.", metavar="DIR"),
    ] = None,
    from_disk: Annotated[
        bool,
        typer.Option(
            "--from-disk", help="Evict closed segments from the brokers' page caches first."
        ),
    ] = False,
    wait_ms: Annotated[
        int, typer.Option(min=0, help="How long replicas may take to catch up.")
    ] = 10_000,
    timeout_ms: Annotated[
        int, typer.Option(min=100, help="How long a broker may be silent.")
    ] = 30_000,
    range_bytes: Annotated[
        int, typer.Option(min=1024, help="About how much of a log one digest covers.")
    ] = RANGE_BYTES,
    buckets: BucketsOption = None,
    bucket_credentials: BucketCredentialsOption = "",
    master: Annotated[
        str,
        typer.Option("--master", help="Ask from the executors of a Spark cluster.", metavar="URL"),
    ] = NO_MASTER,
    jars: JarsOption = None,
    conf: ConfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare all replicas by digests, and with --buckets what buckets hold; exit code 0: equal,
    1: different, 3: incomplete."""
    try:
        options = AuditOptions(
            **find_cluster(context, bootstrap).words,
            topics=tuple(dict.fromkeys(topics or ())),
            with_internal=include_internal,
            from_disk=from_disk,
            wait_ms=wait_ms,
            timeout_ms=timeout_ms,
            range_bytes=range_bytes,
            buckets=_read_buckets(buckets, bucket_credentials),
        )
        if report is not None:
            check_writable(report)
        if table is not None:
            check_directory(table)
        result = _run(options, master=master, jars=jars, conf=conf)
        if report is not None:
            write_page(report, render_report(result))
        written = None if table is None else write_table(result, table)
    except CannotConnectError as error:
        _fail(error, EXIT_CODES[Verdict.INCOMPLETE])
    except StrandlineError as error:
        _fail(error, REFUSED)
    _tell(result, [one for one in (report, written) if one is not None], as_json=as_json)
    raise typer.Exit(EXIT_CODES[result.verdict])


def _read_buckets(buckets: str | None, credentials_file: str) -> BucketOptions | None:
    """What --buckets and --bucket-credentials say. Raises OperatorError."""
    if buckets is None:
        if credentials_file:
            raise OperatorError("--bucket-credentials is for --buckets: give that, too")
        return None
    return bucket_options("bucket", buckets, credentials_file)


def _tell(result: AuditResult, files: Sequence[Path], *, as_json: bool) -> None:
    if as_json:
        write_json(result_json(result))
        return
    for line in lines_of(result):
        write_line(line)
    for file in files:
        write_line(f"wrote {file}")


def _run(
    options: AuditOptions, *, master: str, jars: Path | None, conf: list[str] | None
) -> AuditResult:
    if master == NO_MASTER and not is_submitted():
        if conf or jars:
            raise OperatorError("--conf and --jars are for Spark: give --master, too")
        with _progress() as progress:
            return Audit(options, ThreadRunner(options.access), progress).run()
    session = session_options("audit", master=master, jars=jars, conf=conf)
    with _progress() as progress:
        progress.on_step("starting Spark")
        with open_session(session) as spark:
            return Audit(options, SparkRunner(spark, options.access), progress).run()


def _fail(error: StrandlineError, code: int) -> None:
    for line in (f"error: {error}", *error.details):
        sys.stderr.write(f"{line}\n")
    raise typer.Exit(code)


class _Shown:
    """A bar on the terminal."""

    def __init__(self, bars: "Bars") -> None:
        self._bars = bars
        self._bar = bars.add_task("", total=None)
        self._total = 0

    def on_planned(self, size_bytes: int) -> None:
        """See `Progress`."""
        self._total += size_bytes
        self._bars.update(self._bar, total=self._total)

    def on_digested(self, size_bytes: int) -> None:
        """See `Progress`."""
        self._bars.advance(self._bar, size_bytes)

    def on_step(self, what: str) -> None:
        """See `Progress`."""
        self._bars.update(self._bar, description=what)


@contextmanager
def _progress() -> Iterator[Progress]:
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=screen(), transient=True) as bars:
        yield _Shown(bars)

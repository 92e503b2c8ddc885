"""How the demo looks: acts with headlines, two bars, and a last table of checks."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.table import Table

from demo.checks import Check
from demo.cluster import ROUND_TRIPS, Cluster

PLAIN_INTERVAL_S = 5.0


class Screen:
    """Everything that is printed."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._begun = time.monotonic()
        self._act = 0

    def act(self, headline: str) -> None:
        """A new act, with the time since the demo began."""
        self._act += 1
        elapsed = time.monotonic() - self._begun
        self._console.print()
        self._console.print(
            Rule(f"[bold]{self._act}. {headline}[/]  [dim]{elapsed:.0f} s[/]", align="left")
        )

    def say(self, line: str) -> None:
        self._console.print(line, soft_wrap=True)

    def fail(self, line: str) -> None:
        self._console.print(f"[bold red]✗[/] {line}", soft_wrap=True)

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        with self._console.status(what):
            yield

    def show_cluster(self, cluster: Cluster) -> None:
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
        for title in ("region", "broker", "Kafka address", "process"):
            table.add_column(title)
        for broker in sorted(cluster.brokers.values(), key=lambda each: (each.region, each.id)):
            table.add_row(broker.region, str(broker.id), broker.address, str(broker.pid))
        self._console.print(table)
        trips = ROUND_TRIPS.replace("=", " ").replace(",", " ms, ")
        self._console.print(f"[dim]injected round trips: {trips} ms[/]")

    @contextmanager
    def stream(self, total: int) -> Iterator["StreamBars"]:
        progress = Progress(
            TextColumn("{task.description:>13}"),
            BarColumn(40),
            TextColumn("{task.completed:>9,.0f}"),
            TimeElapsedColumn(),
            console=self._console,
        )
        with progress:
            yield StreamBars(progress, total, plain=not self._console.is_terminal)

    def show_means(self, spark: Mapping[str, float], pandas: Mapping[str, float]) -> None:
        table = Table(title="mean arrival delay in minutes", title_justify="left")
        table.add_column("carrier")
        table.add_column("Spark, from the table", justify="right")
        table.add_column("pandas, from the data", justify="right")
        for carrier in sorted(spark.keys() | pandas.keys()):
            row = (means.get(carrier) for means in (spark, pandas))
            table.add_row(carrier, *("-" if mean is None else f"{mean:.9f}" for mean in row))
        self._console.print(table)

    def show_figures(self, figures: Mapping[str, str]) -> None:
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=False)
        for name, figure in figures.items():
            table.add_row(name, f"[bold]{figure}[/]")
        self._console.print(table)

    def show_checks(self, checks: Sequence[Check]) -> None:
        table = Table()
        table.add_column("")
        table.add_column("promise")
        table.add_column("found")
        for check in checks:
            mark = "[green]✓[/]" if check.held else "[bold red]✗[/]"
            table.add_row(mark, check.promise, check.figures)
        self._console.print(table)


class StreamBars:
    """Flights acknowledged and read so far; plain lines where there is no terminal."""

    def __init__(self, progress: Progress, total: int, *, plain: bool) -> None:
        self._progress = progress
        self._acknowledged: TaskID = progress.add_task("acknowledged", total=total)
        self._read: TaskID = progress.add_task("read", total=total)
        self._plain = plain
        self._said = time.monotonic()

    def update(self, *, acknowledged: int, read: int) -> None:
        self._progress.update(self._acknowledged, completed=acknowledged)
        self._progress.update(self._read, completed=read)
        now = time.monotonic()
        if self._plain and now - self._said > PLAIN_INTERVAL_S:
            self._said = now
            self._progress.console.print(f"   {acknowledged:,} acknowledged, {read:,} read")

    def say(self, line: str) -> None:
        self._progress.console.print(line)

"""`make demo`: real flights cross three regions, one region dies, and nothing acknowledged is lost.

How:    nine acts; each announces its work and does it, with real processes on this machine. Exit
        code 0 only if every check of the last act held. KEEP=1 leaves the cluster up, DIR=... keeps
        everything in this directory (else a temporary one, removed at the end)."""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy
import pandas

from demo import lake, reports
from demo.checks import Evidence, run_checks
from demo.clients import Clients
from demo.cluster import (
    STRANDLINE,
    Cluster,
    DemoError,
    create_topic,
    start_cluster,
    stop_cluster,
    strandline,
)
from demo.flights import load_flights, mean_delay_by_carrier, write_json_lines
from demo.history import tell_history
from demo.ledger import count_entries, places, read_entries
from demo.loss import RegionLoss
from demo.producer import TOPIC, ProducerReport
from demo.reports import Lag
from demo.screen import Screen

PARTITIONS = 6
REPLICAS = 5
STREAM_S = 45.0
KILL_AT_RATIO = 0.4
DRAIN_TIMEOUT_S = 60.0
LOOK_INTERVAL_S = 0.2


@dataclass(frozen=True, slots=True)
class Streamed:
    """What the clients saw; entries as in ledger.py."""

    acknowledged: numpy.ndarray
    read: numpy.ndarray
    reports: list[ProducerReport]
    lag: Lag


def play(work: Path, screen: Screen) -> bool:
    """All acts. Whether every check held."""
    screen.act("A cluster of five brokers in three regions")
    cluster, flights = set_up(work, screen)
    screen.show_cluster(cluster)

    screen.act(f"{len(flights):,} flights from three producers, one in each region")
    create_topic(cluster, TOPIC, partitions=PARTITIONS, replicas=REPLICAS)
    screen.say(
        f"topic [bold]{TOPIC}[/]: {PARTITIONS} partitions, {REPLICAS} replicas each;"
        " a write is acknowledged when 3 of the 5 have it on disk"
    )
    clients = Clients(cluster, work)
    try:
        streamed = stream(cluster, clients, screen, work=work, total=len(flights))
    finally:
        clients.end()
    show_waiting(streamed, screen)

    screen.act("Spark turns the topic into a lake table, exactly once")
    table = work / "lake" / TOPIC
    with screen.waiting("strandline pipeline lake: from the topic into the table"):
        filled = lake.fill_lake(cluster, table, scratch=work / "spark")
    screen.say(f"{filled.rows:,} rows in {filled.files} files of {table}")
    pandas_means = mean_delay_by_carrier(flights)
    screen.show_means(filled.mean_delays, pandas_means)

    screen.act("Every replica is compared with the others")
    shown = reports_directory()
    audited = reports.audit(cluster, TOPIC, shown)
    reports.draw_lag(streamed.lag, shown)
    screen.say(
        f"{audited.verdict}: {audited.replicas} replicas of {audited.partitions} partitions;"
        f" {audited.digested_bytes / 1e6:,.0f} MB digested where they lie,"
        f" {audited.wire_bytes / 1e3:,.0f} KB over the wire"
    )

    screen.act("The disks let the flights go; consumers read them out of the buckets")
    with screen.waiting("uploads, a second cluster, and two consumers from the beginning"):
        history = tell_history(cluster, TOPIC, work)
    screen.say(
        f"{history.objects} objects of {history.bucket_bytes / 1e6:,.0f} MB in"
        f" {len(cluster.regions)} buckets; the leaders' logs have {history.local_records} flights"
    )
    screen.say(
        f"read again from the first flight on: {history.served_bytes / 1e6:,.0f} of"
        f" {history.fetched_bytes / 1e6:,.0f} MB came out of buckets"
    )
    screen.say(
        f"a second cluster, which knows one bucket's URL, served {len(history.copied):,} flights"
    )

    screen.act("What was promised, and what was found")
    checks = run_checks(
        Evidence(
            flights=len(flights),
            failures=[each for report in streamed.reports for each in report.failures],
            acknowledged=streamed.acknowledged,
            read=streamed.read,
            rows=lake.read_places(table),
            spark_means=filled.mean_delays,
            pandas_means=pandas_means,
            audited=audited,
            history=history,
        )
    )
    screen.show_checks(checks)
    screen.say(f"the audit as a page  {shown / reports.AUDIT_PAGE}")
    screen.say(f"the lag as a plot    {shown / reports.LAG_PLOT}")
    return all(check.held for check in checks)


def set_up(work: Path, screen: Screen) -> tuple[Cluster, pandas.DataFrame]:
    """Starts the cluster; meanwhile writes the flights as JSON and looks for Java and the jars."""
    strandline("pipeline", "java", "--install")
    with screen.waiting("starting brokers, resolving Spark's jars"), ThreadPoolExecutor() as pool:
        started = pool.submit(start_cluster, work / "cluster")
        jars = pool.submit(strandline, "pipeline", "jars")
        flights = load_flights()
        write_json_lines(flights, work / "flights.jsonl")
        jars.result()
        return started.result(), flights


def stream(
    cluster: Cluster, clients: Clients, screen: Screen, *, work: Path, total: int
) -> Streamed:
    """The producers' whole stream, with the loss of a region in its middle."""
    clients.start_consumers()
    clients.start_producers(work / "flights.jsonl", seconds=STREAM_S)
    deadline: float | None = None
    lag = Lag()
    with (
        screen.stream(total) as bars,
        RegionLoss(cluster, TOPIC, say=bars.say, act=screen.act) as loss,
    ):
        while True:
            acknowledged = count_entries(clients.acknowledged)
            read = count_entries(clients.read)
            bars.update(acknowledged=acknowledged, read=read)
            lag.note(acknowledged, read)
            clients.check()
            if acknowledged >= total * KILL_AT_RATIO:
                loss.advance()
            if clients.producers_done() and loss.is_over:
                if deadline is None:
                    deadline = time.monotonic() + DRAIN_TIMEOUT_S
                    screen.act("Every flight delivered and read")
                if everything_read(clients) or time.monotonic() > deadline:
                    break
            time.sleep(LOOK_INTERVAL_S)
    clients.stop_consumers()
    return Streamed(
        read_entries(clients.acknowledged), read_entries(clients.read), clients.reports(), lag
    )


def everything_read(clients: Clients) -> bool:
    """Whether the group has read each place that a producer has an acknowledgement for."""
    acknowledged = places(read_entries(clients.acknowledged))
    return len(numpy.setdiff1d(acknowledged, places(read_entries(clients.read)))) == 0


def show_waiting(streamed: Streamed, screen: Screen) -> None:
    """How long the producers waited, in figures."""
    latencies = streamed.acknowledged["latency_ms"]
    if not len(latencies):
        raise DemoError("no flight was acknowledged")
    p50, p99 = numpy.percentile(latencies, [50, 99])
    silence = max(report.longest_gap_ms for report in streamed.reports)
    screen.show_figures(
        {
            "acknowledgement latency, p50 and p99": f"{p50:,.0f} ms and {p99:,.0f} ms",
            "longest wait of a producer for any acknowledgement": f"{silence:,.0f} ms",
            "longest wait of one record, across the kill": f"{latencies.max():,.0f} ms",
        }
    )


def reports_directory() -> Path:
    """Where the reports stay: in DIR, else in a directory that the next run overwrites."""
    told = os.environ.get("DIR")
    directory = (Path(told) / "reports" if told else Path(".build") / "demo").absolute()
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@contextmanager
def work_directory(*, keep: bool) -> Iterator[Path]:
    """DIR, which must be new or empty, or a temporary directory that goes when all went well."""
    told = os.environ.get("DIR")
    if told:
        work = Path(told).absolute()
        if work.exists() and any(work.iterdir()):
            raise DemoError(f"DIR={told} is not empty: name a new directory")
        work.mkdir(parents=True, exist_ok=True)
    else:
        work = Path(tempfile.mkdtemp(prefix="strandline-demo-"))
    try:
        yield work
    except KeyboardInterrupt:
        keep = False
        raise
    except BaseException:
        keep = True  # kept for inspection
        raise
    finally:
        if not told and not keep:
            shutil.rmtree(work)


def run(screen: Screen) -> None:
    """The play, and the clearing of the stage after it, whatever happened."""
    keep = os.environ.get("KEEP", "0") not in ("", "0")
    with work_directory(keep=keep) as work:
        cluster = work / "cluster"
        try:
            held = play(work, screen)
        except BaseException as error:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the clearing is not to be interrupted
            if cluster.exists():
                stop_cluster(cluster)
            if isinstance(error, DemoError):
                raise DemoError(f"{error} (logs and data: {work})") from error
            raise
        if keep:
            screen.say("\nThe cluster stays up.")
            screen.say(f"  look at it  {STRANDLINE} dev status --dir {cluster}")
            screen.say(f"  stop it     {STRANDLINE} dev stop --dir {cluster}")
        else:
            stop_cluster(cluster)
        if not held:
            raise DemoError(f"not every check held (logs and data: {work})")


def main() -> None:
    """Exit code 0 when every check held, 1 when one did not or something failed, 130 on Ctrl-C."""
    screen = Screen()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    begun = time.monotonic()
    try:
        run(screen)
    except DemoError as error:
        screen.fail(str(error))
        sys.exit(1)
    except KeyboardInterrupt:
        screen.fail("interrupted; everything that was started has been stopped")
        sys.exit(130)
    screen.say(f"\n[bold green]✓ every check held[/] in {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()

"""What is left to look at: a page about the audit of all replicas, and a picture of the stream.

Why:    equal ledgers show what clients saw; an audit shows that every replica holds it, those of
        the region that was lost included.
How:    brokers digest their logs where these lie; no record crosses the network for it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from demo.cluster import Cluster, strandline
from strandline.pipeline.reports.traffic_plots import lag_chart

AUDIT_PAGE = "audit.html"
LAG_PLOT = "lag.png"
EQUAL, DIFFERENT, INCOMPLETE = 0, 1, 3


@dataclass(frozen=True, slots=True)
class Audited:
    """What `strandline pipeline audit` found over all replicas of one topic."""

    verdict: str
    partitions: int
    replicas: int
    records: int
    """Of one replica of each partition."""
    digested_bytes: int
    wire_bytes: int


class Lag:
    """How many records were acknowledged and not yet read, again and again."""

    def __init__(self) -> None:
        self._points: list[tuple[datetime, float]] = []

    def note(self, acknowledged: int, read: int) -> None:
        """The counts of now."""
        self._points.append((datetime.now(UTC), max(acknowledged - read, 0)))

    @property
    def points(self) -> Sequence[tuple[datetime, float]]:
        """(time, records), in the order of time."""
        return self._points


def audit(cluster: Cluster, topic: str, directory: Path) -> Audited:
    """All replicas of the topic compared; writes the page."""
    out = strandline(
        *("pipeline", "audit", topic, "--bootstrap", cluster.bootstrap, "--json"),
        *("--report", str(directory / AUDIT_PAGE)),
        codes=(EQUAL, DIFFERENT, INCOMPLETE),
    )
    told = json.loads(out)
    parts = told["partitions"]
    return Audited(
        verdict=told["verdict"],
        partitions=len(parts),
        replicas=sum(len(one["brokers"]) for one in parts),
        records=sum(one["records"] for one in parts),
        digested_bytes=told["digested_bytes"],
        wire_bytes=told["wire_bytes"],
    )


def draw_lag(lag: Lag, directory: Path) -> None:
    """Writes the picture."""
    chart = lag_chart(
        {"lag": lag.points},
        title="Flights acknowledged and not yet read, while a region is lost and returns",
        unit="flights",
    )
    (directory / LAG_PLOT).write_bytes(chart.png())

"""The text of a scrape.

Why:    metrics are computed for a scrape, and cost nothing between scrapes.
How:    partitions, then the walk over the cluster, both in slices; then the rest at once, through
        Prometheus's client. One scrape at a time; a request within a second of the last scrape
        gets the same text, so frequent scrapes cost no more.
Owns:   the last text.
Source: decision 0023; Prometheus, "Exposition formats" (0.0.4)."""

import asyncio
from collections.abc import Iterator, Sequence

from prometheus_client import ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from strandline.admin.figures import Figures, broker_figures, controller_figures, walk
from strandline.admin.happenings import Happenings
from strandline.admin.metric import Kind, Metric
from strandline.admin.metric_table import BROKER_METRICS, CONTROLLER_METRICS
from strandline.admin.pace import Pace
from strandline.admin.partitions import led_partitions
from strandline.admin.read_replica_metrics import READ_REPLICA_METRICS, read_replica_figures
from strandline.admin.tiered_metrics import TIERED_METRICS, tiered_figures
from strandline.broker.broker import Broker

FRESH_MS = 1_000


class Exposition:
    """See the module. `is_ready`: whether the broker serves Kafka clients."""

    def __init__(self, broker: Broker) -> None:
        self.is_ready = False
        self._broker = broker
        self._happenings = Happenings(broker.replication)
        self._process = ProcessCollector(registry=None)
        self._turn = asyncio.Lock()
        self._blocks: list[bytes] = []
        self._made_ms: int | None = None

    async def blocks(self) -> Sequence[bytes]:
        """The text, in parts."""
        async with self._turn:
            now = self._broker.services.clock.monotonic_ms()
            if self._made_ms is None or now - self._made_ms >= FRESH_MS:
                self._blocks = await self._make()
                self._made_ms = self._broker.services.clock.monotonic_ms()
            return self._blocks

    async def _make(self) -> list[bytes]:
        broker, services, pace = self._broker, self._broker.services, Pace()
        count_max = broker.config.metrics.partition_count_max
        led = await led_partitions(services, pace, count_max=count_max)
        is_controller = services.balancing.findings is not None
        walked = await walk(services, pace, is_controller=is_controller)
        figures = broker_figures(
            broker, happenings=self._happenings, led=led, walked=walked, is_ready=self.is_ready
        )
        families = [*_families(BROKER_METRICS, figures), *self._process.collect()]
        families += _families(TIERED_METRICS, tiered_figures(broker))
        families += _families(READ_REPLICA_METRICS, read_replica_figures(broker))
        findings = services.balancing.findings
        if findings is not None and is_controller:
            figures = controller_figures(services, findings, walked)
            families += _families(CONTROLLER_METRICS, figures)
        blocks = [generate_latest(_Given(families))]
        for block in led.blocks:
            await pace.rest()
            blocks.append(block.encode())
        return blocks


class _Given(Collector):
    """Metric families made before, in the form that the Prometheus client expects."""

    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Family]:
        """All of them."""
        return iter(self._families)


def _families(rows: Sequence[Metric], figures: Figures) -> list[Family]:
    assert figures.keys() == {row.name for row in rows}, figures.keys() ^ {r.name for r in rows}
    found: list[Family] = []
    for row in rows:
        family: GaugeMetricFamily | CounterMetricFamily
        if row.kind is Kind.COUNTER:
            family = CounterMetricFamily(row.name, row.help_line, labels=row.labels)
        else:
            family = GaugeMetricFamily(row.name, row.help_line, labels=row.labels)
        values = figures[row.name]
        for labels, value in ({(): values} if isinstance(values, float | int) else values).items():
            family.add_metric(list(labels), float(value))
        found.append(family)
    return found

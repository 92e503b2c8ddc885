"""A scrape of a simulated broker, read as Prometheus would read it."""

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families
from tests.broker.cluster_world import VOTERS, ClusterWorld

from strandline.admin.exposition import Exposition
from strandline.admin.metric_table import METRICS

Series = Mapping[frozenset[tuple[str, str]], float]


def controller_of(world: ClusterWorld) -> int:
    """The broker that is the controller."""
    return next(one for one in VOTERS if world.controller(one).can_serve_reads)


class Scrape:
    """What one scrape told."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.series: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
        self.kinds: dict[str, str] = {}
        for family in text_string_to_metric_families(text):
            self.kinds[family.name] = family.type
            for sample in family.samples:
                found = self.series.setdefault(sample.name, {})
                key = frozenset(sample.labels.items())
                assert key not in found, f"{sample.name} {sample.labels} is told twice"
                found[key] = sample.value

    def value(self, name: str, **labels: str) -> float:
        """Of one series."""
        return self.series[name][frozenset(labels.items())]

    def of(self, name: str) -> Series:
        """All series of a metric; nothing where it has none."""
        return self.series.get(name, {})

    def expect_known(self) -> None:
        """Every series is in the table, with its labels and its kind."""
        rows = {one.name: one for one in METRICS}
        for name, series in self.series.items():
            if name.startswith("process_"):
                continue
            row = rows[name]
            assert self.kinds[name.removesuffix("_total")] == row.kind, name
            for labels in series:
                assert {label for label, _ in labels} == set(row.labels), name


class Monitor:
    """Scrapes brokers of a simulated cluster."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world
        self._expositions: dict[int, Exposition] = {}

    def watch(self, *brokers: int) -> None:
        """Count from now on what happens on these."""
        for one in brokers:
            self._expositions[one] = Exposition(self._world.broker(one))

    def scrape(self, broker: int) -> Scrape:
        """Ask one broker."""
        if broker not in self._expositions:
            self.watch(broker)
        blocks = self._world.do(broker, self._expositions[broker].blocks())
        return Scrape(b"".join(blocks).decode())

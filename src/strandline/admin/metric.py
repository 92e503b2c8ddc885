"""What one metric is.

Source: STYLE, rule 4."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Prometheus' type of a metric."""

    GAUGE = "gauge"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. `name`: in Prometheus; `kafka`: the equivalent MBean of Kafka or Confluent,
    which may be the rate of this count; empty if there is none."""

    name: str
    help: str
    kind: Kind = Kind.GAUGE
    labels: tuple[str, ...] = ()
    kafka: str = ""

    @property
    def help_line(self) -> str:
        """The text of the metric's HELP line in a scrape: its meaning, and its name in Kafka."""
        return f"{self.help} Kafka: {self.kafka}." if self.kafka else self.help

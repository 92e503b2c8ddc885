"""What a plan assumes: how often what is lost and for how long, traffic, prices. A TOML file.

Why:    a result is as good as its rates; each is one line that a reader can question and change.
How:    msgspec refuses unknown keys and wrong types; a table that is missing has the defaults
        below. Times are in hours or seconds, sizes in GB or MB of 10**9 or 10**6 bytes: people
        write this file.
Source: docs/pipelines/plan.md explains each default."""

import math
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

import msgspec

from strandline.base.errors import OperatorError
from strandline.config.cluster import ClusterConfig, validate_cluster_config
from strandline.placement.explain.prices import LinkPrice, Prices

HOURS_A_YEAR = 8_766.0
"""365.25 days."""
SECONDS_AN_HOUR = 3_600.0
CHARACTERS_MAX = 200_000
RATE_MAX = 1_000.0

_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Rate = Annotated[float, msgspec.Meta(ge=0, le=RATE_MAX)]
_Hours = Annotated[float, msgspec.Meta(gt=0, le=HOURS_A_YEAR)]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=86_400)]
_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
_Weight = Annotated[float, msgspec.Meta(ge=0, le=1e6)]


class LossRate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Losses of one domain of a level."""

    per_year: _Rate
    """Mean number of losses of one region, zone, ..., in a year; independent of each other."""
    hours: _Hours
    """Median time until it is back."""
    spread: Annotated[float, msgspec.Meta(ge=0, le=3)] = 1.0
    """Standard deviation of the logarithm of that time: at 1.0, one loss in twenty lasts five times
    the median or longer; at 0.0 all last equally long."""
    destroyed: _Share = 0.0
    """Share of these losses that take the disks along; else brokers return with their data."""

    @property
    def mean_hours(self) -> float:
        """The mean time until it is back."""
        return self.hours * math.exp(self.spread**2 / 2)


class Losses(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """By level. A level that no broker has a label of is never lost."""

    region: LossRate = LossRate(0.1, 3.0, 1.0, 0.01)
    zone: LossRate = LossRate(0.3, 1.5, 1.0, 0.01)
    rack: LossRate = LossRate(0.0, 2.0)
    host: LossRate = LossRate(0.0, 2.0)
    broker: LossRate = LossRate(4.0, 0.25, 1.2, 0.02)

    def by_level(self) -> dict[str, LossRate]:
        """{level: rate}, widest first, of the levels that are lost at all."""
        rates = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: rate for name, rate in rates.items() if rate.per_year}


class Recovery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long the cluster takes for its own steps. Defaults are measured: bench/README.md."""

    election_s: _Seconds = 1.1
    """Writes of a partition stop for so long if its leader is lost and the others elect one."""
    arbitration_s: _Seconds = 4.4
    """The same, if the controller appoints the leader."""
    promotion_s: _Seconds = 2.6
    """Until an observer stands in for a voter."""
    declare_hours: _Amount = 2.0
    """Until an operator declares a loss, where no replica may lead otherwise."""
    copy_mb_per_s: Annotated[float, msgspec.Meta(gt=0, le=1e6)] = 33.554432
    """At which logs are copied to one broker; the default of `replication.recovery_bytes_per_s`."""
    broker_gb: _Amount = 500.0
    """Data of one broker, over all topics: copied to it after its disk was lost."""


class Traffic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of the topic. Shares are weights: {east = 2, west = 1} is two thirds in the east."""

    produced_mb_per_s: _Amount = 10.0
    retained_hours: _Hours = 168.0
    producers: Mapping[str, _Weight] = {}
    """{region: weight}; empty: all regions alike."""
    readers: Mapping[str, _Weight] = {}
    """{region: how many consumer groups there read everything}; empty: one in each region."""


class PriceTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices: those of `--prices` elsewhere, and of storage."""

    currency: Annotated[str, msgspec.Meta(min_length=1, max_length=16)] = "USD"
    cross_region_per_gb: _Amount = 0.02
    cross_zone_per_gb: _Amount = 0.01
    storage_per_gb_month: _Amount = 0.08
    links: tuple[LinkPrice, ...] = ()

    def transfer(self) -> Prices:
        """The part that `placement` knows."""
        return Prices(
            currency=self.currency,
            cross_region_per_gb=Decimal(str(self.cross_region_per_gb)),
            cross_zone_per_gb=Decimal(str(self.cross_zone_per_gb)),
            links=self.links,
        )


class Assumptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    losses: Losses = Losses()
    recovery: Recovery = Recovery()
    traffic: Traffic = Traffic()
    prices: PriceTable = PriceTable()
    cluster: Mapping[str, str | int | bool] = {}
    """Keys of the cluster's configuration by name, such as "broker.lost.after.ms"."""
    controllers: tuple[int, ...] = ()
    """The brokers that are the controller's voters; empty: the controller always has a majority."""

    def config(self) -> ClusterConfig:
        """The cluster's configuration: the defaults, with these keys set."""
        return ClusterConfig.from_values(_texts(self.cluster))


def decode_assumptions(text: str, *, source: str) -> Assumptions:
    """Read a file; raises OperatorError with one line."""
    if len(text) > CHARACTERS_MAX:
        raise OperatorError(f"{source}: {len(text)} characters: write at most {CHARACTERS_MAX}")
    try:
        found = msgspec.convert(tomllib.loads(text), Assumptions, dec_hook=_decimal, strict=False)
    except tomllib.TOMLDecodeError as error:
        raise OperatorError(f"{source}: not TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise OperatorError(
            f"{source}: {error}: docs/pipelines/plan.md lists all tables and keys"
        ) from None
    for name, value in _texts(found.cluster).items():
        reason = validate_cluster_config(name, value)
        if reason is not None:
            raise OperatorError(f"{source}: cluster: {reason}")
    for where, weights in (
        ("traffic.producers", found.traffic.producers),
        ("traffic.readers", found.traffic.readers),
    ):
        if weights and not sum(weights.values()) > 0 and where.endswith("producers"):
            raise OperatorError(f"{source}: {where}: all weights are 0: give one region more")
    if not found.losses.by_level():
        raise OperatorError(f"{source}: losses: nothing is ever lost: set per_year of some level")
    return found


def _texts(values: Mapping[str, str | int | bool]) -> dict[str, str]:
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in values.items()
    }


def _decimal(kind: type, value: Any) -> object:
    return kind(str(value))

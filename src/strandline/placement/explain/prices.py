"""A price table that the user supplies, and what replication costs by it.

How:    {currency: EUR, cross_region_per_gb: 0.02, cross_zone_per_gb: 0.01,
         links: [{from: eu-west, to: us-east, per_gb: 0.05}]}   in JSON or YAML. A link goes before
        the general price and holds in its direction. A GB is 10**9 bytes. Money is decimal."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated

import msgspec

from strandline.base.errors import OperatorError
from strandline.placement.explain.traffic import Traffic
from strandline.placement.policy.text import read_as
from strandline.placement.topology.described import require_regions

LINKS_MAX = 1_000
PRICES_CHARACTERS_MAX = 200_000
PRICE_MAX = Decimal(1_000_000)
_EXAMPLE = (
    "currency: EUR, cross_region_per_gb: 0.02, cross_zone_per_gb: 0.01, "
    "links: [{from: a, to: b, per_gb: 0.05}]"
)


class LinkPrice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The price of a GB from one region to another one."""

    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    per_gb: Decimal


class Prices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole table."""

    currency: Annotated[str, msgspec.Meta(min_length=1, max_length=16)]
    cross_region_per_gb: Decimal = Decimal(0)
    cross_zone_per_gb: Decimal = Decimal(0)
    links: Annotated[tuple[LinkPrice, ...], msgspec.Meta(max_length=LINKS_MAX)] = ()

    def of(self, traffic: Traffic) -> Decimal:
        """What the replication of a GB produced costs."""
        by_link = {(one.source, one.target): one.per_gb for one in self.links}
        total = self.cross_zone_per_gb * traffic.cross_zone
        for link in traffic.links:
            price = by_link.get((link.source, link.target), self.cross_region_per_gb)
            total += price * link.copies
        return total


def decode_prices(text: str, *, source: str = "prices") -> Prices:
    """Read a table; raises OperatorError with one line."""
    prices = read_as(
        Prices,
        text,
        source=source,
        example=_EXAMPLE,
        strict=False,
        characters_max=PRICES_CHARACTERS_MAX,
    )
    amounts = [prices.cross_region_per_gb, prices.cross_zone_per_gb]
    for amount in amounts + [one.per_gb for one in prices.links]:
        if not (amount.is_finite() and 0 <= amount <= PRICE_MAX):
            raise OperatorError(f"{source}: {amount} is not a price: write 0 to {PRICE_MAX}")
    return prices


def require_links(prices: Prices, regions: Iterable[str], *, source: str = "prices") -> None:
    """Refuse the price of a link to or from a region in which no broker is: it would count for
    nothing. Raises OperatorError, one line."""
    names = [name for one in prices.links for name in (one.source, one.target)]
    require_regions(names, regions, source=f"{source}: links")

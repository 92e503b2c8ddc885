"""Which brokers are near each other.

Why:    traffic between regions is dear and slow; traffic within one is neither.
How:    two brokers share the levels in which their labels agree, from the top: region, zone, rack.
        A missing label agrees with nothing.
Owns:   the latest labels; one per broker.
Source: design sections 5 and 7."""

from collections.abc import Mapping

from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId


class Nearness:
    """See the module."""

    def __init__(self) -> None:
        self._paths: dict[BrokerId, tuple[str, str, str]] = {}
        self.version = 0
        """Changes with each `place`."""

    def place(self, labels: Mapping[BrokerId, Labels]) -> None:
        """Set the labels of all brokers; a broker without labels is near none."""
        self._paths = {
            broker: (one.region, one.zone, one.rack) for broker, one in labels.items() if one.region
        }
        self.version += 1

    def levels(self, one: BrokerId, other: BrokerId) -> int:
        """How many levels two brokers share: 0 for none, 3 for the rack."""
        count = 0
        for here, there in zip(self._paths.get(one, ()), self._paths.get(other, ()), strict=False):
            if not here or here != there:
                break
            count += 1
        return count

    def are_apart(self, one: BrokerId, other: BrokerId) -> bool:
        """Whether both are known to be in different regions."""
        is_known = one in self._paths and other in self._paths
        return is_known and not self.levels(one, other)

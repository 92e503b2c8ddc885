"""Counts who produces how much to the partitions whose leaders follow the writers.

Why:    it is counted for every request to such a partition, and must cost the others nothing.
How:    a partition that is not counted is one look into a dictionary. The region of an address is
        looked up once, and kept until the table of networks changes.
Owns:   bytes since the last look, by partition and region; what was told of each.
Source: decision 0014."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from strandline.config.client_networks import ClientNetworks
from strandline.model.ids import GroupId
from strandline.placement.writers import Verdict

ADDRESSES_MAX = 10_000
"""Clients whose region is kept; then they are looked up anew."""


@dataclass(frozen=True, slots=True)
class Told:
    """How it stands with the leader of one partition. `bytes`: {region: bytes produced, decayed}.
    `is_near`: whether the leader's region is ahead of all others."""

    verdict: Verdict
    bytes: Mapping[str, float] = field(default_factory=dict)
    is_near: bool = False


class Writers:
    """See the module."""

    def __init__(self) -> None:
        self.told: dict[GroupId, Told] = {}
        """Of the partitions that follow the writers and are led here, as of the last look."""
        self._counts: dict[GroupId, defaultdict[str, int]] = {}
        # {a client's host as connections write it: its region}
        self._regions: dict[str, str] = {}
        self._table: tuple[str, ...] = ()
        self._networks = ClientNetworks()

    def note(self, group: GroupId, client_host: str, size_bytes: int) -> None:
        """So much was produced. `client_host`: as in `AnswerSink`, "/10.1.2.3"."""
        counts = self._counts.get(group)
        if counts is not None:
            region = self._regions.get(client_host)
            if region is None:
                region = self._look_up(client_host)
            counts[region] += size_bytes

    def set_networks(self, table: tuple[str, ...]) -> None:
        """The table of the cluster's configuration."""
        if table != self._table:
            self._table = table
            self._networks = ClientNetworks(table)
            self._regions.clear()

    def count(self, groups: Collection[GroupId]) -> None:
        """Count these from now on, and no others."""
        self._counts = {one: self._counts.get(one) or defaultdict(int) for one in groups}
        self.told = {one: told for one, told in self.told.items() if one in self._counts}

    def take(self, group: GroupId) -> Mapping[str, int]:
        """{region: bytes} since the last call."""
        taken = self._counts.get(group)
        if not taken:
            return {}
        self._counts[group] = defaultdict(int)
        return taken

    def _look_up(self, client_host: str) -> str:
        if len(self._regions) >= ADDRESSES_MAX:
            self._regions.clear()
        region = self._networks.region_of(client_host.removeprefix("/"))
        self._regions[client_host] = region
        return region

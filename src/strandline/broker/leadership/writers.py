"""Counts which regions produce to the partitions whose leaders follow the writers.

Why:    it counts every request to such a partition, and must cost the others nothing.
How:    A partition that is not counted costs one look into a dictionary. The region of an address
        is looked up once, and kept until the table of networks changes.
Owns:   bytes since the last look, by partition and region; the last verdict on each partition.
Source: decision 0014."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from strandline.config.client_networks import ClientNetworks
from strandline.model.ids import GroupId
from strandline.placement.writers import Verdict

ADDRESSES_MAX = 10_000
"""How many clients' regions are kept; beyond that all are looked up again."""


@dataclass(frozen=True, slots=True)
class LeaderVerdict:
    """The last verdict on the leader of one partition. `bytes`: {region: bytes produced,
    decayed}.
    `is_near`: whether the leader's region is ahead of all others."""

    verdict: Verdict
    bytes: Mapping[str, float] = field(default_factory=dict)
    is_near: bool = False


class Writers:
    """See the module."""

    def __init__(self) -> None:
        self.verdicts: dict[GroupId, LeaderVerdict] = {}
        """{group led here that follows the writers: the last verdict on its leader}"""
        self._counts: dict[GroupId, defaultdict[str, int]] = {}
        # {a client's host as connections write it: its region}
        self._regions: dict[str, str] = {}
        self._table: tuple[str, ...] = ()
        self._networks = ClientNetworks()

    def note(self, group: GroupId, client_host: str, size_bytes: int) -> None:
        """Count bytes that were produced. `client_host`: as in `AnswerSink`, "/10.1.2.3"."""
        counts = self._counts.get(group)
        if counts is not None:
            region = self._regions.get(client_host)
            if region is None:
                region = self._look_up(client_host)
            counts[region] += size_bytes

    def region_of(self, client_host: str) -> str:
        """The region of a client's address; empty if it is not known. `client_host` as above."""
        region = self._regions.get(client_host)
        return self._look_up(client_host) if region is None else region

    def set_networks(self, table: tuple[str, ...]) -> None:
        """The table of the cluster's configuration."""
        if table != self._table:
            self._table = table
            self._networks = ClientNetworks(table)
            self._regions.clear()

    def count(self, groups: Collection[GroupId]) -> None:
        """Count these from now on, and no others."""
        self._counts = {one: self._counts.get(one) or defaultdict(int) for one in groups}
        self.verdicts = {
            one: verdict for one, verdict in self.verdicts.items() if one in self._counts
        }

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

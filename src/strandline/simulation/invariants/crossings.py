"""Entries cross to each other region once.

Why:    a second copy between two regions costs as much as the first one, and has no other effect.
How:    `network.settling` watches a history without faults, and reports when all replicas of a
        group are in step with their leader. From then on, while that leader leads, an entry crosses
        to each other region once, whichever broker sends it.
Owns:   the last entry that each region has got.
Source: design section 1 ("each byte crosses to a remote region once"), 5 and 10; decision 0034."""

from collections.abc import Mapping

from strandline.model.ids import BrokerId, GroupId, Index
from strandline.simulation.invariants.facts import EntriesPassed, RegionsInStep, Subject
from strandline.simulation.invariants.invariants import Invariant


class EachByteOncePerRegion(Invariant):
    """See the module. `regions`: where each broker lives."""

    def __init__(self, regions: Mapping[BrokerId, str]) -> None:
        self._regions = regions
        self._settled: dict[GroupId, RegionsInStep] = {}
        self._ends: dict[tuple[GroupId, str], Index] = {}
        """{(group, region): where the next entries that cross to it begin, at least}."""

    def on_regions_in_step(self, fact: RegionsInStep) -> None:
        """From now on this checks the group."""
        self._settled[fact.group] = fact
        for region in self._regions.values():
            self._ends[fact.group, region] = fact.first_index

    def on_entries_passed(self, fact: EntriesPassed) -> None:
        """Between regions, a broker sends only entries that have not crossed yet."""
        settled = self._settled.get(fact.group)
        region = self._regions.get(fact.receiver, "")
        if settled is None or self._regions.get(fact.sender) == region:
            return
        if fact.epoch != settled.epoch or fact.last_index < settled.first_index:
            return
        end = self._ends[fact.group, region]
        first_index = max(fact.first_index, settled.first_index)
        if first_index < end:
            raise self.broken(
                f"group {fact.group}: broker {fact.sender} sends entries {first_index} to "
                f"{fact.last_index} of epoch {fact.epoch} to broker {fact.receiver} in region "
                f"{region}, which has been sent all below {end}",
                Subject(fact.group, index=first_index),
            )
        self._ends[fact.group, region] = Index(fact.last_index + 1)

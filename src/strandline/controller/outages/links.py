"""Links between single brokers that are cut, while others in the same places hear each other. Pure.

Why:    a zone hears a broker if any of its brokers does, so `sight` sees no cut; but voters at the
        two ends cannot elect a leader.
How:    Of two live brokers, one reports that it does not hear the other, while its zone does, for
        longer than the time between two questions. Cuts that `sight` reports are left out: brokers
        that the controller does not hear, or that the other's whole zone does not hear.
            A reported cut is over only when that broker reports that it hears the other. A missing
        answer proves nothing. A cut that becomes part of a larger cut is not over.
Owns:   since when each link is cut, and which cuts were reported.
Source: design section 8; decision 0018."""

from collections.abc import Collection, Iterator, Mapping

from strandline.controller.outages.domains import vantage_name, vantage_of
from strandline.controller.outages.happenings import Happening, Kind
from strandline.controller.outages.sight import Hearing, Seen, Verdict
from strandline.model.cluster import Domain, Labels
from strandline.model.ids import BrokerId

LINK_MS = 15_000
"""How long a link must be cut before the controller reports it. It asks brokers every 10 s which
others they hear, and not all brokers hear a new one at once."""
NAMED_MAX = 3

_Link = tuple[BrokerId, BrokerId]
"""(the broker that does not hear, the broker that is not heard)"""


class Links:
    """See the module."""

    def __init__(self) -> None:
        self._since_ms: dict[_Link, int] = {}
        self._reported: frozenset[_Link] = frozenset()

    def look(
        self,
        now_ms: int,
        *,
        brokers: Mapping[BrokerId, Labels],
        hears: Hearing,
        seen: Mapping[BrokerId, Seen],
        controller: BrokerId,
    ) -> None:
        """Note which brokers do not hear which; called about once a second."""
        cut = {*_cut_links(brokers, hears, seen, controller)}
        cut.update(
            (one, other)
            for one, other in self._reported
            if one in brokers and other in brokers and other not in hears.get(one, ())
        )
        self._since_ms = {one: self._since_ms.get(one, now_ms) for one in cut}
        reported = (one for one, since_ms in self._since_ms.items() if now_ms - since_ms >= LINK_MS)
        self._reported = frozenset(reported)

    def happenings(
        self, brokers: Mapping[BrokerId, Labels], known: Collection[Domain]
    ) -> Iterator[Happening]:
        """One event for each pair of places with such links between them. `known`: all domains."""
        between: dict[tuple[Domain, Domain], list[_Link]] = {}
        for link in self._reported:
            one, other = sorted(vantage_of(end, brokers[end]) for end in link)
            between.setdefault((one, other), []).append(link)
        for (one, other), links in sorted(between.items()):
            names = [vantage_name(place, known) for place in (one, other)]
            where = f"inside {names[0]}" if one == other else f"between {names[0]} and {names[1]}"
            yield Happening(
                Kind.CUT,
                f"links {where}",
                f"some links {where} are cut: {_text(links)}",
                min(self._since_ms[link] for link in links),
                frozenset(end for link in links for end in link),
                over=f"no single link {where} is cut any more",
            )


def _cut_links(
    brokers: Mapping[BrokerId, Labels],
    hears: Hearing,
    seen: Mapping[BrokerId, Seen],
    controller: BrokerId,
) -> Iterator[_Link]:
    living = frozenset(one for one, what in seen.items() if what.verdict is not Verdict.SILENT)
    for one, heard in hears.items():
        if one == controller or one not in living:
            continue
        here = vantage_of(one, brokers[one])
        for other in living.difference(heard):
            if other == one or here not in seen[other].hearing:
                continue
            if vantage_of(other, brokers[other]) not in seen[one].deaf:
                yield one, other


def _text(links: Collection[_Link]) -> str:
    both = sorted({(min(one), max(one)) for one in links if one[::-1] in links})
    said = [f"brokers {one} and {other} do not reach each other" for one, other in both]
    said += [
        f"broker {one} receives nothing from broker {other}"
        for one, other in sorted(links)
        if (other, one) not in links
    ]
    more = len(said) - NAMED_MAX
    return "; ".join(said[:NAMED_MAX]) + (f"; and {more} more such links" if more > 0 else "")

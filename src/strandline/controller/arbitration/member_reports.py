"""Reports of brokers about the groups that may need a grant. Pure.

Why:    a broker that the controller hears may still not help: its replica cannot vote, takes
        nothing from its leader, or does not hear the other members; or the broker answers nothing.
How:    unable    brokers whose replica of a group cannot vote, and hears no leader
        stalled   brokers that take nothing from the leader of a group, or that leader itself: such
                  a report counts until a leader of a later grant has come
        silent    the brokers that a broker does not hear, for `REPORT_VALID_MS`
        mute      brokers that the controller hears and that have answered nothing for `MUTE_MS`.
                  They count as not heard; otherwise the controller would wait for them for ever
Owns:   these reports; the controller's leader forgets them with its lead.
Source: decision 0020."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from strandline.controller.arbitration.sides import Reach, cuts_of
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId

REPORT_VALID_MS = 5_000
"""How long the last report of silent brokers counts after a broker stops answering."""
MUTE_MS = 10_000
"""After so long a broker that is heard and answers nothing counts as not heard."""


@dataclass(frozen=True, slots=True)
class Stalled:
    """The brokers that the leader of a group waited for in vain, in this grant."""

    grant: int
    brokers: tuple[BrokerId, ...]


class MemberReports:
    """See the module; one per broker. `patience_ratio` scales `MUTE_MS`."""

    def __init__(self, *, patience_ratio: float = 1.0) -> None:
        self._ratio = patience_ratio
        # {group: the brokers whose replicas cannot vote, and hear no leader}
        self.unable: dict[GroupId, set[BrokerId]] = {}
        self.stalled: dict[GroupId, Stalled] = {}
        # {broker: (time of its report, the brokers that it did not hear)}
        self._silent: dict[BrokerId, tuple[int, tuple[BrokerId, ...]]] = {}
        # {broker that is heard, and answers nothing: since when}
        self._mute_ms: dict[BrokerId, int] = {}
        self._reach = Reach(frozenset())

    def clear(self) -> None:
        """Forget everything: the next leader of the controller asks again."""
        self.clear_survey()
        self._silent.clear()

    def clear_survey(self) -> None:
        """Drop reports on groups outside the survey: without new reports they would never end."""
        self.unable.clear()
        self.stalled.clear()
        self._mute_ms.clear()

    def note_answer(self, broker: BrokerId, silent: tuple[BrokerId, ...], now_ms: int) -> None:
        """A broker has answered, and does not hear these."""
        self._silent[broker] = now_ms, silent
        self._mute_ms.pop(broker, None)

    def note_no_answer(self, broker: BrokerId, now_ms: int) -> None:
        """A broker was asked in the survey, and has not answered."""
        self._mute_ms.setdefault(broker, now_ms)

    def note_survey(
        self,
        *,
        unable: dict[GroupId, set[BrokerId]],
        stalled: dict[GroupId, Stalled],
        groups: Mapping[GroupId, Partition],
    ) -> None:
        """All heard brokers have got the survey. A group that is fenced or waits for its appointed
        leader has no leader that could report, so the last report stays."""
        self.unable = unable
        for group, one in self.stalled.items():
            partition = groups.get(group)
            if partition is not None and (partition.is_fenced or partition.appointment is not None):
                stalled.setdefault(group, one)
        self.stalled = stalled

    def note_not_heard(self, heard: Iterable[BrokerId]) -> None:
        """The controller hears these brokers only: the others are not mute."""
        for broker in self._mute_ms.keys() - set(heard):
            del self._mute_ms[broker]

    def drop_stalled(self, groups: Mapping[GroupId, Partition]) -> None:
        """Drop reports on groups with a new leader: a report of an earlier state would cost one
        more grant."""
        for group, one in list(self.stalled.items()):
            partition = groups.get(group)
            if partition is not None and (partition.is_fenced or partition.appointment is not None):
                continue
            if partition is None or partition.grant > one.grant:
                del self.stalled[group]

    def voting(self, group: GroupId, heard: frozenset[BrokerId]) -> frozenset[BrokerId]:
        """Those of these brokers whose replicas can vote."""
        return heard.difference(self.unable[group]) if group in self.unable else heard

    def able(self, group: GroupId, heard: frozenset[BrokerId]) -> frozenset[BrokerId]:
        """Those of these brokers whose replicas can vote and take entries."""
        heard = self.voting(group, heard)
        return heard.difference(self.stalled[group].brokers) if group in self.stalled else heard

    def is_mute(self, broker: BrokerId, now_ms: int) -> bool:
        """Whether the broker has not answered the survey for long."""
        return now_ms - self._mute_ms.get(broker, now_ms) >= MUTE_MS * self._ratio

    def reach(self, alive: Iterable[BrokerId], now_ms: int) -> Reach:
        """The brokers that count as heard, and the cuts between them. Returns the same object while
        that does not change, because it caches answers."""
        heard = frozenset(one for one in alive if not self.is_mute(one, now_ms))
        since_ms = now_ms - REPORT_VALID_MS
        silent = {one: some for one, (at_ms, some) in self._silent.items() if at_ms > since_ms}
        reach = Reach(heard, cuts_of(silent, heard))
        if reach != self._reach:
            self._reach = reach
        return self._reach

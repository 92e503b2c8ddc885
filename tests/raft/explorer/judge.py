"""What must hold of every state: the properties, by their names.

Why:    a property is judged where it can be broken, and named in what is said then.
How:    OneSuccessor               nobody leads an epoch that somebody led, itself included: what
                                   was sent before a crash is not contradicted after it
        NoAcknowledgedWriteLost    who leads has all that was acknowledged in epochs before
        OldSideNeverAcknowledges   what is acknowledged is in the log of every later leader, those
                                   that lead already included
        SomebodyMayLead            without grants: where all but one voter, or all, are there, and
                                   are a majority of each configuration that one of them goes by,
                                   one of them can be elected; but for observers that are
                                   ahead of all voters that are there (known problems)
        That nothing contradicts what is committed, or was told to be durable, the core asserts.
Owns:   what was ever led and acknowledged, as numbers of sets.
Source: design section 6; Raft thesis 3.6 (the second is leader completeness)."""

from tests.raft.explorer.names import Numbered, Renaming
from tests.raft.explorer.replicas import View

from strandline.model.ids import BrokerId, Epoch

Led = tuple[Epoch, BrokerId, tuple[Epoch, ...]]
"""An epoch, who leads it, and the log before it."""
Acknowledged = tuple[Epoch, tuple[Epoch, ...]]
"""An epoch, and the log up to the last that was acknowledged in it."""


class Judge:
    """See the module."""

    def __init__(self) -> None:
        self.led: Numbered[frozenset[Led]] = Numbered()
        self.acknowledged: Numbered[frozenset[Acknowledged]] = Numbered()
        self._known: dict[tuple[int, int, BrokerId, View, View], tuple[int, int]] = {}

    def is_concerned(self, was: View, now: View) -> bool:
        """Whether this step leads or acknowledges anything."""
        return now.leads and (not was.leads or was.epoch != now.epoch or now.commit > was.commit)

    def judge(
        self, led: int, acknowledged: int, one: BrokerId, was: View, now: View
    ) -> tuple[int, int]:
        """What was led and acknowledged after that step of `one`. Raises AssertionError."""
        key = led, acknowledged, one, was, now
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._judged(led, acknowledged, one, was, now)
        return known

    def renamed(self, led: int, renaming: Renaming) -> int:
        """What was led, under other names."""
        return self.led.renamed(led, renaming)

    def _judged(
        self, led: int, acknowledged: int, one: BrokerId, was: View, now: View
    ) -> tuple[int, int]:
        leaders, writes = self.led.values[led], self.acknowledged.values[acknowledged]
        if not was.leads or was.epoch != now.epoch:
            _judge_leader(leaders, writes, (now.epoch, one, was.log))
            leaders |= {(now.epoch, one, was.log)}
        committed = now.log[: now.commit + 1]
        for epoch, _, log in leaders:
            assert epoch <= now.epoch or log[: len(committed)] == committed, (
                f"OldSideNeverAcknowledges: {one} acknowledges {committed} in epoch "
                f"{now.epoch}, and epoch {epoch} began with {log}"
            )
        earlier = frozenset(each for each in writes if each[0] != now.epoch)
        return (
            self.led.of(leaders),
            self.acknowledged.of(earlier | {(now.epoch, committed)}),
        )


def _judge_leader(leaders: frozenset[Led], writes: frozenset[Acknowledged], leader: Led) -> None:
    epoch, one, log = leader
    for led, other, _ in leaders:
        assert led != epoch, f"OneSuccessor: {other} and {one} lead epoch {epoch}"
    for acknowledged, committed in writes:
        assert acknowledged >= epoch or log[: len(committed)] == committed, (
            f"NoAcknowledgedWriteLost: {one} leads epoch {epoch} with {log}, and epoch "
            f"{acknowledged} acknowledged {committed}"
        )


def judge_elections(views: dict[BrokerId, View], voter_count: int) -> None:
    """SomebodyMayLead."""
    for lost in (None, *views):
        live = [one for one in views if one != lost]
        if all(one > voter_count for one in live if _end(views[one]) == _best(live, views)):
            continue
        present = {views[one].configuration for one in live}
        if not live or not all(each.wins_election(live) for each in present):
            continue
        assert any(_may_win(one, live, views) for one in live), (
            f"SomebodyMayLead: nobody of {live} can be elected"
        )


def _may_win(one: BrokerId, live: list[BrokerId], views: dict[BrokerId, View]) -> bool:
    own = views[one]
    granting = [voter for voter in live if _end(views[voter]) <= _end(own)]
    return own.may_stand and own.configuration.wins_election(granting)


def _best(live: list[BrokerId], views: dict[BrokerId, View]) -> tuple[Epoch, int]:
    return max(_end(views[one]) for one in live)


def _end(view: View) -> tuple[Epoch, int]:
    return (view.log[-1] if view.log else Epoch(0)), len(view.log)

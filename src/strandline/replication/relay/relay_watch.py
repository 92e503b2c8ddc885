"""Looks at leaders whose appends are under way through relays, again and again.

Why:    to go round a relay that does not forward should take no longer than a round trip: sooner
        than the broker's tick looks at stalled followers.
How:    `Relays` puts itself in when it sends something through a relay. It is looked at every
        `LOOK_MS` until it says that nothing is under way that way.
Owns:   which leaders are looked at; one per broker.
Source: design section 5 ("Relay"); decision 0034."""

from typing import Protocol

from strandline.base.clock import Clock, Timer

LOOK_MS = 25


class Watched(Protocol):
    """The relays of one leading replica."""

    def look(self, now_ms: int) -> bool:
        """Go round relays through which nothing comes; whether anything is under way by one."""


class RelayWatch:
    """See the module."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Insertion order is the order in which they are looked at.
        self._watched: dict[Watched, None] = {}
        self._timer: Timer | None = None

    def add(self, relays: Watched) -> None:
        """Look at a leader's relays until nothing is under way by them."""
        self._watched[relays] = None
        if self._timer is None:
            self._timer = self._clock.call_later(LOOK_MS, self._look)

    def discard(self, relays: Watched) -> None:
        """The replica leads no more."""
        self._watched.pop(relays, None)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
        self._watched.clear()

    def _look(self) -> None:
        self._timer = None
        now_ms = self._clock.monotonic_ms()
        for relays in list(self._watched):
            if relays in self._watched and not relays.look(now_ms):
                self._watched.pop(relays, None)
        if self._watched and self._timer is None:
            self._timer = self._clock.call_later(LOOK_MS, self._look)

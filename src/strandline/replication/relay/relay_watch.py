"""Checks the leaders whose appends are under way through relays, every few milliseconds.

Why:    the leader should bypass a relay that does not forward within a round trip. The broker's
        tick looks at stalled followers too rarely for that.
How:    `Relays` adds itself when it sends something through a relay. The watch calls its `look`
        every `LOOK_MS`, until that reports nothing under way through relays.
Owns:   which leaders are checked; one per broker.
Source: design section 5 ("Relay"); decision 0034."""

from typing import Protocol

from strandline.base.clock import Clock, Timer

LOOK_MS = 25


class Watched(Protocol):
    """The relays of one leading replica."""

    def look(self, now_ms: int) -> bool:
        """Bypass relays that forward nothing; returns whether anything is in flight through one."""


class RelayWatch:
    """See the module."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Insertion order is the order in which they are looked at.
        self._watched: dict[Watched, None] = {}
        self._timer: Timer | None = None

    def add(self, relays: Watched) -> None:
        """Check a leader's relays until nothing is in flight through them."""
        self._watched[relays] = None
        if self._timer is None:
            self._timer = self._clock.call_later(LOOK_MS, self._look)

    def discard(self, relays: Watched) -> None:
        """The replica leads no more."""
        self._watched.pop(relays, None)

    def stop(self) -> None:
        """Check nothing from now on."""
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

"""How long a supervisor waits before it starts a process again.

Why:    a process that fails at once would otherwise take a core and fill the log for nothing; one
        that ran for long should be back at once.
How:    the pause doubles with each start that did not last, up to a limit. A run that was longer
        than the limit begins anew.
Owns:   the next pause of one process.
Source: decision 0071."""

PAUSE_MS_MIN = 500
PAUSE_MS_MAX = 60_000


class RestartPause:
    """See the module."""

    def __init__(self) -> None:
        self._next_ms = PAUSE_MS_MIN

    def after(self, ran_ms: int) -> int:
        """The pause after a process that ran for so long."""
        if ran_ms >= PAUSE_MS_MAX:
            self._next_ms = PAUSE_MS_MIN
        pause_ms = self._next_ms
        self._next_ms = min(2 * pause_ms, PAUSE_MS_MAX)
        return pause_ms

"""Posts small messages to a URL that an operator has configured, off the broker's loop.

Why:    who is on call has to be told; a receiver that is slow, or gone, must cost nothing.
How:    a queue with a bound, and one thread that is there while something is in it. Each message is
        tried so often, a pause apart, and then dropped; so is what comes while the queue is full.
        Redirects are not followed: what was configured is what is told.
Owns:   the queue and the thread.
Source: decision 0018, "Alarm"."""

import http.client
import logging
import threading
import urllib.error
import urllib.request
from collections import deque

QUEUED_COUNT_MAX = 100
ATTEMPTS_MAX = 3
PAUSE_MS = 2_000
TIMEOUT_MS = 5_000
"""Of one attempt, for each wait for the receiver."""

_log = logging.getLogger("strandline.network")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """No other address."""


class Webhook:
    """See the module. `post` never waits, and never raises."""

    def __init__(self, *, pause_ms: int = PAUSE_MS, timeout_ms: int = TIMEOUT_MS) -> None:
        self._pause_ms, self._timeout_ms = pause_ms, timeout_ms
        self._queue: deque[tuple[str, bytes]] = deque()
        self._lock = threading.Lock()
        self._is_running = False
        self._stopped = threading.Event()
        self._opener = urllib.request.build_opener(_NoRedirects())

    def post(self, url: str, body: bytes) -> None:
        """Have JSON posted there, soon."""
        with self._lock:
            if self._stopped.is_set():
                return
            if len(self._queue) >= QUEUED_COUNT_MAX:
                _log.warning("an alarm is not posted: %d wait for the receiver", len(self._queue))
                return
            self._queue.append((url, body))
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="webhook", daemon=True).start()

    def stop(self) -> None:
        """Post no more; what is under way ends by itself."""
        self._stopped.set()

    # ---- in the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._queue or self._stopped.is_set():
                    self._is_running = False
                    return
                url, body = self._queue.popleft()
            self._deliver(url, body)

    def _deliver(self, url: str, body: bytes) -> None:
        reason = ""
        for attempt in range(ATTEMPTS_MAX):
            if attempt and self._stopped.wait(self._pause_ms / 1000):
                return
            reason = self._try(url, body)
            if not reason:
                return
        _log.warning("an alarm could not be posted to %s: %s", _shown(url), reason)

    def _try(self, url: str, body: bytes) -> str:
        """Why it failed; empty where it did not."""
        headers = {"Content-Type": "application/json", "User-Agent": "strandline"}
        try:
            request = urllib.request.Request(url, data=body, headers=headers, method="POST")
            with self._opener.open(request, timeout=self._timeout_ms / 1000):
                return ""
        except urllib.error.HTTPError as error:
            error.close()
            return f"it answers {error.code}"
        except (OSError, ValueError, http.client.HTTPException) as error:
            return str(error) or type(error).__name__


def _shown(url: str) -> str:
    """The URL without what may be a secret: paths and queries of webhooks are."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}"

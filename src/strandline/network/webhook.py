"""Posts alarms to a URL that an operator has configured, outside the broker's event loop.

Why:    operators need the alarms. A slow or dead receiver must not slow the broker, and must get
        the alarms once it is back: the outage that cuts it off may be the alarm.
How:    a bounded queue, and one thread that lives while the queue has messages. Of each subject
        only the newest message waits. If the receiver does not answer, or answers that it cannot
        accept the message now, the thread tries again after pauses that double. After some attempts
        it goes on to the next message, because the receiver may be unable to take this one. A
        message that is refused is dropped after as many attempts. So are messages that come while
        the queue is full. A URL whose host is not listed gets nothing, and the log says so once.
Owns:   the queue and the thread.
Source: decision 0018, "Alarm"; decision 0069, "Webhooks"."""

import http.client
import logging
import threading
from functools import partial

from strandline.base.errors import OperatorError
from strandline.config.webhook_hosts import WebhookHosts
from strandline.network.webhook_post import post

QUEUED_COUNT_MAX = 100
ATTEMPTS_MAX = 3
"""Of what the receiver refuses; and after so many the log tells of one that cannot be reached."""
PAUSE_MS = 2_000
PAUSE_MS_MAX = 60_000
"""Between two attempts: at first, and at most."""
TIMEOUT_MS = 5_000
"""Of one attempt, for each wait for the receiver."""

_OK_END = 300
_UNABLE = 500
_NOT_NOW = (408, 425, 429)
"""Answers of a receiver that cannot accept now; and all from `_UNABLE` on."""
_log = logging.getLogger("strandline.network")


class Webhook:
    """See the module. `hosts`: those that may be called. `aim` and `post` never wait, and never
    raise."""

    def __init__(
        self,
        hosts: WebhookHosts,
        *,
        pause_ms: int = PAUSE_MS,
        pause_ms_max: int = PAUSE_MS_MAX,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        self._pause_ms, self._pause_ms_max = pause_ms, pause_ms_max
        self._timeout_ms = timeout_ms
        self._hosts = hosts
        # What `aim` was told, and where alarms go: nowhere if that may not be called.
        self._told = self._url = ""
        # {about what: the newest message}, the oldest first.
        self._queue: dict[str, bytes] = {}
        self._changed = threading.Condition()
        self._is_running = self._is_stopped = False

    def aim(self, url: str) -> None:
        """Where to post from now on, also what waits already; empty: nowhere, and nothing waits."""
        with self._changed:
            if url == self._told:
                return
            self._told = url
            reason = self._hosts.refuse(url)
            if reason is not None:
                _log.warning("alarms are not posted: alarm.webhook.url %s", reason)
                url = ""
            self._url = url
            if not url:
                self._queue.clear()
            self._changed.notify_all()

    def post(self, about: str, body: bytes) -> None:
        """Have JSON posted, soon; instead of what waits and is about the same."""
        with self._changed:
            if self._is_stopped or not self._url:
                return
            self._queue.pop(about, None)
            if len(self._queue) >= QUEUED_COUNT_MAX:
                _log.warning("an alarm is not posted: %d wait for the receiver", len(self._queue))
                return
            self._queue[about] = body
            self._changed.notify_all()
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="webhook", daemon=True).start()

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until nothing waits; whether that came in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_running, timeout_s)

    def stop(self) -> None:
        """Stop posting; a post under way ends by itself."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    # ---- in the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        pause_ms = self._pause_ms
        # {about what: (the message, how often it has failed)}
        failures: dict[str, tuple[bytes, int]] = {}
        while True:
            with self._changed:
                if not self._queue or self._is_stopped:
                    self._is_running = False
                    self._changed.notify_all()
                    return
                url, (about, body) = self._url, next(iter(self._queue.items()))
            reason, is_refusal = self._try(url, body)
            before, count = failures.pop(about, (body, 0))
            count = count + 1 if before is body else 1
            is_dropped = is_refusal and count >= ATTEMPTS_MAX
            if reason and (is_dropped or count == ATTEMPTS_MAX):
                then = "" if is_dropped else ": it is tried again"
                _log.warning("an alarm could not be posted to %s: %s%s", _shown(url), reason, then)
            with self._changed:
                if not reason or is_dropped:
                    pause_ms = self._pause_ms
                    if self._queue.get(about) is body:
                        del self._queue[about]
                    continue
                failures[about] = body, count
                if self._changed.wait_for(partial(self._is_old, url, about, body), pause_ms / 1000):
                    pause_ms = self._pause_ms
                    continue
                pause_ms = min(2 * pause_ms, self._pause_ms_max)
                if not count % ATTEMPTS_MAX:
                    self._queue[about] = self._queue.pop(about)  # The next one's turn.

    def _is_old(self, url: str, about: str, body: bytes) -> bool:
        return self._is_stopped or self._url != url or self._queue.get(about) is not body

    def _try(self, url: str, body: bytes) -> tuple[str, bool]:
        """Why it failed; empty where it did not. And whether the receiver will not have it."""
        try:
            code = post(url, body, hosts=self._hosts, timeout_s=self._timeout_ms / 1000)
        except OperatorError as error:
            return str(error), True
        except (OSError, ValueError, http.client.HTTPException) as error:
            return str(error) or type(error).__name__, False
        if code < _OK_END:
            return "", False
        return f"it answers {code}", code < _UNABLE and code not in _NOT_NOW


def _shown(url: str) -> str:
    """The URL without what may be a secret: paths and queries of webhooks are."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}"

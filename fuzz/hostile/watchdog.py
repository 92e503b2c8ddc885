"""A client with every right, whose requests must all be answered while others attack.

Owns:   a thread and its connection."""

import threading
import time

from fuzz.hostile.cluster import ADMIN, SecureBroker
from strandline.base.errors import StrandlineError
from strandline.protocol.messages.metadata import MetadataRequest, MetadataResponse

INTERVAL_S = 0.1
ANSWER_MS_MAX = 5_000
"""Of one request, on a machine that is busy: a loop that is held up longer is a finding."""


class Watchdog:
    """See the module. `failure`: what was not answered, "" if all was."""

    def __init__(self, broker: SecureBroker) -> None:
        self.failure = ""
        self.longest_ms = 0.0
        self.count = 0
        self._broker = broker
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            connection = self._broker.connect(ADMIN)
            while not self._is_over.wait(INTERVAL_S):
                begun = time.monotonic()
                connection.call(MetadataRequest(topics=[]), MetadataResponse, ANSWER_MS_MAX)
                self.longest_ms = max(self.longest_ms, (time.monotonic() - begun) * 1000)
                self.count += 1
            connection.close()
        except StrandlineError as error:
            self.failure = f"the administrator's request was not answered: {error}"

"""Requests that wait until a mark reaches an index, and watchers of the next change.

Why:    an acknowledgement with acks=all waits for the commit of its last entry, or, if the topic
        caches writes, until that entry is visible. A long poll waits for the next visible record.
How:    requests wait nearly in index order, so a queue is enough. Watchers are a set that is
        emptied when it is called.
Owns:   the callbacks; per replica.
Source: design section 5 ("two stages")."""

from collections import deque
from collections.abc import Callable

from strandline.model.ids import Index
from strandline.protocol.errors import Error

_NONE = Error.NONE


class MarkWaiters:
    """Callbacks by the index that a mark (commit, or visible) must reach, in ascending order.
    Called with NONE once it has, with NOT_LEADER_OR_FOLLOWER if it may never."""

    def __init__(self) -> None:
        self.queue: deque[tuple[Index, Callable[[Error], None]]] = deque()
        """Those that wait; only this class changes it."""

    def insert(self, index: Index, callback: Callable[[Error], None]) -> None:
        """Wait for any index: a repeated request may need one below the last in the queue."""
        queue = self.queue
        position = len(queue)
        while position > 0 and queue[position - 1][0] > index:
            position -= 1
        queue.insert(position, (index, callback))

    def wait(self, index: Index, mark: Index, callback: Callable[[Error], None]) -> None:
        """The same; at once where `mark`, as it stands, has reached `index`."""
        if index <= mark:
            callback(_NONE)
        elif not self.queue or self.queue[-1][0] <= index:  # As nearly always.
            self.queue.append((index, callback))
        else:
            self.insert(index, callback)

    def on_mark(self, mark: Index) -> None:
        """Call back all waiters up to `mark`."""
        queue = self.queue
        while queue and queue[0][0] <= mark:
            queue.popleft()[1](_NONE)

    def fail(self) -> None:
        """The entries may be lost: call all waiters back with an error."""
        queue, self.queue = self.queue, deque()
        for _, callback in queue:
            callback(Error.NOT_LEADER_OR_FOLLOWER)

    def __len__(self) -> int:
        return len(self.queue)


class Watch:
    """A watcher that has not been called."""

    __slots__ = ("_watchers", "callback")

    def __init__(self, watchers: "Watchers", callback: Callable[[], None]) -> None:
        self._watchers = watchers
        self.callback = callback

    def cancel(self) -> None:
        """Make sure that it is not called; harmless afterwards."""
        self._watchers.discard(self)


class Watchers:
    """Callbacks for the next change; each is called once."""

    def __init__(self) -> None:
        self.watches: dict[Watch, None] = {}
        """Those that wait; only this class changes it."""

    def add(self, callback: Callable[[], None]) -> Watch:
        """Call `callback` at the next `notify`."""
        watch = Watch(self, callback)
        self.watches[watch] = None
        return watch

    def discard(self, watch: Watch) -> None:
        """Forget a watch."""
        self.watches.pop(watch, None)

    def notify(self) -> None:
        """Call all, once."""
        if self.watches:
            watches, self.watches = self.watches, {}
            for watch in watches:
                watch.callback()

"""One connection of a client to a broker, and its exchanges; each direction may be lost by itself.

Why:    a broker may do what a request asks, and its answer never arrives. The client repeats the
        request on its next connection, and it must not take effect twice.
How:    an exchange is one request and its answer. Answers vanish on a connection that
        `loses_answers`: the client's own time-out ends the wait, or `GIVE_UP_MS` does. Then the
        client gives the connection up, and all open exchanges fail at once, in their order, as in
        Kafka's clients. A reset does the same at its moment. The broker still carries out the
        requests that it received, and its answers to them are dropped.
Owns:   the exchanges of a connection that are not known to be answered.
Source: Kafka's Java client (NetworkClient: handleTimedOutRequests, processDisconnection)."""

from collections.abc import Callable
from typing import Protocol

from strandline.model.ids import BrokerId
from strandline.simulation.world.scheduler import US_PER_MS, Scheduler

GIVE_UP_MS = 3_000
"""A connection on which an answer is overdue for so long is given up, at the latest."""


class Connection:
    """See the module. The order on it is kept by its client."""

    __slots__ = ("broker", "drops_requests", "is_reset", "loses_answers", "loses_requests", "open")

    def __init__(self, broker: BrokerId) -> None:
        self.broker = broker
        self.loses_requests = False
        """Whether it is a black hole for what is sent from now on."""
        self.loses_answers = False
        """Whether it is one for what is answered from now on."""
        self.is_reset = False
        """Whether it is no more, and what is under way to the client is dropped, too."""
        self.drops_requests = False
        """Whether what is under way to the broker is."""
        self.open: dict[Exchange, None] = {}
        """What is not known to be answered, in its order."""

    def lose_answers(self) -> None:
        """From now on. What has been answered is under way, and comes."""
        self.loses_answers = True

    @property
    def is_faulty(self) -> bool:
        """Whether an answer may have been lost on it, and the client has to ask again."""
        return self.loses_answers or self.is_reset


class ConnectedClient(Protocol):
    """A client as its exchanges, and the faults between clients and brokers, see it."""

    @property
    def name(self) -> str:
        """As in the trace."""

    @property
    def scheduler(self) -> Scheduler:
        """Virtual time."""

    def connection_to(self, broker: BrokerId) -> Connection:
        """The present connection to `broker`."""

    def arrival_us(self, broker: BrokerId, *, is_answer: bool) -> int:
        """When what is sent at this moment to `broker`, or by it, arrives."""

    def stall(self, broker: BrokerId, delay_us: int | None) -> None:
        """Requests on the present connection to `broker` come later; None: never."""

    def reset(self, broker: BrokerId, *, drops_requests: bool) -> None:
        """The present connection to `broker` is reset."""

    def give_up(self, connection: Connection) -> None:
        """Reconnect, unless that connection was given up already."""

    def reconnect(self, broker: BrokerId) -> None:
        """Give up the present connection to `broker`."""


class Exchange:
    """One request, and its answer. `lost` is called with the client, once at most, where its
    connection is given up for an answer that was lost, or is reset."""

    __slots__ = ("_client", "_sent_us", "connection", "lost")

    def __init__(
        self, client: ConnectedClient, connection: Connection, lost: Callable[[], None]
    ) -> None:
        self._client = client
        self._sent_us = client.scheduler.now_us
        self.connection = connection
        self.lost = lost
        connection.open[self] = None

    def answer(self, callback: Callable[[], None]) -> None:
        """Inside the broker: let an answer reach the client, if it can."""
        client, connection = self._client, self.connection
        if self._is_lost():
            return

        def arrive() -> None:
            if not connection.is_reset:
                connection.open.pop(self, None)
                callback()

        due_us = client.arrival_us(connection.broker, is_answer=True)
        client.scheduler.at(due_us, arrive)

    def settle(self) -> bool:
        """Inside the broker: answer now, in no time; whether the client gets it.

        For those who need no answer to go on."""
        if self._is_lost():
            return False
        self.connection.open.pop(self, None)
        return True

    def _is_lost(self) -> bool:
        """Whether what is answered now is lost; then the connection is given up when it is time."""
        connection, scheduler = self.connection, self._client.scheduler
        if connection.is_faulty and not connection.is_reset:
            due_us = max(scheduler.now_us, self._sent_us + GIVE_UP_MS * US_PER_MS)
            scheduler.at(due_us, lambda: self._client.give_up(connection))
        return connection.is_faulty

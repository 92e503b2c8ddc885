"""What every broker that answers knows of the cluster's health, in a fraction of a second.

Why:    the first question in an outage must cost no time-out: not of a dead broker, and not of a
        controller that is missing.
How:    all bootstrap addresses are asked at the same time; the first answer names the addresses of
        all registered brokers, and these are asked at the same time, too. The wait ends when all
        have answered or refused, or soon after brokers that the others hear have: a multiple of the
        time that the first answer took, so that far brokers get longer.
Source: docs/decisions/0046-cluster-status.md."""

import queue
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from strandline.base.errors import StrandlineError
from strandline.client.brokers import CONNECT_TIMEOUT_MS, FIRST_CONTACT_MS
from strandline.client.cluster import Client
from strandline.client.errors import CannotConnectError, NotOfferedError, refusal
from strandline.client.operations.no_controller import tell
from strandline.client.rights import is_refused, naming_right
from strandline.client.wire.connection import Connection
from strandline.client.wire.transport import Transport
from strandline.config.addresses import format_address
from strandline.model.access import Kind, Operation
from strandline.model.cluster import Address
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_status import (
    DescribeStatusRequest,
    DescribeStatusResponse,
    StatusBroker,
)
from strandline.protocol.messages.describe_zones import (
    DescribeZonesRequest,
    DescribeZonesResponse,
)

PATIENCE_MS = 300
"""How long all brokers are given, at least, after the first answer."""
HEARD_PATIENCE_MS = 600
"""The same for brokers that others hear."""
PATIENCE_FACTOR = 3
"""And so many times as long as the first answer took."""


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """`answers`: {broker: what it knows}, at least one; `zones`: what the controller knows of
    outages, None without an answer of it; `older`: brokers of a release that does not tell."""

    answers: Mapping[BrokerId, DescribeStatusResponse]
    zones: DescribeZonesResponse | None = None
    older: frozenset[BrokerId] = frozenset()

    @property
    def best(self) -> DescribeStatusResponse:
        """The answer of the broker that knows most: the controller, or else the one that hears
        most brokers."""

        def knows(one: DescribeStatusResponse) -> tuple[bool, int, int]:
            heard = sum(1 for broker in one.brokers if broker.is_heard)
            return one.is_controller, heard, one.cluster_version

        return max(self.answers.values(), key=knows)

    @property
    def has_controller(self) -> bool:
        """Whether a controller has answered."""
        return any(one.is_controller for one in self.answers.values())

    @property
    def is_settled(self) -> bool:
        """Whether a controller has answered that knows which brokers are silent."""
        return any(one.is_settled for one in self.answers.values())

    @property
    def brokers(self) -> list[StatusBroker]:
        """All registered brokers, as the best informed broker sees them."""
        return sorted(self.best.brokers, key=lambda one: one.broker_id)

    def heard_by(self, broker: int) -> list[int]:
        """The answering brokers that hear this one; without itself."""
        return sorted(
            id
            for id, answer in self.answers.items()
            if id != broker
            and any(one.broker_id == broker and one.is_heard for one in answer.brokers)
        )

    def is_down(self, broker: int) -> bool:
        """Whether it does not answer, and no broker that answers hears it."""
        return not self.is_answering(broker) and not self.heard_by(broker)

    def is_answering(self, broker: int) -> bool:
        """Whether it answers here."""
        return broker in self.answers or broker in self.older

    def since_ms(self, broker: int, wall_ms: int) -> int | None:
        """Since when a broker is silent, in ms since 1970: by the controller's log, or else by the
        broker that heard it last; None: no broker knows."""
        seen = [
            one
            for answer in self.answers.values()
            for one in answer.brokers
            if one.broker_id == broker and not one.is_heard
        ]
        recorded = [one.silent_since_ms for one in seen if one.silent_since_ms >= 0]
        if recorded:
            return min(recorded)
        silent = [one.silent_ms for one in seen if one.silent_ms >= 0]
        return wall_ms - min(silent) if silent else None

    def why_no_controller(self) -> str:
        """One line; empty where there is a controller."""
        if self.has_controller:
            return ""
        voters = [BrokerId(one) for one in self.best.controller_voters]
        heard = {
            id: frozenset(BrokerId(one.broker_id) for one in answer.brokers if one.is_heard)
            for id, answer in self.answers.items()
            if id in voters
        }
        found = tell(voters, heard)
        if found:
            return found
        named = self.best.controller_id
        if named >= 0:
            return f"no answer from the controller, broker {named}"
        return "no controller yet: enough of its voters answer, and elect one within seconds"


@dataclass(slots=True)
class _Asked:
    """What came of one address: an answer, or why there is none."""

    address: Address
    answer: DescribeStatusResponse | None = None
    zones: DescribeZonesResponse | None = None
    failure: StrandlineError | None = None


@dataclass(slots=True)
class _Round:
    """Asks addresses, each in a thread of its own that nothing waits for."""

    transport: Transport
    done: "queue.SimpleQueue[_Asked]" = field(default_factory=queue.SimpleQueue)
    asked: set[Address] = field(default_factory=set)

    def ask(self, addresses: Iterable[Address]) -> None:
        """Ask those that were not asked yet."""
        for one in addresses:
            if one not in self.asked:
                self.asked.add(one)
                threading.Thread(target=self._work, args=(one,), daemon=True).start()

    def _work(self, address: Address) -> None:
        found = _Asked(address)
        try:
            connection = Connection(
                self.transport, address, client_id="strandline", timeout_ms=CONNECT_TIMEOUT_MS
            )
            try:
                answer = connection.call(
                    DescribeStatusRequest(), DescribeStatusResponse, CONNECT_TIMEOUT_MS
                )
                if answer.error_code:
                    subject = f"the status of {format_address(address)}"
                    raise refusal(answer.error_code, subject, answer.error_message)
                found.answer = answer
                if answer.is_controller:
                    zones = connection.call(
                        DescribeZonesRequest(), DescribeZonesResponse, CONNECT_TIMEOUT_MS
                    )
                    found.zones = None if zones.error_code else zones
            finally:
                connection.close()
        except StrandlineError as error:
            found.failure = error
        self.done.put(found)


def ask_status(client: Client) -> ClusterStatus:
    """Ask all brokers. Raises CannotConnectError if none answers, NotOfferedError if only brokers
    of older releases do, MissingRightError if those that answer refuse the client."""
    began = time.monotonic()
    asking = _Round(client.transport)
    asking.ask(client.bootstrap)
    results: list[_Asked] = []
    first_s: float | None = None
    while len(results) < len(asking.asked):
        passed_s = time.monotonic() - began
        left_s = _patience_s(results, asking.asked, first_s, client.timeout_ms) - passed_s
        try:
            found = asking.done.get(timeout=max(left_s, 0.001))
        except queue.Empty:
            if left_s <= 0:
                break
            continue
        results.append(found)
        if found.answer is not None:
            first_s = time.monotonic() - began if first_s is None else first_s
            asking.ask(Address(one.host, one.port) for one in found.answer.brokers)
    with naming_right(client, Operation.DESCRIBE, Kind.CLUSTER):
        return _merge(results)


def _patience_s(
    results: list[_Asked], asked: set[Address], first_s: float | None, timeout_ms: int
) -> float:
    """How long the whole round may take, in seconds."""
    if first_s is None:
        return min(FIRST_CONTACT_MS, timeout_ms) / 1000
    outstanding = asked - {one.address for one in results}
    heard = {
        Address(one.host, one.port)
        for result in results
        if result.answer is not None
        for one in result.answer.brokers
        if one.is_heard
    }
    patience_ms = HEARD_PATIENCE_MS if outstanding & heard else PATIENCE_MS
    return first_s + max(patience_ms / 1000, PATIENCE_FACTOR * first_s)


def _merge(results: list[_Asked]) -> ClusterStatus:
    answers = {
        BrokerId(one.answer.broker_id): one.answer for one in results if one.answer is not None
    }
    if not answers:
        failures = [one.failure for one in results if one.failure is not None]
        for failure in failures:
            if isinstance(failure, NotOfferedError) or is_refused(failure):
                raise failure
        text = "; ".join(str(one) for one in failures[:3]) or "no answer in time"
        raise CannotConnectError(f"cannot reach the cluster: {text}")
    addresses = {
        Address(one.host, one.port): BrokerId(one.broker_id)
        for answer in answers.values()
        for one in answer.brokers
    }
    older = frozenset(
        addresses[one.address]
        for one in results
        if isinstance(one.failure, NotOfferedError) and one.address in addresses
    )
    zones = next((one.zones for one in results if one.zones is not None), None)
    return ClusterStatus(answers, zones, older)

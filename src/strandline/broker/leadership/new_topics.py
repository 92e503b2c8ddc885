"""Topics that were created a moment ago, whose partitions may not have their first leaders yet.

Why:    elections take a moment. A client that is told of a topic without leaders, and without an
        error for the topic, connects to no broker; some clients never ask again.
How:    created --all partitions have a leader, or `NEW_TOPIC_MS`--> as any other topic
        Metadata waits for the leaders of a new topic until it is `LEADERS_WAIT_MS` old. Without
        them it answers LEADER_NOT_AVAILABLE for the topic. In an older topic only the partition
        without a leader gets that error, because clients go on with the other partitions.
Owns:   when this broker applied the record of each new topic.
Source: Kafka's Metadata: LEADER_NOT_AVAILABLE is retriable for topics and for partitions."""

from strandline.base.clock import Clock
from strandline.controller.records import Record, TopicCreated, TopicDeleted

NEW_TOPIC_MS = 5_000
LEADERS_WAIT_MS = 1_000
"""The later requests of the connection wait for this answer, so the wait is short."""


class NewTopics:
    """See the module."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_ms: dict[str, int] = {}
        """{topic: when its record was applied here}, the oldest first."""

    def on_applied(self, record: Record) -> None:
        """Note what the controller's log says, once this broker has joined."""
        if isinstance(record, TopicCreated):
            self._forget_old()
            self._since_ms.pop(record.name, None)
            self._since_ms[record.name] = self._clock.monotonic_ms()
        elif isinstance(record, TopicDeleted):
            self._since_ms.pop(record.name, None)

    def is_new(self, topic: str) -> bool:
        """Whether the topic may have no leaders yet because it is new."""
        return self.age_ms(topic) < NEW_TOPIC_MS

    def wait_ms(self, topic: str) -> int:
        """How long a request may wait for the leaders of a topic; 0 if it is not new."""
        return max(0, LEADERS_WAIT_MS - self.age_ms(topic))

    def age_ms(self, topic: str) -> int:
        """The age of a topic; `NEW_TOPIC_MS` or more for any topic that is not new."""
        since_ms = self._since_ms.get(topic)
        return NEW_TOPIC_MS if since_ms is None else self._clock.monotonic_ms() - since_ms

    def _forget_old(self) -> None:
        limit_ms = self._clock.monotonic_ms() - NEW_TOPIC_MS
        while self._since_ms:
            oldest = next(iter(self._since_ms))
            if self._since_ms[oldest] > limit_ms:
                return
            del self._since_ms[oldest]

"""The offsets of a stream as Spark's checkpoint keeps them: the Kafka connector's JSON, and ids.

Why:    a checkpoint outlives releases, and a topic made anew under its name begins at 0 again: its
        id tells the two apart.
How:    {"orders": {"0": 23, "1": 45}, "orders@v1:5b2f...": {}}: next offsets by partition, then an
        entry without partitions that has the topic's id. No topic has @ in its name. The Kafka
        connector reads past such an entry, and this source reads the connector's JSON, so a
        checkpoint can change hands in both directions.
Source: Spark's `KafkaSourceOffset`; decisions/0049."""

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.base.errors import OperatorError
from strandline.spark.reading.bounds import TopicPartition

JsonOffsets = dict[str, dict[str, int]]
"""What Spark stores."""

_VERSION = "v1"


@dataclass(frozen=True, slots=True)
class StreamOffsets:
    """The next offset of each partition. `ids`: {topic: its id as text}; a topic without one was
    written by the Kafka connector, or its cluster gives topics no ids."""

    of: Mapping[TopicPartition, int]
    ids: Mapping[str, str]

    @property
    def topics(self) -> set[str]:
        """The names of the topics that have offsets."""
        return {topic for topic, _ in self.of}

    def same_topic(self, topic: str, topic_id: str) -> bool:
        """Whether these offsets are of the topic with this id, as far as ids are known."""
        return not topic_id or self.ids.get(topic, topic_id) == topic_id


def to_json(offsets: StreamOffsets) -> JsonOffsets:
    """Always the same order, for Spark compares offsets as text."""
    content: JsonOffsets = {}
    for topic, partition in sorted(offsets.of):
        content.setdefault(topic, {})[str(partition)] = offsets.of[topic, partition]
    for topic in sorted(offsets.topics):
        if offsets.ids.get(topic):
            content[f"{topic}@{_VERSION}:{offsets.ids[topic]}"] = {}
    return content


def from_json(content: object) -> StreamOffsets:
    """Reads what `to_json` or the Kafka connector wrote. Raises OperatorError."""
    if not isinstance(content, dict):
        raise OperatorError(f"the checkpoint's offsets are not this source's: {content!r}")
    of: dict[TopicPartition, int] = {}
    ids: dict[str, str] = {}
    for name, partitions in content.items():
        topic, at, rest = name.partition("@")
        if at:
            version, _, topic_id = rest.partition(":")
            if version != _VERSION:
                raise OperatorError(
                    f"the checkpoint's offsets have version {version!r}, this release reads "
                    f"{_VERSION}: run the stream with the release that wrote them, or a later one"
                )
            ids[topic] = topic_id
            continue
        if not isinstance(partitions, dict):
            raise OperatorError(f"the checkpoint's offsets of topic {topic}: {partitions!r}")
        for word, offset in partitions.items():
            if not (word.isascii() and word.isdigit()) or type(offset) is not int or offset < 0:
                raise OperatorError(f"the checkpoint's offset of {topic}-{word}: {offset!r}")
            of[topic, int(word)] = offset
    return StreamOffsets(of, ids)

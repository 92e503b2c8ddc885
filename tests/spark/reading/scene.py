"""A cluster in memory with topics of known records, and readers of it without Spark."""

from uuid import UUID, uuid5

from tests.client.fake_cluster import FakeCluster, FakeTransport, metadata

from strandline.client.cluster import Client
from strandline.protocol.messages.metadata import MetadataResponse
from strandline.protocol.table import Message
from strandline.records.record import Record, build_batch
from strandline.spark.reading.fetching import SplitFetcher
from strandline.spark.reading.options import ReachOptions
from strandline.spark.reading.splits import Split

SPACE = UUID(int=77)


class Scene:
    """See the module. `generation`: how often each topic was made anew; with it topics have ids."""

    def __init__(self, brokers: int = 3) -> None:
        self.cluster = FakeCluster(brokers)
        self.transport = FakeTransport(self.cluster)
        self.generation: dict[str, int] = {}
        self.cluster.extra["Metadata"] = self._metadata
        # Fetch by topic id comes with version 13; the cluster in memory goes by names.
        self.cluster.max_versions[1] = 12

    def client(self) -> Client:
        return Client(self.cluster.bootstrap, transport=self.transport)

    def reach(self, **changed: object) -> ReachOptions:
        given: dict[str, object] = {"bootstrap": tuple(self.cluster.bootstrap), **changed}
        return ReachOptions(**given)  # type: ignore[arg-type]

    def topic(self, name: str, partitions: int = 1) -> None:
        """Make a topic, or make it anew."""
        self.cluster.add_topic(name, partitions)
        self.generation[name] = self.generation.get(name, 0) + 1

    def topic_id(self, name: str) -> str:
        return str(uuid5(SPACE, f"{name}/{self.generation[name]}"))

    def write(self, topic: str, partition: int, count: int, *, per_batch: int = 3) -> None:
        """`count` records, the value of each its offset."""
        log = self.cluster.topics[topic][partition]
        last = log.end + count
        while log.end < last:
            offsets = range(log.end, min(log.end + per_batch, last))
            records = [
                Record(n - log.end, timestamp=1000 + n, value=str(n).encode()) for n in offsets
            ]
            log.batches.append(bytes(build_batch(records, base_offset=log.end)))
            log.end = offsets.stop

    def split(self, topic: str, partition: int, start: int, end: int) -> Split:
        return Split(topic, self.topic_id(topic), partition, start, end)

    def fetcher(self, split: Split, *, fails: bool = True, **reach: object) -> SplitFetcher:
        return SplitFetcher(self.client(), split, self.reach(**reach), fail_on_data_loss=fails)

    def _metadata(self, cluster: FakeCluster, broker: int, request: Message) -> Message:
        answer = metadata(cluster, broker, request)
        assert isinstance(answer, MetadataResponse)
        for topic in answer.topics:
            if topic.name in self.generation and not topic.error_code:
                topic.topic_id = UUID(self.topic_id(topic.name))
        return answer

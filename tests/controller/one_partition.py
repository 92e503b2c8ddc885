"""A controller with one partition whose replicas move: asked for, granted and reported."""

from tests.controller.controller_world import World, brokers

from strandline.controller.commands import (
    AlterReassignments,
    PartitionResult,
    PartitionResults,
    ReportVoters,
    VotersNoted,
    WantedReplicas,
)
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId

TOPIC = "flights"


class OnePartition(World):
    """A world whose topic has one partition; who makes one creates the topic."""

    @property
    def partition(self) -> Partition:
        return self.state.cluster.topics[TOPIC].partitions[0]

    def alter(self, *ids: int, may_change_count: bool = True) -> PartitionResult:
        return self.ask(brokers(*ids), may_change_count=may_change_count)

    def cancel(self) -> PartitionResult:
        return self.ask(None)

    def ask(
        self, replicas: tuple[BrokerId, ...] | None, *, may_change_count: bool = True
    ) -> PartitionResult:
        wanted = WantedReplicas(topic=TOPIC, index=0, replicas=replicas)
        answer = self.run(AlterReassignments((wanted,), may_change_count))
        assert isinstance(answer, PartitionResults)
        return answer.partitions[0]

    def report(self, *voters: int, version: int = 1) -> bool:
        answer = self.run(ReportVoters(self.partition.group, version, brokers(*voters)))
        return isinstance(answer, VotersNoted)

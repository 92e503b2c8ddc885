"""Nothing leaves the beginning of a log but what its topic's retention, or a request, lets go.

Why:    all other promises are about what lies from where a log begins: what is gone below breaks
        none of them.
How:    whoever lets a log begin elsewhere creates a file first that says where
        (`storage.name_changes`). That is seen at the disk, and judged there and then: by what
        is left, and by what was asked for. A log that begins anew goes by its leader's, which may
        have decided what it has yet to do: that is judged only where no retention lets anything go.
Owns:   what was asked for; one set for each run.
Source: Kafka's retention.bytes; docs/decisions/0006-deleting-records.md."""

from typing import TYPE_CHECKING

from strandline.model.ids import BrokerId, GroupId, Offset
from strandline.simulation.invariants.facts import DeletionAsked, LogShortened, Subject
from strandline.simulation.invariants.invariants import Invariant
from strandline.storage.layout import LOG, RESET, START, SegmentName, parse_name

if TYPE_CHECKING:
    from strandline.simulation.disk.disk import HostDisk
    from strandline.simulation.world.world import World


class OnlyExpiredIsLetGo(Invariant):
    """See the module. Times do not let anything go here: histories are shorter than any."""

    def __init__(self) -> None:
        self._asked: dict[GroupId, Offset] = {}

    def on_deletion_asked(self, fact: DeletionAsked) -> None:
        """From now on it may be done."""
        self._asked[fact.group] = max(fact.before, self._asked.get(fact.group, fact.before))

    def on_log_shortened(self, fact: LogShortened) -> None:
        """Where a log is about to begin."""
        asked = self._asked.get(fact.group, Offset(0))
        due_bytes = min(fact.retention_bytes, 0) if fact.begins_anew else fact.retention_bytes
        if fact.start_offset > asked and not 0 <= due_bytes <= fact.kept_bytes:
            raise self.broken(
                f"group {fact.group}: broker {fact.broker} lets its log begin at "
                f"{fact.start_offset}, with {fact.kept_bytes} bytes from there on; nothing from "
                f"{asked} on was to go, by a retention of {fact.retention_bytes} bytes or a "
                "request",
                Subject(fact.group, asked),
            )


def note_created(world: "World", broker: BrokerId, path: str) -> None:
    """A file was created on this broker's disk: tell it, where it says where a log will begin."""
    directory, _, file = path.rpartition("/")
    parsed = parse_name(file)
    if parsed is None or parsed[1] not in (START, RESET):
        return
    host = world.hosts[broker]
    replicas = [] if host.program is None else host.program.replicas
    # None where it is finished what an earlier process had begun.
    replica = next((one for one in replicas if one.log.directory == directory), None)
    if replica is None or not world.has_plan(replica.group):
        return
    name, suffix = parsed
    log = world.scenario.log
    begins_anew = suffix == RESET
    kept_bytes = 0
    if not begins_anew:
        kept_bytes = replica.log.size_bytes() - _bytes_before(host.disk, directory, name)
    world.checker.log_shortened(
        LogShortened(
            broker=broker,
            group=replica.group,
            start_offset=name.base_offset,
            begins_anew=begins_anew,
            kept_bytes=kept_bytes,
            retention_bytes=-1 if world.scenario.key_count else log.retention_bytes,
        )
    )


def _bytes_before(disk: "HostDisk", directory: str, start: SegmentName) -> int:
    """Bytes of the segments before `start`: they are closed, and end with their last batch."""
    return sum(
        image.current.size
        for path, image in disk.tree.files()
        if (parsed := parse_name(path.removeprefix(f"{directory}/"))) is not None
        and parsed[1] == LOG
        and parsed[0].base_index < start.base_index
    )

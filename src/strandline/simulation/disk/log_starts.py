"""Sees at the disk that a log is about to begin elsewhere.

Why:    whatever lets a log begin elsewhere creates a file first that says where
        (`storage.name_changes`): seen here, it is judged before anything is gone.
How:    called for each file that is created; `LogShortened` is the fact.
Owns:   nothing.
Source: `invariants.shortened_logs`."""

from collections.abc import Callable, Iterable

from strandline.base.errors import StorageError
from strandline.model.ids import BrokerId, GroupId, Index, Offset
from strandline.records.batch import iterate_headers
from strandline.replication.replica.replica import Replica
from strandline.simulation.disk.disk import HostDisk
from strandline.simulation.invariants.checker import Checker
from strandline.simulation.invariants.facts import LogShortened
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.world.host import SimHost
from strandline.simulation.world.member import Member
from strandline.storage.config import LogConfig
from strandline.storage.layout import LOG, RESET, START, SegmentName, parse_name

CHUNK_BYTES = 64 * 1024


def report_log_start(
    path: str,
    host: SimHost[Member],
    scenario: Scenario,
    checker: Checker,
    *,
    hosts: Iterable[SimHost[Member]],
    on_cut: Callable[[BrokerId, GroupId, Offset, Offset], None] | None = None,
) -> None:
    """A file was created on this host's disk: tell it, where it says where a log will begin.
    `hosts`: all of them. The leader that has this log begin anew may know of more in buckets than
    any replica has shown. `on_cut`: is told, too, with (broker, group, start
    offset, what total retention takes)."""
    if not path.endswith((START, RESET)):  # Before the rest: this is called for every file.
        return
    directory, _, file = path.rpartition("/")
    parsed = parse_name(file)
    if parsed is None or parsed[1] not in (START, RESET):
        return
    replicas = [] if host.program is None else host.program.replicas
    # None where it is finished what an earlier process had begun.
    replica = next((one for one in replicas if one.log.directory == directory), None)
    is_planned = replica is not None and any(
        plan.group == replica.group for plan in scenario.groups
    )
    if host.program is None or replica is None or not is_planned:
        return
    name, suffix = parsed
    log = scenario.log
    begins_anew = suffix == RESET
    kept_bytes = 0
    # With remote storage `invariants.tiers` judges the new start.
    retention_bytes = 0 if log.remote_storage else log.retention_bytes
    if not begins_anew:
        kept_bytes = replica.log.size_bytes() - _bytes_before(host.disk, directory, name)
    if log.remote_storage:
        for program in filter(None, (one.program for one in hosts)):
            for shown in program.replicas:
                if shown.group == replica.group:
                    program.show_tier(shown)
    expired_before = Offset(0)
    if log.remote_storage and not begins_anew:
        now_ms = host.clock.wall_ms()
        expired_before = _expired_before(replica, name, kept_bytes=kept_bytes, now_ms=now_ms)
    checker.log_shortened(
        LogShortened(
            broker=host.broker,
            group=replica.group,
            start_offset=name.base_offset,
            begins_anew=begins_anew,
            kept_bytes=kept_bytes,
            retention_bytes=-1 if scenario.key_count else retention_bytes,
            expired_before=expired_before,
        )
    )
    if on_cut is not None:
        on_cut(host.broker, replica.group, name.base_offset, expired_before)


def _expired_before(
    replica: Replica, start: SegmentName, *, kept_bytes: int, now_ms: int
) -> Offset:
    """The start, if the topic's total retention takes all before it; else 0. It takes records that
    are in no bucket only if nothing before them is to stay: an older object, which may go live
    between the decision and the first file that shows it, goes as well."""
    log, config = replica.log, replica.log.config
    if 0 <= config.retention_bytes <= kept_bytes:  # What this log keeps is enough.
        return start.base_offset
    tier = replica.tier.state
    has_time_left = not all(
        0 <= config.retention_ms < now_ms - entry.max_timestamp
        for bucket in tier.buckets
        for entry in tier.live(bucket)
        if entry.base_offset < log.start_offset
    )
    if has_time_left and tier.start_offset(log.start_offset) < log.start_offset:
        return Offset(0)
    if not 0 <= config.retention_ms < LogConfig().retention_ms:  # No history lasts that long.
        return Offset(0)
    newest_ms = -1
    index = log.start_index
    while index < start.base_index:
        try:
            entries = log.read_entries(index, CHUNK_BYTES)
        except StorageError:  # Rotten: the log knows its times by its index.
            return start.base_offset
        for header in iterate_headers(entries.data):
            if not header.is_marker and header.base_offset < start.base_offset:
                newest_ms = max(newest_ms, header.max_timestamp)
        index = Index(entries.last_index + 1)
    return start.base_offset if config.retention_ms < now_ms - newest_ms else Offset(0)


def _bytes_before(disk: HostDisk, directory: str, start: SegmentName) -> int:
    """Bytes of the segments before `start`: they are closed, and end with their last batch."""
    prefix = f"{directory}/"
    return sum(
        image.current.size
        for path, image in disk.tree.files()
        if path.startswith(prefix)
        and path.endswith(LOG)
        and (parsed := parse_name(path.removeprefix(prefix))) is not None
        and parsed[1] == LOG
        and parsed[0].base_index < start.base_index
    )

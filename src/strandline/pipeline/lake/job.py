"""Brings a table up to its topics: a loop of planned batches, each one commit of the table.

Why:    queries run on tables; a table with a duplicate or missing record gives wrong answers.
How:
            progress of the table + offsets of the topics -> plan batch n -> write it, one commit
                      ^                                                            |
                      +------------------------------------------------------------+

        Whatever is killed, the table's newest commit says where to go on. Before Spark starts the
        job has read that commit (of a local table), the topics' ids and offsets, and has refused
        what cannot work; if there is nothing to read, Spark does not start at all.
Owns:   the order of batches; one job at a time for a table.
Source: decisions/0050."""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Protocol

from strandline.base.errors import OperatorError, StrandlineError
from strandline.pipeline.lake.cluster import NO_ID, Questions, Snapshot, is_outage
from strandline.pipeline.lake.delta_log import Commit, LogFiles, versions
from strandline.pipeline.lake.options import LakeOptions
from strandline.pipeline.lake.plan import PlanOptions, lag, next_batch, positions, redo
from strandline.pipeline.lake.progress import (
    Batch,
    TableState,
    TopicProgress,
    own_commit,
    read_state,
)
from strandline.pipeline.lake.start import starting_offsets

OUTAGE_S = 120
"""How long a job that ends at the end of now waits for a cluster that does not answer."""
RETRY_S = 2.0
SHORTER_TRIES = 10
"""How often a job looks again at a partition that ends before the table's records do: a new leader
may not know yet how far the old one was."""


class Writer(Protocol):
    """What a job needs of `writer.TableWriter`."""

    log: LogFiles

    def prepare(self, *, exists: bool) -> list[str]:
        """See TableWriter."""

    def write(self, batch: Batch, *, after: int) -> Commit:
        """See TableWriter."""

    def note_gaps(self, batch: Batch) -> None:
        """See TableWriter."""

    def dead_letters(self, batch: Batch) -> Commit | None:
        """See TableWriter."""

    def problems(self, commits: Sequence[tuple[str, Commit]]) -> dict[str, int]:
        """See TableWriter."""

    def recovered(self) -> dict[str, dict[int, int]]:
        """See TableWriter."""

    def last_number(self) -> int:
        """See TableWriter."""


@dataclass(frozen=True, slots=True)
class Written:
    """A committed batch, as its commit tells."""

    number: int
    version: int
    records: int
    malformed: int
    """Records in the table whose key or value did not fit."""
    dead_letters: int
    """Records in the table of dead letters."""
    problems: Mapping[str, int]
    """{why records did not fit: how many}, of both."""
    elsewhere: int
    """Offsets without a record: compaction removed it, or it is a marker of a transaction."""
    gaps: int
    left: int
    """Records that the job still has to read, as of its last look."""
    lag_ms: int
    """How old the newest record of the batch is; 0 if it was the last one."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What a job calls as it goes on."""

    on_batch: Callable[[Written], None]
    on_notice: Callable[[str], None]
    """A line for people: the cluster is away, the table changed..."""


class LakeJob:
    """See the module. `look` comes first, then `run` unless there is nothing to do."""

    def __init__(
        self, options: LakeOptions, cluster: Questions, *, stop: Event, watch: Watch
    ) -> None:
        self.options = options
        self._cluster = cluster
        self._stop = stop
        self._watch = watch
        self._run = uuid.uuid4().hex
        self._plan = PlanOptions(options.table, options.on_gap, options.batch_records)
        self._state: TableState | None = None
        self._redo: Batch | None = None
        self._snapshot: Snapshot | None = None
        self._current: dict[str, TopicProgress] = {}

    # ---- before Spark ---------------------------------------------------------------------------

    def look(self, log: LogFiles | None, dead_letters: LogFiles | None) -> None:
        """Reads the topics, and the table's progress if its log can be read already; raises
        OperatorError for what cannot work."""
        self._refresh()
        assert self._snapshot is not None
        rack = self.options.rack
        if rack is not None:
            racks = self._cluster.racks()
            if rack not in racks:
                known = ", ".join(sorted(racks)) or "none"
                raise OperatorError(f"--rack {rack}: no broker is there; racks: {known}")
        if log is not None:
            self._read(log, dead_letters)
        if self._state is not None and self._state.batch is not None:
            self._tell(self._state.batch)  # If the last run was killed before it did so.

    @property
    def total(self) -> int:
        """How many records are left to read, as of the last look."""
        return lag(self._current, self._snapshot) if self._snapshot is not None else 0

    @property
    def is_idle(self) -> bool:
        """Whether the table is known to have everything that the topics have, by the very schema
        of this job: another one must be compared with the table's first."""
        if self._state is None or self._next() is not None:
            return False
        known = self._state.batch
        return known is None or known.values == self._values

    @property
    def has_table(self) -> bool:
        """Whether the table is there."""
        return self._state is not None and self._state.version >= 0

    @property
    def batch_number(self) -> int:
        """The number of the table's newest batch; -1: it has none."""
        return -1 if self._state is None or self._state.batch is None else self._state.batch.number

    def _read(self, log: LogFiles, dead_letters: LogFiles | None) -> None:
        try:
            state = read_state(log, self.options.table)
        except OperatorError:
            if self.options.recover:
                return  # `run` takes it from the rows.
            raise
        self._take(state)
        if dead_letters is None:
            return
        try:
            dead = read_state(dead_letters, self.options.dead_letters or "")
        except OperatorError:
            if self.options.recover:
                return  # The writer compares each dead letter with those that are there.
            raise
        self._redo = self._unfinished(dead)

    def _take(self, state: TableState) -> None:
        self._state = state
        if state.batch is not None:
            self._check_known(state.batch)
        self._reposition()

    def _check_known(self, known: Batch) -> None:
        table, options = self.options.table, self.options
        assert self._snapshot is not None
        new = [topic for topic in options.topics if topic not in known.topics]
        if new and not options.add_topics:
            raise OperatorError(
                f"{table} holds the records of {', '.join(sorted(known.topics))}, not of {new[0]}: "
                "if it shall hold both, add --add-topic"
            )
        if known.key != options.key:
            raise OperatorError(
                f"{table} has keys as {known.key}: use --key {known.key}, or fill a new table"
            )
        if known.upsert != options.upsert:
            raise OperatorError(
                f"{table} has the newest record of each key: add --upsert"
                if known.upsert
                else f"{table} has a row for each record: leave --upsert out, or fill a new table"
            )
        if known.partition_by != options.partition_texts:
            raise OperatorError(
                f"{table} is partitioned by {' and '.join(known.partition_by)}, not by "
                f"{' and '.join(options.partition_texts)}: give the table's --partition-by, or "
                "fill a new table"
            )
        found = self._snapshot.cluster_id
        if known.cluster_id != found and options.on_gap != "start-anew":
            raise OperatorError(
                f"{table} was filled from cluster {known.cluster_id}, and {options.bootstrap} is "
                f"cluster {found}: use the right --bootstrap; or go on with this cluster's records "
                "by --on-gap start-anew"
            )

    def _unfinished(self, dead: TableState) -> Batch | None:
        """The batch whose dead letters are written and whose rows are not."""
        if dead.batch is None:
            return None
        assert self._state is not None
        done = -1 if self._state.batch is None else self._state.batch.number
        if dead.batch.job != self.options.job or dead.batch.number > done + 1:
            raise OperatorError(
                f"{self.options.dead_letters} holds the dead letters of another job "
                f"({dead.batch.job}, batch {dead.batch.number}): name another --dead-letters"
            )
        if dead.batch.number <= done:
            return None
        if dead.batch.values != self._values:
            raise OperatorError(
                f"batch {dead.batch.number} was begun with another --schema, and its dead letters "
                "are written: run once more with that schema, then with the new one"
            )
        return dead.batch

    @property
    def _values(self) -> str:
        schema = self.options.schema
        values = "" if schema is None else f"{self.options.mode} {schema.fingerprint}"
        return f"{self.options.key} {values}"

    def _refresh(self) -> None:
        self._snapshot = self._cluster.snapshot(self.options.topics)
        if self._state is not None:
            self._reposition()

    def _reposition(self) -> None:
        assert self._state is not None and self._snapshot is not None
        known = self._state.batch
        starts = {
            name: starting_offsets(self.options.start, name, topic, self._cluster)
            for name, topic in self._snapshot.topics.items()
            if known is None or name not in known.topics
        }
        for _ in range(SHORTER_TRIES):
            if not self._is_shorter(known):
                break
            time.sleep(RETRY_S / SHORTER_TRIES)
            self._snapshot = self._cluster.snapshot(self.options.topics)
        self._current = positions(known, self._snapshot, starts, self._plan)

    def _is_shorter(self, known: Batch | None) -> bool:
        assert self._snapshot is not None
        if known is None:
            return False
        return any(
            at > self._snapshot.topics[name].ends.get(partition, at)
            for name, topic in known.topics.items()
            if name in self._snapshot.topics and self._snapshot.topics[name].id == topic.id
            for partition, at in topic.next.items()
        )

    # ---- with Spark -----------------------------------------------------------------------------

    def open(self, writer: Writer, dead_letters: LogFiles | None) -> None:
        """What `run` needs before its first batch: the table's progress, and that it takes the
        rows."""
        if self._state is None:
            self._read(writer.log, dead_letters)
        if self._state is None:
            self._take(self._recovered(writer))
        assert self._state is not None
        for change in writer.prepare(exists=self.has_table):
            self._watch.on_notice(f"{self.options.table}: {change}")
        # If the last run was killed before it did so.
        known = self._state.batch
        if known is not None and known.gaps:
            writer.note_gaps(known)

    def step(self, writer: Writer) -> bool:
        """Writes the next batch; False if there is none as of the last look."""
        batch = self._next()
        if batch is None:
            return False
        assert self._state is not None
        commit = self._write(writer, batch)
        if commit is None:
            return True  # The topics were looked at again; the next step plans anew.
        self._state = TableState(commit.version, batch)
        self._redo = None
        self._reposition()
        if batch.gaps:
            writer.note_gaps(batch)
        self._tell(batch)
        self._watch.on_batch(self._written(writer, batch, commit))
        return True

    def refresh(self) -> None:
        """Looks at the topics again."""
        self._refresh()

    def _next(self) -> Batch | None:
        assert self._state is not None and self._snapshot is not None
        known = self._state.batch
        if self._redo is not None:
            batch: Batch | None = redo(self._redo, self._current, self._snapshot)
        else:
            new = known is None or any(name not in known.topics for name in self.options.topics)
            batch = next_batch(self._current, self._snapshot, self._plan, fresh=new)
        if batch is None:
            return None
        others = {} if known is None else known.topics
        quiet = {name: TopicProgress(each.id, each.next) for name, each in others.items()}
        return replace(
            batch,
            number=0 if known is None else known.number + 1,
            topics={**quiet, **batch.topics},
            job=self.options.job,
            run=self._run,
            key=self.options.key,
            partition_by=self.options.partition_texts,
            values=self._values,
            upsert=self.options.upsert,
        )

    def _write(self, writer: Writer, batch: Batch) -> Commit | None:
        """The batch's commit; None if the topics are not any more what it was planned for."""
        assert self._state is not None
        until = time.monotonic() + OUTAGE_S
        try:
            return writer.write(batch, after=self._state.version)
        except StrandlineError:
            raise
        except Exception as error:
            # Spark may have failed after the commit.
            found = own_commit(writer.log, batch, after=self._state.version)
            if found is not None:
                return found
            if self._stop.is_set():
                raise KeyboardInterrupt from error
            planned = self._snapshot
            outages = self._wait_for_cluster(until)
            if outages is None:
                raise
            if outages or self._starts(self._snapshot) != self._starts(planned):
                return None
            raise

    def _starts(self, snapshot: Snapshot | None) -> object:
        assert snapshot is not None
        return {name: (topic.id, topic.starts) for name, topic in snapshot.topics.items()}

    def _wait_for_cluster(self, until: float) -> int | None:
        """How often the cluster did not answer before it did; None: the job waits no longer."""
        outages = 0
        while True:
            try:
                self._refresh()
                return outages
            except StrandlineError as error:
                is_over = self.options.interval_ms is None and time.monotonic() > until
                if not is_outage(error):
                    raise
                if is_over or self._stop.wait(RETRY_S):
                    return None
                outages += 1
                self._watch.on_notice(f"waiting for the cluster: {error}")

    def _tell(self, batch: Batch) -> None:
        """Commits the offsets of the job's group, which `strandline group list` shows."""
        try:
            self._cluster.commit(
                self.options.job, {name: topic.next for name, topic in batch.topics.items()}
            )
        except StrandlineError as error:
            self._watch.on_notice(f"the offsets of group {self.options.job} are behind: {error}")

    def _written(self, writer: Writer, batch: Batch, commit: Commit) -> Written:
        left = self.total
        newest = commit.newest_ms
        age_ms = 0 if newest is None else max(0, round(time.time() * 1000) - newest)
        malformed = commit.present.get("problem", 0)
        told = [(self.options.table, commit)] if malformed else []
        dead = writer.dead_letters(batch)
        if dead is not None:
            told.append((self.options.dead_letters or "", dead))
        dead_letters = 0 if dead is None else dead.rows
        return Written(
            number=batch.number,
            version=commit.version,
            records=commit.rows,
            malformed=malformed,
            dead_letters=dead_letters,
            problems=writer.problems(told),
            elsewhere=batch.offsets - commit.rows - dead_letters,
            gaps=len(batch.gaps),
            left=left,
            lag_ms=age_ms if left else 0,
        )

    def _recovered(self, writer: Writer) -> TableState:
        """Progress from the table's rows, as if the last batch had ended there."""
        assert self._snapshot is not None
        ends = writer.recovered()
        topics = {}
        for name, following in ends.items():
            now = self._snapshot.topics.get(name)
            topics[name] = TopicProgress(NO_ID if now is None else now.id, following)
        self._watch.on_notice(f"{self.options.table}: goes on after its newest rows")
        batch = Batch(
            number=writer.last_number(),
            cluster_id=self._snapshot.cluster_id,
            topics=topics,
            key=self.options.key,
            partition_by=self.options.partition_texts,
            upsert=self.options.upsert,
        )
        return TableState(max(versions(writer.log), default=-1), batch)

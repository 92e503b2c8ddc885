"""Work that goes on while brokers and logins are renewed.

How:    one process of the client writes idempotently, another reads as the only member of a group.
        Then something happens: a broker gets another certificate and restarts, one after the other;
        or logins end, every three seconds. At the end each record is there once, and was read."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from clients.access.cluster import SESSION_MS, AccessCluster
from clients.access.login import Login
from clients.client import Access, Place
from clients.observer import wait
from clients.program import Member, Program
from clients.records import CellError, judge

MORE = 20
"""Records that are acknowledged before it begins, and after each thing that happens."""
TIMEOUT_S = 300
SESSIONS = 3
ESTABLISHED = "01"


@dataclass(frozen=True, slots=True)
class Course:
    """The two processes of one client."""

    cluster: AccessCluster
    access: Access
    place: Place

    def renewal(self) -> None:
        """Another certificate for each broker, and a restart. Raises CellError."""
        with self._working(self.cluster.certificate(), "renewal") as (writer, member):
            for broker in self.cluster.brokers:
                self.cluster.renew(broker)
                self._wait_more(writer, member)
                broker.restart()
                self._wait_more(writer, member)

    def session(self) -> None:
        """Logins that end. Raises CellError."""
        login = self.cluster.password(listener=1)
        ports = {int(address.rpartition(":")[2]) for address in login.bootstrap.split(",")}
        with self._working(login, "session") as (writer, member):
            before = connections(writer.pid, ports)
            end = time.monotonic() + SESSIONS * SESSION_MS / 1_000
            wait(lambda: time.monotonic() > end, what="logins that ended", timeout_s=TIMEOUT_S)
            self._wait_more(writer, member)
            after = connections(writer.pid, ports)
        if self.access.renews != bool(before & after):
            said = "kept" if before & after else "closed"
            raise CellError(f"connections were {said} over {SESSIONS} logins")

    @contextmanager
    def _working(self, login: Login, name: str) -> Iterator[tuple[Member, Member]]:
        topic, group = f"{self.place.prefix}-{name}", f"{self.place.prefix}-{name}"
        observer = self.place.observer
        observer.create(topic)
        environment = login.environment(self.place.directory, topic)
        program = Program(self.access.argv(), environment=environment)
        where = (login.bootstrap, topic)
        with program.running("writer", *where) as writer, program.member(*where, group) as member:
            self._wait_more(writer, member)
            yield writer, member
            writer.stop()
            written = writer.acknowledged
            if written != set(range(len(written))):
                raise CellError(f"{len(written)} acknowledged, up to {max(written)}")
            self._wait(
                lambda: written <= {one.number for one in member.records},
                "each record read",
                member,
            )
            member.stop()
            judge(observer.read(topic), range(len(written)), where=name)
            read = {(one.partition, one.offset): one for one in member.records}
            judge(read.values(), range(len(written)), where=f"{name}, read")
        observer.delete(topic)

    def _wait_more(self, writer: Member, member: Member) -> None:
        """Wait until more was written, and read to there."""
        goal = len(writer.acknowledged) + MORE
        self._wait(lambda: len(writer.acknowledged) >= goal, "more written", writer, member)
        goal = max(writer.acknowledged)
        self._wait(
            lambda: goal in {one.number for one in member.records}, "more read", writer, member
        )

    @staticmethod
    def _wait(condition: Callable[[], bool], what: str, *running: Member) -> None:
        def is_so() -> bool:
            for one in running:
                one.check()
            return condition()

        wait(is_so, what=what, timeout_s=TIMEOUT_S)


def connections(pid: int, ports: set[int]) -> set[int]:
    """The local ports of a process's connections to these ports of this machine."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(entry.readlink())
        except OSError:
            continue  # It was closed meanwhile.
        if target.startswith("socket:["):
            inodes.add(target[len("socket:[") : -1])
    found = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            local, remote, state, inode = fields[1], fields[2], fields[3], fields[9]
            if state == ESTABLISHED and inode in inodes and _port(remote) in ports:
                found.add(_port(local))
    return found


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)

"""The end of a run waits for what must come about, and says what did not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from chaos.ledger import Client, CommitBegun, CommitDone, Entry, LedgerReader, LedgerWriter, now_ns
from chaos.progress import Ending
from chaos.promises import Judge
from chaos.replica_logs import find_logs
from chaos.workload import partitions
from tests.chaos.stage import GROUP, LOG, NAME, TOPIC, batch, mark
from tests.chaos.stage import acknowledged as acknowledged_on_orders

from strandline.model.ids import Index

PLACES = partitions()


class Clients:
    """The ledgers of one producer and one consumer; `stopped` are the roles asked to end."""

    def __init__(self, path: Path) -> None:
        self.stopped: list[str] = []
        self.hangs = ""
        self._path = path
        self._writers: dict[str, LedgerWriter] = {}
        self._readers = {
            "producer": [self._open(Client("rd-east", acks=-1, is_idempotent=True))],
            "consumer": [self._open(Client("board-1", group="board"))],
            "watcher": [],
        }

    def _open(self, client: Client) -> LedgerReader:
        path = self._path / f"{client.name}.jsonl"
        self._writers[client.name] = LedgerWriter(path, client)
        return LedgerReader(path)

    def add(self, name: str, entry: Entry) -> None:
        self._writers[name].add(entry)

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()

    def read_on(self) -> None:
        for readers in self._readers.values():
            for reader in readers:
                reader.read_on()

    def by_role(self, role: str) -> list[LedgerReader]:
        return self._readers[role]

    def living(self, role: str) -> list[LedgerReader]:
        return self._readers[role]

    def ask_to_end(self, role: str) -> None:
        self.stopped.append(role)

    def look_at_voters(self) -> None:
        self.stopped.append("voters")

    def have_ended(self, role: str) -> bool:
        return role in self.stopped and role != self.hangs

    def forget(self, role: str) -> None:
        pass

    def write(self, topic: str, partition: int, offset: int) -> None:
        at = now_ns()
        entry = acknowledged_on_orders(at, offset, offset)
        self.add("rd-east", type(entry)(at, at, topic, partition, offset, mark(offset)))

    def commit(self, topic: str, partition: int, offset: int, *, is_done: bool = True) -> None:
        self.add("board-1", CommitBegun(now_ns(), offset, topic, partition, offset))
        if is_done:
            self.add("board-1", CommitDone(now_ns(), offset, topic, partition))


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[Clients]:
    clients = Clients(tmp_path)
    yield clients
    clients.close()


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting takes no time."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr("chaos.progress.time.monotonic", lambda: now[0])
    monkeypatch.setattr("chaos.progress.time.sleep", sleep)


def play(clients: Clients, *, write: set[int], commit: set[int], is_done: bool = True) -> Judge:
    """The ending, while clients write to and commit in the partitions of these numbers."""
    judge = Judge([])
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        for number, (topic, partition) in enumerate(PLACES):
            if number in write and "producer" not in clients.stopped:
                clients.write(topic, partition, looks)
            if number in commit:
                clients.commit(topic, partition, looks + 1, is_done=is_done)
        clients.read_on()

    look()
    Ending(clients, judge, look).play()  # type: ignore[arg-type]
    return judge


EVERYWHERE = set(range(len(PLACES)))


def test_everything_works_again(clients: Clients) -> None:
    assert play(clients, write=EVERYWHERE, commit=EVERYWHERE).breaches == {}
    assert clients.stopped == ["voters", "producer", "consumer", "watcher", "prober"]


def test_a_partition_that_takes_no_write(clients: Clients) -> None:
    judge = play(clients, write=EVERYWHERE - {2}, commit=EVERYWHERE)
    assert "rd-east to orders-2" in judge.breaches["Progress"]


def test_a_partition_that_a_group_does_not_read(clients: Clients) -> None:
    judge = play(clients, write=EVERYWHERE, commit=EVERYWHERE - {5})
    assert "board in payments-1" in judge.breaches["Progress"]


def test_commits_that_are_not_acknowledged(clients: Clients) -> None:
    judge = play(clients, write=EVERYWHERE, commit=EVERYWHERE, is_done=False)
    assert "board in orders-0" in judge.breaches["Progress"]


def test_a_producer_whose_records_are_never_answered(clients: Clients) -> None:
    clients.hangs = "producer"
    judge = play(clients, write=EVERYWHERE, commit=EVERYWHERE)
    assert "unanswered" in judge.breaches["Progress"]


def test_voters_that_do_not_return(clients: Clients) -> None:
    clients.hangs = "voters"
    judge = play(clients, write=EVERYWHERE, commit=EVERYWHERE)
    assert "others vote than should" in judge.breaches["VotersReturn"]


def put_log(path: Path, broker: int, batches: list[bytes]) -> Path:
    data = path / f"broker-{broker}"
    directory = data / "logs" / f"{TOPIC}-0.{GROUP}"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{NAME}.log").write_bytes(b"".join(batches))
    return data


def test_replicas_with_equal_ends_have_converged(clients: Clients, tmp_path: Path) -> None:
    judge = Judge([])
    logs = find_logs({broker: put_log(tmp_path, broker, LOG) for broker in (1, 2)})
    ending = Ending(clients, judge, lambda: None)  # type: ignore[arg-type]
    assert ending.wait_converged(logs) == {GROUP: Index(6)}
    assert judge.breaches == {}


def test_a_replica_that_catches_up_is_waited_for(clients: Clients, tmp_path: Path) -> None:
    judge = Judge([])
    put_log(tmp_path, 2, LOG[:-1])
    logs = find_logs({1: put_log(tmp_path, 1, LOG), 2: tmp_path / "broker-2"})
    ending = Ending(clients, judge, lambda: put_log(tmp_path, 2, LOG) and None)  # type: ignore[arg-type]
    assert ending.wait_converged(logs) == {GROUP: Index(6)}
    assert judge.breaches == {}


@pytest.mark.parametrize(
    "other", [LOG[:-1], [*LOG[:-1], batch([3, 4], offset=3, epoch=3)]], ids=["shorter", "epoch"]
)
def test_replicas_that_stay_different(clients: Clients, tmp_path: Path, other: list[bytes]) -> None:
    judge = Judge([])
    put_log(tmp_path, 2, other)
    logs = find_logs({1: put_log(tmp_path, 1, LOG), 2: tmp_path / "broker-2"})
    ending = Ending(clients, judge, lambda: None)  # type: ignore[arg-type]
    assert ending.wait_converged(logs) == {}
    assert "orders-0" in judge.breaches["Convergence"]

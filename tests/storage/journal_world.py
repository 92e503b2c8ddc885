"""A state journal on a disk that forgets, and what its puts answer."""

from collections.abc import Callable

from tests.storage.storage_world import ForgetfulDisk, ManualClock

from strandline.model.ids import BrokerId, Epoch
from strandline.raft.group.configuration import Configuration
from strandline.storage.state_journal import GroupState, StateJournal

PATH = "/data/state.journal"


def state(epoch: int, vote: int = -1) -> GroupState:
    voters = tuple(BrokerId(n) for n in range(3))
    return GroupState(Epoch(epoch), BrokerId(vote), Configuration(voters) if vote >= 0 else None)


def fresh_disk() -> ForgetfulDisk:
    disk = ForgetfulDisk()
    disk.make_directories("/data")
    return disk


def open_journal(
    disk: ForgetfulDisk,
    path: str = PATH,
    *,
    clock: ManualClock | None = None,
    use_reserve: Callable[[], bool] = lambda: False,
) -> StateJournal:
    return StateJournal.open(disk, path, clock=clock or ManualClock(), use_reserve=use_reserve)


class Answers:
    """Counts what was answered."""

    def __init__(self) -> None:
        self.errors: list[OSError | None] = []

    def __call__(self, error: OSError | None) -> None:
        self.errors.append(error)

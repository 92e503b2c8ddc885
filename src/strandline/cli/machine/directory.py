"""The data directory of a machine, with one directory below it for each broker.

How:        DIR/machine.lock   held by the supervisor
            DIR/broker-101/    the data directory of broker 101
        The supervisor looks before it starts anything. A directory of a broker that it would not
        run may hold the only copy of a record: it refuses to start while there are replicas.
Owns:   the lock.
Source: decision 0071; decision 0030."""

import fcntl
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from strandline.base.errors import OperatorError
from strandline.config.broker import BrokerConfig
from strandline.config.cores import broker_directory
from strandline.model.ids import CONTROLLER_GROUP
from strandline.storage.disk.descriptor import DIRECTORY_MODE
from strandline.storage.identity import open_lock, owner_of, refused_if_unusable

LOCK = "machine.lock"
_PREFIX = "broker-"
_LOGS = "logs"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A broker whose directory is there, and which the machine does not run. `replicas`: how many
    logs of partitions it has."""

    broker: int
    directory: str
    replicas: int


class MachineDirectory:
    """A machine's data directory that this process has locked."""

    def __init__(self, path: str, lock: int, left_out: tuple[LeftOut, ...]) -> None:
        self.path = path
        self.left_out = left_out
        self._lock = lock

    @classmethod
    def acquire(
        cls, path: str, *, brokers: Collection[int], seeds: Collection[int]
    ) -> "MachineDirectory":
        """Lock the directory, created when absent, for these brokers. `seeds`: the controller's
        first voters, by the file.

        Raises OperatorError if it is in use, is a single broker's, or has replicas of others."""
        with refused_if_unusable(path):
            os.makedirs(path, DIRECTORY_MODE, exist_ok=True)
            _refuse_single(path)
            lock = open_lock(path, LOCK)
        try:
            _lock_or_refuse(path, lock)
            found = tuple(brokers_in(path))
            others = tuple(one for one in found if one.broker not in brokers)
            for one in others:
                if one.replicas or one.broker in seeds:
                    _refuse_changed_id(path, found, brokers)
                    _refuse_left_out(one, len(brokers), seeds, hint=_hint(found, brokers))
        except BaseException:
            os.close(lock)
            raise
        return cls(path, lock, others)

    def release(self) -> None:
        """Release the lock."""
        os.close(self._lock)


def refuse_machine(path: str) -> None:
    """Raise OperatorError if a data directory is a machine's: a broker that begins there would be
    without its data."""
    try:
        is_machine = owner_of(path) is None and any(brokers_in(path))
    except OSError:
        return  # `DataDirectory.acquire` says why it cannot be used.
    if is_machine:
        raise OperatorError(
            f"data_directory {path} has the brokers of `serve --cores`: start with --cores, or "
            f"give a broker's own directory, as {path}/{_PREFIX}ID"
        )


def with_disk_sharers(broker: BrokerConfig, machine: Sequence[BrokerConfig]) -> BrokerConfig:
    """The broker's configuration, with the number of the machine's brokers on its disk, unless the
    file says it. Directories may be mount points."""
    if broker.storage.disk_sharers != 1:
        return broker
    own = _device_of(broker.broker.data_directory)
    count = sum(_device_of(one.broker.data_directory) == own for one in machine)
    return replace(broker, storage=replace(broker.storage, disk_sharers=count))


def _device_of(directory: str) -> int:
    """The file system of a directory, or of the machine's if it is not there yet."""
    is_there = os.path.isdir(directory)
    return os.stat(directory if is_there else os.path.dirname(directory)).st_dev


def brokers_in(path: str) -> Iterator[LeftOut]:
    """The brokers that have a directory in a machine's, by id."""
    numbers = [
        one.name.removeprefix(_PREFIX)
        for one in Path(path).glob(f"{_PREFIX}*")
        if owner_of(str(one)) is not None
    ]
    for number in sorted(int(one) for one in numbers if one.isascii() and one.isdigit()):
        directory = broker_directory(path, number)
        yield LeftOut(number, directory, _replicas_in(directory))


def _replicas_in(directory: str) -> int:
    """How many logs of partitions a broker's directory has, without the controller's."""
    try:
        names = os.listdir(f"{directory}/{_LOGS}")
    except FileNotFoundError:
        return 0
    return sum(one.rpartition(".")[2] != str(CONTROLLER_GROUP) for one in names)


def _refuse_single(path: str) -> None:
    owner = owner_of(path)
    if owner is not None:
        own = broker_directory(path, owner)
        raise OperatorError(
            f"data_directory {path} is broker {owner}'s, of a start without --cores: move all that "
            f"is in it to {own} (mv {path} {path}.old; mkdir -m 700 {path}; mv {path}.old {own}), "
            f"and keep id = {owner}"
        )


def _lock_or_refuse(path: str, lock: int) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise OperatorError(
            f"data_directory {path} is in use by another supervisor; stop that one first"
        ) from error


def _refuse_changed_id(path: str, found: Sequence[LeftOut], brokers: Collection[int]) -> None:
    """Raise OperatorError if a larger --cores cannot help: the ids of the directory's brokers lie
    below the first id, or none of them would run."""
    ids, first = [one.broker for one in found], min(brokers)
    if ids[0] >= first and not set(ids).isdisjoint(brokers):
        return
    noun = "broker" if len(ids) == 1 else "brokers"
    raise OperatorError(
        f"[broker] id = {first}, but data_directory {path} has {noun} {','.join(map(str, ids))}: "
        f"set id = {ids[0]} again, or give data_directory of the machine with the id {first}"
    )


def _hint(found: Sequence[LeftOut], brokers: Collection[int]) -> str:
    """What else may be wrong if the directory lacks the broker that `id` names."""
    first = min(brokers)
    if found[0].broker == first:
        return ""
    return f"; if [broker] id was {found[0].broker} before, not {first}, set that again instead"


def _refuse_left_out(one: LeftOut, count: int, seeds: Collection[int], *, hint: str) -> None:
    what = f"--cores {count} leaves out broker {one.broker}"
    if one.broker in seeds:
        raise OperatorError(
            f"{what}, which [cluster] seeds names: name another voter in its place on every "
            f"machine, and decommission it, before you lower --cores{hint}"
        )
    noun = "replica" if one.replicas == 1 else "replicas"
    raise OperatorError(
        f"{what}, and {one.directory} has {one.replicas} {noun}: start with the larger number, "
        f"then `strandline broker decommission {one.broker}`, and lower --cores when "
        f"`strandline broker status` says that the broker is empty{hint}"
    )

"""Which broker a data directory belongs to, and the lock that keeps other processes out.

Why:    a broker that starts on another broker's data, or twice on its own, destroys the data.
How:    identity.json, written first: {"cluster_id": ..., "broker_id": ..., "directory_id": ...,
                                              "has_joined": ...}
        The process holds `lock` with flock; the kernel releases it when the process ends.
Owns:   the two files. Not used in simulation: a simulated broker has its disk to itself.
Source: design section 4."""

import contextlib
import fcntl
import logging
import os
import stat
import uuid
from collections.abc import Iterator

import msgspec

from strandline.base.errors import OperatorError
from strandline.model.ids import BrokerId
from strandline.storage.disk.descriptor import DIRECTORY_MODE, FILE_MODE

_IDENTITY = "identity.json"
_LOCK = "lock"
_log = logging.getLogger("strandline.storage")


@contextlib.contextmanager
def refused_if_unusable(path: str) -> Iterator[None]:
    """An OSError becomes the OperatorError that names the data directory."""
    try:
        yield
    except OSError as error:
        raise OperatorError(
            f"data_directory {path} cannot be used: {error.strerror}; choose another or mend it"
        ) from error


def open_lock(directory: str, name: str) -> int:
    """A descriptor of a lock file, which this creates if it is absent. Raises OSError."""
    return os.open(f"{directory}/{name}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)


class Identity(msgspec.Struct, frozen=True):
    """The broker that owns a directory. `cluster_id`: of the configuration, or of the cluster that
    it has joined; empty before. `has_joined`: whether a cluster has registered it."""

    broker_id: BrokerId
    cluster_id: str
    directory_id: str
    has_joined: bool = False


class DataDirectory:
    """A data directory that this process has locked."""

    def __init__(self, path: str, identity: Identity, lock: int) -> None:
        self.path = path
        self.identity = identity
        self._lock = lock

    @classmethod
    def acquire(cls, path: str, *, broker_id: BrokerId, cluster_id: str = "") -> "DataDirectory":
        """Lock the directory, created when absent, and check that it belongs to this broker.

        An empty `cluster_id` accepts any. Raises OperatorError if it belongs to another broker or
        cluster, or is in use."""
        with refused_if_unusable(path):
            if not os.path.isdir(path):
                os.makedirs(path, DIRECTORY_MODE, exist_ok=True)
                _flush_directory(os.path.dirname(os.path.abspath(path)))
            _warn_of_readers(path)
            lock = open_lock(path, _LOCK)
        try:
            identity = _acquire(path, lock, broker_id=broker_id, cluster_id=cluster_id)
        except BaseException:
            os.close(lock)
            raise
        return cls(path, identity, lock)

    def set_cluster_id(self, cluster_id: str) -> None:
        """Store the joined cluster's id. Raises OperatorError if another one is stored."""
        identity = self.identity
        if identity.has_joined and identity.cluster_id == cluster_id:
            return
        _check_cluster(self.path, identity, cluster_id)
        self.identity = Identity(
            identity.broker_id, cluster_id, identity.directory_id, has_joined=True
        )
        _write(self.path, self.identity)

    def release(self) -> None:
        """Release the lock."""
        os.close(self._lock)


def owner_of(path: str) -> BrokerId | None:
    """The broker that a data directory belongs to; None if it is not one. Raises OperatorError if
    its identity is damaged."""
    identity = _read(path)
    return None if identity is None else identity.broker_id


@contextlib.contextmanager
def held_offline(path: str) -> Iterator[None]:
    """Keep brokers out of a data directory while a command reads it; changes nothing in it.

    A directory without a lock file was never used: there is nothing to lock. Raises OperatorError
    if a broker uses it."""
    try:
        lock = os.open(f"{path}/{_LOCK}", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield
        return
    try:
        _flock(path, lock, fcntl.LOCK_SH)
        yield
    finally:
        os.close(lock)


def _warn_of_readers(path: str) -> None:
    """Log that other users may use the directory, which an operator may want."""
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        _log.warning(
            "data_directory %s: other users may use it (mode %o), and it has records and keys of "
            "passwords: chmod 700 %s",
            path,
            mode,
            path,
        )


def _flock(path: str, lock: int, kind: int) -> None:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except OSError as error:
        raise OperatorError(
            f"data_directory {path} is in use by another process; stop that one first"
        ) from error


def _acquire(path: str, lock: int, *, broker_id: BrokerId, cluster_id: str) -> Identity:
    _flock(path, lock, fcntl.LOCK_EX)
    identity = _read(path)
    if identity is None:
        identity = Identity(broker_id, cluster_id, str(uuid.uuid4()))
        _write(path, identity)
        return identity
    if identity.broker_id != broker_id:
        raise OperatorError(
            f"data_directory {path} belongs to broker {identity.broker_id}, not {broker_id}; "
            "correct broker.id or broker.data_directory"
        )
    if cluster_id:
        _check_cluster(path, identity, cluster_id)
    if cluster_id and not identity.cluster_id:
        identity = Identity(broker_id, cluster_id, identity.directory_id)
        _write(path, identity)
    return identity


def _check_cluster(path: str, identity: Identity, cluster_id: str) -> None:
    if identity.cluster_id and identity.cluster_id != cluster_id:
        raise OperatorError(
            f"data_directory {path} belongs to cluster {identity.cluster_id}, not {cluster_id}; "
            "correct cluster.id or broker.data_directory"
        )


def _read(path: str) -> Identity | None:
    try:
        with open(f"{path}/{_IDENTITY}", "rb") as file:
            return msgspec.json.decode(file.read(), type=Identity)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise OperatorError(
            f"{path}/{_IDENTITY} is damaged ({error}); restore it before starting"
        ) from error


def _write(path: str, identity: Identity) -> None:
    """Replace the identity; durable when this returns."""
    new_path = f"{path}/{_IDENTITY}.new"
    with open(new_path, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(identity), indent=2) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(new_path, f"{path}/{_IDENTITY}")
    _flush_directory(path)


def _flush_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Three replication hosts in one process, over real sockets and real files."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from strandline.model.ids import BrokerId, GroupId, Index
from strandline.network.loop_clock import LoopClock
from strandline.network.tcp import TcpNetwork
from strandline.raft.group.configuration import Configuration
from strandline.records.batch import iterate_headers
from strandline.records.record import Record, build_batch
from strandline.replication.host.election_priority import ElectionPriority
from strandline.replication.host.group_spec import GroupSpec
from strandline.replication.host.replication import Replication
from strandline.replication.leader.requests import AppendResult
from strandline.replication.replica.replica import Replica
from strandline.replication.settings import ReplicationSettings
from strandline.storage.config import LogConfig
from strandline.storage.disk.real_disk import RealDisk

BROKERS = (BrokerId(1), BrokerId(2), BrokerId(3))
GROUP = GroupId(1)
DEADLINE_S = 30
LOG = LogConfig()


class Host:
    """One broker's replication, with what it stands on."""

    def __init__(
        self,
        broker: BrokerId,
        directory: Path,
        port: int = 0,
        *,
        log: LogConfig = LOG,
        rng: random.Random | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.broker = broker
        self.directory = directory
        self.log = log
        self.port = port
        self.disk = RealDisk(loop.call_soon_threadsafe, loop)
        self.network = TcpNetwork(self_id=broker, cluster="c", host="127.0.0.1", port=port)
        self.replication = Replication(
            self_id=broker,
            clock=LoopClock(loop),
            rng=rng or random.Random(broker),
            disk=self.disk,
            network=self.network,
            settings=ReplicationSettings(),
            data_directory=str(directory),
        )

    async def start(self, others: "list[Host]") -> Replica:
        if not self.network.is_listening:
            await self.network.start()
        self.replication.start()
        for other in others:
            if other is not self:
                self.replication.set_peer(other.broker, "127.0.0.1", other.network.port)
        return self.replication.open_group(
            GroupSpec(
                group=GROUP,
                name="t-0",
                directory="t-0.1",
                configuration=Configuration(BROKERS),
                log=self.log,
                election_priority=ElectionPriority(BrokerId(1)),
            )
        )

    def stop(self) -> None:
        self.port = self.network.port
        self.replication.stop()
        self.network.stop()
        self.disk.close()

    @property
    def replica(self) -> Replica:
        return self.replication.replicas[GROUP]


async def until(condition: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not condition():
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"never came true: {what}") from None


async def cluster(directory: Path, *, log: LogConfig = LOG) -> list[Host]:
    hosts = [Host(broker, directory / str(broker), log=log) for broker in BROKERS]
    for host in hosts:
        await host.network.start()
    for host in hosts:
        await host.start(hosts)
    await until(lambda: leader_of(hosts) is not None, "a leader serves")
    return hosts


@asynccontextmanager
async def led(
    directory: Path, *, log: LogConfig = LOG
) -> AsyncIterator[tuple[list[Host], Replica]]:
    """A cluster, and who leads its group; whoever is in the list at the end is stopped."""
    hosts = await cluster(directory, log=log)
    leader = leader_of(hosts)
    assert leader is not None
    try:
        yield hosts, leader
    finally:
        for host in hosts:
            host.stop()


async def bring_back(hosts: list[Host], at: int) -> None:
    """Start a host that was stopped anew: the same address, and what is on its disk."""
    gone = hosts[at]
    hosts[at] = Host(gone.broker, gone.directory, gone.port, log=gone.log)
    await hosts[at].network.start()
    await hosts[at].start(hosts)


def leader_of(hosts: list[Host]) -> Replica | None:
    for host in hosts:
        replica = host.replication.replicas.get(GROUP)
        if replica is not None and replica.can_serve_reads:
            return replica
    return None


async def write(replica: Replica, values: list[bytes], *, acks: int) -> AppendResult:
    records = [Record(offset_delta=n, key=None, value=v) for n, v in enumerate(values)]
    return await write_records(replica, records, acks=acks)


async def write_records(replica: Replica, records: list[Record], *, acks: int) -> AppendResult:
    batch = build_batch(records)
    done: asyncio.Future[AppendResult] = asyncio.get_running_loop().create_future()
    replica.replicate([batch], list(iterate_headers(batch)), acks=acks, done=done.set_result)
    async with asyncio.timeout(DEADLINE_S):
        return await done


def contents(replica: Replica) -> bytes:
    last = replica.log.last_index
    data = b""
    index = replica.log.start_index
    while index <= last:
        entries = replica.log.read_entries(Index(index), 1 << 20)
        data += entries.data
        index = Index(entries.last_index + 1)
    return data

"""Endpoints of brokers on real ports, and what they tell their owners."""

import asyncio
from collections.abc import Callable

from strandline.base.network import Lane
from strandline.model.ids import BrokerId
from strandline.network.tcp import TcpNetwork
from strandline.security.peers import PeerTls

ONE, TWO = BrokerId(1), BrokerId(2)
DEADLINE_S = 60


class Recorder:
    """What a transport told its owner."""

    def __init__(self) -> None:
        self.messages: list[tuple[BrokerId, Lane, bytes]] = []
        self.connected: list[tuple[BrokerId, Lane]] = []
        self.lost: list[tuple[BrokerId, Lane]] = []
        self.changed = asyncio.Event()

    def on_message(self, peer: BrokerId, lane: Lane, message: memoryview) -> None:
        self.messages.append((peer, lane, bytes(message)))
        self.changed.set()

    def on_peer_connected(self, peer: BrokerId, lane: Lane) -> None:
        self.connected.append((peer, lane))
        self.changed.set()

    def on_peer_lost(self, peer: BrokerId, lane: Lane) -> None:
        self.lost.append((peer, lane))
        self.changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


async def endpoint(
    broker: BrokerId, cluster: str = "c", tls: PeerTls | None = None
) -> tuple[TcpNetwork, Recorder]:
    network = TcpNetwork(self_id=broker, cluster=cluster, host="127.0.0.1", port=0, tls=tls)
    recorder = Recorder()
    network.bind(recorder)
    await network.start()
    return network, recorder

"""A broker's endpoint on the real network.

Why:    implements `base.network.Network` over TCP; the simulator implements it over virtual time.
How:    listens for peers, and opens one connection for each (peer, lane). An incoming connection
        must first greet with this cluster's name, so that two clusters on one machine never mix. Of
        several connections from one peer for one lane, only the latest is read.
Owns:   every socket between brokers.
Source: design section 5."""

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping, Sequence

import msgspec

from strandline.base.disk import Buffer
from strandline.base.errors import OperatorError
from strandline.base.network import Lane, PeerEvents
from strandline.model.ids import BrokerId
from strandline.network.handshakes import Handshakes
from strandline.network.incoming import FRAME_BYTES_MAX, Incoming
from strandline.network.outgoing import CONNECT_TIMEOUT_MS, Outgoing
from strandline.network.refusals import Refusals
from strandline.network.sockets import why_not_bound
from strandline.network.streams import Stream, TlsStream
from strandline.security.peers import PeerTls

LISTEN_BACKLOG = 256
WIRE_VERSION = 2
ACCEPT_PAUSE_MS = 500
"""Out of descriptors or memory, peers wait so long in the kernel."""
HANDSHAKE_COUNT_MAX = 256
"""TLS handshakes in progress; beyond it the one that has waited longest for its peer ends."""

_log = logging.getLogger("strandline.network")


class Greeting(msgspec.Struct, frozen=True, array_like=True):
    """The first frame of a connection."""

    wire_version: int
    cluster: str
    sender: BrokerId
    lane: int


class TcpNetwork:
    """See the module. `one_way_delay_ms` maps a peer to an injected delay (development
    clusters); `tls`: None for none."""

    def __init__(
        self,
        *,
        self_id: BrokerId,
        cluster: str,
        host: str,
        port: int,
        one_way_delay_ms: Mapping[BrokerId, float] | Callable[[BrokerId], float] | None = None,
        tls: PeerTls | None = None,
    ) -> None:
        self._self_id = self_id
        self._cluster = cluster
        self._host = host
        self._port = port
        self._delays = one_way_delay_ms
        self._tls = tls
        self._handshakes: Handshakes[PeerTls] | None = None
        self._refusals = Refusals()
        self._events: PeerEvents | None = None
        self._listener: socket.socket | None = None
        self._is_silent = False
        self._incoming: dict[Incoming, Greeting | None] = {}
        self._outgoing: dict[tuple[BrokerId, Lane], Outgoing] = {}
        self._addresses: dict[BrokerId, tuple[str, int]] = {}

    @property
    def port(self) -> int:
        """The port in use, once started."""
        return self._port

    @property
    def is_listening(self) -> bool:
        """Whether `start` has been called, and `stop` has not."""
        return self._listener is not None

    def bind(self, events: PeerEvents) -> None:
        """See `base.network.Network.bind`."""
        self._events = events

    async def start(self) -> None:
        """Listen; raises OperatorError when the address is taken."""
        try:
            info = await asyncio.get_running_loop().getaddrinfo(
                self._host, self._port, type=socket.SOCK_STREAM
            )
            family, kind, protocol, _, address = info[0]
            listener = socket.socket(family, kind, protocol)
            try:
                listener.setblocking(False)
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(address)
                listener.listen(LISTEN_BACKLOG)
            except OSError:
                listener.close()
                raise
        except OSError as error:
            raise OperatorError(
                f"[rpc] port: cannot listen on {self._host}:{self._port}: "
                f"{why_not_bound(self._port, error)}"
            ) from error
        if self._tls is not None:
            self._handshakes = self._new_handshakes(self._tls)
        self._port = listener.getsockname()[1]
        self._listener = listener
        asyncio.get_running_loop().add_reader(listener.fileno(), self._on_acceptable)

    def stop(self) -> None:
        """Close every socket."""
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener.fileno())
            self._listener.close()
            self._listener = None
        for outgoing in list(self._outgoing.values()):
            outgoing.close()
        self._outgoing.clear()
        self._addresses.clear()
        if self._handshakes is not None:
            self._handshakes.stop()
        for incoming in list(self._incoming):
            incoming.close()

    def set_peer(self, peer: BrokerId, host: str, port: int) -> None:
        """See `base.network.Network.set_peer`."""
        if peer == self._self_id or self._addresses.get(peer) == (host, port):
            return
        self.remove_peer(peer)
        self._addresses[peer] = (host, port)
        if not self._is_silent:
            self._connect(peer)

    def _connect(self, peer: BrokerId) -> None:
        for lane in Lane:
            greeting = Greeting(WIRE_VERSION, self._cluster, self._self_id, int(lane))
            self._outgoing[peer, lane] = Outgoing(
                peer=peer,
                lane=lane,
                address=self._addresses[peer],
                greeting=msgspec.msgpack.encode(greeting),
                one_way_delay_ms=self._delay_to(peer),
                tls=self._tls,
                on_connected=self._on_connected,
                on_lost=self._on_lost,
                on_silence=self._on_silence,
            )

    def remove_peer(self, peer: BrokerId) -> None:
        """See `base.network.Network.remove_peer`."""
        self._addresses.pop(peer, None)
        for lane in Lane:
            outgoing = self._outgoing.pop((peer, lane), None)
            if outgoing is not None:
                outgoing.close()

    def silence(self, *, is_silent: bool) -> None:
        """Stop sending and reading, as if every link were cut; with False, start again.

        Peers get no notice: their connections stay open, and this broker does not answer. When the
        silence ends, messages in flight are lost on both sides."""
        if is_silent == self._is_silent or self._listener is None:
            return
        self._is_silent = is_silent
        if is_silent:
            asyncio.get_running_loop().remove_reader(self._listener.fileno())
            if self._handshakes is not None:
                self._handshakes.stop()
            for incoming in self._incoming:
                incoming.pause()
            ended, self._outgoing = self._outgoing, {}
            for outgoing in ended.values():
                outgoing.close()
            for peer, lane in ended:
                self._on_lost(peer, lane)
            return
        for incoming in list(self._incoming):
            incoming.close()
        self._drop_waiting()
        asyncio.get_running_loop().add_reader(self._listener.fileno(), self._on_acceptable)
        for peer in self._addresses:
            self._connect(peer)

    def _drop_waiting(self) -> None:
        """Close the connections that wait to be accepted: their messages are outdated."""
        assert self._listener is not None
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.close()

    def send(
        self,
        peer: BrokerId,
        lane: Lane,
        parts: Sequence[Buffer],
        on_handed: Callable[[], None] | None = None,
    ) -> bool:
        """See `base.network.Network.send`."""
        outgoing = self._outgoing.get((peer, lane))
        return outgoing is not None and outgoing.send(parts, on_handed)

    def backlog_bytes(self, peer: BrokerId, lane: Lane) -> int:
        """See `base.network.Network.backlog_bytes`."""
        outgoing = self._outgoing.get((peer, lane))
        return 0 if outgoing is None else outgoing.backlog_bytes

    def is_connected(self, peer: BrokerId, lane: Lane) -> bool:
        """See `base.network.Network.is_connected`."""
        outgoing = self._outgoing.get((peer, lane))
        return outgoing is not None and outgoing.is_up

    def _delay_to(self, peer: BrokerId) -> float:
        if self._delays is None:
            return 0.0
        return self._delays(peer) if callable(self._delays) else self._delays.get(peer, 0.0)

    def _on_connected(self, peer: BrokerId, lane: Lane) -> None:
        if self._events is not None:
            self._events.on_peer_connected(peer, lane)

    def _on_lost(self, peer: BrokerId, lane: Lane) -> None:
        if self._events is not None:
            self._events.on_peer_lost(peer, lane)

    def _on_silence(self, peer: BrokerId, lane: Lane) -> None:
        """Renew the bulk connection when the control lane's peer acknowledges nothing.

        A fault that swallows one lane mostly swallows both. Heartbeats show it on the control lane;
        the bulk lane may be idle and not show it. A silent bulk lane may only be full, so it says
        nothing about the control lane."""
        outgoing = self._outgoing.get((peer, Lane.BULK))
        if lane is Lane.CONTROL and outgoing is not None:
            outgoing.renew()

    def _on_acceptable(self) -> None:
        assert self._listener is not None
        while True:
            try:
                sock, address = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                _log.warning("cannot accept a peer: %s", error)
                loop = asyncio.get_running_loop()
                loop.remove_reader(self._listener.fileno())
                loop.call_later(ACCEPT_PAUSE_MS / 1000, self._accept_again)
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None and self._handshakes is not None:
                self._handshakes.begin(sock, address[0], self._tls)
            else:
                self._add(sock, peer=None)

    def _accept_again(self) -> None:
        if self._listener is not None and not self._is_silent:
            asyncio.get_running_loop().add_reader(self._listener.fileno(), self._on_acceptable)

    def _new_handshakes(self, tls: PeerTls) -> Handshakes[PeerTls]:
        return Handshakes(
            timeout_ms=CONNECT_TIMEOUT_MS,
            count_max=HANDSHAKE_COUNT_MAX,
            context_of=lambda _: tls.accepting,
            on_done=lambda sock, _, __: self._add(TlsStream(sock), peer=tls.broker_of(sock)),
            on_refused=lambda host, _, reason: self._refusals.tell(host, reason),
            on_plain=None if tls.is_required else lambda sock, _, __: self._add(sock, peer=None),
        )

    def _add(self, stream: Stream, *, peer: BrokerId | None) -> None:
        """`peer`: the broker that the certificate names; None without TLS."""
        incoming = Incoming(stream, peer=peer, on_frame=self._on_frame, on_closed=self._on_closed)
        self._incoming[incoming] = None

    def _on_closed(self, incoming: Incoming) -> None:
        self._incoming.pop(incoming, None)

    def _on_frame(self, incoming: Incoming, frame: memoryview) -> None:
        greeting = self._incoming.get(incoming)
        if greeting is None:
            greeting = self._check_greeting(frame)
            if incoming.peer not in (None, greeting.sender):
                _log.warning(
                    "refused a connection that says it is broker %d, with the certificate of "
                    "broker %d",
                    greeting.sender,
                    incoming.peer,
                )
                raise ValueError("another broker's certificate")
            self._close_earlier(incoming, greeting)
            self._incoming[incoming] = greeting
            incoming.frame_bytes_max = FRAME_BYTES_MAX
            return
        if self._events is not None:
            self._events.on_message(greeting.sender, Lane(greeting.lane), frame)

    def _close_earlier(self, incoming: Incoming, greeting: Greeting) -> None:
        """Close earlier connections from this peer for this lane: unread messages on them are
        outdated, and may be from a process that has ended. Raises ValueError if a later connection
        exists."""
        is_earlier = True
        for other, known in list(self._incoming.items()):  # In the order in which they were made.
            if other is incoming:
                is_earlier = False
            elif known == greeting and is_earlier:
                other.close()
            elif known == greeting:
                raise ValueError("there is a later connection")

    def _check_greeting(self, frame: memoryview) -> Greeting:
        try:
            greeting = msgspec.msgpack.decode(frame, type=Greeting)
            Lane(greeting.lane)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            _log.warning("refused a connection that is no broker's: %s", error)
            raise ValueError("no greeting") from error
        if greeting.wire_version != WIRE_VERSION or greeting.cluster != self._cluster:
            _log.warning(
                "refused broker %d: cluster '%s', wire version %d; here '%s', %d",
                greeting.sender,
                greeting.cluster,
                greeting.wire_version,
                self._cluster,
                WIRE_VERSION,
            )
            raise ValueError("another cluster's broker")
        return greeting

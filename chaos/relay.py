"""The wide area between the hosts: a program that holds the one network device of each of them.

Why:    delay, loss and cuts must strike every packet of real connections, each direction by itself;
        not every kernel has netem, while every Linux has TUN devices.
How:    the relay reads a packet that a host sends, drops it or keeps it until its time, and writes
        it to the device of its destination; packets on one link keep their order. A line of JSON on
        standard input sets the state of all links, [[from, to, delay_ms, loss, is_cut, jitter_ms],
        ...] with hosts by number; the relay answers with a line. After an empty line it answers how
        much each host has sent to each other one, [[from, to, bytes, packets], ...], IP headers
        included. It ends with its standard input.
Owns:   the devices `wan0` in the namespaces that the command line names as NAMESPACE=ADDRESS.
Source: Linux, tuntap.rst; virtio_net_hdr (packets pass whole, before they are cut in segments)."""

import ctypes
import fcntl
import heapq
import json
import os
import random
import select
import socket
import struct
import sys
import time
from dataclasses import dataclass

DEVICE = b"wan0"
TUNSETIFF, TUNSETOFFLOAD = 0x400454CA, 0x400454D0
IFF_TUN, IFF_NO_PI, IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
TUN_F_CSUM, TUN_F_TSO4, TUN_F_TSO_ECN = 0x01, 0x02, 0x08
CLONE_NEWNET = 0x40000000
HEADER_BYTES = 10
"""virtio_net_hdr; the IP header follows."""
PACKET_BYTES = 70_000
QUEUE_BYTES_MAX = 64 << 20
BURST_COUNT_MAX = 64
"""Packets read from one host before the next one has its turn."""
MS = 1_000_000


@dataclass(slots=True)
class LinkState:
    """One direction between two hosts."""

    delay_ns: int = 0
    jitter_ns: int = 0
    """By how much the delay varies in all."""
    loss: float = 0.0
    is_cut: bool = False
    last_due_ns: int = 0
    sent_bytes: int = 0
    """Cut, lost or not."""
    sent_packets: int = 0


class Relay:
    """See the module."""

    def __init__(self, devices: list[int], addresses: list[bytes]) -> None:
        self._devices = devices
        self._numbers = {address: number for number, address in enumerate(addresses)}
        hosts = range(len(devices))
        self._links = [[LinkState() for _ in hosts] for _ in hosts]
        self._waiting: list[tuple[int, int, int, int, bytes]] = []
        """A heap of (when it is due, its number, from, to, packet)."""
        self._waiting_bytes = 0
        self._count = 0

    def obey(self, line: str) -> str:
        """Take the state of the links, or tell what they were sent; the answer."""
        if not line.strip():
            hosts = range(len(self._devices))
            sent = [
                [one, other, link.sent_bytes, link.sent_packets]
                for one in hosts
                for other, link in enumerate(self._links[one])
            ]
            return json.dumps(sent)
        self.configure(line)
        return "ok"

    def configure(self, line: str) -> None:
        """Take the state of the links."""
        for source, target, delay_ms, loss, is_cut, jitter_ms in json.loads(line):
            link = self._links[source][target]
            link.delay_ns = int(delay_ms * MS)
            link.jitter_ns = int(jitter_ms * MS)
            link.loss = loss
            link.is_cut = is_cut

    def take(self, source: int) -> None:
        """Read what a host sends."""
        for _ in range(BURST_COUNT_MAX):
            try:
                packet = os.read(self._devices[source], PACKET_BYTES)
            except BlockingIOError:
                return
            target = self._numbers.get(packet[HEADER_BYTES + 16 : HEADER_BYTES + 20])
            if target is not None and packet[HEADER_BYTES] >> 4 == 4:
                self._keep(source, target, packet)

    def _keep(self, source: int, target: int, packet: bytes) -> None:
        link = self._links[source][target]
        link.sent_bytes += len(packet) - HEADER_BYTES
        link.sent_packets += 1
        is_lost = link.loss > 0 and random.random() < link.loss
        if link.is_cut or is_lost or self._waiting_bytes > QUEUE_BYTES_MAX:
            return
        delay_ns = link.delay_ns
        if link.jitter_ns:
            delay_ns += int((random.random() - 0.5) * link.jitter_ns)
        link.last_due_ns = max(link.last_due_ns, time.monotonic_ns() + delay_ns)
        self._count += 1
        self._waiting_bytes += len(packet)
        heapq.heappush(self._waiting, (link.last_due_ns, self._count, source, target, packet))

    def deliver(self) -> float | None:
        """Write what is due; seconds until the next one is, None for none."""
        now_ns = time.monotonic_ns()
        while self._waiting and self._waiting[0][0] <= now_ns:
            _, _, source, target, packet = heapq.heappop(self._waiting)
            self._waiting_bytes -= len(packet)
            if self._links[source][target].is_cut:
                continue
            try:
                os.write(self._devices[target], packet)
            except OSError:
                pass  # Its device is full, or not up yet: a packet that is lost.
        return (self._waiting[0][0] - now_ns) / 1e9 if self._waiting else None


def run(relay: Relay, devices: list[int]) -> None:
    """Until standard input ends."""
    poller = select.epoll()
    for device in devices:
        poller.register(device, select.EPOLLIN)
    numbers = {device: number for number, device in enumerate(devices)}
    control = sys.stdin.fileno()
    poller.register(control, select.EPOLLIN)
    while True:
        for ready, _ in poller.poll(relay.deliver()):
            if ready != control:
                relay.take(numbers[ready])
            elif line := sys.stdin.readline():
                sys.stdout.write(relay.obey(line) + "\n")
                sys.stdout.flush()
            else:
                return


def open_device(namespace: str, libc: ctypes.CDLL) -> int:
    """The TUN device of a namespace, made in it."""
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    away = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        _enter(libc, away)
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        request = struct.pack("16sH22x", DEVICE, IFF_TUN | IFF_NO_PI | IFF_VNET_HDR)
        fcntl.ioctl(device, TUNSETIFF, request)
        fcntl.ioctl(device, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO_ECN)
    finally:
        _enter(libc, home)
        os.close(home)
        os.close(away)
    return device


def _enter(libc: ctypes.CDLL, namespace: int) -> None:
    if libc.setns(namespace, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def main() -> None:
    """Arguments: NAMESPACE=ADDRESS for each host, in the order of their numbers."""
    libc = ctypes.CDLL(None, use_errno=True)
    hosts = [argument.split("=") for argument in sys.argv[1:]]
    devices = [open_device(namespace, libc) for namespace, _ in hosts]
    relay = Relay(devices, [socket.inet_aton(address) for _, address in hosts])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    run(relay, devices)


if __name__ == "__main__":
    main()

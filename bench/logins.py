"""Many clients that log in: what they cost in memory when they are idle, and what they cost others.

How:    One broker with a listener for logins over TLS, beside its plain one.
            `idle`: so many connections that have logged in by SCRAM and do nothing: the broker's
            memory before and with them. Then as many again begin a login and stop in its middle:
            every connection that has logged in must still be answered.
            `flood`: 200 clients, each with a connection, a handshake and a login in a loop, in a
            process of their own, beside a producer with a fixed rate: the latency of its records
            with them and without, in turns.
"""

import resource
import ssl
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench import scram_client
from bench.clusters import memory_mb
from bench.load import cpu_seconds
from bench.paced import PacedProducer, create_topic
from bench.tls import FIRST_PORT, broker
from strandline.protocol.messages.api_versions import ApiVersionsRequest
from strandline.protocol.messages.metadata import MetadataRequest
from strandline.protocol.table import Message
from strandline.security.sasl.secrets import secret_from_password
from strandline.security.sasl.users_file import write_users

IDLE, NEWEST, THREADS = 10_000, 500, 16
BEGUN_OPEN_MAX = 5_000
MEMORY_MB_MAX = 600
FLOOD_CLIENTS, FLOOD_ROUNDS, FLOOD_ROUND_S, RATE = 200, 3, 15, 500
ADDED_MS_MAX = 50
FILES_OF_BENCH = 1_000
USER, PASSWORD, TOPIC = "app", "correct horse", "paced"
LOGIN_PORT = FIRST_PORT + 8
METADATA_VERSION, API_VERSIONS_VERSION = 9, 0
SETTLE_S = 2
Say = Callable[..., None]


class Side(NamedTuple):
    """A broker: its process, its plain port, and the file of trust of its listener for logins."""

    pid: int
    plain_port: int
    trust: Path


@contextmanager
def broker_with_logins(work: Path, *, connections: int) -> Iterator[Side]:
    """A broker for so many connections; this process may have as many."""
    files = connections + BEGUN_OPEN_MAX + FILES_OF_BENCH
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < files:
        raise SystemExit(f"{files} open files are needed, {hard} are the most: ulimit -Hn {files}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    work.mkdir(parents=True)
    users = work / "users.jsonl"
    write_users(users, [secret_from_password(USER, scram_client.MECHANISM, PASSWORD)])
    extra = (
        f'[[listener]]\nname = "LOGIN"\nbind = "127.0.0.1:{LOGIN_PORT}"\nprotocol = "SASL_SSL"\n'
        f'certificate = "{work}/server.pem"\nprivate_key = "{work}/server.key"\n'
        f'[access]\nusers_file = "{users}"\n'
        f"[limits]\nconnection_count_max = {files}\n"
    )
    with broker(work, extra) as (pid, doors):
        yield Side(pid, doors[0].port, work / "ca.pem")


def run_idle(work: Path, say: Say, *, count: int = IDLE) -> None:
    """Memory of idle connections, and a crowd that does not finish its logins."""
    with broker_with_logins(work, connections=count) as side:
        context = ssl.create_default_context(cafile=str(side.trust))
        known: list[ssl.SSLSocket] = []
        begun: deque[ssl.SSLSocket] = deque()
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda n: _idle(context, n).close(), range(THREADS)))  # What is loaded.
            before, cpu = memory_mb(side.pid), cpu_seconds([side.pid])
            known += pool.map(lambda n: _idle(context, n), range(count))
            time.sleep(SETTLE_S)
            cpu = cpu_seconds([side.pid]) - cpu
            after = memory_mb(side.pid)
            say(
                step="idle",
                connections=count,
                before_mb=round(before),
                with_them_mb=round(after),
                kib_each=round((after - before) * 1024 / count, 1),
                goal_mb=MEMORY_MB_MAX,
                cpu_ms_each=round(cpu * 1000 / count, 2),
            )
            for sock in pool.map(lambda n: _begun(context, n), range(count)):
                begun.append(sock)
                if len(begun) > BEGUN_OPEN_MAX:  # The broker has ended these long before.
                    begun.popleft().close()
            refused = sum(not one for one in pool.map(_is_answered, known))
            newest = list(begun)[-NEWEST:]
            still = sum(pool.map(_has_versions, newest))
            say(
                step="handshakes",
                begun=count,
                logged_in=count,
                refused=refused,
                newest_still_open=f"{still} of {len(newest)}",
                with_all_mb=round(memory_mb(side.pid)),
            )
        for sock in (*known, *begun):
            sock.close()
    assert not refused, f"{refused} connections that had logged in were closed"


def run_flood(work: Path, say: Say, *, rounds: int = FLOOD_ROUNDS) -> None:
    """A producer's latency beside 200 clients that log in."""
    with broker_with_logins(work, connections=FLOOD_CLIENTS) as side:
        bootstrap = f"127.0.0.1:{side.plain_port}"
        create_topic(bootstrap, TOPIC, partitions=1, replicas=1)
        _latency(bootstrap)
        added = []
        for number in range(1, rounds + 1):
            alone = _latency(bootstrap)
            with _flood(side) as logins:
                cpu = cpu_seconds([side.pid])
                beside = _latency(bootstrap)
                cpu = cpu_seconds([side.pid]) - cpu
            added.append(beside - alone)
            say(
                round=number,
                clients=FLOOD_CLIENTS,
                p99_alone_ms=alone,
                p99_beside_ms=beside,
                logins=logins[0],
                broker_cpu_ratio=round(cpu / FLOOD_ROUND_S, 2),
            )
        say(step="median", added_ms=round(median(added), 1), goal_ms=ADDED_MS_MAX)


def _latency(bootstrap: str) -> float:
    """p99 in ms of a producer with a fixed rate."""
    producer = PacedProducer(bootstrap, TOPIC, partitions=1)
    producer.run(rate=RATE, seconds=FLOOD_ROUND_S)
    producer.close()
    return producer.deliveries.percentile_ms(99)


@contextmanager
def _flood(side: Side) -> Iterator[list[int]]:
    """Clients that log in; their number of logins is in the list once they have ended."""
    logins: list[int] = []
    command = [sys.executable, "-m", "bench.login_flood", str(LOGIN_PORT), str(side.trust)]
    with subprocess.Popen(
        [*command, USER, PASSWORD, str(FLOOD_CLIENTS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        time.sleep(SETTLE_S)
        try:
            yield logins
        finally:
            told, _ = process.communicate()
            logins.append(int(told))


def _source(number: int) -> str:
    """An address of this machine: one address has ports for 28,000 connections."""
    return f"127.0.{1 + number // 5_000}.1"


def _idle(context: ssl.SSLContext, number: int) -> ssl.SSLSocket:
    sock = scram_client.connect(LOGIN_PORT, context, source=_source(number))
    scram_client.log_in(sock, USER, PASSWORD)
    return sock


def _begun(context: ssl.SSLContext, number: int) -> ssl.SSLSocket:
    sock = scram_client.connect(LOGIN_PORT, context, source=_source(number))
    scram_client.begin(sock, USER)
    return sock


def _is_answered(sock: ssl.SSLSocket) -> bool:
    """Whether a connection that has logged in is answered."""
    return _answers(sock, MetadataRequest(topics=[]), METADATA_VERSION)


def _has_versions(sock: ssl.SSLSocket) -> bool:
    """Whether a connection in the middle of its login is answered."""
    return _answers(sock, ApiVersionsRequest(), API_VERSIONS_VERSION)


def _answers(sock: ssl.SSLSocket, message: Message, version: int) -> bool:
    try:
        scram_client.ask(sock, message, version)
    except OSError:
        return False
    return True

"""Brokers prove to each other who they are. Source: docs/decisions/0069-access.md."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop
from tests.network.tcp_world import DEADLINE_S, ONE, TWO, Recorder, endpoint

from strandline.base.errors import OperatorError
from strandline.base.network import Lane
from strandline.model.ids import BrokerId
from strandline.network.tcp import TcpNetwork
from strandline.security.authority import Authority, Files
from strandline.security.peers import PeerTls
from strandline.security.tls import Pair, ServerTls, TlsSettings, client_context

THREE = BrokerId(3)


def issue(authority: Authority, broker: int, cluster: str = "c") -> Files:
    return authority.issue(
        f"{cluster}-{broker}", dns=(), ips=(), uris=(f"strandline://{cluster}/broker/{broker}",)
    )


def tls_of(
    files: Files, broker: BrokerId, *, is_required: bool = True, cluster: str = "c"
) -> PeerTls:
    return PeerTls(
        certificate=files.certificate,
        private_key=files.key,
        trust=files.trust,
        cluster=cluster,
        broker=broker,
        is_required=is_required,
    )


def mode(files: Files, broker: BrokerId, name: str) -> PeerTls | None:
    return None if name == "off" else tls_of(files, broker, is_required=name == "require")


async def hears(
    one: tuple[TcpNetwork, Recorder], two: tuple[TcpNetwork, Recorder], broker: BrokerId
) -> None:
    """The first endpoint reaches the second one, which is `broker`, and it hears a message."""
    one[0].set_peer(broker, "127.0.0.1", two[0].port)
    await one[1].until(lambda: one[0].is_connected(broker, Lane.CONTROL))
    assert one[0].send(broker, Lane.CONTROL, [b"hello"])
    await two[1].until(lambda: bool(two[1].messages))


async def stays_unheard(
    one: tuple[TcpNetwork, Recorder],
    two: tuple[TcpNetwork, Recorder],
    broker: BrokerId,
    told: Callable[[], bool],
) -> None:
    """The first endpoint tries, the refusal is told, and nothing was heard."""
    one[0].set_peer(broker, "127.0.0.1", two[0].port)
    async with asyncio.timeout(DEADLINE_S):
        while not told():
            one[0].send(broker, Lane.CONTROL, [b"hello"])
            await asyncio.sleep(0.01)
    assert two[1].messages == []


def stop(*endpoints: tuple[TcpNetwork, Recorder]) -> None:
    for network, _ in endpoints:
        network.stop()


def has_told(caplog: pytest.LogCaptureFixture, text: str) -> Callable[[], bool]:
    return lambda: any(text in one.getMessage() for one in caplog.records)


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_messages_of_every_size_pass_through_tls(
    tmp_path: Path, factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    authority = Authority(tmp_path)
    files = {broker: issue(authority, broker) for broker in (ONE, TWO)}

    async def main() -> None:
        one = await endpoint(ONE, tls=tls_of(files[ONE], ONE))
        two = await endpoint(TWO, tls=tls_of(files[TWO], TWO))
        one[0].set_peer(TWO, "127.0.0.1", two[0].port)
        await one[1].until(lambda: len(one[1].connected) == 2)
        sizes = [0, 1, 16_379, 16_380, 300_000, 5, 4_000_000, 65_536, 17] * 3
        handed: list[int] = []
        for number, size in enumerate(sizes):
            body = bytes([number]) * size
            assert one[0].send(TWO, Lane.BULK, [b"head", body], lambda n=number: handed.append(n))
            assert one[0].send(TWO, Lane.CONTROL, [bytes([number])])
        await two[1].until(lambda: len(two[1].messages) == 2 * len(sizes))
        bulk = [message for _, lane, message in two[1].messages if lane is Lane.BULK]
        assert bulk == [b"head" + bytes([n]) * size for n, size in enumerate(sizes)]
        assert {sender for sender, *_ in two[1].messages} == {ONE}
        assert handed == list(range(len(sizes)))
        stop(one, two)

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_replies_of_every_size_pass_through_tls_while_messages_do(
    tmp_path: Path, factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    authority = Authority(tmp_path)
    files = {broker: issue(authority, broker) for broker in (ONE, TWO)}

    async def main() -> None:
        one = await endpoint(ONE, tls=tls_of(files[ONE], ONE))
        two = await endpoint(TWO, tls=tls_of(files[TWO], TWO))
        one[0].set_peer(TWO, "127.0.0.1", two[0].port)
        await one[1].until(lambda: len(one[1].connected) == 2)
        sizes = [0, 1, 16_379, 16_380, 300_000, 5, 4_000_000, 65_536, 17]
        count = 0
        for number, size in enumerate(sizes):
            assert one[0].send(TWO, Lane.BULK, [bytes([number]) * size])
            count += 1
            await two[1].until(lambda due=count: len(two[1].messages) == due)
            assert one[0].send(TWO, Lane.BULK, [bytes(1_000_000)])
            count += 1
            assert two[0].reply(ONE, Lane.BULK, [b"re", two[1].messages[-1][2]])
            assert two[0].reply(ONE, Lane.BULK, [b"end"])
        await one[1].until(lambda: len(one[1].messages) == 2 * len(sizes))
        replies = [body for _, _, body in one[1].messages]
        expected = [b"re" + bytes([n]) * size for n, size in enumerate(sizes)]
        assert replies[::2] == expected and replies[1::2] == [b"end"] * len(sizes)
        await two[1].until(lambda: len(two[1].messages) == count)
        assert one[1].lost == []
        stop(one, two)

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())


@pytest.mark.parametrize(
    ("one_mode", "two_mode"),
    [
        ("off", "prefer"),
        ("prefer", "off"),
        ("prefer", "prefer"),
        ("prefer", "require"),
        ("require", "prefer"),
        ("require", "require"),
    ],
)
def test_a_cluster_goes_from_mode_to_mode_one_broker_after_the_other(
    tmp_path: Path, one_mode: str, two_mode: str
) -> None:
    authority = Authority(tmp_path)
    files = {broker: issue(authority, broker) for broker in (ONE, TWO)}

    async def main() -> None:
        one = await endpoint(ONE, tls=mode(files[ONE], ONE, one_mode))
        two = await endpoint(TWO, tls=mode(files[TWO], TWO, two_mode))
        await hears(one, two, TWO)
        await hears(two, one, ONE)
        stop(one, two)

    asyncio.run(main())


def test_a_broker_without_tls_is_not_heard_where_it_is_required(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = issue(Authority(tmp_path), TWO)

    async def main() -> None:
        one, two = await endpoint(ONE), await endpoint(TWO, tls=tls_of(files, TWO))
        told = has_told(caplog, "port for brokers: a client without TLS came to a port with TLS")
        await stays_unheard(one, two, TWO, told)
        assert len([one for one in caplog.records if "without TLS" in one.getMessage()]) == 1
        stop(one, two)

    asyncio.run(main())


def test_a_broker_that_requires_tls_does_not_speak_without(tmp_path: Path) -> None:
    files = issue(Authority(tmp_path), ONE)

    async def main() -> None:
        one, two = await endpoint(ONE, tls=tls_of(files, ONE)), await endpoint(TWO)
        one[0].set_peer(TWO, "127.0.0.1", two[0].port)
        await one[1].until(lambda: len(one[1].lost) > 6)
        assert one[1].connected == [] and two[1].messages == []
        stop(one, two)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("mistake", "reason"),
    [
        ("other authority", "the client's certificate is not accepted: unable to get local issuer"),
        ("expired", "the client's certificate is not accepted: certificate has expired"),
        ("other cluster", "the certificate does not name one broker of this cluster"),
        ("no name", "the certificate does not name one broker of this cluster"),
        ("two names", "the certificate does not name one broker of this cluster"),
        ("other broker", "it is broker 3, with the certificate of broker 2"),
    ],
)
def test_a_broker_that_cannot_prove_who_it_is_is_not_heard(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mistake: str, reason: str
) -> None:
    """The intruder says that it is broker 3; it accepts whatever the other side shows."""
    authority, other = Authority(tmp_path), Authority(tmp_path / "other")
    name = "strandline://c/broker/3"
    match mistake:
        case "other authority":
            shown = issue(other, 3)
        case "expired":
            shown = authority.issue("x", uris=(name,), days=-1)
        case "other cluster":
            shown = issue(authority, 3, "d")
        case "no name":
            shown = authority.issue("x", subject="CN=broker-3", dns=("broker-3",))
        case "two names":
            shown = authority.issue("x", uris=(name, "strandline://c/broker/1"))
        case _:
            shown = issue(authority, 2)
    files = issue(authority, ONE)

    async def main() -> None:
        one = await endpoint(ONE, tls=tls_of(files, ONE))
        intruder = await endpoint(THREE, tls=Lenient(shown, authority.trust))  # type: ignore[arg-type]
        await stays_unheard(intruder, one, ONE, has_told(caplog, reason))
        stop(one, intruder)

    asyncio.run(main())


class Lenient:
    """The TLS of an intruder: it shows any certificate, and accepts every broker as broker 1."""

    is_required = True

    def __init__(self, shown: Files, trust: Path) -> None:
        settings = TlsSettings(place="", pairs=(Pair(shown.certificate, shown.key),), trust=trust)
        self.connecting = client_context(settings)
        self.accepting = ServerTls(settings).context

    def broker_of(self, _: object) -> BrokerId:
        return ONE


def test_nothing_is_sent_to_a_broker_that_is_another_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    files = {broker: issue(authority, broker) for broker in (ONE, TWO)}

    async def main() -> None:
        one = await endpoint(ONE, tls=tls_of(files[ONE], ONE, is_required=False))
        two = await endpoint(TWO, tls=tls_of(files[TWO], TWO, is_required=False))
        told = has_told(caplog, "broker 3 is not where it should be: broker 2 is there")
        await stays_unheard(one, two, THREE, told)
        assert one[1].connected == []
        stop(one, two)

    asyncio.run(main())


def test_a_certificate_that_is_not_accepted_never_leads_to_a_connection_without_tls(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = issue(Authority(tmp_path), ONE)
    stranger = issue(Authority(tmp_path / "other"), TWO)

    async def main() -> None:
        one = await endpoint(ONE, tls=tls_of(files, ONE, is_required=False))
        two = await endpoint(TWO, tls=tls_of(stranger, TWO, is_required=False))
        await stays_unheard(one, two, TWO, has_told(caplog, "its certificate is not accepted"))
        assert one[1].connected == []
        stop(one, two)

    asyncio.run(main())


def test_trust_that_is_taken_away_keeps_a_broker_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path / "other")
    own, stranger = issue(authority, ONE), issue(other, TWO)
    trust = tmp_path / "trust.pem"
    trust.write_bytes(authority.trust.read_bytes() + other.trust.read_bytes())
    mine = Files(own.certificate, own.key, trust)
    theirs = Files(stranger.certificate, stranger.key, trust)

    async def main() -> None:
        tls = tls_of(mine, ONE)
        one, two = await endpoint(ONE, tls=tls), await endpoint(TWO, tls=tls_of(theirs, TWO))
        await hears(two, one, ONE)
        trust.write_bytes(authority.trust.read_bytes())
        assert tls.reload_if_changed()
        assert two[0].send(ONE, Lane.CONTROL, [b"a connection lives on"])
        await one[1].until(lambda: len(one[1].messages) == 2)
        lenient = Lenient(stranger, authority.trust)
        again = await endpoint(TWO, tls=lenient)  # type: ignore[arg-type]
        one[1].messages.clear()
        refused = has_told(caplog, "the client's certificate is not accepted")
        await stays_unheard(again, one, ONE, refused)
        stop(one, two, again)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("broker", "cluster", "reason"),
    [
        (3, "c", "c-3.pem is broker 3's, and this is broker 1: give the one of broker 1"),
        (
            1,
            "d",
            "d-1.pem: the certificate does not name one broker of this cluster: it needs one URI "
            "strandline://c/broker/ID among its subject alternative names",
        ),
    ],
)
def test_a_broker_does_not_start_with_the_certificate_of_another(
    tmp_path: Path, broker: int, cluster: str, reason: str
) -> None:
    with pytest.raises(OperatorError) as raised:
        tls_of(issue(Authority(tmp_path), broker, cluster), ONE)
    assert str(raised.value) == f"[rpc] certificate: {tmp_path}/{reason}"

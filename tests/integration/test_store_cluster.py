"""A cluster on a real S3 server: every acknowledged record is read back in order, whatever the
server, its credentials or a broker do meanwhile.

Source: decisions 0057 to 0060; docs/operating/tiered.md, "Bad days"."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.integration.conftest import stop_cluster, wait_until
from tests.integration.store_cluster import StoreCluster, proxy_thread, s3_url
from tests.tiered.objects.faulty_proxy import Fault, FaultyProxy
from tests.tiered.objects.opened import BUCKET
from tests.tiered.objects.real_servers import azurite, is_there, versitygw
from tests.tiered.objects.s3_server import make_bucket, s3_server

pytestmark = pytest.mark.integration

SERVERS = ["moto", *(["versitygw"] if is_there("versitygw") else [])]
RECORDS = 6_000
FAULTS = [
    *(Fault("PUT", ".segment", status=503) for _ in range(6)),
    *(Fault("PUT", ".segment", status=503, applied=True) for _ in range(4)),
    *(Fault("PUT", ".segment", applied=True) for _ in range(4)),
    *(Fault("PUT", "manifest", status=503) for _ in range(4)),
    *(Fault("PUT", "claim.json", status=409) for _ in range(2)),
    *(Fault("GET", ".segment", keep_bytes=100) for _ in range(6)),
    *(Fault("GET", ".segment", flips=True) for _ in range(6)),
    *(Fault("GET", ".segment", status=503) for _ in range(6)),
    *(Fault("GET", ".segment", status=500) for _ in range(3)),
]


@pytest.fixture(scope="module", params=SERVERS)
def port(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of an S3 server whose only credentials are test, test."""
    with ExitStack() as stack:
        if request.param == "versitygw":
            root = tmp_path_factory.mktemp("versitygw") / "root"
            yield stack.enter_context(versitygw(root)).port
        else:
            started = stack.enter_context(s3_server())
            make_bucket(started, BUCKET)
            yield started


@pytest.fixture
def proxy(port: int) -> Iterator[FaultyProxy]:
    with proxy_thread(port) as started:
        yield started


def write_credentials(path: Path, key: str) -> Path:
    secret = "test" if key == "test" else "topsecret"
    tables = (
        f'[{region}]\naccess_key_id = "{key}"\nsecret_access_key = "{secret}"\n'
        for region in ("east", "west", "south")
    )
    path.touch(mode=0o600)
    path.write_text("".join(tables))
    return path


def has_used(proxy: FaultyProxy, key: bytes) -> bool:
    return any(b"Credential=" + key + b"/" in head for head in tuple(proxy.heads))


def test_all_acknowledged_records_are_read_back_though_the_store_and_a_broker_fail(
    proxy: FaultyProxy, tmp_path: Path
) -> None:
    proxy.faults += FAULTS
    file = write_credentials(tmp_path / "buckets.toml", "test")
    on_s3 = StoreCluster(tmp_path, s3_url(proxy.port), credentials=file)
    try:
        on_s3.create("t")
        on_s3.produce("t", RECORDS)
        hangs = Fault("PUT", ".segment", hangs=True)
        proxy.faults.insert(0, hangs)
        on_s3.produce("t", RECORDS // 4)
        wait_until(lambda: hangs not in proxy.faults, what="an upload hangs")
        on_s3.cluster.kill(2)
        on_s3.produce("t", RECORDS // 4)
        on_s3.cluster.start(2)
        on_s3.await_tiered("t", above=RECORDS)
        assert on_s3.consume("t") == on_s3.acknowledged
        config = str(next(on_s3.cluster.directory.glob("broker-1/*.toml")))
        done = on_s3.cluster.run(
            "tiered", "verify", "-b", on_s3.cluster.bootstrap, "--config", config
        )
        assert "; 0 not sound" in done.stdout
        words = ("--buckets", ",".join(on_s3.urls), "--bucket-credentials", str(file))
        audit = ("pipeline", "audit", "t", "-b", on_s3.cluster.bootstrap)
        assert "equal: every replica" in on_s3.cluster.run(*audit, *words).stdout
    finally:
        stop_cluster(on_s3.cluster)


def test_credentials_that_expire_are_replaced_in_the_file_without_a_restart(
    proxy: FaultyProxy, tmp_path: Path
) -> None:
    file = write_credentials(tmp_path / "buckets.toml", "test")
    on_s3 = StoreCluster(tmp_path, s3_url(proxy.port), credentials=file)
    try:
        on_s3.create("t")
        on_s3.produce("t", RECORDS)
        on_s3.await_tiered("t", above=RECORDS // 2)
        proxy.refused = b"Credential="
        on_s3.produce("t", RECORDS // 2)
        wait_until(lambda: "credentials refused" in on_s3.logs(), what="an error in the log")
        row = on_s3.row("t")
        assert row is not None and any(one.pending_bytes for one in row.buckets)
        write_credentials(file, "expired")
        wait_until(lambda: has_used(proxy, b"expired"), what="the file is read again")
        proxy.refused = b"Credential=expired/"
        write_credentials(file, "test")
        on_s3.await_tiered("t", above=RECORDS)
        assert "topsecret" not in on_s3.logs()
        assert on_s3.consume("t") == on_s3.acknowledged
    finally:
        stop_cluster(on_s3.cluster)


def test_credentials_of_the_environment_are_enough(
    proxy: FaultyProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    on_s3 = StoreCluster(tmp_path, s3_url(proxy.port))
    try:
        on_s3.create("t")
        on_s3.produce("t", RECORDS)
        on_s3.await_tiered("t", above=RECORDS // 2)
        assert on_s3.consume("t") == on_s3.acknowledged
        assert has_used(proxy, b"test")
        told = json.loads(
            on_s3.cluster.run("tiered", "status", "--json", "-b", on_s3.cluster.bootstrap).stdout
        )
        puts = sum(one["puts"] for one in told["buckets"])
        seen = proxy.count("PUT") + proxy.count("POST")
        assert 0.8 * seen <= puts <= seen, "one request each, but for the last exports"
    finally:
        stop_cluster(on_s3.cluster)


def test_a_cluster_has_its_buckets_on_azure(tmp_path: Path) -> None:
    """Azurite: left out where it is not installed."""
    with azurite(tmp_path / "azurite") as running:
        file = tmp_path / "buckets.toml"
        file.touch(mode=0o600)
        file.write_text(
            "".join(f"[{one}]\n{running.credentials}" for one in ("east", "west", "south"))
        )
        on_azure = StoreCluster(tmp_path / "on-azure", running.url, credentials=file)
        try:
            on_azure.create("t")
            on_azure.produce("t", RECORDS)
            on_azure.await_tiered("t", above=RECORDS // 2)
            assert on_azure.consume("t") == on_azure.acknowledged
            words = ("--buckets", ",".join(on_azure.urls), "--bucket-credentials", str(file))
            audit = ("pipeline", "audit", "t", "-b", on_azure.cluster.bootstrap)
            assert "equal: every replica" in on_azure.cluster.run(*audit, *words).stdout
        finally:
            stop_cluster(on_azure.cluster)

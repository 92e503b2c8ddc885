"""`make clients ACCESS=1`: other people's clients where brokers ask for a proof (decision 0069)."""

import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from clients.access.attempts import RULES, judge_attempt
from clients.access.cells import ACCESS_CELLS
from clients.access.cluster import AccessCluster, access_cluster
from clients.access.course import connections
from clients.access.login import by_certificate, by_password
from clients.access.provider import CLIENT_ID, CLIENT_SECRET, Provider
from clients.access.table import check_access
from clients.catalogue import CLIENTS
from clients.client import Access, Client
from clients.records import CellError
from clients.table import as_text, why_not_here
from joserfc import jwt

from strandline.security.authority import Authority

WITH_ACCESS = {client.name: client for client in CLIENTS if client.access}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccessCluster]:
    """Three brokers that enforce rules."""
    with access_cluster(tmp_path_factory.mktemp("access")) as running:
        yield running


@pytest.mark.integration
@pytest.mark.timeout(900)
@pytest.mark.parametrize("cell", ACCESS_CELLS)
@pytest.mark.parametrize("name", WITH_ACCESS)
def test_each_client_where_brokers_ask_for_a_proof(
    cluster: AccessCluster, tmp_path: Path, name: str, cell: str
) -> None:
    client = WITH_ACCESS[name]
    if lacking := why_not_here(client):
        pytest.skip(f"{lacking}: the client can't run on this machine (2026-11-30)")
    row = check_access(client, cluster, tmp_path, cells=[cell])
    assert not row.is_red, as_text([row], [cell])


def client_that(**changes: object) -> Client:
    """A client without a program."""
    access = replace(
        Access(argv=lambda: ["false"], refusals={"write": "TOPIC_.*"}, renews=True),
        **changes,  # type: ignore[arg-type]
    )
    return Client("some", "1.0", "a bit", {}, access=access)


def test_an_attempt_that_is_refused_by_the_clients_error_passes() -> None:
    access = client_that().access
    assert access
    judge_attempt(access, "write", "refused\tTOPIC_AUTHORIZATION_FAILED")


@pytest.mark.parametrize("line", ["done", "no word", "refused\t_TIMED_OUT", "refused\tx TOPIC_"])
def test_an_attempt_that_is_not_refused_so_is_a_red_cell(line: str) -> None:
    access = client_that().access
    assert access
    with pytest.raises(CellError, match="write: "):
        judge_attempt(access, "write", line)


@pytest.mark.parametrize("name", WITH_ACCESS)
def test_each_client_has_an_error_for_each_attempt(name: str) -> None:
    access = WITH_ACCESS[name].access
    assert access
    tried = set(access.refusals) | set(access.not_tried)
    logins = {"wrong password", "wrong authority", "wrong host", "no certificate", "wrong secret"}
    assert set(RULES) | logins <= tried


def test_a_cell_that_was_not_tried_says_why(tmp_path: Path) -> None:
    client = client_that(not_tried=dict.fromkeys(ACCESS_CELLS, "it knows no TLS"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clients.access.cells.AccessCluster.observer", lambda _: None)
        cluster = AccessCluster(tmp_path, Authority(tmp_path / "ca"), Provider())
        row = check_access(client, cluster, tmp_path)
    assert row.answers["token"] == "not tried: it knows no TLS"


def test_a_login_is_told_to_programs_in_a_file(tmp_path: Path) -> None:
    login = by_password("b:1", tmp_path / "ca.pem", "SCRAM-SHA-256", "app", "a = b")
    path = Path(login.environment(tmp_path, "x")["CLIENT_ACCESS"])
    told = dict(line.split("=", 1) for line in path.read_text().splitlines())
    assert told == login.told
    assert told["password"] == "a = b"


def test_a_certificate_is_one_file_for_java(tmp_path: Path) -> None:
    files = Authority(tmp_path).issue("app")
    login = by_certificate("b:1", files)
    text = Path(login.java()["ssl.keystore.location"]).read_text()
    assert text.count("BEGIN PRIVATE KEY") == text.count("BEGIN CERTIFICATE") == 1


def test_a_provider_gives_tokens_to_its_client_only() -> None:
    import base64

    provider, form = Provider(), {"grant_type": ["client_credentials"]}

    def basic(secret: str) -> str:
        return "Basic " + base64.b64encode(f"{CLIENT_ID}:{secret}".encode()).decode()

    found = provider.answer(basic(CLIENT_SECRET), form)
    assert found
    assert jwt.decode(str(found["access_token"]), provider.key).claims["sub"] == "app"
    assert provider.answer(basic("wrong"), form) is None
    assert provider.answer(basic(CLIENT_SECRET), {}) is None


def test_connections_of_a_process_are_found_by_the_port_that_they_reach() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert connections(os.getpid(), {port}) == set()
        with socket.create_connection(("127.0.0.1", port)) as client:
            assert connections(os.getpid(), {port}) == {client.getsockname()[1]}
            assert connections(os.getpid(), {port + 1}) == set()

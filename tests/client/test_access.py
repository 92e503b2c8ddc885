"""A client's configuration on the machines that it runs on (decision 0069)."""

import pickle
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.client.access import Access, AccessTransport
from strandline.client.wire.login import Login
from strandline.model.cluster import Address
from strandline.security.authority import Authority

SECRET = "pa55-of-mia"
TIMEOUT_MS = 5_000


@pytest.fixture
def address() -> Iterator[Address]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield Address("127.0.0.1", listener.getsockname()[1])


def write(path: Path, password: str = SECRET) -> Path:
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        f"sasl.username=mia\nsasl.password={password}\n"
    )
    return path


def test_a_new_password_counts_for_new_connections(tmp_path: Path, address: Address) -> None:
    file = write(tmp_path / "client.conf")
    transport = AccessTransport(Access(str(file)))
    transport.connect(address, TIMEOUT_MS).close()
    assert transport.login == Login("SCRAM-SHA-512", "mia", SECRET)
    assert transport.principal == "User:mia"

    write(file, "another")
    transport.connect(address, TIMEOUT_MS).close()
    assert transport.login == Login("SCRAM-SHA-512", "mia", "another")

    file.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=half of")
    transport.connect(address, TIMEOUT_MS).close()
    file.unlink()
    transport.connect(address, TIMEOUT_MS).close()
    assert transport.login == Login("SCRAM-SHA-512", "mia", "another")


def test_a_file_that_cannot_be_used_at_first_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="no-such: cannot read: No such file"):
        AccessTransport(Access(str(tmp_path / "no-such")))


def test_what_travels_to_other_machines_shows_no_value_in_texts(tmp_path: Path) -> None:
    values = {"security.protocol": "SASL_SSL", "sasl.password": SECRET}
    access = Access.of(values)
    assert SECRET not in f"{access} {access!r} {[access]}"
    assert pickle.loads(pickle.dumps(access)) == access
    by_file = Access(str(write(tmp_path / "client.conf")))
    assert SECRET.encode() not in pickle.dumps(by_file)


def test_each_machine_finds_the_files_where_they_are_there(
    tmp_path: Path, address: Address
) -> None:
    files = Authority(tmp_path / "here").issue("app", subject="CN=app,O=example")
    (tmp_path / "here" / "client.conf").write_text(
        "security.protocol=SSL\nssl.ca.location=ca.pem\n"
        "ssl.certificate.location=app.pem\nssl.key.location=app.key\n"
    )
    transport = AccessTransport(Access("client.conf"), lambda name: tmp_path / "here" / name)
    assert files.certificate == tmp_path / "here" / "app.pem"
    assert transport.principal == "User:CN=app,O=example"

"""How requests reach a store: over TLS by an authority of one's own, with the bucket in the path or
in the host, and with a body that is signed only where nothing else protects it."""

import asyncio
import ssl
from pathlib import Path

import pytest
from tests.tiered.objects.faulty_proxy import FaultyProxy, faulty_proxy
from tests.tiered.objects.opened import BUCKET, Opener, error_of
from tests.tiered.objects.s3_server import CREDENTIALS

from strandline.base.errors import OperatorError
from strandline.config.bucket_urls import parse_bucket
from strandline.security.authority import Authority
from strandline.tiered.objects.bucket_store import BucketStore
from strandline.tiered.objects.credentials import CredentialsFile
from strandline.tiered.objects.opening import open_store
from strandline.tiered.objects.store import StoreError


@pytest.fixture
def tls(tmp_path: Path) -> ssl.SSLContext:
    """Of a server whose certificate only `ca.pem` vouches for."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    files = Authority(tmp_path).issue("store")
    context.load_cert_chain(files.certificate, files.key)
    return context


def opened(opener: Opener, endpoint: str, options: str = "") -> BucketStore:
    opener.credentials.write_text(f"[east]\n{CREDENTIALS}")
    url = f"east=s3://{BUCKET}/{opener.prefix}?region=us-east-1&endpoint={endpoint}{options}"
    return open_store(
        parse_bucket(url), credentials=CredentialsFile(str(opener.credentials)), timeout_ms=4_000
    )


def header_of(proxy: FaultyProxy, name: bytes) -> bytes:
    """A header of the last request."""
    lines = (line.partition(b":") for line in proxy.heads[-1].split(b"\r\n")[1:])
    return next(value.strip() for each, _, value in lines if each.lower() == name)


def test_a_store_with_a_certificate_of_ones_own_is_used_by_its_authority(
    s3_port: int, opener: Opener, tls: ssl.SSLContext
) -> None:
    async def main() -> None:
        async with faulty_proxy(s3_port, tls=tls) as proxy:
            here = f"https://127.0.0.1:{proxy.port}"
            store = opened(opener, here, f"&ca_file={opener.root}/ca.pem")
            await store.put("a", [b"123"])
            assert header_of(proxy, b"x-amz-content-sha256") == b"UNSIGNED-PAYLOAD"
            assert await store.get_range("a", 1, 3) == b"23"
            count = len(proxy.seen)
            error = await error_of(opened(opener, here).get("a"))
            assert type(error) is StoreError, "no other certificate is believed"
            assert len(proxy.seen) == count

    asyncio.run(main())


def test_a_body_is_signed_where_no_tls_protects_it(s3_port: int, opener: Opener) -> None:
    async def main() -> None:
        async with faulty_proxy(s3_port) as proxy:
            await opened(opener, f"http://127.0.0.1:{proxy.port}").put("a", [b"123"])
            assert len(header_of(proxy, b"x-amz-content-sha256")) == 64

    asyncio.run(main())


@pytest.mark.parametrize(
    ("options", "path"),
    [("", f"/{BUCKET}/"), ("&virtual_host=true", "/"), ("&virtual_host=false", f"/{BUCKET}/")],
)
def test_the_bucket_is_in_the_path_unless_the_host_names_it(
    s3_port: int, opener: Opener, options: str, path: str
) -> None:
    async def main() -> None:
        async with faulty_proxy(s3_port) as proxy:
            store = opened(opener, f"http://127.0.0.1:{proxy.port}", options)
            await error_of(store.put("a", [b"1"]))
            assert proxy.seen[0] == ("PUT", f"{path}{opener.prefix}/a")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "No such file"),
        ("", "is no certificate"),
        ("x", "is no certificate"),
        ("ä", "is no PEM file"),
    ],
)
def test_an_authority_that_cannot_be_read_is_named_at_once(
    opener: Opener, text: str | None, reason: str
) -> None:
    file = opener.root / "ca.pem"
    if text is not None:
        file.write_text(text)
    with pytest.raises(OperatorError, match=f"bucket east: ca_file {file}: {reason}"):
        opened(opener, "https://127.0.0.1:1", f"&ca_file={file}")

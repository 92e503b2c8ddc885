"""Batches whose contents are compressed, in every framing that clients write, good and bad."""

import gzip
import struct
from collections.abc import Callable

import cramjam

from differential.cases.produce import raw_batch
from differential.cases.registry import case, create, fetch_request, produce_request
from differential.peer import Peer
from strandline.protocol.messages.fetch import FetchResponse
from strandline.records.batch import iterate_headers
from strandline.records.codec import GZIP, LZ4, SNAPPY, ZSTD, compress
from strandline.records.record import Record, decode_records, encode_record

COUNT = 10
CONTENTS = b"".join(
    encode_record(Record(offset_delta=delta, key=b"k", value=b"v" * 20_000), 0)
    for delta in range(COUNT)
)
HALF = len(CONTENTS) // 2


def _lz4(*, is_linked: bool = False) -> bytes:
    compressor = cramjam.lz4.Compressor(content_checksum=False, block_linked=is_linked)
    compressor.compress(CONTENTS)
    return bytes(compressor.finish())


def _changed(data: bytes, place: int) -> bytes:
    changed = bytearray(data)
    changed[place] ^= 0xFF
    return bytes(changed)


def _xerial_block(block: bytes) -> bytes:
    return struct.pack(">i", len(block)) + block


PAYLOADS: dict[str, tuple[int, Callable[[], bytes]]] = {
    "gzip": (GZIP, lambda: gzip.compress(CONTENTS)),
    "gzip, two members": (
        GZIP,
        lambda: gzip.compress(CONTENTS[:HALF]) + gzip.compress(CONTENTS[HALF:]),
    ),
    "gzip, not gzip": (GZIP, lambda: CONTENTS),
    "gzip, cut": (GZIP, lambda: gzip.compress(CONTENTS)[:-20]),
    "gzip, bytes behind": (GZIP, lambda: gzip.compress(CONTENTS) + b"xyz"),
    "gzip, wrong checksum": (GZIP, lambda: _changed(gzip.compress(CONTENTS), -6)),
    "gzip of nothing": (GZIP, lambda: gzip.compress(b"")),
    "snappy, xerial": (SNAPPY, lambda: compress(SNAPPY, CONTENTS)),
    "snappy, bare block": (SNAPPY, lambda: bytes(cramjam.snappy.compress_raw(CONTENTS))),
    "snappy, Google's frames": (SNAPPY, lambda: bytes(cramjam.snappy.compress(CONTENTS))),
    "snappy, a block cut": (SNAPPY, lambda: compress(SNAPPY, CONTENTS)[:-1]),
    "snappy, an empty block": (
        SNAPPY,
        lambda: compress(SNAPPY, CONTENTS) + _xerial_block(bytes(cramjam.snappy.compress_raw(b""))),
    ),
    "snappy, garbage": (SNAPPY, lambda: b"\xff" * 50),
    "lz4": (LZ4, _lz4),
    "lz4, linked blocks": (LZ4, lambda: _lz4(is_linked=True)),
    "lz4, wrong header checksum": (LZ4, lambda: _changed(_lz4(), 6)),
    "lz4, wrong magic": (LZ4, lambda: _changed(_lz4(), 0)),
    "lz4, cut": (LZ4, lambda: _lz4()[:-8]),
    "lz4, bytes behind": (LZ4, lambda: _lz4() + b"xyz"),
    "zstd": (ZSTD, lambda: bytes(cramjam.zstd.compress(CONTENTS))),
    "zstd, two frames": (
        ZSTD,
        lambda: (
            bytes(cramjam.zstd.compress(CONTENTS[:HALF]))
            + bytes(cramjam.zstd.compress(CONTENTS[HALF:]))
        ),
    ),
    "zstd, not zstd": (ZSTD, lambda: CONTENTS),
    "zstd, cut": (ZSTD, lambda: bytes(cramjam.zstd.compress(CONTENTS))[:-3]),
    "zstd, bytes behind": (ZSTD, lambda: bytes(cramjam.zstd.compress(CONTENTS)) + b"xyz"),
    "gzip by the name of lz4": (LZ4, lambda: gzip.compress(CONTENTS)),
}


@case
def framings(peer: Peer) -> None:
    """Each framing; and what a consumer gets of it."""
    create(peer, "framings", partitions=len(PAYLOADS))
    for partition, (label, (codec, payload)) in enumerate(PAYLOADS.items()):
        batch = raw_batch(payload(), COUNT, attributes=codec)
        peer.ask(label, produce_request("framings", batch, partition=partition), 8)
        peer.ask(f"{label}: read back", fetch_request("framings", 0, partition=partition), 11)


@case
def wrong_contents(peer: Peer) -> None:
    """What is compressed is not what the header says."""
    for label, codec in (("gzip", GZIP), ("snappy", SNAPPY), ("lz4", LZ4), ("zstd", ZSTD)):
        for what, body, count in (
            ("more announced", CONTENTS, COUNT + 1),
            ("fewer announced", CONTENTS, COUNT - 1),
            ("garbage", b"\xff" * 200, 1),
            ("bytes behind", CONTENTS + b"x", COUNT),
        ):
            batch = raw_batch(compress(codec, body), count, attributes=codec)
            topic = f"wrong-{label}-{what.replace(' ', '-')}"
            create(peer, topic)
            peer.ask(f"{label}, {what}", produce_request(topic, batch), 8)


@case
def zstd_by_an_old_version(peer: Peer) -> None:
    """zstd needs version 7 of Produce."""
    create(peer, "zstd-old")
    batch = raw_batch(compress(ZSTD, CONTENTS), COUNT, attributes=ZSTD)
    for version in (3, 6, 7):
        peer.ask(f"v{version}", produce_request("zstd-old", batch), version)


@case
def with_the_codec_of_the_topic(peer: Peer) -> None:
    """`compression.type`: the codec of what is stored, and the values in it."""
    for kind in ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"):
        topic = f"stored-{kind}"
        create(peer, topic, configs={"compression.type": kind})
        batch = raw_batch(compress(LZ4, CONTENTS), COUNT, attributes=LZ4)
        peer.ask(f"{kind}: write", produce_request(topic, batch), 8)
        answer = peer.ask_silently(fetch_request(topic, 0), 11)
        assert isinstance(answer, FetchResponse)
        records = answer.responses[0].partitions[0].records
        assert isinstance(records, memoryview)
        (header,) = iterate_headers(records)
        peer.note(f"{kind}: codec", header.codec)
        peer.note(f"{kind}: sizes", [len(one.value or b"") for one in decode_records(records)])

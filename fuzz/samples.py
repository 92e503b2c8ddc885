"""Well-formed input, drawn at random: what a mutation damages must first get deep into a parser."""

from random import Random
from typing import NamedTuple
from uuid import UUID

import msgspec

from strandline.protocol.apis import APIS, Api
from strandline.protocol.headers import encode_request
from strandline.protocol.table import NO_ID, Column, Message, columns
from strandline.records.codec import CODEC_NAMES, NONE, compress
from strandline.records.record import Record, build_batch

LIST_MAX = 3
BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
TEXTS = ("", "a", "topic", "x" * 127, "\u00e9" * 100)
CODECS = range(NONE, len(CODEC_NAMES))


class Words(NamedTuple):
    """What texts and ids are drawn from."""

    texts: tuple[str, ...] = TEXTS
    ids: tuple[UUID, ...] = ()


ANY = Words()


def message(
    cls: type[msgspec.Struct], version: int, random: Random, words: Words = ANY
) -> msgspec.Struct:
    """A message with random values in the fields that this version has."""
    return cls(*(_field(column, version, random, words) for column in columns(cls)))


def _field(column: Column, version: int, random: Random, words: Words) -> object:
    if not column.versions.has(version) or random.random() < 0.1:
        return [] if column.is_array and column.default is not None else column.default
    if column.nullable.has(version) and random.random() < 0.2:
        return None
    if column.is_array:
        count = random.randint(0, LIST_MAX)
        return [_value(column, version, random, words) for _ in range(count)]
    return _value(column, version, random, words)


def _value(column: Column, version: int, random: Random, words: Words) -> object:
    wire = column.wire
    if wire == "struct":
        assert column.element is not None
        return message(column.element, version, random, words)
    if wire in BITS:
        small = random.random() < 0.7
        bound = 1 << BITS[wire]
        return random.randint(-2, 9) if small else random.randint(-bound, bound - 1)
    match wire:
        case "bool":
            return random.random() < 0.5
        case "string":
            return random.choice(words.texts)
        case "bytes":
            return random.randbytes(random.randint(0, 20))
        case "records":
            return batch(random)
        case "uuid":
            return random.choice((NO_ID, UUID(int=random.getrandbits(128)), *words.ids))
        case "uint16":
            return random.randrange(1 << 16)
        case "uint32":
            return random.randrange(1 << 32)
    assert wire == "float64", wire
    return random.random()


def request(random: Random, api: Api | None = None, words: Words = ANY) -> bytes:
    """A whole request of a random API and version, without the size in front."""
    chosen = api or random.choice(list(APIS.values()))
    version = random.randint(chosen.min_version, chosen.max_version)
    body = message(chosen.request, version, random, words)
    assert isinstance(body, Message)
    return bytes(encode_request(body, version, correlation_id=1, client_id="fuzz"))


def batch(random: Random, codec: int | None = None) -> bytes:
    """A record batch of up to twenty records, compressed or not."""
    count = random.randint(1, 20)
    records = [
        Record(
            offset_delta=delta,
            timestamp=1_700_000_000_000 + random.randint(-5, 5000),
            key=random.choice((None, b"", b"key")),
            value=random.choice((None, b"", random.randbytes(random.randint(0, 200)))),
            headers=(("h", b"v"), ("n", None))[: random.randint(0, 2)],
        )
        for delta in range(count)
    ]
    producer = {
        "producer_id": 7,
        "producer_epoch": 0,
        "base_sequence": random.choice((0, 2**31 - 2)),
    }
    return bytes(
        build_batch(
            records,
            codec=random.choice(CODECS) if codec is None else codec,
            **(producer if random.random() < 0.3 else {}),
        )
    )


def payload(random: Random) -> bytes:
    """A codec in the first byte, then something compressed by it."""
    codec = random.choice(CODECS)
    data = random.randbytes(random.randint(0, 500)) * random.randint(1, 50)
    return bytes([codec]) + compress(codec, data)

"""The payload of a TIER marker: a version, then a command or a checkpoint, as MessagePack.

Source: decision 0057."""

import msgspec

from strandline.tiered.state.commands import Record

VERSION = 1
_CHECKPOINT_HEAD = bytes((0x92, VERSION, 0x97, 7))
"""An array of two: the version, then an array of seven: the tag, then six fields."""

_encoder = msgspec.msgpack.Encoder()
_versioned = msgspec.msgpack.Decoder(tuple[int, msgspec.Raw])
_records: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)


class UnknownRecordError(ValueError):
    """A payload that this release cannot read."""


def encode(record: Record) -> bytes:
    """The payload. Equal records have equal payloads."""
    return _encoder.encode((VERSION, record))


def is_checkpoint(payload: bytes) -> bool:
    """Whether the payload has the whole state."""
    return payload.startswith(_CHECKPOINT_HEAD)


def decode(payload: bytes) -> Record:
    """What a payload says. Raises UnknownRecordError."""
    try:
        version, raw = _versioned.decode(payload)
        if version != VERSION:
            raise UnknownRecordError(f"version {version} of a tier marker, not {VERSION}")
        return _records.decode(raw)
    except msgspec.DecodeError as error:
        raise UnknownRecordError(f"a tier marker that cannot be read: {error}") from error

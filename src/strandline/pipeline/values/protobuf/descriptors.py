"""Descriptor files and registry answers -> descriptors of messages.

How:    `protoc --include_imports --descriptor_set_out=FILE` writes the file; a registry answers
        `?format=serialized` with one file's descriptor in base64, and references beside it.
        Imports of Google's well-known types are found without them.
Source: descriptor.proto; Confluent's schema registry API."""

import base64
import binascii
from importlib import import_module
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message import DecodeError

from strandline.base.errors import OperatorError
from strandline.pipeline.values.registry.client import RegisteredSchema

_WELL_KNOWN = "google/protobuf/"


def read_descriptor_set(path: Path, *, option: str = "--schema") -> bytes:
    """The bytes of a descriptor file. OperatorError names it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise OperatorError(f"{option} {path}: cannot read: {error}") from error
    load_files(files_of_set(data, source=f"{option} {path}"), source=f"{option} {path}")
    return data


def files_of_set(data: bytes, *, source: str) -> tuple[bytes, ...]:
    """The serialized FileDescriptorProto of each file of a descriptor set."""
    found = descriptor_pb2.FileDescriptorSet()
    try:
        found.ParseFromString(data)
    except DecodeError:
        found.Clear()
    if not found.file or not all(one.name for one in found.file):
        raise OperatorError(
            f"{source}: not a descriptor set: write it with "
            "protoc --include_imports --descriptor_set_out=FILE"
        )
    return tuple(one.SerializeToString() for one in found.file)


def files_of_registered(schema: RegisteredSchema, *, source: str) -> tuple[bytes, ...]:
    """The same of a registry's answer; the schema's own file comes last."""
    files = []
    own = ("", schema.text)
    for name, text in (*schema.references, own):
        file = descriptor_pb2.FileDescriptorProto()
        try:
            file.ParseFromString(base64.b64decode(text, validate=True))
        except (DecodeError, binascii.Error, ValueError):
            raise OperatorError(
                f"{source}: the registry does not answer ?format=serialized: "
                "give a descriptor file with --schema"
            ) from None
        file.name = name or file.name or "schema.proto"
        files.append(file.SerializeToString())
    return tuple(files)


def load_files(files: tuple[bytes, ...], *, source: str) -> tuple[Any, list[Any]]:
    """(a pool with all files, their descriptors in order). OperatorError if one does not fit."""
    protos = [descriptor_pb2.FileDescriptorProto.FromString(one) for one in files]
    known = {one.name: one for one in protos}
    pool = descriptor_pool.DescriptorPool()
    added: set[str] = set()

    def add(name: str) -> None:
        if name in added:
            return
        added.add(name)
        proto = known.get(name) or _well_known(name)
        if proto is None:
            raise OperatorError(f"{source}: it imports {name}, which is not there")
        for imported in proto.dependency:
            add(imported)
        pool.Add(proto)

    try:
        for one in protos:
            add(one.name)
        return pool, [pool.FindFileByName(one.name) for one in protos]
    except (TypeError, KeyError) as error:
        told = " ".join(str(error).split())
        raise OperatorError(f"{source}: the descriptors do not fit together: {told}") from None


def find_message(pool: Any, files: list[Any], name: str | None, *, source: str) -> Any:
    """The descriptor of a message by its full name; without one, the last file's only message."""
    if name is not None:
        try:
            return pool.FindMessageTypeByName(name)
        except KeyError:
            raise OperatorError(f"{source}: there is no message {name}") from None
    messages = list(files[-1].message_types_by_name.values())
    if len(messages) != 1:
        names = ", ".join(sorted(one.full_name for one in messages)[:5]) or "none"
        raise OperatorError(f"{source}: name one of its messages with --message: {names}")
    return messages[0]


def message_at(pool: Any, file: Any, indexes: tuple[int, ...]) -> Any:
    """The message that the indexes of the wire format lead to; None if there is none."""
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    among, names = proto.message_type, [proto.package] if proto.package else []
    for index in indexes:
        if not 0 <= index < len(among):
            return None
        names.append(among[index].name)
        among = among[index].nested_type
    return pool.FindMessageTypeByName(".".join(names))


def _well_known(name: str) -> Any:
    if not name.startswith(_WELL_KNOWN):
        return None
    try:
        module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    except ImportError:
        return None
    return descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)

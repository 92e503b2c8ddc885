"""Descriptors for tests, as protoc would write them."""

from collections.abc import Iterable
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

Proto = descriptor_pb2.FieldDescriptorProto
KINDS = {name.removeprefix("TYPE_").lower(): number for name, number in Proto.Type.items()}
TIMESTAMP = "google/protobuf/timestamp.proto"


def field(number: int, name: str, kind: str, **options: Any) -> Any:
    """A field; `kind` is a type's name, or `.full.Name` of a message or enum (`enum=True`)."""
    made = Proto(name=name, number=number, label=Proto.LABEL_OPTIONAL)
    if options.pop("repeated", False):
        made.label = Proto.LABEL_REPEATED
    if options.pop("required", False):
        made.label = Proto.LABEL_REQUIRED
    is_enum = options.pop("enum", False)
    if kind.startswith("."):
        made.type = Proto.TYPE_ENUM if is_enum else Proto.TYPE_MESSAGE
        made.type_name = kind
    else:
        made.type = KINDS[kind]
    if "packed" in options:
        made.options.packed = options.pop("packed")
    for name, value in options.items():
        setattr(made, name, value)
    return made


def file(
    *messages: Any,
    name: str = "t.proto",
    imports: Iterable[str] = (TIMESTAMP,),
    enums: Iterable[Any] = (),
    syntax: str = "proto3",
) -> Any:
    """A file of package `t`."""
    return descriptor_pb2.FileDescriptorProto(
        name=name, package="t", syntax=syntax, dependency=imports, message_type=messages,
        enum_type=enums,
    )  # fmt: skip


def message(name: str, *fields: Any, nested: Iterable[Any] = (), oneofs: Iterable[str] = ()) -> Any:
    """A message."""
    return descriptor_pb2.DescriptorProto(
        name=name, field=fields, nested_type=nested,
        oneof_decl=[descriptor_pb2.OneofDescriptorProto(name=one) for one in oneofs],
    )  # fmt: skip


def map_entry(name: str, key: Any, value: Any) -> Any:
    """What protoc makes of a map."""
    made = message(name, key, value)
    made.options.map_entry = True
    return made


def descriptor_set(*files: Any) -> bytes:
    """The file that `protoc --include_imports --descriptor_set_out` writes."""
    stamp = descriptor_pb2.FileDescriptorProto.FromString(timestamp_pb2.DESCRIPTOR.serialized_pb)
    return descriptor_pb2.FileDescriptorSet(file=[stamp, *files]).SerializeToString()


def message_class(name: str, *files: Any) -> Any:
    """Google's own class of a message, the oracle."""
    pool = descriptor_pool.DescriptorPool()
    stamp = descriptor_pb2.FileDescriptorProto.FromString(timestamp_pb2.DESCRIPTOR.serialized_pb)
    for one in (stamp, *files):
        pool.Add(one)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))

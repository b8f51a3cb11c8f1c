"""What is asked of descriptors in more than one place."""

from __future__ import annotations

from typing import cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message


def descriptor_of(message: type[Message]) -> Descriptor:
    return cast("Descriptor", message.DESCRIPTOR)


def inner(member: FieldDescriptor) -> Descriptor:
    """The message that a field holds, which it must."""
    if member.message_type is None:
        raise TypeError(f"{member.full_name} holds no message")
    return member.message_type


def is_optional(member: FieldDescriptor) -> bool:
    """Whether it is marked so: protobuf keeps that as a oneof of one."""
    return member.containing_oneof is not None and len(member.containing_oneof.fields) == 1

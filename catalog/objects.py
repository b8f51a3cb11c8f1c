"""The current types, by name: `from catalog.objects import RoleKey, RoleValue`."""

from catalog.authoring import load_generated

load_generated("catalog", "objects", "proto/objects.proto")

from catalog.generated.objects_pb2 import *  # noqa: E402, F403 - the names are those of proto/objects.proto

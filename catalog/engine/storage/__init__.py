"""Bytes at a place, and the files of a store that are not in a log.

- `base`: the protocol of a storage backend, and the choice of one
- `local`: folders of this machine
- `object_store`: prefixes of object stores
- `layout`: the folders of a store, and the ids of its shards
- `identity`: `store.json`
- `heartbeat`: signs of life of a leader
- `write_probe`: a test of what a place permits
"""

"""Builtin collections: those that software brings along, and how their schemas change between builds."""

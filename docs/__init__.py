"""The documentation: its pages, and what writes, checks and builds them."""

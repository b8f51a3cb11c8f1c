"""Observers that write events down: log lines, metrics for Prometheus, a file that exists while the store is ready."""

"""Observers of notices that write them down: log lines, metrics for Prometheus, a file that says the store is ready."""

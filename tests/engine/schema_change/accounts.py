"""Tables of accounts and orders, as several tests use them."""

from __future__ import annotations

ACCOUNTS = "CREATE TABLE accounts (id BIGINT, owner STRING, amount BIGINT DEFAULT 0, PRIMARY KEY (id))"
CONSTRAINED = """CREATE TABLE orders (
    id BIGINT, account BIGINT, code STRING, price DECIMAL(6,2) NOT NULL,
    gross DECIMAL(8,2) GENERATED ALWAYS AS (CAST(price + 1 AS DECIMAL(8,2))),
    PRIMARY KEY (id), UNIQUE (code), CONSTRAINT cheap CHECK (price < 100),
    CONSTRAINT buyer FOREIGN KEY (account) REFERENCES accounts (id))"""

"""Texts for rows: words, and pools of longer texts whose lengths follow a distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from statistics import NormalDist

import pyarrow as pa

_FIRST = ("am", "bel", "cor", "del", "fen", "gal", "har", "lum")
_LAST = ("ber", "dris", "ion", "len", "mar", "or", "tex", "vane")
WORDS = tuple(first + last for first in _FIRST for last in _LAST)
_UNUSUAL = ("naïve", "Größe", "目録", "каталог", "🜚", '"quoted"', "back\\slash", "line\nbreak", "tab\tstop", "\x1f")
"""Texts that encodings treat specially."""
_UNUSUAL_SHARE = 1 / 40
_POOL_TEXTS_MAX, _POOL_BYTES_MAX = 1024, 16 * 1024 * 1024
_CORPUS_WORDS = 4096
_LARGE_BYTES = (40_000, 120_000, 250_000)
_P95 = NormalDist().inv_cdf(0.95)


@dataclass(frozen=True, slots=True)
class Lengths:
    """A log-normal distribution of lengths in bytes, by its mean and its 95th percentile."""

    mean: float
    p95: float

    def quantile(self, share: float) -> int:
        if self.mean < 1:
            return 0
        spread = min(max(math.log(max(self.p95, self.mean) / self.mean), 0.0), _P95**2 / 2)
        sigma = _P95 - math.sqrt(_P95**2 - 2 * spread)
        return round(math.exp(math.log(self.mean) - sigma**2 / 2 + sigma * NormalDist().inv_cdf(share)))


USUAL = Lengths(80, 240)


@lru_cache(maxsize=64)
def pool(seed: int, lengths: Lengths) -> pa.Array:
    """Return texts of these lengths to choose from, fewer if they are long."""
    count = max(1, min(_POOL_TEXTS_MAX, int(_POOL_BYTES_MAX / max(lengths.mean, 1))))
    return _texts(f"{seed} {lengths}", [lengths.quantile((position + 0.5) / count) for position in range(count)])


@lru_cache(maxsize=4)
def large_pool(seed: int) -> pa.Array:
    return _texts(f"{seed} large", list(_LARGE_BYTES))


def _texts(seed: str, lengths: list[int]) -> pa.Array:
    """Return texts of exactly these lengths in bytes, cut from a longer one at random."""
    random = Random(seed)  # noqa: S311 - synthetic rows need no secrecy
    words = [random.choice(_UNUSUAL if random.random() < _UNUSUAL_SHARE else WORDS) for _ in range(_CORPUS_WORDS)]
    corpus = " ".join(words).encode()
    texts = []
    for length in lengths:
        start = random.randrange(len(corpus))
        whole = corpus * (1 + (start + length) // len(corpus))
        text = whole[start : start + length].decode(errors="ignore")
        texts.append(text + "." * (length - len(text.encode())))
    return pa.array(texts, pa.string())

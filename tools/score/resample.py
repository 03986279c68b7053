"""Seeded resampling of blocks, defined so that anyone can repeat it in any language, whatever numpy's version.

Blocks are sorted by name (code points) and numbered 0..B-1. Draw j (0..B-1) of resample r (0..R-1) is the block

    floor(high32(mix(mix(seed) + (r * B + j + 1) * 0x9E3779B97F4A7C15)) * B / 2**32)      all modulo 2**64

where `mix` is splitmix64's finaliser. The statistics are sums over the drawn blocks. A quantile of R sorted values is
the linear interpolation at (R - 1) * p.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

GOLDEN = 0x9E3779B97F4A7C15
CHUNK = 1 << 20


def mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """splitmix64's finaliser, in place on an array of uint64."""
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def uniform32(seed: int, start: int, count: int) -> NDArray[np.uint64]:
    """32-bit uniform draws number start..start+count-1 of the stream `seed`."""
    base = mix(np.array([seed % 2**64], dtype=np.uint64))
    counter = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    counter *= np.uint64(GOLDEN)
    counter += base
    return mix(counter) >> np.uint64(32)


def draws(blocks: int, resamples: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Chunks [some resamples, blocks] of block numbers."""
    step = max(1, CHUNK // blocks)
    for first in range(0, resamples, step):
        rows = min(step, resamples - first)
        high = uniform32(seed, first * blocks, rows * blocks)
        high *= np.uint64(blocks)
        yield (high >> np.uint64(32)).astype(np.int64).reshape(rows, blocks)


def resampled_sums(values: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    """[resamples, columns]: sums of each column of `values` [blocks, columns] over the drawn blocks."""
    blocks, columns = values.shape
    out = np.empty((resamples, columns))
    first = 0
    for index in draws(blocks, resamples, seed):
        for c in range(columns):
            out[first : first + len(index), c] = np.take(values[:, c], index).sum(axis=1)
        first += len(index)
    return out


def quantile(ordered: NDArray[np.float64], p: float) -> float:
    """Quantile of sorted values, linear interpolation at (n - 1) * p."""
    at = min(max(p, 0.0), 1.0) * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    a, b = float(ordered[low]), float(ordered[high])
    return a if a == b or a == float("-inf") else a + (b - a) * (at - low)

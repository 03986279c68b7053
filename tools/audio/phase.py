"""Whether two stretches of sound are the same sound, decided by phase.

A linear filter (a room, a telephone, an equaliser) and a change of level keep the phase peak of the
cross-correlation; the same words spoken again do not. `coherence` is the height of that peak where 1 means that
every frequency agrees. A change of speed is undone first: it moves the fine structure of the spectrum along a log
axis, which `speed_ratio` measures. Source: facts on GCC-PHAT over 200-3,800 Hz; the ratio is a scale
(Fourier-Mellin) correlation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.fft
import soxr

from tools.audio.fingerprint import FP_RATE
from tools.audio.read import Wave

LOW_HZ, HIGH_HZ = 200.0, 3_800.0
SCALE_LOW_HZ, SCALE_HIGH_HZ = 200.0, 1_800.0
REST = FP_RATE // 20  # samples: the lag is known to this after the first look
BESIDE, STEPS = 16, 4  # samples each side that say what lies between two; eighths of a sample
ALIGNED = FP_RATE // 500  # 2 ms
HOPELESS = 0.15  # copies give 0.37 and more at the first look, other speech 0.06
SCALE_PEAK = 0.4  # the same sound at another speed gives 0.9; the sentence spoken again at most 0.3


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well two stretches agree: coherence 0..1, seconds they share, and where the second starts within the first.

    a(t) is b(speed * t - lag_s) in the shared part, up to a filter.
    """

    coherence: float
    shared_s: float
    lag_s: float
    speed: float = 1.0


def compare(a: Wave, b: Wave, reach_s: float | None = None) -> Agreement:
    """Agreement of two stretches at 8 kHz and one speed: find the lag, then measure on the part both have.

    With `reach_s` the lag is known to lie within that many seconds (either way): that is quicker, and where the first
    look is far below any copy's it is the last one.
    """
    height, at = _peak(a, b, None if reach_s is None else max(1, round(reach_s * FP_RATE)))
    lag = round(at)
    if reach_s is not None and height < HOPELESS:
        return Agreement(height, 0.0, lag / FP_RATE)
    left, right = _shared(a, b, lag)
    if min(left.size, right.size) < FP_RATE // 10:
        return Agreement(0.0, 0.0, lag / FP_RATE)
    height, rest = _peak(_tapered(left), _tapered(right), REST)
    return Agreement(height, min(left.size, right.size) / FP_RATE, (lag + rest) / FP_RATE)


def compare_speed(a: Wave, b: Wave, near: float, reach_s: float | None = None) -> Agreement:
    """As `compare`, with a change of speed near the ratio `near` undone first; coherence 0 where none stands out."""
    ratio, peak = speed_ratio(a, b, near)
    if peak < SCALE_PEAK:
        return Agreement(0.0, 0.0, 0.0, ratio)
    slowed = np.asarray(soxr.resample(a, FP_RATE, FP_RATE * ratio), dtype=np.float32)
    found = compare(slowed, b, reach_s)
    return Agreement(found.coherence, found.shared_s, found.lag_s, ratio)


def coherence_at(a: Wave, b: Wave) -> float:
    """Coherence of two stretches of one length that are aligned already, within 2 ms."""
    return _peak(_tapered(a), _tapered(b), ALIGNED)[0]


def speed_ratio(a: Wave, b: Wave, near: float = 1.0, reach: float = 0.03) -> tuple[float, float]:
    """The r with a(t) = b(r t) within `reach` (log) of `near`, and how clearly it stands out (0..1)."""
    seconds = max(a.size, b.size) / FP_RATE
    step = 1.0 / (1.5 * seconds * SCALE_HIGH_HZ)
    points = int(math.log(SCALE_HIGH_HZ / SCALE_LOW_HZ) / step)
    size = scipy.fft.next_fast_len(2 * max(a.size, b.size), real=True)
    left, right = _fine_spectrum(a, size, points, step, near), _fine_spectrum(b, size, points, step, 1.0)
    n = scipy.fft.next_fast_len(2 * points, real=True)
    scores = scipy.fft.irfft(scipy.fft.rfft(left, n) * scipy.fft.rfft(right, n).conj(), n)
    span = min(int(reach / step), points // 2)
    scores = np.concatenate([scores[-span:], scores[: span + 1]])
    best = int(scores.argmax())
    shift = float(best - span) + _vertex(scores, best)
    return near * math.exp(shift * step), float(scores[best])


def _fine_spectrum(wave: Wave, size: int, points: int, step: float, scale: float) -> Wave:
    """Unit vector [points]: log magnitude over log frequency, its smooth part taken away."""
    level = np.log(np.abs(scipy.fft.rfft(wave * _window(wave.size), size)) + np.float32(1e-9))
    at = SCALE_LOW_HZ * np.exp(step * np.arange(points)) * (scale * size / FP_RATE)
    whole = at.astype(np.int64)
    part = (at - whole).astype(np.float32)
    line = level[whole] * (1 - part) + level[whole + 1] * part
    width = 64
    total = np.cumsum(np.pad(line, (width, width), mode="edge"), dtype=np.float64)
    fine = line - (total[2 * width :] - total[: -2 * width])[:points] / (2 * width)
    fine = np.clip(fine, -3, 3).astype(np.float32)
    return fine / np.float32(max(float(np.sqrt(fine @ fine)), 1e-12))


@lru_cache(maxsize=16)
def _window(size: int) -> Wave:
    return np.hanning(size).astype(np.float32)


def _vertex(scores: Wave, at: int) -> float:
    if not 0 < at < len(scores) - 1:
        return 0.0
    low, top, high = (float(s) for s in scores[at - 1 : at + 2])
    bend = low - 2 * top + high
    return 0.0 if bend == 0 else 0.5 * (low - high) / bend


def _peak(a: Wave, b: Wave, reach: int | None = None) -> tuple[float, float]:
    """Height 0..1 and lag (samples; a[t] lies on b[t - lag]) of the highest phase peak, between samples where it
    lies there.

    Every lag is looked at, or those within `reach` samples; the transform is then no longer than it must be.
    """
    n = scipy.fft.next_fast_len(a.size + b.size if reach is None else max(a.size, b.size) + reach, real=True)
    cross = scipy.fft.rfft(a, n) * scipy.fft.rfft(b, n).conj()
    low, high = int(LOW_HZ * n / FP_RATE), int(HIGH_HZ * n / FP_RATE)
    inside = cross[low:high]
    size = np.abs(inside)
    cross[:low] = 0
    cross[high:] = 0
    cross[low:high] = np.where(size > 1e-12 * float(size.max(initial=0.0)), inside / np.maximum(size, 1e-30), 0)
    line = scipy.fft.irfft(cross, n)
    if reach is None or 2 * reach >= n:
        at = int(np.abs(line).argmax())
    else:
        at = int(np.abs(np.concatenate([line[-reach:], line[: reach + 1]])).argmax()) - reach
    around = line[np.arange(at - BESIDE, at + BESIDE + 1) % n]
    heights = np.abs(_between() @ around)
    best = int(heights.argmax())
    scale = n / 2 / max(high - low, 1)  # makes the height 1 where every frequency agrees
    whole = at if at < a.size else at - n
    return min(float(heights[best]) * scale, 1.0), whole + (best - STEPS) / (2 * STEPS)


@lru_cache(maxsize=1)
def _between() -> Wave:
    """Weights [9, 33] that read a line of samples at -1/2, -3/8, ... 1/2 of a sample around its middle."""
    parts = np.arange(-STEPS, STEPS + 1)[:, None] / (2 * STEPS)
    return np.sinc(parts - np.arange(-BESIDE, BESIDE + 1)).astype(np.float32)


def _shared(a: Wave, b: Wave, lag: int) -> tuple[Wave, Wave]:
    left, right = (a[lag:], b) if lag >= 0 else (a, b[-lag:])
    size = min(left.size, right.size)
    return left[:size], right[:size]


def _tapered(wave: Wave, share: float = 0.1) -> Wave:
    """The wave with its ends faded, so that a cut edge does not count as sound."""
    size = max(1, int(wave.size * share))
    rise = (0.5 - 0.5 * np.cos(np.pi * np.arange(size) / size)).astype(np.float32)
    out = wave.copy()
    out[:size] *= rise
    out[-size:] *= rise[::-1]
    return out

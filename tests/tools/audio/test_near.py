"""Near identity: what is found, what is not, and the threshold."""

import itertools

import numpy as np
import pytest
import soxr

from tools.audio.fingerprint import FP_RATE, fingerprint, narrow
from tools.audio.index import FingerprintIndex
from tools.audio.near import MOST_THRESHOLD, NearIndex, calibrated_threshold
from tools.audio.phase import compare, compare_speed, speed_ratio
from tools.audio.read import read_clip
from tools.rows import Clip

pytestmark = pytest.mark.speech


@pytest.fixture(scope="module")
def waves(shared_speech):
    """8 kHz sound of 22 real clips of 1.8 to 7 s by name."""
    files = [*shared_speech.glob("read/harvard/*.wav"), *shared_speech.glob("read/librivox/*.wav")]
    files += shared_speech.glob("read/languages/??.wav")
    return {f.stem: narrow(read_clip(Clip("x", f))) for f in sorted(files)}


@pytest.fixture(scope="module")
def index(waves):
    sounds = list(waves.values())
    near = NearIndex(lambda key, a, b: sounds[key][round(a * FP_RATE) : round(b * FP_RATE)])
    for key, wave in enumerate(sounds):
        near.add(key, wave)
    return near


def reverberant(wave, rt60):
    rng = np.random.default_rng(1)
    size = round(rt60 * FP_RATE)
    tail = rng.normal(size=size) * 10 ** (-3 * np.arange(size) / size)
    tail[0] = np.sqrt((tail[1:] ** 2).sum())
    return np.convolve(wave, tail)[: wave.size].astype(np.float32)


KINDS = {
    "louder": lambda x: 3 * x,
    "noise 20 dB": lambda x: x + np.random.default_rng(0).normal(0, x.std() / 10, x.size).astype(np.float32),
    "crop": lambda x: x[3000:-2000],
    "pad": lambda x: np.concatenate([np.zeros(9000, np.float32), x, np.zeros(3000, np.float32)]),
    "cut of 1.2 s": lambda x: x[4000 : 4000 + round(1.2 * FP_RATE)],
    "4 kHz": lambda x: soxr.resample(soxr.resample(x, 8000, 5000), 5000, 8000),
    "reverberation 0.5 s": lambda x: reverberant(x, 0.5),
    "speed 0.953": lambda x: soxr.resample(x, 8000 * 0.953, 8000),
    "speed 1.017": lambda x: soxr.resample(x, 8000 * 1.017, 8000),
    "speed 1.05": lambda x: soxr.resample(x, 8000 * 1.05, 8000),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_copy_is_found_and_nothing_else(index, waves, kind):
    for key, wave in enumerate(waves.values()):
        matches = index.matches(np.asarray(KINDS[kind](wave), dtype=np.float32))
        assert [m.key for m in matches] == [key], list(waves)[key]
        assert matches[0].whole and matches[0].coherence > 0.5


def test_where_and_how_fast(index, waves):
    wave = waves["sense_and_sensibility_01_austen_64kb-0870"]
    key = list(waves).index("sense_and_sensibility_01_austen_64kb-0870")
    (match,) = index.matches(np.asarray(soxr.resample(wave[20_000:40_000], 8000 * 1.031, 8000), np.float32))
    assert match.key == key and abs(match.speed - 1.031) < 1e-4 and abs(match.offset_s - 2.5) < 2e-3
    assert index.matches(wave, frozenset([key])) == []


def test_a_clip_in_a_long_recording_and_the_other_way_round(waves):
    long = np.concatenate(list(waves.values()) * 3)
    near = NearIndex(lambda key, a, b: long[round(a * FP_RATE) : round(b * FP_RATE)])
    near.add(7, long)
    at = 0
    for wave in waves.values():
        (match,) = near.matches(wave)
        third = long.size / 3
        assert match.whole and abs((match.offset_s * FP_RATE - at + third / 2) % third - third / 2) < 20
        at += wave.size
    short = NearIndex(lambda key, a, b: list(waves.values())[key][round(a * FP_RATE) : round(b * FP_RATE)])
    for key, wave in enumerate(waves.values()):
        short.add(key, wave)
    found = short.matches(np.concatenate(list(waves.values())))
    assert sorted(m.key for m in found) == list(range(len(waves))) and all(m.whole for m in found)


def test_part_of_the_sound_is_not_the_whole(index, waves):
    wave, other = waves["en"], waves["de"]
    mixed = np.concatenate([wave[:10_000], other[10_000:40_000]])
    matches = {list(waves)[m.key]: m for m in index.matches(mixed)}
    assert matches["de"].whole and 0.1 < matches["en"].share < 0.5


def test_different_clips_do_not_cohere(waves):
    sounds = list(waves.values())
    heights = [compare(a[:32000], b[:32000]).coherence for i, a in enumerate(sounds) for b in sounds[:i]]
    assert max(heights) < 0.25
    assert compare(sounds[0], 0.2 * sounds[0][1000:]).coherence > 0.99
    ratio, peak = speed_ratio(np.asarray(soxr.resample(sounds[0], 8000, 8300), np.float32), sounds[0], 0.96)
    assert abs(ratio - 8000 / 8300) < 1e-4 and peak > 0.8
    assert compare_speed(sounds[0], sounds[1], 1.0).coherence < 0.3


def test_the_threshold_is_calibrated_and_steady_tones_are_distrusted(waves):
    sounds = list(waves.values())
    threshold, highest = calibrated_threshold(itertools.pairwise(sounds))
    assert threshold == max(0.35, 1.4 * highest) and threshold < MOST_THRESHOLD
    leaked = [*itertools.pairwise(sounds), (sounds[0], 0.5 * sounds[0])]
    assert calibrated_threshold(leaked) == (threshold, highest)
    tones = [np.sin(np.arange(16000) * f / 1273).astype(np.float32) for f in (300, 300.02, 300.04)]
    assert calibrated_threshold([(tones[0], tones[1]), (tones[1], tones[2])])[0] > 0


def test_silence_and_tiny_clips_match_nothing(index):
    for wave in (np.zeros(16000, np.float32), np.zeros(1, np.float32), np.full(9000, 0.1, np.float32)):
        assert index.matches(wave) == []
    assert FingerprintIndex().find(fingerprint(np.zeros(9000, np.float32))) == []

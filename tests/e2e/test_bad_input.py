"""What bad input gets: one clear sentence, the exit code of the contract, one JSON document, no traceback, nothing lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml

pytestmark = pytest.mark.seed_model

RATE = 16_000


def rehear(*args, cwd, env=None):
    done = subprocess.run(
        [sys.executable, "-m", "agent.faces.cli", *map(str, args)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2]), **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def document(done):
    lines = done.stdout.splitlines()
    assert len(lines) == 1, done.stdout
    return json.loads(lines[0])


def tone(path, seconds=1.0, pitch=220.0):
    t = np.arange(int(seconds * RATE)) / RATE
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, (0.2 * np.sin(2 * np.pi * pitch * t)).astype(np.float32), RATE)


@pytest.fixture
def folder(tmp_path):
    """A customer's folder: three splits of two clips, each its own tone and speaker, and a complete brief."""
    pitch = 200.0
    for split in ("train", "dev", "test"):
        rows = []
        for i in range(2):
            name = f"{split}-{i}.wav"
            pitch += 37
            tone(tmp_path / name, 1.0 + 0.1 * i, pitch)
            rows.append(
                {
                    "id": f"{split}{i}",
                    "audio_filepath": name,
                    "text": f"{split} {i} words",
                    "speaker": f"{split}{i}",
                    "lang": "en",
                }
            )
        write_rows(tmp_path / f"{split}.json", rows)
    brief = {
        "name": "bad",
        "task": "asr",
        "languages": ["en"],
        "seed_model": "embedded",
        "data": {s: f"{s}.json" for s in ("train", "dev", "test")},
        "metric": "wer",
        "budget": {"cpu_minutes": 30},
    }
    write_brief(tmp_path, brief)
    return tmp_path


def write_rows(path, rows):
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")


def read_rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_brief(folder, brief):
    (folder / "brief.yaml").write_text(yaml.safe_dump(brief))


def edit_brief(folder, **changes):
    brief = yaml.safe_load((folder / "brief.yaml").read_text())
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(brief.get(key), dict) and key == "data":
            brief[key].update(value)
        else:
            brief[key] = value
    write_brief(folder, brief)


def missing_manifest(f):
    edit_brief(f, data={"train": "nowhere.json"})


def empty_split(f):
    (f / "dev.json").write_text("")


def no_references(f):
    write_rows(f / "dev.json", [{k: v for k, v in r.items() if k != "text"} for r in read_rows(f / "dev.json")])


def unreadable_dev_audio(f):
    (f / "dev-0.wav").write_bytes(b"RIFF")


def one_missing_reference(f):
    rows = read_rows(f / "test.json")
    del rows[1]["text"]
    write_rows(f / "test.json", rows)


def not_a_model(f):
    (f / "model").mkdir()
    edit_brief(f, seed_model="model")


def small_budget(f):
    edit_brief(f, budget={"cpu_minutes": 0.01})


def unknown_key(f):
    edit_brief(f, langauges=["en"])


def same_audio_in_dev_and_test(f):
    (f / "test-0.wav").write_bytes((f / "dev-0.wav").read_bytes())


@pytest.mark.parametrize(
    ("spoil", "code", "says"),
    [
        (missing_manifest, 2, "nowhere.json"),
        (empty_split, 5, "dev"),
        (no_references, 5, "reference"),
        (one_missing_reference, 5, "test"),
        (unreadable_dev_audio, 5, "dev"),
        (not_a_model, 2, "model"),
        (small_budget, 4, "budget"),
        (unknown_key, 2, "langauges"),
        (same_audio_in_dev_and_test, 5, "leak"),
    ],
)
def test_bad_input_is_refused_in_one_sentence_with_its_exit_code(seed_folder, folder, spoil, code, says):
    spoil(folder)
    done = rehear("run", "brief.yaml", "--workdir", "work", "--json", cwd=folder)
    found = document(done)
    assert (done.returncode, found["exit_code"]) == (code, code), found
    assert says in found["error"]["message"] and "\n" not in found["error"]["message"]
    assert found["status"] in {"failed", "paused"} and found["result"] is None


def test_a_missing_brief_and_a_bad_flag_are_usage_errors(tmp_path):
    for args in (["run", "none.yaml", "--json"], ["run", "--nonsense", "--json"], ["fly", "--json"]):
        done = rehear(*args, cwd=tmp_path)
        assert done.returncode == 2 and document(done)["error"]["kind"] == "usage"


def test_a_work_directory_in_use_is_refused_and_untouched(seed_folder, folder):
    from filelock import FileLock

    (folder / "work" / ".rehear").mkdir(parents=True)
    with FileLock(folder / "work" / ".rehear" / "lock"):
        done = rehear("run", "brief.yaml", "--workdir", "work", "--json", cwd=folder)
    assert done.returncode == 2 and "in use" in document(done)["error"]["message"]


def test_missing_answers_are_asked_for_and_nothing_else(tmp_path, seed_folder):
    (tmp_path / "brief.yaml").write_text("name: little\nlanguages: [en]\n")
    done = rehear("run", "brief.yaml", "--workdir", "work", "--json", cwd=tmp_path)
    found = document(done)
    assert done.returncode == 3 and found["termination_reason"] == "needs_customer"
    assert {q["id"] for q in found["questions"]} == {"data", "budget"}
    assert all(q["schema"] and q["why"] and q["text"] for q in found["questions"])


def test_a_mended_folder_goes_on_where_it_stopped(seed_folder, folder):
    good = (folder / "dev.json").read_text()
    (folder / "dev.json").write_text("")
    assert rehear("run", "brief.yaml", "--workdir", "work", "--json", cwd=folder).returncode == 5
    (folder / "dev.json").write_text(good)
    edit = rehear("run", "brief.yaml", "--workdir", "work", "--json", cwd=folder)
    assert document(edit)["state"] != "check_data"

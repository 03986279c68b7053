"""`rehear check` and `rehear registry` as processes, on real speech: what they write, say and exit with."""

import json
import shutil
import signal
import subprocess
import time

import pytest
import soundfile

from tests.e2e.conftest import command, environment, rehear
from tools.data.manifest import read_manifest

pytestmark = pytest.mark.speech


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path, shared_speech):
    """A customer's folder: eight read clips to train on, four to test, one of them under another name in train."""
    rows = {"train": [], "test": []}
    for file in sorted((shared_speech / "read/harvard").glob("*.wav")):
        split = "test" if file.stem.startswith("spk1") and file.stem[-1] in "3456" else "train"
        (tmp_path / "wav").mkdir(exist_ok=True)
        shutil.copy(file, tmp_path / "wav")
        row = {"id": file.stem, "audio_filepath": f"wav/{file.name}", "text": f"the words of {file.stem} are not these"}
        rows[split].append(row | {"speaker": f"{split}-{file.stem[:4]}", "lang": "en", "corpus": "harvard"})
    wave, rate = soundfile.read(tmp_path / "wav/spk1_snt3.wav")
    soundfile.write(tmp_path / "wav/copy.mp3", 0.5 * wave, rate)
    copy = {"id": "copy", "audio_filepath": "wav/copy.mp3", "text": "words of a leaking copy"}
    rows["train"].append(copy | {"speaker": "train-x", "lang": "en"})
    for split, part in rows.items():
        lines(tmp_path / f"{split}.json", part)
    return tmp_path


def document(done):
    assert len(done.stdout.splitlines()) == 1, done.stdout
    return json.loads(done.stdout)


def test_check_names_the_leak_and_writes_what_is_clean(folder):
    before = (folder / "train.json").read_bytes()
    both = ("train.json", "test.json")
    done = rehear("check", *both, "--json", cwd=folder)
    found = document(done)
    (leak,) = [f for f in found["findings"] if f["severity"] == "block"]
    assert done.returncode == 5 and leak["check"] == "audio_similar"
    assert {row["id"] for row in leak["rows"]} == {"copy", "spk1_snt3"}
    outputs = ("--write-nemo", "clean", "--write-lhotse", "cuts", "--write-rows", "rows.jsonl", "--drop-leaks")
    done = rehear("check", *both, *outputs, cwd=folder)
    assert done.returncode == 5 and "copy (train) in spk1_snt3 (test)" in done.stdout
    assert done.stdout.count("wrote ") == 5 and (folder / "train.json").read_bytes() == before
    for kind in ("clean", "cuts"):
        suffix = "json" if kind == "clean" else "jsonl"
        again = rehear("check", *(f"{kind}/{s}.{suffix}" for s in ("train", "test")), "--json", cwd=folder)
        assert again.returncode == 0, again.stdout
        assert document(again)["kept"] == found["kept"] - 1 == 12
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    assert len(rows) == 12 and all(len(row["audio_sha256"]) == 64 and row["split"] for row in rows)
    assert rows[0]["extras"] == {"corpus": "harvard"}


def test_lhotse_reads_the_cuts_that_check_writes(folder, shared_speech):
    from lhotse import load_manifest_lazy

    rate8k = shared_speech / "digits/george/3_george_0.wav"
    jfk = {"id": "jfk", "audio_filepath": str(shared_speech / "read/jfk.flac"), "text": "ask not what your country"}
    part = {"id": "part", "audio_filepath": "wav/spk2_snt1.wav", "offset": 0.3001, "duration": 1.20005, "text": "part"}
    odd = [part, {"id": "8k", "audio_filepath": str(rate8k), "text": "three"}, jfk]
    lines(folder / "odd.jsonl", odd)
    done = rehear("check", "odd.jsonl", "--write-lhotse", "cuts", "--write-rows", "rows.jsonl", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    cuts = list(load_manifest_lazy(folder / "cuts/odd.jsonl"))
    assert [cut.supervisions[0].text for cut in cuts] == [row["text"] for row in odd]
    for cut, row in zip(cuts, rows):
        samples = cut.load_audio()
        assert abs(samples.shape[1] / cut.sampling_rate - row["duration_s"]) < 1e-3, cut.id
    digests = {row["id"]: row["audio_sha256"] for row in rows if row["id"] != "jfk"}  # two channels: a cut has one
    again = rehear("check", "cuts/odd.jsonl", "--write-rows", "again.jsonl", cwd=folder)
    assert again.returncode == 0
    read = [json.loads(line) for line in (folder / "again.jsonl").read_text().splitlines()]
    assert {row["id"]: row["audio_sha256"] for row in read if row["id"] != "jfk"} == digests
    assert not any(row["recording"] for row in read)  # none was named


def test_what_was_given_is_never_replaced(folder):
    before = (folder / "train.json").read_bytes()
    for options in (("--write-nemo", "."), ("--write-rows", "train.json")):
        done = rehear("check", "train.json", *options, cwd=folder)
        assert done.returncode == 2 and "one of the manifests" in done.stderr and done.stdout == ""
    done = rehear("registry", "build", "train.json", "--out", "./train.json", "--json", cwd=folder)
    assert done.returncode == 2 and document(done)["error"]["kind"] == "usage"
    assert (folder / "train.json").read_bytes() == before
    done = rehear("check", "train.json", "--write-nemo", "wav/copy.mp3", cwd=folder)
    assert done.returncode == 2 and "cannot be written" in done.stderr and len(done.stderr.splitlines()) == 1


def test_f11_after_repair_only_the_repaired_rows_are_heard(folder, shared_speech):
    good = (folder / "wav/spk2_snt1.wav").read_bytes()
    for name in ("spk2_snt1", "spk2_snt2"):
        (folder / f"wav/{name}.wav").write_bytes(b"RIFF")
    cache = ("--cache", "heard.sqlite", "--max-quarantine", "0.5", "--json")
    first = document(rehear("check", "train.json", *cache, cwd=folder))
    assert [q["id"] for q in first["quarantined"]] == ["spk2_snt1", "spk2_snt2"] and first["heard"] == first["rows_in"]
    (folder / "wav/spk2_snt1.wav").write_bytes(good)
    second = document(rehear("check", "train.json", *cache, cwd=folder))
    assert [q["id"] for q in second["quarantined"]] == ["spk2_snt2"] and second["heard"] == 1
    assert document(rehear("check", "train.json", *cache, cwd=folder))["heard"] == 0


def test_registry_from_a_private_test_set_to_a_clean_manifest(folder, shared_speech):
    rows = [json.loads(line) for line in (folder / "train.json").read_text().splitlines()]
    rows.append({"id": "words", "audio_filepath": str(shared_speech / "read/cards/001.wav")})
    rows[-1]["text"] = "The words of spk1_snt4 are NOT these."
    rows.append({"id": "gone", "audio_filepath": "gone.wav", "text": "x"})
    lines(folder / "train.json", rows)
    built = rehear("registry", "build", "test.json", "--out", "bench.jsonl", "--name", "private", cwd=folder)
    assert built.returncode == 0 and "4 clips, 4 sentences" in built.stdout and "guess" in built.stdout
    published = (folder / "bench.jsonl").read_text()
    assert "spk1" not in published and "harvard" not in published and str(folder) not in published
    check = ("registry", "check", "train.json", "--registry", "bench.jsonl")
    done = rehear(*check, "--write-clean", "clean.json", "--json", cwd=folder)
    found = document(done)
    assert done.returncode == 5 and found["written"] == ["clean.json"]
    assert [(c["row"], c["id"], c["kind"]) for c in found["collisions"]] == [(9, "copy", "near"), (10, "words", "text")]
    assert [q["id"] for q in found["quarantined"]] == ["gone"]
    kept = [clip.id for clip in read_manifest(folder / "clean.json").rows]
    assert len(kept) == found["kept"] == 9 and "words" in kept and "copy" not in kept
    clean = rehear("registry", "check", "clean.json", "--registry", "bench.jsonl", "--drop-text", cwd=folder)
    assert clean.returncode == 0 and "9 words" in clean.stdout
    own = document(rehear("registry", "check", "test.json", "--registry", "bench.jsonl", "--json", cwd=folder))
    assert [c["kind"] for c in own["collisions"]].count("exact") == 4
    bad = rehear("registry", "check", "train.json", "--registry", "test.json", "--json", cwd=folder)
    assert bad.returncode == 2 and "no contamination registry" in document(bad)["error"]["message"]


def test_odd_paths_get_one_sentence(shared_speech, tmp_path):
    known = {
        "read/jfk.flac": "is an audio file, not a manifest",
        "read/harvard": "ASR_dev.json",
        "awkward": "folder of no known kind",
        "README.md": "is no manifest",
        "nowhere": "manifest not found",
    }
    for name, says in known.items():
        done = rehear("check", shared_speech / name, "--json", cwd=tmp_path)
        assert done.returncode == 2 and says in document(done)["error"]["message"], name
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_check_with_one_document(shared_speech, tmp_path, sent, code):
    args = command("check", shared_speech / "digits/manifest.jsonl", "--cache", tmp_path / "heard.sqlite", "--json")
    process = subprocess.Popen(
        args, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not (tmp_path / "heard.sqlite").exists():  # it is at work
        time.sleep(0.02)
    process.send_signal(sent)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code and len(out.splitlines()) == 1
    assert json.loads(out)["error"]["kind"] == "interrupted" and len(err.splitlines()) == 1

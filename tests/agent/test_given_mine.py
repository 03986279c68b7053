"""`rehear mine` on given answers, in process: figures in the declared metric, made again by the audit, never of other inputs."""

import json
import shutil

import numpy as np
import pytest
import soundfile
import yaml

from agent import driver
from agent.brief import Brief
from agent.ledger.audit import audit
from tools.errors import CheckError

RATE = 16_000
REFERENCE = "move crate {} to the old gate before {}"
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def sound(path, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(RATE + 37 * seed) / RATE
    parts = [
        rng.uniform(0.02, 0.1) * np.sin(2 * np.pi * rng.uniform(100, 3000) * t) * (np.sin(rng.uniform(6, 40) * t) > 0)
        for _ in range(6)
    ]
    soundfile.write(path, (sum(parts) + rng.normal(0, 0.01, len(t))).astype(np.float32), RATE)


def write(path, rows):
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))


def customer(folder, answer, references=None, **brief):
    """A brief over noises: `answer(clip id, reference, j)` is the greedy answer for j = -1, else the j-th sample of four."""
    answers, seed = [], 0
    for split, n in (("train", 12), ("dev", 2), ("test", 2)):
        rows = []
        for i in range(n):
            seed += 1
            name, text = f"{split}-{i}", (references or REFERENCE.format)(NUMBERS[i], split)
            sound(folder / f"{name}.wav", seed)
            rows.append({"id": name, "audio_filepath": f"{name}.wav", "text": text, "speaker": name, "lang": "en"})
            for j in range(-1, 4 if split == "train" else 0):
                told = {"temperature": 0} if j < 0 else {"temperature": 0.8, "seed": j}
                answers.append({"id": name, "pred_text": answer(name, text, j), **told})
        write(folder / f"{split}.jsonl", rows)
    write(folder / "answers.jsonl", answers)
    said = {
        "name": "given", "task": "asr", "languages": ["en"], "seed_model": {"answers": "answers.jsonl"},
        "data": {s: f"{s}.jsonl" for s in ("train", "dev", "test")}, "metric": "wer", "profile": "basic",
        "budget": {"cpu_minutes": 9}, "random_seed": 3, **brief,
    }  # fmt: skip
    (folder / "brief.yaml").write_text(yaml.safe_dump(said))
    return folder


def run(folder):
    return driver.run(Brief.load(folder / "brief.yaml"), folder / "work", emit=lambda event: None, until="mine")


def mine(folder):
    run(folder)
    return json.loads((folder / "work/report/headroom.json").read_text())


def one_letter(name, text, j):
    """The greedy answer has one letter wrong in each of two words, sample 3 in none, the others in one."""
    return text if j == 3 else text.replace("crate", "crete") if j >= 0 else text.replace("crate", "crete")[:-1]


@pytest.fixture(scope="module")
def mined(tmp_path_factory):
    folder = customer(tmp_path_factory.mktemp("given"), one_letter, metric="cer")
    return folder, mine(folder)


def test_figures_are_in_the_metric_of_the_brief(mined):
    folder, told = mined
    letters = sum(len(REFERENCE.format(NUMBERS[i], "train")) for i in range(12))
    figures = told["figures"]
    assert figures["metric"] == "cer" and figures["greedy"] == pytest.approx(24 / letters)
    assert figures["mean_sample"] == pytest.approx(12 * 3 / 4 / letters) and figures["oracle"] == 0
    low, high = figures["interval"]
    assert low <= figures["headroom"] <= high < 0.1, "letters, not words"
    assert f"{figures['greedy']:.4f} cer" in (folder / "work/report/headroom.txt").read_text()


def forged(mined, tmp_path, name, old, new):
    copy = tmp_path / "copy"
    shutil.copytree(mined[0] / "work", copy)
    text = (copy / name).read_text()
    assert old in text
    (copy / name).write_text(text.replace(old, new, 1))
    return audit(copy).rules


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("rollouts/mine-1.jsonl", "crete", "crate"),
        ("rollouts/mine-1.jsonl", '"clip_id"', '"clip"'),
        ("report/headroom.json", '"reason": "enough_contrast"', '"reason": "all_right"'),
        ("report/headroom.json", '"figures": {', '"figures": null, "other": {'),
        ("report/headroom.json", '"headroom": 0.', '"headroom": 0.9'),
        ("ledger.jsonl", '"oracle":0,"right_share"', '"oracle":0.5,"right_share"'),
    ],
)
def test_the_audit_makes_the_figures_again(mined, tmp_path, name, old, new):
    assert "headroom-rebuilt" in forged(mined, tmp_path, name, old, new)


def test_the_audit_of_what_nobody_touched_is_clean(mined):
    found = audit(mined[0] / "work")
    assert found.ok, found.violations
    assert not any(n["rule"] == "headroom-rebuilt" for n in found.not_checked)


@pytest.mark.parametrize(("name", "said"), [("answers.jsonl", "model: "), ("train.jsonl", "train manifest: ")])
def test_a_verdict_is_not_given_again_for_other_inputs(mined, tmp_path, name, said):
    folder = tmp_path / "copy"
    shutil.copytree(mined[0], folder)
    before = (folder / "work/ledger.jsonl").read_bytes()
    assert mine(folder) == mined[1], "moved, and the same"
    (folder / name).write_text((folder / name).read_text().replace("crate one", "crate won"))
    with pytest.raises(CheckError, match=f"of something else.*{said}"):
        mine(folder)
    assert (folder / "work/ledger.jsonl").read_bytes() == before


def test_a_verdict_that_was_lost_or_edited_is_made_again(mined, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(mined[0], folder)
    verdict, answers = folder / "work/report/headroom.json", folder / "work/rollouts/mine-1.jsonl"
    told = verdict.read_text()
    verdict.write_text(told.replace('"learn": true', '"learn": false'))
    (folder / "work/report/headroom.txt").unlink()
    assert run(folder)["result"]["learn"] is True and verdict.read_text() == told
    verdict.unlink()
    kept = answers.read_text()
    answers.write_text(kept.replace("crete", "crate", 1))
    with pytest.raises(CheckError, match=r"headroom.json is not the one on record"):
        mine(folder)
    answers.write_text(kept)
    contract = folder / "work/contract.json"
    contract.write_text(contract.read_text().replace('"cer"', '"wer"'))
    with pytest.raises(CheckError, match=r"contract.json is not the contract that was frozen"):
        mine(folder)


def test_answers_sampled_on_to_thirty_two_are_counted_like_the_others(mined, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(mined[0], folder)
    path = folder / "work/rollouts/mine-1.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    deep = [line for line in lines if json.loads(line)["index"] == 3]
    path.write_text("".join(line for line in lines if line not in deep))
    (folder / "work/rollouts/mine-1-deep.jsonl").write_text("".join(deep))
    assert "headroom-rebuilt" not in audit(folder / "work").rules
    (folder / "work/report/headroom.json").unlink()
    assert mine(folder) == mined[1]


def test_what_stops_the_mining_itself_is_told_at_once(tmp_path):
    folder = customer(tmp_path, one_letter)
    rows = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    write(folder / "answers.jsonl", [r for r in rows if not r.get("seed")])  # one sample a clip
    for _ in range(2):
        document = run(folder)
        assert (document["exit_code"], document["status"], document["state"]) == (5, "failed", "mine")
        assert "nothing can be mined" in document["error"]["message"]

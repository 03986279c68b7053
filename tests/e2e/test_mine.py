"""`rehear mine` on a local model, a served one and given answers, in processes of their own, and the run that follows."""

import json
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.e2e.conftest import command, environment, rehear
from tests.tools.decode import planted
from tests.tools.serve.conftest import start
from tools.audio.identity import clip_digest
from tools.audio.read import read_clip
from tools.reward import reward_from
from tools.rows import Clip
from tools.text import profile

pytestmark = [pytest.mark.seed_model, pytest.mark.voices]

KEYS = {
    "schema_version", "status", "termination_reason", "exit_code", "workdir", "state", "budget", "assumptions", "questions",
    "result", "artefacts", "ledger", "error",
}  # fmt: skip


def other_brief(brief, name, **changes):
    path = brief.parent / f"{name}.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(brief.read_text()), "name": name, **changes}))
    return path


def records(workdir):
    return [json.loads(line) for line in (workdir / "ledger.jsonl").read_text().splitlines()]


def verdict(workdir):
    return json.loads((workdir / "report/headroom.json").read_text())


def clean(workdir):
    done = rehear("audit", workdir, "--json", cwd=workdir.parent)
    assert done.returncode == 0, json.loads(done.stdout)["violations"]


KEYWORDS = {"name": "keyword", "keywords": {"crates": 2, "the warehouse": 1}, "weight": 0.4}


@pytest.fixture(scope="module")
def small_brief(small_brief):
    """As everywhere, and with a reward of its own."""
    return other_brief(small_brief, "keyed", reward=KEYWORDS)


@pytest.fixture(scope="module")
def mined(tmp_path_factory, small_brief):
    workdir = tmp_path_factory.mktemp("mined") / "local"
    done = rehear("mine", small_brief, "--workdir", workdir, "--json", cwd=workdir.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    return workdir, json.loads(done.stdout)


def test_a_local_model_is_mined_to_a_verdict_without_any_training(mined, small_brief):
    workdir, document = mined
    assert set(document) == KEYS and document["status"] == "finished" and document["exit_code"] == 0
    told = verdict(workdir)
    figures = told["figures"]
    assert told["verdict"]["learn"] is document["result"]["learn"]
    assert figures["headroom"] == pytest.approx(figures["greedy"] - figures["oracle"])
    rates = [b["rate"] for b in figures["best_of"]]
    assert rates == sorted(rates, reverse=True) and rates[0] == pytest.approx(figures["mean_sample"])
    assert figures["repairs"] and figures["strata"] and told["cost"]["smallest"]["cpu_minutes_worst"] > 0
    kinds = {r["kind"] for r in records(workdir)}
    assert not kinds & {"register", "launch", "test_open"}, "nothing is trained and the test stays sealed"
    text = Path(document["artefacts"]["headroom_text"]).read_text()
    assert "headroom" in text and f"{figures['greedy']:.4f}" in text
    assert text.splitlines()[0] in Path(document["artefacts"]["headroom_page"]).read_text().replace("&#x27;", "'")
    clean(workdir)


def test_mining_again_gives_the_same_verdict_and_does_nothing(mined, small_brief):
    workdir = mined[0]
    before = (workdir / "ledger.jsonl").read_bytes()
    done = rehear("mine", small_brief, "--workdir", workdir, cwd=workdir.parent)
    assert done.returncode == 0 and (workdir / "ledger.jsonl").read_bytes() == before
    assert done.stdout.startswith((workdir / "report/headroom.txt").read_text())


def test_a_changed_file_of_the_verdict_is_found_by_the_audit(mined, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(mined[0], copy)
    path = copy / "report/headroom.json"
    path.write_text(path.read_text().replace('"learn": true', '"learn": false'))
    done = rehear("audit", copy, "--json", cwd=tmp_path)
    found = {v["rule"] for v in json.loads(done.stdout)["violations"]}
    assert done.returncode == 5 and {"effect-files", "headroom-rebuilt"} <= found


def test_a_later_run_uses_what_was_mined_and_another_brief_is_told_why_not(mined, small_brief, tmp_path):
    workdir = tmp_path / "run"
    shutil.copytree(mined[0], workdir)
    changed = other_brief(small_brief, "changed", prompts=["Something else."])
    changed.write_text(changed.read_text().replace("name: changed", "name: keyed"))
    done = rehear("run", changed, "--workdir", workdir, "--json", cwd=tmp_path)
    assert done.returncode == 2 and "the brief changed: prompts was" in json.loads(done.stdout)["error"]["message"]
    done = rehear("run", small_brief, "--workdir", workdir, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    held = records(workdir)
    assert next(r for r in held if r["kind"] == "decision" and r["payload"]["what"] == "reuse_answers")
    sampled = [
        r["payload"]["args"]["name"] for r in held if r["kind"] == "intent" and r["payload"]["effect"] == "sample"
    ]
    assert len(sampled) == len(set(sampled)), "nothing is sampled twice"
    assert json.loads(done.stdout)["termination_reason"] in {"candidate_wins", "seed_wins", "not_shown"}
    due = reward_from(KEYWORDS, profile("english"))
    assert json.loads((workdir / "contract.json").read_text())["reward"] == {
        "name": "keyword", "digest": due.digest, "options": due.options,
    }  # fmt: skip
    (config,) = [json.loads(p.read_text()) for p in workdir.glob("runs/*/config.json")]
    assert config["identity"]["reward"] == due.digest != reward_from("cer", profile("english")).digest
    clean(workdir)


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ("label_exact", "the brief's reward: label_exact does not suit task asr"),
        ({"name": "keyword", "keywords": ["..."]}, "is empty under the profile 'english'"),
    ],
)
def test_a_reward_that_cannot_be_is_refused_before_anything_is_decoded(reward, message, small_brief, tmp_path):
    brief, workdir = other_brief(small_brief, "wrong-reward", reward=reward), tmp_path / "w"
    done = rehear("run", brief, "--workdir", workdir, "--json", cwd=tmp_path)
    assert done.returncode == 2 and message in json.loads(done.stdout)["error"]["message"], done.stdout
    assert not list(workdir.glob("evals/*"))


def test_answers_of_another_model_are_not_used(mined, small_brief, tmp_path):
    from agent.contract import contract_digest

    workdir = tmp_path / "run"
    shutil.copytree(mined[0], workdir)
    path = workdir / "contract.json"
    frozen = json.loads(path.read_text())
    frozen["seed_model"]["digest"] = "0" * 64
    path.write_text(json.dumps(frozen, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    assert contract_digest(frozen)
    done = rehear("run", small_brief, "--workdir", workdir, "--json", cwd=tmp_path)
    message = json.loads(done.stdout)["error"]["message"]
    assert done.returncode == 5 and "cannot be used (model: 000000000000 -> " in message, message


@pytest.fixture(scope="module")
def served(tmp_path_factory, small_brief):
    folder = tmp_path_factory.mktemp("served")
    process, url = start("--name", "tiny", folder=folder)
    brief = other_brief(small_brief, "served", seed_model={"endpoints": url, "model": "tiny"})
    workdir = folder / "served"
    yield brief, workdir, rehear("mine", brief, "--workdir", workdir, "--json", cwd=folder)
    process.terminate()
    process.wait(20)


def test_the_same_model_served_gives_the_same_verdict(served, mined):
    _, workdir, done = served
    assert done.returncode == 0, done.stdout + done.stderr
    ours, theirs = verdict(mined[0]), verdict(workdir)
    assert theirs["model"]["kind"] == "served" and theirs["model"]["digest"] == ours["model"]["digest"]
    assert theirs["probe"]["ok"] and theirs["cost"]["smallest"]["cpu_minutes_worst"] is None
    assert theirs["verdict"]["learn"] == ours["verdict"]["learn"]
    for key in ("greedy", "oracle", "mean_sample"):
        assert theirs["figures"][key] == pytest.approx(ours["figures"][key], abs=0.05), "limits differ, texts do not"
    clean(workdir)


def test_a_served_model_is_not_trained_and_its_weights_are_asked_for(served):
    brief, workdir, _ = served
    done = rehear("run", brief, "--workdir", workdir, "--json", cwd=workdir.parent)
    message = json.loads(done.stdout)["error"]["message"]
    assert done.returncode == 2 and "--answer seed_model=FOLDER" in message, message


def test_what_was_mined_over_http_is_trained_from_the_same_weights_and_sampled_once(served, seed_folder, tmp_path):
    brief, mined_at, _ = served
    workdir = tmp_path / "run"
    shutil.copytree(mined_at, workdir)
    before = (workdir / "rollouts/mine-1.jsonl").read_bytes()
    done = rehear("run", brief, "--workdir", workdir, "--answer", f"seed_model={seed_folder}", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert document["termination_reason"] in {"candidate_wins", "seed_wins", "not_shown"}
    held = records(workdir)
    assert any(r["kind"] == "decision" and r["payload"]["what"] == "reuse_answers" for r in held)
    assert (workdir / "rollouts/mine-1.jsonl").read_bytes() == before
    clean(workdir)


def test_given_answers_are_mined_and_judged_the_same_way(mined, small_brief, tmp_path):
    workdir, _ = mined
    held = [
        json.loads(x) for p in sorted((workdir / "rollouts").glob("mine-*.jsonl")) for x in p.read_text().splitlines()
    ]
    # as others sample: seeds 0, 1, ... for every clip, at some other temperature
    heat = {True: 1.1, False: 0.0}
    rows = [
        {"id": r["clip_id"], "text": r["text"], "temperature": heat[r["index"] >= 0], "seed": max(0, r["index"])}
        for r in held
    ]
    for split in ("dev", "retention"):
        for line in (workdir / f"evals/seed-{split}/rows.jsonl").read_text().splitlines():
            row = json.loads(line)
            rows.append({"id": row["id"], "pred_text": row["hyp"], "temperature": 0})
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(json.dumps(r) + "\n" for r in rows))
    brief = other_brief(small_brief, "given", seed_model={"answers": str(answers)})
    place = tmp_path / "given"
    done = rehear("mine", brief, "--workdir", place, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    ours, theirs = verdict(workdir)["figures"], verdict(place)["figures"]
    for key in ("greedy", "oracle", "mean_sample", "best_of", "repairs", "interval"):
        assert theirs[key] == ours[key], key
    clean(place)
    answers.write_text("".join(json.dumps(r) + "\n" for r in rows if r.get("temperature")))
    done = rehear("mine", brief, "--workdir", tmp_path / "lacking", "--json", cwd=tmp_path)
    assert done.returncode == 5 and "no greedy answer" in json.loads(done.stdout)["error"]["message"]


def heard_clips(brief):
    """The brief's rows as a planted server knows them: by their samples."""
    rows = [
        Clip(r["audio_filepath"], Path(r["audio_filepath"]), r["text"])
        for split in ("train", "dev", "test", "retention")
        for r in map(json.loads, (brief.parent / f"{split}.jsonl").read_text().splitlines())
    ]
    return [replace(c, audio_sha256=clip_digest(read_clip(c))) for c in rows]


class Slow(planted.Planted):
    def answers(self, clip_id, ref, body):
        time.sleep(0.1)
        return super().answers(clip_id, ref, body)


def test_a_served_mining_that_was_stopped_and_killed_goes_on_and_asks_for_nothing_twice(small_brief, tmp_path):
    workdir = tmp_path / "w"
    with Slow(heard_clips(small_brief)) as server:
        seed = {"endpoints": server.url, "model": "planted", "backoff_s": 0.01, "concurrency": 2}
        brief = other_brief(small_brief, "stopped", seed_model=seed, prompts=["Orders."])
        ended = []
        for sign in (signal.SIGTERM, signal.SIGKILL):
            started, at = (
                subprocess.Popen(
                    command("mine", brief, "--workdir", workdir, "--json"),
                    cwd=tmp_path,
                    env=environment(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                ),
                server.asked,
            )
            while server.asked < at + 30 and started.poll() is None:
                time.sleep(0.02)
            started.send_signal(sign)
            ended.append(started.wait(60))
        done = rehear("mine", brief, "--workdir", workdir, "--json", cwd=tmp_path)
        sampled = {k: v for k, v in server.seen.items() if k[1] > 0}
    assert ended == [143, -signal.SIGKILL] and done.returncode == 0, (ended, done.stdout)
    kept = [json.loads(x) for x in (workdir / "rollouts/mine-1.jsonl").read_text().splitlines()]
    assert len({(a["clip_id"], a["index"]) for a in kept}) == len(kept) == 8 * 9
    assert sum(v > 1 for v in sampled.values()) <= 8 + 4, "the probe's, and what was in flight"
    clean(workdir)


@pytest.mark.parametrize(
    ("kind", "named"), [(planted.OneAnswer, "one_answer"), (planted.IgnoresTemperature, "temperature_ignored")]
)
def test_f31_a_server_that_does_not_sample_is_named_before_anything_is_counted(kind, named, small_brief, tmp_path):
    with kind(heard_clips(small_brief)) as server:
        seed = {"endpoints": server.url, "model": "planted", "backoff_s": 0.01}
        brief = other_brief(small_brief, f"f31-{named}", seed_model=seed, prompts=["Orders."])
        done = rehear("mine", brief, "--workdir", tmp_path / "w", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert done.returncode == 6 and document["status"] == "failed" and named in document["error"]["message"]
    kinds = {r["kind"] for r in records(tmp_path / "w")}
    assert not kinds & {"eval", "freeze"} and not list((tmp_path / "w/rollouts").glob("*.jsonl"))
    assert not list((tmp_path / "w/.rehear/served").glob("*.jsonl")), "no answer was kept"


def test_the_environment_names_an_endpoint_so_that_no_address_stands_in_the_ledger(small_brief, tmp_path, monkeypatch):
    brief = other_brief(small_brief, "env", seed_model={"endpoints": "$REHEAR_TEST_ENDPOINT", "model": "tiny"})
    assert "REHEAR_TEST_ENDPOINT" not in environment()
    done = rehear("mine", brief, "--workdir", tmp_path / "w", "--json", cwd=tmp_path)
    assert done.returncode == 2 and "no such environment variable" in json.loads(done.stdout)["error"]["message"]

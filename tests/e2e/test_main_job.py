"""The main job on real voices and the real seed model, in processes of its own: what it leaves, and what stops it."""

import json
import os
import shutil
import signal

import pytest

from tests.e2e.conftest import begun, line_count, rehear
from tools.train.metrics import final_view, read_metrics

pytestmark = [pytest.mark.seed_model, pytest.mark.voices]

FINAL_KEYS = {
    "schema_version", "status", "termination_reason", "exit_code", "workdir", "state", "budget", "assumptions", "questions",
    "result", "artefacts", "ledger", "error",
}  # fmt: skip
TIMES = {"seconds", "cpu_s", "tokens_per_s", "sample_s", "learn_s", "attempt"}


def warmed(workdir, finished):
    """A new work directory that finds the clips already encoded, to save minutes; everything else is done again."""
    shutil.copytree(finished[0] / ".rehear/encoder", workdir / ".rehear/encoder")
    return workdir


def decided(workdir):
    """What a run came to: selection, test figures and the digests of what it decoded."""
    result = json.loads((workdir / "report/result.json").read_text())
    keys = ("eval", "wer", "insertions", "deletions", "substitutions", "rows_sha256")
    return (
        result["selection"]["selected"],
        result["provenance"]["selected_digest"],
        [{k: row[k] for k in keys} for row in result["table"]],
        result["comparison"],
    )


def test_a_run_ends_in_one_document_with_the_keys_of_the_contract(finished):
    document = finished[1]
    assert set(document) == FINAL_KEYS and document["status"] == "finished" and document["exit_code"] == 0
    assert document["termination_reason"] in {"candidate_wins", "seed_wins", "not_shown", "no_contrast"}
    assert document["budget"]["spent"] > 0 and document["budget"]["reserved"] == 0
    assert {"selected", "metric", "test", "retention", "oracle"} <= set(document["result"])
    for name in ("report", "result", "model_card", "config", "rollouts", "ledger"):
        assert os.path.exists(document["artefacts"][name]), name


def test_the_test_split_is_decoded_only_after_it_was_opened_and_that_once(finished):
    records = [json.loads(x) for x in (finished[0] / "ledger.jsonl").read_text().splitlines()]
    opened = [r["seq"] for r in records if r["kind"] == "test_open"]
    chosen = [r["seq"] for r in records if r["kind"] == "decision" and r["payload"]["what"] == "select"]
    decoded = [r["seq"] for r in records if r["kind"] == "eval" and r["payload"]["split"] == "test"]
    assert len(opened) == 1 and decoded and chosen[0] < opened[0] < min(decoded)


def test_a_finished_run_is_given_again_without_doing_anything(finished, small_brief):
    workdir, document = finished
    before = (workdir / "ledger.jsonl").read_bytes()
    done = rehear("run", small_brief, "--workdir", workdir, "--json", cwd=workdir.parent)
    assert done.returncode == 0 and json.loads(done.stdout)["result"] == document["result"]
    assert (workdir / "ledger.jsonl").read_bytes() == before


def test_the_audit_is_clean_and_knows_the_head_that_was_given_out(finished):
    workdir, document = finished
    head = f"{document['ledger']['head']}:{document['ledger']['records']}"
    done = rehear("audit", workdir, "--expect-head", head, "--json", cwd=workdir.parent)
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["ok"], found["violations"]


def test_one_changed_byte_of_one_stored_hypothesis_is_found_and_named(finished, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(finished[0], copy)
    path = copy / "evals/seed-test/rows.jsonl"
    lines = path.read_text(encoding="utf-8").split("\n")
    row = json.loads(lines[2])
    row["hyp"] = ("x" if row["hyp"][:1] != "x" else "y") + row["hyp"][1:]
    lines[2] = json.dumps(row, ensure_ascii=False, sort_keys=True)
    path.write_text("\n".join(lines), encoding="utf-8")
    done = rehear("audit", copy, "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert done.returncode == 5 and not found["ok"]
    files = [f for v in found["violations"] for f in v["files"]]
    assert any(f["path"] == "evals/seed-test/rows.jsonl" and f["line"] == 3 for f in files), found["violations"]


def test_a_kill_inside_training_repeats_lost_updates_bit_for_bit_and_marks_the_attempt(finished, small_brief, tmp_path):
    workdir = warmed(tmp_path / "killed", finished)
    metrics = workdir / "runs/run1/metrics.jsonl"
    process = begun(small_brief, workdir, tmp_path, lambda: line_count(metrics) >= 3)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert rehear("run", small_brief, "--workdir", workdir, "--json", cwd=tmp_path).returncode == 0
    resumes = [row for row in read_metrics(metrics) if row.get("event") == "resume"]
    assert len(resumes) == 1
    view = final_view(metrics)
    assert [row["update"] for row in view] == [1, 2, 3, 4]
    undisturbed = final_view(finished[0] / "runs/run1/metrics.jsonl")
    for a, b in zip(view, undisturbed, strict=True):
        assert {k: v for k, v in a.items() if k not in TIMES} == {k: v for k, v in b.items() if k not in TIMES}
    assert decided(workdir) == decided(finished[0])
    kinds = [json.loads(x) for x in (workdir / "ledger.jsonl").read_text().splitlines()]
    assert any(r["kind"] == "run_end" and r["payload"]["reason"] == "lost" for r in kinds)


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGTERM, 143)])
def test_a_signal_stops_cleanly_and_the_same_brief_resumes(finished, small_brief, tmp_path, signum, code):
    workdir = warmed(tmp_path / "stopped", finished)
    metrics = workdir / "runs/run1/metrics.jsonl"
    process = begun(small_brief, workdir, tmp_path, metrics.is_file)
    process.send_signal(signum)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert json.loads(out)["status"] == "interrupted" and "Traceback" not in err
    done = rehear("run", small_brief, "--workdir", workdir, "--json", cwd=tmp_path)
    assert done.returncode == 0 and decided(workdir) == decided(finished[0])

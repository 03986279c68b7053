"""How long an auditor waits: `python -m tests.bench.bench_audit [ROWS]`.

Prints the CPU seconds to verify 100,000 ledger records, and to audit a work directory with ROWS (100,000) stored
hypotheses, rule by rule where it takes more than half a second.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from agent.contract import SELECTION_RULE, build_contract, references_digest, write_contract
from agent.ledger.audit import ALL, _checked
from agent.ledger.chain import GENESIS, LEDGER, Ledger, read_ledger, seal
from agent.ledger.evidence import Evidence
from agent.ledger.rowfiles import write_digests
from tools.rows import ScoredRow
from tools.text import profile
from tools.verbs.evaluate import write_evaluation

WORDS = "please move six crates to the office before monday morning we're calling Mister Smith about the twenty first".split()
LIMITS = {"records": 5.0, "hypotheses": 20.0}


def chain(folder: Path, count: int) -> float:
    """CPU seconds to verify `count` records."""
    prev, lines = GENESIS, []
    for seq in range(1, count + 1):
        body = {"v": 1, "seq": seq, "ts": "2026-01-01T00:00:00.000Z", "prev": prev, "kind": "note", "actor": "agent"}
        body |= {"state": "train", "key": None, "skill": "5" * 64, "code": "abc"}
        prev, line = seal({**body, "payload": {"text": "x", "details": {"wer": 0.125, "sha256": "d" * 64}}})
        lines.append(line + b"\n")
    (folder / LEDGER).write_bytes(b"".join(lines))
    begun = time.process_time()
    records, _ = read_ledger(folder)
    assert len(records) == count
    return time.process_time() - begun


def workdir(folder: Path, count: int) -> None:
    """One evaluation of `count` rows with nine words each, a fifth of them misread."""
    rng = random.Random(0)
    rows = []
    for i in range(count):
        words = [rng.choice(WORDS) for _ in range(9)]
        heard = [w if rng.random() > 0.2 else rng.choice(WORDS) for w in words]
        rows.append(
            ScoredRow(f"r{i:06d}", " ".join(words), " ".join(heard), f"s{i % 200}", None, "en", "stop", 10, 2.5)
        )
    done = write_evaluation(folder / "evals/seed-dev", rows, profile("english"))
    sealed = write_digests(folder / "evals/seed-dev")
    membership = _write(
        folder / "data/membership.jsonl", "".join(json.dumps(_member(r, i)) + "\n" for i, r in enumerate(rows))
    )
    checks = _write(folder / "data/checks.json", "{}")
    contract = build_contract(
        seed_model={"path_name": "none", "digest": "a" * 64},
        prompt={"text": "", "ids": []},
        profile=profile("english").to_json(),
        scoring={"metric": "wer", "unit": "word", "scorer": "rehear", "version": done.scores["scorer"]["version"]},
        decoding={"kind": "greedy", "temperature": 0, "limit": 64},
        sampling={"temperature": 0.8, "n": 8},
        reward={"name": "cer", "digest": "b" * 64},
        selection={"rule": SELECTION_RULE, "metric": "wer", "split": "dev", "retention_limit": 0.01},
        references={"dev": references_digest((r.id, r.ref) for r in rows)},
        membership_sha256=membership,
        languages=["en"],
        random_seed=0,
    )
    counts = ("insertions", "deletions", "substitutions", "reference_units")
    scores = {"wer": done.scores["value"], "cer": done.scores["cer"]["value"], **{k: done.scores[k] for k in counts}}
    frozen = write_contract(folder, contract)
    ledger = Ledger.open(folder)
    split = {"dev": {"rows": count, "speakers": 200, "seconds": 2.5 * count}}
    plan: dict[str, Any] = {
        "brief_sha256": "0" * 64,
        "brief": {},
        "steps": [],
        "versions": {},
        "source": {},
        "machine": {},
    }
    ledger.append("plan", plan)
    ledger.append("reserve", {"reservation": "a", "unit": "cpu_minutes", "amount": 1, "for": "baseline"})
    check = {
        "rows_in": count,
        "kept": count,
        "quarantined": 0,
        "findings": [],
        "checks_sha256": checks,
        "splits": split,
    }
    ledger.append("data_check", {**check, "membership_sha256": membership})
    ledger.append("freeze", {"contract_sha256": frozen, "contract": contract})
    ledger.append(
        "eval",
        {
            "eval_id": "seed-dev", "split": "dev", "model": {"kind": "seed", "digest": "a" * 64}, "prompt": "", "rows": count,
            "rows_sha256": done.rows_sha256, "scores_sha256": done.scores_sha256, "row_digests_sha256": sealed,
            "contract_sha256": frozen, "scores": scores,
        },
    )  # fmt: skip
    ledger.close()


def _member(row: ScoredRow, at: int) -> dict[str, Any]:
    shas = {
        "audio_sha256": hashlib.sha256(str(at).encode()).hexdigest(),
        "text_sha256": hashlib.sha256(row.ref.encode()).hexdigest(),
    }
    place = {"audio": "/none.wav", "offset_s": at * 3.0, "duration_s": 2.5, "channel": None}
    return {"id": row.id, "split": "dev", "speaker": row.speaker, "recording": None, "lang": "en", **place, **shas}


def _write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return hashlib.sha256(text.encode()).hexdigest()


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "chain").mkdir()
        took = chain(Path(name) / "chain", 100_000)
        print(f"verify 100,000 records: {took:.2f} CPU s (at most {LIMITS['records']:.0f})")
        folder = Path(name) / "w"
        folder.mkdir()
        workdir(folder, count)
        evidence, total = Evidence.read(folder), time.process_time()
        for rule in ALL:
            begun = time.process_time()
            list(_checked(rule, evidence))
            if time.process_time() - begun > 0.5:
                print(f"  {rule.id}: {time.process_time() - begun:.2f} CPU s")
        took = time.process_time() - total
        print(f"audit {count:,} stored hypotheses: {took:.2f} CPU s (at most {LIMITS['hypotheses']:.0f})")


if __name__ == "__main__":
    main()

"""Realistic `result.json` documents, one for each way a run can end; test figures derive from per-clip error counts."""

from __future__ import annotations

import copy
import hashlib
import random
from collections import Counter
from typing import Any

HOSTILE = (
    "<script>alert('x')</script> **bold** [link](javascript:alert(1)) {{ 7*7 }} | $x$ "
    '\x1b[31mred\x1b[0m \u202eabc `code` & "q"'
)
ENDINGS = (
    "candidate_wins",
    "seed_wins",
    "not_shown",
    "too_few_blocks",
    "no_contrast",
    "budget",
    "near_perfect",
    "label",
)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def split_counts(errors: int) -> tuple[int, int, int]:
    """Insertions, deletions, substitutions that add up to `errors`."""
    insertions, deletions = errors // 7, errors // 5
    return insertions, deletions, errors - insertions - deletions


def row(
    split: str, model: str, errors: int, units: int, rows: int, record: int, eval_id: str, **more: Any
) -> dict[str, Any]:
    insertions, deletions, substitutions = split_counts(errors)
    return {
        "split": split,
        "model": model,
        "wer": errors / units if units else None,
        "cer": 0.61 * errors / units if units else None,
        "insertions": insertions,
        "deletions": deletions,
        "substitutions": substitutions,
        "reference_units": units,
        "rows": rows,
        "empty": 0,
        "truncated": 0,
        "loops": 0,
        "eval": eval_id,
        "rows_sha256": digest(eval_id),
        "record": record,
        **more,
    }


def clips(
    speakers: int, each: int, seed_rate: float, candidate_rate: float, rng: random.Random
) -> list[dict[str, Any]]:
    """Test clips of eight words with an error count for either model."""
    out = []
    for s in range(speakers):
        shift = rng.uniform(0.6, 1.4)
        for c in range(each):
            counts = [sum(rng.random() < min(r * shift, 1) for _ in range(8)) for r in (seed_rate, candidate_rate)]
            out.append(
                {"id": f"spk{s:02d}-{c:03d}", "speaker": f"voice-{s:02d}", "seed": counts[0], "candidate": counts[1]}
            )
    return out


def measured(
    doc: dict[str, Any], made: list[dict[str, Any]], blocks: int, interval: list[float] | None, verdict: str
) -> None:
    """Fill everything that the opened test gives: rows, comparison, slices, worst, changes."""
    units = 8 * len(made)
    seed, candidate = (sum(clip[m] for clip in made) for m in ("seed", "candidate"))
    doc["table"] += [
        row("test", "seed", seed, units, len(made), 61, "seed-test", loops=2),
        row("test", "candidate", candidate, units, len(made), 63, "selected-test"),
    ]
    doc["comparison"] = {
        "metric": "wer",
        "split": "test",
        "seed": seed / units,
        "candidate": candidate / units,
        "delta": (candidate - seed) / units,
        "error_reduction": (seed - candidate) / seed if seed else None,
        "interval": interval,
        "delta_interval": None if interval is None else [-interval[1] * seed / units, -interval[0] * seed / units],
        "blocks": blocks,
        "block_by": "speaker",
        "verdict": verdict,
        "permutation_p": 0.0003 if verdict == "better" else 0.41,
        "resamples": 10000,
        "noise_floor": 0.0,
        "method": "blocked bootstrap, percentile interval widened by Student's t",
        "record": 64,
    }
    doc["by_speaker"] = by_speaker(made)
    doc["by_lang"] = [{"lang": "en", "rows": len(made), "seed": seed / units, "candidate": candidate / units}]
    doc["changes"] = [
        {"errors": e, "clips": n} for e, n in sorted(Counter(c["candidate"] - c["seed"] for c in made).items())
    ]
    worst = sorted(made, key=lambda c: (-c["candidate"], c["id"]))[:8]
    doc["worst"] = [
        {"id": c["id"], "seed_errors": c["seed"], "candidate_errors": c["candidate"], "audio": f"audio/{c['id']}.wav"}
        for c in worst
    ]
    doc["profiles"] = [
        {"profile": "exact", "split": "test", "seed": seed / units + 0.02, "candidate": candidate / units + 0.02}
    ]
    doc["test_open"] = {"record": 60, "update": doc["selection"]["selected"], "digest": digest("u"), "reused": False}
    doc["provenance"]["selected_digest"] = digest("u")
    doc["provenance"]["export_digest"] = digest("export")


def by_speaker(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    out = []
    for name in sorted({clip["speaker"] for clip in made}):
        own = [clip for clip in made if clip["speaker"] == name]
        rates = {m: sum(clip[m] for clip in own) / (8 * len(own)) for m in ("seed", "candidate")}
        out.append({"speaker": name, "rows": len(own), "reference_units": 8 * len(own), **rates})
    return out


def base(reason: str) -> dict[str, Any]:
    """What every ending has: data, contract, baseline, prompts, mining, budget, provenance."""
    contract = {
        "v": 1,
        "seed_model": {"path_name": "whisper-tiny.en", "digest": digest("seed")},
        "prompt": {"text": "", "ids": [50257, 50362]},
        "profile": {"name": "english", "version": "1", "digest": digest("english")},
        "scoring": {"metric": "wer", "unit": "word", "scorer": "rehear", "version": "1"},
        "decoding": {"kind": "greedy", "temperature": 0, "limit": 96, "suppress_digest": digest("s"), "threads": 2},
        "sampling": {"temperature": 0.8, "n": 8, "extend_to": 16},
        "reward": {"name": "cer", "digest": digest("cer")},
        "selection": {
            "rule": "lowest dev metric with retention within limit; ties: earlier; seed included",
            "metric": "wer",
            "split": "dev",
            "retention_limit": 0.01,
        },
        "references": {s: digest(s) for s in ("train", "dev", "test", "retention")},
        "membership_sha256": digest("membership"),
        "languages": ["en"],
        "random_seed": 0,
    }
    return {
        "schema_version": 1,
        "renderer": "1",
        "name": "warehouse-orders",
        "task": "asr",
        "termination_reason": reason,
        "headline": "",
        "next_action": "Try the exported model on a day of your own traffic before it replaces the seed model.",
        "table": [
            row("dev", "seed", 331, 640, 80, 21, "seed-dev"),
            row("retention", "seed", 123, 480, 60, 22, "seed-retention"),
        ],
        "prompts": [
            {"prompt": "", "wer": 331 / 640, "eval": "prompt-1-dev", "record": 14, "chosen": True},
            {"prompt": "Warehouse orders.", "wer": 0.5312, "eval": "prompt-2-dev", "record": 15, "chosen": False},
            {"prompt": "crates, pallets, dock", "wer": 0.5594, "eval": "prompt-3-dev", "record": 16, "chosen": False},
        ],
        "mining": {
            "clips": 48,
            "answers_per_clip": 8,
            "temperature": 0.8,
            "valid_share": 0.99,
            "truncated_share": 0.0,
            "contrast_share": 0.958,
            "better_share": 0.77,
            "greedy": 0.497,
            "mean_sample": 0.553,
            "oracle": 0.302,
            "strata": [
                {
                    "name": "clean",
                    "clips": 24,
                    "contrast_share": 0.93,
                    "better_share": 0.7,
                    "greedy": 0.42,
                    "oracle": 0.25,
                },
                {
                    "name": "noisy",
                    "clips": 24,
                    "contrast_share": 0.98,
                    "better_share": 0.83,
                    "greedy": 0.57,
                    "oracle": 0.36,
                },
            ],
            "extended": 12,
            "selected": 44,
            "record": 27,
        },
        "data": {
            "splits": {
                "train": {"rows": 160, "speakers": 12, "seconds": 563.2},
                "dev": {"rows": 80, "speakers": 8, "seconds": 281.0},
                "test": {"rows": 128, "speakers": 16, "seconds": 449.9},
                "retention": {"rows": 60, "speakers": 10, "seconds": 231.5},
            },
            "quarantined": 0,
            "findings": [{"check": "short_text", "severity": "info", "text": "3 rows have one word", "rows": 3}],
            "membership_sha256": digest("membership"),
            "record": 9,
        },
        "budget": {
            "unit": "cpu_minutes",
            "cap": 20,
            "reserved": 14.5,
            "spent": 8.31,
            "items": [
                {"what": "mine", "reserved": 2, "spent": 0.9, "record": 26},
                {"what": "run1", "reserved": 12, "spent": 7.41, "record": 58},
            ],
        },
        "assumptions": [
            {"id": "retention_limit", "value": 0.01, "why": "the brief names none"},
            {"id": "profile", "value": "english", "why": "the only language is English"},
        ],
        "not_tested": ["GPU training", "clips over 30 seconds"],
        "unsuccessful": [],
        "contract": {"digest": digest("contract"), "contract": contract, "record": 19},
        "provenance": {
            "seed_model_digest": digest("seed"),
            "seed_model": {"name": "openai/whisper-tiny.en", "license": "mit"},
            "surface": "decoder",
            "encoder_moved": False,
            "source": {"commit": "955710ab", "dirty": False},
            "versions": {"rehear": "0.1.0", "python": "3.11.2", "torch": "2.13.0", "matplotlib": "3.11.2"},
            "ledger": {"records": 66, "head": digest("head")},
        },
        "commands": [
            {"what": "run again", "command": "rehear run brief.yaml --workdir workdirs/warehouse-orders"},
            {"what": "load the model", "command": "python -c \"from transformers import pipeline; pipeline('asr')\""},
        ],
        "artefacts": {"report": "report/report.html", "export": "runs/run1/export", "ledger": "ledger.jsonl"},
    }


def add_training(doc: dict[str, Any], updates: int = 60, every: int = 10, floor: float = 0.17) -> None:
    """Training metrics, a dev/retention curve with one checkpoint over the limit, and the selection."""
    rng = random.Random(5)
    doc["training"] = [
        {
            "update": u,
            "reward": -0.32 * 0.97**u - 0.05 + rng.uniform(-0.02, 0.02),
            "offered_reward": -0.30 * 0.97**u - 0.03 + rng.uniform(-0.02, 0.02),
            "contrast_share": max(0.35, 0.97 - 0.008 * u + rng.uniform(-0.05, 0.05)),
            "grad_norm": 1.2,
            "ratio_mean": 1.0,
            "ratio_p99": 1.06,
            "clip_share": 0.08,
            "entropy": 0.9 - 0.005 * u,
            "length_ratio": 1.01,
        }
        for u in range(1, updates + 1)
    ]
    start, keep = doc["table"][0]["wer"], doc["table"][1]["wer"]
    seed_point = {"update": 0, "dev": start, "retention": keep, "eligible": True, "digest": digest("seed")}
    doc["curve"] = [seed_point | {"dev_eval": "seed-dev", "dev_record": 21, "retention_record": 22}]
    for u in range(every, updates + 1, every):
        retention = keep - 0.012 + (0.04 if u == updates else 0.0002 * u)
        doc["curve"].append(
            {
                "update": u,
                "dev": floor + (start - floor) * 0.955**u,
                "retention": retention,
                "eligible": retention <= keep + 0.01,
                "digest": digest(f"u{u}"),
                "dev_eval": f"run1-u{u:04d}-dev",
                "dev_record": 30 + u // 5,
                "retention_record": 31 + u // 5,
            }
        )
    chosen = updates - every
    doc["selection"] = {
        "rule": "lowest dev metric with retention within limit; ties: earlier; seed included",
        "selected": chosen,
        "run_id": "run1",
        "why": f"lowest dev WER of the {updates // every - 1} checkpoints within the retention limit",
        "rejected": [{"update": updates, "why": "retention WER 0.284 is over the limit of 0.266"}],
        "record": 59,
    }
    doc["registrations"] = [
        {
            "run_id": "run1",
            "preset": "local-small",
            "config_sha256": digest("config"),
            "updates": updates,
            "random_seed": 0,
            "hypothesis": "GSPO on mined clips lowers dev WER with retention kept",
            "end": "finished",
            "record": 28,
        }
    ]
    doc["unsuccessful"] = [{"what": f"update {updates}", "why": "best on dev, over the retention limit"}]


def add_candidate_rows(doc: dict[str, Any], dev: int = 124, retention: int = 120) -> None:
    doc["table"] += [
        row("dev", "candidate", dev, 640, 80, 40, "run1-u0050-dev"),
        row("retention", "candidate", retention, 480, 60, 41, "run1-u0050-retention"),
    ]
    for point in doc["curve"]:
        if point["update"] == doc["selection"]["selected"]:
            point |= {"dev": dev / 640, "retention": retention / 480}
    doc["retention"] = {
        "seed": 123 / 480,
        "candidate": retention / 480,
        "delta": (retention - 123) / 480,
        "limit": 0.01,
        "within": (retention - 123) / 480 <= 0.01,
    }


def make(ending: str) -> dict[str, Any]:
    """The document of an ending of ENDINGS; a fresh copy each time."""
    return copy.deepcopy(_MAKERS[ending]())


def _candidate_wins() -> dict[str, Any]:
    doc = base("candidate_wins")
    add_training(doc)
    add_candidate_rows(doc)
    made = clips(16, 8, 0.55, 0.2, random.Random(1))
    made[0]["seed"], made[0]["candidate"] = 1, 4
    measured(doc, made, 16, [0.5712, 0.7043], "better")
    return doc


def _seed_wins() -> dict[str, Any]:
    doc = base("seed_wins")
    add_training(doc, floor=0.53)
    for point in doc["curve"][1:]:
        point["dev"] = 0.52 + point["update"] / 1000
    doc["selection"] |= {"selected": "seed", "why": "no checkpoint is better than the seed on dev"}
    doc["selection"]["rejected"] = [
        {"update": p["update"], "why": "dev WER not under the seed's"} for p in doc["curve"][1:]
    ]
    doc["next_action"] = "Keep the seed model; add references for the noisy stratum and mine again."
    return doc


def _not_shown() -> dict[str, Any]:
    doc = base("not_shown")
    add_training(doc)
    add_candidate_rows(doc, dev=318, retention=124)
    measured(doc, clips(16, 8, 0.5, 0.49, random.Random(3)), 16, [-0.0621, 0.0713], "not_shown")
    return doc


def _too_few_blocks() -> dict[str, Any]:
    doc = base("too_few_blocks")
    doc["name"] = "digits"
    add_training(doc)
    add_candidate_rows(doc)
    measured(doc, clips(1, 100, 0.5, 0.3, random.Random(4)), 1, None, "too_few_blocks")
    return doc


def _no_contrast() -> dict[str, Any]:
    doc = base("no_contrast")
    doc["mining"] |= {
        "contrast_share": 0.042,
        "better_share": 0.021,
        "greedy": 0.93,
        "oracle": 0.925,
        "mean_sample": 0.94,
    }
    doc["mining"] |= {"strata": [], "extended": None, "selected": 0}
    doc["unsuccessful"] = [{"what": "a second stratum (noisy)", "why": "2 of 24 clips with contrast"}]
    doc["next_action"] = "Fine-tune on the references first: the model's own samples hold nothing better."
    doc |= {"comparison": None, "retention": None, "selection": None, "curve": [], "training": []}
    return doc


def _budget() -> dict[str, Any]:
    doc = base("budget")
    add_training(doc, updates=20)
    doc["selection"] = None
    doc["budget"] |= {"spent": 20.0}
    doc["next_action"] = "Raise cpu_minutes to 35 and run the same brief: it resumes at update 20."
    return doc


def _near_perfect() -> dict[str, Any]:
    doc = base("not_shown")
    add_training(doc)
    add_candidate_rows(doc)
    made = clips(16, 8, 0.0, 0.0, random.Random(6))
    for n, (seed, candidate) in {3: (2, 0), 17: (1, 1), 40: (3, 1), 90: (3, 2)}.items():
        made[n] |= {"seed": seed, "candidate": candidate}
    measured(doc, made, 16, [-0.21, 0.88], "not_shown")
    return doc


def _label() -> dict[str, Any]:
    doc = base("seed_wins")
    doc |= {"task": "label", "metric": "label_error", "curve": [], "training": [], "retention": None}
    doc["table"] = [
        {"split": "dev", "model": "seed", "label_error": 0.23, "macro_recall": 0.71, "rows": 80, "eval": "seed-dev"}
    ]
    return doc


_MAKERS = {
    "candidate_wins": _candidate_wins,
    "seed_wins": _seed_wins,
    "not_shown": _not_shown,
    "too_few_blocks": _too_few_blocks,
    "no_contrast": _no_contrast,
    "budget": _budget,
    "near_perfect": _near_perfect,
    "label": _label,
}


def hostile() -> dict[str, Any]:
    """The winning document with hostile text in every free-text place."""
    doc = _candidate_wins()
    doc |= {"name": HOSTILE, "headline": HOSTILE, "next_action": HOSTILE}
    doc["prompts"][1]["prompt"] = HOSTILE
    doc["by_speaker"][2]["speaker"] = HOSTILE
    doc["by_speaker"][3]["speaker"] = "張偉 的声音"
    doc["worst"][0] |= {"id": HOSTILE, "audio": HOSTILE, "ref": HOSTILE, "seed_hyp": HOSTILE, "candidate_hyp": ""}
    doc["mining"]["strata"][0]["name"] = HOSTILE
    doc["selection"]["why"] = HOSTILE
    doc["selection"]["rejected"][0]["why"] = HOSTILE
    doc["data"]["findings"] = [{"check": HOSTILE, "severity": "warn", "text": HOSTILE, "rows": [{"id": HOSTILE}]}]
    doc["data"]["splits"][HOSTILE] = {"rows": 1}
    doc["assumptions"] = [HOSTILE, {"id": HOSTILE, "value": {HOSTILE: [HOSTILE]}, "why": HOSTILE}]
    doc["not_tested"] = doc["unsuccessful"] = [HOSTILE]
    doc["contract"]["contract"]["prompt"] = {"text": HOSTILE}
    doc["commands"] = [{"what": HOSTILE, "command": HOSTILE}]
    doc["artefacts"] = {HOSTILE: HOSTILE}
    doc["provenance"]["seed_model"] = {"name": HOSTILE, "license": HOSTILE}
    doc["provenance"]["versions"][HOSTILE] = HOSTILE
    doc["registrations"][0] |= {"hypothesis": HOSTILE, "run_id": HOSTILE}
    return doc

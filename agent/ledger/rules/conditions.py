"""One contract, frozen before sampling, used by every evaluation: the same prompt, normaliser, scoring and decoding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent.contract import CONTRACT, explain
from agent.ledger.chain import Record, digest
from agent.ledger.evidence import EvalFiles, Evidence, Finding, NotChecked, Rule, Violation, near
from agent.machine import code

AFTER = ("register", "launch", "run_end", "test_open")
DECIDES = ("torch", "transformers", "tokenizers", "numpy", "soundfile", "soxr")  # versions that decide a figure


def frozen(e: Evidence) -> Iterator[Finding]:
    """One freeze, its digest its content's, contract.json the same, and nothing of a run before it."""
    freezes = e.of("freeze")
    for record in freezes[1:]:
        changes = explain(freezes[0].payload["contract"], record.payload["contract"])
        yield Violation(
            f"the contract was frozen again: {'; '.join(changes) or 'unchanged'}", (freezes[0].seq, record.seq)
        )
    for record in freezes:
        if digest(record.payload["contract"]) != record.payload["contract_sha256"]:
            yield Violation("the frozen contract is not the one whose digest it carries", (record.seq,))
    first = freezes[0].seq if freezes else len(e.records) + 1
    for record in e.records[: first - 1]:
        if record.kind in AFTER or (record.kind in ("intent", "outcome") and record.payload["effect"] == "sample"):
            yield Violation(f"{record.kind} before the contract was frozen", (record.seq,))
    if freezes:
        yield from _file(e, freezes[0])


def _file(e: Evidence, freeze: Record) -> Iterator[Finding]:
    found = e.json(CONTRACT)
    if not isinstance(found, dict):
        yield Violation(f"{CONTRACT} is missing or not JSON", (freeze.seq,), ((CONTRACT, None),))
        return
    changes = explain(freeze.payload["contract"], found)
    if changes:
        text = f"{CONTRACT} is not the frozen contract: {'; '.join(changes[:3])}"
        yield Violation(text, (freeze.seq,), ((CONTRACT, None),))


def wished(e: Evidence) -> Iterator[Finding]:
    """What the contract fixes is what the brief asked for."""
    contract, brief = e.contract, e.brief
    if contract is None or e.frozen is None or not brief:
        return
    from tools.score.labelled import ERROR_OF

    metric = ERROR_OF.get(str(brief.get("metric")), brief.get("metric"))
    protected = contract["selection"].get("protected") or []
    pairs = {
        "metric": (metric, contract["selection"]["metric"]),
        "scoring metric": (metric, contract["scoring"]["metric"]),
        "class_limit": (brief.get("class_limit") if protected else None, contract["selection"].get("class_limit")),
        "profile": (brief.get("profile"), contract["profile"]["name"]),
        "retention_limit": (brief.get("retention_limit"), contract["selection"]["retention_limit"]),
        "random_seed": (brief.get("random_seed"), contract["random_seed"]),
        "languages": (brief.get("languages"), list(contract["languages"])),
        "selection split": ("dev", contract["selection"]["split"]),
    }
    for name, (asked, fixed) in pairs.items():
        if asked is not None and asked != fixed:
            yield Violation(f"{name}: the brief says {asked!r}, the contract {fixed!r}", (e.frozen.seq,))
    wished = brief.get("protected") or []
    if len(wished) != len(protected) or (e.profile and [e.profile.normalise(x) for x in wished] != list(protected)):
        yield Violation(f"the brief protects {wished}, the contract {protected}", (e.frozen.seq,))
    prompts = brief.get("prompts")
    if prompts and contract["prompt"]["text"] not in prompts:
        yield Violation("the contract's prompt is none of the brief's", (e.frozen.seq,))
    yield from _reward(e, e.frozen, contract["reward"], brief)


def _reward(e: Evidence, freeze: Record, frozen: dict[str, Any], brief: dict[str, Any]) -> Iterator[Finding]:
    """The frozen reward is the brief's, else the task's own; and, where the code is the same, its digest is its own."""
    from tools.errors import UsageError
    from tools.reward import DEFAULTS, reward_from, reward_of_contract

    if e.profile is None:
        return
    asked = brief.get("reward") or DEFAULTS.get(str(brief.get("task")), DEFAULTS["asr"])
    try:
        due, made = reward_from(asked, e.profile), reward_of_contract(frozen, e.profile)
    except UsageError as err:
        yield Violation(f"the contract's reward or the brief's cannot be: {err}", (freeze.seq,))
        return
    if (due.name, due.options) != (made.name, made.options):
        yield Violation(
            f"reward: the brief says {asked!r}, the contract {dict(name=made.name, **made.options)!r}",
            (freeze.seq,),
        )
    elif freeze.code == code() and made.digest != frozen["digest"]:
        yield Violation("the contract's reward has another digest than its name and options give", (freeze.seq,))


def used(e: Evidence) -> Iterator[Finding]:
    """Every evaluation after the freeze carries its digest; before it only prompt trials of the seed on dev."""
    freeze = e.frozen
    for record in e.of("eval"):
        payload = record.payload
        if freeze is None or record.seq < freeze.seq:
            if (
                payload["contract_sha256"] is not None
                or payload["split"] != "dev"
                or payload["model"]["kind"] != "seed"
            ):
                yield Violation(f"{payload['eval_id']} was made before any contract was frozen", (record.seq,))
        elif payload["contract_sha256"] != freeze.payload["contract_sha256"]:
            yield Violation(f"{payload['eval_id']} was not made under the frozen contract", (freeze.seq, record.seq))


def same(e: Evidence) -> Iterator[Finding]:
    """Prompt and decoding of every evaluation under the contract are the contract's; the rows bear it out."""
    if e.contract is None or e.frozen is None:
        return
    wanted = dict(e.contract["decoding"])
    for found in e.evals:
        payload = found.record.payload
        if payload["contract_sha256"] is None:
            yield from _limits(found, (payload["decoding"] or {}).get("limit"))
            continue
        if payload["prompt"] != e.contract["prompt"]["text"]:
            yield Violation(
                f"{found.id} was decoded with another prompt than the contract's", (e.frozen.seq, found.record.seq)
            )
        for key, value in (payload["decoding"] or {}).items():
            if key not in wanted or wanted[key] != value:
                text = f"{found.id} was decoded with {key} {value!r}, the contract says {wanted.get(key)!r}"
                yield Violation(text, (e.frozen.seq, found.record.seq))
        yield from _limits(found, wanted.get("limit"))
    if any(r.payload["decoding"] is None for r in e.of("eval")):
        yield NotChecked("some evaluations do not say how they were decoded; their rows were looked at")


def _limits(found: EvalFiles, limit: int | None) -> Iterator[Finding]:
    if limit is None:
        return
    for line, row in enumerate(found.rows or [], start=1):
        tokens, finish = row.get("tokens", 0), row.get("finish")
        if tokens > limit or (finish == "length" and tokens < limit):
            text = f"{found.id}: row {row.get('id')} stopped by {finish} after {tokens} tokens, the limit is {limit}"
            yield Violation(text, (found.record.seq,), ((found.name, line),))


def prompt(e: Evidence) -> Iterator[Finding]:
    """The frozen prompt is the best of those compared on dev; each trial was an evaluation of the seed."""
    decision = e.last("decision", what="prompt")
    if decision is None or e.contract is None or e.frozen is None:
        return
    seqs = (decision.seq, e.frozen.seq)
    chosen, details = decision.payload["chosen"], decision.payload["details"]
    if e.contract["prompt"]["text"] != chosen:
        yield Violation("the contract's prompt is not the one that was chosen", seqs)
    trials = [e.last("eval", eval_id=name) for name in details.get("evals", [])]
    scores: dict[str, float | None] = {}
    for name, trial, text in zip(details.get("evals", []), trials, details.get("prompts", [])):
        if trial is None or trial.payload["prompt"] != text or trial.payload["split"] != "dev":
            yield Violation(f"prompt trial {name} is no evaluation of that prompt on dev", (decision.seq,))
        else:
            scores[text] = e.score_of(trial)
    for text, told in zip(details.get("prompts", []), details.get("errors", [])):
        if text in scores and not near(scores[text], told):
            yield Violation(
                f"a prompt's dev {e.metric} is told as {told}, its evaluation says {scores[text]}", (decision.seq,)
            )
    best = min((v for v in scores.values() if v is not None), default=None)
    if best is not None and chosen in scores and not near(scores[chosen], best):
        text = f"the chosen prompt has dev {e.metric} {scores[chosen]}, another one had {best}"
        yield Violation(text, seqs)
    for trial in e.of("eval"):
        if trial.seq < e.frozen.seq and trial.payload["eval_id"] not in details.get("evals", []):
            yield Violation(
                f"{trial.payload['eval_id']} was a trial that the choice of the prompt does not tell", (trial.seq,)
            )


def scorer(e: Evidence) -> Iterator[Finding]:
    """scores.json names the contract's normaliser and scorer; the normaliser here still is that one."""
    if e.contract is None or e.frozen is None:
        return
    profile, scoring = e.contract["profile"], e.contract["scoring"]
    if e.profile is None and e.frozen.code == code():
        yield Violation(f"the contract's normaliser {profile['name']} is none that its code has", (e.frozen.seq,))
    for found in e.evals:
        scores = e.json(f"evals/{found.id}/scores.json")
        if not isinstance(scores, dict):
            continue
        if scores.get("profile") != profile:
            text = f"{found.id} was scored with another normaliser than the contract's"
            yield Violation(text, (e.frozen.seq, found.record.seq), ((f"evals/{found.id}/scores.json", None),))
        named = scores.get("scorer") or {}
        if (named.get("name"), str(named.get("version"))) != (scoring["scorer"], str(scoring["version"])):
            text = f"{found.id} was scored with {named.get('name')} {named.get('version')}, the contract says otherwise"
            yield Violation(text, (e.frozen.seq, found.record.seq), ((f"evals/{found.id}/scores.json", None),))


def versions(e: Evidence) -> Iterator[Finding]:
    """No library that decides a figure changed between the freeze and an evaluation."""
    plan = e.last("plan")
    if plan is None or e.frozen is None:
        return
    before = plan.payload["versions"]
    for record in e.of("note"):
        now = record.payload["details"].get("versions")
        if not isinstance(now, dict):
            continue
        moved = [name for name in DECIDES if name in before and before[name] != now.get(name)]
        later = next((r for r in e.of("eval") if r.seq > record.seq > e.frozen.seq), None)
        if moved and later is not None:
            text = f"{', '.join(moved)} changed after the freeze, and {later.payload['eval_id']} was made since"
            yield Violation(text, (e.frozen.seq, record.seq, later.seq))
        before = {**before, **now}


RULES = (
    Rule(
        "contract-frozen",
        "One contract, frozen before any sampling; contract.json and its digest are the frozen ones.",
        frozen,
    ),
    Rule(
        "contract-wished",
        "Metric, normaliser, reward, limit, languages and seed of the contract are the brief's.",
        wished,
    ),
    Rule("contract-used", "Every evaluation after the freeze was made under the frozen contract.", used),
    Rule(
        "contract-conditions",
        "Prompt and decoding of every evaluation are the contract's, and its rows bear it out.",
        same,
    ),
    Rule(
        "contract-prompt",
        "The frozen prompt is the best of all that were tried on dev, and every trial is told.",
        prompt,
    ),
    Rule("contract-scorer", "Normaliser and scorer of every score are the contract's.", scorer),
    Rule(
        "contract-versions", "No library that decides a figure changed between the freeze and an evaluation.", versions
    ),
)

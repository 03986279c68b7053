"""Is the error rate what it seems? Language, script, label vocabulary, number style and the prompt are looked at on the dev
answers of the chosen prompt, before the contract is frozen and before the number is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agent.act import Context
from agent.steps.common import labels_of
from tools.errors import CheckError
from tools.rows import ScoredRow

MISMATCH = 0.5  # of the answers in another language or script: the number says nothing about hearing
WORTH_SAYING = 0.2


def read_errors(context: Context, eval_id: str) -> None:
    """Records what was looked at as one decision. Raises CheckError where language or script do not fit."""
    from tools.verbs.evaluate import read_rows

    shares = shares_of(context, read_rows(context.workdir / "evals" / eval_id))
    concerns = [name for name, share in shares.items() if share >= WORTH_SAYING]
    for name in ("script", "language"):
        if shares[name] >= MISMATCH:
            raise CheckError(
                f"{shares[name]:.0%} of the dev answers are in another {name} than their references: set languages and prompt "
                f"(or the references) right before the error rate is read, see evals/{eval_id}"
            )
    for name in concerns:
        context.notice(f"{name}: {shares[name]:.0%} of the dev answers; {ADVICE[name]}", "warn")
    because = "language, script, vocabulary, number style and prompt were looked at before the number was read"
    context.decide("reading", concerns, because, {"eval": eval_id, "shares": shares})


ADVICE = {
    "script": "another script than the reference",
    "language": "another language than the row's",
    "numbers": "digits on one side and words on the other: a profile that writes numbers alike may fit better",
    "prompt": "the prompt stands in the answer",
    "vocabulary": "no label of the task can be read from the answer",
}


def shares_of(context: Context, rows: Sequence[ScoredRow]) -> dict[str, float]:
    """Share of the answers with each kind of mismatch."""
    from tools.data.languages import other_language
    from tools.score.diagnose import special_tokens, wrong_script

    labels = labels_of(context)
    tests: dict[str, Callable[[ScoredRow], Any]] = {
        "script": lambda r: wrong_script(r.ref, r.hyp),
        "language": lambda r: bool(r.lang) and labels is None and other_language(r.hyp, str(r.lang)),
        "numbers": lambda r: labels is None and _digits(r.ref) != _digits(r.hyp),
        "prompt": lambda r: special_tokens(r.hyp),
        "vocabulary": lambda r: labels is not None and labels.parse(r.hyp) not in labels.labels,
    }
    return {name: sum(bool(test(r)) for r in rows) / max(len(rows), 1) for name, test in tests.items()}


def _digits(text: str) -> bool:
    return any(c.isdigit() for c in text)

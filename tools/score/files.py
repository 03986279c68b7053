"""`rehear score`: hypotheses and references from files, keyed by id, streamed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.errors import CheckError, UsageError
from tools.rows import ScoredRow
from tools.score.confusions import confusions, keyword_score, worst_rows
from tools.score.effects import rule_effects
from tools.score.external import external_score
from tools.score.formats import LABEL_KEYS
from tools.score.labels import label_set, score_labels
from tools.score.lines import lines_of
from tools.score.sclite import write_trn
from tools.score.slices import by_domain, duration_slice, has_number, switch_slice
from tools.score.store import RowStore
from tools.score.transcripts import THIS_SCORER, primed, score_by, score_rows
from tools.text import Profile
from tools.text import profile as profile_of

HEADLINE = (
    "metric", "value", "insertions", "deletions", "substitutions", "reference_units", "rows", "empty_references",
)  # fmt: skip
SLICES = ("lang", "speaker", "recording", "domain", "duration", "script", "numbers")
Key = Callable[[ScoredRow], str | None]


def read_rows(hyp: Path | str, ref: Path | str, lang: str | None = None) -> list[ScoredRow]:
    """Scored rows sorted by id, all in memory. `lang` fills in where the reference's row names none.

    Raises CheckError for a missing, doubled or foreign id, UsageError for a file that cannot be read.
    """
    return list(RowStore(ref, [hyp], lang).rows())


def stream_rows(path: Path | str) -> Iterator[ScoredRow]:
    """The rows of a rows.jsonl one at a time (`score_rows(stream_rows(path), profile, ordered=True)` needs no memory).

    Raises CheckError naming the line that is no scored row.
    """
    for number, line in lines_of(Path(path)):
        try:
            yield ScoredRow.from_json(json.loads(line))
        except (ValueError, TypeError, AttributeError) as error:
            raise CheckError(f"{path}, line {number} is not a scored row ({error}): restore the file.") from error


def second_profile(profile: Profile) -> Profile:
    """The profile that stands beside `profile`, so that a gain of style alone shows: basic, or exact beside basic."""
    return profile_of("exact" if profile.name == "basic" else "basic")


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What `rehear score` is asked for beyond the totals.

    `by`: slices, of SLICES. `keywords`: a customer's list (`read_keywords`). `worst`, `confused`: how many to list.
    `rules`: which rule of the profile moved the score. `script`: the customer's own scoring program. `prompt`: the
    model's, so that answers which repeat it are counted.
    """

    by: Sequence[str] = ()
    keywords: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    worst: int = 0
    confused: int = 0
    rules: bool = False
    script: str = ""
    prompt: str = ""


def score_files(
    hyp: Path | str,
    ref: Path | str,
    profile: str = "basic",
    lang: str | None = None,
    wanted: Wanted | None = None,
) -> dict[str, Any]:
    """The document of `rehear score` (house.md §6), with the score under a second profile in `profiles`."""
    store, chosen, wanted = RowStore(ref, [hyp], lang), profile_of(profile), wanted or Wanted()
    out = score_rows(store.rows(), chosen, wanted.prompt, ordered=True).to_json()
    other = score_rows(store.rows(), second_profile(chosen), ordered=True)
    return {
        **{key: out[key] for key in HEADLINE},
        "profile": out["profile"],
        **{key: value for key, value in out.items() if key not in HEADLINE},
        "profiles": [
            {"profile": out["profile"]["name"], "metric": out["metric"], "value": out["value"]},
            {"profile": other.profile["name"], "metric": other.metric, "value": other.value},
        ],
        **_details(store, chosen, wanted),
    }


def _details(store: RowStore, profile: Profile, wanted: Wanted) -> dict[str, Any]:
    out: dict[str, Any] = {}

    def rows() -> Iterable[ScoredRow]:
        return primed(store.rows(), profile)

    if wanted.by:
        out["slices"] = {
            by: {
                name: _brief(s.to_json())
                for name, s in score_by(store.rows(), slice_key(by, store, profile), profile).items()
            }
            for by in wanted.by
        }
    if wanted.keywords:
        out["keywords"] = {
            name: keyword_score(rows(), profile, words).to_json() for name, words in wanted.keywords.items()
        }
    if wanted.confused:
        found = confusions(rows(), profile, wanted.confused)
        out["confusions"] = {
            kind: [{"said": said, "heard": heard, "times": n} for said, heard, n in rows]
            for kind, rows in found.items()
        }
    if wanted.worst:
        out["worst"] = [row.to_json() for row in worst_rows(rows(), profile, wanted.worst, store.notes("audio"))]
    if wanted.rules:
        out["rules"] = [effect.to_json() for effect in rule_effects(rows(), profile)]
    if wanted.script:
        out["script"] = external_score(wanted.script, store.rows()).to_json()
    return out


def _brief(score: Mapping[str, Any]) -> dict[str, Any]:
    return {key: score[key] for key in HEADLINE}


def slice_key(by: str, store: RowStore, profile: Profile) -> Key:
    """The slice key of that name. Raises UsageError for another one."""
    if by in ("lang", "speaker", "recording"):
        return lambda row: getattr(row, by)
    if by == "domain":
        return by_domain(store.notes("domain"))
    keys: dict[str, Key] = {
        "duration": duration_slice,
        "script": switch_slice(profile),
        "numbers": lambda row: "with numbers" if has_number(row) else "without numbers",
    }
    if by not in keys:
        raise UsageError(f"Slices cannot be made by {by!r}: choose of {', '.join(SLICES)}.")
    return keys[by]


def read_keywords(path: Path | str) -> dict[str, list[str]]:
    """A customer's list: one keyword or phrase a line, or JSON `{"class": ["phrase", ...]}`. Raises UsageError."""
    text = "\n".join(line for _, line in lines_of(Path(path)))
    if not text.lstrip().startswith(("{", "[")):
        found: Any = {"keywords": [line.strip() for line in text.splitlines()]}
    else:
        try:
            found = json.loads(text)
        except ValueError as error:
            raise UsageError(f"{path} is no JSON ({error}): write one keyword a line, or classes of them.") from error
        found = {"keywords": found} if isinstance(found, list) else found
    good = all(isinstance(words, list) and words and all(isinstance(w, str) for w in words) for words in found.values())
    if not found or not good:
        raise UsageError(f"{path} holds no keywords: write one a line, or JSON lists of them by class.")
    return {str(name): words for name, words in found.items()}


def label_files(
    hyp: Path | str, ref: Path | str, profile: str = "basic", labels: Sequence[str] = (), lang: str | None = None
) -> dict[str, Any]:
    """The document of `rehear score --task label`: strict and parsed scores side by side. Without `labels` the classes
    are those of the references, which may stand in the field `label`."""
    rows, chosen = list(RowStore(ref, [hyp], lang, LABEL_KEYS).rows()), profile_of(profile)
    score = score_labels(rows, label_set(chosen, labels or dict.fromkeys(row.ref for row in rows)))
    return {**score.to_json(), "scorer": dict(THIS_SCORER)}


def trn_files(
    hyp: Path | str, ref: Path | str, folder: Path | str, profile: str = "", lang: str | None = None
) -> list[str]:
    """Writes `ref.trn` and `hyp.trn` for sclite, in the order of ids, normalised where a profile is named."""
    store, out = RowStore(ref, [hyp], lang), Path(folder)
    normalise = profile_of(profile).normalise if profile else (lambda text, lang: text)
    make_folder(out)
    for name in ("ref", "hyp"):
        write_trn(out / f"{name}.trn", ((row.id, normalise(getattr(row, name), row.lang)) for row in store.rows()))
    return [str(out / "ref.trn"), str(out / "hyp.trn")]


def make_folder(folder: Path) -> None:
    """The folder, made where it is not there. Raises UsageError where it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be a folder ({error.strerror or error}): choose another one.") from error

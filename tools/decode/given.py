"""Answers that somebody else decoded, with the face of a recogniser: they are mined and judged like our own.

Nothing can be asked again: no second decode for the noise floor, no extension, no other prompt. n answers of a beam search
are no samples; that is said, and their best is no promise of what sampling would give.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tools.decode.given_formats import Heard, answer_files, read_files
from tools.decode.given_names import Names, place
from tools.decode.served.recogniser import BYTES_A_TOKEN, ServedPolicy
from tools.errors import CheckError, UsageError
from tools.files import file_sha256
from tools.rows import Answer, Clip

Progress = Callable[[int, int], None]


@dataclass
class GivenRecogniser:
    """`greedy` and `sample` as a local recogniser has them, read from a file.

    `kind`: "sampled" (temperatures or seeds are told), "beam" (scores only), or "listed" (neither is told).
    """

    policy: ServedPolicy
    answers: dict[str, list[Answer]]
    first: dict[str, Answer]
    kind: str
    without: int
    chunk: int = 16
    can_sample: ClassVar[bool] = True
    can_repeat: ClassVar[bool] = False
    trains: ClassVar[bool] = False
    given: ClassVar[bool] = True

    @classmethod
    def load(cls, path: Path, clips: Sequence[Clip], window_s: float = 3600.0, aside: int = 0) -> GivenRecogniser:
        """Reads the answers of `clips` (in the manifest's order); those of test rows stay unread. `aside`: rows of the
        manifests that could not be read. Raises UsageError for what cannot be read or placed."""
        names = Names(clips)
        heard = read_files(path, len(clips), names.known)
        if aside and any(one.names[0].startswith("#") for one in heard):
            raise UsageError(
                f"{aside} row(s) of the manifests cannot be read, so the lines of {path.name} cannot be counted off against "
                f"them: mend the rows (rehear check), or give answers with ids"
            )
        by_clip, without = place(heard, names)
        sealed = {clip.id for clip in clips if clip.split == "test"}
        by_clip = {clip: group for clip, group in by_clip.items() if clip not in sealed}
        if not by_clip:
            raise UsageError(
                f"none of the {len(heard)} answers of {path} belongs to a clip of the manifests (by id or file)"
            )
        _refuse_doubled(path, by_clip)
        kind = _kind([h for group in by_clip.values() for h in group])
        answers: dict[str, list[Answer]] = {}
        first: dict[str, Answer] = {}
        for clip, group in by_clip.items():
            answers[clip], chosen = _answers(clip, group, kind)
            if chosen is not None:
                first[clip] = chosen
        policy = ServedPolicy(f"answers in {path.name}", _digest(path), False, window_s, 1 << 16)
        return cls(policy, answers, first, kind, without)

    def wear(self, weights: Path | None) -> None:
        if weights is not None:
            raise UsageError("given answers have no weights: give the model as seed_model to train it")

    def greedy(
        self, clips: Sequence[Clip], prompt: str, limit: int, progress: Progress = lambda d, t: None
    ) -> list[Answer]:
        """The given greedy answer of each clip. Raises CheckError naming the first clip that has none."""
        lacking = [c.id for c in clips if c.id not in self.first]
        if lacking:
            raise CheckError(
                f"{len(lacking)} of {len(clips)} clips have no greedy answer among those given (clip {lacking[0]}): add a row "
                f"with temperature 0 for each, or leave these clips out"
            )
        progress(len(clips), len(clips))
        return [self.first[c.id] for c in clips]

    def sample(
        self,
        clips: Sequence[Clip],
        prompt: str,
        limit: int,
        *,
        n: int,
        first: int = 0,
        temperature: float,
        seed: int,
        progress: Progress = lambda d, t: None,
    ) -> list[list[Answer]]:
        """All answers of each clip, however many; n, temperature and seed were somebody else's. None beyond those."""
        if first:
            raise UsageError("given answers cannot be extended: decode more of them, and give them all")
        few = [c.id for c in clips if len(self.answers.get(c.id, ())) < 2]
        if few:
            raise CheckError(f"clip {few[0]} has fewer than two answers among those given ({len(few)} such clips)")
        progress(len(clips), len(clips))
        return [self.answers[c.id] for c in clips]

    def has_answers(self, clip: Clip) -> bool:
        """Whether a clip can be mined: a greedy answer and two others."""
        return clip.id in self.first and len(self.answers.get(clip.id, ())) > 1

    def reference_tokens(self, clip: Clip) -> int:
        """Tokens of the reference, reckoned from its bytes."""
        return -(-len((clip.text or "").strip().encode()) // BYTES_A_TOKEN) + 1

    def longest_reference(self, clips: Sequence[Clip]) -> tuple[int, str]:
        return max(((self.reference_tokens(c), c.id) for c in clips), default=(1, ""))

    def sampling(self, temperature: float, n: int, extend_to: int) -> dict[str, Any]:
        """What the contract says of sampling: that others did it, and how that looks (`kind`)."""
        return {"temperature": None, "n": None, "extend_to": None, "given": self.kind}

    def provenance(self) -> dict[str, Any]:
        return {"name": self.policy.name, "licence": "not stated", "weights_known": False}

    def describe(self) -> dict[str, Any]:
        sizes = Counter(len(a) for a in self.answers.values())
        return {
            "digest": self.policy.digest,
            "multilingual": True,
            "window_s": self.policy.window_s,
            "given": self.kind,
            "clips": len(self.answers),
            "answers_a_clip": dict(sorted(sizes.items())),
            "not_placed": self.without,
        }


def _digest(path: Path) -> str:
    """Of the bytes of the file, or of the names and bytes of the folder's files."""
    digest = hashlib.sha256()
    for file in answer_files(path):
        held = file_sha256(file)
        digest.update(f"{file.relative_to(path)} {held}\n".encode() if path.is_dir() else held.encode())
    return digest.hexdigest()


def _refuse_doubled(path: Path, by_clip: Mapping[str, Sequence[Heard]]) -> None:
    """Raises UsageError where answers that can be told apart (by number, seed or score) all stand there several times:
    counted so, the best of eight would be called the best of sixteen."""
    for clip, group in by_clip.items():
        numbers = Counter(h.index for h in group if h.index is not None and not h.greedy)
        if numbers and max(numbers.values()) > 1:
            number = numbers.most_common(1)[0][0]
            raise UsageError(f"{path.name}: answer {number} of clip {clip} stands there twice: give each answer once")
    told = {
        clip: Counter((h.text, h.seed, h.score) for h in group if not h.greedy and (h.seed, h.score) != (None, None))
        for clip, group in by_clip.items()
    }
    held = [counts for counts in told.values() if counts]
    if len(held) > 1 and max(map(len, held)) > 1 and min(n for counts in held for n in counts.values()) > 1:
        raise UsageError(f"{path.name}: every answer stands there twice or more: give each answer once")


def _kind(heard: Sequence[Heard]) -> str:
    others = [h for h in heard if not h.greedy]
    if any(h.seed is not None or (h.temperature or 0) > 0 for h in others):
        return "sampled"
    return "beam" if others and all(h.score is not None for h in others) else "listed"


def _answers(clip: str, group: Sequence[Heard], kind: str) -> tuple[list[Answer], Answer | None]:
    """(answers in order, the greedy one). A beam's best stands for greedy where none is told."""
    told = [h for h in group if h.greedy]
    rest = [h for h in group if not h.greedy]
    if len({h.text for h in told}) > 1:
        raise UsageError(
            f"clip {clip} has {len(told)} greedy answers that differ ({told[0].where}, {told[1].where}): keep one"
        )
    chosen = told[0] if told else None
    if chosen is None and kind == "beam":
        chosen = max(rest, key=lambda h: h.score if h.score is not None else -math.inf)
    answers = [
        Answer(clip, h.text, h.tokens, h.finish, i, h.seed, h.temperature or 0.0, h.logprobs)
        for i, h in enumerate(rest)
    ]
    return answers, None if chosen is None else Answer(clip, chosen.text, chosen.tokens, chosen.finish)

"""A contamination registry: what a benchmark's owner can publish so that others check their training data against
a private test set and learn nothing else.

The file holds, for each clip, a salted digest of its decoded samples and an unordered third of its fingerprint
words; and, apart from them and in no order, slow salted digests of the sentences. No text, no audio, no ids, no order.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tools.audio.facts import audio_facts
from tools.audio.fingerprint import Words, fingerprint
from tools.audio.read import Wave
from tools.data.manifest import iter_manifest
from tools.data.reading import Quarantined
from tools.data.registry_match import COVERED, Collision, WordSets, chosen
from tools.data.rowchecks import sentence_key
from tools.data.write import replaced, write_nemo
from tools.errors import CheckError, UsageError
from tools.rows import Clip

KIND, VERSION = "rehear-registry", 1
ROUNDS = 1_000  # of PBKDF2 for a sentence: half a millisecond to check, and to guess
LEAST_WORDS, LEAST_LETTERS = 4, 20  # shorter sentences are common and easily guessed: left out

STATEMENT = (
    "It holds no text, no audio and no ids. Given a recording, anyone can tell whether it or a near copy is in the set: that "
    "is its purpose.",
    "Given a sentence of four words or more, anyone can tell whether it is in the set, at half a millisecond a guess: who has "
    "the source that the sentences were taken from can try all of it. Shorter sentences are left out.",
    "The number of clips and roughly how long each is can be told from it.",
    "Audio cannot be rebuilt from it: a third of the 20-bit words are kept, without their order. Who already has candidates for "
    "a clip (other takes of the same sentence by the same voice, say) may rank them by it.",
)


@dataclass(frozen=True)
class Built:
    """What `build` wrote: clips, sentences, sentences left out as too short, rows that could not be read."""

    path: str
    clips: int
    texts: int
    texts_left_out: int
    quarantined: list[Quarantined]

    def to_json(self) -> dict[str, Any]:
        out = {"path": self.path, "clips": self.clips, "texts": self.texts, "texts_left_out": self.texts_left_out}
        return {**out, "quarantined": [q.to_json() for q in self.quarantined], "statement": list(STATEMENT)}


@dataclass(frozen=True)
class RegistryReport:
    """Rows that collide with a registry, the best collision of each kind; `kept` are the rows without an audio
    collision.
    """

    rows_in: int
    collisions: list[Collision]
    quarantined: list[Quarantined]
    kept: int
    registry: str

    @property
    def ok(self) -> bool:
        """No row's audio is in the registry and every row could be checked: exit 0; else exit 5."""
        return not self.quarantined and all(c.kind == "text" for c in self.collisions)

    def to_json(self) -> dict[str, Any]:
        out = {"registry": self.registry, "rows_in": self.rows_in, "kept": self.kept, "covered": COVERED}
        out["collisions"] = [collision.to_json() for collision in self.collisions]
        return {**out, "quarantined": [q.to_json() for q in self.quarantined]}


def build(manifests: Sequence[Path | str], out: Path | str, salt: bytes | None = None, name: str = "") -> Built:
    """Write the registry of everything that the manifests name. The same salt (16 bytes) gives the same file.

    Raises UsageError for a manifest that is not there, CheckError where no row can be used.
    """
    salt = secrets.token_bytes(16) if salt is None else salt
    clips: list[dict[str, str]] = []
    texts: set[str] = set()
    short = 0
    aside: list[Quarantined] = []
    for clip, waves, digests in _heard(manifests, aside):
        words = np.unique(np.concatenate([_stored_words(wave, salt) for wave in waves]))
        exact = sorted(salted(salt, digest) for digest in digests)
        clips.append({"exact": exact[0], "words": base64.b64encode(words.astype("<u4").tobytes()).decode()})
        clips += [{"exact": other, "words": ""} for other in exact[1:]]
        sentence = sentence_key(clip.text or "")
        if publishable(sentence):
            texts.add(sentence)
        else:
            short += bool(sentence)
    if not clips:
        raise CheckError(f"no row of {', '.join(map(str, manifests))} can be used: there is nothing to publish")
    head = {"kind": KIND, "version": VERSION, "name": name, "salt": salt.hex(), "rounds": ROUNDS, "covered": COVERED}
    with replaced(Path(out)) as file:
        file.write(json.dumps({**head, "statement": STATEMENT}) + "\n")
        for entry in sorted(clips, key=lambda c: c["exact"]):
            file.write(json.dumps(entry) + "\n")
        file.write(json.dumps({"texts": sorted(slow_digest(text, salt) for text in texts)}) + "\n")
    return Built(str(out), len(clips), len(texts), short, aside)


def check(
    manifests: Sequence[Path | str], registry: Path | str, clean_to: Path | str | None = None, drop_text: bool = False
) -> RegistryReport:
    """Rows of the manifests that collide with a registry; with `clean_to` the rows without a collision as a NeMo
    manifest.

    A row that cannot be heard cannot be cleared: it is set aside and not written. Rows that share only a sentence stay,
    unless `drop_text`. Raises UsageError for files that are not there or no registry.
    """
    published = Registry.load(registry)
    aside: list[Quarantined] = []
    collisions: list[Collision] = []
    kept: list[Clip] = []
    rows = 0
    for clip, waves, digests in _heard(manifests, aside):
        rows += 1
        found = published.collisions(clip, waves, digests)
        collisions += found
        if not any(c.kind != "text" or drop_text for c in found):
            kept.append(clip)
    if clean_to is not None:
        write_nemo(clean_to, kept)
    return RegistryReport(rows + len(aside), collisions, aside, len(kept), str(registry))


@dataclass(frozen=True)
class Registry:
    """A registry as read."""

    salt: bytes
    rounds: int
    exact: frozenset[str]
    texts: frozenset[str]
    sets: WordSets

    @classmethod
    def load(cls, path: Path | str) -> Registry:
        try:
            lines = Path(path).read_text(encoding="utf-8").split("\n")
            head, *entries = [json.loads(line) for line in lines if line]
            if head["kind"] != KIND or head["version"] != VERSION:
                raise ValueError(f"kind {head['kind']!r} version {head['version']!r}")
            clips = [entry for entry in entries if "exact" in entry]
            words = [np.frombuffer(base64.b64decode(c["words"], validate=True), "<u4").astype(np.uint32) for c in clips]
            texts = frozenset(text for entry in entries for text in entry.get("texts", ()))
            exact = frozenset(clip["exact"] for clip in clips)
            return cls(bytes.fromhex(head["salt"]), int(head["rounds"]), exact, texts, WordSets.of(words))
        except OSError as error:
            raise UsageError(f"registry {path} cannot be opened ({error.strerror}): check the path") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{path} is no contamination registry of version {VERSION}: {error}") from error

    def collisions(self, clip: Clip, waves: Sequence[Wave], digests: Sequence[str]) -> list[Collision]:
        """The row's collisions: exact audio or else near audio, and text."""
        place = (clip.manifest, clip.row, clip.id)
        out = []
        near = max((self.sets.best(wave, self.salt) for wave in waves), default=0.0)
        if any(salted(self.salt, digest) in self.exact for digest in digests):
            out.append(Collision(*place, "exact", 1.0))
        elif near:
            out.append(Collision(*place, "near", round(near, 4)))
        sentence = sentence_key(clip.text or "")
        if publishable(sentence) and self.texts and slow_digest(sentence, self.salt, self.rounds) in self.texts:
            out.append(Collision(*place, "text", 1.0))
        return out


def publishable(sentence: str) -> bool:
    """Whether a sentence (already folded) is long enough not to be guessed by trying a few."""
    return len(sentence.split()) >= LEAST_WORDS or (len(sentence) >= LEAST_LETTERS and " " not in sentence)


def salted(salt: bytes, digest: str) -> str:
    return hashlib.sha256(salt + bytes.fromhex(digest)).hexdigest()


def slow_digest(sentence: str, salt: bytes, rounds: int = ROUNDS) -> str:
    return hashlib.pbkdf2_hmac("sha256", sentence.encode("utf-8"), salt, rounds, 20).hex()


def _stored_words(wave: Wave, salt: bytes) -> Words:
    plain = fingerprint(wave, query=False)
    words = plain.words[0, 0][plain.sure]
    return words[chosen(words, salt)]


def _heard(manifests: Sequence[Path | str], aside: list[Quarantined]) -> Iterator[tuple[Clip, list[Wave], list[str]]]:
    """Each row with its sound at 8 kHz (every channel it may mean) and the digests of what it may mean."""
    for item in _rows(manifests):
        if isinstance(item, Quarantined):
            aside.append(item)
            continue
        facts, waves = audio_facts(item)
        digests = [facts.digest] if facts.digest else [digest for _, digest in facts.others]
        if facts.error is not None and facts.error[0] != "channel":
            aside.append(Quarantined(item.manifest, item.row, item.id, ": ".join(facts.error), item.split))
        else:
            yield item, [wave for _, wave in waves], digests


def _rows(manifests: Iterable[Path | str]) -> Iterator[Clip | Quarantined]:
    for path in manifests:
        yield from iter_manifest(path)


__all__ = ["Built", "Collision", "Registry", "RegistryReport", "build", "check"]

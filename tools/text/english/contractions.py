"""Contractions, colloquial short forms and titles to full forms, word by word.

Known damage: `'d` is always "would" and `'s` after a pronoun always "is" ("he's been" -> "he is been"); others stay.
"""

from __future__ import annotations

import re

from tools.text.english.guard import is_english

_NEGATED = "do did does is was were have has had would could should are need must might dare ought".split()
_IS = "it he she that this what there here where who how when why everybody everyone someone nobody one".split()
WORDS: dict[str, str] = {
    "can't": "can not",
    "cannot": "can not",
    "won't": "will not",
    "shan't": "shall not",
    "ain't": "ain't",
    "let's": "let us",
    "y'all": "you all",
    "y'know": "you know",
    "c'mon": "come on",
    "gonna": "going to",
    "wanna": "want to",
    "gotta": "got to",
    "kinda": "kind of",
    "sorta": "sort of",
    "outta": "out of",
    "lotta": "lot of",
    "gimme": "give me",
    "lemme": "let me",
    "dunno": "do not know",
    "coulda": "could have",
    "woulda": "would have",
    "shoulda": "should have",
    "ok": "okay",
    "mr": "mister",
    "mrs": "missus",
    "dr": "doctor",
    "prof": "professor",
    "vs": "versus",
    "jr": "junior",
    "sr": "senior",
    "etc": "et cetera",
    "capt": "captain",
    "sgt": "sergeant",
    "lt": "lieutenant",
    # without an apostrophe, where nothing else is meant
    "im": "i am",
    "ive": "i have",
    "youre": "you are",
    "theyre": "they are",
    "youve": "you have",
    "theyve": "they have",
    "weve": "we have",
    "thats": "that is",
    "whats": "what is",
    **{f"{word}nt": f"{word} not" for word in _NEGATED},
    **{f"{word}'s": f"{word} is" for word in _IS},
}
_PHRASES = {"e mail": "email", "e mails": "emails", "per cent": "percent", "o k": "okay", "p m": "pm", "a m": "am"}
_PHRASE = re.compile(rf"(?<![^ ])(?:{'|'.join(_PHRASES)})(?![^ ])")
_ENDINGS = {"n't": " not", "'m": " am", "'re": " are", "'ll": " will", "'ve": " have", "'d": " would"}
_KEYS = frozenset(WORDS)


def contractions(text: str, lang: str | None = None) -> str:
    """See the module; expects the basic rules' output."""
    if not is_english(lang):
        return text
    words = text.split()
    if "'" in text:
        text = " ".join([_expand(word) if "'" in word else WORDS.get(word, word) for word in words])
    elif not _KEYS.isdisjoint(words):
        text = " ".join([WORDS.get(word, word) for word in words])
    if " m " in text or text.endswith(" m") or "e mail" in text or "per cent" in text or "o k" in text:
        return _PHRASE.sub(lambda m: _PHRASES[m[0]], text)
    return text


def _expand(word: str) -> str:
    if word in WORDS:
        return WORDS[word]
    at = word.rfind("'")
    if at > 0:
        for ending, full in _ENDINGS.items():
            if word.endswith(ending) and len(word) > len(ending):
                return _expand(word[: -len(ending)]) + full
    return word

"""English rules, written for this project: contractions (numbers and spelling follow). They apply to rows in English
(or without a language); a row of another language gets the basic rules only."""

from __future__ import annotations

from tools.text.basic import base_lang
from tools.text.profile import Rule

_WHOLE = {
    "can't": "can not", "cannot": "can not", "won't": "will not", "shan't": "shall not", "let's": "let us",
    "y'all": "you all", "gonna": "going to", "wanna": "want to", "gotta": "got to", "ok": "okay",
    **{f"{w}'s": f"{w} is" for w in "it he she that what there here where who how when".split()},
}  # fmt: skip
_ENDINGS = {"n't": " not", "'m": " am", "'re": " are", "'ll": " will", "'ve": " have", "'d": " would"}


def is_english(lang: str | None) -> bool:
    return not lang or base_lang(lang) == "en"


def contractions(text: str, lang: str | None = None) -> str:
    if not is_english(lang):
        return text
    return " ".join(_expand(word) for word in text.split())


def _expand(word: str) -> str:
    if word in _WHOLE:
        return _WHOLE[word]
    if "'" in word:
        for ending, full in _ENDINGS.items():
            if word.endswith(ending) and len(word) > len(ending):
                return _expand(word[: -len(ending)]) + full
    return word


RULES = (Rule("contractions", contractions, "contractions to full forms"),)

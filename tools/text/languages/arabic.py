"""Arabic script: alef and hamza seats, short vowels, look-alikes of Persian and Urdu keyboards, digits.

The profile removes short vowels (harakat) on purpose: they are optional in writing. WER under `basic` stands beside it.
Yeh and alef maksura, heh and teh marbuta stay apart: they are different letters. For Persian and Urdu only look-alikes,
short vowels and digits are folded. Uyghur and Kurdish write vowels with these signs and are left alone.
"""

from __future__ import annotations

import regex

from tools.text.clean import tidy
from tools.text.languages import digit_table, only_for
from tools.text.profile import Rule

ARABIC = frozenset("ar ara arb arz ary apc ajp acm afb aeb arq ayl apd acw ars".split())
LANGS = ARABIC | frozenset("fa fas prs ur urd".split())

_SHORT_VOWELS = regex.compile(r"[\u064B-\u0652\u0656-\u065F\u0670\u06D6-\u06DC\u06DF-\u06E4\u06E7\u06E8\u06EA-\u06ED]")
_ALEF = str.maketrans("أإآٱ", "اااا")
_HAMZA = str.maketrans("ؤئ", "وي")
_LOOKS = {ord("ک"): "ك", ord("ی"): "ي", ord("ہ"): "ه", ord("ھ"): "ه", ord("ۀ"): "ه", 0x0640: None}
_DIGITS = {**digit_table(0x0660, 0x06F0), ord("٪"): "%", ord("٫"): "."}


def short_vowels(text: str) -> str:
    return tidy(_SHORT_VOWELS.sub("", text))


def alef(text: str) -> str:
    return tidy(text.translate(_ALEF))


def hamza(text: str) -> str:
    return tidy(text.translate(_HAMZA))


def look_alikes(text: str) -> str:
    return tidy(text.translate(_LOOKS))


def digits(text: str) -> str:
    return tidy(text.translate(_DIGITS).replace("\u066c", ""))


RULES = (
    Rule("short vowels", only_for(LANGS, short_vowels), "harakat removed"),
    Rule("alef", only_for(ARABIC, alef), "alef with hamza, madda or wasla to bare alef"),
    Rule("hamza", only_for(ARABIC, hamza), "hamza on waw and yeh to the bare letter"),
    Rule("look-alikes", only_for(LANGS, look_alikes), "Persian and Urdu kaf, yeh, heh; tatweel removed"),
    Rule("eastern digits", only_for(LANGS, digits), "Eastern digits to 0-9"),
)

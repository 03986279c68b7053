"""English rules, written for this project: abbreviations, signs, contractions, titles, spelling, numbers, accents.

They apply to rows in English and to rows without a language; a row of another language gets the basic rules only. Each
rule's known damage is listed in tests/tools/text/test_english.py.
"""

from __future__ import annotations

from tools.text.english import contractions, numbers, signs, spelling
from tools.text.profile import Rule

WRITTEN = Rule("written numbers", signs.written, "-5, .5, 3½, 1960's, 7am, $5k and telephone numbers as they are read")
APOSTROPHES = Rule("apostrophes", signs.apostrophes, "one apostrophe class; at word edges they are quotation marks")
DOTS = Rule("abbreviations", signs.dots, "U.S.A. to usa, a.m. to am")  # before punctuation
RULES = (
    Rule("signs", signs.signs, "%, &, @, currencies and degrees to words"),
    Rule("contractions", contractions.contractions, "contractions, short forms and titles to full forms"),
    Rule("spelling", spelling.spelling, "British to American spelling"),
    Rule("numbers", numbers.numbers, "number words, years, times and ordinals to digits"),
    Rule("accents", signs.accents, "accents off Latin letters"),
)

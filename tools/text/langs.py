"""Languages by their codes: `en-GB`, `en_us`, `eng` and `English` are one."""

from __future__ import annotations

from functools import lru_cache

import regex

# ISO 639-1, then the codes of three letters (both kinds) and the English name.
_NAMES = """en eng english; de deu ger german; fr fra fre french; es spa spanish castilian; it ita italian;
pt por portuguese; nl nld dut dutch; sv swe swedish; da dan danish; no nor norwegian; nb nob; nn nno; fi fin finnish;
et est estonian; lv lav latvian; lt lit lithuanian; pl pol polish; cs ces cze czech; sk slk slo slovak;
sl slv slovenian slovene; hr hrv croatian; bs bos bosnian; sr srp serbian; bg bul bulgarian; mk mkd mac macedonian;
ru rus russian; uk ukr ukrainian; be bel belarusian; ro ron rum romanian; hu hun hungarian; el ell gre greek;
tr tur turkish; az aze azj azerbaijani; ca cat catalan; gl glg galician; eu eus baq basque; ga gle irish; cy cym wel welsh;
is isl ice icelandic; af afr afrikaans; sq sqi alb albanian; hi hin hindi; bn ben bengali; ta tam tamil; te tel telugu;
mr mar marathi; gu guj gujarati; pa pan punjabi; kn kan kannada; ml mal malayalam; ne nep npi nepali; or ori ory odia;
as asm assamese; si sin sinhala; ur urd urdu; fa fas per pes persian farsi; ar ara arb arabic; he heb hebrew;
hy hye arm armenian; ka kat geo georgian; zh zho chi cmn chinese mandarin; yue cantonese; ja jpn japanese; ko kor korean;
th tha thai; lo lao; km khm khmer; my mya bur burmese; vi vie vietnamese; id ind indonesian; ms msa may zsm malay;
tl tgl fil tagalog filipino; yo yor yoruba; sw swa swh swahili"""
_CODES = {name: names.split()[0] for names in _NAMES.split(";") for name in names.split()}


@lru_cache(maxsize=1024)
def base_lang(lang: str | None) -> str:
    """`en-GB`, `en_US`, `EN`, `eng`, `English` -> `en`; a code that is not listed as it is; None -> empty."""
    return code_of(regex.split(r"[-_]", lang, maxsplit=1)[0]) if lang else ""


def code_of(part: str) -> str:
    """The short code of one code or name."""
    return _CODES.get(part.lower(), part.lower())

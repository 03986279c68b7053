"""Language names: many spellings -> one code, and the scripts each language is written in.

`language_code("<|de|>") == language_code("German") == language_code("deu") == "de"`. A well-formed ISO 639 code
that is not in the table is kept (small languages matter), its script unknown.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import regex

# code | ISO 639-2/3 codes | names | scripts (Unicode names; empty: Latin)
_TABLE = """
af|afr|afrikaans|
am|amh|amharic|Ethiopic
ar|ara arb|arabic|Arabic
as|asm|assamese|Bengali
az|aze azj|azerbaijani|Latin Cyrillic
ba|bak|bashkir|Cyrillic
be|bel|belarusian|Cyrillic
bg|bul|bulgarian|Cyrillic
bn|ben|bengali bangla|Bengali
bo|bod tib|tibetan|Tibetan
br|bre|breton|
bs|bos|bosnian|Latin Cyrillic
ca|cat|catalan valencian català|
cs|ces cze|czech čeština|
cy|cym wel|welsh cymraeg|
da|dan|danish dansk|
de|deu ger|german deutsch|
el|ell gre|greek ελληνικά|Greek
en|eng|english|
eo|epo|esperanto|
es|spa|spanish castilian español castellano|
et|est ekk|estonian eesti|
eu|eus baq|basque euskara|
fa|fas per pes|persian farsi|Arabic
fi|fin|finnish suomi|
fo|fao|faroese|
fr|fra fre|french français|
ga|gle|irish gaeilge|
gl|glg|galician galego|
gn|grn|guarani|
gu|guj|gujarati|Gujarati
ha|hau|hausa|Latin Arabic
haw|haw|hawaiian|
he|heb|hebrew|Hebrew
hi|hin|hindi|Devanagari
hr|hrv|croatian hrvatski|
ht|hat|haitian|
hu|hun|hungarian magyar|
hy|hye arm|armenian|Armenian
id|ind|indonesian|
ig|ibo|igbo|
is|isl ice|icelandic|
it|ita|italian italiano|
ja|jpn|japanese 日本語|Han Hiragana Katakana
jw|jav jv|javanese|
ka|kat geo|georgian|Georgian
kk|kaz|kazakh|Cyrillic Latin
km|khm|khmer|Khmer
kn|kan|kannada|Kannada
ko|kor|korean 한국어|Hangul Han
ku|kur kmr|kurdish kurmanji|Latin Arabic
ky|kir|kyrgyz|Cyrillic
la|lat|latin|
lb|ltz|luxembourgish letzeburgesch|
ln|lin|lingala|
lo|lao|lao|Lao
lt|lit|lithuanian|
lv|lav lvs|latvian|
mg|mlg|malagasy|
mi|mri mao|maori|
mk|mkd mac|macedonian|Cyrillic
ml|mal|malayalam|Malayalam
mn|mon khk|mongolian|Cyrillic Mongolian
mr|mar|marathi|Devanagari
ms|msa may zsm|malay|Latin Arabic
mt|mlt|maltese|
my|mya bur|burmese myanmar|Myanmar
nah|nah nhi ncj|nahuatl|
ne|nep npi|nepali|Devanagari
nl|nld dut|dutch flemish nederlands|
nn|nno|nynorsk|
no|nor nob nb|norwegian bokmål norsk|
oc|oci|occitan|
or|ori ory|odia oriya|Oriya
pa|pan|punjabi panjabi|Gurmukhi Arabic
pl|pol|polish polski|
ps|pus pbt|pashto pushto|Arabic
pt|por|portuguese português|
qu|que quy quz|quechua|
ro|ron rum mo|romanian moldavian moldovan română|
ru|rus|russian русский|Cyrillic
rw|kin|kinyarwanda|
sa|san|sanskrit|Devanagari
sd|snd|sindhi|Arabic Devanagari
si|sin|sinhala sinhalese|Sinhala
sk|slk slo|slovak slovenčina|
sl|slv|slovenian slovene|
sn|sna|shona|
so|som|somali|
sq|sqi alb als|albanian|
sr|srp|serbian|Cyrillic Latin
su|sun|sundanese|
sv|swe|swedish svenska|
sw|swa swh|swahili kiswahili|
ta|tam|tamil|Tamil
te|tel|telugu|Telugu
tg|tgk|tajik|Cyrillic
th|tha|thai|Thai
ti|tir|tigrinya|Ethiopic
tk|tuk|turkmen|Latin Cyrillic
tl|tgl fil|tagalog filipino|
tr|tur|turkish türkçe|
tt|tat|tatar|Cyrillic
ug|uig|uyghur uighur|Arabic
uk|ukr|ukrainian українська|Cyrillic
ur|urd|urdu|Arabic
uz|uzb uzn|uzbek|Latin Cyrillic
vi|vie|vietnamese|
wo|wol|wolof|
xh|xho|xhosa|
yi|yid|yiddish|Hebrew
yo|yor|yoruba|
yua|yua|yucatec maya|
yue|yue|cantonese|Han
zh|zho chi cmn|chinese mandarin 中文|Han Bopomofo
zu|zul|zulu|
"""

_ALIASES: dict[str, str] = {}
_SCRIPTS: dict[str, tuple[str, ...]] = {}
for _line in _TABLE.strip().splitlines():
    _code, _iso, _names, _scripts = _line.split("|")
    _SCRIPTS[_code] = tuple(_scripts.split()) or ("Latin",)
    for _alias in (_code, *_iso.split(), *_names.split()):
        _ALIASES.setdefault(_alias, _code)

_CODE = regex.compile(r"[a-z]{2,3}")
_UNKNOWN = {"und", "unk", "none", "null", "nan", "n/a", "na", "unknown", "auto", "mul", "zxx", "xx", "xxx", ""}


@lru_cache(maxsize=4096)
def language_code(name: str | None) -> str | None:
    """The one code of a language however it is written; None where it is absent or cannot be read as a language."""
    if name is None:
        return None
    plain = unicodedata.normalize("NFC", str(name)).strip().lower()
    plain = plain.removeprefix("<|").removesuffix("|>").strip()
    if plain in _ALIASES:
        return _ALIASES[plain]
    head = regex.split(r"[-_ (,;/]", plain, maxsplit=1)[0]
    if head in _UNKNOWN:
        return None
    if head in _ALIASES:
        return _ALIASES[head]
    return head if head == plain.split("-")[0].split("_")[0] and _CODE.fullmatch(head) else None


def known_language(code: str) -> bool:
    """Whether the code is in the table (else it is only well formed)."""
    return code in _SCRIPTS


def scripts_of(code: str) -> tuple[str, ...]:
    """Unicode script names a language is written in; empty where unknown."""
    return _SCRIPTS.get(code, ())


@lru_cache(maxsize=256)
def _letters_in(scripts: tuple[str, ...]) -> regex.Pattern[str]:
    return regex.compile("[" + "".join(rf"\p{{Script={s}}}" for s in scripts) + "]")


_LETTER = regex.compile(r"\p{L}")


def script_share(text: str, code: str) -> float | None:
    """Share of the text's letters that belong to the language's scripts; None without letters or a known script."""
    scripts = scripts_of(code)
    if not scripts:
        return None
    letters = _LETTER.findall(text)
    if not letters:
        return None
    pattern = _letters_in(scripts)
    return sum(1 for c in letters if pattern.match(c)) / len(letters)


_FUNCTION_WORDS = {
    "en": "the and of to is that it was for with his they this have from not but what are her she you",
    "de": "der die und das ist nicht ein eine mit sich auf für von dem den auch wird sind war als ich wir",
    "fr": "le les des est une dans que qui pour pas avec sur il elle sont cette nous vous mais du au et",
    "es": "el los las que una por con para está como pero más sus del muy también este son fue lo y",
    "it": "il che di non una per con sono del della gli anche più questo alla nel è ma come dei",
    "pt": "o os que uma não com para por mais como mas foi ao dos das seu sua são também está e",
    "nl": "de het een en van is dat niet op te zijn met voor maar ook naar bij dit wordt ik",
}
_LIKELY = {code: frozenset(words.split()) for code, words in _FUNCTION_WORDS.items()}
_WORD = regex.compile(r"\p{L}+")


def other_language(text: str, code: str) -> str | None:
    """The language a text is in where its small words say plainly that it is not `code`; None otherwise.

    Only for languages with a list of small words, and only on three of another's and none of its own.
    """
    if code not in _LIKELY:
        return None
    words = [word.casefold() for word in _WORD.findall(text)]
    counts = {name: sum(word in small for word in words) for name, small in _LIKELY.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if best != code and counts[best] >= 3 and counts[code] == 0 else None

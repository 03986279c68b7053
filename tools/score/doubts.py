"""Words with which an answer negates, doubts or bargains over what it says, in the commoner languages.

An answer with one of them beside a label names no label. The lists may be too long, never too short: an answer refused
costs every model compared the same, an answer guessed rewards the one that hedges.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from tools.text import Profile
from tools.text import profile as profile_of

_ENGLISH = """no not never neither nor none nobody nothing without cannot cant dont doesnt didnt isnt arent wasnt werent
wont wouldnt couldnt shouldnt hasnt havent hadnt aint non un anti nope nah nay false wrong incorrect untrue unable
impossible or maybe perhaps possibly possible probably probable likely unlikely presumably apparently seemingly supposedly
either both mixed partly partially unsure uncertain unclear undecided unknown undetermined ambiguous inconclusive
indeterminate unintelligible inaudible hardly scarcely barely doubt doubtful doubtfully debatable questionable arguably
might may could would seem seems seemed appear appears think thinks thought believe guess guessing suppose assume assuming
depends depending if unless whether although though however but except otherwise alternatively sorry ish % percent"""
_OTHERS = """nicht nein nie niemals nirgends kein keine keinen keinem keiner weder ohne oder vielleicht eventuell möglich
möglicherweise wahrscheinlich vermutlich unklar unsicher wohl kaum aber | pas ne ni jamais aucun aucune sans ou peut-être
peut probablement possible possiblement sûrement incertain douteux mais | nunca jamás tampoco ningún ninguna ninguno sin
quizá quizás acaso posiblemente probablemente tal vez puede podría duda dudoso pero o | não nem sem talvez possivelmente
provavelmente pode poderia dúvida mas ou | né mai senza forse probabilmente possibilmente può potrebbe dubbio ma oppure |
niet geen nooit zonder misschien mogelijk waarschijnlijk onzeker maar of | inte ej aldrig utan kanske möjligen eller |
ikke aldri aldrig uten uden kanskje måske muligens eller | ei eivät en älä ehkä tai mahdollisesti | nie nigdy bez może
chyba albo lub prawdopodobnie | není nikoli nikdy možná asi snad nebo | nem soha talán vagy lehet | nu niciodată poate
sau | нет не ни никогда без возможно может вероятно наверное пожалуй или но | ні ніколи можливо мабуть або | ne nikad
možda ili | όχι δεν μην ίσως ή μπορεί | değil hayır yok belki veya galiba | لا ليس ليست غير لم لن بدون ربما قد او أو
يمكن لكن | نه نیست شاید یا | לא אין אולי או | नहीं न मत ना शायद या लेकिन | না নয় নেই হয়তো বা অথবা | نہیں شاید یا |
இல்லை ஒருவேளை அல்லது | కాదు లేదు బహుశా | không chưa chẳng hay hoặc lẽ | tidak bukan mungkin atau tanpa | hindi baka |
hapana si labda au | 不 不是 没 没有 非 无 可能 也许 或 或者 不知道 | ない なし いいえ たぶん または かも | 아니 아니요 아닌
아마 안 또는 혹은 | ไม่ อาจ หรือ | ոչ չի գուցե կամ | არა ალბათ ან"""
DOUBTS = frozenset(word for word in f"{_ENGLISH} {_OTHERS}".split() if word != "|")


def doubts(words: Iterable[str], profile: Profile) -> bool:
    """True where one of the normalised words is a doubt or a negation (`isn't` and the like as well), however the
    profile leaves case and punctuation."""
    given = list(words)
    known = _known(profile)
    plain = profile_of("basic").normalise(" ".join(given)).split()
    return any(word in known or word.endswith("n't") for word in (*given, *plain))


@lru_cache(maxsize=32)
def _known(profile: Profile) -> frozenset[str]:
    """The doubts as the profile writes them."""
    written = (profile.normalise(word).split() for word in DOUBTS)
    return DOUBTS | {words[0] for words in written if len(words) == 1}

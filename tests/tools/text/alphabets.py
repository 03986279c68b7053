"""Letters and marks of the scripts that the random texts of the tests are made of."""

from __future__ import annotations

ALPHABETS: dict[str, str] = {
    "latin": "abcdefghijklmnopqrstuvwxyzéüñçøß",
    "vietnamese": "aăâbcdđeêghiklmnoôơpqrstuưvxy\u0301\u0300\u0309\u0303\u0323",
    "cyrillic": "абвгдежзийклмнопрстуфхцчшщъыьэюя",
    "greek": "αβγδεζηθικλμνξοπρστυφχψως",
    "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهوي\u064e\u064f\u0650\u0651",
    "hebrew": "אבגדהוזחטיכלמנסעפצקרשת",
    "devanagari": "कखगघचजटडणतदनपबमयरलवशसहािीुूेोंँ्",
    "bengali": "কখগঘচজটডণতদনপবমযরলশসহািীুূেো্ং",
    "tamil": "கஙசஞடணதநபமயரலவழளாிீுூெேொ்",
    "thai": "กขคงจชซดตถทนบปพมยรลวสหอะาิีุูเแโไ่้",
    "han": "的一是不了人我在有他这中大来上国个到说们",
    "kana": "あいうえおかきくけこさしすせそアイウエオカキクケコー",
    "hangul": "가나다라마바사아자차카타파하한국어말",
    "armenian": "աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփք",
    "georgian": "აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰ",
    "mixtec": "aeiouñkntsxvyʔꞌ\u0301\u0300\u0304\u0331",
}

ENGLISH_WORDS = """
zero one two three nine ten eleven twelve thirteen nineteen twenty thirty eighty ninety hundred thousand
million and a oh o point double triple first second third fifth twentieth hundredth eighties 1 3 42 007 1,250 3.5 10:30
10:00 21st 1980s % $ £ 5.50 0.99 ° c & @ can't it's colour travelled café u.s. a.m. the of i'd ok per cent e-mail clock
o'clock mr jones' 'quoted' don’t a- .5 5. 1/2 ½ billion dozen ain't gonna y'all""".split()

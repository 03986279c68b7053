"""Fixed texts that a profile's digest is taken over. Adding one changes every digest: raise the versions with it."""

from __future__ import annotations

PROBES: tuple[tuple[str, str | None], ...] = tuple(
    (text, lang or None)
    for lang, text in (
        ("", "  Hello,\u00a0WORLD!\u2028it's\tfine \u3000"),
        ("en", "“Don’t”, he said: 'we can't!' It's 10:30 a.m. — O.K.?"),
        ("en", "The bogus legislature numbered thirty six members; room 007, AB01234, double oh seven."),
        ("en", "My grandmother has type one diabetes and paid $5.50, i.e. 1,250 dollars in nineteen eighty four."),
        ("en", "The colour of the travelled theatre's grey tyre; organise, centre, défense, naïve café."),
        ("en", "They're gonna've won't shan't y'all rock 'n' roll dogs' twenty first of May"),
        ("de", "Straße, Öl und ÄRGER: „gut“ – 1.000,50 €"),
        ("tr", "İSTANBUL'da IŞIK"),
        ("fr", "L’été, aujourd'hui c'est « bien » !"),
        ("vi", "Tiê\u0301ng Viê\u0323t hòa hoà thuý đường 10%"),
        ("hi", "वह कल दिल्ली जाएगा। हिन्दी हिंदी क़लम क\u093cलम १२३"),
        ("bn", "আমি বাংলায় গান গাই। ৎ ড়"),
        ("ta", "நான் தமிழ் கொ"),
        ("ar", "كَتَبَ الوَلَدُ أحمد إلى المدرسة ١٢٣ ـــ"),
        ("fa", "می‌خواهم کتاب ۱۲۳"),
        ("he", 'צה"ל צה״ל בית־ספר'),
        ("hy", "ես և դու Եվ եւ ինչո՞ւ"),
        ("zh", "我们 去 coffee shop 吧，ＡＢＣ１２３。"),
        ("ja", "ｶﾞｷﾞ カタカナ・ひらがな、１２３"),
        ("ko", "안녕 하세요 \u1112\u1161\u11ab\u1100\u116e\u11a8"),
        ("th", "น้ำ น\u0e4d\u0e49\u0e32 เเมว แมว ๑๒๓"),
        ("km", "ខ្ញុំ​ស្រឡាញ់"),
        ("", "kaꞌ ka' kaʼ ‘okina’ Hawaiʻi Hawai‘i ka³ ka⁵¹ na̱ʔá ndáꞌa"),
        ("mix", "Ñu'u ñuꞌu ka³ tsa¹³ ku:mi ña̱ á á"),
        ("zap", "bene' rao’ xhidza ʼna"),
        ("", "I'd it's ½ 50% & @ #tag ♪ 😀 \ufffd a\u0301"),
    )
)

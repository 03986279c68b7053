"""British to American spelling, from a table built of stems and endings. The direction means nothing: both sides of a
pair go through it. Only spellings that sound alike are folded (`learnt`, `towards`, `maths` stay).

Known damage: homographs of the other dialect (`tyre` the city, `draught` of a ship, `metre` of a verse, `storey`) are
folded as well.
"""

from __future__ import annotations

from tools.text.english.guard import is_english

_OUR = """colour favour honour labour neighbour harbour behaviour flavour humour rumour vapour vigour rigour odour
armour endeavour savour parlour splendour tumour valour candour clamour fervour succour arbour ardour demeanour
misdemeanour saviour enamour discolour dishonour disfavour watercolour technicolour belabour rancour"""
_OUR_ENDINGS = """s ed ing er ers able ably ful fully less ist ists ite ites itism y hood hoods al ally ly ism ation
ations"""
_ISE = """agon alphabet amort anonym antagon apolog author bapt brutal capital categor central character civil colon
contextual conceptual critic crystal custom decentral demoral digit dramat econom emphas empath energ equal eulog
external familiar fantas fertil final formal galvan general global harmon homogen hospital hypnot ideal immun incentiv
individual industrial initial institutional internal international item jeopard legal legitim liberal lion local magnet
marginal material maxim memor mesmer metabol militar minim mobil modern monet monopol moral mystic national natural
neutral normal operational optim organ oxid parallel patron pasteur pedestrian penal personal plagiar polar polit
popular pressur priorit privat public pulver radical random rational real recogn regular reorgan revital revolution
sanit satir scandal scrutin sensit sensational serial signal social special specif stabil standard steril stigmat subsid
summar symbol sympath synchron synthes system tantal terror theor token tranquil traumat trivial union urban util vandal
vector verbal victim visual vocal weapon western"""
_ISE_ENDINGS = "ise>ize ises>izes ised>ized ising>izing iser>izer isers>izers isation>ization isations>izations"
_ISE_MORE = "isational>izational isable>izable"
_YSE = "anal paral catal breathal hydrol electrol psychoanal dial"
_YSE_ENDINGS = "yse>yze yses>yzes ysed>yzed ysing>yzing yser>yzer ysers>yzers"
_TRE = """cen thea li fil mi kilome centime millime nanome microme me millili centili mi saltpe scep goi epicen
amphithea multicen ti spec lus"""
_BRE = "fi cali sa som"
_RE_ENDINGS = "re>er res>ers red>ered ring>ering"
_DOUBLED = """travel cancel label level model signal total tunnel fuel quarrel marvel channel counsel equal jewel libel
panel rival shovel swivel towel unravel duel dial initial pedal pencil stencil spiral snivel bevel drivel grovel hovel
revel trowel funnel kennel parcel chisel carol enamel imperil marshal medal metal barrel bushel cavil dishevel tassel
weasel yodel remodel relabel backpedal gambol symbol empanel tinsel ravel shrivel bejewel gruel"""
_DOUBLED_ENDINGS = "led>ed ling>ing lings>ings ler>er lers>ers list>ist lists>ists"
_AE = """anaemia anaemic anaesthetic anaesthetics anaesthetist anaesthetists anaesthesia encyclopaedia encyclopaedias
paediatric paediatrics paediatrician paediatricians orthopaedic orthopaedics haemorrhage haemorrhages haemorrhaging
haemoglobin haemophilia haemophiliac haemorrhoids haematology haematoma leukaemia mediaeval gynaecology gynaecologist
gynaecologists gynaecological caesarean faeces faecal ischaemia ischaemic hypoglycaemia hyperglycaemia septicaemia
toxaemia palaeontology palaeontologist palaeolithic aetiology caecum caesium primaeval uraemia"""
_OE = """oestrogen foetus foetuses foetal diarrhoea oesophagus oesophageal homoeopathy homoeopathic oedema coeliac
gonorrhoea"""
_PAIRS = """grey gray, greys grays, greyer grayer, greyish grayish, tyre tire, tyres tires, kerb curb, kerbs curbs,
cheque check, cheques checks, chequebook checkbook, programme program, programmes programs, plough plow, ploughs plows,
ploughed plowed, ploughing plowing, snowplough snowplow, draught draft, draughts drafts, draughty drafty, mould mold,
moulds molds, moulded molded, moulding molding, mouldy moldy, moult molt, moults molts, smoulder smolder,
smouldering smoldering, sceptic skeptic, sceptics skeptics, sceptical skeptical, scepticism skepticism, storey story,
storeys stories, axe ax, omelette omelet, omelettes omelets, doughnut donut, doughnuts donuts, yoghurt yogurt,
yoghurts yogurts, whisky whiskey, pyjamas pajamas, moustache mustache, moustaches mustaches, cosy cozy, cosier cozier,
ageing aging, acknowledgement acknowledgment, acknowledgements acknowledgments, judgement judgment,
judgements judgments, artefact artifact, artefacts artifacts, gaol jail, sulphur sulfur, sulphate sulfate,
sulphuric sulfuric, phoney phony, enquiry inquiry, enquiries inquiries, enquire inquire, enquired inquired,
enquiring inquiring, cypher cipher, tsar czar, tsars czars, defence defense, defences defenses, offence offense,
offences offenses, licence license, licences licenses, pretence pretense, practise practice, practised practiced,
practises practices, practising practicing, dialog dialogue, dialogs dialogues, catalog catalogue, catalogs catalogues,
analog analogue, analogs analogues, fulfil fulfill, fulfils fulfills, fulfilment fulfillment, enrol enroll,
enrols enrolls, enrolment enrollment, instalment installment, instalments installments, skilful skillful,
skilfully skillfully, wilful willful, wilfully willfully, distil distill, instil instill, appal appall,
jewellery jewelry, marvellous marvelous, marvellously marvelously, woollen woolen, woollens woolens,
counsellor counselor, counsellors counselors, councillor councilor, councillors councilors, worshipped worshiped,
worshipping worshiping, focussed focused, focussing focusing, benefitted benefited, benefitting benefiting,
manoeuvre maneuver, manoeuvres maneuvers, manoeuvred maneuvered, manoeuvring maneuvering, carburettor carburetor,
chilli chili, mollusc mollusk, racoon raccoon, sizeable sizable, likeable likable, loveable lovable, annexe annex,
fibreglass fiberglass, theatregoer theatergoer, theatregoers theatergoers, meagre meager, ochre ocher,
cancelation cancellation, rouble ruble, roubles rubles, sepulchre sepulcher, reconnoitre reconnoiter, cosily cozily,
encyclopaedic encyclopedic, anaesthetise anesthetize, disc disk, discs disks, colouration coloration"""


def _spread(stems: str, endings: str) -> dict[str, str]:
    """Each stem with each ending `from>to`."""
    out = {}
    for ending in endings.split():
        old, new = ending.split(">")
        out.update({stem + old: stem + new for stem in stems.split()})
    return out


def _table() -> dict[str, str]:
    out = _spread(_ISE, f"{_ISE_ENDINGS} {_ISE_MORE}") | _spread(_YSE, _YSE_ENDINGS)
    out |= _spread(_DOUBLED, _DOUBLED_ENDINGS)
    out |= _spread(" ".join(f"{stem}t" for stem in _TRE.split()), _RE_ENDINGS)
    out |= _spread(" ".join(f"{stem}b" for stem in _BRE.split()), _RE_ENDINGS)
    for stem in _OUR.split():
        for ending in ["", *_OUR_ENDINGS.split()]:
            out[stem + ending] = stem[:-3] + "or" + ending
    out |= {word: word.replace("ae", "e") for word in _AE.split()}
    out |= {word: word.replace("oe", "e") for word in _OE.split()}
    out |= dict(pair.split() for pair in _PAIRS.split(","))  # type: ignore[misc]
    out |= {"aluminium": "aluminum", "aluminiums": "aluminums"}
    return {old: new for old, new in out.items() if old != new}


TABLE: dict[str, str] = _table()
_KEYS = frozenset(TABLE)


def spelling(text: str, lang: str | None = None) -> str:
    """See the module; expects the basic rules' output."""
    if not is_english(lang):
        return text
    words = text.split()
    if "'s" in text:
        return " ".join([_possessive(word) if word.endswith("'s") else TABLE.get(word, word) for word in words])
    if _KEYS.isdisjoint(words):
        return text
    return " ".join([TABLE.get(word, word) for word in words])


def _possessive(word: str) -> str:
    return TABLE.get(word[:-2], word[:-2]) + "'s"

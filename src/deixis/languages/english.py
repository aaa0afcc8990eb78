"""English: nations and their peoples, states, ranks, companies, offices, abbreviations, small words.

All as keys of surfaces have them (knowledge/surfaces.py). Names in other languages are read by the same rules; these
words hardly occur in them.
"""

from __future__ import annotations

__all__ = [
    "ABBREVIATED",
    "ABBREVIATIONS",
    "ATTACHED",
    "FUNCTION_WORDS",
    "KINDS",
    "NATIONS",
    "OFFICES",
    "RANKS",
    "SMALL_WORDS",
    "STATES",
    "SUFFIXES",
    "YOUNGER",
]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# nation: words; as keys
_TABLE = """
abkhazia: abkhaz, abkhazian; afghanistan: afghan, afghani; albania: albanian; algeria: algerian; andorra: andorran;
angola: angolan; argentina: argentine, argentinian, argentinean; armenia: armenian; australia: australian, aussie;
austria: austrian; azerbaijan: azerbaijani, azeri; bahamas: bahamian; bahrain: bahraini; bangladesh: bangladeshi;
barbados: barbadian, bajan; basque country: basque; bavaria: bavarian; belarus: belarusian, belarussian, byelorussian;
belgium: belgian; belize: belizean; benin: beninese; bermuda: bermudian; bhutan: bhutanese; bolivia: bolivian; bosnia
and herzegovina: bosnian; botswana: botswanan; brazil: brazilian; brittany: breton; brunei: bruneian; bulgaria:
bulgarian; burkina faso: burkinabe; burma: burmese; burundi: burundian; cambodia: cambodian; cameroon: cameroonian;
canada: canadian; catalonia: catalan; chad: chadian; chechnya: chechen; chile: chilean; china: chinese; colombia:
colombian; corsica: corsican; costa rica: costa rican; croatia: croatian, croat; cuba: cuban; cyprus: cypriot; czech
republic: czech; dagestan: dagestani; democratic republic of the congo: zairean, zairian, congolese; denmark: danish,
dane; djibouti: djiboutian; dominican republic: dominican; east timor: timorese, east timorese; ecuador: ecuadorian,
ecuadorean; egypt: egyptian; el salvador: salvadoran, salvadorean; england: english, englishman; eritrea: eritrean;
estonia: estonian; ethiopia: ethiopian; europe: european; faroe islands: faroese, faroes; fiji: fijian; finland:
finnish, finn; france: french, frenchman, frenchwoman; gabon: gabonese; gambia: gambian; georgia: georgian; germany:
german; ghana: ghanaian; gibraltar: gibraltarian; greece: greek; greenland: greenlandic; grenada: grenadian;
guatemala: guatemalan; guinea: guinean; guyana: guyanese; haiti: haitian; honduras: honduran; hong kong: hongkonger;
hungary: hungarian; iceland: icelandic, icelander; india: indian; indonesia: indonesian; ingushetia: ingush; iran:
iranian; iraq: iraqi; ireland: irish, irishman; islam: moslem, muslim; israel: israeli; italy: italian; ivory coast:
ivorian; jamaica: jamaican; japan: japanese; jews: jew, jewish; jordan: jordanian; kashmir: kashmiri; kazakhstan:
kazakh, kazakhstani; kenya: kenyan; kosovo: kosovar; kurdistan: kurd, kurdish; kuwait: kuwaiti; kyrgyzstan: kyrgyz,
kyrgyzstani; laos: laotian, lao; latvia: latvian, lett; lebanon: lebanese; lesotho: basotho; liberia: liberian; libya:
libyan; liechtenstein: liechtensteiner; lithuania: lithuanian; luxembourg: luxembourger; macau: macanese; madagascar:
malagasy; malawi: malawian; malaysia: malaysian; maldives: maldivian; mali: malian; malta: maltese; mauritania:
mauritanian; mauritius: mauritian; mexico: mexican; moldova: moldovan, moldavian; monaco: monegasque; mongolia:
mongolian, mongol; montenegro: montenegrin; morocco: moroccan; mozambique: mozambican; muslim: moslem; myanmar:
burmese; namibia: namibian; nepal: nepalese, nepali; netherlands: dutch, dutchman; new zealand: new zealander, kiwi;
nicaragua: nicaraguan; niger: nigerien; nigeria: nigerian; north korea: north korean; north macedonia: macedonian;
northern ireland: northern irish; norway: norwegian; oman: omani; ossetia: ossetian; pakistan: pakistani; palestine:
palestinian; palestinian territories: palestinian; panama: panamanian; papua new guinea: papua new guinean; paraguay:
paraguayan; peru: peruvian; philippines: filipino, philippine; poland: polish, pole; portugal: portuguese; prussia:
prussian; puerto rico: puerto rican; qatar: qatari; quebec: quebecois, quebecer; republic of macedonia: macedonian;
republic of the congo: congolese; rhodesia: rhodesian; romania: romanian, rumanian; russia: russian; rwanda: rwandan,
rwandese; samoa: samoan; saudi arabia: saudi, saudi arabian; scotland: scottish, scots, scot; senegal: senegalese;
serbia: serbian, serb; sicily: sicilian; sierra leone: sierra leonean; singapore: singaporean; slovakia: slovak,
slovakian; slovenia: slovene, slovenian; somalia: somali; south africa: south african; south korea: korean, south
korean; soviet union: soviet; spain: spanish, spaniard; sri lanka: sri lankan; state of palestine: palestinian; sudan:
sudanese; suriname: surinamese; sweden: swedish, swede; switzerland: swiss; syria: syrian; taiwan: taiwanese;
tajikistan: tajik, tajikistani; tanzania: tanzanian; tatarstan: tatar; thailand: thai; tibet: tibetan; togo: togolese;
tonga: tongan; trinidad and tobago: trinidadian; tunisia: tunisian; turkey: turkish, turk; turkmenistan: turkmen;
uganda: ugandan; ukraine: ukrainian; united arab emirates: emirati; united kingdom: british, briton, britisher; united
states: american, us, usa; uruguay: uruguayan; uzbekistan: uzbek, uzbekistani; vatican city: vatican; venezuela:
venezuelan; vietnam: vietnamese; wales: welsh, welshman; west indies: west indian; yemen: yemeni; yugoslavia:
yugoslav, yugoslavian; zaire: zairean, zairian; zambia: zambian; zanzibar: zanzibari; zimbabwe: zimbabwean
"""


def _read() -> dict[str, tuple[str, ...]]:
    nations: dict[str, list[str]] = {}
    for entry in " ".join(_TABLE.split()).split("; "):
        nation, _, words = entry.partition(": ")
        for word in words.split(", "):
            nations.setdefault(word, []).append(nation)
    return {word: tuple(found) for word, found in nations.items()}


NATIONS = _read()  # word -> the nations it may stand for

_STATES = """
al alabama; ak alaska; az arizona; ar arkansas; ca california; co colorado; ct connecticut; de delaware; fl florida;
ga georgia; hi hawaii; id idaho; il illinois; in indiana; ia iowa; ks kansas; ky kentucky; la louisiana; me maine; md
maryland; ma massachusetts; mi michigan; mn minnesota; ms mississippi; mo missouri; mt montana; ne nebraska; nv
nevada; nh new hampshire; nj new jersey; nm new mexico; ny new york; nc north carolina; nd north dakota; oh ohio; ok
oklahoma; or oregon; pa pennsylvania; ri rhode island; sc south carolina; sd south dakota; tn tennessee; tx texas; ut
utah; vt vermont; va virginia; wa washington; wv west virginia; wi wisconsin; wy wyoming; dc washington dc
"""
# letters -> state of the United States
STATES = {code: state for entry in " ".join(_STATES.split()).split("; ") for code, _, state in [entry.partition(" ")]}

# of companies, which a name may lack
SUFFIXES = _set(
    "inc incorporated corp corporation co company cos companies ltd limited plc group holding holdings ag sa nv spa "
    "gmbh llc lp bv se ab asa oy kk kgaa and sons bros"
)
# behind a name and a hyphen: "Boston-based"
ATTACHED = _set("area backed based born bound controlled held led owned run style trained")
# "Agriculture Department" is the Department of Agriculture
OFFICES = {"department": "department", "dept": "department", "ministry": "ministry", "office": "office"}
# before a person's name
RANKS = _set(
    "mr mrs ms miss dr prof professor sen senator rep representative gen general lt col colonel capt captain sgt adm "
    "admiral maj major gov governor president premier chancellor minister secretary judge justice sir dame lord lady "
    "king queen prince princess pope cardinal archbishop bishop rev reverend father sheikh ayatollah mayor vice deputy "
    "lieutenant major prime first chief"
)
# words that a title spells out
ABBREVIATIONS = {
    "us": "united states", "uk": "united kingdom", "un": "united nations", "eu": "european union", "s": "south",
    "n": "north", "e": "east", "w": "west", "ft": "fort", "mt": "mount", "st": "saint", "intl": "international",
    "natl": "national", "univ": "university", "assn": "association", "govt": "government", "dept": "department",
}  # fmt: skip
# behind a name that is one without them: "Reader's Digest magazine"
KINDS = _set(
    "airport band campus channel city club corporation county district game group inc island league magazine "
    "network news newspaper party province region series show state team tour tournament university war"
)
# behind a person's name
YOUNGER = _set("jr sr ii iii iv")
# that begin and end no name by themselves
SMALL_WORDS = _set("a an and at de der des di du et for in la le of on the to und von")
# Words that are capitalised only because they start a sentence.
FUNCTION_WORDS = _set(
    "a although an and as at after before both but by during for from her his however if in into it its like near of "
    "on or our over since so than that the their then these this those though through to under until unlike upon when "
    "where whereas which while with within without yet"
)
# Cut after these and the next sentence starts in the middle of a name.
ABBREVIATED = _set(
    "mr mrs ms dr prof st sr jr gen col capt lt sgt rev hon gov sen rep pres no vol vs etc inc ltd co corp dept fig "
    "op cf ca b d c r jan feb mar apr jun jul aug sep sept oct nov dec mt ft e.g i.e u.s u.k"
)

"""Nations, peoples and the words for them, "Dutch" for the Netherlands; states of the United States, "NY"."""

from __future__ import annotations

__all__ = ["NATIONS", "STATES"]

# nation: words; as surface keys (see surfaces.py)
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

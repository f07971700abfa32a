"""What languages are called: the codes of the language model, their names and the other codes that mean them."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from curate.errors import RequestError, did_you_mean

_TWO_LETTERS = """
af afr Afrikaans|am amh Amharic|an arg Aragonese|ar ara Arabic|as asm Assamese|az aze Azerbaijani|ba bak Bashkir|be bel Belarusian
bg bul Bulgarian|bn ben Bengali|br bre Breton|bs bos Bosnian|ca cat Catalan|cs ces Czech|cy cym Welsh|da dan Danish|de deu German
dz dzo Dzongkha|el ell Greek|en eng English|eo epo Esperanto|es spa Spanish|et est Estonian|eu eus Basque|fa fas Persian
fi fin Finnish|fo fao Faroese|fr fra French|fy fry Frisian|ga gle Irish|gd gla Gaelic|gl glg Galician|gu guj Gujarati|ha hau Hausa
he heb Hebrew|hi hin Hindi|hr hrv Croatian|ht hat Haitian|hu hun Hungarian|hy hye Armenian|id ind Indonesian|ig ibo Igbo
is isl Icelandic|it ita Italian|ja jpn Japanese|jv jav Javanese|ka kat Georgian|kk kaz Kazakh|km khm Khmer|kn kan Kannada
ko kor Korean|ku kur Kurdish|ky kir Kyrgyz|la lat Latin|lb ltz Luxembourgish|lg lug Ganda|ln lin Lingala|lo lao Lao
lt lit Lithuanian|lv lav Latvian|mg mlg Malagasy|mk mkd Macedonian|ml mal Malayalam|mn mon Mongolian|mr mar Marathi|ms msa Malay
mt mlt Maltese|my mya Burmese|ne nep Nepali|nl nld Dutch|nn nno Nynorsk|no nor Norwegian|oc oci Occitan|om orm Oromo|or ori Odia
pa pan Punjabi|pl pol Polish|ps pus Pashto|pt por Portuguese|qu que Quechua|ro ron Romanian|ru rus Russian|rw kin Kinyarwanda
sa san Sanskrit|se sme Sami|si sin Sinhala|sk slk Slovak|sl slv Slovenian|sn sna Shona|so som Somali|sq sqi Albanian
sr srp Serbian|st sot Sotho|sv swe Swedish|sw swa Swahili|ta tam Tamil|te tel Telugu|tg tgk Tajik|th tha Thai|tk tuk Turkmen
tl tgl Tagalog|tr tur Turkish|tt tat Tatar|ug uig Uyghur|uk ukr Ukrainian|ur urd Urdu|uz uzb Uzbek|vi vie Vietnamese
vo vol Volapük|wa wln Walloon|xh xho Xhosa|yo yor Yoruba|zh zho Chinese|zu zul Zulu
"""
_THREE_LETTERS = """
ace Acehnese|ary Moroccan Arabic|arz Egyptian Arabic|bcl Central Bikol|crh Crimean Tatar|ext Extremaduran|fuv Nigerian Fulfulde
gcf Guadeloupean Creole|gcr Guianese Creole|gom Goan Konkani|grc Ancient Greek|gug Guarani|guw Gun|hbo Biblical Hebrew|kab Kabyle
kik Kikuyu|lij Ligurian|ltg Latgalian|nso Northern Sotho|pcm Nigerian Pidgin|sdh Southern Kurdish|uzs Southern Uzbek|vec Venetian
wuu Wu Chinese|yue Cantonese|zxx no language
"""
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "ar": ("ar", "ary", "arz"),
    "ku": ("ku", "sdh"),
    "no": ("no", "nn"),
    "uz": ("uz", "uzs"),
    "zh": ("zh", "wuu", "yue"),
}
"""ISO 639-3 macrolanguages with members that the model tells apart: allowing the one allows all"""
_OTHERS = {"arb": "ar", "cmn": "zh", "nb": "no", "nob": "no", "swh": "sw", "pes": "fa", "zsm": "ms", "fil": "tl", "ekk": "et"}
_OTHERS |= {"lvs": "lv", "azj": "az", "uzn": "uz", "khk": "mn", "npi": "ne", "ory": "or", "als": "sq", "iw": "he", "in": "id"}
_OTHERS |= {"mandarin": "zh", "farsi": "fa", "castilian": "es", "filipino": "tl", "bokmål": "no", "ki": "kik", "gn": "gug"}


@functools.cache
def names() -> Mapping[str, str]:
    """The English name of each code of the model."""
    two = [entry.split(" ", 2) for line in _TWO_LETTERS.split("\n") for entry in line.split("|") if entry]
    three = [entry.split(" ", 1) for line in _THREE_LETTERS.split("\n") for entry in line.split("|") if entry]
    return {code: name for code, _, name in two} | {code: name for code, name in three}


def code_of(word: str) -> str:
    """The model's code for a code of ISO 639-1 or 639-3, a language tag (`pt-BR`) or an English name.

    Raises `RequestError` with the nearest name where the model knows no such language.
    """
    known = _codes()
    asked = word.strip().casefold()
    for form in (asked, asked.replace("_", "-").partition("-")[0]):
        if form in known:
            return known[form]
    raise RequestError(
        f"`{word}` is no language that can be told",
        hint=f"{did_you_mean(asked, known)}; write ISO 639 codes such as `en` or `deu`, or English names",
    )


def with_family(code: str) -> tuple[str, ...]:
    """The code and, for a macrolanguage, its members."""
    return FAMILIES.get(code, (code,))


@functools.cache
def _codes() -> Mapping[str, str]:
    found = {code: code for code in names()} | {name.casefold(): code for code, name in names().items()}
    found |= {entry.split()[1]: entry.split()[0] for line in _TWO_LETTERS.split("\n") for entry in line.split("|") if entry}
    return found | _OTHERS

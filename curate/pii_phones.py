"""Telephone numbers: with a country code, in the national forms of many countries, or behind a word that announces one.

Without a country code or such a word a number must have a form that little else has: `(212) 555-0123`,
`212-555-0123`, `020 7946 0958`, `030/1234567`, `01 23 45 67 89`.
"""

from __future__ import annotations

import re
from itertools import pairwise

from curate.pii_spots import SEVEN_DIGITS, Pattern, Spot, digits_of

COUNTRY_CODES = frozenset(
    "1 7 20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66 81 82 84 86 90 "
    "91 92 93 94 95 98 211 212 213 216 218 220 221 222 223 224 225 226 227 228 229 230 231 232 233 234 235 236 237 238 239 "
    "240 241 242 243 244 245 248 249 250 251 252 253 254 255 256 257 258 260 261 262 263 264 265 266 267 268 269 297 298 "
    "299 350 351 352 353 354 355 356 357 358 359 370 371 372 373 374 375 376 377 378 380 381 382 383 385 386 387 389 420 "
    "421 423 500 501 502 503 504 505 506 507 508 509 590 591 592 593 594 595 596 597 598 599 670 672 673 674 675 676 677 "
    "678 679 680 681 682 685 686 687 688 689 691 692 800 808 850 852 853 855 856 870 878 880 881 882 883 886 888 960 961 "
    "962 963 964 965 966 967 968 970 971 972 973 974 975 976 977 979 992 993 994 995 996 998".split()
)
"""the country codes of ITU-T E.164"""
SHAPES = frozenset(
    {(2, 4, 4), (2, 8), (2, 9), (3, 3, 4), (3, 4, 3), (3, 4, 4), (3, 6), (3, 7), (3, 8), (3, 9), (4, 3, 4), (4, 4, 3), (4, 4, 4)}
    | {(4, 5), (4, 6), (4, 7), (4, 8), (5, 3, 3), (5, 5), (5, 6), (5, 7), (4, 3, 3), (4, 3, 2, 2), (3, 3, 2, 2), (3, 2, 2, 2, 2)}
)
"""digits in each group of a national number that begins with 0"""
NOT_A_PHONE = re.compile(
    r"(?:\b(?:isbn|issn|doi|order|invoice|ticket|tracking|parcel|reference|ref|case|serial|version|part|item|article|model|sku|upc|ean|"
    r"account|acct|id|uid|page|pages|pp|vol|patent|bug|issue|rfc|iso|din|port|ssn|code|barcode|batch|lot|po|"
    r"bestellnummer|rechnung|kundennummer|artikel|commande|facture|number of|record|row)\W{0,3}"
    r"(?:(?:no|nr|num|number|id|code|is|was)\b\W{0,3}){0,3}"
    r"|\b(?:no|nr|nos)[.:]\s?|[$€£¥#№]\s?)\Z",
    re.IGNORECASE,
)
"""what else numbers are called by, right before them"""
_ANNOUNCED = re.compile(
    r"(?<![\w./-])(?:tele?phone|tele?fon|téléphone|teléfono|telefono|telefoon|phone|tel|tél|fon|ph|"
    r"mobile|mobil|mob|portable|handy|cell|cellular|"
    r"fax|hotline|helpline|whatsapp|sms|rufnummer|durchwahl|voicemail|landline|"
    r"(?P<verb>call|dial|ring|appelez|anrufen|llame al))\b"
    r"(?:[ .:)=]{1,3}(?:no|nr|number|us|me|him|her|them|at|on|now|is|office|unter|au|home|work|toll[ -]free|"
    r"our [a-z]{2,12})\b){0,3}"
    r"[ \t.:()=]{0,4}\Z",
    re.IGNORECASE,
)
"""words that say that a telephone number follows"""
_GROUPS = re.compile(r"[0-9]+")
_DATE = re.compile(
    r"(?:19|20)\d\d[-./ ]?(?:0?[1-9]|1[0-2])[-./ ]?(?:[0-2]?\d|3[01])(?!\d)|"
    r"(?:[0-2]?\d|3[01])[-./](?:[0-2]?\d|3[01])[-./](?:19|20)\d\d(?!\d)"
)


def is_international(spot: Spot) -> bool:
    """A country code of ITU-T E.164 and 7 to 12 digits; North American numbers have ten, of a form of their own."""
    text = spot.text
    if _tied(spot) or (text.startswith("00") and not re.search(r"[ ()./-]", text) and not spot.follows(_ANNOUNCED)):
        return False
    groups = _GROUPS.findall(re.sub(r"\(0\)", "", text.removeprefix("+").removeprefix("00")))
    digits = "".join(groups)
    code = next((digits[:width] for width in (1, 2, 3) if digits[:width] in COUNTRY_CODES), None)
    if code is None or (text[0] != "+" and spot.follows(NOT_A_PHONE)):
        return False
    ends = [sum(map(len, groups[: at + 1])) for at in range(len(groups))]
    if code == "1":
        return 11 in ends and digits[1] in "23456789" and digits[4] in "23456789"
    table = text[0] == "0" and len({len(group) for group in _GROUPS.findall(text)}) == 1
    return any(7 <= end - len(code) <= 12 for end in ends) and len(groups) <= 7 and len(set(digits)) > 2 and not table


def is_american(spot: Spot) -> bool:
    """Ten digits of the North American plan, area code and exchange beginning with 2 to 9."""
    if _tied(spot) or spot.follows(NOT_A_PHONE):
        return False
    digits = digits_of(spot.text)[-10:]
    return digits[1:3] != "11" and digits[4:6] != "11"


def is_national(spot: Spot) -> bool:
    """A number that begins with a trunk 0 and is grouped as such numbers are."""
    text = spot.text
    groups = _GROUPS.findall(text)
    if _tied(spot) or spot.follows(NOT_A_PHONE) or _DATE.search(text) or len(set("".join(groups))) < 3:
        return False
    if re.search(r"(?:^|[^0-9])[0-9]{1,3}[ .]\Z", spot.before) or re.match(r"[ .][0-9]{1,4}(?![0-9])", spot.after):
        return False  # a column of a table, or a list of numbers
    signs = {sign for sign in re.findall(r"[^0-9()]", text)}
    sizes = tuple(map(len, groups))
    if sizes == (2, 2, 2, 2, 2):
        return len(signs) == 1 and len({int(b) - int(a) for a, b in pairwise(groups)}) > 1
    return sizes in SHAPES and "." not in signs and 9 <= sum(sizes) <= 12


def is_announced(spot: Spot) -> bool:
    """Seven to fifteen digits right behind a word such as `tel`, `fax` or `call us at`, that are no date."""
    word = _ANNOUNCED.search(spot.before)
    if not word or re.match(r"\w|[-/=.]\w", spot.after) or _DATE.match(spot.text):
        return False
    groups = _GROUPS.findall(spot.text)
    digits = "".join(groups)
    if not 7 <= len(digits) <= 15 or len(set(digits)) < 3:
        return False
    if len(groups) == 1 and word["verb"] and not spot.text.startswith(("+", "0", "(")):
        return len(digits) in (9, 10, 11, 12)
    return min(map(len, groups[1:] or ["00"])) >= 2


def _tied(spot: Spot) -> bool:
    return bool(re.search(r"[\w.=/:*^+-]\Z", spot.before) and not re.search(r"[A-Za-z]:\Z", spot.before)) or bool(
        re.match(r"\w|[-./=:]\w|%", spot.after)
    )


_B = r"(?-u:\b)"

PHONES = (
    Pattern(r"(?:\+|\b00)[1-9][0-9]{0,3}(?:[ .\x{a0}/-]{0,2}\(?[0-9]{1,12}\)?){1,7}", is_international),
    Pattern(
        rf"\([2-9][0-9]{{2}}\) ?[2-9][0-9]{{2}}[-. ][0-9]{{4}}{_B}|"
        rf"(?:{_B}1[-. ])?{_B}[2-9][0-9]{{2}}(?:-[2-9][0-9]{{2}}-|\.[2-9][0-9]{{2}}\.)[0-9]{{4}}{_B}",
        is_american,
        SEVEN_DIGITS,
    ),
    Pattern(
        rf"(?:\(0[1-9][0-9]{{0,4}}\)|{_B}0[1-9][0-9]{{0,4}})(?:[ \x{{a0}}./-]{{0,3}}[0-9]{{2,9}}){{1,5}}{_B}",
        is_national,
        SEVEN_DIGITS,
    ),
    Pattern(r"[+(]?[0-9][0-9 ()./\x{a0}-]{5,20}[0-9]", is_announced, SEVEN_DIGITS),
)

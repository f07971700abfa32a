"""E-mail and IP addresses, payment cards and bank accounts: how they are found, and what only looks like one."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping

from curate.pii_phones import PHONES
from curate.pii_secrets import SECRETS
from curate.pii_spots import SEVEN_DIGITS, Pattern, Spot, digits_of

NO_DOMAIN = frozenset(
    "png jpg jpeg gif svg webp ico css scss js jsx ts tsx json xml html htm php txt yml yaml conf cfg ini log tar gz zip "
    "deb rpm jar service socket timer target mount device slice local localhost localdomain invalid".split()
)
"""endings of file names, units and machines' own domains: `sprite@2x.png`, `getty@tty1.service`"""
_EMAIL = re.compile(
    r"[A-Za-z0-9_](?:[A-Za-z0-9._%+'-]{0,62}[A-Za-z0-9_+-])?@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+([A-Za-z]{2,24}|xn--[A-Za-z0-9-]{2,58})"
)
_MESSAGE = re.compile(r"(?:message-?id|in-reply-to|references)\W{0,4}\Z", re.IGNORECASE)

_VERSION = re.compile(
    r"(?:\b(?:v|ver|vers|version|release|rel|rev|revision|build|firmware|kernel|section|sections|sect|sec|chapter|clause|article|"
    r"paragraph|para|appendix|annex|table|figure|fig|oid|release notes for|upgrade to|upgraded to|update to|updated to|"
    r"downgraded to|requires|since|abschnitt|kapitel|versión|versione|versão)[.:#s]{0,2}|§{1,2})\s{0,2}[\"'(=<>~]{0,3}\s?\Z",
    re.IGNORECASE,
)
_PRODUCT = re.compile(r"[A-Za-z]/\Z|[A-Za-z]\w*[-_]\Z|[A-Za-z]\Z")
_HOST = re.compile(
    r"\b(?:ip|ips|ipv4|address|addr|addresses|host|server|gateway|router|dns|nameserver|subnet|ping|telnet|from|client|proxy|peer|"
    r"login|listen|bind|connect\w*|adresse|remote|vpn|node)\b[^.(\n]{0,20}\Z|://\Z|@\Z",
    re.IGNORECASE,
)

_ISSUERS = (
    ("4", (13, 16, 19)),
    ("34 37", (15,)),
    (" ".join(map(str, range(51, 56))), (16,)),
    (" ".join(map(str, range(2221, 2721))), (16,)),
    ("6011 65 644 645 646 647 648 649", (16, 19)),
    ("300 301 302 303 304 305 36 38 39", (14, 16, 19)),
    (" ".join(map(str, range(3528, 3590))), (16,)),
    ("62 81", (16, 17, 18, 19)),
    ("5018 5020 5038 5893 6304 6759 6761 6762 6763", (13, 16, 18, 19)),
)
ISSUERS: Mapping[str, tuple[int, ...]] = {prefix: sizes for prefixes, sizes in _ISSUERS for prefix in prefixes.split()}
"""how card numbers of each issuer begin, and how many digits they have"""
NOT_A_CARD = re.compile(
    r"\b(?:order|invoice|tracking|parcel|shipment|serial|sku|imei|iccid|isbn|ean|gtin|upc|barcode|ticket|case|reference|ref|"
    r"transaction|customer|account|timestamp|id|uid|rechnung|bestell\w*)\W{0,3}(?:(?:no|nr|num|number|id|code|is|was)\b\W{0,3}){0,3}\Z",
    re.IGNORECASE,
)

_IBANS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 "
    "FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 "
    "LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 "
    "RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30"
)
IBAN_SIZES: Mapping[str, int] = {entry[:2]: int(entry[2:]) for entry in _IBANS.split()}
"""letters and digits of an account number by country, after the registry of IBAN formats"""


def is_email(spot: Spot) -> bool:
    """An address by RFC 5321's ordinary form, with a top-level domain of letters; no message id, no `git@host:path`."""
    found = _EMAIL.fullmatch(spot.text.lstrip("'"))
    if not found or ".." in spot.text or found[1].lower() in NO_DOMAIN:
        return False
    last = spot.before[-1:]
    if last in ("/", "@") or (last.isascii() and last.isalnum()) or (last == ":" and "//" in spot.before[-24:]):
        return False
    if spot.text.startswith("git@") and spot.after.startswith((":", "/")):
        return False
    return not _MESSAGE.search(spot.before.rstrip("<")) and not re.match(r"[@A-Za-z0-9_]", spot.after)


def is_ipv4(spot: Spot) -> bool:
    """Four numbers up to 255 that are no version, section, heading, mask, loopback or unset address."""
    core = re.search(r"[0-9.]*[0-9]", spot.text)
    assert core is not None, "the pattern has digits"
    before, after = spot.before + spot.text[: core.start()], spot.text[core.end() :] + spot.after
    parts = core[0].split(".")
    if any((len(part) > 1 and part[0] == "0") or int(part) > 255 for part in parts):
        return False
    first = int(parts[0])
    if first in (0, 127) or first >= 224 or re.match(r"[\w-]*[A-Za-z_]|-?\d", after):
        return False
    if _PRODUCT.search(before) or _VERSION.search(before) or before.endswith(("\\", "^", "~", "=v", "==", ">=", "<=")):
        return False
    if first < 100 and all(1 <= int(part) <= 30 for part in parts[1:]) and len(set(parts)) > 1:  # as a section's number
        return bool(_HOST.search(before) or re.match(r":\d{2,5}\b|/\d{1,2}\b", after))
    return True


def is_ipv6(spot: Spot) -> bool:
    """An address by RFC 4291 that is not loopback; no clock time, hardware address, fingerprint or C++ name."""
    core = spot.text.strip()
    if spot.before[-1:].isalnum() or spot.before[-1:] in (":", ".", "-", "_") or re.match(r"[\w:]|-\w", spot.after):
        return False
    core = core.rstrip(":") if not core.endswith("::") else core
    groups = [group for group in core.split(":") if group]
    try:
        address = ipaddress.IPv6Address(core)
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified or address.is_multicast or all(len(group) == 2 for group in groups):
        return False
    known = address.is_link_local or address.is_private or int(address) >> 125 == 1
    has_digit = any(letter.isdigit() for letter in groups[0]) or address.is_link_local or address in _LOCAL
    return known and has_digit and len(groups) >= 2 and (len(groups[0]) >= 3)


def is_card(spot: Spot) -> bool:
    """An issuer's prefix and length, a valid check digit (Luhn), and no word before it that says it numbers something else."""
    digits = digits_of(spot.text)
    sizes = next((ISSUERS[digits[:width]] for width in (4, 3, 2, 1) if digits[:width] in ISSUERS), ())
    if len(digits) not in sizes or len(set(digits)) < 2 or not spot.alone:
        return False
    if len({letter for letter in spot.text if not letter.isdigit()}) > 1:
        return False
    return luhn(digits) and not spot.follows(NOT_A_CARD)


def luhn(digits: str) -> bool:
    """Whether the last digit is the check digit of ISO/IEC 7812."""
    doubled = [2 * int(digit) for digit in digits[-2::-2]]
    return (sum(map(int, digits[-1::-2])) + sum(number - 9 if number > 9 else number for number in doubled)) % 10 == 0


def is_iban(spot: Spot) -> bool:
    """A country of the registry, its length, and the checksum of ISO 13616; what follows it in capitals is no part of it."""
    country, size = spot.text[:2], IBAN_SIZES.get(spot.text[:2], 0)
    places = [place for place, letter in enumerate(spot.text) if letter.isalnum()]
    if not size or len(places) < size or spot.before[-1:].isalnum():
        return False
    end = places[size - 1] + 1
    number = "".join(letter for letter in spot.text[:end] if letter.isalnum())
    if (spot.text[end:] + spot.after)[:1].isalnum() or (country in _ALL_DIGITS and not number[2:].isdigit()):
        return False
    return int("".join(str(int(letter, 36)) for letter in number[4:] + number[:4])) % 97 == 1


_ALL_DIGITS = frozenset("AE AT BA BE CZ DE DK EE ES FI FO GL HR HU IL IS LT ME NO PL PT RS SE SI SK TN VA XK".split())
_LOCAL = ipaddress.IPv6Network("fc00::/7")
_OCTET = "[0-9]{1,3}"
_B = r"(?-u:\b)"
_CARD = "(?:4[0-9]{3}|5[0-9]{3}|2[2-7][0-9]{2}|3[0-9]{3}|6[0-9]{3}|81[0-9]{2})"

KINDS: Mapping[str, tuple[Pattern, ...]] = {
    "secrets": SECRETS,
    "ibans": (Pattern(_B + r"[A-Z]{2}[0-9]{2}(?:[ \x{a0}-]?[A-Z0-9]){11,30}", is_iban),),
    "emails": (
        Pattern(r"[A-Za-z0-9._%+'-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}(?:xn--[A-Za-z0-9-]{2,58}|[A-Za-z]{2,24})", is_email),
    ),
    "ips": (
        Pattern(rf"(?:^|[^0-9.]){_OCTET}\.{_OCTET}\.{_OCTET}\.{_OCTET}(?:\.?[^0-9.]|\.?$)", is_ipv4),
        Pattern(
            r"(?:[0-9A-Fa-f]{1,4}:){1,7}(?::?[0-9A-Fa-f]{1,4}){1,7}(?:(?:\.[0-9]{1,3}){3}|::)?|[0-9A-Fa-f]{3,4}(?::[0-9A-Fa-f]{1,4}){0,6}::",
            is_ipv6,
            "[0-9A-Fa-f]{2}:[0-9A-Fa-f]{0,4}:",
        ),
    ),
    "cards": (
        Pattern(
            rf"{_B}{_CARD}(?:[0-9]{{9,15}}|(?:[ -][0-9]{{4}}){{3}}(?:[ -][0-9]{{3}})?|[ -][0-9]{{6}}[ -][0-9]{{4,5}}){_B}",
            is_card,
            SEVEN_DIGITS,
        ),
    ),
    "phones": PHONES,
}
"""the patterns of each kind; a place that one kind has taken is not looked at by the kinds behind it"""

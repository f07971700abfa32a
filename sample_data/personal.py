"""Rows with personal data and secrets in them, none of them anybody's, and rows with what only looks like it.

Domains, addresses and telephone numbers are those set aside for documentation and for films; card and account
numbers are the ones published for tests; tokens are drawn here and open nothing. They are put together from
parts, so that no scanner finds one in this file.
"""

from __future__ import annotations

import base64
import string
from collections.abc import Callable, Iterable, Mapping, Sequence

from sample_data.rows import Row, draw, in_turn, pick

KINDS = ("email", "ip", "phone", "card", "iban", "secret")
HIDDEN_FILE = "en-0004.parquet"
"""compressed: where the tokens lie, so that nobody's scanner is alarmed by the checkout"""


def personal(english: Sequence[str]) -> Iterable[Row]:
    """48 texts with one to three items: each kind alone, each kind twice, and two kinds together."""
    for number, sentences in enumerate(in_turn(english[240:], iter([3] * 48))):
        first, second = KINDS[number % 6], KINDS[(number + 1 + number // 6) % 6]
        planted = ((first,), (first, second), (first, first), (first, second, second))[number // 6 % 4]
        said = [sentence_with(kind, number * 10 + at) for at, kind in enumerate(planted)]
        text = " ".join([sentences[0], *said, *sentences[1:]])
        file = HIDDEN_FILE if "secret" in planted else ""
        yield Row(f"personal/{number}", text, "eng", "tatoeba", "personal_data", planted=tuple(sorted(planted)), file=file)


def look_alikes(english: Sequence[str]) -> Iterable[Row]:
    """24 texts with numbers and names that are nobody's data, though they have its form."""
    for number, sentences in enumerate(in_turn(english[400:], iter([2] * 24))):
        said = LOOK_ALIKES[number % len(LOOK_ALIKES)].replace("%d", str(10 + draw(90, "look-alike", number)))
        yield Row(f"look-alike/{number}", " ".join([sentences[0], said, sentences[1]]), "eng", "tatoeba", "look_alike")


def sentence_with(kind: str, number: int) -> str:
    """A sentence that says one item of the kind."""
    return pick(SAID[kind], kind, "said", number).replace("%", MAKERS[kind](number))


SAID: Mapping[str, Sequence[str]] = {
    "email": ("Write to % if you want to come.", "My address is <%>.", "Please send the photos to %, not to me."),
    "ip": ("The server at % does not answer.", "Someone logged in from % last night.", "Blocked: %, three times."),
    "phone": ("Call me on % after six.", "My new number is %.", "Tel. %"),
    "card": ("I paid with card % and it failed.", "Use % for the booking.", "It was charged to %, I think."),
    "iban": ("Please pay into %.", "IBAN: %", "The rent goes to % every month."),
    "secret": ("Here is what I use:\n%\nDo not show it to anybody.", "It stopped working when I set\n%\non the new machine."),
}
PEOPLE = "anna.lind j.okafor mehmet42 info maria-rossi kenji_s t.b.larsen office+orders".split()
DOMAINS = "example.com example.org mail.example.net example.net".split()
TEST_CARDS = (
    "4242 4242 4242 4242|4111111111111111|5555 5555 5555 4444|5105-1051-0510-5100|378282246310005|6011111111111117|"
    "2223 0031 2200 3222|4000 0566 5566 5556"
).split("|")
TEST_IBANS = (
    "DE89 3704 0044 0532 0130 00|GB82 WEST 1234 5698 7654 32|FR14 2004 1010 0505 0001 3M02 606|NL91ABNA0417164300|"
    "ES91 2100 0418 4502 0005 1332|CH93 0076 2011 6238 5295 7|AT61 1904 3002 3457 3201|BE68539007547034"
).split("|")


def email(number: int) -> str:
    return f"{pick(PEOPLE, 'person', number)}@{pick(DOMAINS, 'domain', number)}"


def ip(number: int) -> str:
    """Of the blocks that RFC 5737 and RFC 3849 keep for documentation."""
    if number % 3 == 0:
        return f"2001:db8:{draw(65536, 'net', number):x}::{1 + draw(65535, 'host', number):x}"
    return f"{pick(('192.0.2', '198.51.100', '203.0.113'), 'net', number)}.{1 + draw(254, 'host', number)}"


def phone(number: int) -> str:
    """Of the ranges kept for films and plays in America, Britain, Germany, France and Australia."""
    forms = ("+1 212 555 01%02d", "(312) 555-01%02d", "+44 20 7946 09%02d", "+49 30 23125 0%02d", "+33 1 99 00 12 %02d")
    return pick((*forms, "020 7946 08%02d", "+61 2 5550 10%02d"), "form", number) % draw(100, "phone", number)


def card(number: int) -> str:
    return pick(TEST_CARDS, "card", number)


def iban(number: int) -> str:
    return pick(TEST_IBANS, "iban", number)


def secret(number: int) -> str:
    """A token of the right form that says FAKE, an assignment, a login in an address or the head of a key."""
    form = draw(9, "secret", number)
    if form == 6:
        return f"DB_PASSWORD={letters(6, number)}-{draw(900, 'password', number) + 100}!k"
    if form == 7:
        return f"postgres://app:{letters(8, number)}@db.example.org/orders"
    if form == 8:
        begin, end = (f"-----{word} RSA PRIVATE" + " KEY-----" for word in ("BEGIN", "END"))
        return f"{begin}\nMIIFAKE{letters(40, number)}\n{end}"
    if form == 5:
        return ".".join(json_web(part) for part in ('{"alg":"HS256"}', '{"sub":"FAKE"}')) + "." + letters(43, number)
    prefix, length = (("AKIA", 16), ("gh" + "p_", 36), ("gl" + "pat-", 20), ("sk_" + "test_", 24), ("AI" + "za", 35))[form]
    token = "FAKE" + letters(length - 4, number)
    return prefix + (token.upper() if prefix == "AKIA" else token)


def letters(count: int, number: int) -> str:
    """Letters and digits as if drawn from a hat."""
    return "".join(pick(string.ascii_letters + string.digits, "letter", number, at) for at in range(count))


def json_web(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


MAKERS: Mapping[str, Callable[[int], str]] = {
    "email": email, "ip": ip, "phone": phone, "card": card, "iban": iban, "secret": secret,
}  # fmt: skip

LOOK_ALIKES = (
    "It runs on version 10.0.190%d.1 and nothing else.",
    "The book is ISBN 978-3-16-1484%d-0, second edition.",
    "Order 42424242424242%d was sent yesterday.",
    "We met on 2024-01-17 at 12:30:%d.",
    "The machine talks to 127.0.0.1 and to nobody else.",
    "The icon is called logo@2x.png now.",
    "Clone git@host%d:tools.git first.",
    "The account DE00 1234 5678 9012 3456 %d does not exist.",
    "Invoice no. 0049-2024-00%d is not paid.",
    "Set api_key = os.environ before you begin.",
    "Its hardware address is 00:1a:2b:3c:4d:%d.",
    "See section 3.4.1.%d of the manual.",
)

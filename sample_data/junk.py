"""Rows nobody wants to train on, a function a kind; what they say is made up or spoilt here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from sample_data.rows import Row, draw, in_turn, pick, shuffled

Sentences = Mapping[str, Sequence[str]]

FURNITURE = """Home | News | Shop | Contact; We use cookies to give you the best experience.; Accept all cookies; Reject all;
Manage my choices; Sign up for our newsletter; Enter your e-mail address; Share on social media; Print this page; Back to top;
Log in or register; You have 3 free articles left this month; Skip to main content; Terms of use; Privacy notice;
All rights reserved.; Read more; Load more comments; Advertisement; Follow us; Page 1 of 12; Next page; Related articles;
Was this helpful? Yes No; JavaScript is disabled in your browser.; Choose your country and language; Add to basket;
Free delivery on orders over 30"""
BLANKS = (" ", "\n", "\t\t", "   ", "\r\n", " \n \n ", "\u00a0", "\u2003\u2003")
SYMBOLS = "!?#*+-=~^|/\\<>{}[]()@%&$.,:;'\"`§°•…★☆→←♥♪✓✗☎⚡🙂🔥🎉👍"


def junk(spare: Sentences) -> Iterable[Row]:
    """Every kind of junk; `spare` are sentences by language that are in no real document."""
    yield from nothing()
    yield from symbols()
    yield from boilerplate()
    yield from keywords()
    yield from code()
    yield from lorem_ipsum()
    yield from repeated(spare["eng"])
    yield from mojibake(spare)


def nothing() -> Iterable[Row]:
    """15 rows each that are empty, null or blank."""
    for number in range(15):
        yield Row(f"empty/{number}", "", "eng", "curate", "empty")
        yield Row(f"null/{number}", None, "eng", "curate", "null_text")
        yield Row(f"blank/{number}", BLANKS[number % len(BLANKS)], "eng", "curate", "blank")


def symbols() -> Iterable[Row]:
    """24 runs of signs and pictures, one in three with one word behind."""
    for number in range(24):
        length = 8 + draw(60, "soup length", number)
        soup = "".join(SYMBOLS[draw(len(SYMBOLS), "soup", number, i)] for i in range(length))
        yield Row(f"symbols/{number}", soup + (f" {number}x" if number % 3 == 0 else ""), "eng", "curate", "symbols")


def boilerplate() -> Iterable[Row]:
    """30 pages of which only the furniture is left: cookie banners, menus, buttons."""
    for number in range(30):
        lines = re.split(r";\s", FURNITURE)
        chosen = sorted(lines, key=lambda line: draw(2**63, "furniture", number, line))[: 4 + draw(8, "lines", number)]
        yield Row(f"boilerplate/{number}", "\n".join(chosen), "eng", "curate", "boilerplate")


ADJECTIVES = "cheap best discount used luxury affordable original top-rated wholesale vintage".split()
GOODS = (
    "running shoes|hotel rooms|car insurance|garden furniture|phone cases|wedding dresses|laptop batteries|winter tyres|"
    "flight tickets|kitchen knives|office chairs|fishing rods|dog food|sun glasses|coffee machines|bicycle helmets"
).split("|")
TAILS = ("online|near me|free shipping|sale|best price|reviews|outlet|coupon|london|berlin|chicago|sydney|2024|no deposit").split(
    "|"
)


def keywords() -> Iterable[Row]:
    """24 lists of search words: half turn one phrase over and over, half name one thing after another."""
    for number in range(24):
        goods, tails = shuffled(GOODS, "goods", number), shuffled(TAILS, "tails", number)
        adjectives = shuffled(ADJECTIVES, "adjectives", number)
        if number % 2:
            words = [f"{pick(adjectives, number, thing)} {thing}" if at % 3 else thing for at, thing in enumerate(goods)]
        else:
            words = [f"{adjective} {goods[0]} {tail}" for adjective, tail in zip(adjectives * 2, tails, strict=False)]
        text = (", ", " | ", " ", "\n")[number // 2 % 4].join(words)
        yield Row(f"keywords/{number}", text, "eng", "curate", "keywords")


CODE = (
    """function get%N(items, %n) {
  if (!items || items.length === 0) { return []; }
  const out = items.filter((x) => x.%m > 0 && x["%n"] !== null);
  return out.map(({ %m, %n }) => ({ %m, %n: %n ?? 0 }));
}
$("#%n-%m").on("click", (e) => { e.preventDefault(); get%N(window.%ms, %d); });""",
    """.%n-%m > li:nth-child(2n+1) { margin: 0 %dpx; padding: 2px 4px; }
.%n-%m a:hover, #%m .%n::after { color: #f0%d0a; background: url("/img/%n.png") no-repeat 0 -%dpx; }
@media (max-width: %d00px) { .%n { float: left; width: 100%; } #%m { display: none !important; } }""",
    """<div class="%n %m-%d" id="%n_%d"><a href="/%n/?p=%d&amp;q=%m"><b>%N</b></a></div>
{% for %m in %n.items %}<li{% if loop.last %} class="last"{% endif %}>{{ %m.title|e }} ({{ %m.%n }})</li>{% endfor %}
<script>var _%n = _%n || []; _%n.push(["set", "%m", %d]);</script>""",
    """def %n_%m(self, *args, **kw):
    x = [(i, j) for i, j in zip(self.%n, args) if i != j]
    return {k: v[0] / (v[1] or %d) for k, v in x} or None  # %n
>>> %n_%m(%d, %m={"%n": -1}) == {}
Traceback (most recent call last):
  File "%n.py", line %d, in <module>
KeyError: '%m'""",
    """SELECT a.%n, COUNT(*) AS n_%m FROM %n_%ms a
  LEFT JOIN %ms b ON b.%n_id = a.id AND b.%m <> '%d'
 WHERE a.%n IN (%d, %d1, %d2) AND (b.%m IS NULL OR b.%m >= %d) GROUP BY 1 HAVING COUNT(*) > %d;
INSERT INTO %ms (id, %n, %m) VALUES (%d, '%n', NULL), (%d7, '%m', 0.%d);""",
    """{"%n": {"id": %d, "%m": [%d, %d3, null], "ok": true}, "%m": {"%n": "%N-%d", "tags": ["%m", "%n"], "w": 0.%d}}
{"%n": {"id": %d1, "%m": [], "ok": false}, "%m": {"%n": "%N-%d8", "tags": [], "w": 1e-%d}}""",
)
INTRODUCTIONS = (
    "Here is how I did it in the end:",
    "This does not work for me, what is wrong?",
    "Put these lines at the end of the file.",
    "I get the following and do not know why.",
)
NAMES = "user item cart menu page order photo event track score note badge panel token".split()


def code() -> Iterable[Row]:
    """24 programs, style sheets, templates and queries, half of them behind a sentence of prose."""
    for number in range(24):
        first, second, *_ = shuffled(NAMES, "code", number)
        text = CODE[number % len(CODE)].replace("%N", first.title()).replace("%n", first).replace("%m", second)
        head, *tails = text.split("%d")
        text = head + "".join(f"{1 + draw(9, 'code', number, at)}{tail}" for at, tail in enumerate(tails))
        lines = [INTRODUCTIONS[number // 2 % 4]] if number % 2 else []
        yield Row(f"code/{number}", "\n".join([*lines, text]), "eng", "curate", "code")


LATIN = """
adipiscing aliqua aliquip amet anim aute cillum commodo consectetur consequat culpa cupidatat deserunt dolor dolore duis
ea eiusmod elit enim esse est et eu ex excepteur exercitation fugiat id in incididunt ipsum irure labore laboris laborum magna
minim mollit nisi non nostrud nulla occaecat officia pariatur proident qui quis reprehenderit sed sint sit sunt tempor ullamco
ut velit veniam voluptate""".split()


def lorem_ipsum() -> Iterable[Row]:
    """24 texts of a printer who had none; one in four without the two words it is known by."""
    for number in range(24):
        sentences = [] if number % 4 == 3 else ["Lorem ipsum dolor sit amet, consectetur adipiscing elit."]
        for at in range(4 + draw(6, "lorem", number)):
            words = shuffled(LATIN, "lorem", number, at)[: 5 + draw(9, "lorem words", number, at)]
            sentences.append(" ".join(words).capitalize() + ".")
        yield Row(f"lorem/{number}", (" ", "\n\n")[number % 2].join(sentences), "lat", "curate", "lorem_ipsum")


def repeated(english: Sequence[str]) -> Iterable[Row]:
    """20 texts with one line three to eight times among others, 20 with one paragraph two to five times."""
    sizes = (3 + draw(4, "repeated", number) for number in range(40))
    for number, sentences in enumerate(in_turn(english, sizes)):
        again = 3 + draw(6, "again", number)
        if number % 2:
            first, *others = sentences
            at = draw(len(others) + 1, "at", number)
            kind, text = "repeated_lines", "\n".join([*others[:at], *[first] * again, *others[at:]])
        else:
            paragraph = " ".join(sentences[:-1])
            kind, text = "repeated_paragraphs", "\n\n".join([sentences[-1], *[paragraph] * (1 + again // 2)])
        yield Row(f"repeated/{number}", text, "eng", "tatoeba", kind)


SPOILT = "deu fra por swe pol hun tur vie ell rus ukr bul ara hin jpn".split()


def mojibake(spare: Sentences) -> Iterable[Row]:
    """30 texts in UTF-8 that were read as Windows-1252 (as browsers do) or Latin-1, two in each of 15 languages."""
    for number in range(30):
        lang = SPOILT[number // 2]
        gap = "" if lang == "jpn" else " "
        sentences = [text for text in spare[lang] if not text.isascii()][number % 2 * 6 :][:6]
        data = gap.join(sentences).encode()
        text = data.decode("latin-1") if number % 2 else "".join(as_windows(byte) for byte in data)
        yield Row(f"mojibake/{number}", text, lang, "tatoeba", "mojibake")


def as_windows(byte: int) -> str:
    """One byte in Windows-1252; the five it leaves open are control characters, as in Latin-1."""
    one = bytes([byte])
    return one.decode("cp1252") if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else one.decode("latin-1")

"""English tokens: the characters that part them, and the words that are cut in a way of their own.

A *token* is a word or a mark, as the tokenizer of spaCy's blank English pipeline cuts them: at
whitespace; then marks off both ends ("(yes)," is four tokens); then at hyphens, slashes, colons
and dots between letters; contractions in two ("do|n't"); URLs, times and abbreviations whole. It is what
datatrove's filters count, and what their limits were set for. Tables only: `curate.kernels.tokens` cuts.

Source: the rules of spaCy 3.8 (MIT licence) in `lang/punctuation.py`, `lang/char_classes.py`,
`lang/en/tokenizer_exceptions.py`; the punctuation of datatrove 0.10 (Apache-2.0), `utils/text.py`.
Symbols are Unicode's category So as this Python knows it, where spaCy lists those of Unicode 11.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from curate.letters import SPACELESS as SPACELESS_CLASS

SPACE, LETTER, LOWER, UPPER, PREFIX, SUFFIX, BEFORE_DOT, SYMBOL, QUOTE, CURRENCY = (1 << bit for bit in range(10))
ALPHABETIC, MARK, PUNCTUATION, SENTENCE_END, SPACELESS, TERMINAL, WORD = (1 << bit for bit in range(10, 17))
"""what a character is: one bit each. LETTER to CURRENCY are the tokenizer's classes, ALPHABETIC, SPACE and
WORD Python's, PUNCTUATION Unicode's category P, MARK what words are not made of, SENTENCE_END what ends a
sentence, TERMINAL what ends a finished line, SPACELESS letters of scripts that write no spaces"""

TABLE = 0x20000
"""code points the table of kinds covers; above, `HAN` to `LAST_HAN` are alike and the rest is nothing"""
LAST_HAN = 0x323AF
HAN = LETTER | LOWER | UPPER | ALPHABETIC | WORD | SPACELESS

CASED = (
    "41-5a 61-7a c0-d6 d8-f6 f8-1bf 1c4-2af 386 388-38a 38c 38e-38f 391-3a9 3ac-3af 3b1-3c9 3cc-3ce 400-401 403-40a "
    "40c-40d 410-451 453-45a 45c-45d 490-491 496-497 4a2-4a3 4ae-4af 4ba-4bb 4d8-4d9 4e8-4e9 1d00-1d25 1d6b-1d77 1d79-1d9a "
    "1e00-1eff 2c60-2c7b 2c7e-2c7f a722-a76f a771-a787 a78b-a78e a790-a7b9 a7fa ab30-ab5a ab60-ab64 ff21-ff3a ff41-ff5a"
)
"""letters with a case, as ranges of code points"""
UNCASED = (
    "591-5f4 620-64a 66e-6d5 6e5-6ff 750-77f 8a0-8bd 900-9ff b80-cff d80-dff 1100-137f 2e80-2fdf 2ff0-30ff 31c0-31ef "
    "3200-4dbf 4e00-9fff ac00-d7af f900-faff fb1d-fbb1 fbd3-fd3d fd50-fdc7 fdf0-fdfb fe30-fe4f fe70-fefc 1ee00-1eebb 1f200-1f2ff"
)
"""letters that pass for both cases, marks and digits of their scripts among them"""

LISTED = "…,:;!?¿؟¡()[]{}<>_#*&。？！，、；：～·।،۔؛٪"
QUOTES = "'\"”“`‘´’‚,„»«「」『』（）〔〕【】《》\u2329\u232a〈〉⟦⟧"
MONEY = "$£€¥฿₽﷼₴₠₡₢₣₤₥₦₧₨₩₪₫₭₮₯₰₱₲₳₵₶₷₸₹₺₻₼₾₿"
UNITS = (
    "km km² km³ m m² m³ dm dm² dm³ cm cm² cm³ mm mm² mm³ ha µm nm yd in ft kg g mg µg t lb oz m/s km/h kmh mph hPa Pa mbar mb "
    "MB kb KB gb GB tb TB T G M K % км км² км³ м м² м³ дм дм² дм³ см см² см³ мм мм² мм³ нм кг г мг м/с км/ч кПа Па мбар Кб КБ кб "
    "Мб МБ мб Гб ГБ гб Тб ТБ كم² كم³ م م² م³ سم سم² سم³ مم مم² مم³ كم غرام جرام جم كغ ملغ كوب اكواب"
)
"""what is cut off behind a digit: "5km" is two tokens"""

BOTH_ENDS = (
    "!.?։؟۔܀܁܂߹।॥၊။።፧፨᙮᜵᜶᠃᠉᥄᥅᪨᪩᪪᪫᭚᭛᭞᭟᰻᰼᱾᱿‼‽⁇⁈⁉⸮⸼꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝꩞꩟꫰꫱꯫﹒﹖﹗！．？｡。"
    "\U00010a56\U00010a57\U00011047\U00011048\U000110be-\U000110c1\U00011141-\U00011143\U000111c5\U000111c6\U000111cd"
    "\U000111de\U000111df\U00011238\U00011239\U0001123b\U0001123c\U000112a9\U0001144b\U0001144c\U000115c2\U000115c3"
    "\U000115c9-\U000115d7\U00011641\U00011642\U0001173c-\U0001173e\U00011a42\U00011a43\U00011a9b\U00011a9c\U00011c41\U00011c42"
    "\U00016a6e\U00016a6f\U00016af5\U00016b37\U00016b38\U00016b44\U0001bc9f\U0001da88"
)
"""ends a sentence and finishes a line, in every script"""
LINE_ENDS = (
    "\u061d\u061e\u0837\u0839\u083d\u083e\u17d4-\u17d6\u17d9\u17da\u1b7d\u1b7e\u2e53\u2e54"
    "\U00010f55-\U00010f59\U00010f86-\U00010f89\U00011ef7\U00011ef8\U00011944\U00011946\U00011f43\U00011f44\U00016e98"
)
"""finishes a line too"""
MARKS = "!/—”:％１〈&(、━\\【#%「」，】；+^]~“《„';’{|∶´[=-`*．（–？！：$～«〉,><》)?）。…@_.\"}►»"
"""words are not made of these, nor of what ends a line, nor of controls"""
CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"

PRONOUNS, ASKED = "i you he she it we they", "who what when where why how there that this"
WILL_OR_WOULD = "'ll ll 'll|'ve ll|ve 'd d 'd|'ve d|ve"
COMPOSED = (
    ("i", "'m m 'm|a m|a"),
    (PRONOUNS, WILL_OR_WOULD),
    ("i you we they", "'ve ve"),
    ("you we they", "'re re"),
    ("he she it", "'s s"),
    (ASKED, "'s s"),
    (ASKED + " these those", WILL_OR_WOULD),
    ("who what when where why how there these those", "'re re 've ve"),
    ("ca could do does did had may might must need ought sha should wo would", "n't nt n't|'ve nt|ve"),
    ("could might must should would", "'ve ve"),
    ("ai are is was were have has dare", "n't nt"),
    ("1 2 3 4 5 6 7 8 9 10 11 12", "a.m. am p.m. pm"),
    ("not", "'ve ve"),
    ("can", "not"),
    ("gon", "na"),
    ("got", "ta"),
    ("let", "'s"),
    ("c'm", "on"),
    ("how", "'d|'y"),
    ("", "y'|all y|all °|c|. °|f|. °|k|. °|C|. °|F|. °|K|."),
)
"""stems, also with a capital, and what is cut off behind them"""
AMBIGUOUS = "Ill ill Its its Hell hell Shell shell Shed shed were Were Well well Whore whore"
"""words that the table above would cut"""
WHOLE = (
    "doin Doin doin' Doin' goin Goin goin' Goin' nothin Nothin nothin' Nothin' nuthin Nuthin nuthin' Nuthin' ol Ol ol' Ol' "
    "somethin Somethin somethin' Somethin' em 'em ll 'll nuff 'nuff 'S 's ‘S ‘s and/or w/o 're 'Cause 'cause 'cos 'Cos 'coz "
    "'Coz 'cuz 'Cuz 'bout ma'am Ma'am o'clock O'clock lovin' Lovin' lovin Lovin havin' Havin' havin Havin Mt. Ak. Ala. Apr. "
    "Ariz. Ark. Aug. Calif. Colo. Conn. Dec. Del. Feb. Fla. Ga. Ia. Id. Ill. Ind. Jan. Jul. Jun. Kan. Kans. Ky. La. Mar. Mass. "
    "Mich. Minn. Miss. N.C. N.D. N.H. N.J. N.M. N.Y. Neb. Nebr. Nev. Nov. Oct. Okla. Ore. Pa. S.C. Sep. Sept. Tenn. Va. Wash. "
    "Wis. 'd a.m. Adm. Bros. co. Co. Corp. D.C. Dr. e.g. E.g. E.G. Gen. Gov. i.e. I.e. I.E. Inc. Jr. Ltd. Md. Messrs. Mo. Mont. "
    "Mr. Mrs. Ms. p.m. Ph.D. Prof. Rep. Rev. Sen. St. vs. v.s. \\t \\n — ' \\\") <space> '' C++ ä. ö. ü. "
    "a. b. c. d. e. f. g. h. i. j. k. l. m. n. o. p. q. r. s. t. u. v. w. x. y. z. "
    ":) :-) :)) :-)) :))) :-))) (: (-: =) (= :] :-] [: [-: [= =] :o) (o: :} :-} 8) 8-) (-8 ;) ;-) (; (-; :( :-( :(( :-(( :((( "
    ":-((( ): )-: =( >:( :') :'-) :'( :'-( :/ :-/ =/ =| :| :-| ]= =[ :1 :P :-P :p :-p :O :-O :o :-o :0 :-0 :() >:o :* :-* :3 :-3 "
    "=3 :> :-> :X :-X :x :-x :D :-D ;D ;-D =D xD XD xDD XDD 8D 8-D ^_^ ^__^ ^___^ >.< >.> <.< ._. ;_; -_- -__- v.v V.V v_v V_V "
    "o_o o_O O_o O_O 0_o o_0 0_0 o.O O.o O.O o.o 0.0 o.0 0.o @_@ <3 <33 <333 </3 (^_^) (-_-) (._.) (>_<) (*_*) (¬_¬) ಠ_ಠ ಠ︵ಠ "
    "(ಠ_ಠ) ¯\\(ツ)/¯ (╯°□°）╯︵┻━┻ ><(((*>"
)
"""abbreviations, clipped words and faces: one token each"""


@functools.cache
def exceptions() -> Mapping[str, tuple[str, ...]]:
    """Each word that is cut in a way of its own, with its tokens; straight and curly apostrophes alike."""
    made: dict[str, tuple[str, ...]] = {}
    for stems, endings in COMPOSED:
        for stem in stems.split(" "):
            for ending in endings.split():
                for first in {stem, stem.capitalize()}:
                    parts = (first, *ending.split("|")) if first else tuple(ending.split("|"))
                    made["".join(parts)] = parts
    made = {word: parts for word, parts in made.items() if word not in AMBIGUOUS.split()}
    made |= {word: (word,) for word in WHOLE.split()}
    curly = {word.replace("'", "’"): tuple(part.replace("'", "’") for part in parts) for word, parts in made.items()}
    return made | curly


@functools.cache
def kinds() -> npt.NDArray[np.uint32]:
    """The kinds of each code point below `TABLE`."""
    characters = [chr(code) for code in range(TABLE)]
    table = np.zeros(TABLE, np.uint32)
    table[[c.isspace() for c in characters]] |= SPACE
    table[[c.isalpha() for c in characters]] |= ALPHABETIC
    table[[c.isalnum() or c == "_" for c in characters]] |= WORD
    categories = [unicodedata.category(c) for c in characters]
    table[[c == "So" for c in categories]] |= SYMBOL | PREFIX | SUFFIX
    table[[c[0] == "P" for c in categories]] |= PUNCTUATION
    for code in _codes(CASED):
        table[code] |= LETTER | (LOWER if chr(code).islower() or code == 0x294 else UPPER if chr(code).isupper() else 0)
    table[list(_codes(UNCASED))] |= LETTER | LOWER | UPPER
    _add(table, LISTED + QUOTES + "—–…", PREFIX | SUFFIX | BEFORE_DOT)
    _add(table, "§%=" + MONEY, PREFIX)
    _add(table, QUOTES, QUOTE)
    _add(table, MONEY, CURRENCY)
    table[(table & LOWER) > 0] |= BEFORE_DOT
    _add(table, "0123456789%²-+|", BEFORE_DOT)
    table[[ord("—"), ord("–")]] &= ~np.uint32(BEFORE_DOT)
    _add(table, _members(BOTH_ENDS), SENTENCE_END | TERMINAL | MARK)
    _add(table, _members(LINE_ENDS), TERMINAL | MARK)
    _add(table, MARKS + _members(CONTROLS), MARK)
    _add(table, _members(SPACELESS_CLASS), SPACELESS)
    return table


def kind_of(code: int) -> int:
    """The kinds of any code point."""
    return int(kinds()[code]) if code < TABLE else HAN if code <= LAST_HAN else 0


def _codes(ranges: str) -> Iterable[int]:
    for one in ranges.split():
        first, _, last = one.partition("-")
        yield from range(int(first, 16), int(last or first, 16) + 1)


def _members(character_class: str) -> str:
    """The characters of a regular expression's class, those above the table left out."""
    found = [f"{one[0]}" if len(one) == 1 else one for one in re.findall(r".-.|.", character_class, re.DOTALL)]
    codes = (range(ord(one[0]), min(ord(one[-1]) + 1, TABLE)) for one in found)
    return "".join(chr(code) for several in codes for code in several)


def _add(table: npt.NDArray[np.uint32], characters: str, kind: int) -> None:
    table[[ord(character) for character in characters]] |= kind

"""Which language a text is in."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AfterValidator, Field

from curate.check import Column, RowCheck, Scores, parameters
from curate.dataset import Names, Roles, Rows
from curate.errors import RequestError
from curate.languages import code_of, with_family
from curate.policy import IsTrue, Rule


def _codes(words: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(code_of(word) for word in words))
    except RequestError as err:
        raise ValueError(f"{err.message} ({err.hint})") from err


@parameters
class Language(RowCheck):
    r"""The language of each row's text, and how sure the model is.

    *Columns*: `language`, an ISO 639-1 code such as `en`, 639-3 where there is none (`yue`), `zxx`
    for what is no language; `confidence`, the model's probability of it, 0 to 1. Where `allowed` is
    given, `not_allowed`: the language is none of these, and the confidence reaches `min_confidence`.

    *Missing*: `language` and `confidence` where no letter sequence is known to the model (empty
    texts, digits, pictures) or all texts are null; `not_allowed` there too and below `min_confidence`, so that
    `on_missing` says what becomes of rows that are too short to tell.

    *Cost*: half a second and 100 MB to read the model, once a process; then about 30 MB/s a core on
    documents of 3 kB, of which it reads `sample_bytes`, and 9 to 20 MB/s on single sentences.

    *Source*: py3langid 0.4 (Barbaresi, after Lui and Baldwin, langid.py, ACL 2012), naive Bayes over byte
    n-grams, 139 languages; compiled here, same answers. It names the language of 96 % of
    Tatoeba's single sentences in 25 languages (98 % where Arabic and Egyptian Arabic count as one), and
    finds 99.8 % of the untranslated English paragraphs of a translated handbook.

    *When it is wrong*: short texts, names and titles ("John Smith" is Irish to it, at 0.03); program
    code, which gets any language at low confidence or English for its comments; close relatives
    (Bulgarian and Macedonian, Danish and Norwegian, Malay and Indonesian, Nigerian Pidgin and
    English); transliterated text. A text in two languages gets one of them: "You can use a CA (see
    قسم 10.2)" is `en`.
    """

    allowed: Annotated[Names, AfterValidator(_codes)] = ()
    """the languages to keep: codes of ISO 639 or English names; a macrolanguage such as `zh` allows its members"""
    min_confidence: Annotated[float, Field(ge=0, le=1)] = 0.5
    """below this probability nothing is said about being allowed"""
    sample_bytes: Annotated[int, Field(ge=96, le=1 << 30)] = 1536
    """of longer texts the beginning, the middle and the end are read, so many bytes together"""

    name: ClassVar[str] = "language"
    version: ClassVar[int] = 2
    sees_nulls: ClassVar[bool] = True

    def columns(self, roles: Roles, schema: pa.Schema) -> tuple[Column, ...]:
        """The language, the confidence and, where languages are listed, the flag."""
        found = [
            Column("language", "category", "the likeliest language, as an ISO 639 code; `zxx` for none"),
            Column("confidence", "measure", "the model's probability of that language", "share"),
        ]
        if self.allowed:
            found.append(Column("not_allowed", "flag", f"the language is surely none of {', '.join(self.allowed)}"))
        return tuple(found)

    def default_rules(self, roles: Roles, schema: pa.Schema) -> tuple[Rule, ...]:
        """Rows in other languages are rejected where `allowed` says which are wanted; else the check only reports."""
        return (IsTrue(is_true="not_allowed"),) if self.allowed else ()

    def identity(self) -> dict[str, Any]:
        """As of any check, and which model answers: another release may answer otherwise."""
        from curate.langid import model_name

        return {**super().identity(), "model": model_name()}

    def score(self, rows: Rows) -> Scores:
        """Several text columns are read as one text, one below the other, nulls left out."""
        from curate.langid import identify

        text = rows.whole_text()
        languages, chances = identify(text.fill_null("") if text.null_count else text, self.sample_bytes)
        confidence = pa.array(chances, from_pandas=True)
        found: dict[str, pa.Array] = {"language": languages, "confidence": confidence}
        if self.allowed:
            allowed = pa.array([code for word in self.allowed for code in with_family(word)])
            sure = pc.greater_equal(confidence, self.min_confidence)
            other = pc.invert(pc.is_in(languages, value_set=allowed))
            found["not_allowed"] = pc.if_else(sure, other, pa.scalar(None, pa.bool_()))
        return found

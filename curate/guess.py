"""What an unknown data set most likely is: which column is the text, the id, the label, and what to run on it.

A guess is made from names and from the first rows, by rules a person can follow, and it is always
said aloud, with the columns that came second; `--set` and a pipeline file overrule it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from curate.check import catalogue
from curate.errors import RequestError
from curate.sample import Look, Sample, first_rows
from curate.source.discover import COMPRESSIONS, FORMATS
from curate.source.options import ReadOptions
from curate.written import dump

STAGES = ("missing", "text_quality", "language", "pii", "exact_dup", "near_dup")
"""The default text pipeline. Checks that look at one row come before those that compare rows: a copy
is removed for the sake of the row that stays, so no later stage should take that row away too. The
passes over the data are the same two in any order."""
TABLE_STAGES = ("missing", "exact_dup")
"""what can be asked of a table without text"""

TEXTS = (
    "text", "content", "body", "document", "raw_content", "raw_text", "full_text", "article", "article_text", "article_body",
    "passage", "paragraph", "message", "review", "review_text", "review_body", "comment", "sentence", "utterance", "transcript",
    "markdown", "code", "abstract", "tweet", "post", "texte", "texto",
)  # fmt: skip
PAIRS = (("instruction", "input", "output"), ("instruction", "output"), ("instruction", "response"), ("prompt", "response"),
         ("prompt", "completion"), ("question", "answer"), ("query", "response"))  # fmt: skip
"""columns that are one text together"""
IDS = (
    "id", "_id", "uuid", "guid", "doc_id", "document_id", "docid", "row_id", "record_id", "rec_id", "key", "identifier", "url",
    "uri", "link", "permalink", "path", "file_name", "filename", "index", "idx",
)  # fmt: skip
LABELS = ("label", "labels", "target", "class", "gold_label", "given_label", "y", "intent", "sentiment", "stars", "rating",
          "category", "outcome")  # fmt: skip
SPLITS = ("split", "subset", "partition", "fold", "set", "data_split", "dataset_split")
SPLIT_VALUES = frozenset({"train", "training", "test", "testing", "valid", "validation", "val", "dev", "eval"})
GROUPS = (
    "lang", "language", "lang_code", "language_code", "locale", "source", "dataset", "corpus", "collection", "domain", "site",
    "host", "publisher", "country", "country_code", "native_country", "region", "edition", "variant", "topic", "genre",
    "category", "type", "kind", "license", "licence", "sex", "gender", "race",
)  # fmt: skip
MOST_UNLIKE = 0.2
"""with more texts than this share unlike web pages, `text_quality` is not let reject any"""
MOST_GROUPS, MOST_CLASSES, MOST_GROUP_VALUES = 3, 1_000, 5_000


@dataclass(frozen=True)
class Guess:
    """A name, the roles by column, why each was chosen, and the columns that came second."""

    name: str
    source: str
    sample: Sample
    read: ReadOptions
    roles: Mapping[str, tuple[str, ...]]
    reasons: Mapping[str, str]
    others: Mapping[str, tuple[str, ...]]

    @property
    def stages(self) -> tuple[str, ...]:
        """The checks of the default pipeline that this installation has."""
        return tuple(name for name in (STAGES if "text" in self.roles else TABLE_STAGES) if name in catalogue())

    def to_dict(self) -> dict[str, Any]:
        """The pipeline that is guessed, as a file would say it."""
        stages = [{name: own} if (own := self.parameters(name)) else name for name in self.stages]
        roles = {role: list(columns) if len(columns) > 1 else columns[0] for role, columns in self.roles.items()}
        out = {"name": self.name, "source": self.source, "roles": roles, "stages": stages, "read": dump(self.read)}
        return {key: value for key, value in out.items() if value}

    def parameters(self, stage: str) -> dict[str, Any]:
        """What a stage is given other than its defaults."""
        if "text" not in self.roles:
            return {"of": self.comparable()}
        return {"preset": "none"} if stage == "text_quality" and self.unlike_pages > MOST_UNLIKE else {}

    @property
    def unlike_pages(self) -> float:
        """The share of texts that are not like the web pages that `text_quality`'s limits were made for."""
        looks = [look for look in self.sample.columns if look.name in self.roles.get("text", ())]
        return min((look.unlike_pages for look in looks), default=0.0)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of the stages before believing them."""
        if "text_quality" not in self.stages or not self.parameters("text_quality"):
            return ()
        share = f"{100 * self.unlike_pages:.0f} %"
        why = f"{share} of the texts are short or not in English, and its limits are made for English web pages"
        return (f"text_quality only scores and rejects nothing: {why}",)

    def comparable(self) -> list[str]:
        """The columns whose cells can be compared, but for the id."""
        return [look.name for look in self.sample.columns if _is_scalar(look.type) and look.name not in self.roles.get("id", ())]

    def described(self) -> dict[str, Any]:
        """The guess for a person or a program: roles, reasons, what came second, and the stages."""
        roles = {
            role: {"columns": list(columns), "because": self.reasons[role], "others": list(self.others.get(role, ()))}
            for role, columns in self.roles.items()
        }
        return {
            "name": self.name,
            "source": self.source,
            "rows_seen": self.sample.rows,
            "roles": roles,
            "stages": list(self.stages),
            "notes": list(self.notes),
        }


def guess(source: str, read: ReadOptions | None = None) -> Guess:
    """Look at the first rows of a source and guess the roles; a role no column fits is left out.

    Raises `InputError` where the source cannot be read and `RequestError` where a CSV file was
    surely cut at the wrong sign.
    """
    read = read or ReadOptions()
    sample = first_rows(source, read)
    _refuse_one_wide_column(sample)
    found: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {}
    for role, finder in _FINDERS.items():
        taken = {column for columns, _, _ in found.values() for column in columns}
        chosen, why, others = finder(Sample(sample.files, sample.rows, tuple(c for c in sample.columns if c.name not in taken)))
        if chosen:
            found[role] = chosen, why, others
    return Guess(
        name_of(source),
        source,
        sample,
        read,
        {role: chosen for role, (chosen, _, _) in found.items()},
        {role: why for role, (_, why, _) in found.items()},
        {role: others for role, (_, _, others) in found.items() if others},
    )


def no_text(found: Guess, data: str) -> RequestError:
    """The error for data without a column to be taken for text: what it has instead, and what to do."""
    columns = "\n".join(f"    {line}" for line in column_lines(found.sample.columns))
    return RequestError(
        f"no column looks like text, so there is nothing to run the default text pipeline on; the columns are\n{columns}",
        place=data,
        hint=f"say which one it is with --set roles.text=COLUMN, or write a pipeline for tables: curate init {quoted(data)}",
    )


def column_lines(columns: Sequence[Look], most: int = 30) -> list[str]:
    """A line a column: its name, its type and what stands in it."""
    shown = columns[:most]
    width = min(max((len(look.name) for look in shown), default=0), 40)
    lines = [f"{look.name:<{width}}  {_told(look)}" for look in shown]
    return lines + ([f"and {len(columns) - most} more"] if len(columns) > most else [])


def quoted(data: str) -> str:
    """A path as a shell takes it."""
    import shlex

    return shlex.quote(data)


def name_of(source: str) -> str:
    """A pipeline's name from a path, a glob or an address: the last step that is a name, without its endings."""
    path = urlsplit(source).path if "://" in source else source
    steps = [step for step in PurePosixPath(path).parts if step not in ("/", "..", ".") and not set(step) & set("*?[")]
    last = steps[-1] if steps else ""
    while PurePosixPath(last).suffix.lower() in (*FORMATS, *COMPRESSIONS, ".json"):
        last = PurePosixPath(last).stem
    return re.sub(r"[^\w.-]+", "-", last).strip("-.") or "data"


def _told(look: Look) -> str:
    kind = str(look.type).replace("large_", "")
    kind = kind if len(kind) <= 40 else kind[:37] + "..."
    if not look.cells:
        return f"{kind}, empty or not looked into"
    parts = [kind, f"{look.distinct:,} distinct in {look.cells:,}"]
    if look.textual:
        parts.append(f"{look.mean_chars:.0f} characters on average")
    return ", ".join(parts)


_Found = tuple[tuple[str, ...], str, tuple[str, ...]]


def _text(sample: Sample) -> _Found:
    """The column named so; else the columns of a known pair; else the longest text that reads like text."""
    texts = [look for look in sample.columns if look.textual and look.cells]
    prose = sorted((look for look in texts if _is_prose(look)), key=lambda look: -look.mean_chars)
    if named := _by_name(texts, TEXTS):
        return (named[0].name,), "its name says so", _names([*named[1:], *prose], named[0].name)
    by_name = {_plain(look.name): look for look in texts}
    for pair in PAIRS:
        if all(name in by_name for name in pair):
            chosen = tuple(by_name[name].name for name in pair)
            return chosen, "their names say that they are one text together", _names(prose, *chosen)
    if prose:
        best = prose[0]
        return (best.name,), f"the longest text, {best.mean_chars:.0f} characters on average", _names(prose, best.name)
    if len(texts) == 1 and texts[0].distinct > texts[0].cells / 2 and texts[0].addresses < 0.5 and _by_name(texts, IDS) == []:
        return (texts[0].name,), "the only column of texts", ()
    return (), "", ()


def _id(sample: Sample) -> _Found:
    """A column that is named like an id and has another value in every row."""
    unique = [
        look
        for look in sample.columns
        if 0 < look.cells == look.distinct == sample.rows and (look.textual or pa.types.is_integer(look.type))
    ]
    named = _by_name(unique, IDS) + [look for look in unique if _plain(look.name).endswith(("_id", "_uuid", "_key", "_guid"))]
    if not named:
        return (), "", ()
    return (named[0].name,), f"named like an id, and unique in the {sample.rows:,} rows seen", _names(named, named[0].name)


def _label(sample: Sample) -> _Found:
    found = _by_name([look for look in sample.columns if _has_classes(look, MOST_CLASSES, least=1)], LABELS)
    found += [look for look in sample.columns if _plain(look.name).endswith("_label") and _has_classes(look, MOST_CLASSES)]
    if not found:
        return (), "", ()
    return (found[0].name,), f"its name says so; {found[0].distinct:,} values", _names(found, found[0].name)


def _split(sample: Sample) -> _Found:
    few = [look for look in sample.columns if 0 < look.distinct <= 20]
    spoken = [look for look in few if look.textual and {value.casefold() for value in look.values} <= SPLIT_VALUES]
    found = _by_name(few, SPLITS) or spoken
    if not found:
        return (), "", ()
    return (found[0].name,), "values: " + ", ".join(sorted(found[0].values)[:5]), _names(found, found[0].name)


def _group(sample: Sample) -> _Found:
    found = [look for look in _by_name(sample.columns, GROUPS) if _has_classes(look, MOST_GROUP_VALUES, least=1)]
    chosen = found[:MOST_GROUPS]
    if not chosen:
        return (), "", ()
    told = ", ".join(f"{look.distinct:,}" for look in chosen)
    names = tuple(look.name for look in chosen)
    return names, f"removal is counted for each of their values ({told})", _names(found, *names)


_FINDERS: dict[str, Callable[[Sample], _Found]] = {"text": _text, "id": _id, "label": _label, "split": _split, "group": _group}


def _by_name(columns: Iterable[Look], names: Sequence[str]) -> list[Look]:
    """The columns that have one of these names, the likeliest name first."""
    ranked = [(names.index(_plain(look.name)), look) for look in columns if _plain(look.name) in names]
    return [look for _, look in sorted(ranked, key=lambda pair: pair[0])]


def _names(columns: Iterable[Look], *but: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(look.name for look in columns if look.name not in but))[:5]


def _plain(name: str) -> str:
    """`docId`, `Doc-ID` and `doc id` are `doc_id`."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[\s.-]+", "_", snake.strip()).lower()


def _is_prose(look: Look) -> bool:
    """Several words a cell, few cells alike, no addresses."""
    varied = look.distinct >= 0.1 * look.cells or look.cells < 50
    return varied and look.mean_words >= 4 and look.mean_chars >= 16 and look.addresses < 0.5


def _has_classes(look: Look, most: int, least: int = 2) -> bool:
    """Values that repeat: at most one in two rows has a value of its own."""
    return least <= look.distinct <= min(most, max(look.cells / 2, 1)) and not pa.types.is_floating(look.type)


def _is_scalar(kind: pa.DataType) -> bool:
    from curate.cells import is_comparable

    return is_comparable(kind)


def _refuse_one_wide_column(sample: Sample) -> None:
    if len(sample.columns) != 1 or sample.files[0].format != "csv":
        return
    name = sample.columns[0].name
    sign = max(";|\t,", key=name.count)
    if name.count(sign):
        written = {"\t": r"\t"}.get(sign, sign)
        raise RequestError(
            f"the whole file is one column, `{name}`: its cells seem to be separated by {sign!r}",
            place=sample.files[0].name,
            hint=f"say so with --set 'read.delimiter=\"{written}\"'",
        )

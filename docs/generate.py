"""The generated part of the guide: a page for every check, and the tables of checks in README.md and docs/README.md.

    python docs/generate.py        writes what is out of date; `make docs` does the same

Everything comes from the catalogue: the fields of a check, the columns and rules it declares, and its docstring, whose
paragraphs begin with a title such as `*Cost*:`. A new check needs no change here; where its default parameters show
too little, or it has none, it gets a stage of its own in `EXAMPLES`.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from curate.check import Check, Column, catalogue
from curate.dataset import Roles
from curate.describe import checks
from curate.pipeline import parse_stage
from curate.policy import Rule
from curate.specfile import flow

ROOT = Path(__file__).resolve().parents[1]
TEXTS: tuple[str, Mapping[str, Any]] = ("sample_data/corpus/en-0004.parquet", {"id": "id", "text": "text"})
COMMENTS: tuple[str, Mapping[str, Any]] = (
    "sample_data/comments/comments.parquet",
    {"id": "id", "text": "text", "label": "label"},
)
PEOPLE: tuple[str, Mapping[str, Any]] = (
    "sample_data/adult/adult.parquet",
    {"id": "id", "label": "income_per_year", "group": ["sex", "race"]},
)
BY_SOURCE: tuple[str, Mapping[str, Any]] = (TEXTS[0], {**TEXTS[1], "split": "source"})
OF_SOURCE: tuple[str, Mapping[str, Any]] = (TEXTS[0], {**TEXTS[1], "label": "source"})
DATA: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "bias": PEOPLE,
    "class_balance": PEOPLE,
    "drift_between_splits": BY_SOURCE,
    "leakage": BY_SOURCE,
    "leaky_columns": OF_SOURCE,
    "non_iid": OF_SOURCE,
    "label_noise": COMMENTS,
    "oof_probs": COMMENTS,
    "spurious": COMMENTS,
}
"""the sample and the roles of a check's example, where these are not `TEXTS`"""
BEFORE: Mapping[str, Sequence[str]] = {"label_noise": ("oof_probs",)}
"""stages that a check's example needs before it"""
EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "bias": {"bias": {"favourable": ">50K", "within": "education", "reference": {"sex": {"Female": 0.5, "Male": 0.5}}}},
    "contamination": {
        "contamination": {"against": "sample_data/corpus/en-0003.csv.gz", "id": "id"}, "reject": [{"is_true": "contaminated"}]
    },
    "drift_between_splits": {"drift_between_splits": {"effect": 0.2}},
    "exact_dup": {"exact_dup": {"of": ["text", "lang"], "prefer": "longest"}},
    "label_noise": {"label_noise": {"budget": 0.1}, "reject": [{"is_true": "likely_wrong"}]},
    "language": {"language": {"allowed": ["en", "de"], "min_confidence": 0.8}},
    "leakage": {"leakage": {"similarity": 0.7, "protect": ["test", "validation"]}},
    "missing": {"missing": {"of": ["text", "source"]}, "reject": [{"is_true": "text_missing"}, {"is_true": "source_null"}]},
    "near_dup": {"near_dup": {"similarity": 0.7, "prefer": "longest"}, "reject": [{"at_least": 0.9, "of": "similarity"}]},
    "pii": {"pii": {}, "reject": [{"at_least": 1, "of": "secrets"}, {"above": 20, "of": "emails"}]},
    "text_quality": {"text_quality": {"preset": ["gopher", "fineweb"]}, "when": 'lang == "eng"'},
}  # fmt: skip
"""a stage that shows what the check can do; other checks show their defaults"""
BEGIN, END = "<!-- checks: written by docs/generate.py -->", "<!-- checks: end -->"
SHAPES = {
    "row": "looks at each row by itself",
    "fit": "looks at each row against the whole",
    "group": "compares rows with each other",
}
COMES_WITH = {"Units": "Columns", "Missing": "Columns", "Raises": "Parameters", "Sources": "Source"}
"""paragraphs of a docstring that stand in the section of another; those with no section of their own say how the check works"""
HOW = "How it works"
SECTIONS = ("Columns", HOW, "Parameters", "Cost", "When it is wrong", "Source")
MANY_RULES = 3


def main() -> int:
    """Write every generated text that is out of date, and drop the pages of checks that are gone."""
    texts = generated(ROOT)
    for path in stray_pages(ROOT, texts):
        path.unlink()
        print(f"dropped {path.relative_to(ROOT)}")
    for path, text in texts.items():
        if not path.exists() or path.read_text("utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 0


def generated(root: Path) -> dict[Path, str]:
    """Every file this script writes, whole or between its two marks, and what it should hold."""
    own = {name: cls for name, cls in catalogue().items() if cls.__module__.startswith("curate.checks.")}
    texts = {root / "docs" / "checks" / f"{name}.md": page(cls) for name, cls in own.items()}
    for file, folder in ((root / "README.md", "docs/checks/"), (root / "docs" / "README.md", "checks/")):
        texts[file] = between_marks(file.read_text("utf-8"), table_of_checks(own.values(), folder))
    return texts


def stray_pages(root: Path, texts: Mapping[Path, str]) -> list[Path]:
    """Pages of checks that the catalogue does not know."""
    return sorted(set((root / "docs" / "checks").glob("*.md")) - set(texts))


def between_marks(text: str, inner: str) -> str:
    """The text with what stands between the two marks replaced; ValueError where a mark is not there exactly once."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"expected `{BEGIN}` and `{END}` once each")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{inner}{END}{rest.split(END)[1]}"


def table_of_checks(classes: Iterable[type[Check]], folder: str) -> str:
    """One line a check: what it gives and what it rejects by itself."""
    lines = []
    for cls in classes:
        about = checks(cls.name)[0]
        lines.append(
            (f"[`{cls.name}`]({folder}{cls.name}.md)", SHAPES[about["shape"]], about["summary"], short(default_rules(cls)))
        )
    return table(("check", "what it does", "what it gives", "rejects by default"), lines)


def page(cls: type[Check]) -> str:
    """The page of one check."""
    about = checks(cls.name)[0]
    check = parse_stage(EXAMPLES.get(cls.name, cls.name)).check
    columns = check.columns(*data(cls.name))
    summary, sections = paragraphs(about["doc"])
    parts: dict[str, list[str]] = {title: list(sections.get(title, ())) for title in SECTIONS}
    if columns:
        parts["Columns"].append(f"For the [example](#example) below:\n\n{table_of_columns(columns)}")
    parts["Parameters"].insert(0, table_of_parameters(about["parameters"]) if about["parameters"] else "None.")
    out = [f"# `{cls.name}`", summary, f"A {about['shape']} check, version {about['version']}: it {SHAPES[about['shape']]}."]
    for title in SECTIONS:
        out += [f"## {title}", *parts[title]] if parts[title] else []
        if title == "Parameters":
            out += ["## What it rejects by default", *rejections(cls), "## Example", example(cls.name)]
    if told := list(differences(cls)):
        out = [text.replace("`DIFFERENCES`", "[Differences](#differences)") for text in out] + told
    out.append("<!-- This page is written by docs/generate.py: change the check's docstring, then run `make docs`. -->")
    return "\n\n".join(part.strip() for part in out) + "\n"


def example(name: str) -> str:
    """A pipeline of the example's one stage, over the sample."""
    stage = EXAMPLES.get(name, name)
    lines = [name] if isinstance(stage, str) else [f"{key}: {flow(value)}" for key, value in stage.items()]
    source, roles = DATA.get(name, TEXTS)
    before = "".join(f"  - {one}\n" for one in BEFORE.get(name, ()))
    head = f"name: example\nsource: {source}\nroles: {flow(roles)}\nstages:\n{before}  - "
    return "```yaml\n" + head + "\n    ".join(lines) + "\n```"


def paragraphs(doc: str) -> tuple[str, dict[str, list[str]]]:
    """A docstring's first paragraph, and the others by the section they belong to.

    `*Cost*: two passes` is in the section `Cost` without its title, and what follows without a title belongs to it too.
    Titles that are no section stay, in bold, where they say how the check works.
    """
    first, *others = doc.split("\n\n")
    found: dict[str, list[str]] = {}
    section = HOW
    for text in others:
        if titled := re.match(r"\*([A-Z][\w ]*)\*(:?)\s*", text):
            title = titled[1]
            section = COMES_WITH.get(title, title if title in SECTIONS else HOW)
            rest = text[titled.end() :]
            alone = title == section or (title in COMES_WITH and title.rstrip("s") == section)
            text = sentence(rest.lstrip(", ")) if alone else f"**{title}**{titled[2]} {rest}"
        found.setdefault(section, []).append(text)
    return " ".join(first.split()), found


def sentence(text: str) -> str:
    """The text with a capital letter, unless it begins with a name such as `py3langid`."""
    return text[:1].upper() + text[1:] if text.split()[0].rstrip(":,.;").isalpha() else text


def table_of_columns(columns: Sequence[Column]) -> str:
    """What a check emits."""
    return table(
        ("column", "[kind](../concepts.md#column)", "unit", "what it says"),
        [(f"`{column.name}`", column.kind, column.unit, column.doc) for column in columns],
    )


def table_of_parameters(parameters: Sequence[Mapping[str, Any]]) -> str:
    """What can be set, with the values that are allowed."""
    lines = []
    for one in parameters:
        default = "required" if one["required"] else written(one["default"])
        lines.append((f"`{one['name']}`", values(one["type"]), default, folded(one["doc"])))
    return table(("parameter", "values", "default", "what it does"), lines)


def written(value: Any) -> str:
    """A default as a pipeline file would write it."""
    if value is None or value == []:
        return "none"
    return f"`{flow(value)}`"


def values(text: str) -> str:
    """The type of a parameter without its repetitions."""
    return re.sub(r"^(.+) \| list of \(\1\)$", r"\1, or a list of these", text)


def folded(text: str) -> str:
    """The text on one line."""
    return " ".join(text.split())


def default_rules(cls: type[Check], parameters: Mapping[str, Any] | None = None) -> tuple[Rule, ...]:
    """The rules of a check on the sample, with its defaults but for these parameters."""
    required = [one["name"] for one in checks(cls.name)[0]["parameters"] if one["required"]]
    given = {name: EXAMPLES[cls.name][cls.name][name] for name in required} | dict(parameters or {})
    check = parse_stage({cls.name: given}).check
    return tuple(check.default_rules(*data(cls.name)))


def data(name: str) -> tuple[Roles, pa.Schema]:
    """The roles and the columns of a check's example."""
    source, roles = DATA.get(name, TEXTS)
    return Roles(**roles), pq.read_schema(ROOT / source)


def short(rules: Sequence[Rule]) -> str:
    """Rules in a table's cell."""
    if len(rules) > MANY_RULES:
        return f"{len(rules)} rules"
    return "; ".join(map(words, rules)) or "nothing, it only reports"


def words(rule: Rule) -> str:
    """A rule as the report words it."""
    if rule.word == "is_true":
        return f"`{rule.column}` is true"
    return f"`{rule.column}` {rule.word.replace('_', ' ')} {getattr(rule, rule.word):g}"


def rejections(cls: type[Check]) -> Iterator[str]:
    """The default policy; where one choice of words changes it, a part for each choice."""
    for name, choices in choices_of(cls).items():
        rules = {choice: default_rules(cls, {name: choice}) for choice in choices}
        if len(set(rules.values())) > 1:
            for choice, some in rules.items():
                yield (
                    f"With `{name}: {choice}`:\n\n{listed(some)}"
                    if some
                    else f"With `{name}: {choice}` nothing: it only reports."
                )
            return
    plain = default_rules(cls)
    yield f"{listed(plain)}" if plain else "Nothing: it only reports."
    shown = EXAMPLES.get(cls.name, {}).get(cls.name, {})
    other = default_rules(cls, shown)
    if {(rule.word, rule.column) for rule in other} != {(rule.word, rule.column) for rule in plain}:
        given = ", ".join(f"`{key}`" for key in shown)
        yield f"With the {given} of the example:\n\n{listed(other)}" if other else f"With the {given} of the example nothing."


def choices_of(cls: type[Check]) -> dict[str, list[str]]:
    """The parameters that are a choice between words, and the words."""
    described = TypeAdapter(cls).json_schema().get("properties", {})
    found: dict[str, list[str]] = {}
    for field in fields(cls):  # type: ignore[arg-type]
        about = described.get(field.name, {})
        for one in (about, *about.get("anyOf", ())):
            if all(isinstance(word, str) for word in one.get("enum", [None])):
                found.setdefault(field.name, one["enum"])
    return found


def listed(rules: Sequence[Rule]) -> str:
    """Rules as a list."""
    return "\n".join(f"- {words(rule)}" for rule in rules)


def differences(cls: type[Check]) -> Iterator[str]:
    """Where a check's module says how it differs from what it follows, in a mapping `DIFFERENCES` with a docstring."""
    module = sys.modules[cls.__module__]
    told: Mapping[str, str] | None = getattr(module, "DIFFERENCES", None)
    if told:
        yield "## Differences"
        yield docstring_of(module, "DIFFERENCES")
        yield table(("what", "how it differs"), [(what, how[:1].upper() + how[1:] + ".") for what, how in told.items()])


def docstring_of(module: Any, variable: str) -> str:
    """The text that stands under a module's variable."""
    body = ast.parse(inspect.getsource(module)).body
    for statement, after in itertools.pairwise(body):
        target = statement.target if isinstance(statement, ast.AnnAssign) else None
        if isinstance(target, ast.Name) and target.id == variable and isinstance(after, ast.Expr):
            return folded(str(ast.literal_eval(after.value)))
    return ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a bar inside a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())

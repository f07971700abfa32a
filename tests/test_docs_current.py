"""The generated part of the guide is what the checks say today: `make docs` renews it."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from curate.check import catalogue

ROOT = Path(__file__).resolve().parents[1]
MARKDOWN = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


@pytest.fixture(scope="module")
def generate() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_generated_pages_and_tables_are_current(generate: ModuleType):
    texts = generate.generated(ROOT)

    old = [str(path.relative_to(ROOT)) for path, text in texts.items() if not path.exists() or path.read_text("utf-8") != text]

    assert not old, f"out of date, renew with `make docs`: {old}"
    assert not generate.stray_pages(ROOT, texts)


def test_every_check_has_a_page_with_every_section(generate: ModuleType):
    own = [name for name, cls in catalogue().items() if cls.__module__.startswith("curate.checks.")]

    pages = {path.stem: path.read_text("utf-8") for path in (ROOT / "docs" / "checks").glob("*.md")}

    assert sorted(pages) == sorted(own)
    for name, page in pages.items():
        for title in ("Columns", "Parameters", "What it rejects by default", "Example", "Cost", "When it is wrong"):
            assert f"\n## {title}\n" in page, f"{name} does not say: {title}"


def test_the_pages_of_a_check_come_from_its_docstring(generate: ModuleType):
    doc = "What it gives.\n\n*Columns*: one.\n\n- `a`\n\n*The rule*: some.\n\n*Missing*: never.\n\n*Source*: py3langid 0.4."

    summary, sections = generate.paragraphs(doc)

    assert summary == "What it gives."
    assert sections == {
        "Columns": ["One.", "- `a`", "**Missing**: never."],
        "How it works": ["**The rule**: some."],
        "Source": ["py3langid 0.4."],
    }


def test_a_document_without_the_marks_is_refused(generate: ModuleType):
    with pytest.raises(ValueError, match="once each"):
        generate.between_marks("no marks", "table")


@pytest.mark.parametrize("document", MARKDOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_inside_the_repository_lead_somewhere(document: Path):
    prose = re.sub(r"^```.*?^```", "", document.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        path = (document.parent / file).resolve() if file else document
        assert path.exists(), f"`{target}` is not there"
        if anchor:
            assert anchor in anchors(path.read_text("utf-8")), f"`{target}`: no such heading"


def anchors(text: str) -> set[str]:
    """The anchors GitHub gives the headings of a document."""
    headings = re.findall(r"^#+ +(.+?) *$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

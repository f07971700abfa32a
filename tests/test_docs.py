"""Every fenced block of README.md and of all Markdown in docs/ is run, in order, in a copy of the sample data.

| block     | what happens                                                                                     |
|-----------|--------------------------------------------------------------------------------------------------|
| `bash`    | the script must end with exit code 0                                                             |
| `console` | each `$ command` must end with exit code 0; `<!-- exits 3 -->` before the block says otherwise;  |
|           | `<!-- output compared -->` before the block holds the output to what is printed, `...` for any   |
| `python`  | the program must end with exit code 0                                                            |
| `yaml`    | what has a `source` and `stages` is given to `curate plan`                                       |
| other     | nothing; but a block must say what it is                                                         |

`<!-- not run: reason -->` before a block is the one way to leave it out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from ruamel.yaml import YAML, YAMLError

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
NOTE = re.compile(r"\s*<!--\s*(not run: \S.*?|output compared|exits \d+)\s*-->\s*")
PROGRESS = re.compile(r"^[^\n]+: (?:\d+ parts? of|done, \d+ parts?)[^\n]*\n", re.MULTILINE)
SECONDS = 120


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, the line it begins on and the notes before it."""

    language: str
    text: str
    line: int
    notes: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        return not any(note.startswith("not run: ") for note in self.notes)

    @property
    def exit_code(self) -> int:
        return next((int(note.removeprefix("exits ")) for note in self.notes if note.startswith("exits ")), 0)


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a document in order; notes hold for the next block, across blank lines only."""
    notes: list[str] = []
    lines = enumerate(text.splitlines(), 1)
    for number, line in lines:
        if fence := re.match(r"( *)(`{3,}|~{3,}) *(\w*)", line):
            indent, mark, language = fence.groups()
            inside = []
            for _, inner in lines:
                if inner.strip() == mark:
                    break
                inside.append(inner.removeprefix(indent))
            yield Block(language, "\n".join(inside) + "\n", number, tuple(notes))
            notes = []
        elif note := NOTE.fullmatch(line):
            notes.append(note[1])
        elif line.strip():
            notes = []


def run(command: list[str], workspace: Path) -> tuple[int, str]:
    """The exit code and everything printed, with the commands of this Python's environment first."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "100", "TERM": "dumb", "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTHONWARNINGS", None)
    done = subprocess.run(
        command, cwd=workspace, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.decode("utf-8", "replace")


def check(block: Block, workspace: Path) -> None:
    """Run one block; `AssertionError` says what it did instead."""
    assert block.language, "the block does not say what it is (```bash, ```text, ...)"
    if not block.runs:
        return
    match block.language:
        case "bash":
            succeeds(["bash", "-euo", "pipefail", "-c", block.text], block, workspace)
        case "console":
            for command, expected in commands(block.text):
                output = succeeds(["bash", "-c", command], block, workspace)
                if "output compared" in block.notes:
                    assert agrees(expected, output), f"$ {command}\nprinted\n{output}\nand not\n{expected}"
        case "python":
            program = workspace / f"block_{block.line}.py"
            program.write_text(block.text, "utf-8")
            succeeds([sys.executable, program.name], block, workspace)
        case "yaml" if is_pipeline(block.text):
            pipeline = workspace / f"block_{block.line}.yaml"
            pipeline.write_text(block.text, "utf-8")
            succeeds(["curate", "plan", pipeline.name], block, workspace)


def succeeds(command: list[str], block: Block, workspace: Path) -> str:
    code, output = run(command, workspace)
    assert code == block.exit_code, f"exit code {code}, expected {block.exit_code}:\n{block.text}\n{output}"
    return output


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The `$ command`s of a console block (`> ` continues one), each with the output shown under it."""
    for piece in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        first, *rest = piece.splitlines()
        while rest and rest[0].startswith("> "):
            first += "\n" + rest.pop(0)[2:]
        yield first, "\n".join(rest)


def agrees(expected: str, output: str) -> bool:
    """True where the output is what was shown, `...` standing for anything; white space at line ends aside.

    Lines of progress, which only a slow machine prints, are passed over.
    """
    output = PROGRESS.sub("", output)
    shown, printed = ("\n".join(line.rstrip() for line in text.strip().splitlines()) for text in (expected, output))
    return bool(re.fullmatch(".*?".join(map(re.escape, shown.split("..."))), printed, re.DOTALL))


def is_pipeline(text: str) -> bool:
    try:
        loaded = YAML(typ="safe", pure=True).load(text)
    except YAMLError as err:
        raise AssertionError(f"not YAML: {err}") from err
    return isinstance(loaded, dict) and {"source", "stages"} <= set(loaded)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder like a fresh checkout, as far as the documents need one."""
    for name in ("sample_data", "pipelines"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_block_of_a_document_does_what_it_says(document: Path, workspace: Path):
    for block in blocks(document.read_text("utf-8")):
        try:
            check(block, workspace)
        except AssertionError as err:
            pytest.fail(f"{document.relative_to(ROOT)}, line {block.line}: {err}", pytrace=False)


def test_blocks_are_found_with_their_notes():
    text = "a\n<!-- not run: needs the network -->\n\n```bash\npip\n```\n<!-- exits 3 -->\ntext\n```console\n$ x\n```\n"

    found = list(blocks(text))

    assert [(block.language, block.line, block.runs, block.exit_code) for block in found] == [
        ("bash", 4, False, 0),
        ("console", 9, True, 0),
    ]


def test_a_note_without_a_reason_leaves_nothing_out():
    assert next(blocks("<!-- not run: -->\n```bash\nfalse\n```\n")).runs


@pytest.mark.parametrize(
    "text",
    [
        "```bash\nfalse\ntrue\n```\n",
        "```console\n$ exit 3\n```\n",
        "```python\nraise SystemExit(1)\n```\n",
        "```yaml\na: [\n```\n",
        "```\nwhat is this\n```\n",
        "<!-- output compared -->\n```console\n$ echo a\nb\n```\n",
        "<!-- exits 3 -->\n```bash\ntrue\n```\n",
    ],
)
def test_a_block_that_does_not_hold_fails(text: str, tmp_path: Path):
    with pytest.raises(AssertionError):
        check(next(blocks(text)), tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "```bash\necho a > made\ntest -f made\n```\n",
        "<!-- exits 3 -->\n```console\n$ exit 3\n```\n",
        "<!-- output compared -->\n```console\n$ echo a 12 s\na ... s\n$ printf 'x\\n\\ny\\n'; \\\n> echo z\nx\n...\nz\n```\n",
        "```yaml\ngate: []\n```\n",
        "```text\nanything\n```\n",
        "<!-- not run: no such thing -->\n```bash\nfalse\n```\n",
    ],
)
def test_a_block_that_holds_passes(text: str, tmp_path: Path):
    check(next(blocks(text)), tmp_path)

"""The house rules that no linter knows, checked over the syntax tree: `python .ci/house_rules.py [ROOT]`.

1. `checks/` and `kernels/` import no engine, store, command line or renderer.
2. No heavy library is imported when `curate` is: only inside the function that needs it (numba: in `kernels/` too).
3. Nothing reads pickles, evaluates text as code or loads YAML with tags. A line that must, says `# allowed because: ...`.
4. A file of more than 400 lines says why: `# long because: ...`.
5. No file names a machine's folders or a package registry's host.
6. `curate --help` answers within half a second (median of five).
"""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PURE = ("checks", "kernels")
RIM = ("engines", "store", "cli", "render")
HEAVY = ("pandas", "sklearn", "cleanlab", "torch", "ray", "datasketch", "numba")
PICKLERS = ("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "shelve", "marshal", "joblib")
EVALUATORS = ("eval", "exec", "compile", "__import__")
MAX_LINES = 400
MAX_HELP_S = 0.5
MACHINE = re.compile(
    r"(?<![\w.])/(?:work|farm|root)/|(?<![\w.])/(?:home|Users)/[a-z]|(?<![\w.])/tmp/\w|pypi[.](?:org|io)|python[h]osted|npmjs[.]|deb[.]debian"
)
OTHERS_TEXT = ("LICENSE", "sample_data/corpus/")


@dataclass(frozen=True, order=True)
class Breach:
    """One broken rule and where."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


def main() -> int:
    """Print every breach; the exit code says whether there was one."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
    found = [*map(str, breaches(root)), *slow_help()]
    print(*found, f"house rules: {len(found)} broken" if found else "house rules: all kept", sep="\n")
    return 1 if found else 0


def breaches(root: Path) -> list[Breach]:
    """Every breach of the rules that can be read from the files, in order."""
    found: list[Breach] = []
    for path in files_of(root):
        name = path.relative_to(root).as_posix()
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        if not name.startswith(OTHERS_TEXT):
            found += machine_names(name, text)
        if path.suffix == ".py":
            found += too_long(name, text)
        if path.suffix == ".py" and name.startswith("curate/"):
            tree = ast.parse(text, name)
            found += [*outward_imports(name, tree), *heavy_imports(name, tree), *unsafe_code(name, tree, text.splitlines())]
    return sorted(found)


def files_of(root: Path) -> list[Path]:
    """The files git tracks or would track; every file where there is no git."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, check=False
    )
    if listed.returncode == 0:
        paths = [root / name for name in listed.stdout.decode().split("\0") if name]
    else:
        paths = [path for path in root.rglob("*") if not any(part.startswith((".venv", ".git")) for part in path.parts)]
    return sorted(path for path in paths if path.is_file())


def outward_imports(name: str, tree: ast.Module) -> Iterator[Breach]:
    """Rule 1, wherever in the file the import stands."""
    if len(parts := name.split("/")) < 3 or parts[1] not in PURE:
        return
    for node in statements(tree):
        for module in imported(node, name):
            if module.startswith(tuple(f"curate.{rim}" for rim in RIM)):
                yield Breach(name, node.lineno, f"`{parts[1]}/` must not know `{module}`")


def heavy_imports(name: str, tree: ast.Module) -> Iterator[Breach]:
    """Rule 2: imports that run when the module does."""
    for node in statements(tree, late=False):
        for module in imported(node, name):
            library = module.partition(".")[0]
            if library in HEAVY and not (library == "numba" and name.startswith("curate/kernels/")):
                yield Breach(name, node.lineno, f"`{library}` is heavy: import it inside the function that uses it")


def unsafe_code(name: str, tree: ast.Module, lines: list[str]) -> Iterator[Breach]:
    """Rule 3."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.stmt | ast.expr)
            and (fault := unsafe(node, name))
            and not reason(lines[node.lineno - 1], "allowed")
        ):
            yield Breach(name, node.lineno, fault)


def unsafe(node: ast.AST, name: str) -> str:
    """What is unsafe about one statement or call; nothing if it is not."""
    for module in imported(node, name):
        if module.partition(".")[0] in PICKLERS:
            return f"`{module}` reads pickles"
        if module.partition(".")[0] == "yaml":
            return "`yaml` obeys tags and turns `no` into false: use curate.specfile"
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in EVALUATORS:
            return f"`{node.func.id}` runs text as code"
        if any(word.arg == "allow_pickle" and not is_false(word.value) for word in node.keywords):
            return "`allow_pickle` reads pickles"
    return ""


def is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def too_long(name: str, text: str) -> Iterator[Breach]:
    """Rule 4."""
    lines = text.splitlines()
    if len(lines) > MAX_LINES and not any(reason(line, "long") for line in lines):
        yield Breach(name, len(lines), f"more than {MAX_LINES} lines: split it, or say `# long because: ...`")


def machine_names(name: str, text: str) -> Iterator[Breach]:
    """Rule 5."""
    for number, line in enumerate(text.splitlines(), 1):
        if found := MACHINE.search(line):
            yield Breach(name, number, f"`{found[0]}` belongs to one machine or registry")


def slow_help(runs: int = 5) -> list[str]:
    """Rule 6, for the `curate` beside this Python."""
    command = Path(sys.executable).parent / "curate"
    if not command.exists():
        return [f"`curate --help` could not be timed: no command `curate` beside {sys.executable}"]
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        done = subprocess.run([command, "--help"], capture_output=True, text=True, check=False)
        times.append(time.perf_counter() - start)
        if done.returncode:
            return [f"`curate --help` fails: {done.stderr.strip().splitlines()[-1:]}"]
    median = statistics.median(times)
    return [] if median < MAX_HELP_S else [f"`curate --help` takes {median:.2f} s, more than {MAX_HELP_S} s"]


def imported(node: ast.AST, name: str) -> list[str]:
    """The absolute module names that an import statement may load; none for any other node."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        package = name.split("/")[: -node.level]
        base = ".".join([*package, base]) if base else ".".join(package)
    return [base, *(f"{base}.{alias.name}" for alias in node.names)]


def statements(tree: ast.AST, late: bool = True) -> Iterator[ast.stmt]:
    """Every statement; unless `late`, only those that run on import: no function bodies, nothing for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if not late and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if not late and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node = ast.Module(node.orelse, [])
        if isinstance(node, ast.stmt):
            yield node
        yield from statements(node, late)


def reason(line: str, word: str) -> bool:
    """True where a line carries `# <word> because:` and a reason."""
    return bool(re.search(rf"# {word} because: *\S", line))


if __name__ == "__main__":
    sys.exit(main())

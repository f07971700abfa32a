"""The command line: parse, call `curate.api`, print, leave with the right exit code; nothing else.

Human text goes to stderr. With `--json` exactly one JSON document goes to stdout, for errors
too. Exit codes: 0 done, 1 our bug, 2 wrong request, 3 the gate said no, 4 unreadable input,
5 another run holds the output, 75 try again, 130 stopped with Ctrl-C.

Nothing heavy is imported before a command runs, so `curate --help` is quick.
"""

# long because: every command and every exit code are found in one place

from __future__ import annotations

import contextlib
import errno
import gc
import json
import math
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curate.errors import CurateError
from curate.render.words import safe

if TYPE_CHECKING:
    from rich.console import RenderableType

    from curate.pipeline import Pipeline

STOPPED = 130
PIPE_CLOSED = 141
_USAGE_ERROR: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "UsageError")
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)

app = typer.Typer(
    name="curate",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

PipelineFile = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE", help="The pipeline file, .yaml or .json; or the data itself, for the default text pipeline."
    ),
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")]
Source = Annotated[
    list[str] | None,
    typer.Option("--source", metavar="PATH", help="Read this instead of the pipeline's source; may be repeated."),
]
Json = Annotated[bool, typer.Option("--json", help="Print exactly one JSON document on stdout.")]
Workers = Annotated[
    int | None, typer.Option("--workers", metavar="N", help="Processes to use; the cores that fit the memory unless given.")
]
Memory = Annotated[
    str | None, typer.Option("--memory", metavar="SIZE", help="Memory to use, such as 8GB; 60 % of the machine unless given.")
]
Baseline = Annotated[
    Path | None, typer.Option("--baseline", metavar="RUN", help="The run that relative limits of the gate compare with.")
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change the pipeline, such as near_dup.similarity=0.9; may be repeated."),
]


def main(arguments: Sequence[str] | None = None, *, alone: bool = False) -> int:
    """Run one command and give its exit code; `alone`: the process does nothing else."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in given
    try:
        code = int(app(args=given, prog_name="curate", standalone_mode=False, obj=alone) or 0)
        return _stopped(as_json) if code == STOPPED else code  # typer has caught the Ctrl-C
    except typer.Exit as stop:
        return stop.exit_code
    except _USAGE_ERROR as err:
        return _usage(err, as_json)
    except CurateError as err:
        return _fail(err.message, err.exit_code, as_json, type(err).__name__, err.place, err.hint)
    except (KeyboardInterrupt, typer.Abort):
        return _stopped(as_json)
    except BrokenPipeError:
        _forget_pipes()
        return PIPE_CLOSED
    except MemoryError:
        return _fail(
            "the memory is not enough", 75, as_json, "TemporaryError", hint="run again with a smaller --memory or fewer --workers"
        )
    except OSError as err:
        return _system(err, as_json)
    except Exception as err:  # our own bug, whatever it is
        return _bug(err, as_json)


def leave() -> None:
    """Run one command and end the process with its exit code at once: to take compiled code apart costs 0.4 s."""
    gc.set_threshold(50_000)  # what a command makes lives as long as it does
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads spin at the start; models run on one thread
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "1000")  # ms: batches follow each other, and fresh memory must be zeroed
    code = main(alone=True)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or PIPE_CLOSED
    os._exit(code)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Check a data set, keep what passes, and account for every row."""
    if version:
        from curate.doctor import own_version

        typer.echo(f"curate {own_version()}")
        raise typer.Exit


@app.command()
def plan(
    pipeline: PipelineFile,
    source: Source = None,
    memory: Memory = None,
    workers: Workers = None,
    changes: Changes = None,
    as_json: Json = False,
) -> None:
    """Say what a run would do, and what it would take, without doing it."""
    from curate import api
    from curate.render import listing

    loaded, _ = _load(pipeline, changes or [])
    found = api.plan(loaded, source=_sources(source), memory=_bytes(memory), workers=workers).to_dict()
    _show(listing.plan(found), found, as_json)


@app.command()
def run(
    context: typer.Context,
    pipeline: PipelineFile,
    source: Source = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="Where the run goes; runs/NAME unless given.")
    ] = None,
    engine: Annotated[str, typer.Option("--engine", help="Where the work is done: local.")] = "local",
    workers: Workers = None,
    memory: Memory = None,
    until: Annotated[str | None, typer.Option("--until", metavar="STAGE", help="Stop after this stage.")] = None,
    changes: Changes = None,
    as_json: Json = False,
    events: Annotated[Path | None, typer.Option("--events", metavar="FILE", help="Append what happens as JSON lines.")] = None,
    baseline: Baseline = None,
) -> None:
    """Run a pipeline: kept, rejected and quarantined rows, with the reason of each.

    Given data instead, a file, a folder or a glob, it guesses the roles of the columns, says so, and runs
    the default text pipeline.
    """
    from curate import api, ci
    from curate.lean import can_do_without, lean
    from curate.render import terminal
    from curate.render.progress import TerminalProgress

    loaded, assumed = _load(pipeline, changes or [])
    slim = context.obj and can_do_without(stage.check for stage in loaded.stages)
    with TerminalProgress(terminal.console_on()) as bars, lean() if slim else contextlib.nullcontext():
        done = api.run(
            loaded,
            source=_sources(source),
            out=out,
            engine=engine,
            workers=workers,
            memory=_bytes(memory),
            until=until,
            baseline=baseline,
            progress=bars,
            events=events,
        )
    document = {"path": str(done.path), "exit_code": done.exit_code, "report": done.report, "gate": done.gate}
    document |= {"assumed": assumed} if assumed else {}
    ci.announce(done.report, done.gate, _near(done.path))
    _show(terminal.summary(done.report, done.gate, _near(done.path)), document, as_json)
    raise typer.Exit(done.exit_code)


@app.command()
def gate(
    run: RunFolder,
    baseline: Baseline = None,
    as_json: Json = False,
) -> None:
    """Hold a finished run against the limits of its gate."""
    from curate import api, ci
    from curate.render import terminal
    from curate.rundir import read_document

    answer = api.gate(run, baseline=baseline)
    ci.announce(read_document(run, "report.json"), answer, run)
    _show(terminal.verdict(answer), answer, as_json)
    raise typer.Exit(answer["exit_code"])


@app.command()
def init(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A file, a folder, a glob or an address.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The pipeline file to write.")] = Path("pipeline.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there already.")] = False,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Say what would be guessed, such as roles.text=body; may be repeated."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Look at some data and write a commented pipeline for it."""
    from curate import api
    from curate.render import guesses

    told = api.init(data, out, force, changes or [])
    _show(guesses.written(told), told, as_json)


@app.command()
def report(run: RunFolder, as_json: Json = False) -> None:
    """Write the page report.html of a finished run again, without touching data."""
    from rich.text import Text

    from curate import api

    page = api.report(run)
    _show(Text(f"Wrote {safe(_near(page.absolute()))}"), {"path": str(page.absolute())}, as_json)


@app.command()
def why(
    run: RunFolder,
    row: Annotated[str, typer.Argument(metavar="ROW-OR-ID", help="A row number, counted from 0, or the row's own id.")],
    as_json: Json = False,
) -> None:
    """Say why a row was kept, rejected or quarantined: every score, rule, limit and its witness."""
    from curate import why as explaining
    from curate.render import explain

    answer = explaining.why(run, row)
    _show(explain.why(answer), answer, as_json)


@app.command()
def diff(
    before: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run.")],
    after: Annotated[Path, typer.Argument(metavar="RUN", help="Another one of the same data.")],
    as_json: Json = False,
) -> None:
    """Say what two runs decided differently."""
    from curate import api
    from curate.render import explain

    answer = api.diff(before, after)
    _show(explain.diff(answer), answer, as_json)


@app.command()
def index(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of an index of accepted rows.")],
    delete: Annotated[
        Path | None, typer.Option("--delete", metavar="FILE-OF-IDS", help="Forget the rows with these ids, an id a line.")
    ] = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Write it as one segment; deleted rows leave the disk only then.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what an index of accepted rows holds; delete ids from it, or compact it."""
    from curate import api
    from curate.render import explain

    found = api.index(folder, delete=delete, compact=compact)
    _show(explain.facts(found), found, as_json)


@app.command()
def checks(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One check, with its parameters.")] = None,
    as_json: Json = False,
) -> None:
    """List the checks, or explain one."""
    from curate import api
    from curate.render import listing

    found = api.checks(name)
    if name is None:
        _show(listing.checks(found), found, as_json)
    else:
        _show(listing.check(found[0]), found[0], as_json)


@app.command()
def schema() -> None:
    """Print the JSON Schema of pipeline files on stdout."""
    from curate import api

    _emit(api.schema(), indent=2)


@app.command()
def doctor(as_json: Json = False) -> None:
    """Say what this machine offers, and try a small run on it."""
    from curate import api
    from curate.render import listing

    found = api.doctor()
    _show(listing.doctor(found), found, as_json)
    raise typer.Exit(0 if found["self_test"]["passed"] else 1)


def _load(given: str, changes: list[str]) -> tuple[Pipeline, dict[str, Any]]:
    """The pipeline of a file, or for data the one that is guessed, with what it assumes; that is said on stderr."""
    from curate import api
    from curate.specfile import is_pipeline

    if is_pipeline(given):
        return api.load(given, changes), {}
    from curate.render import guesses

    pipeline, assumed = api.assume(given, changes)
    _show(guesses.assumed(assumed), None, as_json=False)
    return pipeline, assumed


def _sources(given: list[str] | None) -> str | list[str] | None:
    if not given:
        return None
    return given[0] if len(given) == 1 else given


def _near(path: Path) -> Path:
    """The path as a person here would type it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _bytes(given: str | None) -> int | None:
    from curate.written import parse_size

    return None if given is None else parse_size(given, "--memory")


def _show(text: RenderableType, document: Any, as_json: bool) -> None:
    """The text on stderr, and with `--json` the document on stdout."""
    from curate import ci
    from curate.render.terminal import console_on, show

    with ci.plain_text():
        show(console_on(), text)
    if as_json:
        _emit(document)


def _emit(document: Any, indent: int | None = None) -> None:
    """One JSON document on stdout. A reader that left early changes no exit code."""
    try:
        sys.stdout.write(json.dumps(_plain(document), indent=indent, allow_nan=False, default=str) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_pipes(sys.stdout.fileno())


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity: they are null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _forget_pipes(*streams: int) -> None:
    """Let what is still buffered for a closed pipe go nowhere, so that leaving raises nothing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams or (1, 2):
        os.dup2(nowhere, stream)


def _fail(message: str, code: int, as_json: bool, kind: str, place: str = "", hint: str = "") -> int:
    from curate import ci

    try:
        with ci.plain_text():
            print(f"error: {safe(message, lines=True)}", file=sys.stderr)
            for word, text in (("where", place), ("try", hint)):
                if text:
                    print(f"  {word}: {safe(text, lines=True)}", file=sys.stderr)
        ci.announce_error(message, place, hint)
    except BrokenPipeError:
        _forget_pipes()
    if as_json:
        _emit({"error": {"kind": kind, "message": message, "place": place, "hint": hint, "exit_code": code}})
    return code


def _stopped(as_json: bool) -> int:
    return _fail("stopped; run the same command again to go on", STOPPED, as_json, "Stopped")


def _usage(err: Exception, as_json: bool) -> int:
    show = getattr(err, "show", None)
    if type(err).__name__ == "NoArgsIsHelpError" and show is not None:
        show()
        return 2
    context = getattr(err, "ctx", None)
    command = context.command_path if context is not None else "curate"
    message = err.format_message() if hasattr(err, "format_message") else str(err)
    several = "unexpected extra argument" in message
    hint = "one at a time: name the folder, or quote the glob so that the shell leaves it alone; " if several else ""
    return _fail(message.rstrip("."), 2, as_json, "UsageError", "the command line", f"{hint}{command} --help")


def _system(err: OSError, as_json: bool) -> int:
    place = str(err.filename or "")
    if err.errno in _DISK_FULL:
        hint = "free some space and run the same command again: finished work is not done twice"
        return _fail("the disk is full", 75, as_json, "TemporaryError", place, hint)
    if err.errno in _NOT_ALLOWED:
        reason = f"the system refuses: {err.strerror}"
        return _fail(reason, 2, as_json, type(err).__name__, place, "choose a folder this user may write to, such as with --out")
    return _bug(err, as_json)


def _bug(err: Exception, as_json: bool) -> int:
    print("".join(traceback.format_exception(err)), file=sys.stderr)
    hint = "a bug in curate, or in a check of yours: report ours with the text above and what `curate doctor --json` says"
    place = next(iter(getattr(err, "__notes__", ())), "")
    return _fail(f"internal error: {type(err).__name__}: {err}", 1, as_json, "InternalError", place, hint)


if __name__ == "__main__":
    leave()

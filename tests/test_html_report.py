# long because: one run with a mark in every field serves all tests, in the parser and in the browser
from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.disparity import compared
from curate.render.advice import advise, interval
from curate.render.highlight import compare
from curate.render.html import MAX_BYTES, render
from curate.render.svg import histogram
from curate.render.visible import visible

DATA = Path(__file__).parent / "data"
BLANK_BYTES = 50_000
BROWSERS_OWN = (b"//clients2.google.com/", b"update.googleapis.com", b"CONNECT accounts.google.com:443")
"""what Chromium asks for by itself, on an empty page too"""
CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
Mark = Callable[[str], str]
Documents = tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]


def plain(field: str) -> str:
    return field


def reason(column: str, rows: int, rule: str = "at_least", limit: float | None = 0.8) -> dict[str, Any]:
    return {"rule": rule, "column": column, "limit": limit, "rows": rows}


def tally(rows: int, rejected: int) -> dict[str, Any]:
    return {"input": rows, "kept": rows - rejected, "rejected": rejected, "quarantined": 0, "rejected_share": rejected / rows}


def score(kind: str, doc: str, unit: str = "", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "unit": unit, "doc": doc, "count": 900, "missing": 10, **more}


def documents(
    mark: Mark = plain,
    *,
    reasons: int = 2,
    samples: int = 2,
    values: int = 3,
    text: str = "one two three",
    like: str = "",
    rows: int = 1_000,
) -> Documents:
    """The documents of a run with something in every field; `mark` writes each name and text a user could choose."""
    taken = [max(1, rows // 10 - at) for at in range(reasons)]
    columns = [mark(f"score{at}") for at in range(reasons)]
    bins = [[0.7, 0.75, 40], [0.8, 0.85, 5], [0.95, 1.0, 60]]
    scores = {column: score("measure", mark("doc"), "share", min=0.7, max=1.0, mean=0.8, bins=bins) for column in columns}
    scores[mark("size")] = score(
        "measure", mark("doc"), mark("unit"), min=1.0, max=9e9, mean=3.0, bins=[[1, 2, 80], [1e9, None, 2]]
    )
    scores[mark("flag")] = score("flag", mark("doc"), true=12)
    scores[mark("never")] = score("flag", mark("doc"), true=0)
    scores[mark("tongue")] = score(
        "category", mark("doc"), words={mark(f"word{at}"): 9 for at in range(values)}, distinct=9, other=3
    )
    rejected = sum(taken)
    stage = {
        "check": mark("check"),
        "version": 1,
        "status": "evaluated",
        "reason": None,
        "rows_in": rows,
        "asked": rows - 5,
        "missing": 10,
        "covered_share": 0.5,
        "rejected": rejected,
        "rejected_share": rejected / rows,
        "reasons": [reason(column, many) for column, many in zip(columns, taken, strict=True)],
        "scores": scores,
        "groups": {"groups": 2, "rows": 6, "largest": [{"witness_row": 3, "rows": 4, "witness_id": mark("leader")}]},
        "detail": {mark("detail"): mark("detail value")},
        "kept": rows - rejected,
    }
    idle = {**stage, "status": "not evaluated", "reason": mark("not evaluated"), "reasons": [], "scores": {}, "rejected": 0}
    first, second = mark("stage"), mark("idle")
    more = compared({mark("value0"): (7, 100), mark("value1"): (50, 100)})
    whole = {**more, "stages": {first: more}}
    step = {
        "read_s": 0.5,
        "decode_s": 1.0,
        "score_s": 2.0,
        "write_s": 0.1,
        "wall_s": 3.6,
        "rows": rows,
        "bytes_read": 10,
        "bytes_written": 9,
    }
    report = {
        "version": 1,
        "name": mark("name"),
        "status": mark("status"),
        "rows": {"input": rows, "kept": rows - rejected, "rejected": rejected, "quarantined": 2},
        "kept_share": (rows - rejected) / rows,
        "rejected_share": rejected / rows,
        "quarantined_share": 2 / rows,
        "stages": {first: stage, second: idle},
        "sources": {mark(f"file{at}"): tally(100, 90 if at == 1 else 5) for at in range(values)},
        "groups": {mark("group"): {mark(f"value{at}"): tally(100, 7) for at in range(values)}},
        "labels": {mark("label"): {mark("class"): tally(100, 7)}},
        "disparity": {mark("group"): whole},
        "uneven": [{"column": mark("group"), "stage": first, "text": mark("loses more")}],
        "quarantine": {
            "reasons": {mark("unreadable"): 2},
            "examples": [{"source_file": mark("bad file"), "source_row": 1, "line": 2, "reason": mark("bad")}],
        },
        "casts": [mark("cast")],
        "warnings": [mark("warning")],
        "witness_rejected_later": 3,
        "costs": {
            **step,
            "waiting_s": 0.3,
            "workers": 2,
            "peak_memory_bytes": 1e6,
            "tasks": 9,
            "tasks_reused": 0,
            "stages": {first: step},
        },
    }
    manifest = {
        "finished": mark("finished"),
        "started": mark("started"),
        "until": mark("until"),
        "seed": 1,
        "pipeline_key": mark("key"),
        "pipeline": {"name": mark("pipeline name"), "stages": [mark("stage"), {mark("check"): {"limit": 0.8}}]},
        "roles": {"id": [mark("id column")], "text": [mark("text column")]},
        "stages": [{"name": first, "parameters": {mark("parameter"): 0.8}, "rules": [reason(columns[0], 1)]}],
        "sources": [{"name": mark("source"), "format": mark("format"), "bytes": 10, "digest": mark("digest")}] * values,
        "packages": {mark("package"): mark("package version"), "curate-data": mark("own version")},
        "python": mark("python"),
        "platform": mark("platform"),
    }
    check = {
        "metric": mark("metric"),
        "outcome": "failed",
        "reason": mark("too many"),
        "severity": "fail",
        "value": 0.5,
        "max": 0.1,
    }
    gate = {
        "passed": False,
        "outcome": "failed",
        "checks": [check, {**check, "metric": mark("other metric"), "outcome": "warned"}],
    }
    return (
        report,
        manifest,
        gate,
        {"version": 1, "stages": {first: [drawn(mark, column, samples, text, like or text) for column in columns]}},
    )


def drawn(mark: Mark, column: str, samples: int, text: str, like: str) -> dict[str, Any]:
    row = {"row_id": 7, "id": mark("row id"), "cut_before": False, "cut_after": True}
    one = {
        **row,
        "text": mark(text),
        "value": 0.9,
        "source_file": mark("row file"),
        "source_row": 7,
        "witness": {**row, "text": mark(like)},
    }
    return {
        "rule": "at_least",
        "column": column,
        "limit": 0.8,
        "rows": 9,
        "samples": [*[one] * (samples - 1), {**one, "witness": None}],
    }


class Structure(HTMLParser):
    """Every element with the attributes that hold no text, all text, and the texts of sample rows."""

    SPOKEN = ("aria-label", "title")

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.text: list[str] = []
        self.samples: list[str] = []
        self.inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple((name, None if name in self.SPOKEN else value) for name, value in attrs)))

        if ("class", "text") in attrs:
            self.inside = True
            self.samples.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "p"

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self.inside:
            self.samples[-1] += data

    def handle_comment(self, data: str) -> None:
        self.elements.append(("comment", ()))

    def handle_decl(self, decl: str) -> None:
        self.elements.append(("declaration", ()))

    def handle_pi(self, data: str) -> None:
        self.elements.append(("instruction", ()))


def parsed(page: str) -> Structure:
    structure = Structure()
    structure.feed(page)
    structure.close()
    return structure


def marked_with(payload: str) -> Mark:
    return lambda field: f"{payload} {field}"


@pytest.fixture(scope="module")
def own_payloads() -> list[str]:
    payloads: list[str] = json.loads((DATA / "html_payloads.json").read_text())
    assert len(set(payloads)) >= 100
    return payloads


def test_the_page_says_everything_in_order():
    page = render(*documents())
    text = re.sub(r"\s+", " ", " ".join(parsed(page).text))

    expected = [
        *("name", "This run is not complete", "The gate says no", "1 of 2 limits said no", "rows in", "1,000"),
        *("metric", "too many", "at most 0.1", "From rows in to rows kept", "read", "stage", "idle", "not evaluated", "kept"),
        *("Why rows were rejected", "score0 at least 0.8", "What to do next", "1 limit said no", "curate gate RUN"),
        *("could not be read", "curate why RUN ROW-OR-ID", "How the scores lie", "≥ 0.8", "Flags", "Sample rows"),
        *("rejected", "row id", "like", "row id", "Who loses rows", "Where the time went", "reading 0.5 s", "waiting 0.3 s"),
        *("Provenance", "limit: 0.8", "seed", "add up to the rows in"),
    ]
    at = 0
    for words in expected:
        assert words in text[at:], f"{words!r} is missing after {text[max(0, at - 80) : at]!r}"
        at = text.index(words, at) + len(words)


def test_links_lead_to_parts_of_the_page_and_nowhere_else():
    elements = parsed(render(*documents())).elements
    attributes = [attribute for _, found in elements for attribute in found]
    ids = [value for name, value in attributes if name == "id"]
    targets = {value for name, value in attributes if name == "href"}

    assert len(ids) == len(set(ids))
    assert targets <= {f"#{one}" for one in ids}
    assert {"#stage-1", "#stage-2", "#removal", "#costs", "#provenance"} <= targets


def test_nothing_of_the_page_acts_or_asks():
    page = render(*documents())
    elements = parsed(page).elements

    assert not {tag for tag, _ in elements} & {
        "script",
        "img",
        "link",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
        "input",
        "button",
    }
    assert not [
        name for _, found in elements for name, _ in found if name.startswith("on") or name in ("src", "srcset", "action")
    ]
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert "url(" not in page
    assert "@import" not in page


@pytest.mark.parametrize("gate", [None, {"passed": True, "checks": []}])
def test_a_bare_run_has_a_page(gate: dict[str, Any] | None):
    rows = {"input": 0, "kept": 0, "rejected": 0, "quarantined": 0}

    page = render({"name": "empty", "rows": rows, "stages": {}}, {}, gate, None)

    assert "There was nothing to read" in page
    assert ("No gate was asked for" in page) == (gate is None)


def test_a_huge_run_stays_under_two_megabytes_and_says_what_was_cut():
    given = documents(
        reasons=30, samples=20, values=1_000, text="<&\"' words & <more> " * 500, like="<&\"' words & more " * 500, rows=1_000_000
    )

    page = render(*given)

    assert len(page.encode()) <= MAX_BYTES
    assert "To stay under 2 MB this page shows" in page
    assert "more are in report.json" in page
    assert "The gate says no" in page


def test_too_much_of_everything_stays_under_two_megabytes():
    report, manifest, gate, samples = documents(lambda field: "\U0001f600<" * 500 + field, reasons=60, samples=20, values=300)
    stage = next(iter(report["stages"].values()))
    stage["scores"] = {f"{at}" + '"' * 200: one for at in range(200) for one in list(stage["scores"].values())[:1]}
    report["stages"] = {f"{at}" + '"' * 200: stage for at in range(200)}
    report["groups"] = {f"{at}" + '"' * 200: one for at in range(50) for one in report["groups"].values()}
    report["casts"] = ['"' * 1_000] * 1_000
    report["costs"]["stages"] = {name: one for name in report["stages"] for one in report["costs"]["stages"].values()}
    manifest["roles"] = {f"{at}" + '"' * 200: ['"' * 200] * 10 for at in range(3_000)}
    manifest["packages"] = manifest["roles"]
    gate["checks"] *= 5_000

    page = render(report, manifest, gate, samples)

    assert len(page.encode()) <= MAX_BYTES
    assert "more are in gate.json" in page
    assert "no sample rows" in page


def test_no_payload_in_any_field_makes_an_element(own_payloads: list[str]):
    harmless = parsed(render(*documents(marked_with("harmless")))).elements

    for payload in own_payloads:
        found = parsed(render(*documents(marked_with(payload))))

        assert found.elements == harmless, payload
        assert found.samples[0].split() == [*visible(f"{payload} one two three").split(), "…"], payload


def test_no_naughty_string_makes_an_element(shared: Path):
    lines = (shared / "data" / "naughty_strings" / "naughty_strings.jsonl").read_text("utf-8").split("\n")
    naughty = [json.loads(line)["text"][:500] for line in lines if line]
    harmless = parsed(render(*documents(marked_with("harmless")))).elements

    assert len(naughty) > 200
    for payload in naughty:
        assert parsed(render(*documents(marked_with(payload)))).elements == harmless, payload


@given(st.text(max_size=80))
def test_what_is_shown_holds_nothing_that_acts_and_every_plain_text_is_unchanged(text: str):
    shown = visible(text)

    assert visible(shown) == shown
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", shown)
    assert shown == text or not text.isprintable() or not text.isascii()


words = st.lists(st.sampled_from(["a", "b", "c", "dog", "言", " ", "\n"]), max_size=30).map(" ".join)


@given(words, words)
def test_the_difference_loses_nothing_and_what_is_unmarked_is_common(a: str, b: str):
    found = compare(a, b)
    left, right = found.left, found.right

    assert "".join(piece.text for piece in left) == a
    assert "".join(piece.text for piece in right) == b
    common = [["".join(piece.text.split()) for piece in side if not piece.differs] for side in (left, right)]
    assert "".join(common[0]) == "".join(common[1])
    assert compare(a, a).same


def test_unlike_texts_are_told_apart_in_bounded_time():
    found = compare(" ".join(map(str, range(2_000))), " ".join(map(str, range(5_000, 7_000))))

    assert not found.compared
    assert not any(piece.differs for piece in found.left)


def test_a_limit_cuts_the_bar_it_goes_through():
    bins = [[100.0, 200.0, 50], [1e6, 2e6, 5]]

    drawing = str(
        histogram("words", score("measure", "", "words", bins=bins, min=120.0, max=1e6), [reason("words", 5, "above", 150.0)])
    )

    assert drawing.count('class="in"') == 1
    assert drawing.count('class="out"') == 2
    assert "···" in drawing
    assert "limit: above 150" in drawing


def test_advice_puts_what_must_be_done_first_and_names_the_command():
    report, manifest, gate, _ = documents()
    report["stages"]["stage"].update(rejected=500, rows_in=1_000)

    found = advise(report, manifest, gate, "out")

    assert [one.level for one in found] == sorted((one.level for one in found), key=["act", "look", "note"].index)
    commands = [command for one in found for command in one.commands]
    assert "curate run PIPELINE --out NEW --set stage.parameter=0.9" in commands
    assert "curate diff out NEW" in commands
    assert any(one.text == "Loses more. Is that the data, or the check?" and one.stage == "stage" for one in found)


def test_an_interval_is_wilsons():
    assert interval(0, 0) == (0.0, 1.0)
    assert interval(10, 100) == pytest.approx((0.0552, 0.1744), abs=1e-4)


@contextlib.contextmanager
def recorder() -> Iterator[tuple[int, list[bytes]]]:
    """A proxy on this machine that answers nothing and remembers the first line of every request."""
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        stop = threading.Event()

        def serve() -> None:
            while not stop.is_set():
                with contextlib.suppress(TimeoutError), server.accept()[0] as connection:
                    connection.settimeout(1)
                    line = connection.recv(400).split(b"\r\n")[0]
                    connection.sendall(b"HTTP/1.1 502 no\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    seen.append(line)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1], seen
        finally:
            stop.set()
            thread.join()


def browse(page: Path, folder: Path, *more: str) -> tuple[str, list[bytes]]:
    """What the browser prints, and the requests it made that are not its maker's."""
    quiet = "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking disable-component-update"
    quiet += " disable-sync disable-default-apps disable-extensions disable-domain-reliability hide-scrollbars"
    with recorder() as (port, seen):
        options = [f"--{flag}" for flag in quiet.split()]
        options += [f"--user-data-dir={folder}", f"--proxy-server=127.0.0.1:{port}", "--proxy-bypass-list=<-loopback>", *more]
        command = [CHROMIUM or "", *options, page.as_uri()]
        done = subprocess.run(command, capture_output=True, timeout=90, check=True)
    # a line without a word is a connection that the browser, on its way out, closed before it asked for anything
    return done.stdout.decode(), [line for line in seen if line and not any(host in line for host in BROWSERS_OWN)]


needs_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")


def page_of(payloads: list[str], path: Path) -> Path:
    """A page with a payload of its own in every field."""
    given: dict[str, str] = {}

    def mark(field: str) -> str:
        return given.setdefault(field, f"{payloads[len(given) % len(payloads)]} {field}")

    path.write_text(render(*documents(mark, reasons=60, values=60)), "utf-8")
    assert len(given) > len(payloads)
    return path


@pytest.mark.slow
@needs_a_browser
def test_a_browser_runs_nothing_and_asks_for_nothing(own_payloads: list[str], tmp_path: Path):
    calm, _ = browse(
        page_of(["harmless"] * len(own_payloads), tmp_path / "calm.html"),
        tmp_path / "a",
        "--virtual-time-budget=2000",
        "--dump-dom",
    )
    found, requests = browse(
        page_of(own_payloads, tmp_path / "hostile.html"), tmp_path / "b", "--virtual-time-budget=2000", "--dump-dom"
    )

    assert requests == []
    assert len(parsed(found).elements) > 1_000
    assert "pwned" not in {tag for tag, _ in parsed(found).elements}
    assert parsed(found).elements == parsed(calm).elements


@pytest.mark.slow
@needs_a_browser
def test_without_scripts_the_page_is_drawn_and_asks_for_nothing(own_payloads: list[str], tmp_path: Path):
    picture, requests = framed(page_of(own_payloads, tmp_path / "page.html"), tmp_path / "frame", scripts=False)

    assert requests == []
    assert len(picture) > BLANK_BYTES


def framed(page: Path, folder: Path, scripts: bool) -> tuple[bytes, list[bytes]]:
    """A page in a frame that may run scripts, or may not: its picture, and the requests made."""
    folder.mkdir()
    frame, picture = folder / "frame.html", folder / "picture.png"
    allowed = "allow-scripts" if scripts else ""
    frame.write_text(f'<body style="margin:0"><iframe sandbox="{allowed}" src="{page.as_uri()}" width=1000 height=3000></iframe>')
    options = (f"--screenshot={picture}", "--window-size=1000,3000", "--run-all-compositor-stages-before-draw")
    seen: list[bytes] = []
    for turn in range(5):  # now and then the picture is taken before the frame is painted, one time in ten on a busy machine
        seen += browse(frame, folder / f"profile{turn}", *options)[1]
        if picture.stat().st_size > BLANK_BYTES:
            break
    return picture.read_bytes(), seen


@pytest.mark.slow
@needs_a_browser
def test_the_browser_tests_would_notice(tmp_path: Path):
    page = tmp_path / "bad.html"
    script = "document.body.append(document.createElement('pwned')); new Image().src = 'http://evil.example/script'"
    page.write_text(f"<body><img src=http://evil.example/image><p>{'some words ' * 5_000}<script>{script}</script>")

    found, requests = browse(page, tmp_path / "a", "--virtual-time-budget=2000", "--dump-dom")
    _, with_scripts = framed(page, tmp_path / "with", scripts=True)
    _, without = framed(page, tmp_path / "without", scripts=False)

    assert "pwned" in {tag for tag, _ in parsed(found).elements}
    assert any(b"evil.example/image" in line for line in requests)
    assert any(b"evil.example/script" in line for line in with_scripts)
    assert any(b"evil.example/image" in line for line in without)
    assert not any(b"evil.example/script" in line for line in without)

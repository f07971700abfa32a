from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curate.describe import checks, schema
from curate.errors import RequestError
from curate.pipeline import Pipeline
from curate.specfile import MAX_BYTES, read_mapping, read_pipeline, write_pipeline

REVIEWS = """\
name: reviews
source: data/*.parquet
roles: {id: review_id, text: body, group: [country]}
stages:
  - missing
  - near_dup: {similarity: 0.8}
  - near_dup: {similarity: 0.5, prefer: longest}
    as: loose
    reject: [{above: 0.9, of: similarity}]
gate:
  - {metric: rejected_share, max: 0.4}
  - {metric: loose.rejected_share, max: 0.2, severity: warn}
probe: {holdout: split == "test"}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "reviews.yaml"
    path.write_text(REVIEWS, "utf-8")
    return path


def refusal(path: Path, text: str | bytes, *changes: str) -> RequestError:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(RequestError) as caught:
        read_pipeline(path, changes)
    return caught.value


def test_a_file_is_what_it_says(file: Path):
    pipeline, places = read_pipeline(file)

    assert pipeline.source == "data/*.parquet"
    assert pipeline.roles.text == ("body",)
    assert [stage.name for stage in pipeline.stages] == ["missing", "near_dup", "loose"]
    assert pipeline.probe == {"holdout": 'split == "test"'}
    assert places(("stages", 2, "reject", 0)) == f"{file}, line 9, stage 3, reject.0"
    assert places(("roles", "text")) == f"{file}, line 3, roles.text"
    assert places(("seed",)) == f"{file}, line 1, seed"


def test_no_is_a_text_and_a_date_is_a_text(file: Path):
    file.write_text("name: no\nstages: [missing]\nprobe: {a: 2024-01-01, b: on, c: 017, d: 1e3, e: yes, f: 12:30:45}\n")

    pipeline, _ = read_pipeline(file)

    assert pipeline.name == "no"
    assert pipeline.probe == {"a": "2024-01-01", "b": "on", "c": 17, "d": 1000.0, "e": "yes", "f": "12:30:45"}


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("similarity: 0.8", "similarty: 0.8", 6, "did you mean `similarity`"),
        ("as: loose", "as: near_dup", 7, "both called `near_dup`"),
        ("prefer: longest", "prefer: tallest", 7, "prefer"),
        ("  - missing", "  - mising", 5, "did you mean `missing`"),
        ("severity: warn", "sverity: warn", 12, "did you mean `severity`"),
        ("name: reviews", "nam: reviews", 1, "did you mean `name`"),
        ("text: body", "text: body, text: title", 3, "stands twice"),
        ("source: data", "source: &a data", 2, "anchors"),
        ("source: data/*.parquet", "source: *a", 2, "aliases"),
        ("source: data", "source: !!python/name:os.system data", 2, "tags"),
        ("source: data", "source: ! data", 2, "tags"),
        ("gate:", "<<: {seed: 1}\ngate:", 10, "merge"),
        ("max: 0.4", "max: .inf", 11, "finite"),
        ("name: reviews", "3: reviews", 1, "a key is text"),
        ("name: reviews", "? [a]\n: reviews", 1, "a key is text"),
        ("max: 0.4}", "max: 0.4", 12, "not YAML"),
        ("name: reviews", 'name: "\\ud800"', 1, "surrogate"),
    ],
)
def test_an_error_names_file_line_and_remedy(file: Path, old: str, new: str, line: int, words: str):
    error = refusal(file, REVIEWS.replace(old, new, 1))

    assert error.place.startswith(f"{file}, line {line}")
    assert words in f"{error.message} {error.hint}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("# nothing\n", "empty"),
        ("[missing]", "not a mapping"),
        ("a: 1\n---\nb: 2\n", "another document"),
        ("%YAML 1.1\n---\nname: no\n", "directives"),
        ("a: " + "[" * 60, "nested"),
        ("name: 'x\x00'", "cannot be read"),
        ('name: "\\UFFFFFFFF"', "cannot be read"),
        ("seed: " + "9" * 5000, "cannot be read"),
        (b"name: \xff", "not UTF-8"),
        (b"#" * (MAX_BYTES + 1), "larger than"),
    ],
)
def test_what_is_not_plain_data_is_refused(file: Path, text: str | bytes, words: str):
    error = refusal(file, text)

    assert words in error.message
    assert error.place.startswith(str(file))


def test_an_alias_bomb_is_refused_at_once(file: Path):
    bomb = "a: &a [x, x]\n" + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]\n" for i in range(24))
    started = time.perf_counter()

    assert "anchors" in refusal(file, bomb).message
    assert time.perf_counter() - started < 1


def test_a_missing_file_names_its_neighbour(file: Path):
    with pytest.raises(RequestError, match="cannot be read") as caught:
        read_pipeline(file.with_name("review.yaml"))

    assert caught.value.hint == "did you mean `reviews.yaml`?"


def test_json_is_read_with_lines_too(tmp_path: Path, file: Path):
    path = tmp_path / "reviews.json"
    pipeline, _ = read_pipeline(file)
    path.write_text(json.dumps(pipeline.to_dict(), indent="\t"))

    assert read_pipeline(path)[0] == pipeline
    error = refusal(path, path.read_text().replace('"missing"', '"mising"'))
    assert ", line 10, stage 1" in error.place


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"name": "a", "name": "b"}', "stands twice"),
        ('{"seed": NaN}', "NaN"),
        ('{"seed": 1e999}', "too large"),
        ('{"name": "a",\n}', "not JSON"),
        ("[" * 100_000, "cannot be read"),
        ('{"a": ' + "[" * 60 + "]" * 60 + "}", "nested"),
        ('{"name": "\\ud800"}', "surrogate"),
    ],
)
def test_loose_json_is_refused(tmp_path: Path, text: str, words: str):
    assert words in refusal(tmp_path / "p.json", text).message


def test_set_changes_what_the_file_says(file: Path):
    changes = (
        "seed=7",
        "near_dup.similarity=0.9",
        "stages.missing.of=[body]",
        "loose.reject=[]",
        'loose.when=country in ["DE"]',
        "gate.loose.rejected_share.max=0.3",
        "output.format=csv",
        "roles.label=stars",
    )

    pipeline, places = read_pipeline(file, changes)

    written = pipeline.to_dict()
    assert written["stages"][:2] == [{"missing": {"of": ["body"]}}, {"near_dup": {"similarity": 0.9}}]
    assert (written["stages"][2]["reject"], written["stages"][2]["when"]) == ([], 'country in ["DE"]')
    assert written["gate"][1]["max"] == 0.3
    assert (written["seed"], written["output"], written["roles"]["label"]) == (7, {"format": "csv"}, "stars")
    assert places(("seed",)) == "--set seed=7"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("seed", "not KEY=VALUE"),
        ("sed=1", "did you mean `seed`"),
        ("near_dub.similarity=1", "did you mean `near_dup`"),
        ("near_dup.similarty=1", "did you mean `similarity`"),
        ("near_dup=1", "whole stage"),
        ("stages.nope.x=1", "no stage `nope`"),
        ("gate.rejected.max=1", "no limit on `rejected`"),
        ("gate.rejected_share.max=low", "valid number"),
        ("roles.text.x=1", "no keys to set"),
        ("seed=[1", "not YAML"),
        ("seed=&a 1", "anchors"),
    ],
)
def test_a_wrong_set_names_itself(file: Path, change: str, words: str):
    error = refusal(file, REVIEWS, change)

    assert error.place.startswith(f"--set {change}")
    assert words in f"{error.message} {error.hint}"


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
numbers = st.floats(allow_nan=False, allow_infinity=False)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,20}", fullmatch=True)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
rules = st.one_of(
    st.builds(lambda n, c: {"above": n, "of": c}, numbers, texts),
    st.builds(lambda n, c: {"worst_fraction": n, "of": c}, st.floats(0.001, 0.999), texts),
    st.builds(lambda c: {"is_true": c}, texts),
)
stages = st.fixed_dictionaries(
    {},
    optional={
        "reject": st.lists(rules, max_size=2),
        "on_missing": st.sampled_from(["keep", "reject"]),
        "when": st.sampled_from(['a == "x"', "`a: b` is null", "not x in [1, 2.5]"]),
    },
).flatmap(
    lambda own: st.sampled_from(
        [{"missing": {}}, {"exact_dup": {"of": ["a: b", "#c"]}}, {"near_dup": {"similarity": 0.125, "prefer": {"newest": "at"}}}]
    ).map(lambda check: {**check, **own})
)
limits = st.fixed_dictionaries(
    {"metric": texts.filter(bool), "max": numbers},
    optional={"severity": st.sampled_from(["fail", "warn"]), "max_increase": st.floats(0, 1e300)},
)
pipelines = st.fixed_dictionaries(
    {
        "name": st.text(min_size=1, max_size=20).filter(lambda s: s.isprintable() and bool(s.strip())),
        "stages": st.lists(stages, min_size=1, max_size=3),
    },
    optional={
        "source": texts.filter(bool) | st.lists(texts.filter(bool), min_size=1, max_size=2),
        "roles": st.fixed_dictionaries({}, optional={"id": texts, "text": st.lists(texts, max_size=2), "label": texts}),
        "gate": st.lists(limits, max_size=2),
        "probe": st.dictionaries(texts, plain, max_size=3),
        "seed": st.integers(0, 2**63 - 1),
        "mode": st.sampled_from(["staged", "audit"]),
        "quarantine_limit": st.floats(0, 1),
        "read": st.fixed_dictionaries(
            {}, optional={"delimiter": st.sampled_from([";", "\t", "#"]), "allow_truncated": st.lists(texts)}
        ),
        "output": st.fixed_dictionaries({"format": st.sampled_from(["csv", "jsonl.zst"])}),
    },
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None, max_examples=150)
@given(given_pipeline=pipelines)
def test_yaml_to_pipeline_to_yaml_is_the_identity(tmp_path: Path, given_pipeline: dict[str, Any]):
    for index, stage in enumerate(given_pipeline["stages"]):
        stage["as"] = f"stage_{index}"
    pipeline = Pipeline.from_dict(given_pipeline)
    path, as_json = tmp_path / "p.yaml", tmp_path / "p.json"
    text = write_pipeline(pipeline)
    path.write_bytes(text.encode())
    as_json.write_text(json.dumps(pipeline.to_dict()))

    read, _ = read_pipeline(path)

    assert read == pipeline
    assert read.key == pipeline.key
    assert write_pipeline(read) == text
    assert read_pipeline(as_json)[0] == pipeline
    assert Pipeline.from_dict(pipeline.to_dict()) == pipeline


def test_what_is_written_reads_like_what_a_person_writes(file: Path):
    text = REVIEWS.replace("group: [country]", "group: country").replace("near_dup: {similarity: 0.8}", "near_dup")

    assert write_pipeline(read_pipeline(file)[0]) == text.replace('split == "test"', "'split == \"test\"'")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.text(alphabet="ab:-[]{}!&*?|>'\"%#@,\n\t 1.~\\<=", max_size=80))
def test_no_text_breaks_the_reader(tmp_path: Path, text: str):
    path = tmp_path / "p.yaml"
    path.write_text(text)

    try:
        given_mapping, _ = read_mapping(path)
    except RequestError:
        return
    json.dumps(given_mapping, allow_nan=False)


def test_the_schema_names_every_check_and_parameter():
    published = schema()

    assert published["required"] == ["name", "stages"]
    assert set(published["properties"]) == set(Pipeline.__dataclass_fields__)
    for check in checks():
        known = published["$defs"][check["name"]]
        assert set(known.get("properties", {})) == {parameter["name"] for parameter in check["parameters"]}
        assert known["additionalProperties"] is False
        assert all(parameter["doc"] for parameter in check["parameters"]), check["name"]
    short, *long = published["$defs"]["stage"]["anyOf"]
    assert short["enum"] == [next(iter(form["required"])) for form in long]
    json.dumps(published, allow_nan=False)


def test_every_reference_in_the_schema_leads_somewhere():
    published = schema()

    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return own + [ref for inner in value.values() for ref in references(inner)]
        return [ref for inner in value for ref in references(inner)] if isinstance(value, list) else []

    assert {ref.removeprefix("#/$defs/") for ref in references(published)} <= set(published["$defs"])


def test_an_unknown_check_names_the_nearest():
    with pytest.raises(RequestError, match="no check `near_dub`") as caught:
        checks("near_dub")

    assert caught.value.hint == "did you mean `near_dup`?"

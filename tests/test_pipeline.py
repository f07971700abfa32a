from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from curate.check import catalogue, make_check
from curate.dataset import Roles
from curate.errors import RequestError
from curate.pipeline import Limit, Output, Pipeline, Stage
from curate.policy import Above
from curate.source.options import ReadOptions


def refusal(**changes: Any) -> RequestError:
    given = {"name": "p", "stages": ["missing"]} | changes
    with pytest.raises(RequestError) as caught:
        Pipeline.from_dict({key: value for key, value in given.items() if value is not ...})
    return caught.value


def test_python_and_mappings_say_the_same():
    near = make_check("near_dup", {"similarity": 0.9})
    from_python = Pipeline(
        "p",
        ["missing", near, Stage(near, "again", reject=[Above(above=0.95, of="similarity")], when="stars > 3")],
        roles=Roles(text="body"),
        source=Path("data/a.parquet"),
        gate=[Limit("rejected_share", max=0.4)],
        output=Output("csv"),
    )
    from_mapping = Pipeline.from_dict(
        {
            "name": "p",
            "source": "data/a.parquet",
            "roles": {"text": ["body"]},
            "stages": [
                {"missing": None},
                {"near_dup": {"similarity": 0.9}},
                {
                    "near_dup": {"similarity": 0.9},
                    "as": "again",
                    "reject": [{"above": 0.95, "of": "similarity"}],
                    "when": "stars > 3",
                },
            ],
            "gate": [{"metric": "rejected_share", "max": 0.4}],
            "output": {"format": "csv"},
        }
    )

    assert from_python == from_mapping
    assert from_python.key == from_mapping.key


@pytest.mark.parametrize("name", list(catalogue()))
def test_every_check_round_trips_through_a_pipeline(name: str):
    pipeline = Pipeline("p", [name])

    assert pipeline.to_dict() == {"name": "p", "stages": [name]}
    assert Pipeline.from_dict(pipeline.to_dict()) == pipeline


def test_what_is_written_leaves_defaults_out():
    pipeline = Pipeline(
        "p",
        [{"near_dup": {"similarity": 0.8}, "on_missing": "reject"}],
        seed=0,
        mode="staged",
        quarantine_limit=0.001,
        read=ReadOptions(),
        output=Output("parquet"),
    )

    assert pipeline.to_dict() == {"name": "p", "stages": [{"near_dup": {}, "on_missing": "reject"}]}


def test_flag_only_is_not_the_default_policy():
    flags, defaults = Pipeline("p", [{"exact_dup": {}, "reject": []}]).stages[0], Pipeline("p", ["exact_dup"]).stages[0]

    assert flags.reject == ()
    assert defaults.reject is None
    assert flags.policy((Above(above=1, of="x"),)).rules == ()
    assert defaults.policy((Above(above=1, of="x"),)).rules == (Above(above=1, of="x"),)


def test_an_empty_gate_is_not_no_gate():
    assert Pipeline.from_dict({"name": "p", "stages": ["missing"], "gate": []}).gate == ()
    assert Pipeline.from_dict({"name": "p", "stages": ["missing"]}).gate is None
    assert Pipeline("p", ["missing"], gate=[]).to_dict()["gate"] == []


def test_a_pipeline_changes_by_replacement_only():
    pipeline = Pipeline("p", ["missing"], probe={"holdout": ["a"]})

    with pytest.raises(dataclasses.FrozenInstanceError):
        pipeline.seed = 1  # type: ignore[misc]
    changed = dataclasses.replace(pipeline, seed=1)
    assert (changed.seed, changed.stages) == (1, pipeline.stages)
    assert changed.key != pipeline.key


def test_what_a_caller_changes_later_changes_no_pipeline():
    probe = {"holdout": ["a"]}
    pipeline = Pipeline("p", ["missing"], probe=probe)

    probe["holdout"].append("b")
    pipeline.to_dict()["probe"]["holdout"].append("c")

    assert pipeline.probe == {"holdout": ["a"]}


@pytest.mark.parametrize(
    ("changes", "place", "words"),
    [
        ({"name": ...}, "", "no `name`"),
        ({"name": ""}, "name", "a pipeline has a name"),
        ({"name": None}, "name", "`name` is empty"),
        ({"stages": ...}, "", "no `stages`"),
        ({"stages": []}, "stages", "no stage"),
        ({"stages": "missing"}, "stages", "is a list"),
        ({"stages": [3]}, "stage 1", "not 3"),
        ({"stages": ["missing", "near_dupe"]}, "stage 2", "did you mean `near_dup`"),
        ({"stages": ["missing", "missing"]}, "stage 2", "`as: missing_2`"),
        ({"stages": [{"near_dup": {"similarty": 0.8}}]}, "stage 1, near_dup.similarty", "did you mean `similarity`"),
        ({"stages": [{"near_dup": {"similarity": "high"}}]}, "stage 1, near_dup.similarity", "'high'"),
        ({"stages": [{"near_dup": 0.8}]}, "stage 1, near_dup", "as a mapping"),
        ({"stages": [{"near_dup": None, "similarity": 0.8}]}, "stage 1, similarity", "indent it further"),
        ({"stages": [{"near_dup": None, "rejct": []}]}, "stage 1, rejct", "did you mean `reject`"),
        ({"stages": [{"near_dup": None, "missing": None}]}, "stage 1", "one check, not 2"),
        ({"stages": [{"as": "x"}]}, "stage 1", "names no check"),
        ({"stages": [{"missing": None, "as": "a b"}]}, "stage 1, as", "not a stage's name"),
        ({"stages": [{"missing": None, "as": "rows"}]}, "stage 1, as", "the report has that name itself"),
        ({"stages": [{"missing": None, "as": "ingest"}]}, "stage 1, as", "`as: ingest_2`"),
        ({"stages": [{"missing": None, "as": None}]}, "stage 1, as", "is empty"),
        ({"stages": [{"missing": None, "reject": {"above": 1}}]}, "stage 1, reject", "is a list"),
        ({"stages": [{"missing": None, "reject": [{"abov": 1}]}]}, "stage 1, reject.0", "did you mean `above`"),
        ({"stages": [{"missing": None, "on_missing": "drop"}]}, "stage 1, on_missing", "keep, reject"),
        ({"stages": [{"missing": None, "when": "a = 1"}]}, "stage 1, when", "write `==`"),
        ({"roles": {"txt": "a"}}, "roles.txt", "did you mean `text`"),
        ({"roles": {"text": 3}}, "roles.text", "`text` is 3"),
        ({"source": []}, "source", "empty list"),
        ({"source": [""]}, "source", "is not a path"),
        ({"gate": {"metric": "a"}}, "gate", "is a list"),
        ({"gate": None}, "gate", "is empty"),
        ({"gate": [{"max": 1}]}, "gate limit 1", "no `metric`"),
        ({"gate": [{"metric": "a"}]}, "gate limit 1", "limits nothing"),
        ({"gate": [{"metric": "a", "max": "1"}]}, "gate limit 1, max", "valid number"),
        ({"gate": [{"metric": "a", "max": True}]}, "gate limit 1, max", "valid number"),
        ({"gate": [{"metric": "a", "max": float("nan")}]}, "gate limit 1, max", "finite"),
        ({"gate": [{"metric": "a", "max_increase": -1}]}, "gate limit 1, max_increase", "greater than"),
        ({"gate": [{"metric": "a", "min": 2, "max": 1}]}, "gate limit 1", "can never pass"),
        ({"gate": [{"metric": "a", "max": 1, "sverity": "warn"}]}, "gate limit 1, sverity", "did you mean `severity`"),
        ({"probe": [1]}, "probe", "is a mapping"),
        ({"probe": {"a": object()}}, "probe.a", "is not text, a number"),
        ({"seed": -1}, "seed", "whole number"),
        ({"seed": 1.5}, "seed", "whole number"),
        ({"mode": "audits"}, "mode", "did you mean `audit`"),
        ({"quarantine_limit": 2}, "quarantine_limit", "from 0 to 1"),
        ({"read": {"fromat": "csv"}}, "read.fromat", "did you mean `format`"),
        ({"output": {"format": "avro"}}, "output.format", "'parquet'"),
        ({"souce": "a"}, "souce", "did you mean `source`"),
    ],
)
def test_a_wrong_pipeline_says_where_and_what_was_wanted(changes: dict[str, Any], place: str, words: str):
    error = refusal(**changes)

    assert error.place == place
    assert words in f"{error.message} {error.hint}"
    assert error.exit_code == 2


def test_a_stage_holds_a_check():
    with pytest.raises(RequestError, match="holds a check"):
        Stage(object())  # type: ignore[arg-type]

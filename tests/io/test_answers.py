"""Answers of language models, from the forms in which logs keep them."""

import json
import math
import runpy
from pathlib import Path

import numpy as np
import pytest

import polycal as pc

LETTERS = "ABCDE"


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def harness(logprobs, target, options, **more):
    pairs = {f"gen_args_{j}": {"arg_0": "Question?", "arg_1": f" {o}"} for j, o in enumerate(options)}
    return {
        "doc_id": 0,
        "doc": {"question": "Question?", "subject": "law"},
        "target": target,
        "arguments": pairs,
        "resps": [[[str(x), "False"]] for x in logprobs],
        "filtered_resps": [[str(x), "False"] for x in logprobs],
        "acc": 1.0,
    } | more


def chat(tokens, answer, options="ABCD"):
    listed = [{"token": t, "logprob": x, "bytes": None} for t, x in tokens.items()]
    content = [{"token": listed[0]["token"], "logprob": listed[0]["logprob"], "top_logprobs": listed}]
    choice = {"index": 0, "message": {"content": "A"}, "logprobs": {"content": content}}
    return {
        "custom_id": "1",
        "options": list(options),
        "answer": answer,
        "response": {"body": {"choices": [choice]}},
    }


def legacy(tokens, answer, options="ABCD"):
    logprobs = {
        "tokens": ["A"],
        "token_logprobs": [-1.0],
        "top_logprobs": [{f" {t}": x for t, x in tokens.items()}],
    }
    return {"options": list(options), "answer": answer, "choices": [{"text": "A", "logprobs": logprobs}]}


def vllm(tokens, answer, options="ABCD"):
    first = {str(i): {"logprob": x, "rank": i, "decoded_token": t} for i, (t, x) in enumerate(tokens.items())}
    return {"options": list(options), "answer": answer, "outputs": [{"text": "A", "logprobs": [first]}]}


# The harness


def test_logs_of_the_harness(tmp_path):
    rows = [harness([-1.0, -2.0, -3.0], t, ["A", "B", "C"]) for t in (0, "1", " C")]
    sample = pc.read_predictions(write(tmp_path / "samples_exam.jsonl", rows))
    expected = np.exp([-1.0, -2.0, -3.0])
    np.testing.assert_allclose(sample.proba, [expected / expected.sum()] * 3)
    assert sample.labels.tolist() == [0, 1, 2]
    assert sample.class_names == ("A", "B", "C")


def test_options_differ_from_question_to_question(tmp_path):
    first = harness([-1.0, -2.0], "1", ["a cat", "a dog"])
    second = harness([-1.0, -2.0, -3.0], "2", ["red", "blue", "green"])
    write(tmp_path / "samples_a.jsonl", [first])
    write(tmp_path / "samples_b.jsonl", [second])
    files = pc.open_predictions(tmp_path, columns=["doc.subject"])
    assert files.class_names == ("A", "B", "C")
    chunks = list(files)
    assert [chunk.sample.labels.tolist() for chunk in chunks] == [[1], [2]]
    assert chunks[0].sample.proba[0, 2] == 0.0
    assert chunks[0].columns["doc.subject"].tolist() == ["law"]


@pytest.mark.parametrize(("right", "label"), [(1.0, 1), (0.0, 0)])
def test_two_contexts_with_one_continuation(tmp_path, right, label):
    row = harness([-3.0, -2.0], "it rained", ["it rained", "it rained"], acc=right)
    sample = pc.read_predictions(write(tmp_path / "a.jsonl", [row]))
    assert (sample.labels.tolist(), sample.class_names) == ([label], ("A", "B"))


def test_the_right_option_may_be_nested(tmp_path):
    row = harness([-3.0, -2.0], None, ["yes", "no"]) | {"doc": {"truth": {"is": "no"}}}
    path = write(tmp_path / "a.jsonl", [row])
    assert pc.read_predictions(path, label="doc.truth.is").labels.tolist() == [1]


def test_stated_confidence_in_percent_is_named(tmp_path):
    with pytest.raises(ValueError, match="from 0 to 1; got 90; divide percentages by 100"):
        pc.read_predictions(write(tmp_path / "a.jsonl", [{"confidence": 90, "correct": True}]))


def test_older_logs_have_lists_of_arguments(tmp_path):
    row = harness([-1.0, -2.0], "1", ["yes", "no"]) | {"arguments": [["Q", " yes"], ["Q", " no"]]}
    del row["filtered_resps"]
    assert pc.read_predictions(write(tmp_path / "a.jsonl", [row])).class_names == ("yes", "no")


# Tokens


@pytest.mark.parametrize("form", [chat, legacy, vllm])
def test_most_likely_tokens_that_list_all_options_are_full_rows(tmp_path, form):
    tokens = {
        "A": math.log(0.5),
        "B": math.log(0.2),
        "x": math.log(0.1),
        "C": math.log(0.1),
        "D": math.log(0.05),
    }
    sample = pc.read_predictions(write(tmp_path / "a.jsonl", [form(tokens, "C"), form(tokens, 0)]))
    np.testing.assert_allclose(sample.proba, [[0.5, 0.2, 0.1, 0.05, 0.15]] * 2)
    assert sample.class_names == (*"ABCD", "another answer")
    assert sample.labels.tolist() == [2, 0]


@pytest.mark.parametrize("form", [chat, legacy, vllm])
def test_lists_that_end_early_are_intervals(tmp_path, form):
    tokens = {"A": math.log(0.6), "B": math.log(0.2), "x": math.log(0.1)}
    sample = pc.read_predictions(write(tmp_path / "a.jsonl", [form(tokens, "C")] * 3))
    assert sample.is_listed
    low, high = sample.class_ranges(np.arange(4))
    np.testing.assert_allclose(low[0], [0.6, 0.2, 0.0, 0.0])
    # Nothing that is not listed has more than the least token, nor than what is left over.
    np.testing.assert_allclose(high[0], [0.6, 0.2, 0.1, 0.1])


@pytest.mark.parametrize("n_listed", [2, 3, 5, 12])
def test_the_error_of_the_full_vocabulary_lies_in_the_interval(tmp_path, n_listed):
    rng = np.random.default_rng(n_listed)
    words = [*LETTERS[:4], *(f"w{j}" for j in range(30))]
    logits = np.hstack([rng.normal(2.0, 1.5, (300, 4)), rng.normal(-1.0, 1.5, (300, 30))])
    full = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    truth = full[:, :4] ** 0.5
    labels = [int(rng.choice(4, p=row / row.sum())) for row in truth]
    rows = []
    for row, label in zip(full, labels, strict=True):
        top = np.argsort(-row)[:n_listed]
        rows.append(chat({words[j]: math.log(row[j]) for j in top}, LETTERS[label]))
    sample = pc.read_predictions(write(tmp_path / "a.jsonl", rows))
    for subset in ([0], [2], [1, 3]):
        true = pc.smooth_calibration_error(labels, full, subset=subset)
        found = pc.smooth_calibration_error(labels, sample.proba, subset=subset, remainder="unknown")
        assert found.low - 1e-9 <= true <= found.high + 1e-9
    assert (
        pc.audit_stream(tmp_path / "a.jsonl", notions="confidence", auditors=["confidence:smooth"]).n_samples
        == 300
    )


# Plain objects


def test_plain_objects(tmp_path):
    rows = [
        {"options": ["Paris", "Rome"], "logprobs": [-0.1, -3.0], "answer": "Rome", "source": "geo"},
        {"options": ["Paris", "Rome"], "logprobs": [-0.1, -0.1], "answer": 0, "source": "geo"},
        {"proba": {"Paris": 0.25, "Rome": 0.75}, "label": "B", "source": "web"},
    ]
    files = pc.open_predictions(write(tmp_path / "a.jsonl", rows), columns=["source"])
    chunk = next(iter(files))
    assert chunk.sample.class_names == ("Paris", "Rome")
    assert chunk.sample.labels.tolist() == [1, 0, 1]
    assert chunk.columns["source"].tolist() == ["geo", "geo", "web"]


def test_stated_confidence_against_what_happened(tmp_path):
    rows = [{"confidence": 0.9, "correct": True}, {"confidence": 0.6, "correct": False}]
    sample = pc.read_predictions(write(tmp_path / "a.jsonl", rows))
    np.testing.assert_allclose(sample.proba, [[0.1, 0.9], [0.4, 0.6]])
    assert sample.class_names == ("wrong", "right")
    assert sample.labels.tolist() == [1, 0]


def test_tables_of_json_lines(tmp_path):
    rows = [
        {"id": 7, "cat": 0.9, "dog": 0.1, "label": "cat"},
        {"id": 8, "cat": 0.2, "dog": 0.8, "label": "dog"},
    ]
    path = write(tmp_path / "a.jsonl", rows)
    sample = pc.read_predictions(path, drop=["id"])
    assert sample.class_names == ("cat", "dog")
    assert next(iter(pc.open_predictions(path, drop=["id"]))).sample.labels.tolist() == [0, 1]
    pc.write_predictions(tmp_path / "b.jsonl.gz", sample.labels, sample.proba, class_names=sample.class_names)
    np.testing.assert_array_equal(pc.read_predictions(tmp_path / "b.jsonl.gz").proba, sample.proba)


# Files that nobody meant well


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000 + "]" * 100_000, "line 1: cannot be read as JSON"),
        ('{"proba": [NaN, 1.0], "answer": 0}', "line 1: cannot be read as JSON"),
        ('{"proba": [0.5, 0.5], "answer": 7}', "line 1: 'answer' is '7', which is none of the options"),
        ('{"proba": [0.5, 0.5], "answer": 0}\n{"proba": "no"}', "line 2: 'proba' must be a list of numbers"),
        ('{"options": ["a", "b"], "proba": [0.5, 0.25, 0.25], "answer": 0}', "has 2 options but 3 proba"),
        ('{"top_logprobs": {"A": -0.1}, "answer": "A"}', "holds tokens but no 'options'"),
        ('{"options": ["A", "B"], "top_logprobs": {"A": -0.1, "B": -0.1}, "answer": "A"}', "more than 1"),
        ('{"filtered_resps": ["42"], "doc": {}}', "fewer than two responses"),
        ('{"filtered_resps": ["some text", "more"], "doc": {}}', "generated text has no probabilities"),
        ("3", "holds no object"),
        ('{"proba": [0.5, 0.5], "answer": 0}\n{"proba": [0.5, 0.5]}', "has no answer, and others have one"),
        ('{"cat": 0.5, "dog": 0.5, "label": "cat"}\n{"cat": 0.5, "label": "cat"}', "has no 'dog'"),
    ],
)
def test_bad_lines_are_named(tmp_path, text, said):
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        pc.read_predictions(path)


def test_lines_have_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr("polycal.io.jsonl._MOST_LINE", 100)
    (tmp_path / "a.jsonl").write_text('{"proba": [0.5, 0.5], "answer": 0, "prompt": "' + "x" * 200 + '"}')
    with pytest.raises(ValueError, match="line 1 is longer than 100 bytes"):
        pc.read_predictions(tmp_path / "a.jsonl")


# The examples


@pytest.mark.parametrize("name", ["samples_example", "openai_batch", "vllm", "plain", "stated"])
def test_the_example_files_are_read(name):
    folder = Path(__file__).parents[2] / "examples" / "answers"
    made = runpy.run_path(str(folder / "make.py"))
    assert (folder / f"{name}.jsonl").read_text() == made["lines_of"](f"{name}.jsonl")
    sample = pc.read_predictions(folder / f"{name}.jsonl")
    assert sample.n_samples == 120
    assert sample.is_listed == (name == "openai_batch")
    logprobs, answers, _ = made["model"](120, np.random.default_rng(0))
    if name in {"samples_example", "vllm", "plain"}:
        np.testing.assert_allclose(sample.proba[:, :4], np.exp(logprobs), atol=2e-4)
        np.testing.assert_array_equal(sample.labels, answers)

"""Makes the example files of this folder: a simulated model that is too sure of itself and too fond of the answer C.

Run it as ``python examples/answers/make.py``. The files have the forms that other tools write, and nothing of theirs.
"""

import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
LETTERS = "ABCD"
SUBJECTS = ("law", "physics")


def model(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log probabilities of four letters, the right ones, and the subject of each question."""
    subject = rng.integers(len(SUBJECTS), size=n)
    scores = rng.normal(size=(n, 4))
    truth = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    answer = (rng.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(0, 3)
    # In physics it is twice as sure as it may be; everywhere it adds something to C.
    said = scores * (1.2 + subject[:, None]) + np.array([0.0, 0.0, 0.9, 0.0])
    said -= np.log(np.exp(said).sum(axis=1, keepdims=True))
    return np.round(said, 4), answer, subject


def harness(i: int, logprobs: list[float], answer: int, subject: str) -> dict:
    """A line of lm-evaluation-harness: a log likelihood for each option."""
    question = f"Question {i} of {subject}?"
    return {
        "doc_id": i,
        "doc": {"question": question, "choices": [f"answer {x}" for x in LETTERS], "subject": subject},
        "target": answer,
        "arguments": {f"gen_args_{j}": {"arg_0": question, "arg_1": f" {x}"} for j, x in enumerate(LETTERS)},
        "resps": [[[str(x), "False"]] for x in logprobs],
        "filtered_resps": [[str(x), "False"] for x in logprobs],
        "filter": "none",
        "metrics": ["acc"],
        "acc": float(int(np.argmax(logprobs)) == answer),
    }


def chat(i: int, logprobs: list[float], answer: int, subject: str) -> dict:
    """A line of the batch output of OpenAI's interface, with the three most likely tokens."""
    listed = sorted(zip(LETTERS, logprobs, strict=True), key=lambda one: -one[1])[:3]
    tokens = [{"token": x, "logprob": p, "bytes": list(x.encode())} for x, p in listed]
    content = [tokens[0] | {"top_logprobs": tokens}]
    message = {"role": "assistant", "content": listed[0][0]}
    choice = {"index": 0, "message": message, "logprobs": {"content": content}, "finish_reason": "stop"}
    body = {"object": "chat.completion", "choices": [choice]}
    return {
        "custom_id": f"{subject}-{i}",
        "response": {"status_code": 200, "body": body},
        "options": list(LETTERS),
        "answer": LETTERS[answer],
        "subject": subject,
    }


def vllm(i: int, logprobs: list[float], answer: int, subject: str) -> dict:
    """A request's output of vLLM, as a dictionary."""
    order = np.argsort(logprobs)[::-1]
    first = {
        str(32 + j): {"logprob": logprobs[j], "rank": rank + 1, "decoded_token": f" {LETTERS[j]}"}
        for rank, j in enumerate(order.tolist())
    }
    return {
        "request_id": str(i),
        "outputs": [{"index": 0, "text": f" {LETTERS[order[0]]}", "logprobs": [first]}],
        "options": list(LETTERS),
        "answer": LETTERS[answer],
        "subject": subject,
    }


def plain(i: int, logprobs: list[float], answer: int, subject: str) -> dict:
    """The plainest form, here with options that differ from question to question."""
    options = [f"{subject} {i}{x}" for x in LETTERS]
    return {"options": options, "logprobs": logprobs, "answer": options[answer], "subject": subject}


def stated(i: int, logprobs: list[float], answer: int, subject: str) -> dict:
    """What a model says about its own answer, in words turned into a number."""
    best = int(np.argmax(logprobs))
    confidence = min(round(float(np.exp(logprobs[best])) + 0.15, 1), 1.0)
    return {"question": i, "confidence": confidence, "correct": best == answer, "subject": subject}


FILES = {
    "samples_example.jsonl": harness,
    "openai_batch.jsonl": chat,
    "vllm.jsonl": vllm,
    "plain.jsonl": plain,
    "stated.jsonl": stated,
}


def lines_of(name: str) -> str:
    """The lines of a file."""
    logprobs, answers, subjects = model(120, np.random.default_rng(0))
    rows = zip(logprobs.tolist(), answers.tolist(), subjects.tolist(), strict=True)
    objects = [
        FILES[name](i, said, answer, SUBJECTS[subject]) for i, (said, answer, subject) in enumerate(rows)
    ]
    return "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in objects)


def main() -> None:
    """Write all files, of the same answers."""
    for name in FILES:
        (HERE / name).write_text(lines_of(name))


if __name__ == "__main__":
    main()

"""One answer of a language model, from any of the forms in which logs keep them: options, probabilities, the truth.

What is read: logs of lm-evaluation-harness (log-likelihood tasks), responses in OpenAI's form and vLLM's (the most
likely tokens of the answer), and plain objects ``{options, proba | logprobs | top_logprobs, answer}``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, isfinite
from typing import Any

import numpy as np

from polycal._typing import Float64s

ANSWER_KEYS = ("answer", "label", "target", "gold")
_LOGS = ("filtered_resps", "resps")
# Marks of a space before a token, as tokenizers write it.
_SPACES = " \t\n\u2581\u0120"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# More options than that are no options of a question.
_MOST_OPTIONS = 10_000
# Log probabilities of most likely tokens may be a little above what adds up to 1.
_SLACK = 1e-3


@dataclass(frozen=True, eq=False)
class Answer:
    """Probabilities of the options of one question, and what is known beside them.

    Attributes
    ----------
    proba : ndarray of shape (n_options,)
        Probabilities; NaN where a list of most likely tokens does not have an option.
    label : int or None
        The position of the right option.
    options : tuple of str or None
        What the options are called, where that is known.
    other : float
        The probability of tokens that are no options, as far as they are listed.
    hidden : float
        What is left over by the list of tokens.
    least : float
        The least probability listed: nothing that is not listed has more.
    fields : dict
        The rest of the object.
    """

    proba: Float64s
    label: int | None
    options: tuple[str, ...] | None = None
    other: float = 0.0
    hidden: float = 0.0
    least: float = 1.0
    fields: Mapping[str, Any] = field(default_factory=dict)


def read_answer(item: Any, label: str | None = None) -> Answer:
    """The answer in one object; ``label`` is the key of the right option, if it is none of the usual ones."""
    if not isinstance(item, dict):
        raise TypeError(
            f"holds {type(item).__name__}, not an object such as {{'options': ..., 'proba': ...}}"
        )
    if any(key in item for key in _LOGS):
        return _harness_answer(item, label)
    if "confidence" in item and "correct" in item and not _has_scores(item):
        return _stated(item)
    if "proba" in item or _is_list_of_numbers(item.get("logprobs")):
        return _plain_answer(item, label)
    tokens = most_likely_tokens(item)
    if tokens is None:
        raise ValueError(
            "holds no answer: give 'proba' or 'logprobs' of the options, 'top_logprobs' of the answer's token, a "
            "response with 'choices', or 'confidence' and 'correct'"
        )
    return _token_answer(item, tokens, label)


def _has_scores(item: Mapping[str, Any]) -> bool:
    return any(key in item for key in ("proba", "logprobs", "top_logprobs", "choices", "response", "outputs"))


# Plain objects


def _plain_answer(item: Mapping[str, Any], key: str | None) -> Answer:
    """Probabilities, or logarithms of what is proportional to them, of every option."""
    name = "proba" if "proba" in item else "logprobs"
    scores, options = item[name], _options(item)
    if isinstance(scores, dict):
        options, scores = tuple(map(str, scores)), list(scores.values())
    values = _numbers(scores, name)
    if options is not None and len(options) != values.size:
        raise ValueError(f"has {len(options)} options but {values.size} {name}")
    proba = values if name == "proba" else _softmax(values)
    return Answer(proba, _position(item, key, options, values.size), options, fields=item)


def _stated(item: Mapping[str, Any]) -> Answer:
    """A confidence that was stated, and whether the answer was right: two classes."""
    stated = float(_numbers([item["confidence"]], "confidence")[0])
    if not 0.0 <= stated <= 1.0:
        raise ValueError(f"'confidence' must be from 0 to 1; got {stated:g}; divide percentages by 100")
    if not isinstance(item["correct"], bool | int) or item["correct"] not in (0, 1):
        raise ValueError(f"'correct' must be true or false; got {item['correct']!r:.40}")
    return Answer(np.array([1.0 - stated, stated]), int(item["correct"]), ("wrong", "right"), fields=item)


def _options(item: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The options of a question: a list, or an object by their letters."""
    given = item.get("options")
    if given is None:
        return None
    if not isinstance(given, list | dict) or not 2 <= len(given) <= _MOST_OPTIONS:
        raise ValueError(f"'options' must be a list of at least two; got {given!r:.60}")
    options = tuple(str(one).strip(_SPACES) for one in given)
    if len(set(options)) < len(options):
        raise ValueError(f"'options' has the same twice: {given!r:.60}")
    return options


def _position(
    item: Mapping[str, Any], key: str | None, options: tuple[str, ...] | None, n_options: int
) -> int | None:
    """The right option: what an answer says is its name, else its position counted from 0, else its letter."""
    if key is None:
        key = next((one for one in ANSWER_KEYS if item.get(one) is not None), None)
    given = None if key is None else nested(item, key)
    return None if key is None or given is None else find_option(given, options, n_options, key)


def nested(fields: Mapping[str, Any], key: str) -> Any:
    """A value by its key; of what is nested, by keys with points between them, as in ``doc.subject``."""
    if key in fields:
        return fields[key]
    value: Any = fields
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def find_option(given: Any, options: tuple[str, ...] | None, n_options: int, key: str) -> int:
    """Where an option stands."""
    text = str(given).strip(_SPACES)
    if options is not None and text in options:
        return options.index(text)
    if isinstance(given, bool | list | dict):
        raise TypeError(f"{key!r} is {given!r:.40}, which is not one option")
    if text.isdecimal() and len(text) < 7 and int(text) < n_options:
        return int(text)
    if len(text) == 1 and text.upper() in _LETTERS[:n_options]:
        return _LETTERS.index(text.upper())
    shown = ", ".join(map(repr, (options or letters(n_options))[:6]))
    raise ValueError(f"{key!r} is {text[:40]!r}, which is none of the options ({shown}) nor their position")


def letters(n_options: int) -> tuple[str, ...]:
    """What options are called by their positions."""
    return tuple(_LETTERS[:n_options]) if n_options <= len(_LETTERS) else tuple(map(str, range(n_options)))


# lm-evaluation-harness


def _harness_answer(item: Mapping[str, Any], key: str | None) -> Answer:
    """A line of ``samples_*.jsonl`` of a task that compares log likelihoods."""
    responses = item[next(name for name in _LOGS if name in item)]
    if not isinstance(responses, list) or len(responses) < 2:
        raise ValueError(
            "has fewer than two responses; only log-likelihood tasks with options have probabilities"
        )
    values = _numbers([_likelihood(response) for response in responses], "filtered_resps")
    options = _harness_options(item.get("arguments"), values.size)
    label = _harness_target(item, key, options, values)
    return Answer(_softmax(values), label, options, fields=item)


def _likelihood(response: Any) -> Any:
    """The log likelihood of a response, ``[value, is_greedy]``, in one list more or not."""
    while isinstance(response, list) and response and isinstance(response[0], list):
        response = response[0]
    value = response[0] if isinstance(response, list) and response else response
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"holds the response {value!r:.40}, which is no log likelihood; generated text has no probabilities"
        ) from None


def _harness_options(arguments: Any, n_options: int) -> tuple[str, ...] | None:
    """The options, which are the continuations that were compared."""
    if isinstance(arguments, dict):
        arguments = [list(one.values()) if isinstance(one, dict) else one for one in arguments.values()]
    if not isinstance(arguments, list) or len(arguments) != n_options:
        return None
    texts = [
        one[1] for one in arguments if isinstance(one, list) and len(one) > 1 and isinstance(one[1], str)
    ]
    options = tuple(text.strip(_SPACES) for text in texts)
    return options if len(set(options)) == n_options else None


def _harness_target(
    item: Mapping[str, Any], key: str | None, options: tuple[str, ...] | None, values: Float64s
) -> int | None:
    """The right option: a position in most tasks, the text of the option in some."""
    n_options, is_right = values.size, item.get("acc")
    keys = (key,) if key else (*ANSWER_KEYS, *(f"doc.{one}" for one in ANSWER_KEYS))
    said = [given for one in keys if (given := nested(item, one)) is not None]
    for given in said:
        text = str(given).strip(_SPACES)
        # Positions come first here: that is what the harness writes.
        if text.isdecimal() and len(text) < 7 and int(text) < n_options:
            return int(text)
        if options is None and n_options == 2 and is_right in (0, 1):
            # Two contexts with one continuation, as in WinoGrande, where the target is the continuation.
            top = int(values.argmax())
            return top if is_right else 1 - top
        if not isinstance(given, list | dict | bool):
            return find_option(given, options, n_options, key or "target")
    return None


# Most likely tokens


def most_likely_tokens(item: Mapping[str, Any]) -> dict[str, float] | None:
    """The most likely tokens at the place of the answer, with their log probabilities; None if there are none."""
    options = _options(item)
    for positions in _token_lists(item):
        if not positions:
            continue
        lists = [_token_list(position) for position in positions]
        if options is not None:
            # The answer may come after a few other tokens, such as a bracket.
            wanted = set(options) | set(_LETTERS[: len(options)])
            for tokens in lists:
                top = max(tokens, key=tokens.__getitem__, default="")
                if top.strip(_SPACES) in wanted:
                    return tokens
        return lists[0]
    return None


def _token_lists(item: Mapping[str, Any]) -> list[list[Any]]:
    """The lists of tokens by position, wherever a response has them."""
    found: list[list[Any]] = []
    top = item.get("top_logprobs")
    if top is not None:
        found.append([top] if isinstance(top, dict) or _are_tokens(top) else _a_list(top))
    body = item.get("response", item)
    body = body.get("body", body) if isinstance(body, dict) else item
    choices = body.get("choices") if isinstance(body, dict) else None
    outputs = item.get("outputs")
    for choice in [*_a_list(choices)[:1], *_a_list(outputs)[:1], item]:
        logprobs = choice.get("logprobs") if isinstance(choice, dict) else None
        if isinstance(logprobs, dict) and "content" in logprobs:
            found.append(
                [one.get("top_logprobs") for one in _a_list(logprobs["content"]) if isinstance(one, dict)]
            )
        elif isinstance(logprobs, dict) and "top_logprobs" in logprobs:
            found.append(_a_list(logprobs["top_logprobs"]))
        elif isinstance(logprobs, dict):
            found.append([logprobs])
        elif isinstance(logprobs, list) and logprobs and isinstance(logprobs[0], dict):
            found.append([logprobs] if _are_tokens(logprobs) else logprobs)
    return found


def _a_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _are_tokens(value: Any) -> bool:
    """Whether this is one list of tokens, and not one list for each position."""
    return bool(isinstance(value, list) and value and isinstance(value[0], dict) and "token" in value[0])


def _token_list(position: Any) -> dict[str, float]:
    """Tokens and log probabilities of one position, in OpenAI's form, its older one, or vLLM's."""
    found: dict[str, float] = {}
    if isinstance(position, list):
        pairs = [(one.get("token"), one.get("logprob")) for one in position if isinstance(one, dict)]
    elif isinstance(position, dict):
        pairs = [
            (one.get("decoded_token", token), one.get("logprob")) if isinstance(one, dict) else (token, one)
            for token, one in position.items()
        ]
    else:
        raise TypeError(f"'top_logprobs' must list tokens; got {position!r:.40}")
    for token, value in pairs:
        number = float(_numbers([value], "logprob")[0])
        found[str(token)] = max(number, found.get(str(token), -np.inf))
    return found


def _token_answer(item: Mapping[str, Any], tokens: dict[str, float], key: str | None) -> Answer:
    """Probabilities of options from the most likely tokens: those that are not listed are not known."""
    options = _options(item)
    if options is None:
        raise ValueError("holds tokens but no 'options'; give the answers that the model could choose from")
    names = {name: i for i, name in enumerate(options)}
    if not any(token.strip(_SPACES) in names for token in tokens):
        # Options are texts, and answers their letters.
        names |= {letter: i for i, letter in enumerate(letters(len(options)))}
    proba, other, least = np.full(len(options), np.nan), 0.0, 1.0
    for token, value in tokens.items():
        p = exp(min(value, 0.0))
        least = min(least, p)
        place = names.get(token.strip(_SPACES))
        if place is None:
            other += p
        else:
            proba[place] = p + (0.0 if np.isnan(proba[place]) else proba[place])
    total = float(np.nansum(proba)) + other
    if total > 1.0 + _SLACK:
        raise ValueError(f"the probabilities of its tokens add up to {total:.4g}, more than 1")
    scale = max(total, 1.0)
    return Answer(
        proba / scale,
        _position(item, key, options, len(options)),
        options,
        other / scale,
        max(0.0, 1.0 - total),
        least / scale,
        item,
    )


# Numbers


def _is_list_of_numbers(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], int | float | str)


def _numbers(values: Any, name: str) -> Float64s:
    """Numbers of a JSON list."""
    if (
        not isinstance(values, Sequence)
        or isinstance(values, str)
        or len(values) > _MOST_OPTIONS
        or not values
    ):
        raise ValueError(f"{name!r} must be a list of numbers, at most {_MOST_OPTIONS:,}; got {values!r:.40}")
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        raise ValueError(f"{name!r} must hold numbers; got {values!r:.60}") from None
    wrong = next((x for x in numbers if not isfinite(x) and x != -np.inf), None)
    if wrong is not None:
        raise ValueError(f"{name!r} holds {wrong}, which is not a finite number")
    return np.array(numbers)


def _softmax(values: Float64s) -> Float64s:
    top = float(values.max())
    if not isfinite(top):
        raise ValueError("gives no option a finite log probability")
    powers: Float64s = np.exp(values - top)
    scaled: Float64s = powers / powers.sum()
    return scaled

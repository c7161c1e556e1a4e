"""The token ids and log-probabilities in an engine's answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

PROMPT_TEXT = "prompt"
"""The key of the prompt's text as llama.cpp has rendered it, of which it tells no ids."""


def read_tokens(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an engine's decoded answer says of its tokens, as ``Completion.tokens``.

    Understands Chat Completions and text completions of vLLM (also ``trl vllm-serve``), SGLang,
    llama.cpp and OpenAI, ``/generate`` of SGLang, ``/completion`` of llama.cpp, and Tinker's
    ``SampleResponse``. Of several choices the first counts. Nothing is tokenised.

    Returns:
        Those of these keys that the answer has. ``prompt_ids`` and ``ids``: as the engine gave
        them. ``logprobs``, ``texts`` and ``top``: one item for each id of the reply. ``stop``: the
        id at which the reply ended. ``raw``: whether the log-probabilities are those before
        temperature and the other changes of the distribution. ``temperature``: that of the engine.
        ``truncated``: true if the engine cut the prompt. ``finish``: why the reply ended, if the
        answer has another form than Chat Completions.

    >>> from intercode.models import read_tokens
    >>> choice = {"token_ids": [7, 2], "logprobs": {"content": [{"token": "ls", "logprob": -0.5}]}}
    >>> read_tokens({"prompt_token_ids": [1, 5], "choices": [choice]})
    {'prompt_ids': [1, 5], 'ids': [7, 2], 'logprobs': [-0.5], 'texts': ['ls']}
    """
    choices = answer.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        found = _from_choice(answer, choices[0])
    elif isinstance(answer.get("sequences"), list):
        found = _from_tinker(answer["sequences"])
    elif isinstance(answer.get("meta_info"), Mapping):
        found = _from_sglang(answer, answer["meta_info"])
    elif isinstance(answer.get("generation_settings"), Mapping):
        found = _from_llamacpp(answer)
    else:
        found = {}
    return {name: value for name, value in found.items() if value is not None and value != []}


def chat_logprobs(content: Sequence[Any]) -> dict[str, Any]:
    """Return ``logprobs``, ``texts``, ``top`` and ``ids`` of a list with one entry per token, as in
    Chat Completions; llama.cpp adds the ids."""
    entries = [e for e in content if isinstance(e, Mapping)]
    if len(entries) != len(content) or not entries:
        return {}
    found: dict[str, Any] = {}
    if all(isinstance(e.get("id"), int) for e in entries):
        found["ids"] = [e["id"] for e in entries]
    found["logprobs"] = [e.get("logprob") for e in entries]
    found["texts"] = [str(e.get("token", "")) for e in entries]
    if any(e.get("top_logprobs") for e in entries):
        found["top"] = [_alternatives(e.get("top_logprobs")) for e in entries]
    return found


def _from_choice(answer: Mapping[str, Any], choice: Mapping[str, Any]) -> dict[str, Any]:
    logprobs = choice.get("logprobs")
    details = answer.get("__verbose")
    stops = (choice.get("stop_reason"), choice.get("matched_stop"))  # vLLM, SGLang
    found: dict[str, Any] = {
        "prompt_ids": _ids(choice.get("prompt_token_ids")) or _ids(answer.get("prompt_token_ids")),
        "ids": _ids(choice.get("token_ids")) or _ids(choice.get("response_token_ids")),
        "stop": next((s for s in stops if isinstance(s, int)), None),
    }
    if isinstance(details, Mapping):
        found |= {k: v for k, v in _from_llamacpp(details).items() if k in _OF_REQUEST}
        found["ids"] = found["ids"] or _ids(details.get("tokens"))
        found[PROMPT_TEXT] = details.get("prompt")
    if isinstance(logprobs, Mapping) and isinstance(logprobs.get("content"), list):
        listed = chat_logprobs(logprobs["content"])
        found |= {**listed, "ids": found["ids"] or listed.get("ids")}
    elif isinstance(logprobs, Mapping) and isinstance(logprobs.get("token_logprobs"), list):
        found |= _text_logprobs(logprobs)
    return found


_OF_REQUEST = ("raw", "temperature", "truncated")


def _text_logprobs(logprobs: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the parallel lists of a text completion say."""
    texts, top = logprobs.get("tokens"), logprobs.get("top_logprobs")
    return {
        "logprobs": logprobs["token_logprobs"],
        "texts": [str(t) for t in texts] if isinstance(texts, list) else None,
        "top": top if isinstance(top, list) else None,
    }


def _from_llamacpp(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``/completion`` answers. An answer whose prompt was ids has them in ``prompt``;
    a text is the engine's rendering of them, and is not taken."""
    settings = answer.get("generation_settings")
    settings = settings if isinstance(settings, Mapping) else {}
    entries = answer.get("completion_probabilities")
    finish = {"eos": "stop", "word": "stop", "limit": "length"}.get(str(answer.get("stop_type")))
    return {
        "ids": _ids(answer.get("tokens")),
        **chat_logprobs(entries if isinstance(entries, list) else []),
        "raw": not settings.get("post_sampling_probs", False),
        "temperature": settings.get("temperature"),
        "truncated": answer.get("truncated") or None,
        "finish": finish,
    }


def _from_sglang(answer: Mapping[str, Any], meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``/generate`` answers: triples of log-probability, id and text. The prompt's are
    complete only if the request has ``logprob_start_len`` 0."""
    prompt = _triples(meta.get("input_token_logprobs"))
    reply = _triples(meta.get("output_token_logprobs"))
    count, reason = meta.get("prompt_tokens"), meta.get("finish_reason")
    reason = reason if isinstance(reason, Mapping) else {"type": reason}
    texts = [t[2] for t in reply if len(t) > 2 and isinstance(t[2], str)]
    stop = reason.get("matched")
    return {
        "prompt_ids": [t[1] for t in prompt] if len(prompt) == count else None,
        "ids": _ids(answer.get("output_ids")) or [t[1] for t in reply],
        "logprobs": [t[0] for t in reply],
        "texts": texts if len(texts) == len(reply) else None,
        "stop": stop if isinstance(stop, int) else None,
        "raw": False,
        "finish": reason.get("type"),
    }


def _from_tinker(sequences: Sequence[Any]) -> dict[str, Any]:
    first = sequences[0] if sequences and isinstance(sequences[0], Mapping) else {}
    return {
        "ids": _ids(first.get("tokens")),
        "logprobs": first.get("logprobs"),
        "finish": first.get("stop_reason"),
    }


def _triples(entries: Any) -> list[Sequence[Any]]:
    given = entries if isinstance(entries, list) else []
    return [e for e in given if isinstance(e, Sequence) and len(e) > 1]


def _alternatives(others: Any) -> dict[str, Any]:
    entries = others if isinstance(others, list) else []
    return {str(o.get("token", "")): o.get("logprob") for o in entries if isinstance(o, Mapping)}


def _ids(value: Any) -> list[int] | None:
    sound = isinstance(value, list) and all(isinstance(i, int) for i in value)
    return value if sound and value else None

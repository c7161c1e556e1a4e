"""The gate of training: what is wrong with a trace of tokens, with turn and position."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from intercode.models.base import Completion, reached_token_limit, was_interrupted
from intercode.models.conversation import EMPTY_ANSWER
from intercode.results.tokens.calls import TokenCall
from intercode.results.tokens.tree import TokenTree, continues, shared_length
from intercode_sandbox.registry import unknown_name_error

MAX_LOGPROB = 1e-6
"""What rounding may add to a log-probability of 0."""
CERTAIN_LOGPROB = -1e-3
"""Two replies may have the same log-probabilities by chance if none is below this."""
WINDOW = 8
"""How many ids in a row show that a prompt goes on at another reply of the earlier one."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What is known of a tokenizer. ``bos`` is the id that begins every prompt, and occurs nowhere
    else; leave it out if the template writes it before each message. ``stops`` are the ids that end
    a reply. ``decode`` returns the text of ids."""

    size: int | None = None
    bos: int | None = None
    stops: frozenset[int] = frozenset()
    decode: Callable[[Sequence[int]], str] | None = None


@dataclass(frozen=True, slots=True)
class TokenFault:
    """Something for which an episode is not trained on.

    ``kind`` is one of KINDS. ``turn`` is the number of the step, from 0, and ``position`` an index
    in the ids of the prompt and the reply of its call. ``message`` says both and what is wrong.
    """

    kind: str
    episode: str
    turn: int
    position: int
    message: str


Found = Iterator[tuple[int, str]]
"""Positions, each with what is wrong there."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A call, with what it is compared with: the call that it continues, if it continues one, all
    calls of its episode, and the vocabulary."""

    call: TokenCall
    before: TokenCall | None
    calls: Sequence[TokenCall]
    vocabulary: Vocabulary
    has_ids: bool
    usual_end: int | None
    texts: dict[Any, str]
    """The texts of ids in the calls so far."""

    @property
    def reply_begins(self) -> int:
        return len(self.call.prompt_ids)

    def new_ids(self) -> Iterator[tuple[int, Any]]:
        """Yield the ids that the call before does not have, with their positions."""
        before = self.before
        goes_on = before is not None and continues(self.call.prompt_ids, before)
        begin = len(before.prompt_ids) + len(before.ids) if before and goes_on else 0
        yield from enumerate(self.call.prompt_ids[begin:], begin)
        yield from enumerate(self.call.ids, self.reply_begins)


def find_faults(
    trace: TokenTree, *, vocabulary: Vocabulary | None = None, allow: Collection[str] = ()
) -> list[TokenFault]:
    """Return what is wrong with a trace, by its calls; nothing if it may be trained on.

    The faults of a fork include those of the turns that it shares with its parent. ``vocabulary``
    finds more. ``allow`` are kinds that do not count. Raises UnknownNameError for another kind.

    >>> from intercode.core.types import Step, Trajectory
    >>> from intercode.results.tokens import TokenTrace, find_faults
    >>> replies = ({"prompt_ids": [1, 2], "ids": [7]}, {"prompt_ids": [1, 2, 6, 3], "ids": [8, 9]})
    >>> answers = [{"role": "assistant", "content": "", "tokens": tokens} for tokens in replies]
    >>> steps = tuple(Step("ls", "", messages=(answer,)) for answer in answers)
    >>> trace = TokenTrace.from_episodes([Trajectory("t", 0, "", steps, id="e")])
    >>> [(f.kind, f.turn, f.position) for f in find_faults(trace)]
    [('stop-token-lost', 1, 2)]
    """
    for kind in allow:
        if kind not in KINDS:
            raise unknown_name_error("kind of fault", kind, list(KINDS))
    found = [fault for fault in _find(trace, vocabulary or Vocabulary()) if fault.kind not in allow]
    for episode, (parent, turns) in trace.parents.items():  # parents come first
        shared = [f for f in found if f.episode == parent and f.turn < turns]
        found += [replace(fault, episode=episode) for fault in shared]
    return list(dict.fromkeys(found))


def _find(trace: TokenTree, vocabulary: Vocabulary) -> Iterator[TokenFault]:
    by_episode: dict[str, list[TokenCall]] = {}
    for call in trace.calls:
        by_episode.setdefault(call.episode, []).append(call)

    def shared_calls(episode: str, until: int) -> list[TokenCall]:
        """Return the calls of the episodes from which one was forked, before a turn of it."""
        parent, turns = trace.parents.get(episode, ("", 0))
        earlier = shared_calls(parent, turns) if parent else []
        both = [*earlier, *by_episode.get(parent, ())]
        return [call for call in both if call.turn < min(turns, until)]

    for episode, own in by_episode.items():
        _, turns = trace.parents.get(episode, ("", 0))
        shared = shared_calls(episode, own[0].turn)
        calls = [*shared, *own]
        usual = _usual_end(calls)
        has_ids = any(call.has_any_ids for call in calls)
        of_parent = {(c.turn, c.number) for c in shared_calls(episode, turns) if c.has_any_ids}
        texts: dict[Any, str] = {}
        for number, call in enumerate(calls):
            before = calls[number - 1] if number and call.continues else None
            case = _Case(call, before, calls, vocabulary, has_ids, usual, texts)
            found = list(_of_call(case))
            if number < len(shared):
                continue  # they are found in the parent
            yield from found
            is_known = call.has_any_ids or (call.turn, call.number) in of_parent
            if call.turn < turns and is_known:
                yield _fault("fork-differs", call, 0, "is not that of the parent episode")
    yield from _of_nodes(trace)


def _of_call(case: _Case) -> Iterator[TokenFault]:
    for kind, check in _CHECKS.items():
        for position, what in check(case):
            yield _fault(kind, case.call, position, what)
    for kind, position, what in _of_prompt(case):
        yield _fault(kind, case.call, position, what)


def _fault(kind: str, call: TokenCall, position: int, what: str) -> TokenFault:
    message = f"turn {call.turn}, position {position}: {what}"
    return TokenFault(kind, call.episode, call.turn, position, message)


def _usual_end(calls: Sequence[TokenCall]) -> int | None:
    """Return the id with which most replies end that the model has ended by itself."""
    ends = Counter(c.ids[-1] for c in calls if c.ids and _was_stopped(c))
    common = ends.most_common(1)
    return common[0][0] if common and common[0][1] > 1 and common[0][1] * 2 > ends.total() else None


def _was_stopped(call: TokenCall) -> bool:
    return call.finish == "stop" and not call.has_stop_texts and not call.has_tool_calls


# ------------------------------------------------------------------ one call
def _missing_ids(case: _Case) -> Found:
    call = case.call
    if not call.has_ids and case.has_ids:
        part = "prompt" if not call.prompt_ids else "reply"
        yield 0, f"the record has no ids of the {part}"


def _missing_id(case: _Case) -> Found:
    for position, value in case.new_ids():
        if not isinstance(value, int) or isinstance(value, bool):
            yield position, f"there is {value!r} in place of an id"


def _outside_vocabulary(case: _Case) -> Found:
    size = case.vocabulary.size
    for position, value in case.new_ids():
        if isinstance(value, int) and (value < 0 or (size is not None and value >= size)):
            yield position, f"the id {value} is not one of the vocabulary's {size or ''}".rstrip()


def _lengths_differ(case: _Case) -> Found:
    call = case.call
    for name, values in (("log-probabilities", call.logprobs), ("texts", call.texts)):
        if values is not None and call.ids and len(values) != len(call.ids):
            at = case.reply_begins + min(len(values), len(call.ids))
            yield at, f"the reply has {len(call.ids)} ids and {len(values)} {name}"


def _count_differs(case: _Case) -> Found:
    call = case.call
    parts = (("prompt", call.prompt_ids, 0), ("reply", call.ids, case.reply_begins))
    for (part, ids, begin), count in zip(parts, call.usage, strict=True):
        if ids and count is not None and count != len(ids):
            at = begin + min(count, len(ids))
            yield at, f"the {part} has {len(ids)} ids, and the engine counted {count}"


def _missing_logprobs(case: _Case) -> Found:
    call = case.call
    if call.ids and call.logprobs is None and any(c.logprobs for c in case.calls):
        yield case.reply_begins, "the reply has no log-probabilities, and others of the episode do"
    for n, value in enumerate(call.logprobs or ()):
        if not isinstance(value, int | float):
            yield case.reply_begins + n, f"there is {value!r} in place of a log-probability"


def _not_a_number(case: _Case) -> Found:
    for n, value in enumerate(case.call.logprobs or ()):
        if isinstance(value, float) and not math.isfinite(value):
            yield case.reply_begins + n, f"the log-probability is {value}"


def _positive_logprob(case: _Case) -> Found:
    for n, value in enumerate(case.call.logprobs or ()):
        if isinstance(value, int | float) and MAX_LOGPROB < value < math.inf:
            yield case.reply_begins + n, f"the log-probability is {value}, which is above 0"


def _temperature(case: _Case) -> Found:
    call = case.call
    if call.logprobs and call.is_raw is not False and call.temperature not in (None, 1):
        text = "the log-probabilities are" if call.is_raw else "the log-probabilities may be"
        yield (
            case.reply_begins,
            (f"the reply was sampled at temperature {call.temperature}, and {text} those at 1"),
        )


def _reply_cut(case: _Case) -> Found:
    if reached_token_limit(Completion("", finish_reason=case.call.finish)):
        yield _last(case), f"the reply was cut at a limit of tokens ({case.call.finish})"


def _reply_interrupted(case: _Case) -> Found:
    if was_interrupted(Completion("", finish_reason=case.call.finish)):
        yield _last(case), f"the engine broke the reply off ({case.call.finish})"


def _finish_unknown(case: _Case) -> Found:
    if case.call.ids and not case.call.finish and any(c.finish for c in case.calls):
        yield _last(case), "the engine did not say why the reply ended, and did in other turns"


def _stop_token_lost(case: _Case) -> Found:
    call, stops = case.call, case.vocabulary.stops
    if not call.ids:
        return
    last = call.ids[-1]
    if call.stop is not None and last != call.stop:
        yield _last(case), f"the reply was ended by the id {call.stop} and does not have it"
    elif _was_stopped(call) and stops and last not in stops:
        yield _last(case), f"the reply has ended, and its last id, {last}, is not one that ends"
    elif _was_stopped(call) and case.usual_end not in (None, last):
        yield _last(case), f"the reply ends with the id {last}, and others with {case.usual_end}"


def _stop_token_inside(case: _Case) -> Found:
    stops = case.vocabulary.stops
    for n, value in enumerate(case.call.ids[:-1]):
        if value in stops:
            yield case.reply_begins + n, f"the reply goes on after the id {value}, which ends it"


def _repeated_bos(case: _Case) -> Found:
    ids, bos = case.call.prompt_ids, case.vocabulary.bos
    if bos is None and case.before is None and len(ids) > 1 and ids[0] == ids[1]:
        yield 1, f"the prompt begins with the id {ids[0]} twice"
    for position, value in case.new_ids():
        if bos is not None and value == bos and position:
            yield position, f"the id {bos}, which begins a prompt, is inside it"


def _text_differs(case: _Case) -> Found:
    if _lacks_text(case) and not _other_text(case):
        yield case.reply_begins, "the ids of the reply have another text than the record"


def _other_reply(case: _Case) -> Found:
    call = case.call
    if _lacks_text(case) and (other := _other_text(case)) is not None:
        yield case.reply_begins, f"the reply in the record has the ids of turn {other.turn}"
        return
    for other in case.calls:
        if other is call or not any(_is_uncertain(value) for value in call.logprobs or ()):
            return
        same = other.ids == call.ids and other.logprobs == call.logprobs
        if same and other.prompt_ids != call.prompt_ids:
            text = "ids and log-probabilities of the reply are those of turn"
            yield case.reply_begins, f"{text} {other.turn}, which had another prompt"
            return


def _is_uncertain(logprob: Any) -> bool:
    return isinstance(logprob, int | float) and logprob < CERTAIN_LOGPROB


def _text_of(call: TokenCall, vocabulary: Vocabulary) -> str | None:
    """Return the text of a reply's ids; None if it is not known. The texts of single ids are not
    used where one has a part of a character."""
    if vocabulary.decode is not None and all(isinstance(i, int) for i in call.ids):
        return vocabulary.decode(call.ids)
    texts = call.texts or ()
    if not texts or len(texts) != len(call.ids) or any("\ufffd" in t or not t for t in texts[:-1]):
        return None
    return "".join(texts)


def _lacks_text(case: _Case) -> bool:
    """Return whether the text in the record is not part of what the ids say, or is empty although
    they say something before the last id."""
    call = case.call
    written = call.text.strip()
    if not call.ids or call.is_edited or written == EMPTY_ANSWER:
        return False
    if not written and not call.has_reasoning and not call.has_tool_calls:
        begin = replace(call, ids=call.ids[:-1], texts=call.texts and call.texts[:-1])
        return bool((_text_of(begin, case.vocabulary) or "").strip())
    text = _text_of(call, case.vocabulary)
    return text is not None and written not in text


def _other_text(case: _Case) -> TokenCall | None:
    """Return the call whose recorded text this call's ids have."""
    text = (_text_of(case.call, case.vocabulary) or "").strip()
    others = (c for c in case.calls if c is not case.call and c.text.strip())
    return next((c for c in others if c.text.strip() in text), None)


def _from_cache(case: _Case) -> Found:
    if case.call.is_cached and case.call.ids:
        yield case.reply_begins, "the reply is from the cache, and was sampled in an earlier run"


def _model_changed(case: _Case) -> Found:
    first = next((c.model for c in case.calls if c.model), "")
    if case.call.model and case.call.model != first:
        yield case.reply_begins, f"the model is {case.call.model}, and was {first} before"


def _tokenizer_changed(case: _Case) -> Found:
    call = case.call
    if call.texts is None or len(call.texts) != len(call.ids):
        return
    has_part = [not text or "\ufffd" in text for text in call.texts]
    for n, (value, text) in enumerate(zip(call.ids, call.texts, strict=True)):
        if any(has_part[max(n - 1, 0) : n + 1]):  # it may be the end of a character
            continue
        known = case.texts.setdefault(value, text)
        if known != text:
            yield case.reply_begins + n, f"the id {value} is {text!r}, and was {known!r} before"
            return


def _after_end(case: _Case) -> Found:
    if case.call.is_after_end:
        yield 0, "the model was called after the end of the episode"


def _tools_changed(case: _Case) -> Found:
    if case.before is not None and case.before.tools != case.call.tools:
        yield 0, "the request has other tools than that of the turn before"


def _last(case: _Case) -> int:
    return max(len(case.call.sequence) - 1, 0)


_CHECKS: Mapping[str, Callable[[_Case], Found]] = {
    "missing-ids": _missing_ids,
    "missing-id": _missing_id,
    "outside-vocabulary": _outside_vocabulary,
    "lengths-differ": _lengths_differ,
    "count-differs": _count_differs,
    "missing-logprobs": _missing_logprobs,
    "not-a-number": _not_a_number,
    "positive-logprob": _positive_logprob,
    "temperature": _temperature,
    "reply-cut": _reply_cut,
    "reply-interrupted": _reply_interrupted,
    "finish-unknown": _finish_unknown,
    "stop-token-lost": _stop_token_lost,
    "stop-token-inside": _stop_token_inside,
    "repeated-bos": _repeated_bos,
    "text-differs": _text_differs,
    "other-reply": _other_reply,
    "from-cache": _from_cache,
    "model-changed": _model_changed,
    "tokenizer-changed": _tokenizer_changed,
    "after-end": _after_end,
    "tools-changed": _tools_changed,
}


# ------------------------------------------------------------------ a prompt and the one before it
def _of_prompt(case: _Case) -> Iterator[tuple[str, int, str]]:
    """Yield how a prompt differs from the turns before it, as kind, position and what is wrong."""
    call, before = case.call, case.before
    if call.is_truncated:
        yield "prompt-truncated", 0, "the engine has cut the prompt"
    if before is None or not call.prompt_ids or not before.has_ids:
        return
    prompt, expected = call.prompt_ids, before.sequence
    if continues(prompt, before):
        rest = prompt[len(expected) :]
        if not rest:
            text = "nothing stands between the reply of the turn before and this one"
            yield "observation-missing", len(prompt), text
        elif len(before.ids) > 1 and rest[: len(before.ids)] == before.ids:
            yield "reply-twice", len(expected), f"the reply of turn {before.turn} is there twice"
        return
    at = shared_length(prompt, expected)
    if call.is_truncated:
        return
    yield (*_kind_of_difference(case, at),)


def _kind_of_difference(case: _Case, at: int) -> tuple[str, int, str]:
    call, before = case.call, case.before
    assert before is not None
    prompt, expected = call.prompt_ids, before.sequence
    here = f"the id {prompt[at]}" if at < len(prompt) else "the end of the prompt"
    where = f"{here} stands where the turns before it have {expected[at]}"
    if at == len(prompt):
        return "prompt-truncated", at, f"the prompt ends inside that of turn {before.turn}"
    if _goes_on_later(prompt, expected, at):
        return "prompt-truncated", at, f"a part of the prompt of turn {before.turn} was cut out"
    writer = _writer(case, at)
    if writer is None:
        begin = min(len(c.prompt_ids) for c in case.calls if c.prompt_ids)
        if at < begin:
            return "template-changed", at, f"{where}, before the first reply"
        return "prompt-differs", at, f"{where}, in what the model was told"
    begins, ends = len(writer.prompt_ids), len(writer.prompt_ids) + len(writer.ids)
    if writer.is_edited:
        return "reply-edited", at, f"{where}: the agent has changed its reply of turn {writer.turn}"
    if at == begins and _is_missing(writer, prompt[at:], case.vocabulary):
        return "reply-missing", at, f"the reply of turn {writer.turn} is not in the prompt"
    if writer.has_reasoning:
        return "reasoning-dropped", at, f"{where}: the reasoning of turn {writer.turn} is not there"
    if at == ends - 1:
        return "stop-token-lost", at, f"{where}, the last id of the reply of turn {writer.turn}"
    return "retokenised", at, f"{where}: the reply of turn {writer.turn} is not there as sampled"


def _is_missing(writer: TokenCall, rest: Sequence[int], vocabulary: Vocabulary) -> bool:
    """Return whether the rest of a prompt does not begin with the text of a reply; false if texts
    are not known."""
    if vocabulary.decode is None:
        return False
    text = vocabulary.decode(writer.ids).strip()
    return text[:WINDOW] not in vocabulary.decode(rest[: 4 * len(writer.ids) + WINDOW])


def _writer(case: _Case, at: int) -> TokenCall | None:
    """Return the call in whose reply a position of the earlier prompts lies, if it lies in one."""
    expected = () if case.before is None else case.before.sequence
    for call in case.calls:
        begins, ends = len(call.prompt_ids), len(call.prompt_ids) + len(call.ids)
        if begins <= at < ends and expected[begins:ends] == call.ids:
            return call
    return None


def _goes_on_later(prompt: Sequence[Any], expected: Sequence[Any], at: int) -> bool:
    """Return whether a prompt leaves out ids, and goes on with all that follow them."""
    given = tuple(prompt[at : at + len(expected)])
    rests = (expected[n:] for n in range(at + 1, len(expected) - WINDOW + 1))
    return any(rest[0] == given[0] and given[: len(rest)] == rest for rest in rests)


# ------------------------------------------------------------------ the tree
def _of_nodes(trace: TokenTree) -> Iterator[TokenFault]:
    """Yield what is wrong with the tree: it has to be what its calls say."""
    for (episode, turn, _), reply in trace.reply_nodes.items():
        path = _checked_path(trace, reply)
        call = trace.calls[trace.nodes[reply].call or 0] if path else None
        if path is None or call is None:
            message = f"turn {turn}, position 0: the nodes before the reply are no path to a root"
            yield TokenFault("broken-tree", episode, turn, 0, message)
            continue
        given = call.sequence
        begin = 0
        for n in path:
            node = trace.nodes[n]
            if node.role == "prompt" or n == reply:
                yield from _of_mask(call, node.mask, node.role, begin, len(node.ids))
            own = given[begin : begin + len(node.ids)]
            if own != node.ids or (n == reply and begin + len(own) != len(given)):
                at = begin + shared_length(own, node.ids)
                yield _fault("broken-tree", call, at, "the tree has other ids than the call")
                break
            begin += len(own)


def _of_mask(
    call: TokenCall, mask: Sequence[int], role: str, begin: int, length: int
) -> Iterator[TokenFault]:
    if len(mask) != length:
        at = begin + min(len(mask), length)
        yield _fault("lengths-differ", call, at, f"{length} ids have a mask of {len(mask)}")
    for n, value in enumerate(mask):
        if role == "prompt" and value:
            yield _fault(
                "mask-covers-prompt",
                call,
                begin + n,
                "the mask covers an id that the model did not write",
            )
            return


def _checked_path(trace: TokenTree, reply: int) -> list[int] | None:
    path: list[int] = []
    index = reply
    while len(path) <= len(trace.nodes):
        if not 0 <= index < len(trace.nodes):
            return None
        path.append(index)
        parent = trace.nodes[index].parent
        if parent is None:
            return path[::-1]
        index = parent
    return None


KINDS = tuple(
    sorted(
        {
            *_CHECKS,
            "broken-tree",
            "fork-differs",
            "mask-covers-prompt",
            "observation-missing",
            "prompt-differs",
            "prompt-truncated",
            "reasoning-dropped",
            "reply-edited",
            "reply-missing",
            "reply-twice",
            "retokenised",
            "template-changed",
        }
    )
)
"""The kinds of faults; docs/exports.md explains them."""

"""The trace of tokens: a tree of prompts and replies whose branches share their prefix."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from intercode.core.errors import UsageError
from intercode.core.types import Trajectory
from intercode.results.tokens.calls import TokenCall, token_calls
from intercode.results.tokens.faults import find_faults
from intercode.results.tokens.tree import TokenNode, TokenTree, continues, shared_length
from intercode_sandbox.registry import unknown_name_error


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One branch of an episode as a sequence for training.

    ``nodes`` are the indexes of the nodes from the root. ``replies`` has the index of each call and
    where its reply begins and ends in ``ids``. ``shared`` counts the first ids that a row before it
    in the list has, too. ``advantages`` has one item per id, once advantages are known.
    """

    episode: str
    nodes: tuple[int, ...]
    ids: tuple[int, ...]
    mask: tuple[int, ...]
    logprobs: tuple[float, ...] | None
    replies: tuple[tuple[int, int, int], ...]
    shared: int = 0
    advantages: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class TokenTrace(TokenTree):
    """The calls of an episode, or of one and its forks, linked where prompts continue each other.

    Of forks, the calls before the fork are those of the first episode. ``reply_nodes`` has the node
    of each call's reply by episode, turn and number of the call; a call without ids has none.

    >>> from intercode.core.types import Step, Trajectory
    >>> from intercode.results.tokens import TokenTrace
    >>> replies = ({"prompt_ids": [1, 2], "ids": [7]}, {"prompt_ids": [1, 2, 7, 3], "ids": [8, 9]})
    >>> answers = [{"role": "assistant", "content": "", "tokens": tokens} for tokens in replies]
    >>> steps = tuple(Step("ls", "", messages=(answer,)) for answer in answers)
    >>> (row,) = TokenTrace.from_episodes([Trajectory("t", 0, "", steps, id="e")]).rows()
    >>> row.ids, row.mask
    ((1, 2, 7, 3, 8, 9), (0, 0, 1, 0, 1, 1))
    """

    @classmethod
    def from_episodes(cls, episodes: Iterable[Trajectory]) -> TokenTrace:
        """Return the trace of episodes; a fork comes after the episode that it was forked from."""
        builder = _Builder()
        for episode in episodes:
            builder.add(episode)
        return builder.trace()

    def path(self, node: int) -> tuple[int, ...]:
        """Return the nodes from the root to one, which is the last."""
        found: list[int] = []
        index: int | None = node
        while index is not None:
            found.append(index)
            index = self.nodes[index].parent
        return tuple(reversed(found))

    def rows(self, *episodes: str) -> list[TokenRow]:
        """Return a row for each branch of all episodes, or of these: it ends with a reply that no
        later prompt of the episode continues."""
        rows = []
        seen: set[int] = set()
        for name, leaf in self._leaves():
            path = self.path(leaf)
            if not episodes or name in episodes:
                shared = sum(len(self.nodes[n].ids) for n in path if n in seen)
                rows.append(replace(self._row(name, path), shared=shared))
                seen.update(path)
        return rows

    def batch(
        self, advantages: Mapping[str, float], *, allow: Collection[str] = ()
    ) -> list[TokenRow]:
        """Return the rows of the episodes that have an advantage, by their ids.

        ``allow``: kinds of faults that do not count. Raises UsageError for an id that is not in the
        trace, and for an episode with another fault: leave it out of ``advantages``.

        A token that the model wrote is trained in one row only, with the sum of the advantages of
        the episodes that it belongs to, so that the gradient is that of training on every episode
        whole. A row in which nothing is left to train is left out.
        """
        self._check_batch(advantages, allow)
        paths = [(name, self.path(leaf)) for name, leaf in self._leaves() if name in advantages]
        episodes: dict[int, set[str]] = {}
        for name, path in paths:
            for node in path:
                episodes.setdefault(node, set()).add(name)
        sums = {n: sum(advantages[name] for name in names) for n, names in episodes.items()}
        rows = []
        seen: set[int] = set()
        for name, path in paths:
            row = self._row(name, path, seen)
            weights = tuple(sums[n] for n in path for _ in self.nodes[n].ids)
            seen.update(path)
            if any(row.mask):
                values = tuple(a * m for a, m in zip(weights, row.mask, strict=True))
                rows.append(replace(row, advantages=values))
        return rows

    def _check_batch(self, names: Collection[str], allow: Collection[str]) -> None:
        """Raise UsageError unless episodes are in the trace and may be trained on."""
        known = {*self.episodes, *(episode for episode, _, _ in self.reply_nodes)}
        for name in names:
            if name not in known:
                raise unknown_name_error("episode", name, sorted(known))
        for fault in find_faults(self, allow=allow):
            if not fault.episode or fault.episode in names:
                raise UsageError(
                    f"{fault.episode or 'the trace'} may not be trained on: {fault.kind}, "
                    f"{fault.message}; leave the episode out, or allow faults of this kind"
                )

    def _leaves(self) -> Iterator[tuple[str, int]]:
        """Yield each episode with the nodes at which its branches end."""
        by_episode: dict[str, list[int]] = {}
        for (episode, _, _), node in self.reply_nodes.items():
            by_episode.setdefault(episode, []).append(node)
        for episode, nodes in by_episode.items():
            inner: set[int | None] = set()
            for node in nodes:
                index = self.nodes[node].parent
                while index is not None and index not in inner:
                    inner.add(index)
                    index = self.nodes[index].parent
            yield from ((episode, node) for node in dict.fromkeys(nodes) if node not in inner)

    def _row(
        self, episode: str, path: Sequence[int], seen: Collection[int] = frozenset()
    ) -> TokenRow:
        """Return the row of a path. The nodes that other rows have are not masked."""
        numbered = [(n, self.nodes[n]) for n in path]
        nodes = [node for _, node in numbered]
        known = [node.logprobs for node in nodes if node.logprobs is not None]
        is_known = len(known) == len(nodes)
        masks = ((0,) * len(node.ids) if n in seen else node.mask for n, node in numbered)
        return TokenRow(
            episode,
            tuple(path),
            tuple(i for node in nodes for i in node.ids),
            tuple(m for mask in masks for m in mask),
            tuple(p for part in known for p in part) if is_known else None,
            tuple((n.call, n.begins, n.ends) for n in nodes if n.call is not None),
            sum(len(node.ids) for n, node in numbered if n in seen),
        )


def families(episodes: Iterable[Trajectory]) -> list[list[Trajectory]]:
    """Return the episodes in groups: each with its forks, and those of its forks, parents first."""
    groups: list[list[Trajectory]] = []
    by_id: dict[str, list[Trajectory]] = {}
    given = list(episodes)
    parents = {e.id: e.parent for e in given if e.id and e.parent}

    def depth(episode: Trajectory) -> int:
        forked, name = 0, episode.parent
        while name and forked <= len(parents):
            forked, name = forked + 1, parents.get(name)
        return forked

    for episode in sorted(given, key=depth):
        group = by_id.get(episode.parent) if episode.parent else None
        if group is None:
            group = []
            groups.append(group)
        group.append(episode)
        if episode.id:
            by_id.setdefault(episode.id, group)
    return groups


class _Builder:
    """Links calls one by one."""

    def __init__(self) -> None:
        self.nodes: list[TokenNode] = []
        self.children: dict[int | None, list[int]] = {None: []}
        self.calls: list[TokenCall] = []
        self.reply_nodes: dict[tuple[str, int, int], int] = {}
        self.parents: dict[str, tuple[str, int]] = {}
        self.episodes: set[str] = set()

    def trace(self) -> TokenTrace:
        nodes, calls = tuple(self.nodes), tuple(self.calls)
        return TokenTrace(nodes, calls, self.reply_nodes, self.parents, self.episodes)

    def add(self, episode: Trajectory) -> None:
        if episode.parent in self.episodes and episode.branched_at is not None:
            self.parents[episode.id] = (episode.parent, episode.branched_at)
        self.episodes.add(episode.id)
        earlier: list[tuple[TokenCall, int]] = []
        for call in token_calls(episode):
            node = self._shared_node(call)
            if node is None:
                self.calls.append(call)
                if not call.has_ids:
                    continue
                node = self._link(call, earlier)
            self.reply_nodes[call.episode, call.turn, call.number] = node
            earlier.append((call, node))

    def _shared_node(self, call: TokenCall) -> int | None:
        """Return the node of a call that a fork has from its parent, if it is the same there."""
        parent, turns = self.parents.get(call.episode, ("", 0))
        node = self.reply_nodes.get((parent, call.turn, call.number))
        if node is None or call.turn >= turns:
            return None
        index = self.nodes[node].call
        assert index is not None
        first = self.calls[index]
        same = (call.prompt_ids, call.ids, call.logprobs)
        return node if same == (first.prompt_ids, first.ids, first.logprobs) else None

    def _link(self, call: TokenCall, earlier: Sequence[tuple[TokenCall, int]]) -> int:
        longest = sorted(earlier, key=lambda e: len(e[0].prompt_ids) + len(e[0].ids), reverse=True)
        continued = (e for e in longest if continues(call.prompt_ids, e[0]))
        before, base = next(continued, (None, None))
        done = 0 if before is None else len(before.prompt_ids) + len(before.ids)
        parent = self._prompt(base, call.prompt_ids, done)
        known = call.logprobs is not None and len(call.logprobs) == len(call.ids)
        ones = (1,) * len(call.ids)
        number = len(self.calls) - 1
        begins = len(call.prompt_ids)
        logprobs = call.logprobs if known else None
        reply = TokenNode(parent, "reply", begins, call.ids, ones, logprobs, call.finish, number)
        return self._append(reply)

    def _prompt(self, base: int | None, ids: tuple[int, ...], done: int) -> int | None:
        """Return the node at which a prompt ends that continues ``base`` after ``done`` ids."""
        while done < len(ids):
            child = next(
                (
                    c
                    for c in self.children[base]
                    if self.nodes[c].role == "prompt" and self.nodes[c].ids[0] == ids[done]
                ),
                None,
            )
            if child is None:
                rest = ids[done:]
                zeros = (0.0,) * len(rest)
                return self._append(TokenNode(base, "prompt", done, rest, (0,) * len(rest), zeros))
            length = shared_length(self.nodes[child].ids, ids[done:])
            if length < len(self.nodes[child].ids):
                self._split(child, length)
            base, done = child, done + length
        return base

    def _split(self, index: int, length: int) -> None:
        """Leave the first ids in a node, and move the rest with what follows to a new one."""
        node = self.nodes[index]
        first, rest = (_part(node, slice(0, length)), _part(node, slice(length, None)))
        self.nodes[index] = first
        new = self._append(replace(rest, parent=index, begins=node.begins + length))
        moved = [c for c in self.children[index] if c != new]
        self.children[index], self.children[new] = [new], moved
        for child in moved:
            self.nodes[child] = replace(self.nodes[child], parent=new)

    def _append(self, node: TokenNode) -> int:
        self.nodes.append(node)
        index = len(self.nodes) - 1
        self.children[index] = []
        self.children[node.parent].append(index)
        return index


def _part(node: TokenNode, part: slice) -> TokenNode:
    logprobs = None if node.logprobs is None else node.logprobs[part]
    return replace(node, ids=node.ids[part], mask=node.mask[part], logprobs=logprobs)

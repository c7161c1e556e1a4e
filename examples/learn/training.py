"""Trains a policy with one of four kinds of credit, and stores its curve.

Each run begins with a policy that imitates a scripted explorer, which opens files at random. Every
episode is a task that was never played before, so the curve of the training episodes is one of
unseen files.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import mean, pstdev

import torch
from player import Episode, Policy, Situation, begin, open_env, play
from settings import EXPLORED_SEED, FORKS, GROUP, GROUPS, TRAIN_WORDING, Setting, numbered_task
from stored_runs import check_seeds, check_stored, describe_run

from intercode.environments import InterCodeEnv

_RATE = 7e-3
Choice = tuple[Situation, str, float]
"""A situation, the action taken there, and its advantage."""
Credited = tuple[Episode, list[Choice]]


def imitate_explorer(policy: Policy, setting: Setting) -> None:
    """Teach a policy to act as the explorer does, whether it solves its tasks or not, or as it did
    where it solved one."""
    with ExitStack() as stack:
        envs, episodes = open_envs(stack, setting), list[Episode]()
        for n in range(setting.imitated):
            situation = begin(envs[n % len(envs)], EXPLORED_SEED + n, TRAIN_WORDING)
            episode = play(envs[n % len(envs)], situation, setting.explorer)
            if episode.solved or not setting.only_solved:
                episodes.append(episode)
    optimizer = torch.optim.Adam(policy.parameters(), lr=_RATE)
    for episode in setting.passes * episodes:
        _update(policy, optimizer, [(*choice, 1.0) for choice in episode.choices], entropy=0.0)


def open_envs(stack: ExitStack, setting: Setting, reward_mode: str = "final") -> list[InterCodeEnv]:
    """Return an environment for each part of the training tasks, until the stack is closed."""
    return [
        stack.enter_context(open_env(tasks.dataset, tasks.max_turns, reward_mode))
        for tasks in setting.train
    ]


def final_credit(env: InterCodeEnv, policy: Policy, seed: int) -> Iterator[Credited]:
    """Play a group of episodes of one task. All actions of one share its advantage (GRPO)."""
    group = [play(env, begin(env, seed, TRAIN_WORDING), policy.choose) for _ in range(GROUP)]
    yield from _share(group, [episode.score for episode in group])


def success_credit(env: InterCodeEnv, policy: Policy, seed: int) -> Iterator[Credited]:
    """As the final reward, but an episode is worth 1 if it is solved, else 0."""
    group = [play(env, begin(env, seed, TRAIN_WORDING), policy.choose) for _ in range(GROUP)]
    yield from _share(group, [float(episode.solved) for episode in group])


def _share(group: list[Episode], values: list[float]) -> Iterator[Credited]:
    for episode, advantage in zip(group, _standardize(values), strict=True):
        yield episode, [(*choice, advantage) for choice in episode.choices]


def delta_credit(env: InterCodeEnv, policy: Policy, seed: int) -> Iterator[Credited]:
    """Play a group of episodes of one task. An action's advantage is the sum of the rewards from
    its turn on, compared with that of the group's other episodes at the same turn."""
    group = [play(env, begin(env, seed, TRAIN_WORDING), policy.choose) for _ in range(GROUP)]
    returns = [[sum(e.rewards[turn:]) for turn in range(len(e.rewards))] for e in group]
    choices: list[list[Choice]] = [[] for _ in group]
    for turn in range(max(map(len, returns))):
        alive = [i for i, of_one in enumerate(returns) if len(of_one) > turn]
        advantages = _standardize([returns[i][turn] for i in alive])
        for i, advantage in zip(alive, advantages, strict=True):
            choices[i].append((*group[i].choices[turn], advantage))
    yield from zip(group, choices, strict=True)


def fork_credit(env: InterCodeEnv, policy: Policy, seed: int) -> Iterator[Credited]:
    """Play one episode. Before each action, fork its live state and play each fork to the end: the
    fork's first action gets its advantage over those of the other forks. The episode goes on as
    its first fork did."""
    situation, over = begin(env, seed, TRAIN_WORDING), False
    while not over:
        forks = env.fork(FORKS)
        try:
            played = [play(fork, situation, policy.choose) for fork in forks]
        finally:
            for fork in forks:
                fork.close()
        for episode, advantage in zip(played, _standardize([e.score for e in played]), strict=True):
            yield episode, [(*episode.choices[0], advantage)]
        action = played[0].choices[0][1]
        output, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
        situation = Situation(situation.query, [*situation.turns, (action, output)])


CREDITS = {
    "final": final_credit,
    "delta": delta_credit,
    "fork": fork_credit,
    "success": success_credit,
}


def _standardize(values: list[float]) -> list[float]:
    spread = pstdev(values)
    return [(value - mean(values)) / (spread + 1e-3) for value in values]


def _update(
    policy: Policy, optimizer: torch.optim.Optimizer, choices: list[Choice], entropy: float = 0.003
) -> None:
    chosen = [choice for choice in choices if choice[2]]
    if not chosen:
        return
    loss = torch.zeros(())
    for situation, action, advantage in chosen:
        log, uncertainty = policy.log_probability(situation, action)
        loss = loss - advantage * log - entropy * uncertainty
    optimizer.zero_grad()
    (loss / len(chosen)).backward()
    optimizer.step()


def train(
    folder: Path, setting: Setting, credit: str, seed: int, episodes: int
) -> dict[str, float]:
    """Train with one kind of credit for so many episodes, and return the success on unseen tasks
    before and after. A run that was interrupted, or had fewer episodes, goes on after its last
    update. Raises RunError if the folder holds a longer run, or one that was made otherwise.

    ``folder`` gets ``state.pt``, ``result.json``, and ``curve.jsonl`` with a row for each update:
    how many episodes were played, how many of them from the first turn on (``whole``), and how many
    of the whole ones were solved. A fork of a later turn is played, but says nothing about the
    success of whole episodes.
    """
    check_seeds(seed, episodes)
    update = f"{GROUPS} groups of {GROUP}, {FORKS} forks, rate {_RATE}"
    made_with = describe_run(setting, credit, seed, update)
    folder.mkdir(parents=True, exist_ok=True)
    result = folder / "result.json"
    if result.is_file():
        finished = json.loads(result.read_text())
        check_stored(folder, finished, made_with, episodes)
        if finished["episodes"] == episodes:
            return dict(finished["success"])
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    random.seed(seed)
    policy, state = setting.policy(), folder / "state.pt"
    optimizer = torch.optim.Adam(policy.parameters(), lr=_RATE)
    if state.is_file():
        stored = torch.load(state, weights_only=True)
        check_stored(folder, stored, made_with, episodes)
        policy.load_state_dict(stored["policy"])
        optimizer.load_state_dict(stored["optimizer"])
        rows, report = stored["rows"], stored["before"]
        torch.manual_seed(seed + len(rows))
    else:
        imitate_explorer(policy, setting)
        rows, report = [], setting.measure(policy, "before")
    played = sum(row["episodes"] for row in rows)
    with ExitStack() as stack:
        envs = open_envs(stack, setting, "delta" if credit == "delta" else "final")
        while played < episodes:
            count, choices, solved = 0, list[Choice](), list[bool]()
            while count < GROUP * GROUPS:
                part, task = numbered_task(setting, seed, played + count)
                for episode, credited in CREDITS[credit](envs[part], policy, task):
                    count += 1
                    if not episode.choices[0][0].turns:
                        solved.append(episode.solved)
                    choices += credited
            _update(policy, optimizer, choices)
            played += count
            rows.append({"episodes": count, "whole": len(solved), "solved": sum(solved)})
            stored = {
                "policy": policy.state_dict(),
                "optimizer": optimizer.state_dict(),
                "rows": rows,
                "before": report,
                "made_with": made_with,
                "episodes": episodes,
            }
            torch.save(stored, state.with_suffix(".new"))
            state.with_suffix(".new").replace(state)
            print(f"{folder.name}: {played} episodes, {mean(solved):.2f} solved", flush=True)
    report |= setting.measure(policy, "after")
    (folder / "curve.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    finished = {"episodes": episodes, "success": report, "made_with": made_with}
    result.write_text(json.dumps(finished))
    return report

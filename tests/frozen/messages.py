"""Items with the bytes of every message that agents send to an endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

from frozen.endpoint import Reply, calls, endpoint, fenced, plan, thoughts
from frozen.session import Item, Session

AGENTS: dict[str, tuple[Callable[[str], Reply], tuple[str, ...]]] = {
    "try-again": (fenced, ()),
    "single-turn": (fenced, ()),
    "react": (thoughts, ()),
    "plan-solve": (plan, ("--agent-option", "refine=2")),
    "tool-calling": (calls, ()),
}
"""Agent -> how its model answers, and its options."""
ENVIRONMENTS = ("bash", "sql", "python", "ctf", "code")
OPTIONS = ("--model-option", "temperature=0.5", "--model-option", "max_tokens=300")
MORE = {
    "try-again feedback": ("try-again", "bash", ("--agent-option", "reward_in_feedback=true")),
    "react history": ("react", "bash", ("--agent-option", "history=last:1")),
    "original": ("try-again", "bash", ("--profile", "original")),
    "mysql": ("tool-calling", "sql", ("--env-option", "engine=mysql")),
    "responses": ("tool-calling", "bash", ("--model-option", "api=responses")),
    "policy": ("try-again", "bash", ("--deny", "command:find")),
    "stream": ("react", "sql", ("--model-option", "stream=true")),
}
"""Further label -> agent, environment, options."""
PROGRAM = """program:python3 -c '
import json, os, sys, urllib.request
messages = [{"role": "user", "content": sys.argv[1]}]
for turn in range(3):
    body = json.dumps({"model": os.environ["INTERCODE_MODEL"], "messages": messages}).encode()
    headers = {"Content-Type": "application/json",
               "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    answer = urllib.request.urlopen(urllib.request.Request(url, body, headers)).read()
    messages.append(json.loads(answer)["choices"][0]["message"])
    messages.append({"role": "user", "content": str(turn)})
print(messages[1]["content"])
'"""
"""A program in the sandbox that sends three requests."""


def sent(session: Session, agent: str) -> Item:
    """Play tasks of each environment; return every request of the agent."""
    item = Item()
    reply, options = AGENTS[agent]
    for name in ENVIRONMENTS:
        _play(session, item, name, reply(name), name, "--agent", agent, *options)
    return item


def sent_more(session: Session) -> Item:
    """Play tasks with other settings, and with a program."""
    item = Item()
    for label, (agent, name, options) in MORE.items():
        reply = AGENTS[agent][0](name)
        _play(session, item, label, reply, name, "--agent", agent, *options)
    for name in ("bash", "python"):
        _play(session, item, f"program {name}", fenced(name), name, "--agent", PROGRAM)
    return item


def _play(session: Session, item: Item, label: str, reply: Reply, name: str, *words: str) -> None:
    deterministic = () if name == "sql" else ("--deterministic",)
    out = f"messages-{label}-{words[1][:7]}".replace(" ", "-").replace(":", "")
    with endpoint(reply) as server:
        done = session.run(
            "eval",
            f"starter:{name}",
            *words,
            "--model",
            "m",
            "--base-url",
            server.url,
            "--tasks",
            "0,7",
            "--max-turns",
            "4",
            "--parallel",
            "1",
            "--seed",
            "2",
            *OPTIONS,
            *deterministic,
            "--out",
            out,
        )
    session.add_status(item, label, done)
    item.exact[f"{label} headers"] = sorted(server.headers)
    for number, (path, body) in enumerate(server.requests):
        item.exact[f"{label} request {number}"] = f"{path} {session.text(body.decode())}"
    path = session.work / out / "trajectories.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    item.exact[f"{label} ends"] = [[row["task"], row["end"], len(row["steps"])] for row in rows]


ITEMS: dict[str, Callable[[Session], Item]] = {
    **{f"messages-{agent}": partial(sent, agent=agent) for agent in AGENTS},
    "messages-more": sent_more,
}

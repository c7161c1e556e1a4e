"""Policies: rules, files, and refused actions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.agents.baselines import GoldAgent
from intercode.core.errors import ConfigError, UnknownNameError, UsageError
from intercode.core.types import Dataset, Task
from intercode.environments.base.policy import Policy
from intercode.environments.base.policy.policy import read_policy
from intercode.environments.base.policy.rules import make_rule
from intercode.evaluation.rollout import rollout
from support.descriptions import guard as make_guard

FILE = """
unparsed = "refuse"
message = "No: {found} ({rule})."
deny = ["command:rm -r", {rule = "command:git push", message = "Nothing is pushed from here."}]
"""


def test_a_file_has_rules_and_messages(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(FILE)
    guard = make_guard(path, "bash")
    assert guard.refusal("ls") is None
    assert guard.refusal("rm  -r   x") == "No: rm -r x (command:rm -r).\n"
    assert guard.refusal("git push") == "Nothing is pushed from here.\n"
    assert guard.refusal("if (") == "No: a syntax error (unparsed = refuse).\n"


def test_the_default_message_names_the_rule() -> None:
    refusal = make_guard({"deny": ["command:rm"]}, "bash").refusal("rm x")
    assert (
        refusal == "Refused: `rm x` is not allowed here (rule: deny command:rm). Nothing was run.\n"
    )
    refusal = make_guard({"allow": ["command:ls"]}, "bash").refusal(f"cat {'x' * 200}")
    assert (
        refusal is not None
        and "`cat xxx" in refusal
        and "(command:ls)" in refusal
        and len(refusal) < 200
    )


def test_deny_precedes_allow() -> None:
    guard = make_guard({"allow": ["command:rm"], "deny": ["command:rm -r"]}, "bash")
    assert guard.refusal("rm x") is None and guard.refusal("rm -r x") is not None


def test_an_allowed_pattern_must_match() -> None:
    guard = make_guard({"allow": ["pattern:^SELECT", "pattern:^SHOW"]}, "sql")
    assert guard.refusal("SHOW TABLES") is None and guard.refusal("DROP TABLE t") is not None


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"deny": ["rm"]}, "the rule 'rm' is not of the form kind:pattern"),
        ({"deny": ["command:"]}, "the rule 'command:' is not of the form"),
        ({"deny": ["comand:rm"]}, "kind of rule 'comand'; did you mean 'command'"),
        ({"deny": ["pattern:("]}, r"the rule 'pattern:\(' cannot be read: missing \)"),
        ({"deny": ["command:'"]}, "cannot be read: No closing quotation"),
        ({"deny": "command:rm"}, "'deny' must be a list, not 'command:rm'"),
        ({"deny": [7]}, "'deny.0.' must be a text or a table {rule = ...}, not 7"),
        (
            {"deny": [{"rule": "command:x", "mesage": "q"}]},
            "'deny.0..mesage' is unknown: did you mean 'message'",
        ),
        ({"den": ["command:x"]}, "the policy: 'den' is unknown: did you mean 'deny'"),
        ({"unparsed": "refuse"}, "the policy has no rule"),
        (
            {"deny": ["command:x"], "unparsed": "no"},
            "'unparsed' must be one of allow, refuse, not 'no'",
        ),
        ({"deny": ["command:x"], "message": 7}, "'message' must be a text, not 7"),
        (
            {"deny": ["import:os"]},
            "none of the policy's rules .import:os. .*'bash'; kinds that can",
        ),
    ],
)
def test_an_invalid_rule_is_named(rules: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make_guard(rules, "bash")


def test_an_invalid_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"rules\.toml"):
        read_policy(tmp_path / "rules.toml")
    (tmp_path / "rules.toml").write_text('deny = ["rm"]')
    with pytest.raises(ConfigError, match=r"rules\.toml: the rule 'rm'"):
        read_policy(tmp_path / "rules.toml")


def test_a_file_may_have_rules_for_several_languages() -> None:
    rules = {"deny": ["command:rm", "statement:DROP"]}
    assert make_guard(rules, "sql").refusal("DROP TABLE x") is not None
    assert make_guard(rules, "bash").refusal("rm x") is not None


def test_other_environments_have_patterns_only() -> None:
    assert make_guard({"deny": ["pattern:x"]}, "ruby").refusal("x = 1") is not None
    with pytest.raises(ConfigError, match="kinds that can: pattern"):
        make_guard({"deny": ["command:x"]}, "ruby")


def test_metadata_gives_the_same_policy_and_distinguishes_policies() -> None:
    policy = Policy(
        (make_rule("command:rm", "No."),), (make_rule("command:ls"),), "refuse", "{rule}"
    )
    metadata = policy.metadata()
    assert read_policy(metadata) == policy and read_policy(policy) is policy
    others = [Policy(policy.deny), Policy(policy.deny, unparsed="refuse"), Policy((), policy.allow)]
    assert len({metadata["digest"], *(other.metadata()["digest"] for other in others)}) == 4


# ------------------------------------------------------------- in an environment
TASKS = (Task("t/x", "Make /x.", gold="touch /x"),)


@pytest.fixture(scope="module")
def env() -> Iterator[Any]:
    dataset = Dataset("t", "bash", TASKS)
    with intercode.make("bash", dataset, policy={"deny": ["command:rm"]}, hashes=True) as made:
        yield made


@pytest.mark.sandbox
def test_a_refusal_is_an_observation_that_costs_a_turn(env: Any) -> None:
    env.reset(options={"task": 0})
    _, _, _, _, before = env.step("touch /x; echo kept")
    observation, reward, done, truncated, info = env.step("touch /y; rm /x")
    assert observation.startswith("Refused: `rm /x`") and (reward, done, truncated) == (
        0,
        False,
        False,
    )
    assert info["refused"] is True and info["valid"] is False and info["exit_code"] is None
    assert info["changes"] == before["changes"] == ["/x"]
    assert info["hashes"]["state"] == before["hashes"]["state"]
    assert env.episode.last_observation == "kept\n"  # the last executed action is scored
    assert "refused" not in env.step("ls /x")[4]


@pytest.mark.sandbox
def test_refusals_use_up_turns_and_forks_have_the_policy(env: Any) -> None:
    env.reset(options={"task": 0})
    (other,) = env.fork()
    with other:
        assert other.step("rm /x")[4]["refused"] and other.result_metadata()["policy"]["deny"]
    with intercode.make(
        "bash", Dataset("t", "bash", TASKS), policy={"deny": ["command:rm"]}, max_turns=1
    ) as short:
        short.reset(options={"task": 0})
        assert short.step("rm /x")[3] is True


@pytest.mark.sandbox
def test_a_record_counts_refusals_and_names_the_policy(env: Any) -> None:
    t = rollout(GoldAgent(golds={"t/x": ("rm -f /x", "touch /x")}), env, 0)
    assert [s.refused for s in t.steps] == [True, False, False] and t.success
    assert t.steps[0].valid is False and t.steps[0].executed
    assert env.result_metadata()["policy"]["deny"] == ["command:rm"]
    with intercode.make("bash", Dataset("t", "bash", TASKS)) as free:
        assert free.result_metadata()["policy"] is None


def test_sql_refuses_before_execution() -> None:
    with intercode.make("sql", "starter", policy={"allow": ["statement:SELECT"]}) as env:
        env.reset(options={"task": "starter/sql/how-many-plots"})
        assert env.step("DROP TABLE plot")[4]["refused"]
        assert env.step("SELECT COUNT(*) FROM plot")[0] == "[(14,)]"


@pytest.mark.sandbox
def test_python_refuses_before_execution() -> None:
    with intercode.make("python", "starter", policy={"deny": ["import:os"]}) as env:
        env.reset(options={"task": 0})
        assert env.step("x = 1\nimport os")[4]["refused"]
        assert "NameError" in env.step("x")[0]


def test_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(UnknownNameError):
        make_rule("commands:rm")

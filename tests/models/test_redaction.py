"""Keys appear in nothing that is written or shown; a whole evaluation is searched for them."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from intercode.core.errors import ConfigError
from intercode.models import Budget, OpenAIModel, SpendingLimits, limit_model, open_model
from intercode.models.redaction import find_secrets, redact, redact_text
from support.faulty_endpoint import FaultyEndpoint, completion, status

KEY = "sk-very-secret-0123456789"
HEADER = "header-secret-0123456789"
WORD = "password-0123456789"


def test_what_is_hidden_and_what_is_not() -> None:
    given: dict[str, Any] = {
        "api_key": KEY,
        "max_tokens": 5,
        "return_token_ids": True,
        "stop_token": "</s>",
        "headers": {"X-Api-Key": KEY, "Authorization": f"Bearer {KEY}", "X-Team": "blue"},
        "extra": {"auth": {"password": WORD}, "eos_token": "</s>"},
    }
    hidden = redact(given)
    assert KEY not in str(hidden)
    assert WORD not in str(hidden)
    assert hidden["headers"]["X-Team"] == "blue"
    recorded = {k: hidden[k] for k in ("max_tokens", "return_token_ids", "stop_token")}
    assert recorded == {"max_tokens": 5, "return_token_ids": True, "stop_token": "</s>"}
    assert hidden["extra"]["eos_token"] == "</s>"
    assert {KEY, WORD} <= set(find_secrets(given))
    assert redact_text(f"a {KEY} b EMPTY", [KEY, "EMPTY"]) == "a [hidden] b EMPTY"


def test_metadata_and_reprs_hold_no_secret() -> None:
    url = f"http://me:{WORD}@localhost/v1?api-version=3"
    headers = {"X-Api-Key": HEADER}
    model = OpenAIModel("m", url, api_key=KEY, headers=headers, extra={"password": WORD})
    shown = (
        str(model.metadata())
        + repr(model)
        + repr(limit_model(model, Budget(SpendingLimits(tokens=1))))
    )
    for secret in (KEY, HEADER, WORD):
        assert secret not in shown
    address, _, query = model.metadata()["endpoint"].partition("#query-")
    assert address == "http://localhost/v1/chat/completions" and len(query) == 12
    assert model.metadata()["generation"]["headers"] == {"X-Api-Key": "[hidden]"}


def test_a_key_in_the_query_is_refused_without_showing_it() -> None:
    with pytest.raises(ConfigError, match="query") as caught:
        OpenAIModel("m", f"http://localhost/v1?key={KEY}")
    assert KEY not in str(caught.value)


def test_a_header_that_the_server_repeats_is_cleaned(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    refusal = status(401, {"error": {"message": f"no {HEADER} and no {WORD}"}})
    with FaultyEndpoint(refusal) as server:
        url = server.base_url.replace("http://", f"http://me:{WORD}@")
        model = OpenAIModel("m", url, headers={"X-Auth": f"Token {HEADER}"})
        with model, pytest.raises(Exception, match="401") as caught:
            model.complete([{"role": "user", "content": "x"}])
    assert server.headers[0]["Authorization"].startswith("Basic ")
    for secret in (HEADER, WORD):
        assert secret not in str(caught.value) + caplog.text


PROGRAM = """
import sys, logging
logging.basicConfig(level=logging.DEBUG)
from intercode.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_whole_run_writes_no_key_anywhere_and_no_sandbox_sees_one(tmp_path: Path) -> None:
    """`intercode eval` with the most verbose logging, an endpoint that repeats the key in an error,
    and actions that search the sandbox for it."""
    search = "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\\\0' '\\\\n'"
    answer = completion(f"```bash\n{search}\n```")
    faults = (status(429, {"error": {"message": f"slow down, {KEY}"}}), status(200, answer))
    environ = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    environ |= {"OPENAI_API_KEY": KEY, "NO_COLOR": "1"}
    options = [f"cache={tmp_path / 'answers.sqlite'}", f'headers={{"X-Key": "{HEADER}"}}']
    with FaultyEndpoint(*faults) as server:
        run = subprocess.run(
            [
                sys.executable,
                "-c",
                PROGRAM,
                "eval",
                "starter",
                "--agent",
                "try-again",
                "--model",
                "m",
                "--base-url",
                server.base_url,
                "--limit",
                "2",
                "--max-turns",
                "2",
                "--set",
                f"model_options.{options[0]}",
                "--set",
                f"model_options.{options[1]}",
                "--out",
                str(tmp_path / "run"),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            env=environ,
            cwd=tmp_path,
        )
    if "Sandbox" in run.stdout + run.stderr and "errors in" in run.stderr:
        pytest.skip("no sandbox on this machine: see `intercode doctor`")
    assert run.returncode == 0, run.stderr[-3000:]
    assert len(server.requests) >= 4
    assert server.headers[-1]["Authorization"] == f"Bearer {KEY}"
    requests = str(server.requests)
    assert re.search(r"HOME|PATH", requests)  # the actions did print the environment
    files = [f for f in tmp_path.rglob("*") if f.is_file()]
    assert any(f.name == "answers.sqlite" for f in files)
    written = b"".join(f.read_bytes() for f in files)
    shown = written.decode("utf-8", "replace") + run.stdout + run.stderr + requests
    assert KEY not in shown
    assert HEADER not in shown


def test_the_key_of_one_provider_is_never_sent_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for name in ("INTERCODE_API_KEY", "GROQ_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match="GROQ_API_KEY"):
        open_model("groq/llama")
    local = open_model("vllm/qwen")
    assert isinstance(local, OpenAIModel)
    assert local.metadata()["endpoint"] == "http://localhost:8000/v1/chat/completions"
    assert local._secrets == ()

"""The guide "Add a provider" works as it is written, and every command finds the providers by their
names."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.core import logs
from intercode.core.errors import ConfigError, UnknownNameError, UsageError
from intercode.core.trajectories import read_run_metadata
from intercode.models import (
    Budget,
    OpenAIModel,
    SpendingLimits,
    check_option_names,
    limit_model,
    open_model,
)
from intercode_sandbox import plugins
from support import pages

GUIDE = "add-a-provider.md"
MODULES = ("aviary", "parrot", "parrot_server")


def forget_plugins() -> None:
    plugins.find_plugins.cache_clear()
    plugins._entry_points.cache_clear()
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Lay the files of the guide out like an installed package, with its entry points."""
    directory = tmp_path / "package"
    directory.mkdir()
    pages.write_files(GUIDE, directory)
    (rows,) = (block.text for block in pages.blocks(GUIDE) if block.language == "toml")
    info = directory / "birds-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: birds\nVersion: 1.0\n")
    entries = rows.replace('[project.entry-points."', "[").replace('"]', "]").replace('"', "")
    (info / "entry_points.txt").write_text(entries)
    monkeypatch.syspath_prepend(str(directory))
    for variable in ("OPENAI_BASE_URL", "INTERCODE_API_KEY", "PARROT_API_KEY", "AVIARY_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    forget_plugins()
    yield directory
    forget_plugins()


@pytest.fixture
def address(package: Path) -> Iterator[str]:
    """Run the server of the guide; return its address."""
    with import_module("parrot_server").serve() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_the_tests_of_the_guide_pass(tmp_path: Path) -> None:
    pages.write_files(GUIDE, tmp_path)
    (printed,) = pages.run_commands(GUIDE, tmp_path)
    assert "2 passed" in printed


@pytest.mark.sandbox
def test_a_run_is_played_with_its_model(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARROT_API_KEY", "polly-wants")
    out = tmp_path / "run"
    intercode.evaluate(
        "starter",
        agent="single-turn",
        model="parrot/grey",
        base_url=address,
        out=out,
        limit=1,
        model_options={"volume": 1},
    )
    (episode,) = logs.load_log(out)
    assert episode.steps[0].action.startswith("echo ") and episode.usage.completion_tokens == 2
    metadata = read_run_metadata(out)
    assert metadata["model"] == "parrot/grey"
    recorded = metadata["model_metadata"]
    assert (recorded["provider"], recorded["volume"]) == ("parrot", 1)
    assert "polly" not in (out / "run.json").read_text()


def test_a_budget_adds_to_a_request_what_the_provider_says(address: str) -> None:
    parrot = import_module("parrot").ParrotModel
    sent: list[dict[str, Any]] = []

    class Listening(parrot):  # type: ignore[misc]
        async def attempt(self, client: Any, request: dict[str, Any], seconds: float) -> Any:
            sent.append(request)
            return await super().attempt(client, request, seconds)

    class Brief(Listening):
        def limit_answer(self, request: dict[str, Any], max_tokens: int) -> dict[str, Any]:
            return {**request, "words": max_tokens}

    for kind in (Listening, Brief):
        with kind("grey", address, "polly-wants") as model:
            limited = limit_model(model, Budget(SpendingLimits(tokens=900)))
            assert "echo" in limited.complete([{"role": "user", "content": "say ha"}]).text
    asked, limited_by_it = sent
    assert asked.keys() == {"bird", "turns", "volume"}
    assert 0 < limited_by_it.pop("words") < 900 and limited_by_it == asked


def test_a_row_is_all_that_an_openai_compatible_endpoint_needs(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="AVIARY_API_KEY"):
        open_model("aviary/finch")
    monkeypatch.setenv("AVIARY_API_KEY", "k")
    model = open_model("aviary/finch")
    assert isinstance(model, OpenAIModel)
    assert model.endpoint == "https://api.aviary.example/v1/chat/completions"
    assert (model.name, model.provider, model.stream) == ("finch", "aviary", True)


def test_its_address_key_and_options_are_checked(package: Path) -> None:
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:8642.*PARROT_API_KEY"):
        open_model("parrot/grey")
    model = open_model("parrot/grey", needs_key=False)
    assert model.endpoint == "http://127.0.0.1:8642/talk"
    check_option_names({"volume": 1})
    with pytest.raises(UnknownNameError, match="volume"):
        check_option_names({"volme": 1})
    with pytest.raises(ConfigError, match=r"litellm/NAME.*parrot/NAME"):
        open_model("nobody/grey")


def test_a_row_that_is_no_provider_is_an_error(package: Path) -> None:
    (package / "aviary.py").write_text("AVIARY = 'https://api.aviary.example/v1'\n")
    with pytest.raises(ConfigError, match=r"aviary.*birds 1\.0.*name a Provider"):
        open_model("aviary/finch")
    (package / "parrot.py").write_text("raise ImportError('no wings')\n")
    with pytest.raises(UsageError, match="no wings"):
        open_model("parrot/grey")


def test_without_the_package_the_name_is_unknown(package: Path) -> None:
    sys.path.remove(str(package))
    forget_plugins()
    with pytest.raises(ConfigError, match="no endpoint is known for the model 'parrot/grey'"):
        open_model("parrot/grey")

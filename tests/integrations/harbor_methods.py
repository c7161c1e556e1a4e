"""Calls the methods of the environment that Harbor gets, in Harbor's own interpreter.

Prints what they return as one JSON object. ``test_harbor_provider.py`` starts it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from harbor.models.task.config import EnvironmentConfig, HealthcheckConfig, NetworkPolicy
from harbor.models.task.file_filter import TaskFileFilter
from harbor.models.trial.paths import TrialPaths

from intercode.integrations.harbor import InterCodeEnvironment
from intercode.integrations.harbor.tasks.task_directory import read_exclusion


def make(
    folder: Path, config: dict[str, Any] | None = None, task: str = "task", **settings: Any
) -> Any:
    paths = TrialPaths(folder / "trial")
    paths.mkdir()
    policy = settings.pop("policy", "no-network")
    return InterCodeEnvironment(
        environment_dir=folder / task / "environment",
        environment_name=task,
        session_id=f"{task}__1",
        trial_paths=paths,
        task_env_config=EnvironmentConfig(**config or {}),
        network_policy=NetworkPolicy(network_mode=policy),
        **settings,
    )


async def refusal_at_start(*args: Any) -> str:
    env = make(*args)
    try:
        await env.start(force_build=False)
    except (ValueError, RuntimeError) as e:
        return str(e)
    return ""


def refusal(*args: Any, **settings: Any) -> str:
    try:
        make(*args, **settings)
    except (ValueError, RuntimeError) as e:
        return str(e)
    return ""


async def files(env: Any, folder: Path) -> dict[str, Any]:
    tree = folder / "tree"
    (tree / "empty").mkdir(parents=True)
    (tree / "run.sh").write_text("echo ran")
    (tree / "run.sh").chmod(0o755)
    (tree / "link").symlink_to("run.sh")
    await env.upload_file(tree / "run.sh", "/new/place/one.sh")
    await env.upload_dir(tree, "/tmp/tree")
    shown = await env.exec("/tmp/tree/link; ls -A /tmp/tree; /new/place/one.sh")
    await env.exec("ln -s /etc/passwd /tmp/tree/outside; echo new > /tmp/tree/run.sh")
    target = folder / "back"
    target.mkdir()
    (target / "run.sh").write_text("old")
    (target / "kept").write_text("kept")
    await env.download_dir("/tmp/tree", target)
    await env.download_file("/tmp/tree/run.sh", folder / "deep" / "one")
    excluded = folder / "excluded"
    await env.download_dir_with_exclusions(
        source_dir="/tmp/tree", target_dir=excluded, exclude=["run.sh", "outside"]
    )
    filtered = folder / "filtered"
    await env.download_dir_filtered(source_dir="/tmp/tree", target_dir=filtered, include=["*.sh"])
    return {
        "uploaded": shown.stdout,
        "downloaded": {p.name: p.read_text() for p in sorted(target.iterdir()) if p.is_file()},
        "file": (folder / "deep" / "one").read_text(),
        "excluded": sorted(p.name for p in excluded.iterdir() if not p.is_symlink()),
        "filtered": sorted(p.name for p in filtered.iterdir()),
        "kinds": [await env.is_dir("/tmp/tree"), await env.is_file("/tmp/tree")],
    }


async def commands(env: Any) -> dict[str, Any]:
    def row(result: Any) -> list[Any]:
        return [result.stdout, result.stderr, result.return_code]

    streamed = {"stdout": "", "stderr": ""}

    async def receive(text: str, stream: str) -> None:
        streamed[stream] += text

    with env.scoped_output_callback(receive):
        plain = await env.exec("echo out; echo err >&2; pwd; exit 3", env={"A": "1"})
    return {
        "plain": row(plain),
        "streamed": streamed,
        "env": row(await env.exec("echo $A $GIVEN $FROM_TASK", env={"A": "1"}))[0],
        "late": row(await env.exec("echo begun; sleep 60", timeout_sec=3)),
        "killed": row(await env.exec("kill -9 $$"))[2],
        "missing": row(await env.exec("true", cwd="/missing"))[2],
        "network": row(await env.exec("cat /proc/net/dev | grep -c :"))[0],
        "bash": row(await env.exec("set -o pipefail; [[ a == a ]] && echo yes"))[0],
        "users": await users(env),
        "together": [
            row(r)[0]
            for r in await asyncio.gather(*(env.exec(f"sleep 0.2; echo {i}") for i in range(4)))
        ],
    }


async def users(env: Any) -> list[Any]:
    """Run commands of an agent, which is not root, beside those of root and an unknown user."""
    shown = []
    with env.with_default_user("nobody"):
        for user in (None, "root", 0, "1", 4242, "absent"):
            result = await env.exec("id -u; touch /work/$(id -u) && echo written", user=user)
            shown.append((result.stdout.split(), result.return_code))
    return shown


async def health(env: Any) -> list[str]:
    answers = []
    for command in ("true", "test -f /tmp/ready", "sleep 60"):
        check = HealthcheckConfig(command=command, interval_sec=0.1, timeout_sec=4.0, retries=2)
        try:
            await env.run_healthcheck(check)
            answers.append("healthy")
        except RuntimeError as e:
            answers.append(type(e).__name__)
    return answers


async def service(folder: Path) -> Any:
    """Return what a service answers that the ENTRYPOINT of the image starts."""
    command = "exec 3<>/dev/tcp/127.0.0.1/8765"
    check = {"command": command, "interval_sec": 0.1, "retries": 100}
    env = make(folder, {"healthcheck": check}, "service")
    await env.start(force_build=False)
    try:
        await env.run_healthcheck()
        await env.exec("sleep 60", timeout_sec=1)
        return (await env.exec("echo hi > out.txt; cat < /dev/tcp/127.0.0.1/8765")).stdout
    finally:
        await env.stop(delete=True)


def preflight(**settings: str) -> str:
    try:
        InterCodeEnvironment.preflight(kwargs={"network": "none", **settings})
    except SystemExit as e:
        return str(e)
    return ""


def left_out(folder: Path) -> list[list[str]]:
    """Return the files that Harbor leaves out of a task, and those that we leave out."""
    return [
        sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if excluded(path))
        for excluded in (TaskFileFilter(folder).is_excluded, read_exclusion(folder))
    ]


async def main(folder: Path) -> dict[str, Any]:
    task = {"workdir": "/work", "env": {"FROM_TASK": "task"}, "memory_mb": 256}
    env = make(folder, task, persistent_env={"GIVEN": "given"})
    await env.start(force_build=False)
    try:
        found = {"commands": await commands(env), "files": await files(env, folder)}
        found["health"] = await health(env)
        found["memory"] = env._opened.sandbox.limits.memory
    finally:
        await env.stop(delete=True)
    await env.stop(delete=True)
    await env.download_dir("/logs", folder / "after the end")
    found["service"] = await service(folder)
    found["left out"] = left_out(folder / "ignoring")
    found["refused"] = [
        await refusal_at_start(folder, {"gpus": 1}),
        refusal(folder, network="some"),
        refusal(folder, {"cpus": 1}, cpu_enforcement_policy="limit"),
        refusal(folder, mounts=[{"type": "bind", "source": "/", "target": "/here"}]),
    ]
    (folder / "task" / "environment" / "docker-compose.yaml").write_text("services: {}")
    found["refused"] += [await refusal_at_start(folder), preflight(backend="dokcer")]
    found["refused"] += [preflight(back_end="dokcer")]
    return found


if __name__ == "__main__":
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    print(json.dumps(asyncio.run(main(Path(sys.argv[1])))))

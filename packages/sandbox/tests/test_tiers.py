"""The isolation that a machine provides, the suggested remedies, and that a requested tier is
kept."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from intercode_sandbox import SandboxSpec, images, open_sandbox, tier_of
from intercode_sandbox.errors import SandboxError, UnknownNameError
from intercode_sandbox.supervisor.runtime import cgroups
from intercode_sandbox.tiers import checks, remedies
from intercode_sandbox.tiers.platforms import detect_confinement, detect_platforms
from intercode_sandbox.tiers.remedies import (
    container_options_hint,
    remedies_elsewhere,
    remedies_here,
    render,
)
from intercode_sandbox.tiers.tier_table import TIERS
from support.containers import in_container, require_docker

DOCTOR = "import sys; from intercode.cli import main; sys.exit(main(['doctor', '--json']))"
SANDBOX_CODE = """
from intercode_sandbox import images
from intercode_sandbox import SandboxSpec, open_sandbox
with open_sandbox(SandboxSpec(images.resolve("host")), "{kind}") as sandbox:
    print(sandbox.tier, sandbox.run(["bash", "-c", "echo $$ $(id -u) > /tmp/f; cat /tmp/f"]))
"""


def spec() -> SandboxSpec:
    return SandboxSpec(images.resolve("host"))


# ------------------------------------------------------------------------------ names
@pytest.mark.sandbox
@pytest.mark.namespace_only("the names of its tiers")
def test_auto_takes_the_strongest_tier_and_a_sandbox_names_it() -> None:
    best = tier_of("auto")
    assert best == ("namespace/1" if checks.check_cgroups().ok else "namespace/2")
    for kind in ("auto", "namespace", best):
        with open_sandbox(spec(), kind) as sandbox:
            assert sandbox.tier == best == tier_of(kind)


@pytest.mark.sandbox
@pytest.mark.namespace_only("the names of its tiers")
def test_a_clone_has_the_second_tier_too() -> None:
    with open_sandbox(spec(), "namespace/2") as sandbox, sandbox.fork() as copy:
        assert sandbox.tier == copy.tier == tier_of("namespace/2") == "namespace/2"
        assert copy.run(["echo", "hi"]).output == "hi\n"


def test_an_unknown_tier_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'namespace/1'"):
        open_sandbox(SandboxSpec(images.resolve("host")), "namespace/11")
    with pytest.raises(UnknownNameError, match="known: auto, chroot"):
        tier_of("nothing")


# ------------------------------------------------------------------------ confinement
STATUS = "Name:\tx\nSeccomp:\t{}\nSeccomp_filters:\t0\n"
LINE = "73 72 0:42 / {} rw,nosuid - proc proc rw\n"


def process(folder: Path, seccomp: int = 0, profile: str = "", covered: str = "/proc") -> Path:
    (folder / "attr").mkdir(parents=True)
    (folder / "status").write_text(STATUS.format(seccomp))
    (folder / "mountinfo").write_text(LINE.format("/") + LINE.format(covered))
    if profile:
        (folder / "attr" / "current").write_text(profile)
    return folder


def test_kinds_of_confinement_are_distinguished(tmp_path: Path) -> None:
    assert detect_confinement(process(tmp_path / "free")) == []
    assert detect_confinement(process(tmp_path / "s", seccomp=2)) == ["seccomp"]
    docker = process(tmp_path / "d", 2, "docker-default (enforce)\n", "/proc/kcore")
    assert detect_confinement(docker) == ["seccomp", "apparmor", "systempaths"]
    assert detect_confinement(process(tmp_path / "u", profile="unconfined\n")) == []
    assert (
        detect_confinement(process(tmp_path / "se", profile="system_u:system_r:container_t:s0"))
        == []
    )
    usual = process(tmp_path / "b", covered="/proc/sys/fs/binfmt_misc")
    assert detect_confinement(usual) == []


def test_only_necessary_options_are_suggested() -> None:
    assert container_options_hint([]) == ""
    text = container_options_hint(["seccomp", "systempaths"])
    assert "--security-opt seccomp=unconfined --security-opt systempaths=unconfined" in text
    assert "apparmor" not in text and "procMount: Unmasked" in text and "hostUsers" in text
    assert "hostUsers" not in container_options_hint(["seccomp"])


@pytest.mark.sandbox
@pytest.mark.namespace_only("opens sandboxes of every tier, whatever the back end")
def test_doctor_and_the_backends_agree_on_every_tier() -> None:
    found = {finding.name: finding for finding in checks.check_tiers()}
    assert list(found) == [f"tier {tier.name}" for tier in TIERS]
    for tier in TIERS:
        finding = found[f"tier {tier.name}"]
        assert finding.ok == can_open(tier.name), finding
        assert finding.ok or (finding.detail and finding.fix), finding


def can_open(kind: str) -> bool:
    try:
        open_sandbox(spec(), kind).close()
    except SandboxError:
        return False
    return True


# ----------------------------------------------------------------- platforms, remedies
def test_platforms_are_recognized(tmp_path: Path) -> None:
    release = tmp_path / "proc/sys/kernel/osrelease"
    release.parent.mkdir(parents=True)
    release.write_text("6.1.0-13-amd64\n")
    assert detect_platforms({}, tmp_path) == ["linux"]
    assert detect_platforms({"GITHUB_ACTIONS": "true"}, tmp_path) == ["ci"]
    assert detect_platforms({"SLURM_JOB_ID": "7"}, tmp_path) == ["slurm"]
    (tmp_path / ".dockerenv").touch()
    assert detect_platforms({}, tmp_path) == ["docker"]
    assert detect_platforms({"COLAB_RELEASE_TAG": "r"}, tmp_path) == ["notebook", "docker"]
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JUPYTERHUB_USER": "ada"}
    assert detect_platforms(pod, tmp_path) == ["kubernetes", "notebook"]
    (tmp_path / ".dockerenv").unlink()
    release.write_text("5.15.153.1-microsoft-standard-WSL2\n")
    assert detect_platforms({}, tmp_path) == ["wsl2"]
    release.write_text("4.4.0-19041-Microsoft\n")
    assert detect_platforms({}, tmp_path) == ["wsl1"]


def test_every_platform_has_texts_to_paste_and_only_tested_ones_claim_it() -> None:
    found = remedies_elsewhere()
    known = {tier.name for tier in TIERS}
    assert all(known & set(remedy.tiers) for remedy in found)
    assert {remedy.platform for remedy in found} == {
        "docker",
        "podman",
        "kubernetes",
        "notebook",
        "ci",
        "slurm",
        "wsl1",
        "wsl2",
        "linux",
    }
    text = render(found)
    assert text.count("(untested)") == sum(not remedy.tested for remedy in found) > 0
    profile = next(r for r in found if "userns" in r.text and "apparmor_parser" in r.text)
    assert profile.text in text and not profile.tested and "\n" not in profile.as_line()


@pytest.mark.parametrize("initial", [True, False])
def test_becoming_root_is_no_remedy_in_a_rootless_container(
    initial: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root of a user namespace makes no device nodes, which the tier chroot needs."""
    monkeypatch.setattr(remedies, "detect_platforms", lambda: ["podman"])
    monkeypatch.setattr(remedies, "detect_confinement", lambda: ["seccomp", "systempaths"])
    monkeypatch.setattr(remedies, "is_initial_user_namespace", lambda: initial)
    monkeypatch.setattr(remedies.os, "geteuid", lambda: 1000)
    assert any("--user 0" in remedy.text for remedy in remedies_here()) == initial


# -------------------------------------------------------------- usable control groups
HYBRID = """\
38 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
39 31 0:34 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
40 31 0:35 /docker/ab /sys/fs/cgroup/pids ro,relatime - cgroup cgroup rw,pids
41 31 0:36 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
"""


def test_the_own_group_is_found_in_every_kind_of_mount() -> None:
    own = (
        "9:pids:/docker/ab/in\n4:memory:/user/1\n2:cpu,cpuacct:/x\n1:name=systemd:/\n0::/s.scope\n"
    )
    assert cgroups.find_groups(HYBRID, own) == {
        "cpu": "/sys/fs/cgroup/cpu,cpuacct/x",
        "cpuacct": "/sys/fs/cgroup/cpu,cpuacct/x",
        "memory": "/sys/fs/cgroup/memory/user/1",
        "pids": "/sys/fs/cgroup/pids/in",
        "": "/sys/fs/cgroup/unified/s.scope",
    }
    elsewhere = cgroups.find_groups(HYBRID, "9:pids:/docker/cd\n4:memory:/\n")
    assert elsewhere == {"memory": "/sys/fs/cgroup/memory"}, "a group that is not mounted here"


def test_missing_control_groups_are_explained(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no control groups for memory and pids"):
        cgroups.usable_parents({"memory": str(tmp_path)})
    (tmp_path / "cgroup.controllers").write_text("cpu pids\n")
    with pytest.raises(OSError, match="has no controller memory"):
        cgroups.usable_parents({"": str(tmp_path)})
    absent = str(tmp_path / "absent")
    with pytest.raises(OSError, match="is not writable"):
        cgroups.usable_parents({"memory": absent, "pids": absent})
    (tmp_path / "cgroup.controllers").write_text("cpu pids memory\n")
    (tmp_path / "cgroup.subtree_control").write_text("pids memory\n")
    assert cgroups.usable_parents({"": str(tmp_path)}) == (2, {"": str(tmp_path)})
    assert cgroups.usable_parents({"": f"{tmp_path}/intercode-rest"}) == (
        2,
        {"": str(tmp_path)},
    )


# --------------------------------------------------------------------- in containers
ORDINARY_USER = ["--user=1000", "--env=HOME=/tmp"]


@pytest.mark.docker
def test_the_suggested_options_make_sandboxes_work_in_a_container() -> None:
    require_docker()
    plain = in_container(ORDINARY_USER, DOCTOR)
    assert plain.returncode == 1 and "Traceback" not in plain.stderr
    findings = {f["name"]: f for f in json.loads(plain.stdout)}
    assert not findings["a sandbox"]["ok"] and not findings["tier namespace/2"]["ok"]
    assert findings["overlay in a user namespace"]["fix"] == "see user namespaces"
    fix = findings["user namespaces"]["fix"]
    options = shlex.split(fix.partition("options: ")[2].partition(" (")[0])
    assert options[:2] == ["--security-opt", "seccomp=unconfined"]
    refused = in_container(ORDINARY_USER, SANDBOX_CODE.format(kind="auto"))
    assert refused.returncode != 0 and "no sandbox works on this machine" in refused.stderr
    assert "the least change: start the container with: docker run" in refused.stderr

    given = in_container(options, DOCTOR)
    assert given.returncode == 0, given.stdout
    findings = {f["name"]: f for f in json.loads(given.stdout)}
    assert findings["a sandbox"]["ok"] and findings["tier namespace/2"]["ok"]
    sandbox = in_container(options, SANDBOX_CODE.format(kind="auto"))
    assert sandbox.stdout.startswith("namespace/2 ExecResult(output='2 0\\n', exit_code=0")

    for left_out in range(0, len(options), 2):  # every suggested option is necessary
        less = options[:left_out] + options[left_out + 2 :]
        assert in_container(less, SANDBOX_CODE.format(kind="namespace")).returncode != 0, less


@pytest.mark.docker
def test_the_first_tier_needs_writable_groups_in_a_container() -> None:
    require_docker()
    confined = json.loads(in_container([], DOCTOR).stdout)
    fix = next(f["fix"] for f in confined if f["name"] == "user namespaces")
    options = shlex.split(fix.partition("options: ")[2].partition(" (")[0])
    first = SANDBOX_CODE.format(kind="namespace/1")
    refused = in_container(options, first)
    assert "SandboxUnavailableError: no namespace/1 here" in refused.stderr
    assert "is not writable" in refused.stderr and "ask for namespace/2" in refused.stderr
    groups = "--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw"
    if not Path("/sys/fs/cgroup/memory").is_dir():
        pytest.skip("needs control groups of version 1: in version 2 the container's group is bare")
    assert in_container([*options, groups], first).stdout.startswith("namespace/1 ")
    user = in_container([*options, *ORDINARY_USER], SANDBOX_CODE.format(kind="auto"))
    assert user.stdout.startswith("namespace/2 "), user.stderr

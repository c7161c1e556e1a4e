"""Attacks on the reward by code in several languages that does not solve the task.

No attack may score more than a guess, break the grader, or spoil the next task.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode.core.types import Dataset
from intercode.environments.code.env import CodeEnv
from intercode.environments.code.profiles import CodeProfile
from support.languages import ADD, C_SUM, PERL_SUM, needs, task
from support.sandboxes import PATIENCE, a_duration, eventually, running

pytestmark = pytest.mark.sandbox

WORDS = {"oaken-1": "7f3a91", "elmen-2": "c02d5e", "ashen-3": "19be64"}
"""A program cannot compute the outputs from the inputs."""
CODES = task("c", "", *((f"{w}\n", f"{code}\n") for w, code in WORDS.items()), name="codes")
NAMES = task(
    "javascript", "", *(([w], code) for w, code in WORDS.items()), entry="code", name="names"
)
ALL = Dataset("attack", "code", (CODES, NAMES, C_SUM, ADD, PERL_SUM))

_SEARCH = r"""
#define _GNU_SOURCE
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char word[64], data[1 << 20];
static int look(const char *path, const struct stat *info, int kind, struct FTW *at) {
    FILE *file = kind == FTW_F && (info->st_mode & S_IFMT) == S_IFREG ? fopen(path, "rb") : 0;
    if (!file) return 0;
    size_t size = fread(data, 1, sizeof data - 1, file);
    fclose(file);
    data[size] = 0;
    char *found = memmem(data, size, word, strlen(word));
    while (found) {
        char code[7];
        for (char *next = found; next < found + 60; next++)
            if (sscanf(next, "%6[0-9a-f]", code) == 1 && strlen(code) == 6) {
                puts(code);
                exit(0);
            }
        found = memmem(found + 1, data + size - found - 1, word, strlen(word));
    }
    return 0;
}
int main(void) {
    if (scanf("%60s", word) != 1) return 1;
    static const char *places[] = {".", "/tmp", "/root", "/run", "/var", "/dev/shm", "/code",
                                   "/home", "/srv", "/mnt", "/etc", "/proc/self", "/proc/1"};
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++)
        nftw(places[i], look, 16, FTW_PHYS | FTW_MOUNT);
    return 0;
}
"""

PROGRAMS = {
    "searches the files": _SEARCH,
    "says that all is well": (
        '#include <stdio.h>\nint main(void) { puts("all tests passed"); puts("reward 1.0");'
        ' fprintf(stderr, "PASSED\\n"); return 0; }'
    ),
    "ends before it reads": "#include <unistd.h>\nint main(void) { _exit(0); }",
    "floods": '#include <stdio.h>\nint main(void) { for (;;) puts("7f3a91"); }',
    "floods stderr": '#include <stdio.h>\nint main(void) { for (;;) fputs("aaaaaaaa", stderr); }',
    "answers with everything": (
        "#include <stdio.h>\nint main(void) { for (int i = 0; i < 1 << 24; i += 97)"
        ' printf("%06x\\n", i); }'
    ),
    "kills all others": (
        "#include <signal.h>\n#include <unistd.h>\n"
        "int main(void) { kill(-1, SIGKILL); kill(1, SIGKILL); kill(getppid(), SIGKILL); }"
    ),
    "forks without end": "#include <unistd.h>\nint main(void) { for (;;) fork(); }",
    "takes all memory": (
        "#include <stdlib.h>\n#include <string.h>\n"
        "int main(void) { for (;;) memset(malloc(1 << 24), 1, 1 << 24); }"
    ),
    "removes itself": (
        "#include <stdlib.h>\nint main(void) {"
        ' return system("rm -rf /tmp/program; ln -s /etc/passwd /tmp/program"); }'
    ),
    "reads the compiler's input": '#include "/dev/stdin"\nint main(void) { return 0; }',
    "includes itself": "#include __FILE__\nint main(void) { return 0; }",
    "includes without end": '#include "/dev/zero"\nint main(void) { return 0; }',
    "takes in a file": (
        '__asm__(".globl it\\nit: .incbin \\"/proc/self/environ\\"\\n.byte 0");\n'
        "#include <stdio.h>\nextern char it[];\nint main(void) { puts(it); }"
    ),
    "no text": "\0\ud800\x1b[2J",
}

FUNCTIONS = {
    "text of everything": "JSON.stringify = () => '\"7f3a91\"'; function code () {}",
    "an object of its own": (
        "function code () { return { toJSON: () => '7f3a91', valueOf: () => '7f3a91',"
        " toString: () => '7f3a91', [Symbol.toPrimitive]: () => '7f3a91' } }"
    ),
    "a number in place of the text": (
        "Object.prototype.toJSON = function () {"
        " return this.token ? { ...this, value: 7 } : this }; function code () {}"
    ),
    "a proxy": "const code = () => new Proxy([], { get: () => code, getPrototypeOf: () => null })",
    "answers in place of ours": (
        "const fs = require('fs'); function code () { for (const token of ['', '0'.repeat(16)])"
        " fs.writeSync(3, JSON.stringify({ token, cwd: '/', value: '\"7f3a91\"' }) + '\\n') }"
    ),
    "listens to what we ask": (
        "const net = require('net'), emit = net.Socket.prototype.emit; const seen = [];\n"
        "net.Socket.prototype.emit = function (name, data) {\n"
        "  if (name === 'data') {\n    seen.push(String(data))\n"
        "    const asked = JSON.parse(data)\n"
        "    if (asked.do === 'call') return this.write(JSON.stringify({ token: asked.token,"
        " cwd: '/', value: JSON.stringify(seen.join()) }) + '\\n')\n  }\n"
        "  return emit.apply(this, arguments)\n}\nfunction code () { return seen.join() }"
    ),
    "never comes back": "function code () { return new Promise(() => {}) }",
    "runs without end": "function code () { for (;;); }",
    "ends the interpreter": "function code () { process.exit(0) }",
    "stops the interpreter": "function code () { process.kill(process.pid, 'SIGSTOP') }",
    "too deep to read": (
        "function code () { let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a }"
    ),
    "too long to read": "function code () { return 'x'.repeat(1 << 28) }",
    "floods": "function code () { for (;;) console.log('7f3a91') }",
    "closes everything": (
        "function code () { for (let fd = 0; fd < 64; fd++)"
        " try { require('fs').closeSync(fd) } catch {} }"
    ),
    "breaks what all have": (
        "Object.prototype.token = 'x'; Array.prototype.map = Promise.prototype.then = null;"
        " globalThis.process = null; function code () { return '7f3a91' }"
    ),
}


@pytest.fixture(scope="module")
def env() -> Iterator[CodeEnv]:
    needs("gcc", "node", "perl")
    with CodeEnv(ALL, timeout=20.0) as made:
        yield made


def paid(env: CodeEnv, task: str, *actions: str) -> float:
    """Return the reward of actions."""
    env.reset(options={"task": task})
    for action in actions:
        env.step(action)
    return env.score().value


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_cheating_program_scores_nothing(name: str) -> None:
    needs("gcc")
    with CodeEnv(Dataset("attack", "code", (CODES,)), timeout=4.0, test_timeout=0.7) as env:
        assert paid(env, CODES.id, PROGRAMS[name]) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_cheating_function_scores_nothing(name: str) -> None:
    """Some attacks contain one of the three codes."""
    needs("node")
    with CodeEnv(Dataset("attack", "code", (NAMES,)), timeout=4.0, test_timeout=0.7) as env:
        reward = paid(env, NAMES.id, FUNCTIONS[name])
        assert reward <= 1 / 3 * ("7f3a91" in FUNCTIONS[name])


def test_the_search_is_real(tmp_path: Path) -> None:
    """The search finds the answers if the tests are beside the program, as is common."""
    needs("gcc")
    (tmp_path / "main.c").write_text(_SEARCH)
    (tmp_path / "tests.json").write_text(str(CODES.data["tests"]))
    subprocess.run(["gcc", "-o", "main", "main.c"], cwd=tmp_path, check=True)
    for word, code in WORDS.items():
        done = subprocess.run(["./main"], input=word, cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout == f"{code}\n"


def test_only_the_code_leaves_the_agent_s_sandbox(env: CodeEnv) -> None:
    keep = (
        '#include <stdio.h>\nint main(void) { fputs("#define CODE 1", fopen("/tmp/help.h", "w")); }'
    )
    use = '#include "/tmp/help.h"\nint main(void) { return !CODE; }'
    env.reset(options={"task": CODES.id})
    env.step(keep)
    assert env.step(use)[4]["exit_code"] == 0
    why = env.score().details["failed"][0]
    assert why.startswith("it does not compile") and "/tmp/help.h: No such file" in why
    assert paid(env, ADD.id, "require('fs').writeFileSync('/tmp/n', '1')", "const n = 1") == 0.0


def test_an_episode_learns_nothing_from_grading(env: CodeEnv) -> None:
    """The graded code sees the inputs; its episode learns nothing of them."""
    spy = (
        "const seen = []; function add (a, b) {\n"
        "  seen.push(a); require('fs').appendFileSync('/tmp/seen', String(a)); return a + b\n}"
    )
    assert paid(env, ADD.id, spy) == 1.0
    assert env.step("[seen.length, require('fs').existsSync('/tmp/seen')]")[0] == "[ 0, false ]\n"
    spy = "open F, '>>/tmp/seen'; @n = split ' ', $l = <>; print F $l; print $n[0] + $n[1];"
    assert paid(env, PERL_SUM.id, spy) == 1.0
    assert env.step("print -s '/tmp/seen'")[0] == "0"  # by the agent's own run, with empty input


@pytest.mark.parametrize("path", ["'/' + 'x'.repeat(3e6)", "'/\\ud800'", "'/a\\0b'", "'a'"])
def test_an_impossible_directory_is_not_accepted(env: CodeEnv, path: str) -> None:
    """Code in the interpreter can report any directory as its working directory."""
    env.reset(options={"task": ADD.id})
    env.step(str(ADD.gold))
    shown = env.step(f"process.cwd = () => {path}; 1")[0]
    assert "the interpreter ended" in shown and len(shown) < 200
    assert env.step("add(1, 2)")[0] == "3\n" and env.working_directory == "/"
    assert env.score().value == 1.0


def test_no_process_survives_grading(env: CodeEnv) -> None:
    mark = a_duration()
    spawn = (
        "function add (a, b) {\n"
        f"  require('child_process').spawn('sleep', ['{mark}'], {{ detached: true }}).unref()\n"
        "  return a + b\n}"
    )
    assert paid(env, ADD.id, spawn) == 1.0
    eventually(lambda: not running(mark), "processes started during grading end")
    fork = f"exec 'setsid', 'sleep', '{mark}' unless fork; @n = split ' ', <>; print $n[0] + $n[1];"
    assert paid(env, PERL_SUM.id, fork) == 1.0
    eventually(lambda: not running(mark), "processes that a program started end")


@pytest.mark.slow
def test_an_attack_does_not_affect_the_next_task() -> None:
    needs("gcc", "node")
    with CodeEnv(ALL, timeout=20.0) as env:
        profile = env._profile_impl
        assert isinstance(profile, CodeProfile)

        def attack(task: str, code: str) -> float:
            profile._test_timeout = 1.0  # some attacks use it up
            reward = paid(env, task, code)
            profile._test_timeout = PATIENCE
            return reward

        for name in ("kills all others", "removes itself"):
            assert attack(CODES.id, PROGRAMS[name]) == 0.0
            assert paid(env, C_SUM.id, str(C_SUM.gold)) == 1.0
        for name in ("listens to what we ask", "breaks what all have", "stops the interpreter"):
            assert attack(NAMES.id, FUNCTIONS[name]) < 1.0
            assert paid(env, ADD.id, str(ADD.gold)) == 1.0

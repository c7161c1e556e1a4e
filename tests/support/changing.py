"""Random sequences of actions, and the check that restoring a snapshot undoes any of them."""

from __future__ import annotations

import random
from collections.abc import Callable

from intercode.environments.base.env import InterCodeEnv

_PLACES = ("/tmp", "/srv", "/home", "/root", "/srv/d", "/tmp/d/e", "/opt/a b", "/var/tmp")
_NAMES = ("f", "g", "a b", "-x", ".hidden", "é", "l", "d", "e", "'q'")
_WORDS = ("1", "two words", "$x", "*", "é 🙂", "", "a=b", "it'\\''s", "line\nline")

Maker = Callable[[random.Random], str]


def _path(rng: random.Random) -> str:
    name = rng.choice(_NAMES).replace("'", "'\\''")
    return f"'{rng.choice(_PLACES)}/{name}'"


def _word(rng: random.Random) -> str:
    return f"'{rng.choice(_WORDS)}'"


def _file(rng: random.Random) -> str:
    form = rng.choice(
        (
            "mkdir -p $(dirname {p}) && echo {w} > {p}",
            "echo {w} >> {p}",
            "rm -rf {p}",
            "mkdir -p {p}",
            "mv {p} {q}",
            "cp -r {p} {q}",
            "ln -s {p} {q}",
            "ln {p} {q}",
            "mkfifo {p}",
            "chmod {m} {p}",
            "head -c {n} /dev/zero > {p}",
            "truncate -s {n} {p}",
            "touch -d 2001-01-01 {p}",
            "cd {p}",
            "cd $(dirname {p})",
            "rm -rf /tmp/* /srv",
            "tar cf {p} -C / srv 2>/dev/null",
        )
    )
    return form.format(
        p=_path(rng),
        q=_path(rng),
        w=_word(rng),
        n=rng.choice((0, 1, 4097, 200_000)),
        m=rng.choice(("600", "755", "000", "1777")),
    )


def _shell(rng: random.Random) -> str:
    form = rng.choice(
        (
            "x={w}",
            "export y={w}",
            "a=({w} {w})",
            "declare -A m=([k]={w} [{w}x]=2)",
            "a+=({w})",
            "declare -i n={n}",
            "declare -l low={w}",
            'f() {{ echo {w} "$@"; }}',
            "unset x a m; unset -f f",
            "alias l='ls -l'",
            "unalias -a",
            "set -o noclobber",
            "set +o noclobber",
            "set -o pipefail",
            "shopt -s nullglob dotglob",
            "shopt -u nullglob",
            "umask {u}",
            "set -- {w} {w}",
            "IFS=:",
            "unset IFS",
            "trap 'x=trapped' USR1",
            "trap - USR1",
            "trap 'echo bye' EXIT",
            "declare -n r=x",
            "readonly ro{n}={w}",
            "export -n y",
            "PS4={w}",
            "set -f",
            "set +f",
            "cd /usr/lib",
            "cd -",
        )
    )
    return form.format(w=_word(rng), n=rng.randrange(4), u=rng.choice(("022", "077", "027")))


def _harm(rng: random.Random) -> str:
    return rng.choice(
        (
            "exit 3",
            "exec true",
            "kill -9 $$",
            "sleep 900 &",
            "(while :; do echo x; sleep 9; done) &",
            "echo 'open",
            "cat <<E\nopen",
            "set -e; false",
            "exec 50>&-",
            "exec 1>&-",
            "kill -9 -1",
            "rm -rf / 2>/dev/null",
            "while :; do :; done",
            "sleep 900",
            "break; continue; return 3",
            "set -u; echo $nothing",
            "unset PATH",
            "exec 3>/tmp/held; echo a >&3",
            "echo forged >&50",
        )
    )


def actions(rng: random.Random, most: int, harm: float) -> list[str]:
    """Return one to ``most`` actions; each of them is harmful with this probability."""
    makers: list[Maker] = [_file, _file, _shell]
    return [
        _harm(rng) if rng.random() < harm else rng.choice(makers)(rng)
        for _ in range(rng.randint(1, most))
    ]


def state_of(env: InterCodeEnv) -> str:
    """Return the fingerprint of files, directory and shell."""
    return env.episode.require_workspace().state_hash()


def goes_back(env: InterCodeEnv, seed: int) -> int:
    """Check that restoring a snapshot after random actions gives its state again, twice.

    ``env`` has hashes and a running episode, and is left at the snapshot. Returns the number of
    actions; AssertionError names them.
    """
    rng = random.Random(seed)
    before, after = actions(rng, 4, harm=0.05), actions(rng, 6, harm=0.25)
    for action in before:
        env.step(action)
    with env.snapshot() as moment:
        then = state_of(env)
        for again in (False, True):
            for action in after:
                env.step(action)
            env.restore(moment)
            now = state_of(env)
            told = f"seed {seed}, again {again}: {before} | {after}"
            assert now == then, f"going back left another state; {told}"
    return len(before) + 2 * len(after)

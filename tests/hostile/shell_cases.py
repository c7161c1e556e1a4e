"""Breaking the shell that runs the actions, or the way its results are returned."""

from __future__ import annotations

from hostile.cases import Case, python


def _shell(name: str, *actions: str, **more: object) -> Case:
    return Case(name, "shell", actions, **more)  # type: ignore[arg-type]


def _framing(name: str, *actions: str, **more: object) -> Case:
    return Case(name, "framing", actions, **more)  # type: ignore[arg-type]


def _lifecycle(name: str, *actions: str, **more: object) -> Case:
    return Case(name, "lifecycle", actions, **more)  # type: ignore[arg-type]


_STORM = "import os\nwhile True:\n try: os.kill(-1, {})\n except OSError: 0"

CASES = [
    _shell("exit", "exit 3"),
    _shell("exit in the background", "exit & exit"),
    _shell("logout", "logout; exec false"),
    _shell("exec of a program", "exec true"),
    _shell("exec of what hangs", "exec sleep 600", late=True),
    _shell("exec of what is not there", "exec /no/such/program"),
    _shell("exec without a program", "exec >/dev/null 2>&1 </dev/null", after="reset"),
    _shell("kill -9 of the shell", "kill -9 $$"),
    _shell("kill -STOP of the shell", "kill -STOP $$", late=True),
    _shell("stopping the shell and going on", "(sleep 0.2; kill -CONT $$) & kill -STOP $$"),
    _shell("every signal at the shell", "for i in {1..64}; do kill -$i $$; done"),
    _shell("signals ignored, then a loop", "trap '' $(seq 1 64); while :; do :; done", late=True),
    _shell("kill -1", "kill -9 -1; kill -TERM -1; echo on"),
    _shell("kill of its group", "kill -9 0"),
    _shell("suspend", "suspend -f", late=True),
    _shell("a killer in the background", "(while :; do kill -9 $$; done) & disown"),
    _shell(
        "a stopper of everything",
        "cat > /tmp/s <<'E'\n" + _STORM.format(19) + "\nE\nsetsid python3 /tmp/s &",
        "sleep 1",
        "echo again",
        after="wrecked",
    ),
    _shell(
        "a killer of everything",
        "cat > /tmp/s <<'E'\n" + _STORM.format(9) + "\nE\nsetsid python3 /tmp/s &",
        "sleep 1",
        "echo again",
        after="wrecked",
    ),
    _shell("closing the outputs", "exec 1>&- 2>&-; echo x", after="reset"),
    _shell("closing the input", "exec 0<&-; cat"),
    _shell("closing the script", "exec 62<&-; exec 255<&-; echo x"),
    _shell("closing the report", "exec 50>&-; echo x"),
    _shell("closing everything", 'for i in {0..255}; do eval "exec $i>&-"; done'),
    _shell("moving the report", "exec 64>&50 50>/dev/null; echo x"),
    _shell("moving the report for good", "exec 50>/tmp/report", "echo x"),
    _shell("replacing the output", "exec >/tmp/out 2>&1; ls", "ls", after="reset"),
    _shell(
        "overriding the builtins",
        "echo() { :; }; printf() { :; }; eval() { :; }; "
        "source() { :; }; .() { :; }; exec() { :; }; exit() { :; }; trap() { :; }",
        "true",
    ),
    _shell("overriding builtin", "builtin() { :; }", after="reset"),
    _shell("overriding builtin with what hangs", "builtin() { sleep 600; }", after="reset"),
    _shell(
        "overriding what restores",
        "declare() { sleep 9; }; shopt() { sleep 9; }; set() { sleep 9; }; cd() { sleep 9; }",
        "exit",
    ),
    _shell(
        "aliases for everything",
        "shopt -s expand_aliases; alias builtin=false echo=false "
        ".=false exec=false trap=false case=false",
        "true",
    ),
    _shell(
        "disabled builtins",
        "enable -n echo printf builtin eval source . trap exec",
        "true",
        after="reset",
    ),
    _shell("set -e", "set -e; false"),
    _shell("set -e kept", "set -e", "false", "false"),
    _shell("set -u", "set -u; echo $no_such_variable"),
    _shell("five descriptors", "ulimit -n 5", "true"),
    _shell("no dot", "enable -n .", "true"),
    _shell("set -n", "set -n"),
    _shell("set -x and -v", "set -xv; echo x"),
    _shell("set -r", "set -r; cd /; echo x > /tmp/f"),
    _shell("set -o posix", "set -o posix; exit() { :; }; unset() { :; }"),
    _shell("set -o noglob and failglob", "set -f -C -k -t; shopt -s failglob extdebug"),
    _shell("IFS", "IFS=0123456789; IFS=$'\\n'; x=1 IFS=/ read y <<< 1"),
    _shell("break, continue, return", "break 9; continue 9; return 9"),
    _shell("return from a function at the top", "f() { return 300; }; f; return 0 2>/dev/null; x="),
    _shell("a here-document that does not end", "cat <<E\nabc"),
    _shell("a quoted here-document that does not end", "cat <<-'E'\n\tabc\n$(exit)"),
    _shell(
        "quotes that do not end", "echo 'abc", 'echo "abc', "echo `abc", "echo $(abc", "((", "{"
    ),
    _shell(
        "blocks that do not end", "if true; then", "for i in 1", "case x in", "f() {", "while :"
    ),
    _shell("blocks that end too early", "fi", "done", "esac", "}", ")", ";;", "&&", "| x"),
    _shell(
        "reading the standard input",
        "cat; read x; head -c 9; python3 -c 'input()'",
        limit=3,
        late=False,
    ),
    _shell("reading its own script", "cat <&62; cat <&255"),
    _shell("eating the script bit by bit", "read -r -u 255 -t 0.2 x; read -r -u 255 -t 0.2 y"),
    _shell("reading its own report", "cat <&50", late=True),
    _shell("a trap at every command", "trap 'sleep 0.01; x=$((x+1))' DEBUG; trap 'echo e' ERR"),
    _shell("a trap that exits at every command", "trap 'exit 1' DEBUG", "true"),
    _shell("a trap at the end", "trap 'echo bye; sleep 600' EXIT; exit"),
    _shell("a trap at the end that spins", "trap 'while :; do :; done' EXIT TERM; exit"),
    _shell("slow traps and a restart", "trap 'sleep 0.3' DEBUG; exit", limit=1.0),
    _shell("slow traps and then a restart", "trap 'sleep 0.1' DEBUG", "exit", limit=1.0),
    _shell("the stop signal overridden", "trap ':' RTMAX; while :; do :; done", late=True),
    _shell(
        "readonly everything",
        "readonly PATH PWD IFS BASH_COMMAND OLDPWD; declare -r x=1",
        "exit",
        "echo on",
    ),
    _shell("namerefs in a circle", "declare -n a=b b=a; a=1; unset -n a b; declare -n PWD=x"),
    _shell("a wrong PWD", "PWD=relative; PWD=; unset PWD; PWD=$'/a\\nb'"),
    _shell("functions called like paths", "function /bin/true { exit 1; }; /bin/true"),
    _shell(
        "an environment that bash believes",
        "export BASH_ENV=/tmp/e ENV=/tmp/e SHELLOPTS PS4='$(touch /tmp/ps4)' "
        "BASHOPTS; echo 'exit 9' > /tmp/e; bash -c true",
        "exit",
        "true",
    ),
    _shell(
        "a preloaded library", "echo x > /tmp/lib.so; export LD_PRELOAD=/tmp/lib.so; ls", "exit"
    ),
    _shell("rm -rf /", "rm -rf --no-preserve-root / 2>/dev/null", limit=3, after="wrecked"),
    _shell("rm -rf of what is below", "rm -rf /* 2>/dev/null", limit=3, after="wrecked"),
    _shell("no /bin", "rm -f /bin /lib64 /lib; exit", after="wrecked"),
    _shell(
        "a shell of its own in place of bash",
        "rm /bin; mkdir /bin; "
        "printf '#!/usr/bin/python3\\nwhile 1: pass' > /bin/bash; chmod +x /bin/bash",
        "exit",
        after="wrecked",
    ),
    _shell("no /tmp and no /dev", "rm -rf /tmp /dev /proc /sys 2>/dev/null; ls -la /; mv /etc /e"),
    _shell("its directory removed", "mkdir /tmp/a; cd /tmp/a; rmdir /tmp/a", "pwd", "exit"),
    _shell("its directory unreadable", "mkdir /tmp/a; cd /tmp/a; chmod 0 /tmp/a", "ls", "exit"),
    _shell("a daemon that holds the output", "sleep 600 &", "setsid sleep 600 &", late=False),
    _shell("a daemon that holds the output and writes", "(while sleep 0.01; do echo x; done) &"),
    _shell("stopped jobs", "set -m; sleep 600 & kill -STOP %1; jobs; fg"),
    _shell("a coprocess", "coproc cat; echo x >&${COPROC[1]}; kill $COPROC_PID; wait"),
    _shell("terminal control", "set -m; stty -a; reset; tput clear; fg; bg", limit=3),
    # framing
    _framing("forged markers", "printf '%s %s %s\\0' 0000000000000000 0 / >&50"),
    _framing(
        "a forged marker and then a failure",
        "printf 'deadbeefdeadbeef 0 /\\0' >&50; false",
        "true",
    ),
    _framing("a report without an end", "printf 'x' >&50"),
    _framing("an empty report", "printf '\\0' >&50"),
    _framing("reports without end", "yes >&50"),
    _framing("reports without end from the background", "yes >&50 &", "echo x", after="wrecked"),
    _framing(
        "reports without end that pass for a saved state",
        "yes >&50 &",
        "(exit 3)",
        after="wrecked",
    ),
    _framing(
        "a report in no number",
        "builtin() { printf '%s \\302\\262 /\\0' \"$3\"; }",
        "true",
        after="reset",
    ),
    _framing(
        "a report in a huge number",
        "builtin() { printf '%s %05000d /\\0' \"$3\" 1; }",
        "true",
        after="reset",
    ),
    _framing(
        "a report from elsewhere",
        "builtin() { printf '%s 0 relative\\0' \"$3\"; }",
        "true",
        after="reset",
    ),
    _framing(
        "a report with a descriptor in it",
        python(
            "import socket, array\ns = socket.socket(fileno=50)\n"
            "s.sendmsg([b'x'], [(1, 1, array.array('i', [0, 1, 2]))])\ns.detach()"
        ),
        limit=3,
    ),
    _framing(
        "a closed report", python("import socket\nsocket.socket(fileno=50).shutdown(2)"), limit=3
    ),
    _framing("no newline at the end", "printf abc", shows=("abc",), late=False),
    _framing("escape sequences", "printf '\\033[2J\\033]0;x\\007\\033[6n\\033c'", late=False),
    _framing(
        "bytes that are no UTF-8", "printf '\\377\\376\\200\\xc3('", shows=("\\xff",), late=False
    ),
    _framing(
        "every byte",
        'for i in {0..255}; do printf "\\\\x$(printf %x $i)"; done',
        limit=3,
        late=False,
    ),
    _framing("NUL bytes in the output", "printf 'a\\0b\\0'", shows=("a\0b",), late=False),
    _framing("a NUL byte in the action", "echo a\0b; echo c"),
    _framing("a carriage return", "echo a\r\necho b\r"),
    _framing("4096 bytes", "#" + "x" * 4095 + "\necho on", shows=("on",), limit=3, late=False),
    _framing(
        "4097 bytes in quotes",
        "echo '" + "y" * 4097 + "'",
        shows=("y" * 4097,),
        limit=3,
        late=False,
    ),
    _framing(
        "a megabyte",
        "echo '" + "z" * (1 << 20) + "' | wc -c",
        shows=("1048577",),
        limit=5,
        late=False,
    ),
    _framing("100,000 lines", "true\n" * 100_000, limit=10, late=False),
    _framing("lone surrogates", "echo \ud800 \udfff"),
    _framing("bytes as surrogates", "printf %s '\udcff' | od -An -tx1", shows=("ff",), late=False),
    _framing("no action at all", "", " ", "\n", "\n\n\n", "#", late=False),
    _framing("a line that goes on", "echo x \\", "\\", "echo y \\\n"),
    _framing("control characters", "".join(map(chr, range(1, 32))), "\x7f", "\x04", "\x1a", "\x03"),
    _framing("the end of the hidden here-document", "X\n" * 50 + "0123456789abcdef\n", limit=3),
    _framing("history", "set -o history; set -H; echo !!; !echo; fc -l; history"),
    # lifecycle
    _lifecycle(
        "partial output before the time-out",
        "echo before; sleep 600",
        shows=("before",),
        limit=3,
        late=True,
    ),
    _lifecycle(
        "partial output without a line's end",
        "printf before; sleep 600",
        shows=("before",),
        limit=3,
        late=True,
    ),
    _lifecycle("a double fork", "(setsid sh -c 'sleep 600 & sleep 600' &) ; sleep 600", late=True),
    _lifecycle(
        "a daemon out of Python",
        python(
            "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n"
            "time.sleep(600)"
        ),
        limit=3,
        late=False,
    ),
    _lifecycle(
        "what ignores being told to end",
        "trap '' TERM INT HUP; (trap '' TERM; sleep 600) & wait",
        late=True,
    ),
    _lifecycle("children faster than the killer", "f() { sh -c 'sleep 0.01' & f; }; f"),
    _lifecycle(
        "a respawner",
        "cat > /tmp/r <<'E'\ntrap 'sh /tmp/r &' EXIT TERM\nsleep 0.05\nE\nsh /tmp/r & sleep 600",
    ),
    _lifecycle(
        "at, cron, nohup", "nohup sleep 600 >/dev/null 2>&1 & echo sleep 600 | at now; crontab -l"
    ),
    _lifecycle("two time-outs in a row", "sleep 600", "while :; do :; done", late=True),
    _lifecycle(
        "a time-out inside functions",
        "f() { g; echo f; }; g() { sleep 600; echo g; }; f",
        hides=("g\n", "f\n"),
        late=True,
    ),
    _lifecycle("a time-out inside a pipe", "yes | tee /tmp/f | grep -v y | sort", late=True),
    _lifecycle("a time-out while it waits for a FIFO", "mkfifo /tmp/p; cat /tmp/p", late=True),
    _lifecycle("a time-out while it opens a FIFO", "mkfifo /tmp/p; echo x > /tmp/p", late=True),
    _lifecycle("a time-out in a read of the shell", "read x < <(sleep 600)", late=True),
    _lifecycle("a time-out in a wait of the shell", "sleep 600 & wait", late=True),
]

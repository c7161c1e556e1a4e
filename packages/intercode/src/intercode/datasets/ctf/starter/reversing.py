"""Tasks with programs to be understood rather than run, in several languages."""

from __future__ import annotations

import base64

from intercode.datasets.ctf.starter.challenge import Files, SeededRandom

_MACHINE = '''\
"""A machine with one register: `python3 machine.py program.bin`, then type the password."""
import sys

code, at, word, register = open(sys.argv[1], "rb").read(), 0, input("password: "), 0
while at < len(code):
    op, value = code[at], code[at + 1]
    at += 2
    if op == 1:
        register = ord(word[value]) if value < len(word) else 0
    elif op == 2:
        register = (register + value) % 256
    elif op == 3:
        register ^= value
    elif op == 4:
        register = (register << value % 8 | register >> 8 - value % 8) % 256
    elif op == 5 and register != value:
        sys.exit("no")
print("yes, that is the flag")
'''


def _machine(rng: SeededRandom, flag: str) -> Files:
    code = bytearray()
    positions = list(range(len(flag)))
    rng.shuffle(positions)
    for position in positions:
        register = ord(flag[position])
        code += bytes((1, position))
        for _ in range(3):
            op, value = rng.choice((2, 3, 4)), rng.randint(1, 255)
            code += bytes((op, value))
            if op == 2:
                register = (register + value) % 256
            elif op == 3:
                register ^= value
            else:
                register = (register << value % 8 | register >> 8 - value % 8) % 256
        code += bytes((5, register))
    return {"machine.py": _MACHINE.encode(), "program.bin": bytes(code)}


def _lock_c(rng: SeededRandom, flag: str) -> Files:
    add, mask, order = rng.randint(3, 90), rng.randint(1, 127), list(range(len(flag)))
    rng.shuffle(order)
    wanted = [((ord(flag[k]) ^ mask) + add + i) % 256 for i, k in enumerate(order)]
    code = f"""\
#include <stdio.h>
#include <string.h>

static const unsigned char order[] = {{{", ".join(map(str, order))}}};
static const unsigned char wanted[] = {{{", ".join(map(str, wanted))}}};

int main(int argc, char **argv)
{{
    unsigned bad = argc < 2 || strlen(argv[1]) != sizeof order;
    for (unsigned i = 0; !bad && i < sizeof order; i++)
        bad |= (unsigned char)((argv[1][order[i]] ^ {mask}) + {add} + i) != wanted[i];
    puts(bad ? "locked" : "open");
    return bad;
}}
"""
    return {"lock.c": code.encode()}


def _page_js(rng: SeededRandom, flag: str) -> Files:
    key = rng.randint(2, 200)
    codes = [str(ord(c) * 3 + key + i) for i, c in enumerate(flag)]
    code = f"""\
// page.js: checks the ticket in the visitor's browser
const t = "{".".join(codes)}".split(".").map(Number);
const k = {key};
function check(ticket) {{
  if (ticket.length !== t.length) return false;
  return [...ticket].every((c, i) => c.charCodeAt(0) * 3 + k + i === t[i]);
}}
document.forms[0].onsubmit = () => check(document.forms[0].ticket.value);
"""
    return {"page.js": code.encode()}


def _installer(rng: SeededRandom, flag: str) -> Files:
    code = f"# the key of this copy: {flag}\nfalse && echo nothing to see\n"
    turned = str.maketrans("abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm")
    for depth in range(rng.randint(5, 8)):
        turn = rng.random() < 0.5
        text = base64.b64encode((code.translate(turned) if turn else code).encode()).decode()
        more = " | tr a-z n-za-m" if turn else ""
        code = f'# part {depth}\neval "$(echo {text} | base64 -d{more})"\n'
    return {"install.sh": (f"#!/bin/sh\n{code}echo installed\n".encode(), 0o755)}


def _listing(rng: SeededRandom, flag: str) -> Files:
    lines = ["check:", "    push rbp", "    mov  rbp, rsp", "    mov  rax, rdi"]
    positions = list(enumerate(flag))
    rng.shuffle(positions)
    for position, sign in positions:
        add, mask = rng.randint(1, 60), rng.randint(1, 127)
        lines += [
            f"    movzx ecx, byte ptr [rax + {position}]",
            f"    xor  cl, {mask:#x}",
            f"    add  cl, {add:#x}",
            f"    cmp  cl, {((ord(sign) ^ mask) + add) % 256:#x}",
            "    jne  wrong",
        ]
    lines += ["    mov  eax, 1", "    pop  rbp", "    ret", "wrong:", "    xor  eax, eax"]
    return {"check.asm": ("\n".join([*lines, "    pop  rbp", "    ret"]) + "\n").encode()}


CREATE_FILES = {
    "machine": _machine,
    "lock": _lock_c,
    "ticket": _page_js,
    "installer": _installer,
    "listing": _listing,
}

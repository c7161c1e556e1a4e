"""Reads Bash code for policies: its commands, and the files to which it redirects output.

The code is read once from left to right, so that the time grows with its length only.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise, takewhile

from intercode.environments.base.policy.rules import (
    ActionLimitError,
    ActionPart,
    ParsedAction,
    merge_parsed,
)

_MAX_NESTED = 40
"""Limit of substitutions, subshells and expansions in each other. It bounds the recursion."""
_MAX_DEPTH = 2  # code in `bash -c`, `eval` and the like
_MAX_WRAPPED = 50
"""Commands that one command may run through ``sudo``, ``xargs``, ``find -exec`` and the like."""
_WRITE_OPERATORS = (">", ">>", ">|", ">&", "&>", "&>>", "<>")
_DECLARATIONS = ("declare", "typeset", "export", "readonly", "local", "unset", "unsetenv")

_WRAPPER_OPTIONS = {
    "builtin": "",
    "busybox": "",
    "chroot": "userspec groups",
    "command": "",
    "doas": "u C",
    "env": "u S C unset split-string chdir",
    "exec": "a",
    "flock": "w E timeout wait conflict-exit-code",
    "ionice": "c n p class classdata pid",
    "nice": "n adjustment",
    "nohup": "",
    "parallel": "j N jobs max-args",
    "setsid": "",
    "stdbuf": "i o e input output error",
    "strace": "e o p s P",
    "sudo": "u g p h r t C D R T U user group prompt host role type chdir chroot close-from "
    "command-timeout other-user",
    "time": "f o format output",
    "timeout": "s k signal kill-after",
    "watch": "n interval",
    "xargs": "a d E I L n P s arg-file delimiter max-args max-chars max-procs process-slot-var",
}
"""Programs that run the words after their options, with those of their options that take the next
word as a value."""
_WRAPPER_ARGUMENTS = {"timeout": 1, "flock": 1, "chroot": 1}
"""Number of arguments before the command."""
_SHELLS = ("bash", "sh", "dash", "zsh", "ksh", "ash", "rbash")
_SHELL_FILES = ("--rcfile", "--init-file")
_FIND_EXEC = ("-exec", "-execdir", "-ok", "-okdir")

_SPACE = re.compile(r"(?:[ \t\r]|\\\n)*(?:(?<!\r)#[^\n]*)?")
_LINES = re.compile(r"(?:[ \t\r\n]|\\\n|(?<!\r)#[^\n]*)*")
_OPERATOR = re.compile(r"&&|\|\||;;&|;;|;&|\|&|[;&|\n()]")
_REDIRECT = re.compile(
    r"(?:\d+|\{\w+\})?(<<<|<<-|<<|<>|<&|<(?!\()|>>|>\||>&|>(?!\())|&>>|&>", re.ASCII
)
_DESCRIPTOR = re.compile(r"\d+-?|-", re.ASCII)
_PLAIN = {
    "word": re.compile(r"[^ \t\r\n;|&()<>'\"`\\$]+"),
    '"': re.compile(r"[^\"\\$`]+"),
    "}": re.compile(r"[^}\\$`'\"]+"),
    "]": re.compile(r"[^]\[\\$`'\"]+"),
    "": re.compile(r"[^\\$`]+"),
}
"""Text without a special character: in a word, in quotes, in `${}`, in a subscript, and in a
here-document."""
_SINGLE_QUOTED = re.compile(r"'([^']*)'")
_ANSI_QUOTED = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_BACKQUOTED = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\w+|[@*#?!$-])", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ELEMENT = re.compile(r"[A-Za-z_]\w*\[", re.ASCII)
_INDEX = re.compile(r"\[")
_ASSIGNS = re.compile(r"\+?=")
_PATTERN_REMOVAL = re.compile(r"!?(?:\w+|[@*#?!$-])(?:\[[\w@*]+\])?[%#/^,]", re.ASCII)
"""The begin of an expansion in which single quotes quote even inside double quotes."""
_NAME_PATTERN = re.compile(r"[*?\[{]")
_QUOTE = re.compile(r"\\(.)|\$'((?:[^'\\]|\\.)*)'|'([^']*)'|\$?\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
_DOUBLE_QUOTED_ESCAPE = re.compile(r'\\(?:\n|([\\"$`]))')
_HERE_DOCUMENT_ESCAPE = re.compile(r"\\(?:\n|([\\$`]))")
_LINE = re.compile(r"[^\n]*\n?")
_JOINED_LINE = re.compile(r"(?:[^\\\n]|\\.)*+\\?\n?", re.DOTALL)
_ANSI_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.))", re.DOTALL
)
_ANSI_LETTERS = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))
_TIME_OPTIONS = re.compile(r"(?:[ \t]+-p(?=\s))?(?:[ \t]+--(?=\s))?(?![ \t]+-)")
_COPROCESS_NAME = re.compile(r"[ \t]+[A-Za-z_]\w*(?=[ \t]+(?:\{\s|\())", re.ASCII)
_FUNCTION_MARK = re.compile(r"[ \t]*\([ \t]*\)")
_BRACKET = re.compile(r"[()]|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_LOOP_BRACE = re.compile(rf"[ \t]*;?{_LINES.pattern}\{{(?=\s)")
_IN = re.compile(r"in(?=\s|;|$)")
_TEST_OPERATOR = re.compile(r"&&|\|\||[<>](?!\()|[()|&;]")
_BEGINNINGS = {"if": "then", "while": "do", "until": "do", "{": "}"}
"""Words that begin a compound command, with the word that it needs next."""
_MIDDLES = {
    "then": ("then", "fi"),
    "elif": ("fi", "then"),
    "else": ("fi", "fi"),
    "do": ("do", "done"),
}
"""Words within one, with the word that was needed, and the one that is needed next."""
_ENDS = ("fi", "done", "esac", "}")


@dataclass(frozen=True, slots=True)
class Word:
    """A word as its command receives it, and as the code has it (``source``).

    ``is_literal``: the code has it literally, it is not computed. ``is_pattern``: a part without
    quotes may stand for names of files or for several words. ``is_assignment``: it would be one at
    the start of a command.
    """

    text: str
    source: str
    is_literal: bool = True
    is_pattern: bool = False
    is_assignment: bool = False

    @property
    def is_fixed(self) -> bool:
        """Whether the text is the only one that the word can have."""
        return self.is_literal and (not self.is_pattern or self.text in ("[", "[["))


class _Command(list[Word]):
    """The words of a command. ``input``: its here-document or here-string."""

    input: Word | None = None


def bash_action_parts(code: str, depth: int = 0) -> ParsedAction:
    """Return the commands of a text, and the files to which it redirects output.

    Commands are every simple command (also in pipelines, substitutions, subshells, functions and
    here-documents), those that ``sudo``, ``xargs``, ``find -exec`` and the like run, and those of
    the code that ``bash``, ``eval`` and ``trap`` receive, up to a depth. Raises ActionLimitError
    for code that is nested too deeply.
    """
    scanner = _Scanner(code)
    scanner.read_commands()
    found = [ParsedAction((), "a syntax error")] if scanner.is_broken else []
    for item in scanner.found:
        if isinstance(item, Word):
            found.append(ParsedAction((ActionPart("redirect", (item.text,)),)))
        elif item:
            found += _command_parts(item, scanner.functions, depth)
    return merge_parsed(found)


class _Scanner:
    """Reads words and expansions from left to right.

    ``found``: commands as lists of words, and targets of redirections, in the order of the text.
    ``functions``: the names that the text defines. ``is_broken``: it has a syntax error.
    """

    def __init__(self, text: str) -> None:
        self.text, self.at, self._nested = text, 0, 0
        self._here_documents: list[tuple[str, bool, bool, _Command]] = []
        self.found: list[_Command | Word] = []
        self.functions: set[str] = set()
        self.is_broken = False

    def skip(self, pattern: re.Pattern[str]) -> str:
        """Move behind a pattern at this position. Return its text, empty if it is not there."""
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found.group() if found else ""

    def is_before(self, pattern: re.Pattern[str]) -> bool:
        return pattern.match(self.text, self.at) is not None

    def read_commands(self, end: str = "") -> None:
        """Read commands up to a closing bracket or the end of the text."""
        with self._nest():
            _CommandReader(self, end).read()
        self.is_broken |= not end and bool(self._here_documents)

    def read_arithmetic(self) -> bool:
        """Read ``((...))`` if it is here and is not two subshells."""
        if not self.text.startswith("((", self.at):
            return False
        depth = 0
        for bracket in _BRACKET.finditer(self.text, self.at):
            depth += {"(": 1, ")": -1}.get(bracket.group(), 0)
            if depth == 1 and bracket.group() == ")":
                if not self.text.startswith("))", bracket.start()):
                    return False
                self._read_inner(self.text[self.at + 2 : bracket.start()])
                self.at = bracket.end() + 1
                return True
            if depth > _MAX_NESTED:  # as subshells, it is refused
                return False
        return False

    def read_word(self, element: re.Pattern[str] | None = None) -> Word:
        """Read a word, at least one character. It may begin with ``element`` and a subscript."""
        start, texts, is_literal, is_pattern = self.at, [], True, False
        is_element = element is not None and bool(self.skip(element))
        if is_element:
            self._read_nested("]")
            texts.append(self.text[start : self.at])
            is_pattern = True
            assigns_at = self.at
        else:
            name = _NAME.match(self.text, start)
            assigns_at = name.end() if name else -1
        assigns = _ASSIGNS.match(self.text, assigns_at) if assigns_at >= 0 else None
        while self.at < len(self.text):
            at, mark, two = self.at, self.text[self.at], self.text[self.at : self.at + 2]
            if plain := self.skip(_PLAIN["word"]):
                texts.append(plain)
                is_pattern |= _NAME_PATTERN.search(plain) is not None
            elif mark == "\\":
                self.at += 2
                texts.append("" if two == "\\\n" else two[1:])
            elif mark == "'" and (quoted := self.skip(_SINGLE_QUOTED)):
                texts.append(quoted[1:-1])
            elif two == "$'" and (quoted := self.skip(_ANSI_QUOTED)):
                decoded = _decode_ansi(quoted[2:-1])
                texts.append(quoted if decoded is None else decoded)
                is_literal &= decoded is not None
            elif mark == '"' or two == '$"':
                self.at += len(two[: two.index('"') + 1])
                begin, fixed = self.at, self._read_quoted('"')
                inner = self.text[begin : self.at - 1]
                texts.append(_DOUBLE_QUOTED_ESCAPE.sub(r"\1", inner) if fixed else inner)
                is_literal &= fixed
            elif mark in "$`" or two in ("<(", ">("):
                is_literal &= not self._read_expansion()
                texts.append(self.text[at : self.at])
            elif mark == "(" and assigns and assigns.end() == at:
                self._read_array()
                texts.append(self.text[at : self.at])
            else:
                break
        if self.at == start:  # a quotation without an end, or an operator that has no place here
            self.is_broken = True
            self.at += 1
        source = self.text[start : self.at]
        return Word("".join(texts), source, is_literal, is_pattern, assigns is not None)

    def _read_nested(self, end: str, in_double: bool = False) -> None:
        with self._nest():
            self._read_quoted(end, in_double)

    def _read_quoted(self, end: str, in_double: bool = True) -> bool:
        """Read expansions up to the character ``end``. Return whether there is none.

        ``in_double``: the text is in double quotes, where single quotes do not quote.
        """
        is_fixed = True
        has_quotes = end == "]" or (end == "}" and in_double)
        if end == "}" and self.is_before(_PATTERN_REMOVAL):
            in_double = has_quotes = False
        while self.at < len(self.text):
            mark = self.text[self.at]
            if mark == end:
                self.at += 1
                return is_fixed
            if self.skip(_PLAIN[end]):
                continue
            at, quoted = self.at, ""
            if end in ("}", "]"):
                quoted = self.skip(_ANSI_QUOTED) or self.skip(_SINGLE_QUOTED)
            if quoted and has_quotes:  # expanded, but not part of what is around it
                self._read_inner(self.text[at : self.at])
                self.is_broken |= end == "}" and ("}" in quoted or '"' in quoted)
            elif quoted:
                continue
            elif mark in "$`":
                is_fixed &= not self._read_expansion(in_double)
            elif mark == '"':
                self.at += 1
                self._read_nested('"', in_double=True)
            elif mark == "[" and end == "]":
                self.at += 1
                self._read_nested("]", in_double)
            else:
                self.is_broken |= mark == "'"
                self.at += 2 if mark == "\\" else 1
        self.is_broken |= bool(end)
        return is_fixed

    def _read_expansion(self, in_double: bool = False) -> bool:
        """Read an expansion or a substitution. Return False if its character stands for itself."""
        if self.text[self.at] == "`":
            quoted = self.skip(_BACKQUOTED)
            self.is_broken |= not quoted
            self.at += not quoted
            escaped = r'\\([\\$`"])' if in_double else r"\\([\\$`])"
            self._read_inner(re.sub(escaped, r"\1", quoted[1:-1]), is_code=True)
            return True
        if self.skip(_VARIABLE):
            return True
        self.at += 1
        mark = self.text[self.at : self.at + 1]
        self.is_broken |= self.text.startswith("\\\n", self.at)  # what follows is on the next line
        if mark in ("{", "["):
            self.at += 1
            self._read_nested("}" if mark == "{" else "]", in_double)
        elif mark == "(" and not self.read_arithmetic():
            self._read_substitution()
        return mark in ("{", "[", "(")

    def _read_substitution(self) -> None:
        """Read commands in brackets. Here-documents may not go beyond the brackets."""
        start, outer, self._here_documents = self.at, self._here_documents, []
        self.at += 1
        self.read_commands(")")
        self.is_broken |= bool(self._here_documents)
        self.is_broken |= bool(outer) and "\n" in self.text[start : self.at]
        self._here_documents = outer

    def _read_array(self) -> None:
        self.at += 1
        self.skip(_LINES)
        with self._nest():
            while self.at < len(self.text):
                if self.text[self.at] == ")":
                    self.at += 1
                    return
                self.read_word(_INDEX)
                self.skip(_LINES)
        self.is_broken = True

    def read_here_document_mark(self, is_indented: bool, command: _Command) -> None:
        """Read the word after ``<<``, which is not expanded. Its text follows the line."""
        count = len(self.found)
        source = self.read_word().source.replace("\\\n", "")
        del self.found[count:]
        is_quoted = any(mark in source for mark in "'\"\\")
        mark = _without_quotes(source)
        self._here_documents.append((mark, is_quoted, is_indented, command))

    def read_here_documents(self) -> None:
        """Read the here-documents of the line before."""
        marks, self._here_documents = self._here_documents, []
        for mark, is_quoted, is_indented, command in marks:
            start, end, has_end = self.at, self.at, False
            while self.at < len(self.text) and not has_end:
                end = self.at
                line = self.skip(_LINE if is_quoted else _JOINED_LINE).removesuffix("\n")
                line = line if is_quoted else line.replace("\\\n", "")
                has_end = (line.lstrip("\t") if is_indented else line) == mark
            self.is_broken |= not has_end
            source = self.text[start:end]
            is_fixed = is_quoted or self._read_inner(source)
            text = source if is_quoted else _HERE_DOCUMENT_ESCAPE.sub(r"\1", source)
            command.input = Word(text, source, is_fixed)

    def _read_inner(self, text: str, is_code: bool = False) -> bool:
        """Read the expansions of another text, or its commands. Return whether there is none."""
        outer = self.text, self.at, self._here_documents
        self.text, self.at, self._here_documents = text, 0, []
        with self._nest():
            if is_code:
                self.read_commands()
            is_fixed = not is_code and self._read_quoted("")
        self.is_broken |= bool(self._here_documents)
        self.text, self.at, self._here_documents = outer
        return is_fixed

    @contextmanager
    def _nest(self) -> Iterator[None]:
        self._nested += 1
        if self._nested > _MAX_NESTED:
            raise ActionLimitError(f"more than {_MAX_NESTED} levels of nesting")
        yield
        self._nested -= 1


class _CommandReader:
    """Reads commands up to a closing bracket (``end``) or the end of the text."""

    def __init__(self, scanner: _Scanner, end: str) -> None:
        self._scanner, self._end = scanner, end
        self._ends: list[str] = []  # the words that the open compound commands need next
        self._words = _Command()  # of the current command
        self._before = ""
        """What was read of it: nothing, an operator or a word that needs a command, words or
        redirections, or a compound command."""

    def read(self) -> None:
        scanner = self._scanner
        while True:
            scanner.skip(_SPACE)
            operator = scanner.skip(_REDIRECT)
            if operator:
                self._redirect(operator.lstrip("0123456789").rpartition("}")[2])
                continue
            operator = scanner.skip(_OPERATOR)
            if operator == self._end if operator else scanner.at >= len(scanner.text):
                scanner.is_broken |= operator != self._end or bool(self._ends)
                scanner.is_broken |= self._before == "open"
                return
            if operator == "(":
                self._bracket()
            elif operator:
                self._separator(operator)
            elif self._before == "words" and self._words:
                self._words.append(scanner.read_word())
            else:
                self._first_word()

    def _start(self, before: str) -> None:
        """Start a command."""
        self._words, self._before = _Command(), before

    def _redirect(self, operator: str) -> None:
        scanner = self._scanner
        if self._before in ("", "open"):
            self._start("words")
            scanner.found.append(self._words)
        scanner.skip(_SPACE)
        if operator in ("<<", "<<-"):
            scanner.read_here_document_mark(operator == "<<-", self._words)
            return
        at = len(scanner.found)
        target = scanner.read_word()
        if operator == "<<<":
            self._words.input = target
        is_copy = operator == ">&" and _DESCRIPTOR.fullmatch(target.source)
        if operator in _WRITE_OPERATORS and not is_copy:
            scanner.found.insert(at, target)

    def _bracket(self) -> None:
        """Read what follows an opening bracket: a function's body, a subshell or arithmetic."""
        scanner = self._scanner
        scanner.at -= 1
        if len(self._words) == 1 and scanner.skip(_FUNCTION_MARK):
            scanner.functions.add(self._words.pop().text)
            self._start("open")
            return
        scanner.is_broken |= self._before in ("words", "compound")
        if not scanner.read_arithmetic():
            scanner.at += 1
            scanner.read_commands(")")
        self._start("compound")

    def _separator(self, operator: str) -> None:
        scanner = self._scanner
        if operator == "\n":
            self._start("open" if self._before == "open" else "")
            scanner.read_here_documents()
        elif operator in (";;", ";&", ";;&"):
            scanner.is_broken |= self._before == "open" or self._ends[-1:] != ["esac"]
            self._start("")
            if self._ends[-1:] == ["esac"]:
                self._pattern()
        elif operator == ")":
            scanner.is_broken = True
        else:
            scanner.is_broken |= self._before in ("", "open")
            self._start("" if operator in (";", "&") else "open")

    def _first_word(self) -> None:
        """Read the first word of a command, or a reserved word and what belongs to it."""
        scanner = self._scanner
        is_reserved_place = self._before != "words"
        at = len(scanner.found)
        word = scanner.read_word(_ELEMENT)
        text = word.source if is_reserved_place else ""
        if text in _BEGINNINGS:
            self._ends.append(_BEGINNINGS[text])
            self._start("open")
        elif text in _MIDDLES:
            needed, following = _MIDDLES[text]
            scanner.is_broken |= self._ends[-1:] != [needed] or self._before == "open"
            self._ends[-1:] = [following]
            self._start("open")
        elif text in _ENDS:
            scanner.is_broken |= self._ends[-1:] != [text] or self._before == "open"
            del self._ends[-1:]
            self._start("compound")
        elif text == "!":
            self._start("open")
        elif text == "coproc" or (text == "time" and scanner.is_before(_TIME_OPTIONS)):
            scanner.found.insert(at, _Command([word]))
            scanner.skip(_TIME_OPTIONS if text == "time" else _COPROCESS_NAME)
            self._start("" if text == "time" else "open")
        elif text == "[[":
            self._test()
        elif text in ("for", "select"):
            self._loop()
        elif text == "case":
            self._case()
        elif text == "function":
            scanner.skip(_SPACE)
            scanner.functions.add(scanner.read_word().text)
            scanner.skip(_FUNCTION_MARK)
            self._start("open")
        else:
            self._command_word(word, at)

    def _command_word(self, word: Word, at: int) -> None:
        """Add the first word or an assignment before it to the command."""
        scanner = self._scanner
        scanner.is_broken |= self._before == "compound"
        if self._before != "words":
            self._start("words")
            scanner.found.insert(at, self._words)
        if not word.is_assignment:
            self._words.append(word)

    def _test(self) -> None:
        scanner, word = self._scanner, ""
        while word != "]]" and scanner.at < len(scanner.text):
            scanner.skip(_LINES)
            word = "" if scanner.skip(_TEST_OPERATOR) else scanner.read_word().source
        scanner.is_broken |= word != "]]"
        self._start("compound")

    def _loop(self) -> None:
        """Read the name and the words of a loop."""
        scanner = self._scanner
        scanner.skip(_SPACE)
        if not scanner.read_arithmetic():
            scanner.read_word()
            scanner.skip(_LINES)
            if scanner.skip(_IN):
                scanner.skip(_SPACE)
                while scanner.at < len(scanner.text) and not scanner.is_before(_OPERATOR):
                    scanner.read_word()
                    scanner.skip(_SPACE)
        has_brace = bool(scanner.skip(_LOOP_BRACE))
        self._ends.append("}" if has_brace else "do")
        self._start("open" if has_brace else "compound")

    def _case(self) -> None:
        scanner = self._scanner
        scanner.skip(_SPACE)
        scanner.read_word()
        scanner.skip(_LINES)
        scanner.is_broken |= not scanner.skip(_IN)
        self._ends.append("esac")
        self._pattern()

    def _pattern(self) -> None:
        """Read the pattern of the next branch, or the word that ends the branches."""
        scanner, patterns = self._scanner, 0
        scanner.skip(_LINES)
        scanner.at += scanner.text.startswith("(", scanner.at)
        while scanner.at < len(scanner.text):
            scanner.skip(_SPACE)
            operator = scanner.skip(_OPERATOR)
            if operator == ")":
                self._start("")
                return
            if not operator and scanner.read_word().source == "esac" and not patterns:
                self._ends.pop()
                self._start("compound")
                return
            patterns += 1
            scanner.is_broken |= operator not in ("", "|")
        scanner.is_broken = True


def _decode_ansi(text: str) -> str | None:
    """Return the text of ``$'...'``, or None if that depends on the encoding or the shell."""
    if not text.isascii():
        return text if "\\" not in text else None
    pieces, at = [], 0
    for escape in _ANSI_ESCAPE.finditer(text):
        *numbers, octal, letter = escape.groups()
        digits = next((number for number in numbers if number), "")
        code = int(digits, 16) if digits else int(octal, 8) if octal else None
        if not (letter in _ANSI_LETTERS if code is None else 0 < code < 128):
            return None
        pieces += [text[at : escape.start()], chr(code) if code else _ANSI_LETTERS[letter]]
        at = escape.end()
    return "".join((*pieces, text[at:]))


def _without_quotes(source: str) -> str:
    """Return a word without its quotes, as the mark of a here-document."""

    def inner(quote: re.Match[str]) -> str:
        escaped, ansi, single, double = quote.groups()
        if quote.group().startswith("$'"):
            return _decode_ansi(ansi) or ""
        if double is not None:
            return _DOUBLE_QUOTED_ESCAPE.sub(r"\1", double)
        return str(escaped or single or "")

    return _QUOTE.sub(inner, source)


def _command_parts(command: _Command, functions: set[str], depth: int) -> Iterator[ParsedAction]:
    """Yield a command, and the commands that it runs."""
    words: Sequence[Word] = command
    if words[0].text in _DECLARATIONS:
        words = [Word(word.source, word.source) for word in words]
    waiting = [words]
    for _ in range(_MAX_WRAPPED):
        if not waiting:
            return
        words = waiting.pop()
        name = words[0].text
        if not words[0].is_fixed:
            yield ParsedAction((), f"the command's name in `{name}` is calculated")
        texts = tuple(word.text for word in words)
        yield ParsedAction((ActionPart("command", texts, defined_by_action=name in functions),))
        if words[0].is_fixed:
            wrapped = _wrapped_commands(words, command.input)
            inner = list(islice(wrapped, _MAX_WRAPPED + 1 - len(waiting)))
            waiting += [one.words for one in inner if one.words]
            yield from (_nested_parts(one, depth) for one in inner if not one.words)
    if waiting:
        yield ParsedAction((), f"more than {_MAX_WRAPPED} commands that run each other")


def _nested_parts(inner: _WrappedCommand, depth: int) -> ParsedAction:
    if not inner.is_literal or depth == _MAX_DEPTH:
        return ParsedAction((), f"what `{inner.wrapper}` runs is calculated")
    return bash_action_parts(inner.code, depth + 1)


@dataclass(frozen=True, slots=True)
class _WrappedCommand:
    """A command that ``wrapper`` runs: the ``words`` of a command, or the ``code`` of a shell.

    ``is_literal``: the code is literal, not computed.
    """

    wrapper: str
    words: tuple[Word, ...] = ()
    code: str = ""
    is_literal: bool = True


def _wrapped_commands(words: Sequence[Word], entered: Word | None) -> Iterator[_WrappedCommand]:
    """Yield the commands that a command runs, as far as its words and its input show."""
    name = words[0].text.rpartition("/")[2]
    rest = list(words[1:])
    if name in ("eval", "trap") and rest and rest[0].text == "--":
        del rest[0]
    if name == "eval":
        code = " ".join(word.text for word in rest)
        yield _WrappedCommand(name, code=code, is_literal=all(word.is_fixed for word in rest))
    elif name == "trap":
        if len(rest) > 1 and not rest[0].text.startswith("-"):
            yield _WrappedCommand(name, code=rest[0].text, is_literal=rest[0].is_literal)
    elif name in (*_SHELLS, "su"):
        run = _su_code(rest) if name == "su" else _shell_code(rest, entered)
        if run is not None:
            yield _WrappedCommand(name, code=run.text, is_literal=run.is_literal)
    elif name == "find":
        for at, word in enumerate(rest[:-1]):
            if word.text in _FIND_EXEC:
                inner = takewhile(lambda other: other.text not in (";", "+"), rest[at + 1 :])
                yield _WrappedCommand(name, tuple(inner))
    elif name in _WRAPPER_OPTIONS:
        inner_words = _after_options(name, rest)[_WRAPPER_ARGUMENTS.get(name, 0) :]
        if inner_words:
            yield _WrappedCommand(name, tuple(inner_words))


def _shell_code(rest: Sequence[Word], entered: Word | None) -> Word | None:
    """Return the code that a shell receives: its first argument with ``-c``, else its input. The
    name of a file that is calculated is code that is."""
    at, letters = 0, ""
    while at < len(rest) and (text := rest[at].text)[:1] in ("-", "+"):
        at += 1
        if text in ("-", "--"):
            break
        if text.startswith("--"):
            at += text in _SHELL_FILES
        else:
            at += text.count("o") + text.count("O")
            letters += text
    argument = rest[at] if at < len(rest) else None
    if "c" in letters or (argument is not None and not argument.is_literal):
        return argument
    return entered if argument is None or "s" in letters else None


def _su_code(rest: Sequence[Word]) -> Word | None:
    """Return the code that ``su`` receives with ``-c``, a bundle with it or ``--command``."""
    for word, code in pairwise([*rest, Word("", "")]):
        option, mark, value = word.text.partition("=")
        if option == "--command" and mark:
            return Word(value, word.source, word.is_literal)
        if option == "--command" or (option[-1:] == "c" and option[0] == "-" != option[1]):
            return code
    return None


def _after_options(name: str, rest: Sequence[Word]) -> list[Word]:
    """Return the words after options, their values, and assignments."""
    valued = _WRAPPER_OPTIONS[name].split()
    at, in_options = 0, True
    while at < len(rest):
        text = rest[at].text
        if in_options and text == "--":
            in_options = False
            at += 1
        elif in_options and text.startswith("-"):
            option, value, at = _read_option(rest, at, valued)
            if name == "env" and option in ("S", "split-string"):
                rest, at = [*_split_words(value), *rest[at:]], 0
        elif "=" in text.partition("/")[0] and not text.startswith("{"):
            at += 1
        else:
            break
    return list(rest[at:])


def _read_option(rest: Sequence[Word], at: int, valued: Sequence[str]) -> tuple[str, Word, int]:
    """Return an option with a value (or an empty name), the value, and the position behind both."""
    word = rest[at]
    if word.text.startswith("--"):
        begun, mark, value = word.text[2:].partition("=")
        names = (known for known in valued if len(known) > 1 and known.startswith(begun))
        option, has_value = next(names, ""), bool(mark)
    else:
        letter = next((n for n, char in enumerate(word.text) if n and char in valued), None)
        option = "" if letter is None else word.text[letter]
        value = "" if letter is None else word.text[letter + 1 :]
        has_value = bool(value)
    if option and not has_value and at + 1 < len(rest):
        return option, rest[at + 1], at + 2
    return option, Word(value, word.source, word.is_literal), at + 1


def _split_words(value: Word) -> list[Word]:
    """Return the words of the value of ``env -S``, or one that is calculated."""
    is_literal = value.is_literal and not any(mark in value.text for mark in "$\\")
    try:
        texts = shlex.split(value.text) if is_literal else []
    except ValueError:
        texts = []
    return [Word(text, text) for text in texts] or [Word(value.text, value.source, False)]

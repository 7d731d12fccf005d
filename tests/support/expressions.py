"""Expressions of workflows, those that this project writes: whatever else there is, is an error."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

_TOKEN = re.compile(
    r"\s*(?:(?P<number>-?\d+(?:\.\d+)?)|(?P<text>'(?:[^']|'')*')|(?P<name>[A-Za-z_][\w-]*)"
    r"|(?P<sign>==|!=|&&|\|\||[!().,\[\]]))"
)
_PASTED = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_WORDS = {"true": True, "false": False, "null": None}


class ExpressionError(Exception):
    """An expression that GitHub would not take, or that this evaluator does not know."""


class Missing(dict[str, Any]):
    """A context in which a name that nobody has declared is an error, not null as on GitHub."""


def evaluate(
    text: str, contexts: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]
) -> Any:
    """The value of an expression, without the braces around it."""
    return _Reader(text, contexts, {**_FUNCTIONS, **functions}, _are_equal).read()


def require_evaluable(text: str, contexts: Collection[str], functions: Collection[str]) -> None:
    """Raise ExpressionError of an expression that is none, or is of something else as well."""
    anything = dict.fromkeys(contexts)
    nothing = dict.fromkeys((*_FUNCTIONS, *functions), lambda *_: None)
    _Reader(text, anything, nothing, lambda *_: True).read()


def fill_in(
    text: str, contexts: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]
) -> Any:
    """A value with its expressions filled in; one that is all of it keeps its kind."""
    whole = _PASTED.fullmatch(text.strip())
    if whole and "${{" not in whole[1]:
        return evaluate(whole[1], contexts, functions)
    if "${{" in _PASTED.sub("", text):
        raise ExpressionError(f"{text}: does not end")
    return _PASTED.sub(lambda found: show(evaluate(found[1], contexts, functions)), text)


def find_expressions(value: Any) -> Iterator[str]:
    """All expressions in a part of a workflow, those of ``if`` too."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key == "if" and isinstance(each, str) and "${{" not in each:
                yield each
            else:
                yield from find_expressions(each)
    elif isinstance(value, list):
        for each in value:
            yield from find_expressions(each)
    elif isinstance(value, str):
        yield from _PASTED.findall(value)


def show(value: Any) -> str:
    """A value as it is pasted into text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        raise ExpressionError(f"{value} is pasted into text")
    return str(value)


def is_true(value: Any) -> bool:
    """Whether a condition holds."""
    return value not in (None, False, 0, "")


class _Reader:
    """Reads one expression, and works it out on the way."""

    def __init__(
        self,
        text: str,
        contexts: Mapping[str, Any],
        functions: Mapping[str, Callable[..., Any]],
        compare: Callable[[Any, Any], bool],
    ) -> None:
        self._text = text
        self._compare = compare
        self._contexts = contexts
        self._functions = functions
        self._tokens = list(self._read_tokens())

    def _read_tokens(self) -> Iterator[tuple[str, str]]:
        text, at = self._text.rstrip(), 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise ExpressionError(f"{self._text}: not known from {text[at:]!r} on")
            kind = str(found.lastgroup)
            yield kind, found[kind]
            at = found.end()
        yield "sign", ""

    def read(self) -> Any:
        """The value of all of it."""
        value = self._either()
        self._expect("")
        return value

    def _expect(self, sign: str) -> None:
        kind, text = self._tokens.pop(0)
        if (kind, text) != ("sign", sign):
            raise ExpressionError(f"{self._text}: {text!r} where {sign!r} is expected")

    def _takes(self, *signs: str) -> str:
        kind, text = self._tokens[0]
        if kind == "sign" and text in signs:
            self._tokens.pop(0)
            return text
        return ""

    def _either(self) -> Any:
        value = self._both()
        while self._takes("||"):
            other = self._both()
            value = value if is_true(value) else other
        return value

    def _both(self) -> Any:
        value = self._compared()
        while self._takes("&&"):
            other = self._compared()
            value = other if is_true(value) else value
        return value

    def _compared(self) -> Any:
        value = self._negated()
        while sign := self._takes("==", "!="):
            value = self._compare(value, self._negated()) == (sign == "==")
        return value

    def _negated(self) -> Any:
        if self._takes("!"):
            return not is_true(self._negated())
        return self._found()

    def _found(self) -> Any:
        if self._takes("("):
            value = self._either()
            self._expect(")")
            return value
        kind, text = self._tokens.pop(0)
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if kind == "number":
            return float(text) if "." in text else int(text)
        if kind != "name":
            raise ExpressionError(f"{self._text}: {text!r} where a value is expected")
        if text in _WORDS:
            return _WORDS[text]
        if self._takes("("):
            return self._called(text)
        return self._inside(text)

    def _called(self, name: str) -> Any:
        if name not in self._functions:
            raise ExpressionError(f"{self._text}: the function {name} is not known")
        arguments = []
        while not self._takes(")"):
            arguments.append(self._either())
            self._takes(",")
        return self._functions[name](*arguments)

    def _inside(self, name: str) -> Any:
        if name not in self._contexts:
            raise ExpressionError(f"{self._text}: the context {name} is not known here")
        value, path = self._contexts[name], name
        while self._takes("."):
            _, key = self._tokens.pop(0)
            path = f"{path}.{key}"
            if isinstance(value, Missing) and key not in value:
                raise ExpressionError(f"{self._text}: there is no {path}")
            value = value.get(key) if isinstance(value, dict) else None
        return value


def _are_equal(left: Any, right: Any) -> bool:
    """Whether GitHub takes two values for the same: texts whatever their case."""
    if isinstance(left, str) and isinstance(right, str):
        return left.casefold() == right.casefold()
    if type(left) is not type(right) and None not in (left, right):
        raise ExpressionError(f"{left!r} and {right!r} are of two kinds")
    return bool(left == right)


def _contains(where: Any, what: Any) -> bool:
    if isinstance(where, str):
        return show(what).casefold() in where.casefold()
    return any(_are_equal(each, what) for each in where or [])


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "contains": _contains,
    "fromJSON": json.loads,
}

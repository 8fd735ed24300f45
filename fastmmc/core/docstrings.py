"""Docstrings that are put together from what is declared."""

import inspect
import re
import textwrap
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

# Sections of a docstring in numpydoc's order.
ORDER = (
    "Parameters",
    "Attributes",
    "Returns",
    "Yields",
    "Other Parameters",
    "Raises",
    "Warns",
    "See Also",
    "Notes",
    "References",
    "Examples",
)
HEADING = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}$", re.MULTILINE)


def entry(name, kind, text):
    """Return the lines of one parameter or attribute."""
    return f"{name} : {kind}\n{textwrap.indent(text, '    ')}"


def insert_section(text, title, body):
    """Return a docstring with one section more, in numpydoc's order.

    Where the section is there already, the new entries come before its own.
    """
    for found in HEADING.finditer(text):
        if found[1] == title:
            return f"{text[: found.end()]}\n{body}{text[found.end() :]}"
        if ORDER.index(found[1]) > ORDER.index(title):
            heading = f"{title}\n{'-' * len(title)}\n{body}\n\n"
            return text[: found.start()] + heading + text[found.start() :]
    return f"{text}\n\n{title}\n{'-' * len(title)}\n{body}"


def insert_paragraph(text, paragraph):
    """Return a docstring with a paragraph more, before its sections."""
    at = HEADING.search(text).start()
    return f"{text[:at]}{textwrap.fill(paragraph, 95)}\n\n{text[at:]}"


def section(text, title):
    """Return the body of a section of a docstring, empty if there is none."""
    parts = HEADING.split(inspect.cleandoc(text))
    return parts[parts.index(title) + 1].strip("\n") if title in parts else ""


def with_sections_of(text, other, *more):
    """Return a docstring with Returns, Raises, Warns and ``more`` of another one that it lacks."""
    text = inspect.cleandoc(text)
    own = HEADING.split(text)[1::2]
    parts = HEADING.split(other)
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        if title in ("Returns", "Raises", "Warns", *more) and title not in own:
            text = insert_section(text, title, body.strip("\n"))
    return text


def completed_by(other: Callable[..., Any]) -> Callable[[Method], Method]:
    """Take from the docs of another method what a method's own lack: parameters and sections."""

    def decorate(method: Method) -> Method:
        told = inspect.getdoc(other)
        text = with_sections_of(method.__doc__, told)
        shown = inspect.signature(method).parameters
        known = {
            one[0].split(", ")[0].lstrip("*"): one for one in (*_entries(told), *_entries(text))
        }
        body = "\n".join(entry(*known[name]) for name in shown if name in known)
        own = section(text, "Parameters")
        if own:
            method.__doc__ = text.replace(own, body)
        else:
            method.__doc__ = insert_section(text, "Parameters", body)
        return method

    return decorate


def _entries(text, title="Parameters"):
    """Return names, type and meaning of the entries of a section."""
    pattern = r"^(\*{0,2}\w[\w, *]*?) : (.*)\n((?: {4}.*\n?|\n(?= {4}))+)"
    found = re.findall(pattern, section(text, title), re.MULTILINE)
    return [(names, kind, textwrap.dedent(lines).rstrip()) for names, kind, lines in found]


@cache
def attribute_docs(kind):
    """Return a dict of the entries under Attributes, of a class and of those it inherits from."""
    found = {}
    for base in reversed(kind.__mro__):
        for names, type_text, lines in _entries(vars(base).get("__doc__") or "", "Attributes"):
            found |= dict.fromkeys(names.split(", "), (type_text, lines))
    return found

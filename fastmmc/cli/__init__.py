"""The command line: cluster a file or a stream, segment a picture, list the methods."""

import argparse
import os
import shlex
import sys
import warnings
from difflib import get_close_matches

from sklearn.exceptions import ConvergenceWarning

from fastmmc import __version__
from fastmmc.cli import cluster, predict, segment, stream
from fastmmc.cli.common import IN_WARNINGS, STANDARD_OUTPUT, describe, tell
from fastmmc.cli.tables import long_cells
from fastmmc.core.files import naming
from fastmmc.core.words import not_installed
from fastmmc.registry import METHODS

LEAST_LIKENESS = 0.75  # of an option that may have been meant
SHELLS = ("bash", "zsh")
# What options and arguments that take a file show in their help.
NAMES_OF_FILES = ("CSV", "FILE", "MODEL", "NPZ", "PICTURE", "SOURCE")


def main(argv=None):
    """Run the command line and return its exit code.

    It is 0, or 1 if standard output was closed, 2 after an error (one line on standard error says
    which), 130 if the run was interrupted before it had a result, or a stream before its end.
    """
    _open_closed_streams()
    with warnings.catch_warnings(), long_cells():
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.showwarning = _show_warning
        try:
            parser, commands = _make_parser()
            argv = sys.argv[1:] if argv is None else argv
            _check_command(argv, commands)
            args = parser.parse_args(argv)
            args.run(args)
            with naming(STANDARD_OUTPUT):
                sys.stdout.flush()
        except BrokenPipeError:
            # Python flushes standard output once more at exit, which must not fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except (ValueError, OSError, ImportError, MemoryError) as error:
            tell("error", describe(error))
            return 2
        except KeyboardInterrupt as stop:
            tell("error", str(stop) or "interrupted before there was a result")
            return 130
    return 0


def _open_closed_streams():
    """Open standard streams that were closed: nothing is read, and reports are lost."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))


def _show_warning(message, category, filename, lineno, file=None, line=None):
    text = describe(message)
    for advice, instead in IN_WARNINGS.items():
        text = text.replace(advice, instead)
    tell("warning", text)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are reported like all others, options that it lacks among them."""

    def error(self, message):
        raise ValueError(f"{message}; see {self.prog} --help")

    def parse_known_args(self, args=None, namespace=None):
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            near = get_close_matches(
                unknown[0].split("=")[0], self._option_string_actions, 1, LEAST_LIKENESS
            )
            advice = f" (did you mean {near[0]}?)" if near else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{advice}")
        return found, unknown


def _make_parser():
    """Return the parser, and a dict of the commands and their own parsers."""
    parser = _Parser(prog="fastmmc", description="Maximum-margin clustering.")
    parser.add_argument("-V", "--version", action="version", version=f"fastmmc {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (cluster, predict, segment, stream):
        command.add_command(commands)
    methods = commands.add_parser("methods", help="list the methods")
    methods.set_defaults(run=_list_methods)
    completion = commands.add_parser(
        "completion",
        help="print what makes a shell complete commands, options and files",
        description='Print a script for a shell, as for bash: eval "$(fastmmc completion bash)".',
    )
    completion.set_defaults(run=_print_completion)
    completion.add_argument("shell", choices=SHELLS, help="the shell")
    return parser, commands.choices


def _check_command(argv, commands):
    """Refuse a first argument that is no command, and guess what was meant."""
    first = argv[0] if argv else "-"
    if first.startswith("-") or first in commands:
        return
    near = get_close_matches(first, commands, 1)
    meant = near or [f"cluster {shlex.quote(first)}"] * os.path.exists(first)
    advice = f" (did you mean fastmmc {meant[0]}?)" if meant else ""
    raise ValueError(f"there is no command {first!r}{advice}; there are {', '.join(commands)}")


def _print_completion(args):
    try:
        import shtab
    except ImportError as error:
        raise not_installed("completion needs shtab", "shtab") from error
    parser, commands = _make_parser()
    for command in commands.values():
        for action in command._actions:
            if action.metavar in NAMES_OF_FILES:
                action.complete = shtab.FILE
    print(shtab.complete(parser, args.shell))


def _list_methods(args):
    for method in METHODS.values():
        notes = ["two clusters"] * method.binary
        if method.extra is not None:
            notes.append(f"needs {', '.join(method.needs)}")
        print(method.name + (f" ({', '.join(notes)})" if notes else ""))
        print(f"    {method.summary}")
        print(f"    {method.paper}")

"""The command line: cluster a file or a stream, segment a picture, list the methods."""

from __future__ import annotations

import argparse
import os
import sys
import warnings

from sklearn.exceptions import ConvergenceWarning

from fastmmc import __version__
from fastmmc.cli import cluster, segment, stream
from fastmmc.cli.common import describe, tell
from fastmmc.registry import METHODS


def main(argv=None):
    """Run the command line and return its exit code.

    It is 0, or 1 if standard output was closed, 2 after an error (one line on standard error says
    which), 130 if the run was interrupted before it had a result, or a stream before its end.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.showwarning = _show_warning
        try:
            args = _make_parser().parse_args(argv)
            args.run(args)
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


def _show_warning(message, category, filename, lineno, file=None, line=None):
    tell("warning", describe(message))


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are reported like all others."""

    def error(self, message):
        raise ValueError(f"{message}; see {self.prog} --help")


def _make_parser():
    parser = _Parser(prog="fastmmc", description="Maximum-margin clustering.")
    parser.add_argument("--version", action="version", version=f"fastmmc {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (cluster, segment, stream):
        command.add_command(commands)
    methods = commands.add_parser("methods", help="list the methods")
    methods.set_defaults(run=_list_methods)
    return parser


def _list_methods(args):
    for method in METHODS.values():
        notes = ["two clusters"] * method.binary
        if method.extra is not None:
            notes.append(f"needs {', '.join(method.needs)}")
        print(method.name + (f" ({', '.join(notes)})" if notes else ""))
        print(f"    {method.summary}")
        print(f"    {method.paper}")

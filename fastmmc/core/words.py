"""What messages are put together from: counts, quoted texts, first entries of lists, packages."""

from reprlib import Repr

# How many entries of a list a message shows: there may be thousands.
SHOWN = 10

# How texts are shown, which may be as long as a book.
SHORT = Repr()
SHORT.maxstring = 80


def counted(n, one, many=None):
    """Return how many of something there are, in words."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def quoted(text):
    """Return a text in quotes, as messages show it, without the middle of a long one."""
    return SHORT.repr(text)


def first_of(entries, mark=", "):
    """Return the first few entries of a list, and how many more there are."""
    more = len(entries) - SHOWN
    return mark.join(map(str, entries[:SHOWN])) + (f"{mark}and {more:,} more" if more > 0 else "")


def named(what, names):
    """Return what columns or rows are called, as "columns 'a', 'b'", or the first few of them."""
    return f"{what}{'s' * (len(names) > 1)} {first_of([*map(repr, names)])}"


def not_installed(need, packages, instead=""):
    """Return the error for a need, as "plotting needs matplotlib", and what else would do."""
    return ImportError(f"{need} (python -m pip install {packages}){instead}")

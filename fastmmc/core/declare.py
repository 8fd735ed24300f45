"""How parameters are declared, and functions made of them.

A group of parameters is a subclass of :class:`Parameters` that declares them as dataclass fields.
:func:`function_of` gives a solver the signature, the checks and the docs of a group; an estimator
inherits from the groups it shows. Fields come in the order of dataclasses: those of the last base
first and a group's own last, unless it says which one they come ``before``.
"""

# Annotations are read when classes are made, so they must not be strings: no __future__ import.
import functools
import inspect
import operator
import sys
import time
import types
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from difflib import get_close_matches
from functools import cache, cached_property
from typing import (
    Any,
    ClassVar,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

import numpy as np
from scipy.sparse import csr_array, issparse

from fastmmc.core import validation
from fastmmc.core.column_names import Named, column_names
from fastmmc.core.docstrings import entry, insert_section, with_sections_of
from fastmmc.core.execution import RunControl, one_call
from fastmmc.core.results import ClusteringResult
from fastmmc.data.coding import learn_coding
from fastmmc.data.frames import is_frame, refuse_masked, whole_table

P = ParamSpec("P")
Call = TypeVar("Call")
Result = TypeVar("Result")

# What is remembered of the columns of X.
NAMED = ("feature_names_in", "coding")

# How a run is carried out.
RUN = ("n_jobs", "max_time", "callback", "verbose")

# What `params` of a result have as it was given, for all points.
AS_GIVEN = ("init", "landmarks", "rank_tol", "dtype", "metric")

# What functions and estimators, or other libraries, call a parameter.
OTHER_NAMES = {
    "n_clusters": "k",
    "k": "n_clusters",
    "seed": "random_state",
    "sizes": "target_sizes",
}


def parameter(*, default: Any = MISSING, kw_only: bool = True, **told: Any) -> Any:
    """Declare a parameter by what is ``told`` of it: the other fields of :class:`Parameter`.

    What is left out is taken from the parameter that it overrides.
    """
    if "doc" in told:
        told["doc"] = inspect.cleandoc(told["doc"])
    return field(default=default, kw_only=kw_only, metadata=told)


@dataclass_transform(kw_only_default=True, field_specifiers=(parameter,))
class Parameters:
    """A group of parameters; every subclass becomes a dataclass of its own and inherited fields."""

    _before: ClassVar[str | None] = None

    def __init_subclass__(cls, *, before: str | None = None, **options: Any) -> None:
        cls._before = before
        # A field that is declared again takes from the former one what it leaves out.
        formers = [vars(base).get("__dataclass_fields__", {}) for base in cls.__mro__[1:]]
        for name in vars(cls).get("__annotations__", {}):
            former = next((known[name] for known in formers if name in known), None)
            if former is not None:
                own = vars(cls)[name]
                merged = {**former.metadata, **own.metadata}
                setattr(cls, name, field(default=own.default, kw_only=own.kw_only, metadata=merged))
        dataclass(eq=False, repr=False, kw_only=True)(cls)
        cls.__init__.__signature__ = _signature(cls, with_self=True)  # type: ignore[attr-defined]
        super().__init_subclass__(**options)


@dataclass(frozen=True)
class Parameter:
    """One declared parameter; its check follows from type and bounds unless it has its own."""

    name: str
    type: Any
    default: Any
    kw_only: bool
    doc: str = ""
    kind: str | None = None  # replaces the type's own text in the docs
    least: float | None = None
    above: float | None = None
    below: float | None = None
    most: float | None = None
    check: Callable[[str, Any], Any] | None = None  # takes name and value, returns what is used
    # Whether an array has an entry for each point, or names pairs of points.
    per: Literal["point", "pair"] | None = None

    def checked(self, value):
        """Return the value to be used; raise what is wrong with it."""
        if value is self.default:
            return value
        refuse_masked(self.name, value)
        if self.check is not None:
            return self.check(self.name, value)
        if value is None and self._is_optional:
            return None
        if self._kind is None:
            return value  # of a type that the solver itself looks at
        if self._names and (isinstance(value, str) or self._kind is str):
            return validation.check_choice(self.name, value, self._names, _others(self._options))
        if self._kind is bool:
            return validation.check_flag(self.name, value)
        return self._bounded(value, ", or None" if self._is_optional else "")

    @cached_property
    def _options(self):
        return get_args(self.type) if _is_union(self.type) else (self.type,)

    @cached_property
    def _is_optional(self):
        return type(None) in self._options

    @cached_property
    def _names(self):
        return [name for option in self._options for name in _literals(option)]

    @cached_property
    def _kind(self):
        """The one plain type that is allowed, str for names alone; None for anything else."""
        plain = {option for option in self._options if option in (bool, int, float)}
        others = [one for one in self._options if not (one in plain or _literals(one))]
        if len(plain) > 1 or any(one is not type(None) for one in others):
            return None
        return plain.pop() if plain else str

    def _bounded(self, value, other):
        if self._kind is int:
            most = validation.MOST_COUNT if self.most is None else self.most
            least = -most if self.least is None else self.least
            return validation.check_integer(self.name, value, least=least, most=most)
        value = validation.check_number(self.name, value)
        bounds = (
            ("greater than", self.above, operator.gt),
            ("at least", self.least, operator.ge),
            ("below", self.below, operator.lt),
            ("at most", self.most, operator.le),
        )
        given = [one for one in bounds if one[1] is not None]
        if not all(holds(value, bound) for _, bound, holds in given):
            wanted = " and ".join(f"{text} {bound:g}" for text, bound, _ in given)
            raise ValueError(f"{self.name} must be {wanted}{other}; got {value}")
        return value

    def text(self):
        """Return the entry of the docs."""
        kind = self.kind or _kind(self.type)
        if self.default is not MISSING:
            shown = f'"{self.default}"' if isinstance(self.default, str) else repr(self.default)
            kind += f", default={shown}"
        return entry(self.name, kind, self.doc)


def _is_union(kind):
    return get_origin(kind) in (Union, types.UnionType)


def _literals(kind):
    return get_args(kind) if get_origin(kind) is Literal else ()


def _others(options):
    """Return what is allowed beside names, as messages say it."""
    texts = {int: "an integer", float: "a number", bool: "True, False", type(None): "None"}
    others = [texts[option] for option in options if option in texts]
    if not others:
        return ""
    return f" or {others[0]}" if len(others) == 1 else f", {', '.join(others[:-1])} or {others[-1]}"


def _kind(kind):
    """Return a type as the docs write it."""
    if _is_union(kind):
        parts = [_kind(part) for part in get_args(kind) if part is not type(None)]
        return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"
    names = [f'"{name}"' for name in _literals(kind)]
    if names:
        return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"
    if get_origin(kind) is Callable or kind is Callable:
        return "callable"
    return getattr(kind, "__name__", str(kind))


@cache
def declared(group):
    """Return the parameters of a group, those that need no keyword first."""
    found = {
        one.name: Parameter(one.name, one.type, one.default, one.kw_only, **one.metadata)
        for one in fields(group)
    }
    order = []
    for base in reversed(group.__mro__):
        if is_dataclass(base):
            at = order.index(base._before) if base._before in order else len(order)
            order[at:at] = [one.name for one in fields(base) if one.name not in order]
    return sorted((found[name] for name in order), key=lambda one: one.kw_only)


def values(call, *groups):
    """Return a dict of the values that a call has for the parameters of some groups."""
    return {one.name: getattr(call, one.name) for group in groups for one in declared(group)}


def own_values(call, *groups):
    """Return the same of the parameters that these groups add to those of their bases."""
    found = {}
    for group in groups:
        bases = [base for base in group.__bases__ if is_dataclass(base)]
        inherited = {one.name for base in bases for one in fields(base)}
        found |= {n: value for n, value in values(call, group).items() if n not in inherited}
    return found


def own_params(result, call):
    """Return the result without ``params`` that the function of the call has not."""
    params = {name: value for name, value in result.params.items() if hasattr(call, name)}
    return replace(result, params=params)


def told(call, *groups):
    """Return the names of the parameters of some groups that are not at their defaults."""
    names = []
    for one in [one for group in groups for one in declared(group)]:
        value, default = getattr(call, one.name), one.default
        is_equal = type(value) is type(default) and np.array_equal(value, default)
        if value is not default and not is_equal:
            names.append(one.name)
    return names


def _signature(group, with_self=False, returns=inspect.Signature.empty):
    """Return the signature of a group, without annotations, whose text would fill pages."""
    shown = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY
            if one.kw_only
            else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if one.default is MISSING else one.default,
        )
        for one in declared(group)
    ]
    if with_self:
        shown.insert(0, inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD))
    return inspect.Signature(shown, return_annotation=returns)


def document(text, group):
    """Return a docstring with the parameters of a group, each with type, default and meaning."""
    body = "\n".join(one.text() for one in declared(group))
    return insert_section(inspect.cleandoc(text), "Parameters", body)


def function_of(
    group: Callable[P, Call],
    like: Callable[..., Any] | None = None,
    *,
    trains: bool = True,
) -> Callable[[Callable[[Call, RunControl], Result]], Callable[P, Result]]:
    """Make a public function of a solver: ``solve(call, control)`` gets the checked parameters.

    ``call`` is an instance of the group with checked values, which nobody changes, and ``control``
    says how the run is carried out; the time counts from the beginning of the call. What is
    returned remembers the names of the columns of X, and a result the call as well. What the docs
    do not tell of what is returned, raised and warned of is taken from those of the function
    ``like``, as is the example. Where the function ``trains``, X may be a table with columns of any
    kind, and what is returned knows their coding.
    """

    def decorate(solve: Callable[[Call, RunControl], Result]) -> Callable[P, Result]:
        returns = inspect.signature(solve).return_annotation
        signature = _signature(group, returns=returns)
        known = {one.name: one for one in declared(group)}
        order = tuple(known)

        def function(*args: P.args, **kwargs: P.kwargs) -> Result:
            started = time.perf_counter()
            try:
                call = group(*args, **kwargs)
            except TypeError:
                raise _explain(function.__name__, signature, args, kwargs) from None
            # Defaults need no check.
            for name in (*order[: len(args)], *kwargs):
                setattr(call, name, known[name].checked(getattr(call, name)))
            run = {one: getattr(call, one) for one in RUN if hasattr(call, one)}
            control = RunControl(**run, started=started)
            names = {}
            if hasattr(call, "X"):
                call.X = whole_table(call.X)
                # Names that cannot be are refused before the run.
                names = {"feature_names_in": column_names(call.X)}
            given = copy(call)
            with one_call():
                if names and trains:
                    names["coding"] = _in_numbers(call)
                result = solve(call, control)
            seconds = time.perf_counter() - started
            of_call = names | {"method": function.__name__, "seconds": seconds}
            return _with_call(result, given, of_call)

        functools.update_wrapper(function, solve)
        text = solve.__doc__
        if like is not None:
            told = inspect.cleandoc(like.__doc__ or "")
            told = told.replace(f"fastmmc.{like.__name__}(", f"fastmmc.{solve.__name__}(")
            text = solve.__doc__ = with_sections_of(text, told, "Examples")
        # Doctest passes over wrappers, so it is told of the function that was written.
        module = vars(sys.modules[solve.__module__])
        module.setdefault("__test__", {})[solve.__name__] = solve
        function.__doc__ = document(text, group)
        function.__annotations__ = {one.name: one.type for one in declared(group)}
        function.__annotations__["return"] = returns
        vars(function).update(__signature__=signature, parameters=group)
        return function

    return decorate


def _in_numbers(call):
    """Make X of a call numbers, and return the coding of its columns, None where they are."""
    if isinstance(call.X, Named):
        return call.X.coding
    metric = getattr(call, "metric", "euclidean")
    if "precomputed" in (metric, getattr(call, "kernel", None)):
        return None
    has_units = metric == "euclidean" and not callable(getattr(call, "kernel", None))
    scaled = getattr(call, "standardize", False) if has_units else None
    if scaled == "auto":
        scaled = call.settle_units
    weights = getattr(call, "sample_weight", None)
    if is_frame(call.X):
        weights = validation.check_sample_weight(weights, call.X.shape[0])
    call.X, coding = learn_coding(call.X, scaled, weights)
    if coding is not None and scaled:
        call.standardize = False  # the coding does it
    return coding


def _with_call(made, call, of_call):
    """Return what was made, or a list of such, with what it is told of its call.

    All but results take only the names, as far as they have none.
    """
    if isinstance(made, list):
        return [_with_call(one, call, of_call) for one in made]
    if isinstance(made, ClusteringResult):
        made = made._with_coding(of_call.get("coding"))
        resolved = tuple(
            name
            for name, value in made.params.items()
            if _is_filled_in(value, getattr(call, name, ...))
        )
        # What a method has made of k, which may be left open, comes first.
        params = ({"k": call.k} if hasattr(call, "k") else {}) | made.params
        return replace(made, params=params | _as_given(call, params), resolved=resolved, **of_call)
    known = [name for name in NAMED if name in of_call and getattr(made, name) is None]
    return replace(made, **{name: of_call[name] for name in known})


def _as_given(call, params):
    """Return what a call gives that ``params`` lack, or have only for the clustered points."""
    given = {name: getattr(call, name) for name in told(call, type(call)) if name in AS_GIVEN}
    given = {n: one for n, one in given.items() if n not in params or np.ndim(one) > 0}
    landmarks = given.get("landmarks", "")
    if not isinstance(landmarks, str):
        landmarks = csr_array(landmarks) if issparse(landmarks) else np.asarray(landmarks)
        given |= {"landmarks": landmarks, "rank": landmarks.shape[0]}
    return given


def _is_filled_in(value, given):
    """Tell whether a method has put a value in place of None or "auto"; an empty dict is none."""
    is_open = given is None or (isinstance(given, str) and given == "auto")
    is_same = value is given or (isinstance(value, str) and value == given)
    return is_open and not (is_same or (isinstance(value, dict) and not value))


def _explain(name, signature, args, kwargs):
    """Return the TypeError for arguments that do not fit the signature."""
    made = signature.return_annotation
    clusters = inspect.isclass(made) and issubclass(made, ClusteringResult)
    counts = [*args[1:2], *(kwargs[word] for word in ("k", "n_clusters") if word in kwargs)]
    if clusters and "k" not in signature.parameters and counts:
        many = f"recursive_mmc(X, k, method={name!r}) or umc_rls(X, k)"
        return two_clusters_only(name, many, counts[0])
    if error := unknown_name(f"{name}()", kwargs, signature.parameters):
        return error
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        return TypeError(f"{name}() {error}")


def unknown_name(what, given, known):
    """Return the TypeError for the first name given that is not known; None if all are."""
    unknown = next((name for name in given if name not in known), None)
    if unknown is None:
        return None
    near = get_close_matches(unknown, known, 1)
    if (other := OTHER_NAMES.get(unknown)) in known:
        near = [other]
    advice = f"; did you mean {near[0]!r}?" if near else ""
    return TypeError(f"{what} got an unexpected keyword argument {unknown!r}{advice}")


def check_method_params(method, parameters, given, caller, own, misfit=lambda name, value: ""):
    """Return a copy of the parameters that a public function is told for a method.

    ``own`` are those that the caller takes itself; ``misfit(name, value)`` tells why it cannot use
    another one of the ``parameters`` of the method, or nothing.
    """
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise TypeError(f"method_params must be a dict or None; got {given!r}")
    known = [name for name in parameters if name not in own and not misfit(name, None)]
    for name, value in given.items():
        if name in own:
            raise ValueError(f"method_params: give {name} to {caller} itself, or leave it out")
        if name not in parameters:
            raise ValueError(f"method_params: {method} has no {name!r}; it has {', '.join(known)}")
        if reason := misfit(name, value):
            raise ValueError(f"method_params: {name} would be {reason}; leave it out")
    return dict(given)


def two_clusters_only(name, many, given):
    """Return the error for a number of clusters, or a parameter without a name."""
    return TypeError(
        f"{name} makes two clusters: it takes no number of them, and its parameters by name only; "
        f"got {given!r}. For more clusters use {many}"
    )

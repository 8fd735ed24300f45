"""How groups of parameters are put together."""

import inspect

import pytest

import fastmmc
from fastmmc.core.declare import Parameters, declared, own_values, parameter


class Kernel(Parameters):
    width: float = parameter(default=1.0, above=0, doc="Width.")
    degree: int = parameter(default=3, doc="Degree.")


class Method(Kernel, before="degree"):
    rounds: int = parameter(default=10, least=1, doc="Rounds.")
    width: float = parameter(default=2.0)


class Variant(Method):
    X: object = parameter(kw_only=False, doc="Points.")
    share: float = parameter(default=0.5, doc="Share.")


def test_own_parameters_come_last_or_before_one_that_is_inherited():
    assert [one.name for one in declared(Method)] == ["width", "rounds", "degree"]
    assert [one.name for one in declared(Variant)] == ["X", "width", "rounds", "degree", "share"]
    assert list(inspect.signature(Variant).parameters) == [one.name for one in declared(Variant)]


def test_what_a_redeclared_parameter_leaves_out_is_inherited():
    width = declared(Variant)[1]
    assert (width.default, width.above, width.doc) == (2.0, 0, "Width.")


def test_own_values_are_those_of_what_a_group_adds():
    call = Variant([[0.0]], share=0.1)
    assert own_values(call, Method) == {"rounds": 10}
    assert own_values(call, Kernel, Variant) == {
        "width": 2.0,
        "degree": 3,
        "X": [[0.0]],
        "share": 0.1,
    }


@pytest.mark.parametrize("method", fastmmc.METHODS.values(), ids=lambda method: method.name)
def test_groups_come_before_parameters_that_there_are(method):
    for group in (method.function.parameters, method.estimator):
        names = {one.name for one in declared(group)}
        places = {getattr(base, "_before", None) for base in group.__mro__}
        assert places - {None} <= names

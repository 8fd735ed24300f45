"""What the scikit-learn estimators of all families share."""

from __future__ import annotations

import inspect
import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from fastmmc.core import saving, validation
from fastmmc.core.bases import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from fastmmc.core.callbacks import CallbackSupport, fit_tasks, telling, with_callbacks
from fastmmc.core.column_names import Named
from fastmmc.core.declare import declared, document, two_clusters_only, unknown_name
from fastmmc.core.docstrings import attribute_docs, completed_by, entry, insert_section, section
from fastmmc.core.results import ClusteringResult
from fastmmc.core.types import MatrixLike
from fastmmc.data.frames import Frame, is_frame, whole_table
from fastmmc.data.labels import check_known_labels, read_known_labels
from fastmmc.registry import Method, register, registry_name

# Result fields that become attributes with a trailing underscore.
COMMON_FIELDS = (
    "labels",
    "objective",
    "status",
    "n_iter",
    "n_moves",
    "sizes",
    "history",
    "objectives",
)

# What every fitted estimator has besides.
COMMON_ATTRIBUTES = """\
result_ : {result}
    Everything else.
n_features_in_ : int
    Features of the training points.
feature_names_in_ : (d,) array
    Their names, where X had any.
coding_ : Coding or None
    How the columns of a table became numbers; None where they were numbers."""

# The example of each.
EXAMPLE = """\
>>> import fastmmc
>>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
>>> model = fastmmc.{name}({given}).fit(X)
>>> model.predict(X[:2]) == model.labels_[:2]
array([ True,  True])"""
EXAMPLE_OPTIONS = "n_clusters=2", "random_state=0"  # as far as an estimator has them


def _of_result(name):
    """Return a property that gives what a fitted estimator has of its result."""

    def get(estimator):
        if "result_" not in vars(estimator):
            kind = type(estimator).__name__
            raise AttributeError(f"{kind!r} object has no attribute '{name}_' before fit")
        return getattr(estimator.result_, name)

    return property(get)


class Clusterer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupport, ClusterMixin, BaseEstimator
):
    """A clusterer that keeps a result whose model predicts.

    A subclass names its ``solver``, which :func:`fastmmc.core.declare.function_of` made, and
    inherits from the parameters that it shows; then it is documented and registered.
    """

    _fields: ClassVar[tuple[str, ...]] = COMMON_FIELDS
    # Those that the result computes when it is first asked for them.
    _late_fields: ClassVar[tuple[str, ...]] = ()
    # Further attributes and their docs.
    _own_attributes: ClassVar[dict[str, tuple[str, str]]] = {}
    _unit = "start"

    # A parameter of those that can learn from labels, and whether labels are numbers of clusters.
    semi_supervised = False
    _labels_are_clusters = False

    def __init_subclass__(cls, solver=None, paper="", summary="", extra=None, needs=(), **options):
        super().__init_subclass__(**options)
        for late in vars(cls).get("_late_fields", ()):
            setattr(cls, f"{late}_", _of_result(late))
        if solver is None:
            return
        cls._solver = staticmethod(solver)
        cls.__doc__ = _document(cls, solver)
        name = registry_name(solver.__name__)
        binary = "k" not in inspect.signature(solver).parameters
        register(Method(name, solver, cls, paper, summary, binary, extra, needs))
        saving.CLASSES[cls.__name__] = cls

    if TYPE_CHECKING:
        labels_: NDArray[np.int64]

        def __getattr__(self, name: str) -> Any: ...  # what else fit makes

    else:  # type checkers know the parameters from the declarations

        def __new__(cls, *args, **params):  # noqa: D102
            if args or "n_clusters" in params:
                if "n_clusters" not in cls._get_param_names():
                    many = "RecursiveMMC(k, method=...) or UMCRLS(k)"
                    given = args[0] if args else params["n_clusters"]
                    raise two_clusters_only(cls.__name__, many, given)
            if error := unknown_name(f"{cls.__name__}()", params, cls._get_param_names()):
                raise error
            return super().__new__(cls)

    @with_callbacks
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Cluster the points.

        Parameters
        ----------
        X : (n, d) array_like or sparse matrix
            Points, as the function of the same method takes them; with ``kernel="precomputed"``
            their (n, n) Gram matrix.
        y : object, optional
            Ignored.

        Returns
        -------
        object
            Itself.

        Raises
        ------
        ImportError, ValueError, TypeError, MemoryError
            As the function of the same method.
        """
        return self._fit(X)

    def _fit(self, X, y=None, **told):
        """Cluster by the solver, with what ``fit`` was told, and keep the result."""
        X = whole_table(X)
        if is_frame(X):
            # The solver reads it, as its columns may be of any kind.
            validate_data(self, X, reset=True, skip_check_array=True)
        else:
            X = self._check_matrix(X, reset=True)
        params = self.get_params(deep=False) | told
        if "n_clusters" in params:
            params["k"] = params.pop("n_clusters")
        if "semi_supervised" in params:
            params["known_labels"] = self._told_labels(y, X.shape[0])
        taken = inspect.signature(self._solver).parameters
        params = {name: value for name, value in params.items() if name in taken}
        n_tasks = self._count_tasks(X.shape[0])
        with fit_tasks(self, n_tasks, self._unit) as tell:
            if "callback" in params:
                params["callback"] = telling(tell, params["callback"])
            result = self._solver(X, **params)
            if tell is not None and n_tasks is not None:
                tell(len(result.objectives))
        return self._keep(result)

    def _checked_parameters(self):
        """Return the attributes by name, parameters checked as they are declared."""
        told = vars(self).copy()
        for one in declared(type(self)):
            # Chunks of a stream may be short: defaults need no call.
            if told[one.name] is not one.default:
                told[one.name] = one.checked(told[one.name])
        return told

    def _count_tasks(self, n):
        """Return how many starts there will be; None where that is not known."""
        return getattr(self, "n_init", 1)

    def _check_new_points(self, X):
        check_is_fitted(self)
        coding = self.coding_
        is_table = isinstance(X, Frame) or is_frame(X)
        if coding is not None and (is_table or not coding.is_plain):
            return Named(coding=coding)._in_numbers(X)
        return self._check_matrix(whole_table(X), reset=False)

    def _check_matrix(self, X, reset):
        return validation.check_matrix(
            X,
            check=partial(validate_data, self),
            dtype=[np.float64, np.float32],
            accept_sparse="csr",
            reset=reset,
        )

    def _told_labels(self, y, n):
        """Return the labels that y tells, checked; None unless the estimator learns from them."""
        if not validation.check_flag("semi_supervised", self.semi_supervised):
            return None
        if not self._labels_are_clusters:
            return check_known_labels(y, n, name="y")
        k = n
        if not isinstance(self.n_clusters, str):
            k = validation.check_integer("n_clusters", self.n_clusters, least=1)
        read_known_labels(y, n, k, name="y")
        return y

    def _keep(self, result):
        """Make the result's fields attributes."""
        names = getattr(self, "feature_names_in_", None)
        self.result_ = replace(result, feature_names_in=names)
        self.coding_ = result.coding
        for name in self._fields:
            setattr(self, f"{name}_", getattr(result, name))
        return self

    @completed_by(fit)
    def fit_predict(self, X: MatrixLike, y: object = None, **fit_params: Any) -> NDArray[np.int64]:
        """Cluster the points and return their clusters; all that ``fit`` is told counts.

        Parameters
        ----------
        y : (n,) array_like, optional
            As ``fit`` takes it.
        **fit_params : Any
            What else ``fit`` takes, such as ``cannot_link``.

        Returns
        -------
        (n,) int64 array
            Clusters 0..k-1.
        """
        # scikit-learn's own does not pass y on.
        return self.fit(X, y, **fit_params).labels_

    def predict(self, X: MatrixLike) -> NDArray[np.int64]:
        """Return the clusters of new points.

        Parameters
        ----------
        X : (m, d) array_like or sparse matrix
            New points; with a precomputed kernel their (m, n) kernel values.

        Returns
        -------
        (m,) int64 array
            Clusters 0..k-1; of methods with centers, the nearest one.

        Warns
        -----
        UserWarning
            If the kernel is Gaussian or Laplacian, and nearly all of 20 or more new points lie so
            far beyond the training points that their columns seem to have other units.
        """
        X = self._check_new_points(X)
        return self._nearest(X)

    def _nearest(self, X):
        return self.result_._nearest(X)

    @completed_by(predict)
    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Return the score of every cluster for new points.

        Returns
        -------
        (m, k) array
            Scores; the largest one names the cluster. Of methods with centers they are minus the
            distances to these, squared where the objective has squared ones.
        """
        X = self._check_new_points(X)
        return self._scores(X)

    def _scores(self, X):
        return self.result_._scores(X)

    @property
    def _n_features_out(self):
        return len(self.sizes_)

    @completed_by(predict)
    def transform(self, X: MatrixLike) -> np.ndarray:
        """Return the scores of new points as features, as ``decision_function`` does.

        Returns
        -------
        (m, k) array
            A column for each cluster; ``get_feature_names_out`` names them, and ``set_output``
            makes a data frame of them.
        """
        return self.decision_function(X)

    @completed_by(saving.Savable.save)
    def save(self, path: str | os.PathLike[str], extra: object = None) -> None:
        """Write the fitted estimator to a file, which :func:`fastmmc.load` reads.

        The file appears whole or not at all, also if the process is killed. What belongs to the
        process is left out: ``callback``, and ``random_state`` unless it is an integer, become
        None; what scikit-learn keeps beside the parameters (``set_output``) is not in it, nor are
        the ``labels_`` of the last call of ``partial_fit``, where there is one.

        Parameters
        ----------
        extra : object, optional
            Whatever else belongs to this moment, such as a place in the source of the objects; of
            what JSON can hold. It becomes the attribute ``extra_`` of what is read.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If there is nothing to save.
        TypeError
            If a parameter is an object that a file of numbers cannot hold, as a callable kernel, or
            extra is not what JSON can hold.
        OSError
            If the file cannot be written.
        """
        check_is_fitted(self)
        saving.write(path, self, extra)

    @classmethod
    @completed_by(saving.load)
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` has written; :func:`fastmmc.load` reads any estimator.

        Returns
        -------
        object
            An estimator of this class, that predicts, and learns on, as the saved one.
        """
        return saving.read(path, cls)

    def _state(self):
        params = self.get_params(deep=False)
        for name in ("callback", "random_state"):
            if not isinstance(params.get(name), int | np.integer | None):
                params[name] = None
        return {
            "params": params,
            "n_features_in_": self.n_features_in_,
            "feature_names_in_": getattr(self, "feature_names_in_", None),
            "result_": getattr(self, "result_", None),
        }

    @classmethod
    def _of_state(cls, state):
        """Return the estimator of a file, whose parts are checked against each other."""
        params, names, result = (state[n] for n in ("params", "feature_names_in_", "result_"))
        model = cls(**params)
        model._checked_parameters()
        n = validation.check_integer("n_features_in_", state["n_features_in_"], least=1)
        model.n_features_in_ = n
        if names is not None:
            if not isinstance(names, np.ndarray) or names.dtype != object or names.shape != (n,):
                raise ValueError(f"feature_names_in_ are not the names of {n} columns")
            model.feature_names_in_ = names
        if result is not None:
            wanted = inspect.signature(cls._solver).return_annotation
            if type(result) is not wanted:
                raise ValueError(f"result_ is no {wanted.__name__}")
            of_columns = result.model is not None and result.coding is None
            if of_columns and result.model.n_features != n:
                raise ValueError(f"result_ is of {result.model.n_features} columns, not {n}")
            model._keep(result)
        elif state.get("stream") is None:
            raise ValueError("it holds nothing that was found")
        return model

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        is_gram = getattr(self, "kernel", None) == "precomputed"
        is_distances = getattr(self, "metric", None) == "precomputed"
        tags.input_tags.pairwise = is_gram or is_distances
        tags.input_tags.positive_only = is_distances
        tags.input_tags.sparse = not is_gram
        return tags


class MarginClusterer(Clusterer):
    """A clusterer whose scores have a margin; labels that are given make one start."""

    _fields: ClassVar[tuple[str, ...]] = (
        *COMMON_FIELDS,
        "dual_coef",
        "support",
        "intercept",
        "duality_gap",
        "n_violated",
    )

    def _count_tasks(self, n):
        return super()._count_tasks(n) if isinstance(getattr(self, "init", ""), str) else 1

    def score(self, X: MatrixLike, y: object = None) -> float:
        """Return minus the mean loss of points that take the label of their side.

        Parameters
        ----------
        X : (m, d) array_like or sparse matrix
            Points; with a precomputed kernel their (m, n) kernel values.
        y : object, optional
            Ignored.

        Returns
        -------
        float
            At most 0; higher is better: points lie at the margin of their cluster, or (hinge loss,
            also that of cutting planes, semidefinite programs and trees, where the least margin on
            the way down counts) beyond it.
        """
        return -float(np.mean(self._losses(self._margins(self.decision_function(X)))))

    def _margins(self, scores):
        return np.abs(scores[:, 1])

    def _losses(self, margins):
        return np.maximum(0.0, 1.0 - margins)


class CenterClusterer(Clusterer):
    """A clusterer with a :class:`fastmmc.CentroidResult`; ``_model`` holds the centers."""

    _own_attributes = {
        "cluster_centers_": (
            "(m, d) float64 array",
            "Centers, in the order of the labels; of a coded table by its ``coding_.features``.",
        )
    }

    def _keep(self, result):
        self._model, self.cluster_centers_ = result.model, result.centers
        return super()._keep(result)

    @property
    def _n_features_out(self):
        return self.cluster_centers_.shape[0]

    def _scores(self, X):
        return self._model.decision_function(X)

    def _nearest(self, X):
        return self._model.nearest(X)

    @completed_by(Clusterer.predict)
    def transform(self, X: MatrixLike) -> NDArray[np.float64]:
        """Return the distances of new points to the centers.

        Returns
        -------
        (m, k) float64 array
            Euclidean distances.
        """
        X = self._check_new_points(X)  # before the model, which is not there until fit
        return np.sqrt(self._model.distances(X))

    @completed_by(MarginClusterer.score)
    def score(self, X: MatrixLike, y: object = None) -> float:
        """Return minus the mean distance of points to their nearest center.

        The distances are squared where the objective of the method has squared ones.

        Returns
        -------
        float
            At most 0; higher is better.
        """
        return float(self.decision_function(X).max(axis=1).mean())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # A kernel is that of features; without them its parameters do nothing.
        tags.input_tags.pairwise &= getattr(self, "features", None) is not None
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags


def result_of(given):
    """Return the result of a fitted estimator; anything else as it is."""
    if not isinstance(given, Clusterer):
        return given
    check_is_fitted(
        given,
        "result_",
        msg="this %(name)s has no result, which fit makes; partial_fit makes none",
    )
    return given.result_


def clustering_of(name, given):
    """Return a result, that of an estimator if one is given; ``name`` is its parameter's."""
    result = result_of(given)
    if not isinstance(result, ClusteringResult):
        raise TypeError(
            f"{name} must be what a solver returned, or a fitted estimator; "
            f"got a {type(given).__name__}"
        )
    return result


def _document(estimator, solver):
    """Return the docstring of an estimator with all its parameters and attributes."""
    result = inspect.signature(solver).return_annotation
    known = attribute_docs(result)
    fields = (*estimator._fields, *estimator._late_fields)
    shown = [entry(f"{name}_", *known[name]) for name in fields]
    shown += [entry(name, *told) for name, told in estimator._own_attributes.items()]
    common = COMMON_ATTRIBUTES.format(result=result.__name__)
    text = document(estimator.__doc__, estimator)
    name = f"fastmmc.{solver.__name__}"
    if f"`{name}`" not in text:
        text = insert_section(text, "See Also", f"{name} : The same as a function, with notes.")
    text = insert_section(text, "References", section(solver.__doc__, "References"))
    names = inspect.signature(estimator).parameters
    given = ", ".join(one for one in EXAMPLE_OPTIONS if one.split("=")[0] in names)
    text = insert_section(text, "Examples", EXAMPLE.format(name=estimator.__name__, given=given))
    return insert_section(text, "Attributes", "\n".join([*shown, common]))

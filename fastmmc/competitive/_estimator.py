"""scikit-learn estimators of the competitive family, and the stream behind ``partial_fit``."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from pathlib import Path

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fastmmc import validation
from fastmmc._callbacks import fit_tasks, with_callbacks
from fastmmc._clusterer import COMMON_FIELDS, Clusterer
from fastmmc.competitive._solver import WEIGHTED, solve_competitive
from fastmmc.competitive._solver_online import check_rule
from fastmmc.competitive._solver_space import (
    CentroidModel,
    Space,
    check_space,
    check_start,
    first_prototypes,
    make_space,
)
from fastmmc.competitive._solver_stream import Stream, check_chunk_constraints
from fastmmc.constraints import looks_partial
from fastmmc.execution import fixed_seed, restart_stream
from fastmmc.gram import Kernel
from fastmmc.lowrank import Features

# Result fields that become attributes with a trailing underscore.
RESULT_FIELDS = (
    *COMMON_FIELDS,
    "weights",
    "n_active",
    "n_constraints",
    "n_violations",
    "n_conflicts",
)

# Version of the files that `save` writes.
FORMAT = 1


class _CompetitiveClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """What the estimators of the family share."""

    _fields = RESULT_FIELDS
    _method = ""

    def _fit(self, X, **constraints):
        X = self._check_training_points(X)
        params = self.get_params(deep=False)
        k = params.pop("n_clusters")
        params.pop("memory_size", None)
        with fit_tasks(self, params["n_init"]) as on_start_done:
            result = solve_competitive(
                X, k, method=self._method, on_start_done=on_start_done, **constraints, **params
            )
        self._model, self._stream = result.model, None
        for name in ("n_seen_", "n_forgotten_"):
            self.__dict__.pop(name, None)
        self.cluster_centers_ = result.centers
        return self._keep(result)

    @property
    def _n_features_out(self):
        return self.cluster_centers_.shape[0]

    def predict(self, X):
        """Return the nearest prototype of new points.

        Parameters
        ----------
        X : (m, d) array_like or sparse matrix
            New points.

        Returns
        -------
        (m,) int64 array
            Clusters 0..k-1.
        """
        return np.argmin(self._distances(X), axis=1)

    def decision_function(self, X):
        """Return minus the squared distances of new points to the prototypes.

        Parameters
        ----------
        X : (m, d) array_like or sparse matrix
            New points.

        Returns
        -------
        (m, k) float64 array
            Scores; the largest one names the cluster.
        """
        return -self._distances(X)

    def transform(self, X):
        """Return the distances of new points to the prototypes.

        Parameters
        ----------
        X : (m, d) array_like or sparse matrix
            New points.

        Returns
        -------
        (m, k) float64 array
            Euclidean distances.
        """
        return np.sqrt(self._distances(X))

    def score(self, X, y=None):
        """Return minus the mean squared distance of points to their nearest prototype.

        Parameters
        ----------
        X : (m, d) array_like or sparse matrix
            Points.
        y : object, optional
            Ignored.

        Returns
        -------
        float
            At most 0; higher is better.
        """
        return -float(self._distances(X).min(axis=1).mean())

    def _distances(self, X):
        X = self._check_new_points(X)
        return self._model.distances(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        pairwise = self.features is not None and self.kernel == "precomputed"
        tags.input_tags.pairwise = pairwise
        tags.input_tags.sparse = not pairwise
        return tags


class _StreamingClusterer(_CompetitiveClusterer):
    """Those that learn on line."""

    @with_callbacks
    def fit(self, X, y=None):
        """Cluster the points.

        Parameters
        ----------
        X : (n, d) array_like or sparse matrix
            Points.
        y : object, optional
            Ignored.

        Returns
        -------
        object
            Itself.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As the function of the same method.
        """
        return self._fit(X)

    def partial_fit(self, X, y=None):
        """Learn more objects, each of them once and in the given order.

        The first call finds first prototypes, from its own objects. After ``fit`` learning goes on
        from what was found. ``labels_`` then says which prototype was nearest to each of these
        objects when it was presented; prototypes keep their numbers, so none are dropped.

        Parameters
        ----------
        X : (n, d) array_like or sparse matrix
            Objects.
        y : object, optional
            Ignored.

        Returns
        -------
        object
            Itself.

        Raises
        ------
        ValueError, TypeError
            If a parameter is out of range, X is not a finite matrix, or the first call has fewer
            objects than there are prototypes.
        """
        return self._partial_fit(X, None)

    def _partial_fit(self, X, constraints):
        rule = self._check_rule()
        first = getattr(self, "_model", None) is None
        X = self._check_training_points(X) if first else self._check_chunk(X)
        if getattr(self, "_stream", None) is None:
            self._stream = self._continue_fit() if not first else self._begin(X)
        stream = self._stream
        size = getattr(self, "memory_size", 0)
        self.labels_ = stream.present(stream.space.rows(X), rule, size, constraints)
        self._show_stream()
        return self

    def _check_chunk(self, X):
        """Check further objects; scikit-learn's checks take as long as a thousand objects."""
        is_fine = (
            type(X) is np.ndarray
            and X.dtype in (np.float64, np.float32)
            and X.flags.c_contiguous
            and X.ndim == 2
            and X.shape[1] == self.n_features_in_
            and X.shape[0] > 0
            and not hasattr(self, "feature_names_in_")
            and np.isfinite(X.sum())
        )
        return X if is_fine else self._check_new_points(X)

    def _check_rule(self):
        return check_rule(
            WEIGHTED[self._method],
            self.alpha,
            getattr(self, "beta", 0.0),
            self.schedule,
            getattr(self, "per_constraint", "once"),
        )

    def _begin(self, X):
        """Find the space and the first prototypes from the first objects."""
        k = validation.check_integer("n_clusters", self.n_clusters, least=1)
        init = check_start(self.init)
        if isinstance(init, str) and X.shape[0] < k:
            raise ValueError(
                f"the first call of partial_fit finds {k} prototypes from its objects and needs as "
                f"many; got {X.shape[0]}: begin with more of them, or give the prototypes as init"
            )
        seed = fixed_seed(self.random_state)
        kernel = validation.check_kernel(
            self.kernel, self.sigma, self.gamma, self.degree, self.coef0, self.kernel_params
        )
        if kernel.name == "precomputed":
            raise ValueError("partial_fit needs points; got kernel='precomputed'")
        plan = check_space(X, self.features, kernel, self.rank, self.landmarks, self.rank_tol)
        space, rows = make_space(X, plan, seed)
        centers = first_prototypes(init, rows, k, restart_stream(seed, 0))
        return Stream(space, centers, np.ones(k))

    def _continue_fit(self):
        """Return a stream that begins with the prototypes that `fit` has kept."""
        result = self.result_
        kept = [
            int(np.flatnonzero((result.all_centers == c).all(axis=1))[0]) for c in result.centers
        ]
        return Stream(self._model.space, result.centers.copy(), result.weights[kept].copy())

    def _show_stream(self):
        """Make what the stream has found attributes."""
        stream = self._stream
        self._model = CentroidModel(stream.centers, stream.space)
        self.cluster_centers_ = stream.centers
        self.weights_ = stream.wins
        n_learned = stream.wins - 1.0
        enough = n_learned >= max(self.min_share * n_learned.sum(), 1.0)
        self.n_active_ = max(1, int(np.count_nonzero(enough)))
        self.n_seen_ = stream.n_seen

    def save(self, path, extra=None):
        """Write the prototypes, and all that ``partial_fit`` needs to go on, to a file.

        The file appears whole or not at all, also if the process is killed.

        Parameters
        ----------
        path : str or Path
            An .npz file; no pickles are in it.
        extra : object, optional
            Whatever else belongs to this moment, such as a place in the source of the objects; of
            what JSON can hold. It becomes the attribute ``extra_`` of what :meth:`load` returns.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If there is nothing to save.
        TypeError
            If a parameter is an object that a file of numbers cannot hold, as a callable kernel, or
            extra is not what JSON can hold.
        """
        check_is_fitted(self, "cluster_centers_")
        stream = self._stream if self._stream is not None else self._continue_fit()
        arrays = _stream_arrays(stream)
        arrays["n_features_in"] = np.int64(self.n_features_in_)
        if hasattr(self, "feature_names_in_"):
            arrays["feature_names_in"] = self.feature_names_in_.astype(str)
        params = self.get_params(deep=False)
        for name in ("init", "landmarks"):
            if not isinstance(params[name], str):
                arrays[f"param_{name}"] = np.asarray(params.pop(name))
        # A stream draws nothing any more; progress is for the process that made it.
        params |= {"random_state": None, "callback": None}
        arrays["header"] = np.array(_as_json(self, params, stream.space.kernel, extra))
        path = Path(path)
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with unfinished.open("wb") as file:
                np.savez(file, **arrays)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)

    @classmethod
    def load(cls, path):
        """Read what :meth:`save` has written.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        object
            An estimator that predicts and learns on as the saved one.

        Raises
        ------
        ValueError
            If the file holds something else, or another estimator.
        """
        arrays, header = read_saved(path)
        if header["format"] != FORMAT or header["class"] != cls.__name__:
            raise ValueError(
                f"{path} holds {header['class']} (format {header['format']}); "
                f"expected {cls.__name__} (format {FORMAT})"
            )
        params = header["params"]
        for name in ("init", "landmarks"):
            if f"param_{name}" in arrays:
                params[name] = arrays[f"param_{name}"]
        model = cls(**params)
        model.n_features_in_ = int(arrays["n_features_in"])
        if "feature_names_in" in arrays:
            model.feature_names_in_ = arrays["feature_names_in"].astype(object)
        model._stream = _stream_of_arrays(arrays, header["kernel"], model.n_features_in_)
        model._show_stream()
        model.extra_ = header.get("extra")
        return model


class _ConstrainedStream(_StreamingClusterer):
    """Those that learn on line, with constraints."""

    @with_callbacks
    def fit(self, X, y=None, must_link=None, cannot_link=None):
        """Cluster the points.

        Parameters
        ----------
        X : (n, d) array_like or sparse matrix
            Points.
        y : (n,) array_like, optional
            Partial labels, if it contains -1 and some label >= 0; ignored otherwise.
        must_link, cannot_link : (p, 2) array_like of int or sparse matrix, optional
            Pairs of objects that belong together, and that do not.

        Returns
        -------
        object
            Itself.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As the function of the same method.
        """
        y = y if looks_partial(y) else None
        return self._fit(X, y=y, must_link=must_link, cannot_link=cannot_link)

    def partial_fit(self, X, y=None, must_link=None, cannot_link=None):
        """Learn more objects, each of them once and in the given order.

        The first call finds first prototypes, from its own objects. After ``fit`` learning goes on
        from what was found. ``labels_`` then says which prototype was nearest to each of these
        objects when it was presented; prototypes keep their numbers, so none are dropped.

        Objects are numbered from 0 in the order in which they come, call after call; constraints
        name these numbers and may name objects yet to come. A constraint is learned from when its
        later object is presented, if the earlier one is among the last ``memory_size`` constrained
        ones: those that are labelled or were in a constraint given by the time they came.
        ``n_forgotten_`` counts pairs whose earlier object is not; those that labels imply are not
        counted.

        Parameters
        ----------
        X : (n, d) array_like or sparse matrix
            Objects.
        y : (n,) array_like, optional
            Partial labels, if it contains -1 and some label >= 0; ignored otherwise. They imply
            constraints with remembered labelled objects.
        must_link, cannot_link : (p, 2) array_like of int or sparse matrix, optional
            Pairs of objects, by their numbers in the stream, that belong together, and that do not.

        Returns
        -------
        object
            Itself.

        Raises
        ------
        ValueError, TypeError
            If a parameter is out of range, X is not a finite matrix, constraints contradict each
            other, or the first call has fewer objects than there are prototypes.
        """
        return self._learn(X, y if looks_partial(y) else None, must_link, cannot_link)

    def _learn(self, X, y, must_link, cannot_link):
        """Learn more objects; labels count whatever they look like, also if all are known."""
        validation.check_integer("memory_size", self.memory_size, least=1)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        constraints = check_chunk_constraints(
            must_link,
            cannot_link,
            y,
            n,
            labels_as=self.labels_as,
            on_conflict=self.on_conflict,
            stream=getattr(self, "_stream", None),
        )
        return self._partial_fit(X, constraints)

    def _show_stream(self):
        super()._show_stream()
        self.n_forgotten_ = self._stream.n_forgotten
        self.n_conflicts_ = self._stream.n_conflicts


class _ConstrainedClusterer(_CompetitiveClusterer):
    """Those that work in batch, with constraints."""

    @with_callbacks
    def fit(self, X, y=None, must_link=None, cannot_link=None):
        """Cluster the points.

        Parameters
        ----------
        X : (n, d) array_like or sparse matrix
            Points.
        y : (n,) array_like, optional
            Partial labels, if it contains -1 and some label >= 0; ignored otherwise.
        must_link, cannot_link : (p, 2) array_like of int or sparse matrix, optional
            Pairs of objects that belong together, and that do not.

        Returns
        -------
        object
            Itself.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As the function of the same method.
        """
        y = y if looks_partial(y) else None
        return self._fit(X, y=y, must_link=must_link, cannot_link=cannot_link)


def read_saved(path):
    """Return the arrays and the header of a saved estimator of any class.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    arrays : dict
        Arrays by their names.
    header : dict
        What is no array, at least ``format`` and ``class``.

    Raises
    ------
    ValueError
        If the file holds something else.
    """
    try:
        # Opened here, as NumPy leaves a broken file open.
        with open(path, "rb") as stream, np.lib.npyio.NpzFile(stream, allow_pickle=False) as file:
            arrays = dict(file)
        header = json.loads(str(arrays["header"]))
        if not (isinstance(header, dict) and {"format", "class"} <= header.keys()):
            raise ValueError("its header names no class")
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} is no saved estimator: {error}") from error
    return arrays, header


def _stream_arrays(stream):
    """Return the arrays that make up a stream."""
    names = ("centers", "wins", "memory", "memory_ids", "memory_labels", "must", "cannot")
    arrays = {name: getattr(stream, name) for name in names}
    arrays["counts"] = np.array([stream.n_seen, stream.n_forgotten, stream.n_conflicts])
    arrays["dtype"] = np.array(np.dtype(stream.space.dtype).name)
    if stream.space.features is not None:
        arrays["basis"] = stream.space.features.basis
        arrays["to_Z"] = stream.space.features.to_Z
    return arrays


def _stream_of_arrays(arrays, kernel, n_features):
    """Return the stream that the arrays make up."""
    features = None
    if "basis" in arrays:
        to_Z = arrays["to_Z"]
        features = Features(np.empty((0, to_Z.shape[1])), to_Z, arrays["basis"], None)
    space = Space(n_features, np.dtype(str(arrays["dtype"])), Kernel(**kernel), features)
    n_seen, n_forgotten, n_conflicts = (int(v) for v in arrays["counts"])
    names = ("memory", "memory_ids", "memory_labels", "must", "cannot")
    return Stream(
        space,
        arrays["centers"],
        arrays["wins"],
        n_seen=n_seen,
        n_forgotten=n_forgotten,
        n_conflicts=n_conflicts,
        **{name: arrays[name] for name in names},
    )


def _as_json(estimator, params, kernel, extra):
    """Return the header of a saved estimator."""
    kernel = {name: getattr(kernel, name) for name in ("name", "sigma", "gamma", "degree", "coef0")}
    header = {
        "format": FORMAT,
        "class": type(estimator).__name__,
        "params": params,
        "kernel": kernel,
        "extra": extra,
    }
    try:
        return json.dumps(header, default=lambda value: value.item())
    except (TypeError, AttributeError, ValueError) as error:
        raise TypeError(
            f"{type(estimator).__name__} has a parameter that a file of numbers cannot hold, such "
            "as a callable kernel, or extra is not JSON; pickle it instead"
        ) from error


class WTA(_StreamingClusterer):
    """Competitive learning where the winner takes all as a scikit-learn clusterer.

    The estimator behind :func:`fastmmc.wta`, which documents the parameters; here ``k`` is
    ``n_clusters``.

    Parameters
    ----------
    n_clusters : int, default=8
        Prototypes.
    alpha, schedule, shuffle, init, max_iter, min_share
        See :func:`fastmmc.wta`.
    features, kernel, sigma, gamma, degree, coef0, kernel_params
        The space of the prototypes, see :func:`fastmmc.c_rpcl`.
    rank, landmarks, rank_tol
        Landmarks of the features, see :func:`fastmmc.c_rpcl`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`fastmmc.c_rpcl`.

    Attributes
    ----------
    labels_ : (n,) int64 array
        Clusters of the training points; of ``partial_fit`` those of the last objects.
    cluster_centers_ : (m, d) float64 array
        Prototypes, in the order of the labels.
    objective_, status_, n_iter_, n_moves_, sizes_, history_, objectives_
        As in :class:`fastmmc.CentroidResult`, of ``fit``.
    weights_, n_active_, n_conflicts_
        As in :class:`fastmmc.CentroidResult`.
    n_violations_, n_constraints_
        The same, of ``fit``.
    n_seen_ : int
        Objects presented by ``partial_fit``.
    result_ : CentroidResult
        Everything else, of ``fit``.
    n_features_in_ : int
        Features of the training points.
    feature_names_in_ : (d,) array
        Their names, where X had any.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.WTA(3, random_state=0).fit(X).labels_.shape
    (150,)
    """

    _method = "wta"

    def __init__(
        self,
        n_clusters=8,
        *,
        alpha=0.05,
        schedule="constant",
        shuffle=True,
        init="gaussian",
        max_iter=100,
        min_share=0.01,
        features=None,
        kernel="rbf",
        sigma=None,
        gamma=None,
        degree=3,
        coef0=1.0,
        kernel_params=None,
        rank="auto",
        landmarks="uniform",
        rank_tol=1e-6,
        n_init=1,
        random_state=None,
        n_jobs=None,
        max_time=None,
        callback=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.schedule = schedule
        self.shuffle = shuffle
        self.init = init
        self.max_iter = max_iter
        self.min_share = min_share
        self.features = features
        self.kernel = kernel
        self.sigma = sigma
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.rank = rank
        self.landmarks = landmarks
        self.rank_tol = rank_tol
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.callback = callback
        self.verbose = verbose


class FSCL(_StreamingClusterer):
    """Frequency-sensitive competitive learning as a scikit-learn clusterer.

    The estimator behind :func:`fastmmc.fscl`, which documents the parameters; here ``k`` is
    ``n_clusters``.

    Parameters
    ----------
    n_clusters : int, default=8
        Prototypes.
    alpha, schedule, shuffle, init, max_iter, min_share
        See :func:`fastmmc.fscl`.
    features, kernel, sigma, gamma, degree, coef0, kernel_params
        The space of the prototypes, see :func:`fastmmc.c_rpcl`.
    rank, landmarks, rank_tol
        Landmarks of the features, see :func:`fastmmc.c_rpcl`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`fastmmc.c_rpcl`.

    Attributes
    ----------
    labels_ : (n,) int64 array
        Clusters of the training points; of ``partial_fit`` those of the last objects.
    cluster_centers_ : (m, d) float64 array
        Prototypes, in the order of the labels.
    objective_, status_, n_iter_, n_moves_, sizes_, history_, objectives_
        As in :class:`fastmmc.CentroidResult`, of ``fit``.
    weights_, n_active_, n_conflicts_
        As in :class:`fastmmc.CentroidResult`.
    n_violations_, n_constraints_
        The same, of ``fit``.
    n_seen_ : int
        Objects presented by ``partial_fit``.
    result_ : CentroidResult
        Everything else, of ``fit``.
    n_features_in_ : int
        Features of the training points.
    feature_names_in_ : (d,) array
        Their names, where X had any.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.FSCL(3, random_state=0).fit(X).labels_.shape
    (150,)
    """

    _method = "fscl"

    def __init__(
        self,
        n_clusters=8,
        *,
        alpha=0.05,
        schedule="constant",
        shuffle=True,
        init="gaussian",
        max_iter=100,
        min_share=0.01,
        features=None,
        kernel="rbf",
        sigma=None,
        gamma=None,
        degree=3,
        coef0=1.0,
        kernel_params=None,
        rank="auto",
        landmarks="uniform",
        rank_tol=1e-6,
        n_init=1,
        random_state=None,
        n_jobs=None,
        max_time=None,
        callback=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.schedule = schedule
        self.shuffle = shuffle
        self.init = init
        self.max_iter = max_iter
        self.min_share = min_share
        self.features = features
        self.kernel = kernel
        self.sigma = sigma
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.rank = rank
        self.landmarks = landmarks
        self.rank_tol = rank_tol
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.callback = callback
        self.verbose = verbose


class RPCL(_StreamingClusterer):
    """Rival-penalised competitive learning as a scikit-learn clusterer.

    The estimator behind :func:`fastmmc.rpcl`, which documents the parameters; here ``k`` is
    ``n_clusters``.

    Parameters
    ----------
    n_clusters : int, default=8
        Prototypes.
    alpha, beta, schedule, shuffle, init, max_iter, min_share
        See :func:`fastmmc.rpcl`.
    features, kernel, sigma, gamma, degree, coef0, kernel_params
        The space of the prototypes, see :func:`fastmmc.c_rpcl`.
    rank, landmarks, rank_tol
        Landmarks of the features, see :func:`fastmmc.c_rpcl`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`fastmmc.c_rpcl`.

    Attributes
    ----------
    labels_ : (n,) int64 array
        Clusters of the training points; of ``partial_fit`` those of the last objects.
    cluster_centers_ : (m, d) float64 array
        Prototypes, in the order of the labels.
    objective_, status_, n_iter_, n_moves_, sizes_, history_, objectives_
        As in :class:`fastmmc.CentroidResult`, of ``fit``.
    weights_, n_active_, n_conflicts_
        As in :class:`fastmmc.CentroidResult`.
    n_violations_, n_constraints_
        The same, of ``fit``.
    n_seen_ : int
        Objects presented by ``partial_fit``.
    result_ : CentroidResult
        Everything else, of ``fit``.
    n_features_in_ : int
        Features of the training points.
    feature_names_in_ : (d,) array
        Their names, where X had any.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.RPCL(3, random_state=0).fit(X).labels_.shape
    (150,)
    """

    _method = "rpcl"

    def __init__(
        self,
        n_clusters=8,
        *,
        alpha=0.05,
        beta=0.002,
        schedule="constant",
        shuffle=True,
        init="gaussian",
        max_iter=100,
        min_share=0.01,
        features=None,
        kernel="rbf",
        sigma=None,
        gamma=None,
        degree=3,
        coef0=1.0,
        kernel_params=None,
        rank="auto",
        landmarks="uniform",
        rank_tol=1e-6,
        n_init=1,
        random_state=None,
        n_jobs=None,
        max_time=None,
        callback=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.beta = beta
        self.schedule = schedule
        self.shuffle = shuffle
        self.init = init
        self.max_iter = max_iter
        self.min_share = min_share
        self.features = features
        self.kernel = kernel
        self.sigma = sigma
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.rank = rank
        self.landmarks = landmarks
        self.rank_tol = rank_tol
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.callback = callback
        self.verbose = verbose


class CRPCL(_ConstrainedStream):
    """Rival-penalised competitive learning with constraints as a scikit-learn clusterer.

    The estimator behind :func:`fastmmc.c_rpcl`, which documents the parameters; here ``k`` is
    ``n_clusters``.

    Parameters
    ----------
    n_clusters : int, default=8
        Prototypes.
    alpha, beta, schedule, shuffle, init, max_iter, min_share, online_first_epoch
        See :func:`fastmmc.c_rpcl`.
    labels_as, on_conflict
        See :func:`fastmmc.c_rpcl`.
    memory_size : int, default=10_000
        Constrained objects that ``partial_fit`` remembers. Few are better where the stream drifts:
        those of long ago tell what is no longer true.
    features, kernel, sigma, gamma, degree, coef0, kernel_params
        The space of the prototypes, see :func:`fastmmc.c_rpcl`.
    rank, landmarks, rank_tol
        Landmarks of the features, see :func:`fastmmc.c_rpcl`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`fastmmc.c_rpcl`.

    Attributes
    ----------
    labels_ : (n,) int64 array
        Clusters of the training points; of ``partial_fit`` those of the last objects.
    cluster_centers_ : (m, d) float64 array
        Prototypes, in the order of the labels.
    objective_, status_, n_iter_, n_moves_, sizes_, history_, objectives_
        As in :class:`fastmmc.CentroidResult`, of ``fit``.
    weights_, n_active_, n_conflicts_
        As in :class:`fastmmc.CentroidResult`.
    n_violations_, n_constraints_
        The same, of ``fit``.
    n_seen_ : int
        Objects presented by ``partial_fit``.
    n_forgotten_ : int
        Pairs that could not be used, as the earlier object was not remembered.
    result_ : CentroidResult
        Everything else, of ``fit``.
    n_features_in_ : int
        Features of the training points.
    feature_names_in_ : (d,) array
        Their names, where X had any.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.CRPCL(3, random_state=0).fit(X).labels_.shape
    (150,)
    """

    _method = "c_rpcl"

    def __init__(
        self,
        n_clusters=8,
        *,
        alpha=0.05,
        beta=0.002,
        schedule="constant",
        shuffle=True,
        init="gaussian",
        max_iter=100,
        min_share=0.01,
        online_first_epoch=False,
        labels_as="cannot_link",
        on_conflict="raise",
        memory_size=10_000,
        features=None,
        kernel="rbf",
        sigma=None,
        gamma=None,
        degree=3,
        coef0=1.0,
        kernel_params=None,
        rank="auto",
        landmarks="uniform",
        rank_tol=1e-6,
        n_init=1,
        random_state=None,
        n_jobs=None,
        max_time=None,
        callback=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.beta = beta
        self.schedule = schedule
        self.shuffle = shuffle
        self.init = init
        self.max_iter = max_iter
        self.min_share = min_share
        self.online_first_epoch = online_first_epoch
        self.labels_as = labels_as
        self.on_conflict = on_conflict
        self.memory_size = memory_size
        self.features = features
        self.kernel = kernel
        self.sigma = sigma
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.rank = rank
        self.landmarks = landmarks
        self.rank_tol = rank_tol
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.callback = callback
        self.verbose = verbose


class OLCVQE(_ConstrainedStream):
    """On-line linear constrained vector quantisation as a scikit-learn clusterer.

    The estimator behind :func:`fastmmc.o_lcvqe`, which documents the parameters; here ``k`` is
    ``n_clusters``.

    Parameters
    ----------
    n_clusters : int, default=8
        Prototypes.
    alpha, beta, schedule, shuffle, init, max_iter, min_share, online_first_epoch, per_constraint
        See :func:`fastmmc.o_lcvqe`.
    labels_as, on_conflict
        See :func:`fastmmc.o_lcvqe`.
    memory_size : int, default=10_000
        Constrained objects that ``partial_fit`` remembers. Few are better where the stream drifts:
        those of long ago tell what is no longer true.
    features, kernel, sigma, gamma, degree, coef0, kernel_params
        The space of the prototypes, see :func:`fastmmc.c_rpcl`.
    rank, landmarks, rank_tol
        Landmarks of the features, see :func:`fastmmc.c_rpcl`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`fastmmc.c_rpcl`.

    Attributes
    ----------
    labels_ : (n,) int64 array
        Clusters of the training points; of ``partial_fit`` those of the last objects.
    cluster_centers_ : (m, d) float64 array
        Prototypes, in the order of the labels.
    objective_, status_, n_iter_, n_moves_, sizes_, history_, objectives_
        As in :class:`fastmmc.CentroidResult`, of ``fit``.
    weights_, n_active_, n_conflicts_
        As in :class:`fastmmc.CentroidResult`.
    n_violations_, n_constraints_
        The same, of ``fit``.
    n_seen_ : int
        Objects presented by ``partial_fit``.
    n_forgotten_ : int
        Pairs that could not be used, as the earlier object was not remembered.
    result_ : CentroidResult
        Everything else, of ``fit``.
    n_features_in_ : int
        Features of the training points.
    feature_names_in_ : (d,) array
        Their names, where X had any.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.OLCVQE(3, random_state=0).fit(X).labels_.shape
    (150,)
    """

    _method = "o_lcvqe"

    def __init__(
        self,
        n_clusters=8,
        *,
        alpha=0.05,
        beta=0.002,
        schedule="constant",
        shuffle=True,
        init="gaussian",
        max_iter=100,
        min_share=0.01,
        online_first_epoch=False,
        per_constraint="once",
        labels_as="cannot_link",
        on_conflict="raise",
        memory_size=10_000,
        features=None,
        kernel="rbf",
        sigma=None,
        gamma=None,
        degree=3,
        coef0=1.0,
        kernel_params=None,
        rank="auto",
        landmarks="uniform",
        rank_tol=1e-6,
        n_init=1,
        random_state=None,
        n_jobs=None,
        max_time=None,
        callback=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.beta = beta
        self.schedule = schedule
        self.shuffle = shuffle
        self.init = init
        self.max_iter = max_iter
        self.min_share = min_share
        self.online_first_epoch = online_first_epoch
        self.per_constraint = per_constraint
        self.labels_as = labels_as
        self.on_conflict = on_conflict
        self.memory_size = memory_size
        self.features = features
        self.kernel = kernel
        self.sigma = sigma
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.rank = rank
        self.landmarks = landmarks
        self.rank_tol = rank_tol
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.callback = callback
        self.verbose = verbose


class LCVQE(_ConstrainedClusterer):
    """Linear constrained vector quantisation as a scikit-learn clusterer.

    The estimator behind :func:`fastmmc.lcvqe`, which documents the parameters; here ``k`` is
    ``n_clusters``.

    Parameters
    ----------
    n_clusters : int, default=8
        Prototypes.
    init, max_iter
        See :func:`fastmmc.lcvqe`.
    labels_as, on_conflict
        See :func:`fastmmc.lcvqe`.
    features, kernel, sigma, gamma, degree, coef0, kernel_params
        The space of the prototypes, see :func:`fastmmc.c_rpcl`.
    rank, landmarks, rank_tol
        Landmarks of the features, see :func:`fastmmc.c_rpcl`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`fastmmc.c_rpcl`.

    Attributes
    ----------
    labels_ : (n,) int64 array
        Clusters of the training points; of ``partial_fit`` those of the last objects.
    cluster_centers_ : (m, d) float64 array
        Prototypes, in the order of the labels.
    objective_, status_, n_iter_, n_moves_, sizes_, history_, objectives_
        As in :class:`fastmmc.CentroidResult`, of ``fit``.
    weights_, n_active_, n_conflicts_
        As in :class:`fastmmc.CentroidResult`.
    n_violations_, n_constraints_
        The same, of ``fit``.
    result_ : CentroidResult
        Everything else, of ``fit``.
    n_features_in_ : int
        Features of the training points.
    feature_names_in_ : (d,) array
        Their names, where X had any.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.LCVQE(3, random_state=0).fit(X).labels_.shape
    (150,)
    """

    _method = "lcvqe"

    def __init__(
        self,
        n_clusters=8,
        *,
        init="gaussian",
        max_iter=500,
        labels_as="cannot_link",
        on_conflict="raise",
        features=None,
        kernel="rbf",
        sigma=None,
        gamma=None,
        degree=3,
        coef0=1.0,
        kernel_params=None,
        rank="auto",
        landmarks="uniform",
        rank_tol=1e-6,
        n_init=1,
        random_state=None,
        n_jobs=None,
        max_time=None,
        callback=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.max_iter = max_iter
        self.labels_as = labels_as
        self.on_conflict = on_conflict
        self.features = features
        self.kernel = kernel
        self.sigma = sigma
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.rank = rank
        self.landmarks = landmarks
        self.rank_tol = rank_tol
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.callback = callback
        self.verbose = verbose


class CVQE(_ConstrainedClusterer):
    """Constrained vector quantisation as a scikit-learn clusterer.

    The estimator behind :func:`fastmmc.cvqe`, which documents the parameters; here ``k`` is
    ``n_clusters``.

    Parameters
    ----------
    n_clusters : int, default=8
        Prototypes.
    init, max_iter
        See :func:`fastmmc.cvqe`.
    labels_as, on_conflict
        See :func:`fastmmc.cvqe`.
    features, kernel, sigma, gamma, degree, coef0, kernel_params
        The space of the prototypes, see :func:`fastmmc.c_rpcl`.
    rank, landmarks, rank_tol
        Landmarks of the features, see :func:`fastmmc.c_rpcl`.
    n_init, random_state, n_jobs, max_time, callback, verbose
        The run, see :func:`fastmmc.c_rpcl`.

    Attributes
    ----------
    labels_ : (n,) int64 array
        Clusters of the training points; of ``partial_fit`` those of the last objects.
    cluster_centers_ : (m, d) float64 array
        Prototypes, in the order of the labels.
    objective_, status_, n_iter_, n_moves_, sizes_, history_, objectives_
        As in :class:`fastmmc.CentroidResult`, of ``fit``.
    weights_, n_active_, n_conflicts_
        As in :class:`fastmmc.CentroidResult`.
    n_violations_, n_constraints_
        The same, of ``fit``.
    result_ : CentroidResult
        Everything else, of ``fit``.
    n_features_in_ : int
        Features of the training points.
    feature_names_in_ : (d,) array
        Their names, where X had any.

    Examples
    --------
    >>> import fastmmc
    >>> X, y = fastmmc.datasets.load("iris")
    >>> fastmmc.CVQE(3, random_state=0).fit(X).labels_.shape
    (150,)
    """

    _method = "cvqe"

    def __init__(
        self,
        n_clusters=8,
        *,
        init="gaussian",
        max_iter=500,
        labels_as="cannot_link",
        on_conflict="raise",
        features=None,
        kernel="rbf",
        sigma=None,
        gamma=None,
        degree=3,
        coef0=1.0,
        kernel_params=None,
        rank="auto",
        landmarks="uniform",
        rank_tol=1e-6,
        n_init=1,
        random_state=None,
        n_jobs=None,
        max_time=None,
        callback=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.max_iter = max_iter
        self.labels_as = labels_as
        self.on_conflict = on_conflict
        self.features = features
        self.kernel = kernel
        self.sigma = sigma
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.rank = rank
        self.landmarks = landmarks
        self.rank_tol = rank_tol
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.callback = callback
        self.verbose = verbose

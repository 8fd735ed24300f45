"""scikit-learn estimators of the competitive family, and the stream behind ``partial_fit``."""

from typing import Self

import numpy as np
from sklearn.utils.validation import validate_data

from fastmmc.competitive.methods import (
    Learning,
    OnlineVectorQuantisation,
    PartnersSeen,
    RivalLearning,
    Rounds,
    SharedParameters,
    WeightedLearning,
    c_rpcl,
    cvqe,
    fscl,
    lcvqe,
    o_lcvqe,
    rpcl,
    wta,
)
from fastmmc.competitive.online import least_share, make_rule
from fastmmc.competitive.space import (
    FirstPrototypes,
    check_magnitude,
    check_space,
    check_start,
    make_space,
    refuse_vanishing,
)
from fastmmc.competitive.stream import Stream, check_chunk_constraints
from fastmmc.core.callbacks import with_callbacks
from fastmmc.core.clusterer import COMMON_FIELDS, CenterClusterer, Clusterer
from fastmmc.core.declare import parameter
from fastmmc.core.docstrings import completed_by
from fastmmc.core.execution import fixed_seed, restart_stream
from fastmmc.core.parameters import ClusterCount, LinkRules, SemiSupervised, kernel_of
from fastmmc.core.threads import run_to_end
from fastmmc.core.types import MatrixLike
from fastmmc.data.coding import Coding, learn_coding
from fastmmc.data.columns import LARGEST
from fastmmc.data.frames import is_frame, whole_table
from fastmmc.kernels.models import CenterModel


class _CompetitiveClusterer(CenterClusterer, SharedParameters, ClusterCount):
    """What the estimators of the family share."""

    n_clusters: int = parameter(default=8, least=1, kw_only=False, doc="Prototypes.")

    _fields = (
        *COMMON_FIELDS,
        "weights",
        "n_active",
        "n_constraints",
        "n_violations",
        "n_conflicts",
    )

    def _keep(self, result):
        self._stream = None
        for name in ("n_seen_", "n_forgotten_", "n_late_"):
            self.__dict__.pop(name, None)
        return super()._keep(result)


class _StreamingClusterer(_CompetitiveClusterer):
    """Those that learn on line."""

    _own_attributes = _CompetitiveClusterer._own_attributes | {
        "n_seen_": ("int", "Objects presented by ``partial_fit``.")
    }

    def partial_fit(self, X: MatrixLike, y: object = None) -> Self:
        """Learn more objects, each of them once and in the given order.

        The first call finds first prototypes, from its own objects. After ``fit`` learning goes on
        from what was found, with objects numbered from 0.

        Parameters
        ----------
        X : (n, d) array_like, data frame or sparse matrix
            Objects, with no values beyond 1e150, whose squares overflow. How the columns of a table
            become numbers is learned from the first rows, be they those of ``fit`` or of the first
            call.
        y : object, optional
            Ignored.

        Returns
        -------
        object
            Itself. ``labels_`` says which prototype was nearest to each of these objects when it
            was presented; prototypes keep their numbers, so none are dropped. What ``fit`` told of
            its own clusters, as ``result_`` and ``sizes_``, is gone.

        Raises
        ------
        ValueError, TypeError
            If a parameter is out of range, X is not a finite matrix or too large, constraints
            contradict each other, or the first call has fewer objects than there are prototypes.
        """
        return self._partial_fit(X, lambda n: None)

    def _partial_fit(self, X, check_constraints):
        """Learn objects; their constraints are checked when their number is known."""
        told = self._checked_parameters()
        rule = make_rule(self._solver.__name__, told)
        first = getattr(self, "_model", None) is None
        coding = getattr(self, "coding_", None)
        if first and coding is None:
            X, coding = self._check_first(X)
        else:
            X = self._check_chunk(X)
        constraints = check_constraints(X.shape[0])
        if getattr(self, "_stream", None) is None:
            if first:
                self._stream = self._begin(X)
            else:  # with the prototypes that `fit` has kept
                found = self.result_
                self._stream = Stream(self._model.space, found.centers, found.weights[found.kept])
        stream = self._stream
        rows = stream.space.rows(X)
        if stream.space.has_features:
            check_magnitude(rows, "the features of X")
        labels = stream.present(rows, rule, told.get("memory_size", 0), constraints)
        self.coding_ = coding
        self._show_stream()
        self.labels_ = labels
        return self

    def _begin_table(self, coding):
        """Take what the columns of rows to come become, where it was found out before."""
        self.coding_, self.n_features_in_ = coding, len(coding.columns)

    def _check_first(self, X):
        """Check the first objects; return them as numbers, and what columns become, if any do."""
        coding, X = None, whole_table(X)
        if is_frame(X):
            validate_data(self, X, reset=True, skip_check_array=True)
            X, coding = learn_coding(X)
        if coding is None:
            X = self._check_matrix(X, reset=True)
        check_magnitude(X)
        refuse_vanishing(X)
        return X, coding

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
            and (self.coding_ is None or self.coding_.is_plain)
            # Also false if something is not finite.
            and float(np.vdot(X, X)) < LARGEST**2
        )
        if not is_fine:
            X = self._check_new_points(X)
            if not X.shape[0]:
                raise ValueError("X has no rows; give at least one")
            check_magnitude(X)
        return X

    def _begin(self, X):
        """Find the space and the first prototypes from the first objects."""
        k, init = self.n_clusters, check_start(self.init)
        if isinstance(init, str) and X.shape[0] < k:
            raise ValueError(
                f"the first call of partial_fit finds {k} prototypes from its objects and needs as "
                f"many; got {X.shape[0]}: begin with more of them, or give the prototypes as init"
            )
        seed = fixed_seed(self.random_state)
        kernel = kernel_of(self)
        if kernel.name == "precomputed":
            raise ValueError("partial_fit needs points; got kernel='precomputed'")
        plan = check_space(X, self.features, kernel, self.rank, self.landmarks, self.rank_tol)
        space, rows = make_space(X, plan, seed)
        first = FirstPrototypes(init, rows, k, restart_stream(seed, 0))
        run_to_end(first.choosing())
        return Stream(space, first.take(), np.ones(k))

    def _show_stream(self):
        """Make what the stream has found attributes; what `fit` told of earlier clusters goes."""
        for name in ("result", *self._fields):
            vars(self).pop(f"{name}_", None)
        stream = self._stream
        self._model = CenterModel(stream.centers, stream.space)
        self.cluster_centers_ = stream.centers
        self.weights_ = stream.wins
        n_learned = stream.wins - 1.0
        min_share = least_share(self.min_share, self._solver.__name__, n_learned.size)
        enough = n_learned >= max(min_share * n_learned.sum(), 1.0)
        self.n_active_ = max(1, int(np.count_nonzero(enough)))
        self.n_seen_ = stream.n_seen

    def _state(self):
        return super()._state() | {"stream": self._stream, "coding": self.coding_}

    @classmethod
    def _of_state(cls, state):
        model, stream = super()._of_state(state), state["stream"]
        if stream is None:
            return model
        coding, n_features = state.get("coding"), model.n_features_in_
        if isinstance(coding, Coding) and len(coding.columns) == n_features:
            n_features = coding.n_features
        elif coding is not None:
            raise ValueError(f"it holds no coding of {n_features} columns")
        if not isinstance(stream, Stream) or stream.space.n_features != n_features:
            raise ValueError(f"it holds no stream of points of {n_features} columns")
        model.coding_ = coding
        # Labels of the last chunk are not in the file, so that it is the same whatever the chunks.
        model._stream = stream
        model._show_stream()
        return model


class _ConstrainedClusterer(_CompetitiveClusterer, LinkRules, SemiSupervised):
    """Those with constraints."""

    @with_callbacks
    @completed_by(Clusterer.fit)
    def fit(
        self,
        X: MatrixLike,
        y: object = None,
        must_link: MatrixLike | None = None,
        cannot_link: MatrixLike | None = None,
    ) -> Self:
        """Cluster the points.

        Parameters
        ----------
        y : (n,) or (n, 1) array_like, optional
            Ignored unless ``semi_supervised=True``; then integers from 0 on where labels are known,
            and -1, NaN or None elsewhere.
        must_link, cannot_link : (p, 2) array_like of int or sparse matrix, optional
            Pairs of objects that belong together, and that do not.
        """
        return self._fit(X, y, must_link=must_link, cannot_link=cannot_link)


class _ConstrainedStream(_ConstrainedClusterer, _StreamingClusterer, before="init"):
    """Those that learn on line, with constraints."""

    memory_size: int = parameter(
        default=10_000,
        least=1,
        doc="""
        Constrained objects that ``partial_fit`` remembers. Fewer are better where the stream
        drifts: those of long ago tell what is no longer true.
        """,
    )

    _own_attributes = _StreamingClusterer._own_attributes | {
        "n_forgotten_": (
            "int",
            "Pairs that could not be used, as the earlier object was not remembered.",
        ),
        "n_late_": (
            "int",
            "Pairs given after both their objects had been presented, as often as they were.",
        ),
    }

    @completed_by(_StreamingClusterer.partial_fit)
    def partial_fit(
        self,
        X: MatrixLike,
        y: object = None,
        must_link: MatrixLike | None = None,
        cannot_link: MatrixLike | None = None,
    ) -> Self:
        """Learn more objects, each of them once and in the given order.

        The first call finds first prototypes, from its own objects. After ``fit`` learning goes on
        from what was found. Objects are numbered from 0 in the order in which they come, call after
        call, and anew after ``fit``; constraints name these numbers and may name objects yet to
        come. A constraint is learned from when its later object is presented, if the earlier one is
        among the last ``memory_size`` constrained ones: those that are labelled or were in a
        constraint given by the time they came. ``n_forgotten_`` counts pairs whose earlier object
        is not; those that labels imply are not counted. Pairs given after both objects had been
        presented change nothing, also if they are repeated ones that were learned from;
        ``n_late_`` counts them, each time.

        Contradictions are looked for among the pairs of this call, those of earlier calls that wait
        for an object to come, and what labels of their objects imply, as far as these are in X or
        remembered. What was learned from is not kept, and not compared.

        From the first prototypes on the result is the same whatever the chunks, if constraints
        come no later than their objects.

        Parameters
        ----------
        y : (n,) or (n, 1) array_like, optional
            Ignored unless ``semi_supervised=True``; then integers from 0 on where labels are known,
            and -1, NaN or None elsewhere. They imply constraints with remembered labelled objects.
        must_link, cannot_link : (p, 2) array_like of int or sparse matrix, optional
            Pairs of objects, by their numbers in the stream, that belong together, and that do not.
        """

        def check_constraints(n):
            return check_chunk_constraints(
                must_link,
                cannot_link,
                self._told_labels(y, n),
                labels_as=self.labels_as,
                on_conflict=self.on_conflict,
                stream=getattr(self, "_stream", None),
            )

        return self._partial_fit(X, check_constraints)

    def _show_stream(self):
        super()._show_stream()
        self.n_forgotten_ = self._stream.n_forgotten
        self.n_late_ = self._stream.n_late
        self.n_conflicts_ = self._stream.n_conflicts


class WTA(
    _StreamingClusterer,
    Learning,
    solver=wta,
    paper="Kohonen, 1995",
    summary="on-line k-means: the nearest prototype learns every object",
):
    """Competitive learning where the winner takes all as a scikit-learn clusterer."""


class FSCL(
    _StreamingClusterer,
    WeightedLearning,
    solver=fscl,
    paper="Ahalt, Krishnamurthy, Chen, Melton, Neural Networks 1990",
    summary="on-line k-means, distances weighted by wins, so that no prototype is left out",
):
    """Frequency-sensitive competitive learning as a scikit-learn clusterer."""


class RPCL(
    _StreamingClusterer,
    RivalLearning,
    solver=rpcl,
    paper="Xu, Krzyzak, Oja, IEEE TNN 1993",
    summary="on-line k-means that drives the second best away: estimates the number of clusters",
):
    """Rival-penalised competitive learning as a scikit-learn clusterer."""


class CRPCL(
    _ConstrainedStream,
    PartnersSeen,
    RivalLearning,
    solver=c_rpcl,
    paper="Covoes, Hruschka, Ghosh, IEEE TNNLS 2013",
    summary="on-line k-means that drives rivals away, with cannot-links and must-links",
):
    """Rival-penalised competitive learning with constraints as a scikit-learn clusterer."""


class OLCVQE(
    _ConstrainedStream,
    OnlineVectorQuantisation,
    solver=o_lcvqe,
    paper="Covoes, Hruschka, Ghosh, IEEE TNNLS 2013",
    summary="on-line k-means with cannot-links and must-links",
):
    """On-line linear constrained vector quantisation as a scikit-learn clusterer."""


class LCVQE(
    _ConstrainedClusterer,
    Rounds,
    solver=lcvqe,
    paper="Pelleg, Baras, ECML 2007",
    summary="k-means with soft cannot-links and must-links",
):
    """Linear constrained vector quantisation as a scikit-learn clusterer."""


class CVQE(
    _ConstrainedClusterer,
    Rounds,
    solver=cvqe,
    paper="Davidson, Ravi, SDM 2005",
    summary="k-means with soft links, whose penalties are distances between prototypes",
):
    """Constrained vector quantisation as a scikit-learn clusterer."""

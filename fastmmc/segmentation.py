"""Segmentation of pictures: the colours of the pixels, clustered."""

import heapq
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import ndimage
from scipy.sparse import coo_array
from sklearn.utils import check_array

from fastmmc.core import validation
from fastmmc.core.declare import check_method_params, declared, function_of, parameter, values
from fastmmc.core.display import OneLine
from fastmmc.core.execution import RunControl, is_first, warn_user
from fastmmc.core.parameters import Rank, RunParameters
from fastmmc.core.results import ClusteringResult, SegmentationResult
from fastmmc.core.saving import stored
from fastmmc.recursive import check_starts, recursive_mmc
from fastmmc.registry import METHODS, registry_name
from fastmmc.rls.outliers import without_outlier_scores

# Segments are rarely of one size, so neither of two needs more than a tenth of the pixels; the
# papers' 0.03 would cut through whatever is larger than half the picture.
BALANCE = 0.8

# Machines are trained on this many groups of like colours at most. In scikit-learn's photographs
# that raised the objective of two segments by less than 0.3 %.
REPRESENTATIVES = 5000

# Split the leaf of the tree that gains most by it: the largest one is often a background of one
# colour.
SPLIT = "gain"

# Width of the kernel for channels in 0..255.
PAPER_WIDTH = 500.0

# With a wider kernel all colours of an image in 0..1 look alike.
WIDEST = 100.0

# Parameters about single points, which are not the pixels but their distinct colours.
OF_POINTS = ("known_labels", "must_link", "cannot_link")


class _SegmentCall(RunParameters, before="n_init"):
    image: ArrayLike = parameter(
        kw_only=False,
        kind="(H, W) or (H, W, channels) array_like",
        doc="""
        Grey values or channels, in their own units: uint8, uint16 or other integers,
        bool, float32 or float64. Integer pictures of two or four channels are refused, as their
        last channel is transparency; give ``image[..., :3]`` without it.
        """,
    )
    k: int = parameter(
        kw_only=False, doc="Number of segments, from 1 to the number of distinct colours."
    )
    method: str = parameter(
        default="iter_svr",
        doc="""
        A name of ``fastmmc.METHODS``, with - or _, other than recursive-mmc itself. Methods that
        take no ``sample_weight`` are run on the distinct colours, each counted once however many
        pixels have it.
        """,
    )
    method_params: dict[str, Any] | None = parameter(
        default=None,
        doc="""
        Further parameters of the method, as ``C`` or ``balance``. Methods for two clusters get
        ``balance=0.8`` by default: either cluster has at least a tenth of the pixels that are split
        (of the distinct colours, if the method takes no weights), as nearly as whole colours allow.
        The cost of ``evo_mmc`` and ``fast_evo_mmc`` is low if one cluster has nearly all pixels, so
        give them less, such as ``balance=0.2``. Methods for any number keep their own default.
        Those that train a machine in rounds get ``max_representatives=5000``, which merges like
        colours; None trains on every distinct one. ``gamma`` replaces sigma. Known labels and links
        are refused, as distinct colours are clustered, not pixels.
        """,
    )
    sigma: float | None = parameter(
        default=PAPER_WIDTH,
        above=0,
        doc="""
        Width of the Gaussian kernel in units of the pixels. 500, the paper's, is for channels in
        0..255; for 0..1 that is 500 / 255, and more than 100 is refused; for 16 bits 500 * 257, and
        a warning tells where it is still 500. None: the method's default, which follows the data.
        Ignored, like ``rank``, by methods without this parameter and by competitive learning
        without ``features``.
        """,
    )
    rank: Rank = parameter(
        default=200,
        kind='None, int, float or "auto"',
        doc="""
        Landmarks of the low-rank kernel, at most as many as there are colours to split, or their
        share; None: dense.
        """,
    )
    min_region: int = parameter(
        default=0,
        least=0,
        doc="""
        Connected regions (by edges, not corners) of fewer pixels are given to the neighbouring
        region with which they share the longest border, the smallest region first. A segment whose
        regions are all small disappears, and there are fewer than k.
        """,
    )


# Parameters of `segment` itself, which method_params may not hold.
OWN_PARAMETERS = (
    "k",
    "sigma",
    "rank",
    "sample_weight",
    *(one.name for one in declared(RunParameters)),
)


@function_of(_SegmentCall)
def segment(call: _SegmentCall, control: RunControl) -> SegmentationResult:
    """Cut a picture into k segments by the colours of its pixels.

    Every pixel is a point with its channels as features. Equal colours are merged exactly into one
    point whose weight is their number, and a method clusters these points. One for two clusters
    does so directly for k = 2, and by :func:`fastmmc.recursive_mmc` with ``split="gain"`` for
    more; one for any number makes k clusters at once. The position of a pixel matters only to
    ``min_region``.

    Returns
    -------
    SegmentationResult
        ``label_image``, ``colors``, ``sizes`` and more; segments are numbered by falling number
        of pixels. ``predict`` finds the segments of other colours; on the colours of the picture
        it can differ from the labels where those were kept within ``balance``, or where
        ``min_region`` changed them.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, or the image is not a finite array of such a shape.
    MemoryError
        If an array that the method needs does not fit into free memory.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the run was stopped before its end.

    Notes
    -----
    O(m log m) to merge m pixels, then what the method costs on their distinct colours: by default
    O(r) a colour with ``rank=r``, and the rounds on 5,000 groups of like colours at most.
    ``max_time`` cannot shorten the merging and the last labelling of all colours: three seconds for
    2,000 x 2,000 pixels of bytes in 2.6 million colours, seven for floats that all differ.

    References
    ----------
    K. Zhang, I. W. Tsang, J. T. Kwok, Maximum margin clustering made practical, ICML 2007,
    section 4.4, where the width is 500 and the pictures have 0..255.

    Examples
    --------
    >>> import numpy as np
    >>> import fastmmc
    >>> image = np.zeros((4, 6, 3), dtype=np.uint8)
    >>> image[:, 2:] = 200, 180, 20
    >>> image[0, 0] = 10, 0, 0
    >>> res = fastmmc.segment(image, 2)
    >>> res.label_image[0], res.sizes, res.colors[0]
    (array([1, 1, 0, 0, 0, 0]), array([16,  8]), array([200., 180.,  20.]))
    """
    pixels, shape = _check_image(call.image)
    validation.check_integer(
        "min_region", call.min_region, least=0, most=len(pixels), why=", the number of pixels"
    )
    name = validation.check_choice("method", registry_name(call.method), usable_methods())
    method = METHODS[name]
    given = call.method_params
    params = check_method_params(name, method.parameters, given, "segment", OWN_PARAMETERS, _misfit)
    points, colour_of, counts = _merge_colors(pixels)
    k = validation.check_integer(
        "k", call.k, least=1, most=len(points), why=", the number of distinct colours"
    )
    if "gamma" not in params:
        _check_width(call.sigma, pixels)
    params = _complete_params(method, params, call, len(points))
    with without_outlier_scores():
        run = values(call, RunParameters) | {"max_time": control.inner_time()}
        found = _cluster(method, points, k, counts, params, run)
    label_image = found.labels[colour_of].reshape(shape)
    if call.min_region > 1:
        label_image = _merge_small_regions(label_image, call.min_region)
    extra = {"k": k, "min_region": call.min_region}
    return _make_result(found, label_image, pixels, extra)


def usable_methods():
    """Return the names of the methods that :func:`segment` takes: it splits by itself."""
    return [name for name in METHODS if name != "recursive-mmc"]


def _check_image(image):
    """Return the pixels as a float matrix, and height and width."""
    if getattr(image, "mode", None) == "P":
        raise ValueError(
            "image has a palette, so its pixels are numbers of colours and not colours; give "
            "image.convert('RGB')"
        )
    image = np.asarray(image)
    if image.ndim not in (2, 3) or 0 in image.shape:
        raise ValueError(
            "image must have shape (H, W) or (H, W, channels) and at least one pixel; "
            f"got shape {image.shape}"
        )
    if image.dtype.kind not in "iufb":
        raise TypeError(f"image must hold real numbers; got dtype {image.dtype}")
    channels = image.shape[2] if image.ndim == 3 else 1
    if image.dtype.kind != "f" and channels in (2, 4):
        raise ValueError(
            f"image has {channels} channels of {image.dtype}, of which the last is taken for "
            f"transparency; drop it with image[..., :{channels - 1}], or give floats if it is a "
            "channel like the others"
        )
    pixels = check_array(
        image.reshape(-1, channels), dtype=[np.float64, np.float32], input_name="image"
    )
    return pixels, image.shape[:2]


def _check_width(sigma, pixels):
    """Refuse a width for wider units than those of the pixels; warn of the paper's for narrower."""
    if sigma is None or sigma <= WIDEST:
        return
    if pixels.min() >= 0.0 and 0.0 < pixels.max() <= 1.0:
        raise ValueError(
            f"sigma={sigma:g} is for channels in 0..255 and the image has 0..1; give "
            "sigma=500/255, or None for the method's default, or the image times 255"
        )
    if sigma == PAPER_WIDTH and pixels.max() > PAPER_WIDTH and pixels.min() >= 0.0:
        warn_user(
            f"sigma={sigma:g} is for channels in 0..255 and those of the image reach "
            f"{pixels.max():g}; give sigma in their units (of 16 bits: 500 * 257), or None for the "
            "method's default",
            UserWarning,
        )


def _misfit(name, value):
    """Return what is wrong with a parameter that is about single points."""
    return "of points, and distinct colours are clustered, not pixels" if name in OF_POINTS else ""


def settings_of(method, params=None):
    """Return the names of the parameters of :func:`segment` that count for a method.

    Those of the kernel count only if the method, given ``params``, uses one.
    """
    kernel, accepted = {"sigma", "rank"}, set(method.parameters)
    # Where the kernel is that of features, there is none without them.
    if "features" in accepted and (params or {}).get("features") is None:
        accepted -= kernel
    return {"k", "min_region", *OWN_PARAMETERS} - kernel | accepted


def _complete_params(method, params, call, n_colours):
    """Add what `segment` says about the kernel and sizes, where the method has such parameters."""
    defaults = {"rank": call.rank}
    if isinstance(call.rank, int | np.integer) and not isinstance(call.rank, bool):
        defaults["rank"] = min(int(call.rank), n_colours)
    if "gamma" not in params:
        defaults["sigma"] = call.sigma
    if method.binary:
        defaults |= {"balance": BALANCE, "max_representatives": REPRESENTATIVES}
    names = defaults.keys() & settings_of(method, params)
    return {name: defaults[name] for name in names} | params


def _merge_colors(pixels):
    """Return the distinct rows, the index of each row among them, and their counts."""
    keys = _as_integers(pixels)
    # np.unique does the same for rows, and takes five times as long.
    order = np.argsort(keys[:, 0]) if keys.shape[1] == 1 else np.lexsort(keys.T[::-1])
    ordered = keys[order]
    is_new = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
    inverse = np.empty(len(pixels), dtype=np.int64)
    inverse[order] = np.cumsum(is_new) - 1
    return pixels[order[is_new]], inverse, np.bincount(inverse)


def _as_integers(pixels):
    """Return an integer for each row of bytes, (n, 1), in the order of the rows; others as given.

    One integer is sorted in a quarter of the time of several channels.
    """
    n, channels = pixels.shape
    if channels > 8 or pixels.min() < 0 or pixels.max() > 255:
        return pixels
    rows = np.zeros((n, 8), dtype=np.uint8)
    rows[:, :channels] = pixels
    is_same = (rows[:, :channels] == pixels).all()
    return rows.view(">u8").astype(np.uint64) if is_same else pixels


def _cluster(method, points, k, counts, params, run):
    """Cluster the distinct colours."""
    told = run | {"k": k, "sample_weight": counts}
    accepted = {name: told[name] for name in told if name in method.parameters}
    is_first("units")  # channels share one, however little one of them varies
    if method.binary and k != 2:
        name, weights = method.function.__name__, accepted.get("sample_weight")
        return recursive_mmc(
            points, k, method=name, method_params=params, split=SPLIT, sample_weight=weights, **run
        )
    check_starts(method, run["n_init"])
    return method.function(points, **params, **accepted)


def _merge_small_regions(label_image, least):
    """Return labels of which no connected region has fewer than ``least`` pixels."""
    regions, clusters = np.empty(label_image.shape, dtype=np.int64), []
    for cluster in range(label_image.max() + 1):
        members = label_image == cluster
        found, n_found = ndimage.label(members)
        regions[members] = found[members] - 1 + len(clusters)
        clusters += [cluster] * n_found
    sizes = np.bincount(regions.ravel()).tolist()
    borders = _measure_borders(regions, len(clusters))
    owners, clusters = _merge_regions(sizes, clusters, borders, least)
    return clusters[owners][regions]


def _measure_borders(regions, n_regions):
    """Return for each region a dict of neighbours with the number of pixel edges they share."""
    sides = [(regions[:, :-1], regions[:, 1:]), (regions[:-1], regions[1:])]
    pairs = np.hstack([[one.ravel(), other.ravel()] for one, other in sides])
    pairs = pairs[:, pairs[0] != pairs[1]]
    edges = coo_array((np.ones(pairs.shape[1], np.int64), tuple(pairs)), (n_regions, n_regions))
    edges = (edges + edges.T).tocsr()
    neighbours, lengths = edges.indices.tolist(), edges.data.tolist()
    ends = edges.indptr.tolist()
    return [
        dict(zip(neighbours[start:end], lengths[start:end], strict=True))
        for start, end in zip(ends[:-1], ends[1:], strict=True)
    ]


def _merge_regions(sizes, clusters, borders, least):
    """Give every small region to the neighbour with the longest border, the smallest first.

    Returns the region that each one ends up in, and the cluster of each. Of equally long borders
    that of the larger region counts, then that of the lower cluster.
    """
    owners = list(range(len(sizes)))
    queue = [(size, i) for i, size in enumerate(sizes) if size < least]
    heapq.heapify(queue)
    while queue:
        size, region = heapq.heappop(queue)
        shared = borders[region]
        # A region that has grown or been absorbed since is queued anew or done.
        if not shared or size != sizes[region]:
            continue
        cluster = clusters[max(shared, key=lambda i: (shared[i], sizes[i], -clusters[i]))]
        # All neighbours of that cluster grow together through this region. The one with the most
        # neighbours keeps its number, as those of the others must be told.
        joined = [region, *(i for i in shared if clusters[i] == cluster)]
        kept = max(joined, key=lambda i: len(borders[i]))
        clusters[kept] = cluster
        for i in joined:
            if i != kept:
                _absorb(i, kept, sizes, borders)
                owners[i] = kept
        if sizes[kept] < least:
            heapq.heappush(queue, (sizes[kept], kept))
    owners = np.array(owners)
    while (owners != owners[owners]).any():
        owners = owners[owners]
    return owners, np.array(clusters)


def _absorb(region, kept, sizes, borders):
    """Make one region part of another."""
    sizes[kept] += sizes[region]
    sizes[region] = 0
    for neighbour, length in borders[region].items():
        del borders[neighbour][region]
        if neighbour != kept:
            total = borders[kept].get(neighbour, 0) + length
            borders[kept][neighbour] = borders[neighbour][kept] = total
    borders[region] = {}


@stored(order="i8:k")
@dataclass(frozen=True, repr=False)
class _Renumbered(OneLine):
    """A model with its clusters renumbered."""

    model: Any
    order: np.ndarray

    @property
    def n_scores(self):
        return self.order.size

    @property
    def n_features(self):
        return self.model.n_features

    def _check_values(self):
        known = np.arange(self.model.n_scores)
        if np.unique(self.order).size != self.n_scores or not np.isin(self.order, known).all():
            raise ValueError(f"order is not one of {known.size} clusters")

    def decision_function(self, X):
        return self.model.decision_function(X)[:, self.order]


def _make_result(found, label_image, pixels, extra):
    """Return the result, with the segments numbered by falling size."""
    sizes = np.bincount(label_image.ravel())
    order = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
    new = np.empty(len(sizes), dtype=np.int64)
    new[order] = np.arange(len(order))
    label_image = new[label_image]
    labels = label_image.ravel()
    sums = [np.bincount(labels, weights=channel) for channel in pixels.T]
    values = {f.name: getattr(found, f.name) for f in fields(ClusteringResult)}
    values |= {
        "labels": labels,
        "sizes": sizes[order],
        "params": found.params | extra,
        "model": None if found.model is None else _Renumbered(found.model, order),
        "label_image": label_image,
        "colors": np.column_stack(sums) / sizes[order][:, None],
    }
    return SegmentationResult(**values)

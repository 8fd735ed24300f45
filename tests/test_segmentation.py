import pickle

import numpy as np
import pytest
from scipy import ndimage
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc import segmentation
from fastmmc.registry import METHODS, Method

COLORS = np.array([[200, 40, 30], [20, 60, 180], [240, 230, 90], [15, 110, 40]])


def make_picture(rng, sizes, noise=6):
    """Make a picture of 12 columns with noisy colours in bands of unequal height."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    pixels = COLORS[y][:, None] + rng.integers(-noise, noise + 1, (len(y), 12, 3))
    return pixels.astype(np.uint8), np.repeat(y[:, None], 12, axis=1)


@pytest.fixture
def halves(rng):
    return make_picture(rng, [9, 6])


@pytest.fixture
def bands(rng):
    return make_picture(rng, [4, 7, 3, 5])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("channels", [1, 3, 7])
def test_equal_colors_are_merged_exactly(rng, dtype, channels):
    pixels = rng.integers(0, 3, (400, channels)).astype(dtype) * dtype(40)
    colors, inverse, counts = segmentation._merge_colors(pixels)
    expected = np.unique(pixels, axis=0, return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(colors, expected[0])
    np.testing.assert_array_equal(inverse, expected[1].ravel())
    np.testing.assert_array_equal(counts, expected[2])


@pytest.mark.parametrize("values", [[0, 1, 254, 255], [0, 256, 512], [-1, 0, 255], [0, 0.5, 1]])
@pytest.mark.parametrize("channels", [3, 8, 9])
def test_colors_that_are_bytes_or_nearly_are_merged_exactly(rng, values, channels):
    pixels = rng.choice(values, (60, channels))[rng.integers(0, 60, 400)].astype(np.float64)
    colors, inverse, counts = segmentation._merge_colors(pixels)
    expected = np.unique(pixels, axis=0, return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(colors, expected[0])
    np.testing.assert_array_equal(inverse, expected[1].ravel())
    np.testing.assert_array_equal(counts, expected[2])


def test_colors_of_many_values_and_channels_are_merged_exactly(rng):
    # 500^12 codes are far more than an integer of 64 bits can number.
    pixels = rng.standard_normal((500, 12))[rng.integers(0, 500, 800)]
    colors, inverse, counts = segmentation._merge_colors(pixels)
    np.testing.assert_array_equal(colors[inverse], pixels)
    np.testing.assert_array_equal(colors, np.unique(pixels, axis=0))
    np.testing.assert_array_equal(counts, np.bincount(inverse))


def test_the_time_that_colours_take_counts(halves, monkeypatch):
    merge, cluster, limits, passed = segmentation._merge_colors, segmentation._cluster, [], []

    def merge_slowly(pixels):
        passed.append(4.0)
        return merge(pixels)

    def note_limit(*args):
        limits.append(args[-1]["max_time"])
        return cluster(*args)

    monkeypatch.setattr(segmentation, "_merge_colors", merge_slowly)
    monkeypatch.setattr(segmentation, "_cluster", note_limit)
    monkeypatch.setattr(segmentation.RunControl, "time_left", lambda self: 100.0 - sum(passed))
    fastmmc.segment(halves[0], 2, max_time=100.0, random_state=0)
    assert limits == [96.0]


def test_two_segments(halves):
    image, y = halves
    res = fastmmc.segment(image, 2, random_state=0)
    np.testing.assert_array_equal(res.label_image, y)
    np.testing.assert_array_equal(res.labels, y.ravel())
    assert res.label_image.dtype == np.int64 and res.sizes.tolist() == [108, 72]
    np.testing.assert_allclose(res.colors, [image[y == i].mean(axis=0) for i in range(2)])
    np.testing.assert_allclose(res.paint(), res.colors[y])
    assert isinstance(res, fastmmc.SegmentationResult) and res.converged
    assert res.params["k"] == 2 and res.params["sigma"] == 500.0


def test_four_segments_are_numbered_by_falling_size(bands):
    image, y = bands
    res = fastmmc.segment(image, 4, random_state=0)
    np.testing.assert_array_equal(res.label_image, np.array([2, 0, 3, 1])[y])
    assert res.sizes.tolist() == [84, 60, 48, 36]
    np.testing.assert_allclose(res.colors, [image[y == i].mean(axis=0) for i in (1, 3, 0, 2)])
    np.testing.assert_array_equal(res.predict(COLORS), [2, 0, 3, 1])


@pytest.mark.parametrize("k", [2, 4])
def test_predict_agrees_with_the_labels_of_clear_segments(bands, k):
    image, _ = bands
    res = fastmmc.segment(image, k, random_state=0)
    again = pickle.loads(pickle.dumps(res))
    np.testing.assert_array_equal(again.predict(image.reshape(-1, 3)), res.labels)
    assert res.decision_function(COLORS).shape == (4, k)


@pytest.mark.jit
@pytest.mark.parametrize("k", [2, 3])
def test_few_colours_of_many_pixels_reach_the_tolerance(rng, k):
    y = np.repeat([0, 1, 2], 100_000)
    image = (COLORS[y] + rng.integers(0, 2, (y.size, 3))).reshape(500, 600, 3)
    # A warning would say that they did not.
    result = fastmmc.segment(image, k, random_state=0)
    assert k == 2 or adjusted_rand_score(y, result.label_image.ravel()) == 1


def test_merging_changes_nothing(rng):
    # Few colours that many pixels share, in a picture without clear segments.
    palette = rng.integers(0, 256, (25, 3))
    image = palette[rng.integers(0, 25, (12, 15)) ** 2 // 25].astype(np.uint8)
    pixels = image.reshape(-1, 3).astype(float)
    options = {"balance": 0.5, "init": pixel_labels(pixels), "tol": 1e-6}
    colors, first = np.unique(pixels, axis=0, return_index=True)
    merged = fastmmc.segment(
        image, 2, rank=None, method_params=options | {"init": options["init"][first]}
    )
    plain = fastmmc.iter_svr(pixels, sigma=500.0, **options)
    assert len(colors) < 26
    assert merged.objective == pytest.approx(plain.objective, rel=1e-4)
    assert adjusted_rand_score(merged.labels, plain.labels) == 1.0


def pixel_labels(pixels):
    """Return labels by brightness, equal for equal colours."""
    brightness = pixels.sum(axis=1)
    return (brightness > np.median(brightness)).astype(int)


@pytest.fixture
def photo(rng):
    """Return a picture of few equal colours that change from place to place, like a photograph."""
    waves = ndimage.gaussian_filter(rng.standard_normal((70, 80, 3)), (9, 9, 0)) * 600
    return np.clip(waves + rng.normal(128, 6, waves.shape), 0, 255).astype(np.uint8)


def test_like_colors_are_merged_for_training_alone(monkeypatch, photo):
    monkeypatch.setattr(segmentation, "REPRESENTATIVES", 1000)
    merged = fastmmc.segment(photo, 2, random_state=0)
    exact = fastmmc.segment(photo, 2, method_params={"max_representatives": None}, random_state=0)
    assert len(np.unique(photo.reshape(-1, 3), axis=0)) > 4000
    assert merged.objective != exact.objective
    assert merged.objective <= 1.005 * exact.objective
    assert adjusted_rand_score(merged.labels, exact.labels) > 0.97


def test_labels_and_objective_are_those_of_the_pixels_not_of_groups(monkeypatch, photo):
    monkeypatch.setattr(segmentation, "REPRESENTATIVES", 200)
    res = fastmmc.segment(photo, 4, random_state=0)
    np.testing.assert_array_equal(res.predict(photo.reshape(-1, 3)), res.labels)
    assert res.objective == pytest.approx(np.sum((photo - res.paint()) ** 2), rel=1e-9)


def test_the_number_of_representatives_can_be_chosen(photo):
    few = fastmmc.segment(photo, 2, method_params={"max_representatives": 30}, random_state=0)
    assert few.params["max_representatives"] == 30
    assert few.sizes.min() >= photo[..., 0].size * (1 - segmentation.BALANCE) / 2 - 5


def test_equal_pixels_are_in_one_segment(rng):
    image = rng.integers(0, 4, (20, 30, 3)).astype(np.uint8) * 60
    res = fastmmc.segment(image, 3, random_state=0)
    _, inverse = np.unique(image.reshape(-1, 3), axis=0, return_inverse=True)
    for color in range(inverse.max() + 1):
        assert len(set(res.labels[inverse.ravel() == color])) == 1


def test_sizes_are_bounded_as_nearly_as_colors_allow(rng):
    image = rng.integers(0, 256, (30, 20, 3)).astype(np.uint8)
    wide = fastmmc.segment(image, 2, random_state=0)
    narrow = fastmmc.segment(image, 2, method_params={"balance": 0.01}, random_state=0)
    assert wide.params["balance"] == segmentation.BALANCE
    assert wide.sizes.min() >= 600 * (1 - segmentation.BALANCE) / 2 - 1
    assert narrow.sizes.min() >= 600 * 0.99 / 2 - 1


@pytest.mark.parametrize("k", [2, 3])
def test_the_same_seed_gives_the_same_segments(rng, k):
    image = rng.integers(0, 256, (12, 10, 3)).astype(np.uint8)
    options = {"n_init": 3, "random_state": 4, "rank": 30}
    one = fastmmc.segment(image, k, **options)
    two = fastmmc.segment(image, k, n_jobs=2, **options)
    np.testing.assert_array_equal(one.label_image, two.label_image)


@pytest.mark.parametrize(
    "convert",
    [
        lambda image: image.astype(np.uint16),
        lambda image: image.astype(np.float64),
        np.asfortranarray,
        lambda image: image.tolist(),
    ],
    ids=["uint16", "float64", "fortran", "list"],
)
def test_the_form_of_the_image_does_not_matter(bands, convert):
    image, _ = bands
    image.setflags(write=False)
    expected = fastmmc.segment(image, 2, random_state=0)
    res = fastmmc.segment(convert(image), 2, random_state=0)
    np.testing.assert_array_equal(res.label_image, expected.label_image)


def test_float_images_keep_their_units(halves):
    image, y = halves
    image = (image / 255).astype(np.float32)
    with pytest.raises(ValueError, match="sigma=500 is for channels in 0..255 and the image has"):
        fastmmc.segment(image, 2)
    for sigma in (None, 500.0 / 255):
        res = fastmmc.segment(image, 2, sigma=sigma, random_state=0)
        np.testing.assert_array_equal(res.label_image, y)
        np.testing.assert_allclose(res.colors[0], image[y == 0].mean(axis=0), rtol=1e-5)


def test_images_of_16_bits_are_told_of_the_width(halves):
    image, y = halves
    deep = image.astype(np.uint16) * 257
    with pytest.warns(UserWarning, match=r"0..255 and those of the image reach \d+; give sigma"):
        fastmmc.segment(deep, 2, random_state=0)
    res = fastmmc.segment(deep, 2, sigma=500.0 * 257, random_state=0)
    np.testing.assert_array_equal(res.label_image, y)


def test_numbers_of_a_palette_and_masked_pixels_are_refused(halves):
    Image = pytest.importorskip("PIL.Image")
    with pytest.raises(ValueError, match=r"has a palette, .* give image.convert\('RGB'\)"):
        fastmmc.segment(Image.fromarray(halves[0]).convert("P"), 2)
    with pytest.raises(ValueError, match="image has masked values"):
        fastmmc.segment(np.ma.masked_less(halves[0], 100), 2)


def test_gamma_takes_the_place_of_sigma(halves):
    image, _ = halves
    res = fastmmc.segment(image, 2, method_params={"gamma": 1 / 300**2}, random_state=0)
    same = fastmmc.segment(image, 2, sigma=300.0, random_state=0)
    np.testing.assert_array_equal(res.label_image, same.label_image)
    assert res.objective == pytest.approx(same.objective)
    unit = fastmmc.segment(image / 255, 2, method_params={"gamma": 0.5}, random_state=0)
    assert unit.params["sigma"] == pytest.approx(2**0.5)


def test_grey_and_black_and_white_images(halves):
    image, y = halves
    grey = image[..., 2]
    res = fastmmc.segment(grey, 2, random_state=0)
    np.testing.assert_array_equal(res.label_image, y)
    assert res.colors.shape == (2, 1) and res.paint().shape == grey.shape
    np.testing.assert_array_equal(res.predict([[30], [180]]), [0, 1])
    same = fastmmc.segment(grey[..., None], 2, random_state=0)
    np.testing.assert_array_equal(same.label_image, y)
    mask = fastmmc.segment(y == 1, 2, sigma=None, random_state=0)
    np.testing.assert_array_equal(mask.label_image, y)
    np.testing.assert_array_equal(mask.colors, [[0.0], [1.0]])


def test_one_segment():
    res = fastmmc.segment(np.full((1, 1, 3), 7, np.uint8), 1)
    assert res.label_image.tolist() == [[0]] and res.colors.tolist() == [[7.0, 7.0, 7.0]]
    image = np.arange(12, dtype=np.uint8).reshape(3, 4)
    res = fastmmc.segment(image, 1)
    assert res.sizes.tolist() == [12] and not res.label_image.any()
    assert res.colors[0, 0] == pytest.approx(5.5)


def test_as_many_segments_as_colors():
    image = np.array([[0, 0, 90, 90, 90, 255]], dtype=np.uint8)
    res = fastmmc.segment(image, 3, random_state=0)
    assert res.label_image.tolist() == [[1, 1, 0, 0, 0, 2]]
    assert res.colors.tolist() == [[90.0], [0.0], [255.0]]


def test_alpha_is_refused_in_integers_and_a_channel_in_floats(halves):
    image, y = halves
    rgba = np.dstack([image, np.full(y.shape, 255, np.uint8)])
    with pytest.raises(ValueError, match=r"4 channels of uint8.*image\[\.\.\., :3\]"):
        fastmmc.segment(rgba, 2)
    with pytest.raises(ValueError, match=r"2 channels of uint8.*image\[\.\.\., :1\]"):
        fastmmc.segment(rgba[..., 2:], 2)
    res = fastmmc.segment(rgba.astype(float), 2, random_state=0)
    np.testing.assert_array_equal(res.label_image, y)
    assert res.colors.shape == (2, 4)


@pytest.mark.parametrize(
    ("image", "k", "message"),
    [
        (np.zeros(3), 1, r"shape \(H, W\) or \(H, W, channels\).*got shape \(3,\)"),
        (np.zeros((0, 4, 3)), 1, r"at least one pixel; got shape \(0, 4, 3\)"),
        (np.zeros((2, 3, 4, 3)), 1, r"got shape \(2, 3, 4, 3\)"),
        (np.full((2, 2), np.nan), 1, "image contains NaN"),
        (np.full((2, 2), np.inf), 1, "image contains infinity"),
        (np.full((2, 2, 3), 9, np.uint8), 2, "at most 1, the number of distinct colours; got 2"),
        (np.eye(4), 3, "at most 2, the number of distinct colours; got 3"),
        (np.eye(4), 0, "k must be at least 1; got 0"),
    ],
)
def test_faults_of_an_image_and_k(image, k, message):
    with pytest.raises(ValueError, match=message):
        fastmmc.segment(image, k)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "method must be one of .*'umc-rls'.*; got 'magic'"),
        ({"method_params": {"colour": 1}}, "iter-svr has no 'colour'; it has .*balance"),
        ({"method_params": {"sigma": 1}}, "give sigma to segment itself"),
        (
            {"method": "lcvqe", "method_params": {"must_link": [(0, 1)]}},
            "method_params: must_link would be of points, and distinct colours are clustered",
        ),
        ({"method": "umc-rls", "method_params": {"known_labels": [0]}}, "known_labels would be of"),
        ({"method_params": {"sample_weight": 1}}, "give sample_weight to segment itself, or leave"),
        ({"min_region": -1}, "min_region must be at least 0; got -1"),
        ({"min_region": 17}, "min_region must be at most 16, the number of pixels; got 17"),
        ({"sigma": 0}, "sigma must be greater than 0"),
        ({"rank": 0}, "rank must be at least 1"),
        ({"n_init": 0}, "n_init must be at least 1"),
        ({"max_time": 0}, "max_time must be greater than 0"),
    ],
)
def test_faults_of_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        fastmmc.segment(np.arange(16, dtype=np.uint8).reshape(4, 4), 2, **options)


def test_faults_of_types():
    with pytest.raises(TypeError, match="method_params must be a dict or None; got 3"):
        fastmmc.segment(np.eye(4), 2, method_params=3)
    with pytest.raises(TypeError, match="image must hold real numbers; got dtype complex128"):
        fastmmc.segment(np.eye(4) * 1j, 2)
    with pytest.raises(TypeError, match="k must be an integer"):
        fastmmc.segment(np.eye(4), 2.0)


def distinct_colors(image):
    """Return the colours as points, and which of them each pixel has."""
    colors, inverse = np.unique(image.reshape(-1, 3), axis=0, return_inverse=True)
    return colors.astype(float), inverse.ravel()


def test_methods_without_weights_cluster_the_colors(halves):
    image, _ = halves
    image[:3] = COLORS[0]  # counted once, however many pixels have it
    res = fastmmc.segment(image, 2, method="fast_evo_mmc", rank=50, random_state=0)
    colors, inverse = distinct_colors(image)
    expected = fastmmc.fast_evo_mmc(
        colors, sigma=500.0, rank=50, balance=segmentation.BALANCE, n_init=1, random_state=0
    )
    assert adjusted_rand_score(expected.labels[inverse], res.labels) == 1.0
    assert res.objective == pytest.approx(expected.objective)


def test_multi_class_methods_make_all_segments_themselves(bands):
    image, _ = bands
    options = {"sigma": 100.0, "rank": 150, "random_state": 0}
    uneven = "free sizes, about 84, 60, 48, 36 points, fit these 228 points far better"
    with pytest.warns(ConvergenceWarning, match=uneven):
        res = fastmmc.segment(image, 4, method="umc-rls", method_params={"lam": 0.1}, **options)
    colors, inverse = distinct_colors(image)
    counts = np.bincount(inverse)
    with pytest.warns(ConvergenceWarning, match=uneven):
        expected = fastmmc.umc_rls(colors, 4, lam=0.1, n_init=1, sample_weight=counts, **options)
    assert adjusted_rand_score(expected.labels[inverse], res.labels) == 1.0
    assert res.objective == pytest.approx(expected.objective)


def test_what_a_method_is_given(monkeypatch, bands):
    image, _ = bands
    asked = {}

    def solve(X, *, sample_weight, balance, rank, extra=0):
        asked.update(X=X, weight=sample_weight, balance=balance, rank=rank, extra=extra)
        return fastmmc.iter_svr(X)

    method = Method("fake", solve, fastmmc.EvoMMC, "no paper", "for tests", binary=True)
    monkeypatch.setitem(METHODS, "fake", method)
    fastmmc.segment(image // 64, 2, method="fake", method_params={"extra": 3})
    colors, counts = np.unique((image // 64).reshape(-1, 3), axis=0, return_counts=True)
    np.testing.assert_array_equal(asked["X"], colors)
    np.testing.assert_array_equal(asked["weight"], counts)
    # A rank in numbers is a limit; a share is a share.
    assert (asked["balance"], asked["rank"]) == (segmentation.BALANCE, len(colors))
    assert asked["extra"] == 3
    fastmmc.segment(image, 2, method="fake", rank=0.1, method_params={"balance": 0.9})
    assert (asked["balance"], asked["rank"]) == (0.9, 0.1)


def test_parameters_of_a_kernel_count_only_for_methods_with_one():
    names = ("iter-svr", "evo-mmc", "wta")
    counting = [segmentation.settings_of(METHODS[name]) for name in names]
    assert ["rank" in settings for settings in counting] == [True, False, False]


def test_time_limit_is_a_warning(rng):
    image = rng.integers(0, 256, (60, 60, 3)).astype(np.uint8)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        res = fastmmc.segment(image, 3, max_time=1e-9, random_state=0)
    assert res.status == fastmmc.Status.TIME_LIMIT and res.label_image.shape == (60, 60)


def region_sizes(label_image):
    """Return the size of the region that every pixel is in."""
    sizes = np.empty(label_image.shape, dtype=int)
    for cluster in np.unique(label_image):
        found, _ = ndimage.label(label_image == cluster)
        members = found > 0
        sizes[members] = np.bincount(found.ravel())[found[members]]
    return sizes


@pytest.mark.parametrize("least", [2, 5, 40])
@pytest.mark.parametrize("k", [2, 5])
def test_no_small_region_is_left_and_no_large_one_is_changed(rng, least, k):
    noise = ndimage.gaussian_filter(rng.standard_normal((k, 40, 50)), (0, 1, 1))
    labels = noise.argmax(axis=0)
    merged = segmentation._merge_small_regions(labels, least)
    before = region_sizes(labels)
    assert (before < least).any() and (before >= least).any()
    assert region_sizes(merged).min() >= least
    np.testing.assert_array_equal(merged[before >= least], labels[before >= least])


def test_a_small_region_goes_where_its_border_is_longest():
    labels = np.array(
        [
            [0, 0, 0, 1, 1, 1],
            [0, 0, 2, 1, 1, 1],
            [0, 0, 2, 1, 1, 1],
            [0, 0, 1, 1, 1, 1],
        ]
    )
    merged = segmentation._merge_small_regions(labels, 3)
    expected = labels.copy()
    expected[1:3, 2] = 1  # three edges with 1 and three with 0, and the region of 1 is larger
    np.testing.assert_array_equal(merged, expected)
    labels[3, 2] = 0  # now four with 0
    expected = labels.copy()
    expected[1:3, 2] = 0
    np.testing.assert_array_equal(segmentation._merge_small_regions(labels, 3), expected)


def test_regions_grow_together_while_they_are_merged():
    # Neither of the ones is large; the zero between them goes first and joins them.
    labels = np.array([[1, 1, 0, 1, 1, 2, 2, 2, 2, 2]])
    merged = segmentation._merge_small_regions(labels, 5)
    np.testing.assert_array_equal(merged, [[1, 1, 1, 1, 1, 2, 2, 2, 2, 2]])
    # Diagonal neighbours are not connected, and of two small regions the first goes first.
    merged = segmentation._merge_small_regions(np.array([[0, 1], [1, 0]]), 2)
    assert len(np.unique(merged)) == 1
    # Everything becomes one region if nothing is large enough.
    merged = segmentation._merge_small_regions(np.array([[0, 0, 0, 1, 1]]), 5)
    assert merged.tolist() == [[0] * 5]


def test_min_region(bands, rng):
    image, y = bands
    # Spots of the last colour, one pixel each, inside the other bands.
    spotted = image.copy()
    for row in (1, 6, 8, 12):
        spotted[row, rng.choice(6, 3, replace=False) * 2] = COLORS[3]
    rough = fastmmc.segment(spotted, 4, random_state=0)
    res = fastmmc.segment(spotted, 4, min_region=9, random_state=0)
    assert region_sizes(rough.label_image).min() < 9 <= region_sizes(res.label_image).min()
    assert adjusted_rand_score(res.labels, y.ravel()) == 1.0
    np.testing.assert_array_equal(res.sizes, np.bincount(res.labels))
    large = res.label_image[0] == res.label_image[0, 0]
    assert large.all() and res.params["min_region"] == 9


def test_a_segment_of_small_regions_disappears():
    image = np.zeros((9, 9), dtype=np.uint8)
    image[5:] = 100
    image[::4, ::4] = 250
    res = fastmmc.segment(image, 3, random_state=0)
    assert len(res.sizes) == 3
    res = fastmmc.segment(image, 3, min_region=2, random_state=0)
    assert res.sizes.tolist() == [45, 36] and res.colors.shape == (2, 1)
    assert res.predict([[0], [100]]).tolist() == [0, 1]
    assert res.decision_function([[250]]).shape == (1, 2)


def test_starts_are_refused_by_methods_that_make_one():
    image = np.arange(24, dtype=np.uint8).reshape(4, 6)
    for k in (2, 3):
        with pytest.raises(ValueError, match="n_init must be 1, as gmmc makes one start; got 3"):
            fastmmc.segment(image, k, method="gmmc", n_init=3)

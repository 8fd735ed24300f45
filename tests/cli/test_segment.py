"""The command segment."""

import json
import sys

import numpy as np
import pytest
from PIL import Image

import fastmmc
from fastmmc import cli
from tests.cli.runner import FEW, error_of, never, register, run


@pytest.fixture
def photo(tmp_path):
    """A picture of two colours, 12 x 10 pixels."""
    pixels = np.full((10, 12, 3), (200, 40, 30), np.uint8)
    pixels[6:] = 20, 60, 180
    path = tmp_path / "photo.png"
    Image.fromarray(pixels).save(path)
    return path


def read(path):
    with Image.open(path) as picture:
        return np.asarray(picture)


def never_segment(*args, **kwargs):
    raise AssertionError("the computation was begun")


def test_segment_agrees_with_the_library(capsys, tmp_path, photo, rng):
    noisy = np.clip(read(photo) + rng.integers(-9, 10, (10, 12, 3)), 0, 255).astype(np.uint8)
    Image.fromarray(noisy).save(photo)
    options = ["--balance", 0.4, "--sigma", 300, "--rank", 40, "--min-region", 2, *FEW]
    out = tmp_path / "seg.png"
    argv = ["segment", photo, "--k", 3, *options, "--out", out, "--json"]
    assert run(*argv) == 0
    report = json.loads(capsys.readouterr().out)
    expected = fastmmc.segment(
        noisy,
        3,
        sigma=300.0,
        rank=40,
        min_region=2,
        n_init=2,
        random_state=0,
        method_params={"balance": 0.4},
    )
    assert (report["method"], report["width"], report["height"]) == ("iter-svr", 12, 10)
    assert report["k"] == len(expected.sizes) and report["sizes"] == expected.sizes.tolist()
    assert report["status"] == "CONVERGED" and report["seconds"] > 0
    assert report["objective"] == pytest.approx(expected.objective)
    np.testing.assert_allclose(report["colors"], expected.colors)
    np.testing.assert_array_equal(read(out), np.rint(expected.paint()))


def test_segment_prints_the_same(capsys, photo):
    assert run("segment", photo, "-k", 2, "--seed", 0) == 0
    out, err = capsys.readouterr()
    lines = dict(line.split(None, 1) for line in out.splitlines())
    assert out.startswith(f"iter-svr on {photo}: 12 x 10 pixels, 2 segments\n")
    assert lines["sizes"].split() == ["72", "48"]
    assert lines["colours"].split() == ["#c8281e", "#143cb4"]
    assert lines["status"] == "converged" and {"objective", "time"} <= lines.keys()
    assert err == ""


def test_segment_side_by_side(capsys, tmp_path, photo):
    out = tmp_path / "both.png"
    wrong = ["segment", photo, "--k", 2, "--side-by-side"]
    assert "--side-by-side needs --out" in error_of(capsys, *wrong)
    assert run(*wrong, "--out", out) == 0
    both, original = read(out), read(photo)
    np.testing.assert_array_equal(both[:, :12], original)
    assert (both[:, 12:-12] == 255).all() and both.shape == (10, 24 + cli.segment.GAP, 3)
    np.testing.assert_array_equal(both[:, -12:], original)  # there are two colours only


def test_every_kind_of_picture_becomes_rgb(tmp_path, photo):
    pixels = read(photo)
    frames = [Image.fromarray(pixels), Image.fromarray(pixels[::-1])]
    frames[0].save(tmp_path / "palette.png")
    frames[0].quantize(4).save(tmp_path / "palette.png")
    frames[0].save(tmp_path / "moving.gif", save_all=True, append_images=frames[1:])
    frames[0].convert("CMYK").save(tmp_path / "print.tiff")
    for name in ("palette.png", "moving.gif", "print.tiff"):
        np.testing.assert_allclose(cli.segment._read_picture(tmp_path / name), pixels, atol=2)
    alpha = np.full((10, 12), 255, np.uint8)
    alpha[:, :5] = 0
    Image.fromarray(np.dstack([pixels, alpha])).save(tmp_path / "alpha.png")
    expected = pixels.copy()
    expected[:, :5] = 255
    np.testing.assert_array_equal(cli.segment._read_picture(tmp_path / "alpha.png"), expected)
    grey = np.arange(120, dtype=np.uint8).reshape(10, 12)
    Image.fromarray(grey).save(tmp_path / "grey.png")
    Image.fromarray(grey.astype(np.uint16) * 257).save(tmp_path / "deep.png")
    for name in ("grey.png", "deep.png"):
        read_back = cli.segment._read_picture(tmp_path / name)
        np.testing.assert_array_equal(read_back, np.dstack([grey] * 3))
    # A camera held upright stores its picture lying and says so.
    turned = Image.Exif()
    turned[0x0112] = 6
    frames[0].save(tmp_path / "turned.png", exif=turned)
    np.testing.assert_array_equal(
        cli.segment._read_picture(tmp_path / "turned.png"), np.rot90(pixels, axes=(1, 0))
    )


def test_faults_of_pictures(capsys, tmp_path, photo, monkeypatch):
    monkeypatch.setattr(cli.segment, "segment", never_segment)

    def message(name):
        return error_of(capsys, "segment", tmp_path / name, "--k", 2)

    assert "none.png: No such file" in message("none.png")
    assert "is a folder; give a file" in message("")
    (tmp_path / "text.png").write_text("no picture")
    assert "text.png cannot be read as a picture: cannot identify" in message("text.png")
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    assert message("rows.csv").endswith("; for the rows of a table there is fastmmc cluster\n")
    whole = photo.read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    assert "cut.png cannot be read as a picture" in message("cut.png")
    Image.fromarray(np.zeros((3, 3), np.float32)).save(tmp_path / "float.tiff")
    assert "its pixels have 32 bits; convert them" in message("float.tiff")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 50)
    assert "photo.png cannot be read as a picture: Image size" in message("photo.png")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--k is missing: segment needs the number of segments"),
        (["--k", "0"], "k must be at least 1; got 0"),
        (["--k", "3"], "k must be at most 2, the number of distinct colours; got 3"),
        (["--k", "2", "--min-region", "-1"], "--min-region must be at least 0"),
        (["--k", "2", "--balance", "-1"], "balance must be"),
        (["--k", "2", "--method", "magic"], "there is no method 'magic'"),
        (["--k", "2", "--method", "RecursiveMMC"], "fastmmc segment has no method recursive-mmc"),
        (["--k", "2", "--lam", "1"], "unrecognized arguments: --lam"),
    ],
)
def test_wrong_arguments_of_segment(capsys, photo, options, message):
    assert message in error_of(capsys, "segment", photo, *options)


def test_balance_is_refused_where_a_method_has_none(capsys, monkeypatch, photo):
    register(monkeypatch, never)
    wrong = ["segment", photo, "--k", 2, "--method", "fake", "--balance", 0.5]
    assert "fake has no --balance" in error_of(capsys, *wrong)


def test_outputs_of_segment_are_checked_before_the_computation(
    capsys, monkeypatch, tmp_path, photo
):
    monkeypatch.setattr(cli.segment, "segment", never_segment)

    def message(path):
        return error_of(capsys, "segment", photo, "--k", 2, "--out", path)

    assert "there is no folder" in message(tmp_path / "none" / "a.png")
    assert "is a folder" in message(tmp_path)
    assert "is a file to be read" in message(photo)
    assert "must end in one of" in message(tmp_path / "a.xyz")
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert "pictures need Pillow (python -m pip install pillow)" in message(tmp_path / "a.png")
    assert "need Pillow (python -m pip" in error_of(capsys, "segment", photo, "--k", 2)


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.BMP", "a.tiff", "a.jp2"])
def test_a_full_disk_costs_no_picture(capsys, tmp_path, photo, full_disk, name):
    path = tmp_path / name
    command = ["segment", photo, "--k", 2, "--seed", 0, "--out", path]
    try:
        assert run(*command) == 0
    except AssertionError:
        pytest.skip("Pillow has no such format here")
    whole = path.read_bytes()
    capsys.readouterr()
    with full_disk(20):
        assert run(*command) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"fastmmc: error: {path}: ") and err.count("\n") == 1
    assert path.read_bytes() == whole
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted({photo.name, name})

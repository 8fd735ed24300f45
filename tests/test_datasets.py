import numpy as np
import pytest

from fastmmc import datasets

SHAPES = {
    "digits": (1797, 64, 10),
    "iris": (150, 4, 3),
    "wine": (178, 13, 3),
    "breast_cancer": (569, 30, 2),
    "moons": (200, 2, 2),
    "rings": (400, 2, 2),
    "nine_gaussians": (900, 2, 9),
}


@pytest.mark.parametrize("name", datasets.BUNDLED + datasets.GENERATED)
def test_bundled_and_generated_sets(name):
    X, y = datasets.load(name)
    n, d, k = SHAPES[name]
    assert X.shape == (n, d) and y.shape == (n,) and set(y.tolist()) == set(range(k))
    again, _ = datasets.load(name)
    np.testing.assert_array_equal(X, again)


def test_nine_gaussians_are_balanced():
    _, y = datasets.make_nine_gaussians(902, random_state=1)
    assert set(np.bincount(y).tolist()) == {100, 101}


def test_a_file_in_data_home(tmp_path, monkeypatch):
    np.savez(tmp_path / "mine.npz", X=np.arange(6, dtype=np.uint8).reshape(3, 2), y=[7, 2, 7])
    X, y = datasets.load("mine", data_home=tmp_path)
    assert X.dtype == np.float64
    np.testing.assert_array_equal(y, [1, 0, 1])
    monkeypatch.setenv("FASTMMC_DATA", str(tmp_path))
    np.testing.assert_array_equal(datasets.load("mine")[0], X)


def test_a_file_without_labels(tmp_path):
    np.savez(tmp_path / "mine.npz", X=np.zeros((3, 2), dtype=np.float32))
    X, y = datasets.load("mine", data_home=tmp_path)
    assert X.dtype == np.float32 and y is None


def test_a_file_without_points(tmp_path):
    np.savez(tmp_path / "mine.npz", Z=np.zeros(3))
    with pytest.raises(ValueError, match="named X; found Z"):
        datasets.load("mine", data_home=tmp_path)


def test_broken_files(tmp_path):
    np.save(tmp_path / "array.npy", np.zeros(3))
    (tmp_path / "array.npy").rename(tmp_path / "array.npz")
    np.savez(tmp_path / "cut.npz", X=np.zeros((50, 2)))
    whole = (tmp_path / "cut.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.npz").write_text("1,2\n")
    for name in ("array", "cut", "text"):
        with pytest.raises(ValueError, match=f"{name}.npz cannot be read as an .npz file"):
            datasets.load(name, data_home=tmp_path)
    np.savez(tmp_path / "short.npz", X=np.zeros((3, 2)), y=np.zeros((3, 1)))
    with pytest.raises(ValueError, match=r"y must have shape \(3,\)"):
        datasets.load("short", data_home=tmp_path)


def test_an_unknown_name_is_told_with_names_like_it(tmp_path, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("nobody asked for OpenML")

    monkeypatch.setattr(datasets.bundled, "fetch_openml", never)
    monkeypatch.delenv("FASTMMC_DATA", raising=False)
    with pytest.raises(ValueError, match=r"no data set 'irsi' \(did you mean iris\?\).*online="):
        datasets.load("irsi")
    with pytest.raises(ValueError, match=r"no data set 'letter': it is not one of.*online=True"):
        datasets.load("letter")
    np.savez(tmp_path / "my_rows.npz", X=np.zeros((2, 1)))
    with pytest.raises(ValueError, match=r"did you mean my_rows\?"):
        datasets.load("my-rows", data_home=tmp_path)
    with pytest.raises(TypeError, match="name must be a string"):
        datasets.load(3)


def test_openml_is_asked_last_and_only_on_request(monkeypatch):
    asked = []

    def fetch(name, version, **kwargs):
        asked.append((name, version))
        if name == "nothing":
            raise OSError("no network")
        return np.zeros((2, 1)), np.array(["b", "a"])

    monkeypatch.setattr(datasets.bundled, "fetch_openml", fetch)
    monkeypatch.delenv("FASTMMC_DATA", raising=False)
    _, y = datasets.load("letter", online=True)
    datasets.load("something", online=True)
    datasets.load("iris", online=True)
    assert asked == [("letter", 1), ("something", "active")]
    np.testing.assert_array_equal(y, [1, 0])
    with pytest.raises(ValueError, match="no data set 'nothing'.*digits.*no network"):
        datasets.load("nothing", online=True)

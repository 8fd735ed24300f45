"""The report as one HTML page: what it shows, and that texts of users stay texts."""

import base64
import json
import re
import sys
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

import fastmmc
from fastmmc.plotting import write_report
from fastmmc.plotting.clusters import project
from fastmmc.plotting.report import LEAST_DRAWN, LETTERS, MOST_CLUSTERS, MOST_OPEN, sample_rows

pandas = pytest.importorskip("pandas")

pytestmark = pytest.mark.filterwarnings("ignore:clusters of free sizes", "ignore:columns of X")

MARKUP = [
    "<img src=x onerror=alert(1)>",
    "'; alert(2); '",
    "\\'</script><script>alert(3)</script>",
    "&lt;b&gt; $$x^2$$ \u2028",
    '"><svg onload=alert(4)>',
]


class Page(HTMLParser):
    """The texts of a page, the tags, the rows of its tables, and its scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.scripts, self.tables = [], [], [], []
        self._inside = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._inside = self._inside if tag in ("a", "span") else tag
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        if tag in ("td", "th", "script", "style", "p", "h1", "table"):
            self._inside = None

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts.append(data)
            return
        self.texts.append(data)
        if self._inside in ("td", "th"):
            self.tables[-1][-1][-1] += data

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def count(self, tag):
        return sum(name == tag for name, _ in self.tags)

    @property
    def drawn(self):
        """The columns of every scatter plot."""
        text = re.search(r"const docs_json = '(.*)';\n", self.scripts[-2]).group(1)
        text = unescape(re.sub(r"\\(.)", r"\1", text))
        found = []

        def look(value):
            if isinstance(value, dict):
                if value.get("name") == "ColumnDataSource":
                    entries = value["attributes"]["data"]["entries"]
                    found.append({name: read_values(values) for name, values in entries})
                for one in value.values():
                    look(one)
            elif isinstance(value, list):
                for one in value:
                    look(one)

        look(json.loads(text))
        return found


def read_values(values):
    if isinstance(values, dict) and "array" in values:
        data = values["array"]
        if isinstance(data, dict):
            kind = values["dtype"]
            return np.frombuffer(base64.b64decode(data["data"]), kind).tolist()
        return data
    return values


@pytest.fixture
def page_of(tmp_path):
    def write(*args, **kwargs):
        write_report(tmp_path / "page.html", *args, **kwargs)
        return Page((tmp_path / "page.html").read_text(encoding="utf-8"))

    return write


@pytest.fixture(scope="module")
def customers():
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], 30)
    frame = pandas.DataFrame(
        {
            "customer": [f"{MARKUP[i % 5]} {i}" for i in range(90)],
            MARKUP[0]: 30.0 * group + rng.normal(size=90),
            MARKUP[2]: np.array(MARKUP)[group],
            "since": pandas.Timestamp("2020-01-01") + pandas.to_timedelta(group * 400, "D"),
        }
    )
    frame.loc[::7, MARKUP[0]] = np.nan
    frame.loc[::11, MARKUP[2]] = None
    return frame, fastmmc.cluster(frame, 3, random_state=0)


def test_texts_of_users_are_no_markup(page_of, customers):
    frame, result = customers
    page = page_of(result, frame, title=MARKUP[4])
    assert page.count("script") == 4
    assert not [tag for tag, _ in page.tags if tag in ("img", "svg", "b")]
    assert not [one for _, one in page.tags if any(name.startswith("on") for name in one)]
    shown = "".join(page.texts)
    assert all(text in shown for text in (MARKUP[0], MARKUP[2], MARKUP[4]))
    # In the scripts the texts are data that read back as they were.
    told = {text for one in page.drawn for text in one["name_0"]}
    assert told == set(frame["customer"])


def test_a_page_needs_nothing_from_elsewhere(page_of, customers):
    page = page_of(customers[1], customers[0])
    links = [one.get("href") or one.get("src") for _, one in page.tags]
    assert all(link.startswith("#cluster-") for link in links if link)
    policy = next(one["content"] for _, one in page.tags if "http-equiv" in one)
    assert policy.startswith("default-src 'none'") and "http" not in policy


def test_points_are_drawn_where_they_are_with_row_cluster_and_probability(page_of, blobs):
    X, _ = blobs
    result = fastmmc.umc_rls(X, 3, n_init=2, random_state=0)
    positions, names = project(X)
    drawn = page_of(result, X).drawn
    assert [set(one["cluster"]) for one in drawn] == [{"0"}, {"1"}, {"2"}]
    rows = np.concatenate([one["row"] for one in drawn])
    assert sorted(rows) == list(range(len(X)))
    for axis, name in enumerate("xy"):
        values = np.concatenate([one[name] for one in drawn])
        np.testing.assert_allclose(values, positions[rows, axis], rtol=1e-5, atol=1e-5)
    told = np.concatenate([one["cluster"] for one in drawn])
    np.testing.assert_array_equal(told.astype(int), result.labels[rows])
    told = np.concatenate([one["probability"] for one in drawn]).astype(float)
    np.testing.assert_allclose(told, result.probabilities[rows, result.labels[rows]], atol=0.0051)


def test_tables_have_the_profile_the_typical_and_the_doubtful_rows(page_of, customers):
    frame, result = customers
    glance, *rest = page_of(result, frame).tables
    assert [row[:2] for row in glance[1:]] == [[str(h), f"{n}"] for h, n in enumerate(result.sizes)]
    profile = result.profile(frame)
    for h in range(3):
        described, typical = rest[2 * h : 2 * h + 2]
        columns = profile.by_difference(h)
        assert [row[0] for row in described[1:]] == [column.name for column in columns]
        assert float(described[1][1]) == pytest.approx(columns[0].differences[h], abs=0.0051)
        assert typical[0] == ["row", *frame.columns]
        assert [int(row[0]) for row in typical[1:]] == result.exemplars[h][:5].tolist()
        for i, customer, number, _, since in typical[1:]:
            row = frame.iloc[int(i)]
            assert customer == row["customer"] and since == str(row["since"])[:10]
            assert number == ("" if np.isnan(row.iloc[1]) else f"{row.iloc[1]:.6g}")
    doubtful = rest[6]
    assert [int(row[0]) for row in doubtful[1:]] == result.boundary_points[:20].tolist()
    for i, label, chance, other, next_chance, *_ in doubtful[1:]:
        chances = result.probabilities[int(i)]
        assert int(label) == result.labels[int(i)] != int(other)
        assert float(chance) == pytest.approx(chances[int(label)], abs=0.0051)
        assert float(next_chance) == pytest.approx(np.delete(chances, int(label)).max(), abs=0.0051)


def test_one_cluster(page_of, blobs):
    page = page_of(fastmmc.umc_rls(blobs[0], 1), blobs[0])
    assert "in 1 cluster," in page.text and "Doubtful rows" not in page.text


def test_clusters_beyond_the_hundred_largest_are_drawn_and_not_described(page_of):
    k = MOST_CLUSTERS + 1
    X = np.repeat(np.arange(k) ** 2.0, 3)[:-1, None] + np.tile([0.0, 0.1, 0.2], k)[:-1, None]
    result = fastmmc.sammc(X, k, random_state=0)
    page = page_of(result, X)
    assert page.count("details") == MOST_CLUSTERS
    assert "legend" not in page.text
    assert f"The {MOST_CLUSTERS} largest of {k} clusters are described" in page.text
    assert sum(len(one["row"]) for one in page.drawn) == len(X)
    assert not [one for tag, one in page.tags if tag == "details" and "open" in one]
    assert '"name":"Legend"' not in page.scripts[-2] and k > MOST_OPEN


def test_a_result_without_scores_has_no_probabilities(page_of, blobs):
    page = page_of(fastmmc.sammc(blobs[0], 3, random_state=0), blobs[0])
    assert "Doubtful rows" not in page.text and "Typical rows" not in page.text
    assert "click a cluster in the legend" in page.text
    assert "how likely" not in page.text and {*page.drawn[0]["probability"]} == {"?"}


def test_a_tree_is_shown(page_of, blobs):
    result = fastmmc.recursive_mmc(blobs[0], 3, random_state=0)
    page = page_of(result, blobs[0])
    assert page.count("pre") == 1 and str(result.tree) in page.texts
    assert page_of(fastmmc.sammc(blobs[0], 3, random_state=0), blobs[0]).count("pre") == 0


def test_points_that_were_left_out_are_drawn_as_such(page_of, blobs):
    result = fastmmc.umc_rls(blobs[0], 3, trim=5, n_init=1, random_state=0)
    page = page_of(result, blobs[0])
    assert page.drawn[0]["row"] == np.flatnonzero(result.labels < 0).tolist()
    assert {*page.drawn[0]["cluster"]} == {"none"} and {*page.drawn[0]["probability"]} == {"?"}
    assert "5 in no cluster" in page.text


def test_points_and_the_table_that_describes_them_may_differ(page_of):
    rng = np.random.default_rng(0)
    X = csr_array(np.repeat(np.eye(2, 6), 10, axis=0) + 0.01 * rng.random((20, 6)))
    result = fastmmc.umc_rls(X, 2, random_state=0)
    words = pandas.DataFrame({"word": np.repeat(["sea", "sky"], 10), "n": range(20)})
    page = page_of(result, X, table=words)
    assert "word: sea: 100%" in page.text
    texts = pandas.DataFrame({"text": [f"text {i}, \ud800" for i in range(20)]}, dtype=object)
    page = page_of(result, X, table=texts)
    assert "20 points in 2 clusters" in page.text and "text 3" in page.text
    with pytest.raises(TypeError, match="X is sparse, and a profile is of a table"):
        page_of(result, X)
    with pytest.raises(ValueError, match="X has 19 rows, and the result 20 points"):
        page_of(result, X, table=words[:-1])
    with pytest.raises(ValueError, match="X must have the 20 points"):
        page_of(result, X[:-1], table=words)


def test_long_cells_and_missing_dates_and_many_columns(page_of):
    group = np.repeat([0.0, 9.0], 15)
    day = pandas.Timestamp("2024-05-06 07:00") + pandas.to_timedelta(group, "D")
    frame = pandas.DataFrame({"long": np.repeat(["a" * 99, "b" * 99], 15), "day": day})
    frame.loc[3, "day"] = pandas.NaT
    for j in range(12):
        frame[f"c{j}"] = group + 0.01 * np.arange(30) ** (j + 1)
    page = page_of(fastmmc.cluster(frame, 2, random_state=0), frame)
    half = "a" * (LETTERS // 2)
    assert 3 * half not in page.text and f"{half}\N{HORIZONTAL ELLIPSIS}aaa" in page.text
    assert re.search("a: 100%", page.text)
    assert "2024-05-06 07:00" in page.text
    assert "Rows are shown without 6 of 14 columns" in page.text


def test_a_sample_has_ten_points_of_each_cluster_and_about_its_share():
    labels = np.random.default_rng(0).permutation(np.repeat([-1, 0, 1, 2], [100, 20000, 4, 900]))
    rows = sample_rows(labels, 3, 1000)
    assert rows.size == 1000 and (np.diff(rows) > 0).all()
    counts = np.bincount(labels[rows] + 1)
    assert counts[0] >= LEAST_DRAWN and counts[2] == 4
    assert counts[1] / 20000 == pytest.approx(counts[3] / 900, rel=0.5)
    np.testing.assert_array_equal(sample_rows(labels, 3, 10**6), np.arange(labels.size))
    np.testing.assert_array_equal(rows, sample_rows(labels, 3, 1000))
    many = np.arange(5000) // 2
    assert sample_rows(many, 2500, 2000).size == 2000


def test_a_sample_is_said(page_of, blobs):
    result = fastmmc.umc_rls(blobs[0], 3, n_init=1, random_state=0)
    page = page_of(result, blobs[0], max_points=60)
    n = sum(len(one["row"]) for one in page.drawn)
    assert n <= 60 and f"A sample of {n} of 75 points." in page.text
    with pytest.raises(ValueError, match="max_points must be"):
        page_of(result, blobs[0], max_points=0)


def test_a_fitted_estimator_stands_for_its_result(blobs, tmp_path):
    model = fastmmc.UMCRLS(3, n_init=1, random_state=0).fit(blobs[0])
    pages = []
    for one in (model, model.result_):
        write_report(tmp_path / "a.html", one, blobs[0])
        pages.append(Page((tmp_path / "a.html").read_text(encoding="utf-8")))
    assert pages[0].tables == pages[1].tables and pages[0].tables


def test_what_is_missing_or_no_result_is_told(monkeypatch, blobs, tmp_path):
    with pytest.raises(TypeError, match="result must be a ClusteringResult"):
        write_report(tmp_path / "a.html", blobs[1], blobs[0])
    with pytest.raises(NotFittedError, match="has no result"):
        write_report(tmp_path / "a.html", fastmmc.UMCRLS(3), blobs[0])
    result = fastmmc.umc_rls(blobs[0], 3, n_init=1, random_state=0)
    with pytest.raises(OSError, match="there is no folder"):
        write_report(tmp_path / "none" / "a.html", result, blobs[0])
    monkeypatch.setitem(sys.modules, "bokeh.plotting", None)
    with pytest.raises(ImportError, match="reports need Bokeh .python -m pip install bokeh"):
        write_report(tmp_path / "a.html", result, blobs[0])
    assert not list(tmp_path.iterdir())

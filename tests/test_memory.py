"""How much memory is free, and that what is made is compared with it first."""

import numpy as np
import pytest

import fastmmc
from fastmmc.core import memory
from fastmmc.kernels import factors, nystroem
from fastmmc.kernels.gram import Kernel

MIB = 2**20


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return a function that writes files of a faked /proc (p/...) and cgroup tree (g/...)."""
    monkeypatch.setattr(memory, "PROC", tmp_path / "p")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "g")

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(text))

    write({"p/meminfo": f"MemTotal: 999 kB\nMemAvailable: {4096 * 1024} kB\n"})
    return write


def v2(folder, most, used, **stat):
    lines = "".join(f"{name} {value * MIB}\n" for name, value in stat.items())
    most = most if most == "max" else most * MIB
    return {
        f"{folder}/memory.max": f"{most}\n",
        f"{folder}/memory.current": f"{used * MIB}\n",
        f"{folder}/memory.stat": "anon 1\n" + lines,
    }


def v1(folder, most, used, **stat):
    lines = "".join(f"total_{name} {value * MIB}\n" for name, value in stat.items())
    return {
        f"{folder}/memory.limit_in_bytes": most * MIB,
        f"{folder}/memory.usage_in_bytes": used * MIB,
        # Those without total_ do not count the groups within.
        f"{folder}/memory.stat": "inactive_file 12345678\n" + lines,
    }


def free():
    return memory.available_memory() / MIB


def test_no_groups(machine):
    assert free() == 4096
    machine({"p/self/cgroup": "0::/\n"})
    assert free() == 4096
    machine(v2("g", "max", 4000))
    assert free() == 4096


def test_files_that_were_read_count_as_free(machine):
    machine({"p/self/cgroup": "0::/\n"} | v2("g", 1000, 900, inactive_file=500, active_file=200))
    assert free() == 800
    machine(v2("g", 1000, 1000))
    assert free() == 0
    machine(v2("g", 5000, 10))
    assert free() == 4096


def test_all_groups_around_the_own_one_count(machine):
    machine({"p/self/cgroup": "12:cpu:/\n0::/outer/inner\n"})
    machine(v2("g/outer/inner", "max", 10))
    assert free() == 4096
    machine(v2("g/outer", 300, 100, inactive_file=50))
    assert free() == 250
    machine(v2("g/outer/inner", 120, 20))
    assert free() == 100


def test_first_version_of_groups(machine):
    machine({"p/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/outer/inner\n0::/\n"})
    machine(v1("g/memory/outer/inner", 2**43, 50))
    assert free() == 4096
    machine(v1("g/memory/outer", 700, 600, inactive_file=100, active_file=50))
    assert free() == 250


def test_the_path_of_a_group_may_be_that_of_the_host(machine):
    """A container sees its own group as the root."""
    machine({"p/self/cgroup": "4:memory:/docker/0123abcd\n"})
    machine(v1("g/memory", 200, 60))
    assert free() == 140


@pytest.mark.parametrize("text", ["", "nonsense", "max max", "-"])
def test_files_that_cannot_be_read_are_no_limits(machine, text):
    machine({"p/self/cgroup": "0::/a\n", "g/a/memory.max": text, "g/a/memory.stat": text})
    assert free() == 4096
    machine({"p/meminfo": text} | v2("g", 100, 40))
    assert free() == 60


def wide(n, d=3):
    return np.random.default_rng(0).standard_normal((n, d))


def test_the_product_is_compared_with_free_memory(monkeypatch):
    X = wide(100)
    F = fastmmc.factor(X, rank=20, random_state=0)
    monkeypatch.setattr(memory, "available_memory", lambda: 8 * 100 * 100 - 1)
    with pytest.raises(MemoryError, match="product Z Z.T of 100 points"):
        fastmmc.umc_rls(F, 2, n_init=1, sizes="equal")


@pytest.mark.parametrize("rank", ["auto", 3_000])
def test_a_pivoted_factor_is_checked_as_it_grows(monkeypatch, rank):
    X = wide(3_000, 1)
    exact = fastmmc.factor(X, sigma=3.0, landmarks="pivoted", rank=rank)
    monkeypatch.setattr(memory, "available_memory", lambda: 8 * 3_000 * 200)
    found = fastmmc.factor(X, sigma=3.0, landmarks="pivoted", rank=rank)
    assert found.rank < 60
    np.testing.assert_array_equal(found.Z, exact.Z)
    with pytest.raises(MemoryError, match="low-rank factor of rank"):
        fastmmc.factor(wide(3_000, 3), sigma=0.3, landmarks="pivoted", rank=rank)


def test_a_factor_that_grows_is_the_same_array():
    L, new = np.empty((5, 0)), wide(5, 4)
    for column in range(4):
        L = nystroem._append(L, new[:, column : column + 1], 4)
    np.testing.assert_array_equal(L, new)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_dense_arrays_are_counted(monkeypatch, dtype):
    """Float32 with a small lam is made in double precision, and copied at the end."""
    X = wide(50).astype(dtype)
    arrays = 2 if dtype == np.float32 else 1
    monkeypatch.setattr(memory, "available_memory", lambda: arrays * 8 * 2500 - 1)
    with pytest.raises(MemoryError, match="dense hat matrix of 50 points"):
        next(factors.hat_path(Kernel("rbf", sigma=1.0), X, [1e-4]))


@pytest.mark.filterwarnings("ignore:the kernel matrix is not positive")
def test_the_arrays_of_an_eigendecomposition_are_counted(monkeypatch):
    A = wide(40, 40)
    K = A + A.T
    monkeypatch.setattr(memory, "available_memory", lambda: 2 * 8 * 1600)
    with pytest.raises(MemoryError, match="dense hat matrix of 40 points"):
        factors.hat_matrix(Kernel("precomputed"), K, 0.5)


def test_the_arrays_of_the_bound_are_counted(monkeypatch):
    F = fastmmc.factor(wide(30), rank=None)
    monkeypatch.setattr(memory, "available_memory", lambda: 2 * 8 * 900 - 1)
    with pytest.raises(MemoryError, match="matrix of the bound of 30 points"):
        fastmmc.umc_rls(F, 2, n_init=1, bound=True, sizes="equal")


def test_what_is_small_fits():
    memory.check_memory(10, np.dtype(np.float64))
    memory.refuse_beyond_free(45 * 100, "45 pairs need", "give fewer")

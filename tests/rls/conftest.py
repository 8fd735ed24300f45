import pytest

from fastmmc.rls import planning, search
from fastmmc.rls.engine import cells, free


@pytest.fixture
def few_cells(monkeypatch):
    """Search on 60 cells, and at rank 40, from 121 points on."""
    monkeypatch.setattr(cells, "CELLS", 60)
    monkeypatch.setattr(cells, "CELLS_PER_CLUSTER", 1)
    monkeypatch.setattr(planning, "DENSE_CHOICE", 100)
    monkeypatch.setattr(planning, "CHOICE_RANK", 40)
    for module in (search, free):
        monkeypatch.setattr(module, "ALL", 100)

import pytest

from fastmmc.rls import planning
from fastmmc.rls.engine import coarse


@pytest.fixture
def few_cells(monkeypatch):
    """Search on 60 cells and one for each cluster, and at rank 40 or 80 above 100 points."""
    monkeypatch.setattr(coarse, "CELLS", 60)
    monkeypatch.setattr(coarse, "CELLS_PER_CLUSTER", 1)
    monkeypatch.setattr(planning, "DENSE_CHOICE", 100)
    monkeypatch.setattr(planning, "CHOICE_RANK", 40)
    monkeypatch.setattr(planning, "AUTO_RANK", 80)
    monkeypatch.setattr(planning, "DENSE_LIMIT", 100)

"""Saved files with something changed in them."""

import json

import numpy as np


def damaged(path, change, declare=True):
    """Write a copy of a saved file after ``change(arrays, header)``, and return its path.

    Types and shapes that the header tells of are those of the changed arrays if ``declare``.
    """
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(str(arrays.pop("header")))
    change(arrays, header)
    if declare:
        _declare(header.get("content"), arrays)
    other = path.with_name("damaged.npz")
    np.savez(other, header=np.array(json.dumps(header)), **arrays)
    return other


def _declare(node, arrays):
    if isinstance(node, dict):
        for kind, content in node.items():
            if kind == "array" and content[0] in arrays:
                array = arrays[content[0]]
                content[1:] = [array.dtype.str, list(array.shape)]
            else:
                _declare(content, arrays)
    elif isinstance(node, list):
        for one in node:
            _declare(one, arrays)

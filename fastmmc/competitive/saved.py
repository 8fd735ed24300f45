"""Files of format 3, of the first versions: a stream as arrays of fixed names and a header."""

import numpy as np

from fastmmc.competitive.stream import Stream
from fastmmc.core.saving import DTYPES, make_checked
from fastmmc.kernels.gram import Kernel
from fastmmc.kernels.models import Space

STREAM = ("centers", "wins", "memory_ids", "memory", "memory_labels", "must", "cannot")
COUNTS = ("n_seen", "n_forgotten", "n_late", "n_conflicts")
FEATURES = ("basis", "to_Z", "indices")


def state_of_format_3(arrays, header):
    """Return what a file of format 3 holds, as files hold it now."""
    if str(arrays["dtype"]) not in DTYPES:
        raise ValueError(f"dtype is {arrays['dtype']}")
    kernel = header["kernel"] | {"function": None, "kernel_params": None}
    space = {
        "n_features": int(arrays["n_features_in"]),
        "dtype": np.dtype(str(arrays["dtype"])),
        "kernel": make_checked(Kernel, kernel),
        **{name: arrays.get(name) for name in FEATURES},
    }
    stream = {name: arrays[name] for name in STREAM} | {"memory_size": 0}
    stream |= zip(COUNTS, arrays["counts"].tolist(), strict=True)
    stream["space"] = make_checked(Space, space)
    params = dict(header["params"])
    for name in ("init", "landmarks"):
        if f"param_{name}" in arrays:
            params[name] = arrays[f"param_{name}"]
    names = arrays.get("feature_names_in")
    return {
        "params": params,
        "n_features_in_": space["n_features"],
        "feature_names_in_": None if names is None else names.astype(object),
        "result_": None,
        "stream": make_checked(Stream, stream),
    }

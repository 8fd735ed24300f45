"""What is said where a package is missing that not every user needs."""


def not_installed(need, packages, instead=""):
    """Return the error for a need, as "plotting needs matplotlib", and what else would do."""
    return ImportError(f"{need} (python -m pip install {packages}){instead}")

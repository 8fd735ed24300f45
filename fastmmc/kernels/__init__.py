"""Gram matrices, their widths, features of them, and hat matrices."""

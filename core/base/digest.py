"""The hash by which files, results and pictures are named and told apart."""

from __future__ import annotations

try:
    from _blake2 import blake2b  # as hashlib has it; that loads OpenSSL too, which takes 2 ms of every start
except ImportError:  # a Python made without it
    from hashlib import blake2b

__all__ = ["blake2b"]

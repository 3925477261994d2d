"""Codes by name: ``8+3``, ``lrc(12,2,2)``, ``3x``; several: ``4:9+2:3``, ``all``. Imports nothing heavy."""

import re
from typing import NamedTuple

ALLOWED = (
    "K+M as 8+3, lrc(K,L,G) as lrc(12,2,2) with K a multiple of L, copies as 3x, ranges as 4:9+2:3, all (2x to 4x "
    "and 2:16+1:4)"
)
MOST_CHUNKS = 64  # of a group: the chain over domains grows with them

_MDS = re.compile(r"(\d+)\+(\d+)")
_LRC = re.compile(r"lrc\((\d+),(\d+),(\d+)\)")
_COPIES = re.compile(r"(\d+)x")
_RANGE = re.compile(r"(\d+)(?::(\d+))?\+(\d+)(?::(\d+))?")
_EVERY = ("2x", "3x", "4x", "2:16+1:4")  # what ``all`` stands for


class Code(NamedTuple):
    """A code: k data chunks in n = k + local_groups + parity.

    Attributes:
        name: in its shortest spelling
        k: data chunks
        local_groups: with one parity each; 0 for MDS codes and copies
        parity: global parities: m of k+m, copies - 1, g of an LRC
    """

    name: str
    k: int
    local_groups: int
    parity: int

    @property
    def n(self) -> int:
        """Chunks of a group."""
        return self.k + self.local_groups + self.parity

    @property
    def repair_chunks(self) -> float:
        """Mean chunks read to repair one lost chunk of an otherwise whole group."""
        if not self.local_groups:
            return float(self.k)
        local = self.k + self.local_groups
        return (local * self.k / self.local_groups + self.parity * self.k) / self.n

    @property
    def degraded_chunks(self) -> int:
        """Other chunks read for a range of one data chunk while that is away."""
        return self.k // self.local_groups if self.local_groups else self.k


def code_of(text: str) -> Code | None:
    """The code of a name, spaces left out; None where it is none."""
    name = "".join(text.lower().split())
    if found := _MDS.fullmatch(name):
        k, m = map(int, found.groups())
        code = Code(f"{k}+{m}", k, 0, m)
    elif found := _LRC.fullmatch(name):
        k, groups, parity = map(int, found.groups())
        if not groups or k % groups:
            return None
        code = Code(f"lrc({k},{groups},{parity})", k, groups, parity)
    elif found := _COPIES.fullmatch(name):
        copies = int(found.group(1))
        code = Code(f"{copies}x", 1, 0, copies - 1)
    else:
        return None
    return code if code.k >= 1 and code.parity >= 0 and code.n <= MOST_CHUNKS else None


def range_of(text: str) -> list[Code] | None:
    """The codes of ``K:K+M:M``, ends included, by k and then m, or of ``all``; None where it is no such range."""
    name = "".join(text.lower().split())
    if name == "all":
        return [code for each in _EVERY for code in _named(each)]
    found = _RANGE.fullmatch(name)
    if found is None or ":" not in name:
        return None
    k, last_k, m, last_m = (None if part is None else int(part) for part in found.groups())
    if k is None or m is None:
        return None
    last_k, last_m = k if last_k is None else last_k, m if last_m is None else last_m
    if not (1 <= k <= last_k and m <= last_m and last_k + last_m <= MOST_CHUNKS):
        return None
    return [Code(f"{i}+{j}", i, 0, j) for i in range(k, last_k + 1) for j in range(m, last_m + 1)]


def _named(text: str) -> list[Code]:
    code = code_of(text)
    return [code] if code is not None else range_of(text) or []

"""Codes by name: ``8+3``, ``lrc(12,2,2)``, ``clay(8,4,11)``, ``3x``; several: ``4:9+2:3``, ``all``.

Any linear code is described by its parity checks: the sets of chunks that have a sum of zero. Data chunks are 0 to
k - 1; checks that are not listed, n - k of them in all, hold every chunk. Imports nothing heavy.
"""

import re
from typing import NamedTuple

ALLOWED = (
    "K+M as 8+3, lrc(K,L,G) as lrc(12,2,2) with K a multiple of L, clay(K,M,D), xorbas(10,6,5), copies as 3x, ranges "
    "as 4:9+2:3, all (2x to 4x and 2:16+1:4), names of code_table"
)
MOST_CHUNKS = 64  # of a group: the chain over domains grows with them

_MDS = re.compile(r"(\d+)\+(\d+)")
_LRC = re.compile(r"lrc\((\d+),(\d+),(\d+)\)")
_CLAY = re.compile(r"clay\((\d+),(\d+),(\d+)\)")
_XORBAS = re.compile(r"xorbas\((\d+),(\d+),(\d+)\)")
_OTHER = re.compile(r"[a-z][a-z0-9_.-]*(\([0-9,]*\))?")
_COPIES = re.compile(r"(\d+)x")
_RANGE = re.compile(r"(\d+)(?::(\d+))?\+(\d+)(?::(\d+))?")
_EVERY = ("2x", "3x", "4x", "2:16+1:4")  # what ``all`` stands for


class Code(NamedTuple):
    """A code: k data chunks in n = k + local_groups + parity.

    Attributes:
        name: in its shortest spelling
        k: data chunks
        local_groups: with one parity each; 0 for MDS codes and copies
        parity: global parities: m of k+m, copies - 1, g of an LRC; n - k of a code by its checks
        checks: parity checks of fewer than all chunks; none of the codes above
        repair_read: chunks read to repair one, where that is not by checks: regenerating codes read parts of chunks
        degraded_read: chunks read for a range of one that is away, where that is not by checks
    """

    name: str
    k: int
    local_groups: int
    parity: int
    checks: tuple[tuple[int, ...], ...] = ()
    repair_read: float | None = None
    degraded_read: int | None = None

    @property
    def n(self) -> int:
        """Chunks of a group."""
        return self.k + self.local_groups + self.parity

    @property
    def repair_chunks(self) -> float:
        """Mean chunks read to repair one lost chunk of an otherwise whole group."""
        if self.repair_read is not None:
            return self.repair_read
        if self.checks:
            return sum(map(self._read_for, range(self.n))) / self.n
        if not self.local_groups:
            return float(self.k)
        local = self.k + self.local_groups
        return (local * self.k / self.local_groups + self.parity * self.k) / self.n

    @property
    def degraded_chunks(self) -> int:
        """Other chunks read for a range of one data chunk while that is away."""
        if self.degraded_read is not None:
            return self.degraded_read
        if self.checks:
            return max(map(self._read_for, range(self.k)))
        return self.k // self.local_groups if self.local_groups else self.k

    def _read_for(self, chunk: int) -> int:
        """Chunks read for one that is lost: the others of its smallest check."""
        return min([len(check) - 1 for check in self.checks if chunk in check] + [self.k])


def code_of(text: str) -> Code | None:
    """The code of a name, spaces left out; None where it is none."""
    name = "".join(text.lower().split())
    code: Code | None
    if match := _MDS.fullmatch(name):
        k, m = map(int, match.groups())
        code = _mds(k, m)
    elif match := _LRC.fullmatch(name):
        k, groups, parity = map(int, match.groups())
        if not groups or k % groups:
            return None
        code = Code(f"lrc({k},{groups},{parity})", k, groups, parity)
    elif match := _CLAY.fullmatch(name):
        k, m, helpers = map(int, match.groups())
        if not 1 <= k < helpers < k + m:
            return None
        # every helper reads and sends 1 / (d - k + 1) of its chunk; a small range is decoded as with k+m
        code = Code(f"clay({k},{m},{helpers})", k, 0, m, repair_read=helpers / (helpers - k + 1))
    elif match := _XORBAS.fullmatch(name):
        k, parities, locality = map(int, match.groups())
        code = _xorbas(k, parities, locality)
    elif match := _COPIES.fullmatch(name):
        copies = int(match.group(1))
        code = Code(f"{copies}x", 1, 0, copies - 1)
    else:
        return None
    return code if code is not None and code.k >= 1 and code.parity >= 0 and code.n <= MOST_CHUNKS else None


def other_name(text: str) -> str | None:
    """What may be the name of a code of a table; None where it cannot be one."""
    name = "".join(text.lower().split())
    return name if _OTHER.fullmatch(name) and not name.startswith(("lrc(", "clay(", "xorbas(")) else None


def _xorbas(k: int, parities: int, locality: int) -> Code | None:
    """Data chunks in groups of the locality, one local parity each; all parities are a group (Sathiamoorthy, 2013)."""
    if not (k and locality and k % locality == 0 and parities == locality + 1 and k // locality < parities):
        return None
    groups = k // locality
    first = k + parities - groups  # local parities are last
    checks = [(*range(i * locality, (i + 1) * locality), first + i) for i in range(groups)]
    checks.append(tuple(range(k, k + parities)))
    return Code(f"xorbas({k},{parities},{locality})", k, 0, parities, tuple(checks))


def range_of(text: str) -> list[Code] | None:
    """The codes of ``K:K+M:M``, ends included, by k and then m, or of ``all``; None where it is no such range."""
    name = "".join(text.lower().split())
    if name == "all":
        return [code for each in _EVERY for code in _named(each)]
    match = _RANGE.fullmatch(name)
    if match is None or ":" not in name:
        return None
    k, last_k, m, last_m = (None if part is None else int(part) for part in match.groups())
    if k is None or m is None:
        return None
    last_k, last_m = k if last_k is None else last_k, m if last_m is None else last_m
    if not (1 <= k <= last_k and m <= last_m and last_k + last_m <= MOST_CHUNKS):
        return None
    return [_mds(i, j) for i in range(k, last_k + 1) for j in range(m, last_m + 1)]


def _mds(k: int, m: int) -> Code:
    """The code k+m; 1+m are copies."""
    return Code(f"{m + 1}x" if k == 1 else f"{k}+{m}", k, 0, m)


def _named(text: str) -> list[Code]:
    code = code_of(text)
    return [code] if code is not None else range_of(text) or []

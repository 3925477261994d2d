"""A generator of malformed inputs: sound tables of every kind, spoilt in one to three ways, in three formats."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

TRACES = Path(__file__).parents[2] / "traces"
NUMBERS = [np.nan, np.inf, -np.inf, -1.0, -0.0, 0.0, 1e308, -1e308, 1e-308, 2.0**62, 2.0**63, 1e18, 0.5]
TEXTS = [
    "",
    " ",
    "nan",
    "NULL",
    "[/bold]",
    "[link=file:///]x",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "$\\frac{$",
    "_{^",
    "\u202egnp.exe",
    "\ufeffid",
    "a\nb",
    "a\tb",
    "a,b",
    'a"b',
    "\x00",
    "é" * 3,
    "界" * 40,
    "x" * 100_000,
    "<script>",
    "../../etc",
    "=1+1",
    "1e999",
    "0x10",
    "1_000",
    "٣",
    "true",
]


class Target(NamedTuple):
    """A command that reads a table: ``words`` with the path of the spoilt table in them."""

    table: str
    rows: int
    words: tuple[str, ...]


REPLAYED = ("requests=200", "replications=2", "figures=[]", "planning.cluster.files=6", "planning.theta=[10]")
TARGETS = (
    Target(
        "transfers", 40, ("schedule", "trace={path}", "scheduler=fair", "figures=[]", "lower_bound=false")
    ),
    Target(
        "ports",
        5,
        ("schedule", f"trace={TRACES}/transfers.csv", "ports={path}", "scheduler=fair", "figures=[]"),
    ),
    Target("requests_chunks", 300, ("analyze", "trace={path}", "figures=false")),
    Target("requests_objects", 300, ("analyze", "trace={path}", "figures=false")),
    Target("nodes", 12, ("optimize", "nodes={path}", "theta=10", "figures=[]", "cluster.files=6")),
    Target(
        "files", 12, ("optimize", f"nodes={TRACES}/nodes.parquet", "files={path}", "theta=10", "figures=[]")
    ),
    Target(
        "edges",
        9,
        ("cache", f"trace={TRACES}/requests_objects.parquet", "nodes={path}", "capacity=20", "k=4"),
    ),
    Target(
        "requests_objects", 200, ("cache", "trace={path}", "capacity=20", "k=4", "figures=[]", "policy=lru")
    ),
    Target(
        "classes", 3, ("adapt", "classes={path}", "requests=300", "load=0.1", "strategy=static", "figures=[]")
    ),
    Target(
        "delays", 3, ("adapt", "delays={path}", "requests=300", "load=0.1", "strategy=static", "figures=[]")
    ),
    Target("rates", 12, ("replay", "rates={path}", *REPLAYED)),
    Target("outages", 3, ("replay", "outages={path}", *REPLAYED)),
)


class Case(NamedTuple):
    """A command, and what was done to its input."""

    words: tuple[str, ...]
    what: str


def case(seed: int, folder: Path) -> Case:
    """The malformed input of a seed, written under a folder."""
    random = np.random.default_rng(seed)
    target = TARGETS[seed % len(TARGETS)]
    frame = pq.read_table(TRACES / f"{target.table}.parquet").slice(0, target.rows).to_pandas()
    frame = frame.astype({name: object for name in frame.columns})
    done = []
    for _ in range(int(random.integers(0, 3))):
        spoil = SPOILERS[random.integers(len(SPOILERS))]
        frame = spoil(frame, random)
        done.append(spoil.__name__.strip("_"))
    path, form = _written(frame, folder / target.table, random)
    if not done or random.random() < 0.3:
        damage = DAMAGES[random.integers(len(DAMAGES))]
        path.write_bytes(damage(path.read_bytes(), random))
        done.append(damage.__name__.strip("_"))
    words = tuple(word.format(path=path) for word in target.words)
    return Case((*words, f"out={folder / 'out'}"), f"{target.table}.{form}: {', '.join(done)}")


def _cell(frame: pd.DataFrame, random: np.random.Generator) -> tuple[int, int]:
    return int(random.integers(max(len(frame), 1))), int(random.integers(max(frame.shape[1], 1)))


def _number(frame: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    if frame.size:
        frame.iloc[_cell(frame, random)] = NUMBERS[random.integers(len(NUMBERS))]
    return frame


def _text(frame: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    if frame.size:
        frame.iloc[_cell(frame, random)] = TEXTS[random.integers(len(TEXTS))]
    return frame


def _null(frame: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    if frame.size:
        frame.iloc[_cell(frame, random)] = None
    return frame


def _whole_column(frame: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    if frame.size:
        values = [NUMBERS[random.integers(len(NUMBERS))], TEXTS[random.integers(len(TEXTS))], None]
        frame.iloc[:, _cell(frame, random)[1]] = values[random.integers(3)]
    return frame


def _without_column(frame: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    return frame.drop(columns=frame.columns[_cell(frame, random)[1]]) if frame.shape[1] else frame


def _renamed(frame: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    names = list(frame.columns)
    if names:
        at = random.integers(len(names))
        names[at] = [TEXTS[random.integers(len(TEXTS))][:50], names[at][:-1], names[at].upper(), names[0]][
            random.integers(4)
        ]
    return frame.set_axis(names, axis=1)


def _without_rows(frame: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    return frame.iloc[: int(random.integers(2))]


def _twice(frame: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    return pd.concat([frame, frame], ignore_index=True)


def _shuffled(frame: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    return frame.iloc[random.permutation(len(frame))]


SPOILERS: list[Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]] = [
    _number,
    _number,
    _text,
    _text,
    _null,
    _whole_column,
    _without_column,
    _renamed,
    _without_rows,
    _twice,
    _shuffled,
]


def _truncated(data: bytes, random: np.random.Generator) -> bytes:
    return data[: int(random.integers(len(data) + 1))]


def _flipped(data: bytes, random: np.random.Generator) -> bytes:
    if not data:
        return data
    at = int(random.integers(len(data)))
    return data[:at] + bytes([data[at] ^ (1 << int(random.integers(8)))]) + data[at + 1 :]


def _longer(data: bytes, random: np.random.Generator) -> bytes:
    return data + random.bytes(int(random.integers(1, 100)))


def _noise(data: bytes, random: np.random.Generator) -> bytes:
    return random.bytes(int(random.integers(0, 2000)))


def _other_encoding(data: bytes, random: np.random.Generator) -> bytes:
    return b"\xff\xfe" + data.decode("latin-1").encode("utf-16-le")


def _zeros(data: bytes, random: np.random.Generator) -> bytes:
    return bytes(len(data))


DAMAGES: list[Callable[[bytes, np.random.Generator], bytes]] = [
    _truncated,
    _flipped,
    _flipped,
    _longer,
    _noise,
    _other_encoding,
    _zeros,
]


def _written(frame: pd.DataFrame, stem: Path, random: np.random.Generator) -> tuple[Path, str]:
    """As CSV, Parquet or Arrow IPC; as CSV where Arrow cannot hold it."""
    form = ["csv", "parquet", "arrow"][random.integers(3)]
    path = stem.with_suffix(f".{form}")
    try:
        table = pa.Table.from_arrays(
            [pa.array(list(frame.iloc[:, at])) for at in range(frame.shape[1])],
            names=[str(name) for name in frame.columns],
        )
    except (pa.ArrowException, UnicodeError, OverflowError):
        form, path = "csv", stem.with_suffix(".csv")
    if form == "csv":
        frame.to_csv(path, index=False, encoding="utf-8")
    elif form == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    return path, form

"""The guide to the input tables and the list of sources in ``traces/``, from the schemas themselves."""

from ecjax.tables.schemas import (
    BOOLEAN,
    BYTES,
    FLOAT,
    ID,
    IDS,
    INPUTS,
    INTEGER,
    MOST_NUMBER,
    MOST_SECONDS,
    STRING,
    TIME,
    Column,
)

KINDS = {
    ID: "integer or string",
    FLOAT: "number",
    INTEGER: "integer",
    STRING: "string",
    BOOLEAN: "true or false",
    TIME: "number of seconds, or timestamp",
    IDS: "list of ids",
    BYTES: "bytes",
}
_ABOUT = {
    "requests": "An access log. One row per chunk access; or, without `node_id`, one per access of a whole file. "
    "Consecutive rows with the same `request_id` are one request.",
    "nodes": "The storage nodes. The service law is given either as moments of a chunk of `reference_bytes` or as the "
    "affine law Delta(B) + Exp(mean Psi(B)) with Delta = delta_s + delta_s_per_byte B, Psi = psi_s + psi_s_per_byte B: "
    "one of the two, complete, for all nodes. Beside the affine law chunks may stall: with `stall_probability` they "
    "take `stall_s` longer.",
    "files": "What is stored and read. A stored chunk has stored_bytes / k bytes, a read moves bytes / d from each of "
    "d chunks; with neither `stored_bytes` nor `d` both are bytes / k.",
    "catalog": "What is stored, for `ecjax analyze catalog=`: a listing of an object store, say, with objects "
    "that nobody has read yet.",
    "network": "What reading over the network costs, by where the reads come from and the node. Of the rows that apply "
    "to a file and a node, the one that names the file's `client_site` counts before one that leaves it empty, and "
    "then one that names the node before one that names its site, and that before one that names neither. Where no row "
    "applies, reading is free; files without a `client_site` take the rows that leave it empty.",
    "rates": "Rates that vary in time: factors on the rates of the files table, 1 where no row applies. Of the rows "
    "that apply to a file, the one that began last counts, of those that began together the last in the table.",
    "outages": "Nodes that are down for a time, in a replay: reads then go to the chunks that survive.",
    "transfers": "Flows over a network. The flows of a coflow share its id and arrival, and need not follow each "
    "other; coflows come in order of arrival, unless `sort=true`. `src` and `dst` are ids of one kind: a machine that "
    "sends and receives has one.",
    "ports": "Machines whose network capacity is not that of all others, in either direction.",
    "delays": "Laws of the delay of a chunk access at a proxy, for `ecjax adapt`: one row per law, or one per law and "
    "operation.",
    "classes": "Requests of a proxy by type and size, for `ecjax adapt`.",
    "edges": "How far nodes are from edge sites, for `ecjax cache`: one row per pair, or without `edge` one per node.",
}
COMMAND = "python traces/make/sample_tables.py"


def guide() -> str:
    """The schema guide, Markdown."""
    parts = [
        "# Input tables",
        f"<!-- Written by `{COMMAND}` from ecjax/tables/schemas.py. -->",
        "Units are SI: seconds, bytes, 1/s, dollars; a column's name carries its unit. A table is a Parquet file or "
        "a folder of them, Arrow IPC (`.arrow`, `.feather`, `.ipc`), CSV (`.csv`, `.csv.gz`), or in Python a pyarrow "
        "Table or a pandas DataFrame. Ids are integers or strings and come back as they came. Extra columns are kept. "
        f"Points in time are at most {MOST_SECONDS:g} s, integers 2^31 - 1, other numbers {MOST_NUMBER:g} and, where "
        f"they must be above 0, at least {1 / MOST_NUMBER:g}. "
        "Each file here is a small example; SOURCES.md says how it was made. What comes out of a job is in RESULTS.md.",
    ]
    for name, columns in INPUTS.items():
        parts.append(f"## {name}\n\n{_ABOUT[name]}\n\n{_table(columns)}")
    parts.append(
        "## Logs of other formats\n\n`ecjax analyze trace=FILE` tells these from their content: a `requests` table, "
        "MSR Cambridge block traces (CSV), CloudPhysics block traces (CSV), libCacheSim's oracleGeneral (binary), and "
        "access logs of object stores, web servers and file systems and public traces (`ecjax guide logs`; a generated "
        "sample of each is in `logs/`, made by `python traces/make/sample_logs.py`). "
        "Block traces need `extent_bytes=`, the size of the extents to take for files. Any other CSV or Parquet log "
        "is read by naming its columns, with the factor to our unit where it differs:\n\n"
        "    ecjax analyze trace=log.csv k=4 "
        "'columns={arrival_s: ts_ms, arrival_s_scale: 0.001, file_id: key, bytes: size, op: method, op_read: [GET], "
        "op_write: [PUT]}'\n\n"
        "`ecjax schedule trace=FILE` also reads Coflow-Benchmark text, and tells it from its content.\n"
    )
    return "\n\n".join(parts)


def _table(columns: tuple[Column, ...]) -> str:
    lines = ["| column | type | unit | needed | allowed | meaning |", "|---|---|---|---|---|---|"]
    for column in columns:
        cells = (
            f"`{column.name}`",
            KINDS[column.kind],
            column.unit,
            "yes" if column.required else "",
            _allowed(column),
            column.meaning,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _allowed(column: Column) -> str:
    limit = "" if column.least is None else f"{'>' if column.above else '>='} {column.least:g}"
    return ", ".join(part for part in (limit, "may be empty" if column.nullable else "") if part)


def sources(descriptions: dict[str, str], logs: dict[str, str]) -> str:
    """The list of sources, Markdown.

    Args:
        descriptions: what each file holds, by file name.
        logs: the same of the access logs.
    """
    parts = [
        "# How these files were made",
        "All are generated, with fixed seeds. The tables by one command in the repository's root:",
        f"    {COMMAND}",
        "\n".join(f"- `{name}`: {text.strip().splitlines()[0]}" for name, text in descriptions.items()),
        "`requests_racks` was simulated on `nodes_racks` in the same way, at a mean load of 0.6, with reads alone.",
        "`requests_chunks` was simulated on `nodes` and `files`: at a mean load of 0.5, each chunk is served in "
        "Delta(B) + Exp(mean Psi(B)) by the law of its node, one at a time in order of arrival; times are rounded to "
        "microseconds.",
        "The access logs in `logs/` are one synthetic hour written as each source would write it, by `python "
        "traces/make/sample_logs.py`. Their layouts are those that vendors and publishers document; no line of theirs "
        "was copied, and names, addresses and numbers are made up.",
        "\n".join(f"- `logs/{name}`: {text}" for name, text in logs.items()),
        "`coflows.txt` is a Coflow-Benchmark trace by `python traces/make/sample_coflows.py`: a hundred shuffles "
        "between 40 racks, with the shares of short, long, narrow and wide ones that are published of Facebook's trace "
        "(60, 16, 12 and 12 % of the coflows; 0.01, 0.11, 0.88 and 99 % of the bytes) and its load. No line of that "
        "trace is in it.",
        "`histograms/` is by `python traces/make/sample_histograms.py`, `ceph/` is what `sample()` "
        "of `traces/make/ceph_dumps.py` makes, a cluster that does not exist.",
    ]
    return "\n\n".join(parts) + "\n"

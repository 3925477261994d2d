"""Whether a folder of results holds what was written, by the hashes of all its files, and nothing else."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ecjax.errors import UserError
from ecjax.tables import datasets as layout
from ecjax.tables import seals
from ecjax.tables.checksums import CHECKSUMS, changed_files
from ecjax.tables.committed import Committed, committed_in, counting, is_named_by_its_rows, runs_by_batch
from ecjax.tables.damage import difference, is_batch_name
from ecjax.tables.folder import each, is_visible, location
from ecjax.tables.formats import user_errors
from ecjax.tables.result_schemas import RUNS, SCHEMA_VERSION
from ecjax.tables.seals import Contents
from ecjax.tables.sources import Source, sources_of

_INPUTS = "inputs"
_COLUMNS = ["run_id", "batch_id", "batch_runs", "status", "batch_files", "input_files"]


class Finding(NamedTuple):
    """A file that is not as it was written.

    Attributes:
        file: path under the folder that was verified.
        what: is wrong with it.
        cure: what to do.
    """

    file: str
    what: str
    cure: str


@dataclass
class Verified:
    """What came of verifying a folder.

    Attributes:
        files: sizes in bytes of the files of each dataset.
        findings: what is wrong.
        sources: inputs that runs name, and whether they are still the same.
    """

    files: dict[str, list[int]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    sources: dict[Source, str] = field(default_factory=dict)


def verify(out: str | Path) -> Verified:
    """Read every file of the results in a folder, and in the folders of results in it, and compare hashes.

    Raises:
        UserError: there is no such folder, it holds no results, or those of an earlier version, which had no hashes.
    """
    place = location(out)
    with user_errors(f"out={out}"):
        if not place.is_dir():
            raise UserError(f"out={out}: no such folder")
        folders = [folder for folder in (place, *_subfolders(place)) if (folder / RUNS).is_dir()]
    if not folders:
        raise UserError(f"out={out}: holds no results of ecjax; allowed: the out= folder of a job")
    verified = Verified()
    for one in folders:
        _Folder(one, "" if one == place else f"{one.name}/", verified).check()
    return verified


def _subfolders(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))


class _Folder:
    """One folder of results.

    Args:
        out: the folder.
        prefix: of the names of its files.
        verified: findings are added to it.
    """

    def __init__(self, out: Path, prefix: str, verified: Verified) -> None:
        self._out, self._prefix, self._verified = out, prefix, verified
        again = f"the same ecjax {_job(out)} command with out={out}"
        self._recompute = f"{again} computes it anew"
        self._remove = f"remove it; {self._recompute}"
        self._tidy = f"{again} takes it away"

    def _say(self, path: Path, what: str, cure: str) -> None:
        name = f"{self._prefix}{path.relative_to(self._out)}"
        self._verified.findings.append(Finding(name, what, cure))

    def check(self) -> None:
        """Check all files."""
        committed = self._runs()
        valid = {batch: set(runs) for batch, runs in runs_by_batch(committed).items()}
        expected: dict[str, set[Contents]] = {}
        for row in committed.values():
            for place, contents in row.files().items():
                expected.setdefault(place, set()).add(contents)
        present = set()
        for dataset, files in self._datasets(expected):
            for path, wrong in zip(files, each(self._wrong, files, self._out), strict=True):
                place = f"{dataset}/{path.name}"
                present.add(place)
                self._count(dataset, path)
                if place in expected:
                    self._check_expected(path, wrong, expected[place], valid.get(path.stem))
                else:
                    self._check_other(path, wrong, dataset)
        for place in sorted(set(expected) - present):
            self._say(self._out / place, "is missing", self._recompute)
        for above in sorted(path for path in self._out.iterdir() if not path.suffix and path.is_dir()):
            for folder in sorted(path for path in above.iterdir() if not path.suffix and path.is_dir()):
                if (folder / CHECKSUMS).exists():
                    self._check_listed(folder)

    def _check_listed(self, folder: Path) -> None:
        """Files of text, whose hashes stand beside them."""
        name = str(folder.relative_to(self._out).parent)
        for file, wrong in changed_files(folder).items():
            path = folder / file
            sizes = self._verified.files.setdefault(f"{self._prefix}{name}", [])
            sizes.append(path.stat().st_size if path.is_file() else 0)
            if wrong is not None:
                self._say(path, wrong, self._recompute)

    def _count(self, dataset: str, path: Path) -> None:
        self._verified.files.setdefault(f"{self._prefix}{dataset}", []).append(path.stat().st_size)

    def _wrong(self, path: Path) -> str | None:
        """What is wrong with the bytes of a file."""
        with user_errors(path):
            return seals.sealed_content(path)[1]

    def _runs(self) -> dict[str, Committed]:
        """The committed runs whose files are whole."""
        tables = []
        files = _visible(self._out / RUNS)
        for path, wrong in zip(files, each(self._wrong, files, self._out), strict=True):
            self._count(RUNS, path)
            if wrong:
                self._check_other(path, wrong, RUNS)
                continue
            rows = layout.read_file(path, _COLUMNS)
            if not is_named_by_its_rows(path, rows):
                self._say(path, "is a copy of the file of another run, or of other runs", "remove it")
                continue
            tables.append((path, rows))
        counted_files = counting(tables)
        for file in counted_files:
            if file.superseded:
                self._say(file.path, "has rows of runs that were committed anew since", self._tidy)
            for text in set(file.rows.column("input_files").to_pylist()):
                for source in sources_of(text):
                    if source not in self._verified.sources:
                        self._verified.sources[source] = source.state()
        return committed_in(counted_files)

    def _datasets(self, expected: Mapping[str, object]) -> Iterator[tuple[str, list[Path]]]:
        """Names and files of the datasets apart from ``runs``; folders without a file of ecjax are none."""
        named = {place.rpartition("/")[0] for place in expected}
        inputs = _subfolders(self._out / _INPUTS) if (self._out / _INPUTS).is_dir() else []
        for folder in (*_subfolders(self._out), *inputs):
            name = str(folder.relative_to(self._out))
            if name in (RUNS, _INPUTS) or (folder / RUNS).is_dir():
                continue
            files = _visible(folder)
            if name in named or any(map(seals.carries_hash, files)):
                yield name, files

    def _check_expected(
        self, path: Path, wrong: str | None, expected: set[Contents], runs: set[str] | None
    ) -> None:
        """Check a file that runs name."""
        if wrong:
            self._say(path, f"is damaged: {wrong}", self._remove)
        elif any(difference(path, contents) for contents in expected):
            self._say(path, "is another file than its runs say", self._remove)
        elif runs is not None and not set(layout.file_run_ids(path)) <= runs:
            self._say(path, "has rows of runs that were not committed", self._tidy)

    def _check_other(self, path: Path, wrong: str | None, dataset: str) -> None:
        """Check a file that no run names."""
        if wrong == seals.NO_HASH:
            self._refuse_earlier(path)
        if path.suffix != ".parquet" or (wrong == seals.NO_HASH and layout.is_foreign(path)):
            self._say(path, "was not written by ecjax", "remove it")
        elif wrong:
            self._say(path, f"is damaged: {wrong}", self._remove)
        elif dataset.startswith(_INPUTS):
            ids = layout.read_file(path, ["input_id"]).column("input_id").unique().to_pylist()
            if ids not in ([], [path.stem]):
                self._say(path, "is a copy of another input", "remove it")
        elif is_batch_name(path):
            self._say(path, "has rows of runs that were not committed", self._tidy)
        else:
            self._say(path, "is a copy of the file of a batch", "remove it")

    def _refuse_earlier(self, path: Path) -> None:
        try:
            version = layout.schema_version(layout.file_schema(path))
        except UserError:
            return
        if version is not None and version.isdecimal() and int(version) < SCHEMA_VERSION:
            raise UserError(
                f"out={self._out}: is of schema version {version}, whose files carry no hashes; "
                f"allowed: version {SCHEMA_VERSION}"
            )


def _job(out: Path) -> str:
    """The job whose results a folder holds, as far as a file says it."""
    for path in layout.dataset_files(out, RUNS):
        try:
            return layout.schema_job(layout.checked_schema(path)) or "JOB"
        except UserError:
            continue
    return "JOB"


def _visible(folder: Path) -> list[Path]:
    """The files of a folder that readers of it take for its tables."""
    return sorted(f for f in folder.iterdir() if is_visible(f) and not f.is_dir())

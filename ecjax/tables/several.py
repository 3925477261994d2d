"""Several files that are one log, used as a folder of them is."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ecjax.errors import UserError


class Several:
    """Files of a log wherever they lie, with the part of ``pathlib.Path`` that ecjax uses of a folder.

    Attributes:
        files: in the order of their names.
        folders: those that some of the files were found in as a whole.
        address: what finds them again from anywhere on this machine.
        base: the folder that all of them are in; their names relative to it are those of the log.

    Args:
        pattern: as it was given.
        address: see above.
        files: two or more, all in one form: relative without "..", absolute, or in one object store.
        folders: see above.

    Raises:
        UserError: they lie in different stores.
    """

    def __init__(self, pattern: str, address: str, files: Sequence[Path], folders: Sequence[Path]) -> None:
        self._pattern, self.address = pattern, address
        self.files, self.folders = sorted(files), tuple(folders)
        common = _above(self.files[0])
        for file in self.files[1:]:
            above = set(_above(file))
            common = [place for place in common if place in above]
        if not common:
            raise UserError(f"{self}: found files in different stores; allowed: files in one of them")
        self.base = common[0]

    def __str__(self) -> str:
        if "{" not in self._pattern:
            return self._pattern
        more = len(self.files) - 1
        return f"{self.files[0]} and {more} more file{'s' if more > 1 else ''}"

    def __repr__(self) -> str:
        return f"Several({str(self)!r})"

    def __truediv__(self, name: str) -> Path:
        """A path that leads nowhere: nothing has a place of its own below several files."""
        return Path(str(self)) / name

    @property
    def name(self) -> str:
        """Last part of the pattern."""
        return Path(str(self)).name

    def exists(self) -> bool:
        """They did when they were found."""
        return True

    def is_dir(self) -> bool:
        """As a folder of them would say."""
        return True

    def is_file(self) -> bool:
        """As a folder of them would say."""
        return False

    def iterdir(self) -> Iterator[Path]:
        """The files."""
        yield from self.files


def _above(file: Path) -> list[Path]:
    """The folders that a file is in, the nearest first."""
    places = [file.parent]
    while places[-1].name:
        places.append(places[-1].parent)
    return places


def base_of(log: Path) -> Path:
    """The folder to which names of the files of a log are relative."""
    if isinstance(log, Several):
        return log.base
    return log if log.is_dir() else log.parent

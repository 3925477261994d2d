"""What becomes of the claims of a paper at size=small: minutes, and once for all tests."""

import pytest

from ecjax import cli
from ecjax.tables.results import read_results


@pytest.fixture(scope="session")
def reproduced(tmp_path_factory):
    """Exit code and dataset ``claims`` of ``ecjax reproduce PAPER``, by its name."""
    done = {}

    def claims(name):
        if name not in done:
            out = tmp_path_factory.mktemp(name)
            code = cli.main(["reproduce", name, f"out={out}", "--quiet"])
            done[name] = code, read_results(out, "claims")
        return done[name]

    return claims

"""The words of studies, at both sizes, are ones that their jobs allow: the large ones take longer than tests do."""

import pytest

from ecjax.hydra_run import options_of_words
from ecjax.options import checked
from ecjax.studies.reproduce.claims import paper
from ecjax.studies.reproduce.options import PAPERS


@pytest.mark.parametrize("size", ["small", "full"])
@pytest.mark.parametrize("name", PAPERS)
def test_words_of_studies_are_allowed(name, size):
    for study in paper(name).studies:
        words = [*study.sized(size), *(["plan=results/plans"] if study.replays else [])]
        options = options_of_words(study.job, words)
        assert checked(options) == options, study.name

"""The words of studies, at both sizes, are ones that their jobs allow: the large ones take longer than tests do."""

import pytest

from ecjax import composing, hydra_run
from ecjax.jobs_index import JOBS
from ecjax.options import checked
from ecjax.studies.reproduce.options import PAPERS
from ecjax.studies.reproduce.study import paper


@pytest.mark.parametrize("size", ["small", "full"])
@pytest.mark.parametrize("name", PAPERS)
def test_words_of_studies_are_allowed(name, size):
    for study in paper(name).studies:
        job = JOBS[study.job]
        words = [*study.sized(size), *(["plan=results/plans"] if study.replays else [])]
        options = hydra_run.options_from(composing.composed(job, words), job.options_class)
        assert checked(options) == options, study.name

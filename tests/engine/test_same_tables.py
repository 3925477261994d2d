"""The same tables from this process, from Ray on this machine and from a cluster of three nodes, for every job."""

from pathlib import Path

import pytest
from engines import same_tables

from ecjax import composing
from ecjax.jobs_index import JOBS

pytest.importorskip("ray")

TRACES = Path(__file__).parents[2] / "traces"
SMALL = "cluster.files=12 cluster.nodes_per_site=2 figures=[]"
READS = "generate.requests=30 generate.servers=10 generate.clients=5 n=5 k=3 figures=[]"
STUDIES = {
    "schedule": f"{READS} seeds=2 scheduler=[dtarget,varys,fifo] sources=[random,smallest_load]",
    "schedule a trace": f"trace={TRACES / 'transfers.csv'} scheduler=[dtarget,fair] figures=[]",
    "optimize": f"{SMALL} theta=[3,10,30] k=[3,4] method=[published,certified]",
    "replay": "planning.cluster.files=12 planning.theta=[10] planning.figures=[] requests=3000 replications=2"
    " policy=[probabilistic,fork_join] rate_scale=[0.7,1.0] figures=[]",
    "adapt": "requests=3000 load=[0.1,0.8] strategy=[static,best_static,tofec] codes=[[1,1],[4,2]] figures=[]",
    "adapt steps": "steps=[[0,20],[20,60],[40,0]] strategy=[greedy,replication] seeds=2 figures=[]",
    "cache": "reads=3000 items=60 capacity=[30,90] policy=[samplex,agar,lru,exact] jitter=0.2 seeds=2 figures=[]",
    "cache sampling": "partitions=[1,8] capacity=12 k=3 items=20 rounds=4 figures=[]",
    "analyze": f"{TRACES / 'requests_chunks.parquet'} figures=false",
    "analyze objects": f"{TRACES / 'requests_objects.parquet'} figures=false",
}


def study(name, out, *words):
    """Run a study in this process, as its command would."""
    job = JOBS[name.split()[0]]
    module = composing.load_job(job)
    given = [*STUDIES[name].split(), f"out={out}", *words]
    bare = [word for word in given if "=" not in word]
    named = (module.bare_words(bare) if bare else []) + [word for word in given if "=" in word]
    return module.run(composing.composed(job, named))


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """Folder of a study's results without Ray; each study once."""
    done = {}

    def folder(name):
        if name not in done:
            done[name] = tmp_path_factory.mktemp("serial")
            assert study(name, done[name]) == 0
        return done[name]

    return folder


# Ray is started for each; a study of transfers is compared in test_ray_faults.py, too
QUICK = ("analyze",)
EACH = [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in STUDIES]


@pytest.mark.parametrize("name", EACH)
def test_on_this_machine(serial, tmp_path, workers_compute_alike, name):
    """In a session of its own: before this process joins the cluster, whose workers would be taken."""
    assert study(name, tmp_path, "engine=ray", "engine.actors=2") == 0
    same_tables(serial(name), tmp_path, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(STUDIES))
def test_on_three_nodes(joined, serial, tmp_path, name):
    assert study(name, tmp_path, "engine=ray") == 0
    same_tables(serial(name), tmp_path, rtol=1e-12)

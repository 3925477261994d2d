"""Columns of the result datasets of ``ecjax codes``, with units. Imports nothing heavy."""

from ecjax.tables.result_schemas import job_tables
from ecjax.tables.schemas import BOOLEAN, FLOAT, INTEGER, STRING, Column

BUSIEST = 0.9  # load of a node that repairs leave it at: faster ones give way to reads
_STATES = {
    "healthy": "with all nodes up",
    "down": "with busiest_node down, or its domain",
    "slow": "with busiest_node, or its site, slower, which the plan does not avoid",
    "repairing": "while a disk is repaired",
}
_LATENCIES = tuple(
    Column(f"{kind}{state}_{what}_s", FLOAT, "s", f"{words} of {reads} reads, {when}")
    for kind, reads in (("", "full"), ("small_", "small"))
    for state, when in _STATES.items()
    for what, words in (("mean", "expected mean"), ("p99", "expected 99 % quantile"))
)

TABLES = job_tables(
    "codes",
    runs=(
        Column("domain_count", INTEGER, "", "failure domains: hosts or racks"),
        Column("disk_count", INTEGER, "", "disks of all domains"),
        Column("group_count", INTEGER, "", "placement groups"),
        Column("user_bytes", FLOAT, "B", "data to keep, without what codes add"),
        Column(
            "durability_nines", FLOAT, "", "nines of an object per year that the recommended code must have"
        ),
        Column("max_any_loss", FLOAT, "", "probability per year of any loss that it may have; null: any"),
        Column("max_p99_s", FLOAT, "s", "99 % quantile with a node down that it may have; null: any"),
        Column("input_id", STRING, "", "fingerprint of nodes, files and code_table; null: none is read"),
        Column("code_count", INTEGER, "", "candidates"),
        Column("class_count", INTEGER, "", "classes of files that codes are chosen for; null: all have one"),
        Column("recommended_code", STRING, "", "null: no candidate is durable enough"),
        Column(
            "recommended_combination",
            STRING,
            "",
            "JSON: code of each class; null: no classes, or none is",
        ),
    ),
    codes=(
        Column(
            "code",
            STRING,
            "",
            "k+m, lrc(k,l,g), clay(k,m,d), xorbas(k,parities,locality), copies as 3x, or a name of code_table",
        ),
        Column("k", INTEGER, "", "data chunks of a group"),
        Column("n", INTEGER, "", "all chunks of a group"),
        Column("overhead", FLOAT, "", "raw bytes / user bytes, n / k"),
        Column("raw_bytes", FLOAT, "B", "used on all disks"),
        Column("dollars_per_period", FLOAT, "$/period", "for raw_bytes, 30 days"),
        Column("chunks_per_domain", INTEGER, "", "most chunks of a group in one domain"),
        Column("object_loss_probability", FLOAT, "", "that a given object is lost within a year"),
        Column(
            "nines",
            FLOAT,
            "",
            "-log10 of the losses of an object per year; 323: so many or more; null: repair_load is too high",
        ),
        Column("domain_loss_share", FLOAT, "", "share of these losses in which a whole domain is lost"),
        Column("any_group_loss_probability", FLOAT, "", "that at least one group is lost within a year"),
        Column("latent_loss_probability", FLOAT, "", "that latent errors take a stripe during a repair"),
        Column("any_loss_probability", FLOAT, "", "that either happens within a year"),
        Column("any_loss_nines", FLOAT, "", "-log10 of such losses per year"),
        Column(
            "unavailable_per_year",
            FLOAT,
            "1/year",
            "times that an object cannot be read, with planned outages; null: none are planned, codes other than k+m "
            "and copies, or a domain with several chunks",
        ),
        Column(
            "repair_s", FLOAT, "s", "mean time until a group that lost a chunk is whole again, with detection"
        ),
        Column(
            "disk_repair_s",
            FLOAT,
            "s",
            "time until all groups of a lost disk are whole again, with detection",
        ),
        Column("repair_bytes_per_day", FLOAT, "B", "read and written for repairs"),
        Column("repair_load", FLOAT, "", "share of the time in which a lost disk is under repair"),
        Column("domain_repair_load", FLOAT, "", "share of it in which a lost domain is"),
        Column(
            "repair_pace",
            FLOAT,
            "",
            f"share of the bandwidth for repairs that they take, so that no node is above a load of {BUSIEST:g}; nines "
            "and times of repair are at this pace; 0: reads leave none, or too little to catch up, and they are "
            "without reads; null: they are, too, as no reads are known, or more than the nodes serve",
        ),
        Column("nines_double_afr", FLOAT, "", "nines if disks fail twice as often"),
        Column("nines_double_domain_losses", FLOAT, "", "nines if domains are lost twice as often"),
        Column("nines_double_repair", FLOAT, "", "nines if every repair takes twice as long"),
        Column(
            "durable",
            BOOLEAN,
            "",
            "whether durability_nines and max_any_loss, and max_p99_s if set, are kept, and nothing is overloaded",
        ),
        Column(
            "status",
            STRING,
            "",
            "ok; unstable: repairs queue, or reads overload a node or leave nothing for repairs; infeasible: too few "
            "nodes for its chunks",
        ),
        Column("error", STRING, "", "why its status is not ok"),
        *_LATENCIES,
        Column("max_load", FLOAT, "", "largest load of a node, all up and nothing under repair"),
        Column("busiest_node", STRING, "", "the node that has it"),
        Column("busiest_site", STRING, "", "its site, all of which is down or slow; null: the node alone is"),
        Column(
            "gap",
            FLOAT,
            "",
            "of the plan: (bound on mean latency - lower bound) / lower bound; of many file sizes, as if all had one",
        ),
        Column(
            "pareto",
            BOOLEAN,
            "",
            "no other is at least as good in overhead, any loss, repair traffic and, if estimated, down_p99_s",
        ),
    ),
    class_codes=(
        Column("service_class", STRING, "", "class of files, as classes= makes them"),
        Column("code", STRING, "", "candidate"),
        Column("file_count", INTEGER, "", "files of the class"),
        Column("bytes_share", FLOAT, "", "its share of the bytes"),
        Column("read_share", FLOAT, "", "its share of the reads"),
        Column("overhead", FLOAT, "", "raw bytes / user bytes, n / k"),
        Column("dollars_per_period", FLOAT, "$/period", "for the raw bytes of the class, 30 days"),
        Column("nines", FLOAT, "", "-log10 of the losses of an object per year"),
        Column("load", FLOAT, "", "mean load of the nodes by its full reads"),
        Column("healthy_mean_s", FLOAT, "s", "expected mean of its full reads, all files being in this code"),
        Column("healthy_p99_s", FLOAT, "s", "expected 99 % quantile of them"),
        Column("down_mean_s", FLOAT, "s", "the mean with busiest_node down, or its domain"),
        Column("down_p99_s", FLOAT, "s", "the 99 % quantile then"),
        Column(
            "small_healthy_mean_s",
            FLOAT,
            "s",
            "expected mean of its small reads, or of reads of small_bytes where no file has any; null: other classes "
            "have some",
        ),
        Column("small_healthy_p99_s", FLOAT, "s", "expected 99 % quantile of them"),
        Column("small_down_mean_s", FLOAT, "s", "the mean with busiest_node down, or its domain"),
        Column("small_down_p99_s", FLOAT, "s", "the 99 % quantile then"),
        Column("status", STRING, "", "that of the candidate"),
    ),
    combinations=(
        Column("codes", STRING, "", "JSON: the code of each class of files"),
        Column("overhead", FLOAT, "", "raw bytes / user bytes of all classes"),
        Column("dollars_per_period", FLOAT, "$/period", "for the raw bytes of all classes, 30 days"),
        Column("nines", FLOAT, "", "of an object per year, in the class where these are least"),
        Column(
            "any_loss_probability",
            FLOAT,
            "",
            "that anything is lost within a year: codes by their shares of the bytes",
        ),
        Column(
            "repair_bytes_per_day", FLOAT, "B", "read and written for repairs: codes by shares of the bytes"
        ),
        Column("repair_pace", FLOAT, "", "as in codes"),
        Column(
            "durable",
            BOOLEAN,
            "",
            "whether durability_nines and max_any_loss, and max_p99_s if set, are kept",
        ),
        Column("status", STRING, "", "as in codes"),
        Column("error", STRING, "", "why its status is not ok"),
        *_LATENCIES,
        Column("class_healthy_mean_s", STRING, "", "JSON: expected mean of full reads of each class, s"),
        Column("class_healthy_p99_s", STRING, "", "JSON: expected 99 % quantile of them, s"),
        Column("class_down_mean_s", STRING, "", "JSON: the mean with busiest_node down, or its domain, s"),
        Column("class_down_p99_s", STRING, "", "JSON: the 99 % quantile then, s"),
        Column("class_small_healthy_mean_s", STRING, "", "JSON: the same of small reads"),
        Column("class_small_healthy_p99_s", STRING, "", "JSON: the 99 % quantile of these, s"),
        Column(
            "class_small_down_mean_s", STRING, "", "JSON: their mean with busiest_node down, or its domain, s"
        ),
        Column("class_small_down_p99_s", STRING, "", "JSON: the 99 % quantile then, s"),
        Column("max_load", FLOAT, "", "largest load of a node, all up and nothing under repair"),
        Column("busiest_node", STRING, "", "the node that has it"),
        Column("busiest_site", STRING, "", "its site, all of which is down or slow; null: the node alone is"),
        Column("gap", FLOAT, "", "of the plan of all classes together, as in codes"),
        Column(
            "pareto",
            BOOLEAN,
            "",
            "no other that was planned is at least as good in dollars and healthy_mean_s",
        ),
        Column("recommended", BOOLEAN, "", "least dollars of those that keep max_p99_s; without it the knee"),
    ),
)

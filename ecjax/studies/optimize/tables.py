"""Columns of the result datasets of ``ecjax optimize``, with units. Imports nothing heavy."""

from ecjax.tables.result_schemas import INPUT_ID, TRACE_ESTIMATED, job_tables
from ecjax.tables.schemas import BOOLEAN, BYTES, FLOAT, ID, IDS, INTEGER, STRING, Column

TABLES = job_tables(
    "optimize",
    runs=(
        INPUT_ID,
        Column("method", STRING, "", "algorithm or baseline"),
        Column("queue", STRING, "", "how nodes serve: fcfs, priority, weighted"),
        Column("importance", STRING, "", "JSON: what a second of each class counts (C_k), by service class"),
        Column("class_rate_scale", STRING, "", "JSON: what the rates of each class were multiplied by"),
        Column(
            "code", STRING, "", "of codes=, which every file has with so many chunks or more; null: not set"
        ),
        Column(
            "durability_nines", FLOAT, "", "nines of an object per year that floors keep; null: not asked for"
        ),
        Column("max_any_loss", FLOAT, "", "probability per year of any loss that floors keep; null: any"),
        Column(
            "floor_nines",
            FLOAT,
            "",
            "nines of the least durable floor (dataset floors); null: none asked for",
        ),
        Column("k", INTEGER, "", "what k of every file was set to; null where the files keep theirs"),
        Column("d", INTEGER, "", "chunks that a read takes, where it was set for every file"),
        Column("what_if", STRING, "", "what would be otherwise (what_if=); null: the tables as they are"),
        Column(
            "theta",
            FLOAT,
            "s/$",
            "latency worth a dollar (theta_per): objective = latency_shared_z_s + theta x cost",
        ),
        Column(
            "theta_per",
            STRING,
            "",
            "file: theta multiplies cost / files, the mean of all; total: the whole cost",
        ),
        Column("rate_scale", FLOAT, "", "rates were multiplied by this"),
        Column("size_scale", FLOAT, "", "bytes were multiplied by this"),
        Column("file_count", INTEGER, "", "files planned"),
        Column("node_count", INTEGER, "", "nodes"),
        Column("objective", FLOAT, "s", "latency_shared_z_s, or what objective= says, + theta * cost"),
        Column("latency_s", FLOAT, "s", "mean latency bound, one z per file, weighted by read rates"),
        Column(
            "latency_shared_z_s", FLOAT, "s", "mean latency bound with one z for all files, or one per class"
        ),
        Column(
            "latency_rate_error_s",
            FLOAT,
            "s",
            "standard error of latency_s by that of the files' rates; null where these have none; "
            "none with a queue by class, objective=trace, small reads or stream",
        ),
        Column(
            "cost_rate_error_dollars",
            FLOAT,
            "$/period",
            "the same of cost_dollars_per_period, for a period as that is: reads have a part in it",
        ),
        Column(
            "latency_low_s",
            FLOAT,
            "s",
            "latency_s of this plan with the least moments of service; null where these are no intervals; "
            "none with a queue by class, objective=trace, small reads or stream",
        ),
        Column("latency_high_s", FLOAT, "s", "the same with the largest; null where they overload a node"),
        Column(
            "service_second_ratio",
            FLOAT,
            "",
            "second moment of the services that an analysis measured over that of the affine law it gives, of the node "
            "where they are furthest apart; null for other nodes; "
            "none with a queue by class, objective=trace, small reads or stream",
        ),
        Column("class_latency_s", STRING, "", "JSON: latency_s of each service class, queues by class"),
        Column(
            "z_s",
            FLOAT,
            "s",
            "the shared z, -inf where all reads take one chunk; null where classes have their own",
            infinite=True,
        ),
        Column("latency_polished_s", FLOAT, "s", "latency_s with reads rescheduled for one z per file"),
        Column(
            "estimated_mean_s",
            FLOAT,
            "s",
            "expected mean latency of reads, Poisson arrivals; by class to 1024 files",
        ),
        Column("estimated_p99_s", FLOAT, "s", "expected 99 % quantile: the same"),
        Column(
            "estimated_mean_rate_error_s",
            FLOAT,
            "s",
            "standard error of estimated_mean_s by that of the files' rates; null where these have none",
        ),
        Column("estimated_p99_rate_error_s", FLOAT, "s", "the same of estimated_p99_s"),
        Column(
            "estimated_mean_low_s",
            FLOAT,
            "s",
            "estimated_mean_s with the least moments of service; null where these are no intervals",
        ),
        Column(
            "estimated_mean_high_s", FLOAT, "s", "the same with the largest; null where they overload a node"
        ),
        Column("estimated_p99_low_s", FLOAT, "s", "estimated_p99_s with the least moments of service"),
        Column("estimated_p99_high_s", FLOAT, "s", "the same with the largest"),
        *TRACE_ESTIMATED,
        Column(
            "trace_wait_s",
            FLOAT,
            "s",
            "objective=trace: mean wait of a chunk under the arrivals of the log (J of the smoothed Lindley recursion)",
        ),
        Column("blind_wait_s", FLOAT, "s", "the same of a plan that balances mean loads, n = k or the floor"),
        Column(
            "spread_wait_s", FLOAT, "s", "the same with all reads spread over all nodes: the least possible"
        ),
        Column("steady_wait_s", FLOAT, "s", "that, if everything arrived at constant rates"),
        Column(
            "trace_bound_s",
            FLOAT,
            "s",
            "trace_form=order_statistics or excess: bound on the mean latency of requests of the log, by them",
        ),
        Column(
            "trace_z_s", FLOAT, "s", "its z, which all reads share; lower_bound holds for plans at this z"
        ),
        Column(
            "bursts",
            STRING,
            "",
            "objective=trace: bursts are common to all files (placement cannot help), of single ones (it pays); none; "
            "null: one file is read, or files placed together",
        ),
        Column("small_latency_s", FLOAT, "s", "mean latency bound of small reads; null: files have none"),
        Column("small_estimated_mean_s", FLOAT, "s", "their expected mean, Poisson arrivals"),
        Column("small_degraded_share", FLOAT, "", "share of them that is decoded from k chunks"),
        Column(
            "direct_latency_s",
            FLOAT,
            "s",
            "latency_shared_z_s with all small reads direct, full reads spread for that; null: a node is overloaded",
        ),
        Column(
            "cost_dollars_per_period",
            FLOAT,
            "$/period",
            "storage cost of the plan, all files; here and elsewhere with what reads cost by network=, and "
            "moving_dollars, which are paid once",
        ),
        Column(
            "moving_dollars",
            FLOAT,
            "$",
            "of that, what moving chunks costs, once, by migration_dollars_per_byte; null without it",
        ),
        Column("lower_bound", FLOAT, "s", "no plan has a smaller objective; null where it is not known"),
        Column("gap", FLOAT, "", "(objective - lower_bound) / lower_bound"),
        Column(
            "gap_nearby",
            FLOAT,
            "",
            "the same gap to plans whose nodes keep mean wait and mix of chunk sizes within 10 %; null: not needed",
        ),
        Column(
            "scheduling_gap",
            FLOAT,
            "",
            "by class, or with small reads: a better spread of reads on this placement gains at most this, relatively: "
            "by class at the plan's z and shares of the nodes, with small reads at any z and over their kinds; "
            "null: no proof",
        ),
        Column("deadlines_met", BOOLEAN, "", "whether every class keeps its deadline; null without one"),
        Column("max_load", FLOAT, "", "largest node load rho"),
        Column("mean_n", FLOAT, "", "mean code length"),
        Column("mean_n_by_class", STRING, "", "JSON: mean code length by service class, else by k"),
        Column("files_without_redundancy", INTEGER, "", "files with n = k: the loss of any node loses them"),
        Column("iterations", INTEGER, "", "iterations done; of the certified method, passes over the files"),
        Column(
            "scenarios_mean_latency_s",
            FLOAT,
            "s",
            "mean of latency_s over the failure scenarios; inf where a node is overloaded in one",
            infinite=True,
        ),
        Column("worst_scenario", STRING, "", "node or site whose failure is worst"),
        Column(
            "worst_scenario_latency_s",
            FLOAT,
            "s",
            "latency_s in that scenario; inf where a node is overloaded",
            infinite=True,
        ),
        Column(
            "worst_unavailable_share", FLOAT, "", "largest share of reads without enough surviving chunks"
        ),
        Column("cold_start_objective", FLOAT, "s", "objective of the same run without plan="),
        Column("moved_chunks", INTEGER, "", "chunks put where plan= had none, of files that it knew"),
        Column("compile_s", FLOAT, "s", "compilation of its batch / runs"),
    ),
    placements=(
        Column("file_id", ID, "", "file; null where the row is a group's"),
        Column("group", ID, "", "group of files that share the placement; null otherwise"),
        Column("node_id", ID, "", "node that keeps a chunk"),
        Column("probability", FLOAT, "", "share of reads that use the node; 0 for a cold chunk"),
        Column("chunks", INTEGER, "", "chunks kept there"),
        Column(
            "data_chunk", INTEGER, "", "number of the data chunk kept there; null: another, or no small reads"
        ),
    ),
    read_kinds=(
        Column("file_id", ID, "", "file; null where the row is a group's"),
        Column("group", ID, "", "group of files that share the placement; null otherwise"),
        Column("data_chunk", INTEGER, "", "number of the data chunk that these small reads begin in"),
        Column("chunk_node_id", ID, "", "node that keeps it"),
        Column("width", INTEGER, "", "data chunks that they are of; above 1 by stripe_unit_bytes"),
        Column("bytes", FLOAT, "B", "what each of these has of them"),
        Column("rate_per_s", FLOAT, "1/s", "of both kinds together"),
        Column("kind", STRING, "", "direct, or degraded: decoded from the same bytes of k chunks"),
        Column("share", FLOAT, "", "of the reads that are of this kind"),
        Column("latency_s", FLOAT, "s", "bound on their mean; of direct reads of one chunk the mean itself"),
        Column("node_id", ID, "", "node that reads of this kind use"),
        Column("probability", FLOAT, "", "share of the reads of this kind that use it"),
    ),
    node_loads=(
        Column("node_id", ID, "", "node"),
        Column("load", FLOAT, "", "rho: share of time that it serves, reads and background"),
        Column("read_share", FLOAT, "", "its share of all chunk reads"),
        Column("chunks", INTEGER, "", "chunks that it keeps"),
        Column("bytes_stored", FLOAT, "B", "bytes of those chunks"),
        Column("cost_dollars_per_period", FLOAT, "$/period", "what they cost"),
    ),
    class_weights=(
        Column("service_class", STRING, "", "service class"),
        Column("node_id", ID, "", "node"),
        Column("weight", FLOAT, "", "share of the node that serves the class; a node's sum to 1"),
    ),
    class_plans=(
        Column("service_class", STRING, "", "service class"),
        Column("file_count", INTEGER, "", "its files"),
        Column("rate_per_s", FLOAT, "1/s", "their reads"),
        Column("importance", FLOAT, "", "what a second of its latency counts (C_k)"),
        Column("latency_s", FLOAT, "s", "mean latency bound of its reads, one z per file"),
        Column("latency_shared_z_s", FLOAT, "s", "the same with one z for the class: what is planned for"),
        Column("z_s", FLOAT, "s", "that z; null where its reads take one chunk", infinite=True),
        Column(
            "estimated_mean_s", FLOAT, "s", "mean latency without simulation, where deadlines are kept by it"
        ),
        Column("deadline_s", FLOAT, "s", "mean latency that was promised"),
        Column("late_s", FLOAT, "s", "by how much the deadline is missed; 0 where it is kept"),
        Column(
            "scheduling_gap",
            FLOAT,
            "",
            "as in runs, at the plan's z and shares of the nodes, the reads of this class alone",
        ),
        Column("max_load", FLOAT, "", "largest load that it puts on its share of a node"),
        Column("cost_dollars_per_period", FLOAT, "$/period", "storage cost of its files"),
        Column("mean_n", FLOAT, "", "mean code length of its files"),
    ),
    group_plans=(
        Column("group", ID, "", "group of files that share the placement"),
        Column("file_count", INTEGER, "", "its files"),
        Column("k", INTEGER, "", "chunks that rebuild a file"),
        Column("n", INTEGER, "", "code length"),
        Column("nodes", IDS, "", "nodes that keep a chunk of every file, the most read first"),
        Column("read_shares", STRING, "", "JSON: share of reads that use each node; together k, or d"),
        Column("latency_s", FLOAT, "s", "latency bound with one z per file, weighted by read rates"),
        Column("cost_dollars_per_period", FLOAT, "$/period", "storage cost of all its files"),
    ),
    file_plans=(
        Column("file_id", ID, "", "file"),
        Column("service_class", STRING, "", "its service class, queues by class"),
        Column("n", INTEGER, "", "code length"),
        Column("k", INTEGER, "", "chunks that rebuild the file"),
        Column("latency_s", FLOAT, "s", "latency bound with the file's own z"),
        Column("cost_dollars_per_period", FLOAT, "$/period", "storage cost"),
    ),
    placement_masks=(
        Column("file_id", ID, "", "file, with stream=true"),
        Column("k", INTEGER, "", "chunks that rebuild it"),
        Column("n", INTEGER, "", "code length"),
        Column(
            "read_nodes",
            BYTES,
            "",
            "bit mask of the nodes that reads use: bit j % 8 of byte j // 8, from the lowest, is row j of inputs/nodes",
        ),
        Column("stored_nodes", BYTES, "", "bit mask of the nodes that keep a chunk"),
    ),
    history=(
        Column("iteration", INTEGER, "", "iteration"),
        Column("step", STRING, "", "by class: start, weights, scheduling or placement"),
        Column("service_class", STRING, "", "class whose objective is in force; null where all are"),
        Column(
            "objective",
            FLOAT,
            "s",
            "what descends: latency + theta * log surrogate of the cost; by class the objective in force, null in a "
            "search for deadlines, which has another at every step",
        ),
        Column("class_latency_s", STRING, "", "JSON: by class: latency_shared_z_s of each class"),
        Column("gap", FLOAT, "", "by class: scheduling_gap after the step; null: no proof"),
    ),
    what_if=(
        Column(
            "scenario",
            STRING,
            "",
            "what would be otherwise, as what_if= has it; as it is: the tables themselves",
        ),
        Column("base_run_id", STRING, "", "run of the same options for the tables as they are"),
        Column(
            "status", STRING, "", "of the plan: ok, not_converged, unstable, or infeasible: none is allowed"
        ),
        Column("error", STRING, "", "why there is none"),
        Column("node_count", INTEGER, "", "nodes"),
        Column("reads_per_s", FLOAT, "1/s", "reads of all files"),
        Column("estimated_mean_s", FLOAT, "s", "expected mean latency of reads, Poisson arrivals"),
        Column("estimated_p99_s", FLOAT, "s", "expected 99 % quantile"),
        Column("latency_s", FLOAT, "s", "mean latency bound, one z per file"),
        Column("cost_dollars_per_period", FLOAT, "$/period", "storage cost of all files"),
        Column("max_load", FLOAT, "", "largest node load"),
        Column("mean_n", FLOAT, "", "mean code length"),
        Column("moved_chunks", INTEGER, "", "chunks put where plan= had none; null without plan="),
    ),
    floors=(
        Column("k", INTEGER, "", "chunks that rebuild a file"),
        Column(
            "min_extra_chunks",
            INTEGER,
            "",
            "fewest chunks beyond k that keep durability_nines and max_any_loss",
        ),
        Column("nines", FLOAT, "", "of an object per year, with so many chunks"),
        Column(
            "nines_with_one_less",
            FLOAT,
            "",
            "with one chunk less; null: a domain takes more than that survives, or no repairs",
        ),
        Column(
            "any_loss_probability",
            FLOAT,
            "",
            "that anything is lost within a year, if all data had this code",
        ),
        Column("domain_loss_share", FLOAT, "", "share of losses in which a whole domain is lost"),
        Column("chunks_per_domain", INTEGER, "", "most chunks of a file in one domain"),
        Column(
            "repair_s", FLOAT, "s", "mean time until a group that lost a chunk is whole again, with detection"
        ),
        Column("repair_load", FLOAT, "", "share of the time in which a lost disk is under repair"),
        Column("domain_repair_load", FLOAT, "", "share of it in which a lost domain is"),
        Column("domain_count", INTEGER, "", "failure domains: the nodes, or their sites"),
        Column("disk_count", INTEGER, "", "disks of all domains"),
        Column("nines_double_afr", FLOAT, "", "nines if disks fail twice as often"),
        Column("nines_double_domain_losses", FLOAT, "", "nines if domains are lost twice as often"),
        Column("nines_double_repair", FLOAT, "", "nines if every repair takes twice as long"),
    ),
    scenarios=(
        Column("scenario", STRING, "", "node or site that is down"),
        Column("kind", STRING, "", "node or site"),
        Column(
            "status",
            STRING,
            "",
            "ok, not_converged, unstable (a node stays overloaded) or infeasible (no read is served)",
        ),
        Column(
            "latency_s",
            FLOAT,
            "s",
            "mean latency bound of the reads that are served, one z per file; inf: unstable, null: none served",
            infinite=True,
        ),
        Column("latency_shared_z_s", FLOAT, "s", "the same with one z for all files", infinite=True),
        Column("max_load", FLOAT, "", "largest load of a node that is up"),
        Column("busiest_node", ID, "", "that node"),
        Column("unavailable_files", INTEGER, "", "files with fewer surviving chunks than rebuild them"),
        Column("unavailable_share", FLOAT, "", "their share of the read rate"),
    ),
)

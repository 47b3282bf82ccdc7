package settings

import "math"

// plannerVariables may be set by any user of PostgreSQL and mean nothing here.
var plannerVariables = unused([]variable{
	{name: "commit_siblings", kind: whole, standard: "5", high: 1000},
	{name: "cpu_index_tuple_cost", kind: real, standard: "0.005", high: math.MaxFloat64},
	{name: "cpu_operator_cost", kind: real, standard: "0.0025", high: math.MaxFloat64},
	{name: "debug_pretty_print", kind: boolean, standard: "on"},
	{name: "debug_print_parse", kind: boolean, standard: "off"},
	{name: "debug_print_rewritten", kind: boolean, standard: "off"},
	{name: "default_toast_compression", kind: choice, standard: "pglz", choices: []string{"pglz", "lz4"}},
	{name: "effective_io_concurrency", kind: whole, standard: "1", high: 1000},
	{name: "enable_async_append", kind: boolean, standard: "on"},
	{name: "enable_gathermerge", kind: boolean, standard: "on"},
	{name: "enable_incremental_sort", kind: boolean, standard: "on"},
	{name: "enable_material", kind: boolean, standard: "on"},
	{name: "enable_memoize", kind: boolean, standard: "on"},
	{name: "enable_parallel_append", kind: boolean, standard: "on"},
	{name: "enable_parallel_hash", kind: boolean, standard: "on"},
	{name: "enable_partition_pruning", kind: boolean, standard: "on"},
	{name: "enable_partitionwise_aggregate", kind: boolean, standard: "off"},
	{name: "enable_partitionwise_join", kind: boolean, standard: "off"},
	{name: "enable_tidscan", kind: boolean, standard: "on"},
	{name: "geqo_effort", kind: whole, standard: "5", low: 1, high: 10},
	{name: "geqo_generations", kind: whole, standard: "0", high: math.MaxInt32},
	{name: "geqo_pool_size", kind: whole, standard: "0", high: math.MaxInt32},
	{name: "geqo_seed", kind: real, standard: "0", high: 1},
	{name: "geqo_selection_bias", kind: real, standard: "2", low: 1.5, high: 2},
	{name: "geqo_threshold", kind: whole, standard: "12", low: 2, high: math.MaxInt32},
	{name: "gin_pending_list_limit", kind: whole, standard: "4096", low: 64, high: math.MaxInt32, unit: "kB"},
	{name: "hash_mem_multiplier", kind: real, standard: "2", low: 1, high: 1000},
	{name: "jit_above_cost", kind: real, standard: "100000", low: -1, high: math.MaxFloat64},
	{name: "jit_expressions", kind: boolean, standard: "on"},
	{name: "jit_inline_above_cost", kind: real, standard: "500000", low: -1, high: math.MaxFloat64},
	{name: "jit_optimize_above_cost", kind: real, standard: "500000", low: -1, high: math.MaxFloat64},
	{name: "jit_tuple_deforming", kind: boolean, standard: "on"},
	{name: "log_parameter_max_length_on_error", kind: whole, standard: "0", low: -1, high: 1073741823},
	{name: "logical_decoding_work_mem", kind: whole, standard: "65536", low: 64, high: math.MaxInt32, unit: "kB"},
	{name: "maintenance_io_concurrency", kind: whole, standard: "10", high: 1000},
	{name: "max_parallel_maintenance_workers", kind: whole, standard: "2", high: 1024},
	{name: "min_parallel_index_scan_size", kind: whole, standard: "64", high: 715827882, unit: "8kB"},
	{name: "min_parallel_table_scan_size", kind: whole, standard: "1024", high: 715827882, unit: "8kB"},
	{name: "recursive_worktable_factor", kind: real, standard: "10", low: 0.001, high: 1e6},
	{name: "timezone_abbreviations", standard: "Default"},
	{name: "trace_notify", kind: boolean, standard: "off"},
	{name: "trace_sort", kind: boolean, standard: "off"},
	{name: "vacuum_cost_limit", kind: whole, standard: "200", low: 1, high: 10000},
	{name: "vacuum_cost_page_dirty", kind: whole, standard: "20", high: 10000},
	{name: "vacuum_cost_page_hit", kind: whole, standard: "1", high: 10000},
	{name: "vacuum_cost_page_miss", kind: whole, standard: "2", high: 10000},
	{name: "vacuum_failsafe_age", kind: whole, standard: "1600000000", high: 2100000000},
	{name: "vacuum_freeze_min_age", kind: whole, standard: "50000000", high: 1000000000},
	{name: "vacuum_freeze_table_age", kind: whole, standard: "150000000", high: 2000000000},
	{name: "vacuum_multixact_failsafe_age", kind: whole, standard: "1600000000", high: 2100000000},
	{name: "vacuum_multixact_freeze_min_age", kind: whole, standard: "5000000", high: 1000000000},
	{name: "vacuum_multixact_freeze_table_age", kind: whole, standard: "150000000", high: 2000000000},
	{name: "wal_sender_timeout", kind: whole, standard: "60000", high: math.MaxInt32, unit: "ms"},
	{name: "wal_skip_threshold", kind: whole, standard: "2048", high: math.MaxInt32, unit: "kB"},
})

// serverVariables are those of a PostgreSQL server that clients read and may not set.
var serverVariables = unused([]variable{
	{name: "autovacuum", standard: "on", fixed: true},
	{name: "archive_mode", standard: "off", fixed: true},
	{name: "cluster_name", fixed: true},
	{name: "fsync", standard: "on", fixed: true},
	{name: "full_page_writes", standard: "on", fixed: true},
	{name: "hot_standby", standard: "on", fixed: true},
	{name: "huge_pages", standard: "try", fixed: true},
	{name: "log_timezone", standard: "Etc/UTC", fixed: true},
	{name: "max_locks_per_transaction", standard: "64", fixed: true},
	{name: "max_replication_slots", standard: "10", fixed: true},
	{name: "max_stack_depth", kind: whole, standard: "2048", unit: "kB", fixed: true},
	{name: "max_wal_senders", standard: "10", fixed: true},
	{name: "max_wal_size", kind: whole, standard: "1024", unit: "MB", fixed: true},
	{name: "max_worker_processes", standard: "8", fixed: true},
	{name: "min_wal_size", kind: whole, standard: "80", unit: "MB", fixed: true},
	{name: "shared_buffers", kind: whole, standard: "16384", unit: "8kB", fixed: true},
	{name: "superuser_reserved_connections", standard: "3", fixed: true},
	{name: "track_counts", standard: "on", fixed: true},
	{name: "track_io_timing", standard: "off", fixed: true},
	{name: "wal_segment_size", kind: whole, standard: "16777216", unit: "B", fixed: true},
	{name: "debug_assertions", standard: "off", fixed: true},
})

// unused says of variables that nothing here uses them.
func unused(list []variable) []variable {
	for i := range list {
		list[i].about = "Not used here."
	}
	return list
}

package mysql

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// What a server, an account or a proxy before it sets is not to decide how the reading of a row ends (privacy rule 24),
// as in backend/postgres/settings.go: a variable of the session is given its value on each connection, or is named
// below with the reason why it decides nothing. TestEverySettingHasItsPlace holds the lists against a server's own.

// flavor is which of the two engines is behind the driver.
type flavor struct {
	maria        bool
	major, minor int
}

// ErrFlavor says that it is neither.
var ErrFlavor = errors.New("the database is not MariaDB from 10.5 on or MySQL from 8.0 on, whose snapshots and keys dpproxy knows")

var (
	versionForm = regexp.MustCompile(`^(?:5\.5\.5-)?(\d{1,3})\.(\d{1,3})\.`)
	// others speak as MySQL does, over storage with other promises: of one moment, and of keys.
	others = regexp.MustCompile(`(?i)tidb|vitess|planetscale|dolt|singlestore|memsql|oceanbase|polardb|starrocks|doris|clickhouse|xpand|spider|proxysql`)
)

func flavorOf(version, comment string) (flavor, error) {
	match := versionForm.FindStringSubmatch(version)
	if match == nil || others.MatchString(version+" "+comment) {
		return flavor{}, ErrFlavor
	}
	f := flavor{maria: strings.Contains(version, "MariaDB")}
	f.major, _ = strconv.Atoi(match[1])
	f.minor, _ = strconv.Atoi(match[2])
	if f.maria && (f.major < 10 || f.major == 10 && f.minor < 5) || !f.maria && f.major < 8 {
		return f, ErrFlavor
	}
	return f, nil
}

// givens are variables of both engines, each with its value.
var givens = []string{
	// How texts and moments are read.
	"character_set_client = utf8mb4", "character_set_connection = utf8mb4", "character_set_results = utf8mb4", "collation_connection = utf8mb4_bin",
	"time_zone = '+00:00'", "sql_mode = ''", "lc_time_names = 'en_US'", "default_week_format = 0", "div_precision_increment = 4",
	"group_concat_max_len = 1048576",
	// Which rows are there, and how many of them come.
	"sql_auto_is_null = 0", "sql_select_limit = 18446744073709551615", "sql_big_selects = 1", "max_join_size = 18446744073709551615", "sql_safe_updates = 0",
	// What ends a statement early.
	"net_read_timeout = 86400", "net_write_timeout = 86400", "wait_timeout = 86400", "lock_wait_timeout = 60", "max_error_count = 0",
	// What a transaction is.
	"autocommit = 1", "completion_type = 0",
	// Where what a view sorts or groups is kept: in memory as far as MySQL does by itself, and then on the disk.
	"tmp_table_size = 16777216", "max_heap_table_size = 16777216", "sort_buffer_size = 2097152", "join_buffer_size = 262144", "max_sort_length = 1048576",
	// What would write rows, or a query with its constants, elsewhere.
	"profiling = 0",
}

// mariaGivens and oracleGivens are those of one engine.
var (
	mariaGivens = []string{"system_versioning_asof = DEFAULT", "query_cache_type = 0", "old_mode = ''", "idle_transaction_timeout = 0", "idle_readonly_transaction_timeout = 0",
		"max_session_mem_used = 9223372036854775807", "max_recursive_iterations = 4294967295", "big_tables = 0", "tmp_disk_table_size = 18446744073709551615",
		"default_regex_flags = ''", "optimizer_trace = 'enabled=off'", "sql_buffer_result = 0"}
	oracleGivens = []string{"resultset_metadata = FULL", "use_secondary_engine = OFF", "cte_max_recursion_depth = 4294967295", "big_tables = 0", "optimizer_trace = 'enabled=off'",
		"sql_buffer_result = 0"}
)

// settings give a session its values, and its statements so much time. SET of what a server lacks is an error: no row
// has a part in it.
func (f flavor) settings(limit time.Duration) []string {
	own := oracleGivens
	time := fmt.Sprintf("max_execution_time = %d", max(limit.Milliseconds(), 1))
	if f.maria {
		own, time = mariaGivens, fmt.Sprintf("max_statement_time = %d", max(int64(limit.Seconds()), 1))
	}
	var list []string
	for _, g := range append(append([]string{time}, givens...), own...) {
		list = append(list, "SESSION "+g)
	}
	return []string{"SET " + strings.Join(list, ", "), "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"}
}

// mariaIdle are the variables of MariaDB's sessions that decide nothing, by the reason.
var mariaIdle = map[string]string{
	"is about statements that write or define": `alter_algorithm analyze_max_length analyze_sample_percentage aria_repair_threads aria_sort_buffer_size aria_stats_method
		auto_increment_increment auto_increment_offset explicit_defaults_for_timestamp binlog_alter_two_phase binlog_annotate_row_events binlog_direct_non_transactional_updates binlog_format
		binlog_row_image bulk_insert_buffer_size check_constraint_checks column_compression_threshold column_compression_zlib_level
		column_compression_zlib_strategy column_compression_zlib_wrap default_storage_engine default_tmp_storage_engine storage_engine enforce_storage_engine
		foreign_key_checks unique_checks gtid_domain_id gtid_seq_no identity insert_id last_gtid last_insert_id innodb_compression_default
		innodb_default_encryption_key_id innodb_ft_enable_stopword innodb_ft_user_stopword_table innodb_strict_mode innodb_table_locks innodb_tmpdir
		idle_write_transaction_timeout innodb_lock_wait_timeout innodb_snapshot_isolation keep_files_on_create low_priority_updates max_delayed_threads
		max_insert_delayed_threads max_relay_log_size myisam_repair_threads myisam_sort_buffer_size myisam_stats_method old_alter_table old_passwords sql_if_exists sql_log_bin
		system_versioning_alter_history system_versioning_insert_history transaction_alloc_block_size transaction_prealloc_size updatable_views_with_limit
		skip_parallel_replication skip_replication sql_slave_skip_counter default_master_connection pseudo_slave_mode server_id wsrep_osu_method wsrep_on
		wsrep_gtid_seq_no wsrep_retry_autocommit wsrep_trx_fragment_size wsrep_trx_fragment_unit`,
	"is said when the transaction begins":               "tx_isolation tx_read_only",
	"is the server's, and another one's is written out": `character_set_database character_set_filesystem character_set_server collation_database collation_server`,
	"moves a plan, never a result": `deadlock_search_depth_long deadlock_search_depth_short deadlock_timeout_long deadlock_timeout_short eq_range_index_dive_limit
		expensive_subquery_limit histogram_size histogram_type in_predicate_conversion_threshold join_buffer_space_limit join_cache_level
		max_length_for_sort_data max_rowid_filter_size max_seeks_for_key mrr_buffer_size optimizer_adjust_secondary_key_costs optimizer_extra_pruning_depth
		optimizer_join_limit_pref_ratio optimizer_max_sel_args optimizer_max_sel_arg_weight optimizer_prune_level optimizer_search_depth
		optimizer_selectivity_sampling_limit optimizer_switch optimizer_trace_max_mem_size optimizer_use_condition_selectivity preload_buffer_size
		query_alloc_block_size query_cache_strip_comments query_cache_wlock_invalidate query_prealloc_size range_alloc_block_size read_buffer_size
		read_rnd_buffer_size rowid_merge_buff_size use_stat_tables thread_pool_priority tmp_memory_table_size max_tmp_tables`,
	"is about functions that no table's rows are read by": "max_sp_recursion_depth rand_seed1 rand_seed2 timestamp standard_compliant_cte old",
	"is about the way to the server, or to its operator's log and figures": `error_count external_user in_transaction interactive_timeout lc_messages log_disabled_statements
		log_queries_not_using_indexes log_slow_admin_statements log_slow_disabled_statements log_slow_filter log_slow_max_warnings log_slow_min_examined_row_limit
		log_slow_query log_slow_query_time log_slow_rate_limit log_slow_slave_statements log_slow_verbosity log_warnings long_query_time min_examined_row_limit
		net_buffer_length net_retry_count note_verbosity profiling_history_size progress_report_time proxy_user pseudo_thread_id session_track_schema
		session_track_state_change session_track_system_variables session_track_transaction_info slow_query_log sql_log_off sql_notes
		sql_quote_show_create sql_warnings tcp_nodelay warning_count`,
	"is the same for every row: what it refuses is refused before any is read": "max_user_connections",
	"is about the nodes of a cluster, whatever the rows are":                   "wsrep_causal_reads wsrep_dirty_reads wsrep_sync_wait",
	"is looked at before any row is read":                                      "max_allowed_packet",
}

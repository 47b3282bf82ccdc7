package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/rewrite/dialect"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/policy"
)

// What a server, a database, a role or a url sets is not to decide whether a paid query ends well (privacy rule 24). A
// setting is either given its value in every transaction, or it is looked at there and refused, or it is named below
// with the reason why it decides nothing. TestEverySettingHasItsPlace holds the three lists against a server's own.

// given is a setting that has one value in every transaction of dpproxy.
type given struct {
	name, value  string
	since, until int // the first version of PostgreSQL that has it, and the first that no longer does; 0 means all
}

// givens are set in the order of this list. Those that a version lacks are left out there.
var givens = []given{
	// How texts are read and written: a name that has no counterpart in another encoding would fail a query.
	{name: "client_encoding", value: "UTF8"}, {name: "standard_conforming_strings", value: "on"}, {name: "backslash_quote", value: "safe_encoding"},
	{name: "datestyle", value: "ISO, YMD"}, {name: "intervalstyle", value: "postgres"}, {name: "timezone", value: "UTC"},
	{name: "timezone_abbreviations", value: "Default"}, {name: "extra_float_digits", value: "3"}, {name: "bytea_output", value: "hex"},
	{name: "array_nulls", value: "on"}, {name: "lc_monetary", value: "C"}, {name: "lc_numeric", value: "C"}, {name: "lc_time", value: "C"},
	{name: "client_min_messages", value: "error"}, {name: "quote_all_identifiers", value: "off"},
	// What names and comparisons mean, and which rows are there.
	{name: "search_path", value: ""}, {name: "row_security", value: "on"}, {name: "transform_null_equals", value: "off"},
	{name: "gin_fuzzy_search_limit", value: "0"}, // an index would give some rows and not others, by chance
	// What ends a query early. statement_timeout is an argument.
	{name: "lock_timeout", value: "0"}, {name: "idle_in_transaction_session_timeout", value: "0"}, {name: "exit_on_error", value: "off"},
	{name: "transaction_timeout", value: "0", since: 17},
	// Where a query keeps what it sorts and groups: work_mem is below. A parallel hash table and the bitmap of a
	// parallel bitmap scan lie in shared memory, of which a container has little, and how much they take is for the
	// rows to say. What else parallel workers share is sized by the plan. Instead of a bitmap an index, or the table,
	// is read in its order.
	{name: "hash_mem_multiplier", value: "2"}, {name: "enable_parallel_hash", value: "off"}, {name: "enable_bitmapscan", value: "off"},
	// How a query is planned. Compiling begins at an estimated cost, which is a step in time at some number of rows.
	{name: "jit", value: "off"}, {name: "plan_cache_mode", value: "force_custom_plan"}, {name: "constraint_exclusion", value: "partition"},
	{name: "from_collapse_limit", value: "8"}, {name: "join_collapse_limit", value: "8"},
	{name: "geqo", value: "on"}, {name: "geqo_threshold", value: "12"}, {name: "geqo_effort", value: "5"}, {name: "geqo_pool_size", value: "0"},
	{name: "geqo_generations", value: "0"}, {name: "geqo_seed", value: "0"}, {name: "geqo_selection_bias", value: "2"},
	{name: "force_parallel_mode", value: "off", until: 16}, {name: "debug_parallel_query", value: "off", since: 16},
	{name: "enable_async_append", value: "on"}, {name: "enable_gathermerge", value: "on"},
	{name: "enable_hashagg", value: "on"}, {name: "enable_hashjoin", value: "on"}, {name: "enable_incremental_sort", value: "on"},
	{name: "enable_indexonlyscan", value: "on"}, {name: "enable_indexscan", value: "on"}, {name: "enable_material", value: "on"},
	{name: "enable_memoize", value: "on"}, {name: "enable_mergejoin", value: "on"}, {name: "enable_nestloop", value: "on"},
	{name: "enable_parallel_append", value: "on"}, {name: "enable_partition_pruning", value: "on"},
	{name: "enable_partitionwise_aggregate", value: "off"}, {name: "enable_partitionwise_join", value: "off"},
	{name: "enable_seqscan", value: "on"}, {name: "enable_sort", value: "on"}, {name: "enable_tidscan", value: "on"},
	{name: "enable_presorted_aggregate", value: "on", since: 16}, {name: "enable_group_by_reordering", value: "on", since: 17},
	{name: "enable_distinct_reordering", value: "on", since: 18}, {name: "enable_self_join_elimination", value: "on", since: 18},
	// What would write a query with its constants into the server's log.
	{name: "debug_print_parse", value: "off"}, {name: "debug_print_plan", value: "off"}, {name: "debug_print_rewritten", value: "off"},
	{name: "trace_sort", value: "off"},
}

// maxWorkMem is the most memory that a sort takes, in kB: what is set above it is lowered. A hash table takes twice as
// much.
const maxWorkMem = 1 << 20

// computed are the settings whose value is not a constant.
var computed = []string{"statement_timeout", "work_mem"}

// refused are the settings that only a superuser changes, and which must be as they are by default.
var refused = []string{"temp_file_limit"}

// idle are the settings that decide nothing, by the reason.
var idle = map[string][]string{
	"BEGIN names it": {"default_transaction_deferrable", "default_transaction_isolation", "default_transaction_read_only",
		"transaction_deferrable", "transaction_isolation", "transaction_read_only"},
	"is about statements that write or define": {"backend_flush_after", "check_function_bodies", "commit_delay", "commit_siblings",
		"default_statistics_target", "default_table_access_method", "default_tablespace", "default_toast_compression", "gin_pending_list_limit",
		"maintenance_io_concurrency", "maintenance_work_mem", "max_parallel_maintenance_workers", "password_encryption", "session_replication_role",
		"synchronous_commit", "temp_buffers", "vacuum_cost_delay", "vacuum_cost_limit", "vacuum_cost_page_dirty", "vacuum_cost_page_hit",
		"vacuum_cost_page_miss", "vacuum_failsafe_age", "vacuum_freeze_min_age", "vacuum_freeze_table_age", "vacuum_multixact_failsafe_age",
		"vacuum_multixact_freeze_min_age", "vacuum_multixact_freeze_table_age", "wal_compression", "wal_consistency_checking", "wal_init_zero",
		"wal_recycle", "wal_skip_threshold", "allow_in_place_tablespaces", "allow_system_table_mods", "lo_compat_privileges", "createrole_self_grant",
		"vacuum_buffer_usage_limit", "vacuum_max_eager_freeze_failure_rate", "vacuum_truncate", "event_triggers", "logical_decoding_work_mem",
		"wal_sender_timeout", "debug_logical_replication_streaming", "logical_replication_mode", "log_replication_commands", "io_max_combine_limit",
		"output_plugin_libraries", "file_copy_method", "md5_password_warnings"},
	"is about types and functions that no query of dpproxy uses": {"default_text_search_config", "xmlbinary", "xmloption", "dynamic_library_path",
		"icu_validation_level", "extension_control_path", "extension_destdir", "local_preload_libraries", "session_preload_libraries",
		"composite_type_mismatch"},
	"is an estimate of what the machine is worth, and moves a plan, never a result": {"cpu_index_tuple_cost", "cpu_operator_cost", "cpu_tuple_cost",
		"cursor_tuple_fraction", "effective_cache_size", "effective_io_concurrency", "io_combine_limit", "max_parallel_workers",
		"max_parallel_workers_per_gather", "min_parallel_index_scan_size", "min_parallel_table_scan_size", "parallel_leader_participation",
		"parallel_setup_cost", "parallel_tuple_cost", "random_page_cost", "recursive_worktable_factor", "seq_page_cost", "stats_fetch_consistency",
		"synchronize_seqscans", "temp_tablespaces", "jit_above_cost", "jit_dump_bitcode", "jit_expressions", "jit_inline_above_cost",
		"jit_optimize_above_cost", "jit_tuple_deforming", "debug_discard_caches"},
	"is about the way to the server, or to its operator's log and figures, where no row's value goes": {"application_name", "backtrace_functions",
		"client_connection_check_interval", "compute_query_id", "deadlock_timeout", "debug_pretty_print", "escape_string_warning",
		"idle_session_timeout", "lc_messages", "log_duration", "log_error_verbosity", "log_executor_stats", "log_lock_waits",
		"log_min_duration_sample", "log_min_duration_statement", "log_min_error_statement", "log_min_messages", "log_parameter_max_length",
		"log_parameter_max_length_on_error", "log_parser_stats", "log_planner_stats", "log_statement", "log_statement_sample_rate",
		"log_statement_stats", "log_temp_files", "log_transaction_sample_rate", "log_lock_failures", "scram_iterations",
		"ssl_renegotiation_limit", "tcp_keepalives_count", "tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_user_timeout", "trace_notify",
		"trace_connection_negotiation", "track_activities", "track_cost_delay_timing", "track_counts", "track_functions", "track_io_timing",
		"track_wal_io_timing", "update_process_title", "send_abort_for_crash", "send_abort_for_kill", "allow_alter_system"},
	"is the same for every row: what it refuses is refused when the query is planned, before the charge": {"max_stack_depth",
		"restrict_nonsystem_relation_kind", "role", "session_authorization", "is_superuser"},
	"is for a damaged disk, which is assumed away": {"ignore_checksum_failure", "zero_damaged_pages"},
}

// errSettings says that a session's settings, or its database's encoding, are not those that queries need.
var errSettings = errors.New("backend: settings that dpproxy cannot change")

// settingsSQL follows the BEGIN of every transaction on a server of that version: all settings that are otherwise, and
// the time that statements have, in milliseconds. It divides by zero where the database's encoding, or a limit that
// only a superuser lifts, would let one row decide whether a query ends.
//
//	SELECT 1 / CASE WHEN current_setting('server_encoding') = 'UTF8' AND current_setting('temp_file_limit') = '-1' THEN 1 ELSE 0 END,
//	  set_config('statement_timeout', '60000', true), …,
//	  (SELECT count(set_config(g.name, g.value, true)) FROM … AS g(name, value) WHERE current_setting(g.name) <> g.value)
var settingsSQL = func() map[int]string {
	texts := map[int]string{}
	for version := oldestVersion / 10000; version <= newestSettings; version++ {
		var names, values []string
		for _, g := range givens {
			if version >= g.since && (g.until == 0 || version < g.until) {
				names, values = append(names, g.name), append(values, `"`+g.value+`"`)
			}
		}
		texts[version] = fmt.Sprintf(`SELECT 1 OPERATOR(pg_catalog./) CASE WHEN pg_catalog.current_setting('server_encoding') OPERATOR(pg_catalog.=) 'UTF8'
    AND pg_catalog.current_setting('temp_file_limit') OPERATOR(pg_catalog.=) '-1' THEN 1 ELSE 0 END,
  pg_catalog.set_config('statement_timeout', '%%d', true),
  CASE WHEN pg_catalog.pg_size_bytes(pg_catalog.current_setting('work_mem')) OPERATOR(pg_catalog.>) %d::pg_catalog.int8
    THEN pg_catalog.set_config('work_mem', '%dkB', true) END,
  (SELECT pg_catalog.count(pg_catalog.set_config(g.name, g.value, true))
   FROM ROWS FROM (pg_catalog.unnest('{%s}'::pg_catalog.text[]), pg_catalog.unnest('{%s}'::pg_catalog.text[])) AS g(name, value)
   WHERE pg_catalog.current_setting(g.name) OPERATOR(pg_catalog.<>) g.value)`,
			maxWorkMem<<10, maxWorkMem, strings.Join(names, ","), strings.Join(values, ","))
	}
	return texts
}()

// begin has a message begin a read-only transaction with one snapshot, its own or one that another transaction
// exported, and give it its settings. Once the results have been read, settled reports whether it has them.
func begin(batch *pgx.Batch, conn *pgx.Conn, limit time.Duration, snapshot string) (settled *bool) {
	settled = new(bool)
	batch.BeginTx(pgx.TxOptions{BeginQuery: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"})
	if snapshot != "" {
		batch.Queue("SET TRANSACTION SNAPSHOT " + dialect.QuoteText(snapshot))
	}
	batch.Queue(fmt.Sprintf(settingsSQL[majorVersion(conn)], max(limit.Milliseconds(), 1))).Exec(func(pgconn.CommandTag) error {
		*settled = true
		return nil
	})
	return settled
}

// unsettled tells that a transaction did not begin because of its settings.
func unsettled(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == "22012"
}

// newestSettings is the newest version whose settings the lists hold. A later one is given those.
const newestSettings = 18

// majorVersion is the version of the server behind a connection, as it says in its greeting: "15.14 (Debian …)",
// "17beta1". Of what is no PostgreSQL at all the oldest is taken, whose settings all have.
func majorVersion(conn *pgx.Conn) int {
	text := conn.PgConn().ParameterStatus("server_version")
	end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(text)
	}
	n, err := strconv.Atoi(text[:end])
	if err != nil {
		return oldestVersion / 10000
	}
	return min(max(n, oldestVersion/10000), newestSettings)
}

// keptSQL lists what the database and the role set for new sessions, the nearest to the role first: "name=value".
const keptSQL = `SELECT pg_catalog.unnest(s.setconfig) FROM pg_catalog.pg_db_role_setting s
WHERE (s.setdatabase = 0 OR s.setdatabase = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()))
  AND (s.setrole = 0 OR s.setrole = (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = session_user))
ORDER BY s.setrole = 0, s.setdatabase = 0`

// limited reports whether what is kept for new sessions bounds their temporary files.
func limited(kept []string) bool {
	for _, k := range kept {
		if name, value, _ := strings.Cut(k, "="); name == "temp_file_limit" {
			return value != "-1"
		}
	}
	return false
}

const factsSQL = `SELECT pg_catalog.current_setting('server_encoding'), pg_catalog.current_setting('temp_file_limit'),
  pg_catalog.quote_ident(session_user), pg_catalog.quote_ident(pg_catalog.current_database()),
  pg_catalog.pg_size_bytes(pg_catalog.current_setting('work_mem')) / 1024,
  COALESCE((SELECT NULLIF(r.rolconnlimit, -1) FROM pg_catalog.pg_roles r WHERE r.rolname = session_user), 2147483647),
  COALESCE((SELECT NULLIF(d.datconnlimit, -1) FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()), 2147483647),
  pg_catalog.pg_is_in_recovery() AND (pg_catalog.current_setting('max_standby_streaming_delay') <> '-1' OR pg_catalog.current_setting('max_standby_archive_delay') <> '-1'
    OR pg_catalog.current_setting('hot_standby_feedback') <> 'on'),
  COALESCE((SELECT d.datctype::pg_catalog.text FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()), '')`

// settingFindings says what is wrong with the server's, the database's and the role's settings, and which of the url's
// and theirs are not followed. It has a transaction in which none is set yet.
func (b *DB) settingFindings(ctx context.Context, d *policy.Dataset) (list []backend.Finding, err error) {
	conn, err := b.aside.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	var encoding, files, role, database, letters string
	var memory int64
	var ofRole, ofDatabase int
	var standby bool
	var kept []string
	err = pgx.BeginTxFunc(ctx, conn.Conn(), pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_catalog.set_config('search_path', '', true)"); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, factsSQL).Scan(&encoding, &files, &role, &database, &memory, &ofRole, &ofDatabase, &standby, &letters); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, keptSQL)
		if err != nil {
			return err
		}
		kept, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		return nil, err
	}
	_, digest := conn.Exec(ctx, "SELECT pg_catalog.md5('')")
	add := func(holds, fatal bool, format string, args ...any) {
		if holds {
			list = append(list, backend.Finding{Fatal: fatal, Note: !fatal, Text: fmt.Sprintf(format, args...)})
		}
	}
	add(encoding != "UTF8", true, "the database's encoding is %s, in which one row's text, or a value of the policy, may have no counterpart: "+
		"a query would fail or not, and show it. dpproxy needs UTF8: restore a dump into a database made with "+
		"CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and name that one in the url", encoding)
	add(files != "-1" || limited(kept), true, "temp_file_limit bounds the temporary files of dpproxy's sessions: with enough rows one %s more or fewer would decide whether "+
		"a query ends, and the answer would show it. As a superuser: ALTER ROLE %s IN DATABASE %s SET temp_file_limit = -1", d.UnitName(), role, database)
	for _, limit := range []struct {
		most int
		what string
	}{{ofRole, "ALTER ROLE " + role + " CONNECTION LIMIT"}, {ofDatabase, "ALTER DATABASE " + database + " CONNECTION LIMIT"}} {
		add(limit.most < b.connections(), true, "the connection limit is %d, and dpproxy opens up to %d connections: a query would fail while others run, and its answer would show that. "+
			"%s %d, or set pool_max_conns in the url to at most %d", limit.most, b.connections(), limit.what, b.connections(), max(limit.most-1, 1))
	}
	if standby {
		list = append(list, backend.Finding{Text: "the database is a hot standby that cancels queries which hold back its replay, or waits for them while they wait for it: how long a query takes, and so its rows, may decide whether it ends. " +
			"Set max_standby_streaming_delay and max_standby_archive_delay to -1 there, and hot_standby_feedback to on"})
	}
	add(digest != nil, true, "the server computes no MD5 (its OpenSSL is in FIPS mode, say), by which rows are ordered where a unit or a key is text: "+
		"every such query would fail after its charge. dpproxy needs a server that does")
	add(memory > maxWorkMem, false, "work_mem is lowered to 1 GB in dpproxy's own transactions, since one statement may use it several times over")
	set, unknown := b.followed(kept)
	add(len(set) > 0, false, "the database, the role or the url sets %s; dpproxy sets its own values in each transaction, so these are not used", strings.Join(set, ", "))
	for _, name := range unknown {
		list = append(list, backend.Finding{Text: fmt.Sprintf("the database, the role or the url sets %s, of which dpproxy does not know whether it decides by rows if a query ends: "+
			"reset it for dpproxy's role, with ALTER ROLE %s IN DATABASE %s SET %[1]s = DEFAULT, unless you know", name, role, database)})
	}
	return append(list, letterFindings(letters, d)...), nil
}

// letterFindings says where upper, lower, initcap and ILIKE of declared values are not what the database makes of them.
// Here letters are those of C.UTF-8, which SHOW lc_ctype says: upper('ä') is 'Ä'. To C 'ä' is no letter, and to Turkish
// 'İ' is the capital of 'i'.
func letterFindings(ctype string, d *policy.Dataset) []backend.Finding {
	differs := func(c rune) bool { return c > unicode.MaxASCII && (unicode.ToUpper(c) != c || unicode.ToLower(c) != c) }
	switch language, _, _ := strings.Cut(ctype, "_"); {
	case language == "tr" || language == "az":
		differs = func(c rune) bool { return strings.ContainsRune("iIıİ", c) }
	case ctype != "C" && ctype != "POSIX":
		return nil
	}
	for _, t := range d.Tables {
		for _, c := range t.Columns {
			if c.Domain == nil || !c.Type.Textual() {
				continue
			}
			if at := slices.IndexFunc(c.Domain.Values, func(v string) bool { return strings.ContainsFunc(v, differs) }); at >= 0 {
				return []backend.Finding{{Note: true, Text: fmt.Sprintf("upper, lower, initcap and ILIKE know the letters of C.UTF-8, and the database those of its LC_CTYPE, %s: of %q, a value of %s.%s, they may make something else there",
					ctype, c.Domain.Values[at], t.Name, c.Name)}}
			}
		}
	}
	return nil
}

// followed lists the settings of the database, the role and the url that dpproxy sets itself, and those that it knows
// nothing of.
func (b *DB) followed(kept []string) (set, unknown []string) {
	var names []string
	for _, k := range kept {
		name, _, _ := strings.Cut(k, "=")
		names = append(names, strings.ToLower(name))
	}
	for name, value := range b.aside.Config().ConnConfig.RuntimeParams {
		names = append(names, strings.ToLower(name))
		if name != "options" {
			continue
		}
		names = names[:len(names)-1]
		for _, word := range strings.Fields(value) {
			word = strings.TrimPrefix(strings.TrimPrefix(word, "-c"), "--")
			if name, _, ok := strings.Cut(word, "="); ok {
				names = append(names, strings.ToLower(strings.ReplaceAll(name, "-", "_")))
			}
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		switch {
		case name == "work_mem" || slices.Contains(refused, name) || slices.Contains(idleOfCitus, name) || idles(name) || name == "client_encoding" && b.aside.Config().ConnConfig.RuntimeParams[name] == "UTF8":
		case slices.Contains(computed, name) || slices.ContainsFunc(slices.Concat(givens, givensOfCitus), func(g given) bool { return g.name == name }):
			set = append(set, name)
		default:
			unknown = append(unknown, name)
		}
	}
	return set, unknown
}

// idles reports whether a setting decides nothing.
func idles(name string) bool {
	for _, names := range idle {
		if slices.Contains(names, name) {
			return true
		}
	}
	return false
}

// connections is how many dpproxy opens at most: those of both pools, and one to copy public tables.
func (b *DB) connections() int {
	return int(b.pool.Config().MaxConns+b.aside.Config().MaxConns) + 1
}

package settings

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// variable is one run-time parameter of PostgreSQL, or one of ours.
type variable struct {
	name     string // as PostgreSQL spells it
	kind     variableKind
	standard string   // value of a new session
	low      float64  // whole and real: the least and largest value
	high     float64  //
	unit     string   // whole: "ms", "s", "B", "kB", "8kB", "MB"
	choices  []string // choice: the values
	fixed    bool     // cannot be changed
	reported bool     // the client is sent each change
	about    string   // for SHOW ALL
}

type variableKind uint8

const (
	text variableKind = iota
	boolean
	whole
	real
	choice
	special // checked by a function of its own, see checkSpecial
)

const (
	serverVersion    = "15.0 (dpproxy)"
	serverVersionNum = "150000"
)

var (
	isolationLevels = []string{"serializable", "repeatable read", "read committed", "read uncommitted"}
	messageLevels   = []string{"debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "notice", "warning", "error"}
)

// known is the table of variables by lower-case name. Most mean nothing here and are kept because clients set and read
// them; those that change answers are typed in settings.go.
var known = index(concat(dpVariables, meant, fixedVariables, harmless, plannerVariables, serverVariables))

// autoDelta is the dp.delta that leaves it to the planner.
const autoDelta = "auto"

// maxAlarms is the largest dp.alarms.
const maxAlarms = 1000

// dpVariables are ours. Their standard values come from the policy. Clients are sent them, so that a pooler can give
// each of its clients her own (track_extra_parameters of pgbouncer).
var dpVariables = []variable{
	{name: "dp.epsilon", kind: special, reported: true, about: "The most that one statement may cost."},
	{name: "dp.delta", kind: special, standard: autoDelta, reported: true, about: "The most δ that one statement may use to find keys; auto: a sixteenth of the budget's."},
	{name: "dp.confidence", kind: special, reported: true, about: "The probability that a stated interval holds the true value."},
	{name: "dp.max_error", kind: special, standard: "off", reported: true, about: "The most that a count or sum may be off at dp.confidence; the least cost for it is found."},
	{name: "dp.max_cost", kind: special, standard: "off", reported: true, about: "A statement that costs more, in the unit of dp.budget, is refused before anything is charged; 0: only what is free is answered."},
	{name: "dp.error_columns", kind: boolean, standard: "off", reported: true, about: "Adds x_low and x_high to each aggregate x."},
	{name: "dp.digits", kind: choice, standard: "exact", choices: []string{"exact", "significant"}, reported: true,
		about: "Whether values have all digits, or those that their errors leave (significant): the rest is noise."},
	{name: "dp.contribution", kind: special, standard: "policy", reported: true,
		about: "What bounds a unit in counts and sums: the policy's rows, its total by a clamp that is chosen from " +
			"what is released (ladder), or its total clamped to a number; policy: rows where it bounds them, else " +
			"the total."},
	{name: "dp.coverage", kind: choice, standard: "kept", choices: []string{"kept", "all"}, reported: true,
		about: "What the stated error of a clamped total covers: what is below the clamp, or what is above it too, " +
			"as far as that can be."},
	{name: "dp.alarms", kind: whole, standard: "0", high: maxAlarms, reported: true, about: "Buys a run of yes-or-no questions that ends at so many yes answers; 0: off."},
	{name: "dp.release", kind: boolean, standard: "off", reported: true, about: "Buys and reads releases before counts that are more exact: the policy's, and for ranges one of her own."},
	{name: "dp.offgrid", kind: choice, standard: "policy", choices: []string{"policy", "snap", "exact"}, reported: true, about: "A bound between two steps moves to the step, is counted exactly, or as the policy says."},
	{name: "dp.probes", kind: choice, standard: "off", choices: []string{"off", "empty", "made_up"}, reported: true, about: "What a SELECT that looks at private rows is answered with: off refuses it, empty has no rows, made_up has the made-up rows that were paid for where it is SELECT columns FROM table LIMIT n."},
	{name: "dp.hints", kind: choice, standard: "separate", choices: []string{"separate", "message"}, reported: true,
		about: "Where an error's detail and hint are: in their own fields alone, or behind its message too, for " +
			"clients that show nothing else."},
	{name: "dp.dialect", kind: choice, standard: "postgres", choices: parse.Dialects, reported: true, about: "The SQL that SELECTs are written in."},
}

// laterVariables are announced and not there yet.
var laterVariables = map[string]bool{"dp.freshness": true}

// plainLocales are those whose months, days and separators are the C locale's: the ones that answers are written in.
var plainLocales = []string{"C", "POSIX", "C.UTF-8", "en_US.UTF-8", "en_US.utf8", "en_GB.UTF-8", "en_GB.utf8"}

// meant are variables that change what a session does.
var meant = []variable{
	{name: "application_name", reported: true, about: "Name of the application, for logs."},
	{name: "client_encoding", kind: special, standard: "UTF8", reported: true, about: "The client's character set."},
	{name: "client_min_messages", kind: choice, standard: "notice", choices: messageLevels, about: "The least notices that are sent."},
	{name: "array_nulls", kind: choice, standard: "on", choices: []string{"on"}, about: "NULL in array text means NULL."},
	{name: "DateStyle", kind: special, standard: "ISO, MDY", reported: true, about: "How dates are written, and in which order they are read."},
	{name: "extra_float_digits", kind: whole, standard: "1", low: -15, high: 3, about: "Digits of floating-point numbers."},
	{name: "idle_in_transaction_session_timeout", kind: whole, standard: "0", high: math.MaxInt32, unit: "ms", about: "Longest wait inside a transaction."},
	{name: "idle_session_timeout", kind: whole, standard: "0", high: math.MaxInt32, unit: "ms", about: "Longest wait outside a transaction."},
	{name: "IntervalStyle", kind: choice, standard: "postgres", choices: scalar.IntervalStyles, reported: true, about: "How intervals are written."},
	{name: "lc_monetary", kind: choice, standard: "C", choices: plainLocales, about: "How money is written."},
	{name: "lc_numeric", kind: choice, standard: "C", choices: plainLocales, about: "How to_char writes separators."},
	{name: "lc_time", kind: choice, standard: "C", choices: plainLocales, about: "The language of months and days."},
	{name: "search_path", kind: special, standard: `"$user", public`, about: "Schemas in which bare names are looked up."},
	{name: "standard_conforming_strings", kind: choice, standard: "on", choices: []string{"on"}, reported: true, about: "Backslashes in strings are plain characters."},
	{name: "statement_timeout", kind: whole, standard: "0", high: math.MaxInt32, unit: "ms", about: "Longest wait for a statement."},
	{name: "TimeZone", kind: special, standard: "Etc/UTC", reported: true, about: "The session's time zone."},
	{name: "transform_null_equals", kind: choice, standard: "off", choices: []string{"off"}, about: "x = NULL is NULL."},
	{name: "role", kind: special, standard: "none", about: "The current role."},
	{name: "session_authorization", kind: special, reported: true, about: "The session's user."},
	{name: "transaction_isolation", kind: choice, standard: "read committed", choices: isolationLevels, about: "Isolation of this transaction."},
	{name: "default_transaction_isolation", kind: choice, standard: "read committed", choices: isolationLevels, about: "Isolation of new transactions."},
	{name: "transaction_read_only", kind: boolean, standard: "off", about: "This transaction reads only."},
	{name: "default_transaction_read_only", kind: boolean, standard: "off", reported: true, about: "New transactions read only."},
	{name: "transaction_deferrable", kind: boolean, standard: "off", about: "This transaction may wait for a safe snapshot."},
	{name: "default_transaction_deferrable", kind: boolean, standard: "off", about: "New transactions may wait for a safe snapshot."},
}

// fixedVariables can be read and not changed.
var fixedVariables = []variable{
	{name: "block_size", standard: "8192", fixed: true, about: "Size of a disk block."},
	{name: "data_checksums", standard: "off", fixed: true, about: "Whether pages carry checksums."},
	{name: "in_hot_standby", standard: "off", fixed: true, reported: true, about: "Whether the server is a standby."},
	{name: "integer_datetimes", standard: "on", fixed: true, reported: true, about: "Times are stored as integers."},
	{name: "is_superuser", standard: "off", fixed: true, reported: true, about: "Whether the user may do everything."},
	{name: "lc_collate", standard: "C", fixed: true, about: "Order of text."},
	{name: "lc_ctype", standard: "C.UTF-8", fixed: true, about: "Classes of characters."},
	{name: "listen_addresses", standard: "localhost", fixed: true, about: "Addresses that are listened on."},
	{name: "max_connections", standard: "100", fixed: true, about: "Most connections."},
	{name: "max_function_args", standard: "100", fixed: true, about: "Most arguments of a function."},
	{name: "max_identifier_length", standard: "63", fixed: true, about: "Longest identifier in bytes."},
	{name: "max_index_keys", standard: "32", fixed: true, about: "Most keys of an index."},
	{name: "max_prepared_transactions", standard: "0", fixed: true, about: "Most prepared transactions."},
	{name: "port", standard: "5432", fixed: true, about: "Port that is listened on."},
	{name: "segment_size", kind: whole, standard: "131072", unit: "8kB", fixed: true, about: "Pages in a file."},
	{name: "server_encoding", standard: "UTF8", fixed: true, reported: true, about: "The server's character set."},
	{name: "server_version", standard: serverVersion, fixed: true, reported: true, about: "The version of PostgreSQL that is spoken."},
	{name: "server_version_num", standard: serverVersionNum, fixed: true, about: "The same as a number."},
	{name: "ssl", standard: "off", fixed: true, about: "Whether connections may be encrypted."},
	{name: "wal_block_size", standard: "8192", fixed: true, about: "Size of a log block."},
	{name: "wal_level", standard: "replica", fixed: true, about: "What the log holds."},
}

// harmless variables are kept as they are set and change nothing.
var harmless = []variable{
	{name: "backslash_quote", kind: choice, standard: "safe_encoding", choices: []string{"safe_encoding", "on", "off"}, about: "Whether \\' is a quote."},
	{name: "backend_flush_after", kind: whole, standard: "0", high: 256, unit: "8kB", about: "Not used here."},
	{name: "bytea_output", kind: choice, standard: "hex", choices: []string{"hex", "escape"}, about: "How bytea is written."},
	{name: "check_function_bodies", kind: boolean, standard: "on", about: "Not used here."},
	{name: "client_connection_check_interval", kind: whole, standard: "0", high: math.MaxInt32, unit: "ms", about: "Not used here."},
	{name: "commit_delay", kind: whole, standard: "0", high: 100000, about: "Not used here."},
	{name: "constraint_exclusion", kind: choice, standard: "partition", choices: []string{"partition", "on", "off"}, about: "Not used here."},
	{name: "cpu_tuple_cost", kind: real, standard: "0.01", high: math.MaxFloat64, about: "Not used here."},
	{name: "cursor_tuple_fraction", kind: real, standard: "0.1", high: 1, about: "Not used here."},
	{name: "deadlock_timeout", kind: whole, standard: "1000", low: 1, high: math.MaxInt32, unit: "ms", about: "Not used here."},
	{name: "debug_print_plan", kind: boolean, standard: "off", about: "Not used here."},
	{name: "default_statistics_target", kind: whole, standard: "100", low: 1, high: 10000, about: "Not used here."},
	{name: "default_table_access_method", standard: "heap", about: "Not used here."},
	{name: "default_tablespace", about: "Not used here."},
	{name: "default_text_search_config", standard: "pg_catalog.english", about: "Not used here."},
	{name: "effective_cache_size", kind: whole, standard: "524288", low: 1, high: math.MaxInt32, unit: "8kB", about: "Not used here."},
	{name: "enable_bitmapscan", kind: boolean, standard: "on", about: "Not used here."},
	{name: "enable_hashagg", kind: boolean, standard: "on", about: "Not used here."},
	{name: "enable_hashjoin", kind: boolean, standard: "on", about: "Not used here."},
	{name: "enable_indexonlyscan", kind: boolean, standard: "on", about: "Not used here."},
	{name: "enable_indexscan", kind: boolean, standard: "on", about: "Not used here."},
	{name: "enable_mergejoin", kind: boolean, standard: "on", about: "Not used here."},
	{name: "enable_nestloop", kind: boolean, standard: "on", about: "Not used here."},
	{name: "enable_seqscan", kind: boolean, standard: "on", about: "Not used here."},
	{name: "enable_sort", kind: boolean, standard: "on", about: "Not used here."},
	{name: "escape_string_warning", kind: boolean, standard: "on", about: "Not used here."},
	{name: "force_parallel_mode", kind: choice, standard: "off", choices: []string{"off", "on", "regress"}, about: "Not used here."},
	{name: "from_collapse_limit", kind: whole, standard: "8", low: 1, high: math.MaxInt32, about: "Not used here."},
	{name: "geqo", kind: boolean, standard: "on", about: "Not used here."},
	{name: "gin_fuzzy_search_limit", kind: whole, standard: "0", high: math.MaxInt32, about: "Not used here."},
	{name: "jit", kind: boolean, standard: "off", about: "Not used here."},
	{name: "join_collapse_limit", kind: whole, standard: "8", low: 1, high: math.MaxInt32, about: "Not used here."},
	{name: "lc_messages", standard: "C", about: "Language of messages."},
	{name: "lo_compat_privileges", kind: boolean, standard: "off", about: "Not used here."},
	{name: "lock_timeout", kind: whole, standard: "0", high: math.MaxInt32, unit: "ms", about: "Not used here: nothing is locked."},
	{name: "log_min_duration_statement", kind: whole, standard: "-1", low: -1, high: math.MaxInt32, unit: "ms", about: "Not used here."},
	{name: "log_statement", kind: choice, standard: "none", choices: []string{"none", "ddl", "mod", "all"}, about: "Not used here."},
	{name: "maintenance_work_mem", kind: whole, standard: "65536", low: 1024, high: math.MaxInt32, unit: "kB", about: "Not used here."},
	{name: "max_parallel_workers", kind: whole, standard: "8", high: 1024, about: "Not used here."},
	{name: "max_parallel_workers_per_gather", kind: whole, standard: "2", high: 1024, about: "Not used here."},
	{name: "parallel_leader_participation", kind: boolean, standard: "on", about: "Not used here."},
	{name: "parallel_setup_cost", kind: real, standard: "1000", high: math.MaxFloat64, about: "Not used here."},
	{name: "parallel_tuple_cost", kind: real, standard: "0.1", high: math.MaxFloat64, about: "Not used here."},
	{name: "password_encryption", kind: choice, standard: "scram-sha-256", choices: []string{"scram-sha-256"}, about: "How passwords are kept."},
	{name: "plan_cache_mode", kind: choice, standard: "auto", choices: []string{"auto", "force_generic_plan", "force_custom_plan"}, about: "Not used here."},
	{name: "quote_all_identifiers", kind: boolean, standard: "off", about: "Not used here."},
	{name: "random_page_cost", kind: real, standard: "4", high: math.MaxFloat64, about: "Not used here."},
	{name: "row_security", kind: boolean, standard: "on", about: "Not used here."},
	{name: "seq_page_cost", kind: real, standard: "1", high: math.MaxFloat64, about: "Not used here."},
	{name: "session_replication_role", kind: choice, standard: "origin", choices: []string{"origin", "replica", "local"}, about: "Not used here."},
	{name: "stats_fetch_consistency", kind: choice, standard: "cache", choices: []string{"none", "cache", "snapshot"}, about: "Not used here."},
	{name: "synchronize_seqscans", kind: boolean, standard: "on", about: "Not used here."},
	{name: "synchronous_commit", kind: choice, standard: "on", choices: []string{"local", "remote_write", "remote_apply", "on", "off"}, about: "Not used here."},
	{name: "tcp_keepalives_count", kind: whole, standard: "0", high: math.MaxInt32, about: "Not used here."},
	{name: "tcp_keepalives_idle", kind: whole, standard: "0", high: math.MaxInt32, unit: "s", about: "Not used here."},
	{name: "tcp_keepalives_interval", kind: whole, standard: "0", high: math.MaxInt32, unit: "s", about: "Not used here."},
	{name: "tcp_user_timeout", kind: whole, standard: "0", high: math.MaxInt32, unit: "ms", about: "Not used here."},
	{name: "temp_buffers", kind: whole, standard: "1024", low: 100, high: math.MaxInt32, unit: "8kB", about: "Not used here."},
	{name: "temp_tablespaces", about: "Not used here."},
	{name: "track_activities", kind: boolean, standard: "on", about: "Not used here."},
	{name: "vacuum_cost_delay", kind: real, standard: "0", high: 100, about: "Not used here."},
	{name: "work_mem", kind: whole, standard: "4096", low: 64, high: math.MaxInt32, unit: "kB", about: "Not used here."},
	{name: "xmlbinary", kind: choice, standard: "base64", choices: []string{"base64", "hex"}, about: "Not used here."},
	{name: "xmloption", kind: choice, standard: "content", choices: []string{"content", "document"}, about: "Not used here."},
}

func concat(lists ...[]variable) []variable {
	var all []variable
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func index(all []variable) map[string]*variable {
	byName := make(map[string]*variable, len(all))
	for i := range all {
		byName[strings.ToLower(all[i].name)] = &all[i]
	}
	return byName
}

// reportedNames are the variables that clients are sent, in a fixed order.
var reportedNames = reported()

func reported() []string {
	var names []string
	for low, v := range known {
		if v.reported {
			names = append(names, low)
		}
	}
	sort.Strings(names)
	return names
}

// ofTransaction tells the modes of a transaction, which end with it however they are set.
func ofTransaction(name string) bool {
	return name == "transaction_isolation" || name == "transaction_read_only" || name == "transaction_deferrable"
}

// canonical finds the lower-case name of a variable that can be set, or says why it cannot be.
func canonical(name string) (string, *pgerror.Failure) {
	low := strings.ToLower(name)
	switch {
	case low == "timezone" || low == "time zone":
		return "timezone", nil
	case low == "names":
		return "client_encoding", nil
	case known[low] != nil:
		return low, nil
	case strings.HasPrefix(low, "dp."):
		return "", Unknown(low)
	case customName(low):
		return low, nil
	}
	return "", pgerror.New("42704", fmt.Sprintf("unrecognized configuration parameter %q", name))
}

// Unknown refuses a dp.* name that is no variable; readable are names that SHOW knows beside the variables.
func Unknown(name string, readable ...string) *pgerror.Failure {
	if laterVariables[name] {
		return pgerror.New("42704", fmt.Sprintf("parameter %q is not available yet", name))
	}
	f := pgerror.New("42704", fmt.Sprintf("unrecognized configuration parameter %q", name))
	for i := range dpVariables {
		readable = append(readable, dpVariables[i].name)
	}
	best, nearest := 4, ""
	for _, candidate := range readable {
		if d := editDistance(name, candidate); d < best {
			best, nearest = d, candidate
		}
	}
	if nearest != "" {
		return f.WithHint(fmt.Sprintf("Perhaps you meant %s.", nearest))
	}
	return f.WithHint("There are dp.epsilon, dp.delta, dp.max_error, dp.max_cost, dp.confidence, dp.error_columns, " +
		"dp.digits, dp.contribution, dp.coverage, dp.alarms, dp.release, dp.offgrid, dp.probes, dp.hints and dp.dialect.")
}

// Shows reports whether SHOW of a name is answered, or refused, here: all but the dp.* names that are no variables.
func Shows(name string) bool {
	low := strings.ToLower(name)
	return !strings.HasPrefix(low, "dp.") || known[low] != nil || laterVariables[low]
}

// Spelled is a variable's name as PostgreSQL writes it over the column of SHOW.
func Spelled(name string) string {
	low, f := canonical(name)
	if f != nil {
		return strings.ToLower(name)
	}
	if v := known[low]; v != nil {
		return v.name
	}
	return low
}

func customName(name string) bool {
	prefix, rest, ok := strings.Cut(name, ".")
	if !ok || prefix == "" || rest == "" || len(name) > 128 {
		return false
	}
	for _, c := range name {
		if !(c == '_' || c == '.' || c == '$' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c > 127) {
			return false
		}
	}
	return true
}

// Resettable finds the lower-case name of a variable that can be reset, or says why it cannot be.
func Resettable(name string) (string, *pgerror.Failure) {
	name, f := canonical(name)
	if f != nil {
		return "", f
	}
	if v := known[name]; v != nil && v.fixed {
		return "", pgerror.New("55P02", fmt.Sprintf("parameter %q cannot be changed", v.name))
	}
	return name, nil
}

// editDistance counts the single-character changes between two names.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		last := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			last, row[j] = row[j], min(row[j]+1, row[j-1]+1, last+cost)
		}
	}
	return row[len(b)]
}

// Written is the value of one SET as one text; names of schemas keep their bounds.
func Written(stmt parse.Statement) string {
	list := stmt.Values
	if stmt.Name == "search_path" || stmt.Name == "temp_tablespaces" {
		list = make([]string, len(stmt.Values))
		for i, v := range stmt.Values {
			list[i] = quoteName(v)
		}
	}
	value := strings.Join(list, ", ")
	if stmt.Name == "timezone" && strings.Contains(strings.ToLower(stmt.Text), "interval") {
		return scalar.IntervalPrefix + value + "'" // no zone's name has this word, so it is the type
	}
	return value
}

// quoteName quotes an identifier where it needs it.
func quoteName(s string) string {
	plain := s != ""
	for i, c := range s {
		if !(c == '_' || c >= 'a' && c <= 'z' || i > 0 && c >= '0' && c <= '9') {
			plain = false
		}
	}
	if plain {
		return s
	}
	return dialect.QuoteName(s)
}

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

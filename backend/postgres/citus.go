package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Citus: a PostgreSQL, the coordinator, whose tables lie on other ones, its workers. dpproxy speaks to the coordinator
// alone. docs/adr/0150 says what of PostgreSQL's promises is left there, and why the bounds hold.

// cluster is what dpproxy knows of Citus behind a connection; nil means that there is none.
type cluster struct {
	major  int   // version of the coordinator's PostgreSQL
	memory int64 // work_mem there, in kB
	single bool  // each transaction has one connection to each worker
}

// givensOfCitus are the settings of Citus that have one value in every transaction on a coordinator, as it shows them.
// Those that a version lacks are left out.
var givensOfCitus = []given{
	// What changes a count. The first one has count(DISTINCT …) estimated, the second has a LIMIT answered from some of
	// the rows, the others push down what must not be.
	{name: "citus.count_distinct_error_rate", value: "0"}, {name: "citus.limit_clause_row_fetch_count", value: "-1"}, {name: "citus.subquery_pushdown", value: "off"},
	{name: "citus.enable_outer_joins_with_pseudoconstant_quals_pre_pg17", value: "off"}, {name: "citus.allow_nested_distributed_execution", value: "off"},
	// What has EXPLAIN say nothing of the workers, by which a query is looked at before its charge.
	{name: "citus.explain_distributed_queries", value: "on"},
	// What ends a query by the number of its rows: by default what is gathered may have a gigabyte.
	{name: "citus.max_intermediate_result_size", value: "-1"},
	// Connections to workers that are kept for later transactions: those to a worker that was started again fail the
	// first query of each session, which has been paid for.
	{name: "citus.max_cached_conns_per_worker", value: "0"},
	// How a query is planned, which is to depend on the policy and the schema alone.
	{name: "citus.enable_repartition_joins", value: "off"}, {name: "citus.enable_single_hash_repartition_joins", value: "off"}, {name: "citus.local_table_join_policy", value: "auto"},
	{name: "citus.coordinator_aggregation_strategy", value: "row-gather"}, {name: "citus.enable_router_execution", value: "on"}, {name: "citus.enable_fast_path_router_planner", value: "on"},
	{name: "citus.enable_local_fast_path_query_optimization", value: "on"}, {name: "citus.enable_recurring_outer_join_pushdown", value: "on"},
	{name: "citus.enable_non_colocated_router_query_pushdown", value: "off"}, {name: "citus.enable_local_execution", value: "on"}, {name: "citus.select_opens_transaction_block", value: "on"},
	// What would write a query with its constants into logs, or the plans of all shards.
	{name: "citus.log_remote_commands", value: "off"}, {name: "citus.log_local_commands", value: "off"}, {name: "citus.log_multi_join_order", value: "off"},
	{name: "citus.multi_task_query_log_level", value: "off"}, {name: "citus.log_intermediate_results", value: "off"}, {name: "citus.explain_all_tasks", value: "off"},
}

// idleOfCitus are the settings of Citus that decide nothing about what reads: they are about statements that write,
// define, move or tell of shards, or about how long and by which way nodes are reached, which is the same for every
// row.
var idleOfCitus = []string{"citus.shard_count", "citus.shard_replication_factor", "citus.multi_shard_modify_mode", "citus.enable_ddl_propagation", "citus.node_connection_timeout",
	"citus.task_assignment_policy", "citus.executor_slow_start_interval", "citus.enable_binary_protocol", "citus.propagate_set_commands",
	"citus.max_cached_connection_lifetime", "citus.explain_analyze_sort_method", "citus.show_shards_for_app_name_prefixes", "citus.hide_shards_from_app_name_prefixes",
	"citus.override_table_visibility", "citus.enable_cost_based_connection_establishment", "citus.stat_statements_track", "citus.use_citus_managed_tables", "citus.enable_schema_based_sharding",
	"citus.max_adaptive_executor_pool_size", "citus.force_max_query_parallelization", "citus.all_modifications_commutative", "citus.cpu_priority", "citus.cpu_priority_for_logical_replication_senders",
	"citus.defer_drop_after_shard_move", "citus.defer_drop_after_shard_split", "citus.enable_change_data_capture", "citus.enable_create_role_propagation", "citus.enable_deadlock_prevention",
	"citus.enable_local_reference_table_foreign_keys", "citus.local_hostname", "citus.max_client_connections", "citus.max_high_priority_background_processes", "citus.max_matview_size_to_auto_recreate",
	"citus.remote_task_check_interval", "citus.skip_constraint_validation", "citus.skip_jsonb_validation_in_copy", "citus.stat_tenants_log_level", "citus.stat_tenants_period", "citus.stat_tenants_track",
	"citus.stat_tenants_untracked_sample_rate", "citus.task_executor_type", "citus.values_materialization_threshold", "citus.worker_min_messages", "citus.writable_standby_coordinator",
	// Those that pg_settings does not show.
	"citus.allow_modifications_from_workers_to_replicated_tables", "citus.allow_unsafe_constraints", "citus.allow_unsafe_locks_from_workers", "citus.check_available_space_before_move",
	"citus.copy_switchover_threshold", "citus.create_object_propagation", "citus.enable_alter_database_owner", "citus.enable_alter_role_propagation", "citus.enable_alter_role_set_propagation",
	"citus.enable_cluster_clock", "citus.enable_create_database_propagation", "citus.enable_create_type_propagation", "citus.enable_manual_changes_to_shards", "citus.enable_metadata_sync",
	"citus.enable_repartitioned_insert_select", "citus.enable_stat_counters", "citus.enable_unique_job_ids", "citus.enable_unsafe_triggers", "citus.enable_unsupported_feature_messages",
	"citus.enable_version_checks", "citus.enforce_foreign_key_restrictions", "citus.enforce_object_restrictions_for_local_objects", "citus.function_opens_transaction_block",
	"citus.grep_remote_commands", "citus.hide_citus_dependent_objects", "citus.isolation_test_session_process_id", "citus.isolation_test_session_remote_process_id",
	"citus.local_copy_flush_threshold", "citus.max_rebalancer_logged_ignored_moves", "citus.metadata_sync_mode", "citus.mitmfifo", "citus.next_cleanup_record_id", "citus.next_operation_id",
	"citus.next_placement_id", "citus.next_shard_id", "citus.prevent_incomplete_connection_establishment", "citus.propagate_session_settings_for_loopback_connection",
	"citus.rebalancer_by_disk_size_base_cost", "citus.remote_copy_flush_threshold", "citus.replicate_reference_tables_on_activate", "citus.replication_model", "citus.running_under_citus_test_suite",
	"citus.skip_advisory_lock_permission_checks", "citus.sort_returning", "citus.superuser"}

// findCluster looks, once, whether the tables may lie on several machines.
func (b *DB) findCluster(ctx context.Context, single bool) error {
	err := b.transactionAside(ctx, execute.ReadyTimeout, func(tx pgx.Tx) error {
		c := cluster{major: majorVersion(tx.Conn()), single: single}
		var there bool
		if err := tx.QueryRow(ctx, "SELECT "+onCitus+", pg_catalog.pg_size_bytes(pg_catalog.current_setting('work_mem')) / 1024, "+onlyPostgres).Scan(&there, &c.memory, &b.alone); err != nil {
			return err
		}
		if there {
			b.cluster = &c
		}
		return nil
	})
	if err != nil {
		b.log.Warn("the private database is not ready", "cause", cause(err))
		return backend.ErrUnavailable
	}
	b.opened = true
	return nil
}

// settings are statements by which a transaction has Citus's settings, and the workers' transactions, each of which
// begins when it is first needed, have all those that the coordinator's has (privacy rule 24):
//
//	SET LOCAL citus.propagate_set_commands = 'local'
//	SET LOCAL jit = 'off'          -- each in a message of its own: Citus hands on the text of the whole message
func (c *cluster) settings(limit time.Duration) []string {
	if c == nil {
		return nil
	}
	var names, values []string
	for _, g := range givensOfCitus {
		names, values = append(names, g.name), append(values, g.value)
	}
	list := []string{
		fmt.Sprintf(`SELECT pg_catalog.count(pg_catalog.set_config(g.name, g.value, true))
FROM ROWS FROM (pg_catalog.unnest('{%s}'::pg_catalog.text[]), pg_catalog.unnest('{%s}'::pg_catalog.text[])) AS g(name, value)
WHERE pg_catalog.current_setting(g.name, true) OPERATOR(pg_catalog.<>) g.value`, strings.Join(names, ","), strings.Join(values, ",")),
		"SET LOCAL citus.propagate_set_commands = 'local'",
		fmt.Sprintf("SET LOCAL statement_timeout = '%d'", max(limit.Milliseconds(), 1)),
		fmt.Sprintf("SET LOCAL work_mem = '%dkB'", c.memory),
	}
	if c.single {
		list = append(list, "SET LOCAL citus.max_adaptive_executor_pool_size = 1")
	} else {
		list = append(list, singleSQL)
	}
	for _, g := range givens {
		if c.major >= g.since && (g.until == 0 || c.major < g.until) && !slices.Contains(ofOneNode, g.name) {
			list = append(list, "SET LOCAL "+g.name+" = "+dialect.QuoteText(g.value))
		}
	}
	return append(list, "SELECT pg_catalog.set_config('client_min_messages', 'warning', true)") // here alone: set_config goes to no worker
}

// Where rows have several places (reference tables, citus.shard_replication_factor) and a worker is lost that has
// answered in part, Citus asks at the next place and keeps what has come: rows that are counted, or numbered within
// their units already, are there twice, and no bound holds of what is made of them. Nothing tells it not to; it says
// that it did so by a warning, unless another connection to that worker is open. So tables whose shards have several
// places are read by one connection to each worker, and a transaction in which such a warning came has failed (rule 5),
// whatever it has read.
const singleSQL = `SELECT pg_catalog.set_config('citus.max_adaptive_executor_pool_size', '1', true)
WHERE EXISTS (SELECT FROM pg_catalog.pg_dist_partition p WHERE p.repmodel = 'c')`

// errLost says that a worker was lost whose part another one may have answered again.
var errLost = execute.Fault("a worker of the cluster was lost while it answered, and another one may have answered again")

// lostKey is where a connection keeps that it was notified of it.
const lostKey = "dpproxy: a worker was lost"

// noteLost remembers of the warnings that came on a connection those of a lost connection to a worker; nothing of their
// texts is read.
func noteLost(conn *pgconn.PgConn, n *pgconn.Notice) {
	if len(n.Code) == 5 && execute.Class(n.Code) == "08" {
		conn.CustomData()[lostKey] = true
	}
}

// lost tells, once, whether a worker was lost since it was asked last.
func lost(conn *pgx.Conn) bool {
	told := conn.PgConn().CustomData()
	_, was := told[lostKey]
	delete(told, lostKey)
	return was
}

// awaySQL reports whether a worker does not answer a session of dpproxy's role. EXPLAIN would not tell: it has one
// worker plan the part of one shard, and where that cannot be had it says so in its text (noRemotePlan), and is none
// the worse.
const awaySQL = `SELECT EXISTS (SELECT FROM pg_catalog.run_command_on_workers('SELECT 1') r WHERE NOT r.success)`

// noRemotePlan is in a plan whose part a worker did not plan.
const noRemotePlan = "Error: Could not get remote plan."

// errNoRemotePlan says so.
var errNoRemotePlan = execute.Fault("a worker of the cluster does not plan its part")

// singly is c with one connection to each worker in a transaction. What it reads of a worker it then reads in one
// moment, which begins when the worker is first asked: for a copy, of which a unit's rows in all tables are to be of
// one moment, and where answers leave on a grid, since with more connections the later ones begin when there is still
// something to do, and so by how long it took.
func (c *cluster) singly() *cluster {
	if c == nil {
		return nil
	}
	own := *c
	own.single = true
	return &own
}

// ofOneNode are the settings that workers keep as they are: between nodes texts are in the databases' encoding, which
// is looked at, and nodes quote names for each other.
var ofOneNode = []string{"client_encoding", "quote_all_identifiers", "exit_on_error"}

// nodeSQL asks each worker, in a session of dpproxy's role as queries have it, what its database and its role are like.
const nodeSQL = `SELECT r.nodename || ':' || r.nodeport, r.success, COALESCE(r.result, '') FROM pg_catalog.run_command_on_workers($1) r ORDER BY 1`

const nodeFactsSQL = `SELECT pg_catalog.concat_ws(' ', pg_catalog.current_setting('server_encoding'), pg_catalog.current_setting('temp_file_limit'), pg_catalog.pg_is_in_recovery())`

// tableSQL is how a table lies: h by a hash of a column, a by appending, n as a whole; t of a reference table, which
// all nodes have.
const tableSQL = `SELECT p.partmethod::text, p.repmodel::text, p.colocationid, COALESCE(pg_catalog.column_to_column_name(p.logicalrelid, p.partkey), ''),
  (SELECT pg_catalog.count(*) FROM pg_catalog.pg_dist_shard s WHERE s.logicalrelid = p.logicalrelid)
FROM pg_catalog.pg_dist_partition p JOIN pg_catalog.pg_class c ON c.oid = p.logicalrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1::pg_catalog.text AND c.relname = $2::pg_catalog.text`

// layout is how a table lies.
type layout struct {
	method, model, column string
	group                 int32 // of tables of which like values are on one machine
	shards                int64
}

func (l layout) byHash() bool { return l.method == "h" }

// everywhere tells a reference table.
func (l layout) everywhere() bool { return l.method == "n" && l.model == "t" }

// layoutOf reads it; ok is false for a table that only the coordinator has.
func layoutOf(ctx context.Context, tx pgx.Tx, t *policy.Table) (l layout, ok bool, err error) {
	schema, name := rewrite.Relation(t.Source, dialect.Citus)
	err = tx.QueryRow(ctx, tableSQL, schema, name).Scan(&l.method, &l.model, &l.group, &l.column, &l.shards)
	if errors.Is(err, pgx.ErrNoRows) {
		return l, false, nil
	}
	return l, err == nil, err
}

// clusterFindings says how the tables of a dataset lie on the machines of a cluster, and what its workers would decide.
func (b *DB) clusterFindings(ctx context.Context, tx pgx.Tx, d *policy.Dataset) (list []backend.Finding, err error) {
	var there bool
	if err := tx.QueryRow(ctx, "SELECT "+onCitus).Scan(&there); err != nil {
		return nil, err
	}
	if there != (b.cluster != nil) {
		return []backend.Finding{{Fatal: true, Text: "Citus was installed in the database, or taken out of it, since dpproxy connected: start it again"}}, nil
	}
	if !there {
		return nil, nil
	}
	if list, err = nodeFindings(ctx, tx, d); err != nil {
		return nil, err
	}
	beside, whole, spread := map[int32][]string{}, map[int32]int{}, 0 // by group: tables by the unit, tables that lie as a whole; tables of any
	at := map[*policy.Table]layout{}
	for _, t := range d.Tables {
		if t.Public || t.View.Text != "" {
			continue
		}
		l, ok, err := layoutOf(ctx, tx, t)
		if err != nil {
			return nil, err
		}
		if !ok {
			list = append(list, backend.Finding{Text: fmt.Sprintf("table %s lies on the coordinator alone: its questions are counted there, and those that join it with distributed tables bring rows there", t.Name)})
			continue
		}
		at[t] = l
		if !l.everywhere() {
			spread++
		}
		if l.method == "n" && l.group != 0 { // of a distributed schema
			whole[l.group]++
		}
		if l.byHash() && t.UnitColumn != "" && l.column == t.UnitColumn {
			beside[l.group] = append(beside[l.group], t.Name)
		}
	}
	most := int32(0) // the group of most tables that are distributed by the unit
	for group, tables := range beside {
		if len(tables) > len(beside[most]) || len(tables) == len(beside[most]) && group < most {
			most = group
		}
	}
	for _, t := range d.Tables {
		switch l, ok := at[t]; {
		case ok && l.method == "n" && !l.everywhere() && whole[l.group] == spread:
			list = append(list, backend.Finding{Note: true, Text: fmt.Sprintf("table %s lies as a whole on one machine, as all tables of the dataset that are distributed do (a distributed schema): its questions are counted there", t.Name)})
		case ok:
			list = append(list, l.finding(t, beside[most], l.group == most))
		}
	}
	if b.readers > 0 {
		list = append(list, backend.Finding{Note: true, Text: "a copy (backend.snapshot) has the rows of each worker in one moment, and those of another worker in a moment of its own: rows that one transaction wrote on several of them " +
			"may be in it in part. It is read by one connection, and an owner's TRUNCATE or ALTER TABLE waits until it is made"})
	}
	return list, nil
}

// finding says of a table that is in the catalog of Citus how it lies.
func (l layout) finding(t *policy.Table, group []string, within bool) backend.Finding {
	unit, where := t.Dataset.UnitName(), ""
	switch {
	case l.everywhere():
		return backend.Finding{Note: true, Text: fmt.Sprintf("table %s is a reference table: a question to it is counted by one machine, and it joins tables that are distributed where their rows lie", t.Name)}
	case l.method == "n":
		return backend.Finding{Text: fmt.Sprintf("table %s lies as a whole on one machine: its questions are counted there, and those that join it with distributed tables bring rows to the coordinator", t.Name)}
	case l.byHash() && t.Dataset.Unit.Row:
		return backend.Finding{Text: fmt.Sprintf("table %s is distributed by %s, in %d shards, whose moments differ: a row that is deleted and written anew into another shard while a question is counted may count twice, or not at all. "+
			"That this does not happen is assumed, unless the table is static", t.Name, l.column, l.shards)}
	case l.byHash() && t.UnitColumn != "" && l.column == t.UnitColumn && within:
		if others := slices.DeleteFunc(slices.Clone(group), func(s string) bool { return s == t.Name }); len(others) > 0 {
			where = ", beside " + strings.Join(others, ", ")
		}
		return backend.Finding{Note: true, Text: fmt.Sprintf("table %s is distributed by %s, which names its %ss, in %d shards%s: its questions are counted where the rows lie", t.Name, l.column, unit, l.shards, where)}
	case l.byHash() && t.UnitColumn != "" && l.column == t.UnitColumn:
		return backend.Finding{Text: fmt.Sprintf("table %s is distributed by %s, which names its %ss, in %d shards, but not beside %s: questions over both bring rows to the coordinator, or are not planned. "+
			"As its owner: SELECT alter_distributed_table(%s, colocate_with := %s)", t.Name, l.column, unit, l.shards, strings.Join(group, ", "), quotedTable(t), quotedOther(t, group))}
	case l.byHash():
		advice := ""
		if t.UnitColumn != "" {
			advice = fmt.Sprintf(". As its owner: SELECT alter_distributed_table(%s, distribution_column := %s)", quotedTable(t), dialect.QuoteText(t.UnitColumn))
		}
		return backend.Finding{Text: fmt.Sprintf("table %s is distributed by %s and not by what names its %ss: the rows of one lie on several machines, so that each question that bounds them brings rows to the coordinator, or is not planned%s",
			t.Name, l.column, unit, advice)}
	}
	return backend.Finding{Text: fmt.Sprintf("table %s is distributed by appending (or by ranges): the rows of one %s lie on several machines, no constraint holds for all of them, and each question that bounds them brings rows to the coordinator, or is not planned",
		t.Name, unit)}
}

// quotedTable names a table as an argument of Citus's functions.
func quotedTable(t *policy.Table) string {
	schema, name := rewrite.Relation(t.Source, dialect.Citus)
	return dialect.QuoteText(dialect.QuoteName(schema) + "." + dialect.QuoteName(name))
}

// quotedOther names the first table of a group.
func quotedOther(t *policy.Table, group []string) string {
	for _, o := range t.Dataset.Tables {
		if len(group) > 0 && o.Name == group[0] {
			return quotedTable(o)
		}
	}
	return "'…'"
}

// nodeFindings says what is wrong with the workers.
func nodeFindings(ctx context.Context, tx pgx.Tx, d *policy.Dataset) (list []backend.Finding, err error) {
	var secondaries string
	if err := tx.QueryRow(ctx, "SELECT COALESCE(pg_catalog.current_setting('citus.use_secondary_nodes', true), 'never')").Scan(&secondaries); err != nil {
		return nil, err
	}
	if secondaries != "never" {
		list = append(list, backend.Finding{Fatal: true, Text: "citus.use_secondary_nodes has queries read standbys of the workers, which lag, and may cancel a query by how long it takes: set it to never for dpproxy's role"})
	}
	rows, err := tx.Query(ctx, nodeSQL, nodeFactsSQL)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var node, facts string
		var there bool
		if err := rows.Scan(&node, &there, &facts); err != nil {
			return nil, err
		}
		said := strings.Fields(facts)
		if !there || len(said) != 3 {
			list = append(list, backend.Finding{Fatal: true, Text: fmt.Sprintf("worker %s does not answer a session of dpproxy's role: every question to a distributed table would fail after its charge", node)})
			continue
		}
		if said[0] != "UTF8" {
			list = append(list, backend.Finding{Fatal: true, Text: fmt.Sprintf("worker %s: the database's encoding is %s, and must be UTF8", node, said[0])})
		}
		if said[1] != "-1" {
			list = append(list, backend.Finding{Fatal: true, Text: fmt.Sprintf("worker %s: temp_file_limit bounds the temporary files of dpproxy's sessions: with enough rows one %s more or fewer would decide whether a query ends, and the answer would show it. "+
				"There, as a superuser: ALTER ROLE … SET temp_file_limit = -1", node, d.UnitName())})
		}
		if said[2] != "f" {
			list = append(list, backend.Finding{Fatal: true, Text: fmt.Sprintf("worker %s is a standby, which lags, and may cancel a query by how long it takes", node)})
		}
	}
	return list, rows.Err()
}

// spreadKeyFindings refuses keys that are joined and of which equal values may have different texts: what the SQL for
// Citus takes one row of each of (rewrite, joinsOther) would be equal for DISTINCT and different for =, or the other
// way round.
func spreadKeyFindings(d *policy.Dataset, have inspect.Shape) (list []backend.Finding) {
	for _, t := range d.Tables {
		if t.Public || t.Analysed() {
			continue
		}
		schema, name := inspect.RelationOf(t, dialect.Citus)
		for _, key := range inspect.KeyColumns(t) {
			if c, ok := have[inspect.ColumnOf(schema, name, key)]; ok && exactClass(c) == "" && c.Base != "numeric" {
				list = append(list, backend.Finding{Fatal: true, Text: fmt.Sprintf("table %s: the key %s is %s, of which equal values may have different texts: on Citus give it another type", t.Name, key, c.Keyed())})
			}
		}
	}
	return list
}

// shapeFindings has the coordinator plan each shape of question to each table, and says which are counted where the
// rows lie. Of a plan nothing is read but what kinds of step the coordinator has: these depend on the schema and on how
// tables lie, while what a worker would do depends on its statistics, and so on rows.
func (b *DB) shapeFindings(ctx context.Context, d *policy.Dataset) (list []backend.Finding) {
	shapes, err := rewrite.Shapes(d, dialect.Citus)
	if err != nil {
		return []backend.Finding{{Fatal: true, Text: err.Error()}}
	}
	said := map[string]map[string][]string{} // by table, by what is so
	var tables []string
	for _, s := range shapes {
		if said[s.Table.Name] == nil {
			said[s.Table.Name], tables = map[string][]string{}, append(tables, s.Table.Name)
		}
		how := b.whereCounted(ctx, s.Query)
		said[s.Table.Name][how] = append(said[s.Table.Name][how], s.What)
	}
	for _, name := range tables {
		for _, how := range []string{whereRowsLie, onCoordinator, notPlanned} {
			if what := said[name][how]; len(what) > 0 {
				list = append(list, backend.Finding{Note: how == whereRowsLie, Text: fmt.Sprintf("table %s: %s: %s", name, how, strings.Join(what, "; "))})
			}
		}
	}
	return list
}

// Where a question's rows are counted.
const (
	whereRowsLie  = "counted where the rows lie"
	onCoordinator = "brings rows to the coordinator, and counts there"
	notPlanned    = "not planned by Citus, and refused before any charge"
)

func (b *DB) whereCounted(ctx context.Context, q rewrite.Query) string {
	var plan []byte
	err := b.transactionAside(ctx, execute.DefaultDeadline, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "EXPLAIN (COSTS false, FORMAT JSON) "+q.SQL(), q.Args()...).Scan(&plan)
	})
	if err != nil {
		return notPlanned
	}
	var steps []struct{ Plan planStep }
	if err := json.Unmarshal(plan, &steps); err != nil || len(steps) != 1 {
		return notPlanned
	}
	if steps[0].Plan.gathers("") {
		return onCoordinator
	}
	return whereRowsLie
}

// planSteps are those below one another.
type planSteps []planStep

// planStep is what is read of a step of the coordinator's.
type planStep struct {
	Kind  string    `json:"Node Type"`
	Below planSteps `json:"Plans"`
	Of    struct {
		Job struct {
			Tasks      int               `json:"Task Count"`
			Reshuffled []json.RawMessage `json:"Dependent Jobs"`
		}
		Before []struct {
			Statement []struct{ Plan planStep } `json:"PlannedStmt"`
		} `json:"Subplans"`
	} `json:"Distributed Query"`
}

// gathers reports whether rows come to the coordinator that are no counts of cells: what several tasks answer is not
// added up by the next step above.
func (s planStep) gathers(above string) bool {
	if s.Of.Job.Tasks > 1 && above != "Aggregate" || len(s.Of.Job.Reshuffled) > 0 {
		return true
	}
	for _, sub := range s.Of.Before {
		for _, p := range sub.Statement {
			if p.Plan.gathers("") {
				return true
			}
		}
	}
	if s.Kind != "Sort" {
		above = s.Kind
	}
	return slices.ContainsFunc(s.Below, func(b planStep) bool { return b.gathers(above) })
}

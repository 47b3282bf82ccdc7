package pgcatalog

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/dpproxy/dpproxy/policy"
)

// Functions that tell of the server, of other sessions, of sizes or of how often something was read exist here and tell
// nothing: they are NULL or a constant, or return no rows, whatever they are given. What they would say is what the
// relations over them would.
//
//	SELECT pg_stat_get_live_tuples(c.oid) FROM pg_class c
//	⇒ SELECT NULL::bigint AS pg_stat_get_live_tuples FROM pg_class c

// silentNames are these functions; one that ends in * means all that begin so.
var silentNames = strings.Fields(`pg_stat_get_* pg_stat_have_stats pg_control_* pg_get_replication_slots pg_get_shmem_allocations
	pg_get_backend_memory_contexts pg_get_publication_tables pg_get_catalog_foreign_keys pg_lock_status pg_prepared_xact pg_show_all_file_settings
	pg_show_replication_origin_status pg_hba_file_rules pg_ident_file_mappings pg_config pg_sequence_last_value
	pg_available_extension_versions pg_indexam_progress_phasename pg_mcv_list_items pg_blocking_pids pg_safe_snapshot_blocking_pids pg_isolation_test_session_is_blocked
	pg_current_wal_lsn pg_current_wal_insert_lsn pg_current_wal_flush_lsn pg_last_wal_receive_lsn pg_last_wal_replay_lsn
	pg_last_xact_replay_timestamp pg_is_wal_replay_paused pg_get_wal_replay_pause_state pg_walfile_name pg_walfile_name_offset
	pg_current_logfile pg_relation_filepath pg_relation_filenode pg_filenode_relation pg_postmaster_start_time pg_conf_load_time
	pg_notification_queue_usage pg_listening_channels pg_xact_commit_timestamp pg_xact_commit_timestamp_origin pg_last_committed_xact
	pg_xact_status txid_status txid_current txid_current_if_assigned txid_current_snapshot pg_available_extensions
	pg_current_xact_id pg_current_xact_id_if_assigned pg_current_snapshot pg_get_multixact_members mxid_age pg_event_trigger_ddl_commands
	inet_client_addr inet_client_port inet_server_addr inet_server_port`)

// functionText lists the signatures of the silent functions in PostgreSQL 15, one a line: name, types of the arguments,
// of the result, whether it returns rows, and of what columns (name=type). TestFilesAreTheServers writes it.
//
//go:embed functions15.tsv
var functionText string

// Function is a signature of a function that tells nothing.
type Function struct {
	Args    []policy.Type
	Result  policy.Type
	Rows    bool     // it returns rows, or several columns
	Columns []Column // that it has in FROM
}

var silent = sync.OnceValue(func() map[string][]Function {
	all := map[string][]Function{}
	for line := range strings.Lines(functionText) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		f := Function{Result: policy.Type(number(fields[2]))}
		for arg := range strings.FieldsSeq(fields[1]) {
			f.Args = append(f.Args, policy.Type(number(arg)))
		}
		for part := range strings.FieldsSeq(fields[4]) {
			name, t, _ := strings.Cut(part, "=")
			f.Columns = append(f.Columns, Column{Name: name, Type: policy.Type(number(t)), Typmod: -1})
		}
		f.Rows = fields[3] == "1" || len(f.Columns) > 1
		if f.Columns == nil {
			f.Columns = []Column{{Name: fields[0], Type: f.Result, Typmod: -1}}
		}
		all[fields[0]] = append(all[fields[0]], f)
	}
	return all
})

// constants are what silent functions return that clients read a number of: the first transaction of a server that
// nobody has written to.
var constants = map[string]string{"txid_current": "3", "pg_current_xact_id": "3", "txid_current_snapshot": "3:3:", "pg_current_snapshot": "3:3:"}

// Constant returns the text of what a silent function always returns, or false where that is NULL.
func Constant(name string) (text string, ok bool) {
	text, ok = constants[name]
	return text, ok
}

// Silent are the signatures of a function that tells nothing; nil where the name is none's.
func Silent(name string) []Function { return silent()[name] }

// rowsOf are the functions whose rows are those of a relation of pg_catalog over them.
var rowsOf = map[string]string{"pg_show_all_settings": "pg_settings", "pg_cursor": "pg_cursors", "pg_prepared_statement": "pg_prepared_statements",
	"pg_timezone_abbrevs": "pg_timezone_abbrevs", "pg_timezone_names": "pg_timezone_names"}

// RowsOf is the relation of pg_catalog whose rows a function of no arguments returns, as its columns are the same; ""
// where there is none.
func RowsOf(function string) string { return rowsOf[function] }

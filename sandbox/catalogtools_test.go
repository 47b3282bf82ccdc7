package sandbox_test

import (
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

// toolStatements are what administrators' tools ask, written anew. Those that begin with = have the same rows on any
// server.
var toolStatements = []string{
	`=SELECT * FROM pg_get_keywords() ORDER BY word COLLATE "C"`,
	"=SELECT string_agg(word, ',' ORDER BY word) FROM pg_catalog.pg_get_keywords() WHERE word <> ALL ('{a,all,select,table}'::text[]) AND catcode = 'R'",
	"=SELECT k.word, k.barelabel, n FROM pg_get_keywords() WITH ORDINALITY AS k(word, code, barelabel, says, bare, n) WHERE n < 4 ORDER BY n",
	"=SELECT (pg_get_keywords()).word LIMIT 0",
	"=SELECT set_config('jit', 'on', false) FROM pg_show_all_settings() WHERE name = 'jit'",
	"=SELECT set_config('jit', 'on', false) FROM pg_catalog.pg_settings s WHERE s.name = 'no such setting'",
	"=SELECT CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() END AS paused, pg_last_wal_replay_lsn(), pg_get_wal_replay_pause_state() IS NULL AND false",
	"=SELECT (d).grantee, (d).privilege_type FROM (SELECT aclexplode(nspacl) AS d FROM pg_namespace WHERE nspname = 'nothing') a",
	"=SELECT r.n, l.locktype FROM generate_series(1, 2) AS r(n) LEFT JOIN pg_lock_status() AS l ON l.page = r.n AND l.pid = -r.n ORDER BY 1",
	"=SELECT a.attname, information_schema._pg_numeric_precision(information_schema._pg_truetypid(a, t), information_schema._pg_truetypmod(a, t)) FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = 'pg_class'::regclass AND attnum > 0 ORDER BY attnum",
	"=SELECT information_schema._pg_char_max_length(x, 14), information_schema._pg_char_octet_length(x, 14), information_schema._pg_numeric_precision(x, 655366), information_schema._pg_numeric_scale(x, 655366), information_schema._pg_numeric_precision_radix(x, 655366), information_schema._pg_datetime_precision(x, 3), information_schema._pg_datetime_precision(x, -1) FROM unnest(ARRAY[16,20,21,23,25,700,701,1042,1043,1082,1083,1114,1184,1186,1700]::oid[]) AS x ORDER BY x",
	"=SELECT DISTINCT n.nspname, n.oid FROM pg_namespace n WHERE n.nspname IN ('pg_catalog', 'public') ORDER BY n.nspname DESC",
	"=SELECT c.relname, d.refobjid FROM pg_class c LEFT JOIN pg_depend d ON d.objid = c.oid AND d.refclassid = (SELECT oid FROM pg_class WHERE relname = 'pg_constraint') WHERE c.relname = 'pg_class'",
	"=SELECT substring(array_to_string(reloptions, ',') FROM 'fillfactor=([0-9]*)') FROM pg_class WHERE relname = 'pg_proc'",
	"=SELECT row_to_json(t) FROM (SELECT count(*) AS \"Total\" FROM pg_locks WHERE pid = -1) t",
	"=SELECT c.relname FROM pg_class c WHERE c.relhasrules AND EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = c.oid AND bpchar(r.ev_type) = '1'::bpchar) AND c.relkind = 'm'::char",
	"=SELECT t.tgname, t.tgenabled, (string_to_array(encode(t.tgargs, 'escape'), E'\\\\000')::text[])[1:t.tgnargs] AS args, coalesce(substring(pg_get_triggerdef(t.oid, true), 'WHEN (.*) EXECUTE (PROCEDURE|FUNCTION)'), '') FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal",
	"=SELECT oidvectortypes('23 25 1042'::oidvector), 70000::oid = ANY('{1,2}'::int2[]), CASE WHEN a.x = 0::oid THEN '' ELSE 'f' END FROM (SELECT 0::oid AS x) a",
	"=SELECT 'a' AS kind, ARRAY['x']::text[] AS path UNION ALL SELECT 'b', NULL UNION ALL SELECT 'c', '{ y , \"z\" }'::text[]",
	"SELECT p.proname, oidvectortypes(p.proargtypes), p.proargmodes, (SELECT array_agg(DISTINCT e.extname) FROM pg_depend d JOIN pg_extension e ON d.refobjid = e.oid WHERE d.objid = p.oid) AS extensions FROM pg_proc p WHERE p.prokind IN ('f', 'w') LIMIT 3",
	"SELECT gss_authenticated, encrypted FROM pg_stat_gssapi WHERE pid = pg_backend_pid()",
	"SELECT sum(xact_commit) + sum(xact_rollback), sum(blks_hit) FROM pg_stat_database WHERE datname = current_database()",
	"SELECT c.oid, c.xmin, s.seq_scan, s.last_vacuum, pg_size_pretty(pg_relation_size(c.oid)) FROM pg_class c LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid ORDER BY c.relname LIMIT 3",
	"SELECT l.pid, l.relation::regclass, d.datname FROM pg_locks l LEFT JOIN pg_database d ON d.oid = l.database ORDER BY l.pid",
	"SELECT pid, array_to_string(pg_blocking_pids(pid), ', '), to_char(backend_start, 'YYYY-MM-DD HH24:MI:SS TZ') FROM pg_stat_activity",
	"SELECT s.slot_name, s.active, s.restart_lsn FROM pg_replication_slots s",
	"SELECT client_addr, state, sent_lsn, replay_lag FROM pg_stat_replication",
	"SELECT name, setting, unit, short_desc FROM pg_show_all_settings() ORDER BY category",
	"=SELECT c.relname, r.rulename, r.is_instead FROM pg_class c JOIN pg_rewrite r ON r.ev_class = c.oid AND bpchar(r.ev_type) = '1'::bpchar WHERE c.relname = 'pg_views' AND c.relhasrules",
	"=SELECT pg_get_viewdef(0), pg_get_viewdef('pg_class'::regclass, true), pg_get_ruledef(0)",
	"SELECT definition, pg_get_ruledef(r.oid, true) FROM pg_views v JOIN pg_rewrite r ON r.ev_class = (quote_ident(v.schemaname) || '.' || quote_ident(v.viewname))::regclass",
	"SELECT r.oid, r.rolname, r.rolcanlogin, shobj_description(r.oid, 'pg_authid') FROM pg_roles r WHERE rolname = current_user",
	"SELECT d.oid, d.datname, pg_encoding_to_char(d.encoding), has_database_privilege(d.oid, 'CREATE'), pg_database_size(d.oid) FROM pg_database d WHERE d.datname = current_database()",
	"SELECT schemaname, relname, n_live_tup FROM pg_stat_user_tables", "SELECT most_common_vals, histogram_bounds FROM pg_stats",
	"SELECT pg_stat_get_live_tuples(c.oid), pg_stat_get_numscans(c.oid) FROM pg_class c LIMIT 1", "SELECT pg_postmaster_start_time(), pg_conf_load_time()",
	"SELECT * FROM pg_stat_get_activity(NULL) AS a(datid, pid)", "SELECT * FROM pg_stat_get_wal_senders() WITH ORDINALITY",
}

// TestToolsReadTheCatalogs: administrators' tools get the columns that PostgreSQL gives them, and its rows
// where those are the same on any server.
func TestToolsReadTheCatalogs(t *testing.T) {
	conn := asPlainRole(t)
	for name, e := range walked(t) {
		for _, sql := range toolStatements {
			sql, exact := strings.CutPrefix(sql, "=")
			want, err := described(t, conn, sql)
			if err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
			rows, err := sandboxtest.Planned(t, e, sandboxtest.Census(), sql)
			if exact {
				want = sandboxtest.OnPostgreSQL(conn, sql)
			} else {
				rows.Data = nil
			}
			if got := sandboxtest.Written(rows); err != nil || got != want {
				t.Errorf("%s: %s: %v\n    got  %s\n    want %s", name, sql, err, got, want)
			}
		}
	}
}

// TestCatalogsTellNothingOfTheServer: the sandbox does not say when its server began, how far it has written, who else
// is there, or how often anything was read.
func TestCatalogsTellNothingOfTheServer(t *testing.T) {
	for name, e := range walked(t) {
		for _, sql := range []string{
			"SELECT pg_current_wal_lsn() IS NULL AND txid_current_if_assigned() IS NULL AND pg_postmaster_start_time() IS NULL AND pg_conf_load_time() IS NULL",
			"SELECT pg_relation_filepath('pg_class') IS NULL AND pg_stat_get_live_tuples('pg_class'::regclass) IS NULL AND pg_stat_get_numscans(1259) IS NULL",
			"SELECT count(*) = 0 FROM pg_stat_get_activity(NULL) a", "SELECT count(*) = 0 FROM pg_stat_get_slru()", "SELECT count(*) = 0 FROM pg_lock_status()",
			"SELECT count(*) = 0 FROM pg_stat_database", "SELECT count(*) = 0 FROM pg_stat_all_tables", "SELECT count(*) = 0 FROM pg_stats",
			"SELECT count(*) = 0 FROM pg_locks", "SELECT count(*) = 0 FROM pg_stat_bgwriter", "SELECT count(*) = 1 FROM pg_stat_activity",
			"SELECT count(*) < 20 FROM pg_show_all_settings()", "SELECT count(*) = 2 FROM pg_roles",
			"SELECT age('3'::xid) = age('2'::xid) AND age(NULL::xid) IS NULL AND age(now()) > age(now() + '3 days')",
			"SELECT array_in('{10}', 4096, -1) IS NULL",
			"SELECT count(*) = 0 FROM generate_series(1, 20000) AS x, unnest(ARRAY[1213, 1260, 1262]) AS c, " +
				"pg_identify_object(c::oid, x::oid, 0) AS i WHERE i.identity <> ''",
			"SELECT i.identity = 'pg_catalog.pg_class' FROM " +
				"pg_identify_object('pg_class'::regclass, 'pg_class'::regclass, 0) AS i",
		} {
			rows, err := sandboxtest.Planned(t, e, sandboxtest.Census(), sql)
			if err != nil || len(rows.Data) != 1 || rows.Data[0][0] != true {
				t.Errorf("%s: %s: %v, %v", name, sql, rows.Data, err)
			}
		}
		for _, sql := range []string{"SELECT 10::regrole", "SELECT '{10}'::_regrole",
			"SELECT coalesce(to_regrole('nobody'), 'postgres')", "SELECT (i).xmin FROM pg_index AS i"} {
			if rows, err := sandboxtest.Planned(t, e, sandboxtest.Census(), sql); err == nil {
				t.Errorf("%s: %s: %v", name, sql, rows.Data)
			}
		}
	}
}

package twin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// What a twin may not be. Analysts' SQL runs in it, so a database with rows of others, a role that reaches data, files
// or other roles, or one that may write, is refused before the first query.

// checkServer refuses a server or a role of the URL that a twin may not have.
func (t *engine) checkServer(ctx context.Context, tx pgx.Tx) error {
	var version int
	var encoding string
	var owns bool
	err := tx.QueryRow(ctx, `SELECT pg_catalog.current_setting('server_version_num')::int4, pg_catalog.current_setting('server_encoding'),
		d.datdba = r.oid FROM pg_catalog.pg_database d, pg_catalog.pg_roles r
		WHERE d.datname = pg_catalog.current_database() AND r.rolname = current_user`).Scan(&version, &encoding, &owns)
	switch {
	case err != nil:
		return err
	case version < leastVersion:
		return fmt.Errorf("its server is PostgreSQL %d, must be 15 or newer", version/10000)
	case encoding != "UTF8":
		return fmt.Errorf("its encoding is %s, must be UTF8", encoding)
	}
	if err := strong(ctx, tx, t.config.ConnConfig.User); err != nil {
		return err
	}
	t.warnSpill(ctx, tx)
	if !owns {
		return fmt.Errorf("the role of the url must own it: ALTER DATABASE … OWNER TO %s", pgx.Identifier{t.config.ConnConfig.User}.Sanitize())
	}
	return nil
}

// warnSpill tells the operator where nothing bounds the files that a query's sorts and series spill into.
func (t *engine) warnSpill(ctx context.Context, tx pgx.Tx) {
	var bounded bool
	err := tx.QueryRow(ctx, `SELECT pg_catalog.current_setting('temp_file_limit') <> '-1' OR pg_catalog.has_parameter_privilege('temp_file_limit', 'SET')`).Scan(&bounded)
	if err == nil && !bounded && !t.warned.Swap(true) {
		t.options.Log.Warn("sandbox: temporary files of a query are bounded by its time alone; as superuser: GRANT SET ON PARAMETER temp_file_limit TO " +
			pgx.Identifier{t.config.ConnConfig.User}.Sanitize())
	}
}

// strong refuses a role that reaches data, files or other roles. Making databases and roles is the owner's work.
func strong(ctx context.Context, tx pgx.Tx, role string) error {
	var says string
	err := tx.QueryRow(ctx, `SELECT says FROM (
		SELECT 'is a superuser' AS says, r.rolsuper AS holds FROM pg_catalog.pg_roles r WHERE r.rolname = $1::text
		UNION ALL SELECT 'may replicate', r.rolreplication FROM pg_catalog.pg_roles r WHERE r.rolname = $1::text
		UNION ALL SELECT 'bypasses row-level security', r.rolbypassrls FROM pg_catalog.pg_roles r WHERE r.rolname = $1::text
		UNION ALL SELECT 'is a member of ' || r.rolname, pg_catalog.pg_has_role($1::name, r.oid, 'MEMBER') FROM pg_catalog.pg_roles r
			WHERE r.rolname IN ('pg_read_all_data', 'pg_write_all_data', 'pg_read_server_files', 'pg_write_server_files',
			'pg_execute_server_program', 'pg_monitor', 'pg_signal_backend', 'pg_read_all_stats')) f WHERE holds LIMIT 1`, role).Scan(&says)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("role %s %s: the sandbox needs a role that reaches no data", role, says)
}

// checkMark refuses a database that dpproxy did not make: it might be the private one.
func checkMark(ctx context.Context, tx pgx.Tx) error {
	var mark string
	var relations, foreign, functions int
	var extensions []string
	const inside = `n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')`
	err := tx.QueryRow(ctx, `SELECT COALESCE(pg_catalog.shobj_description(d.oid, 'pg_database'), ''),
		(SELECT pg_catalog.count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE `+inside+`),
		(SELECT pg_catalog.count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
			WHERE `+inside+` AND c.relowner <> r.oid OR c.relkind = 'f'),
		(SELECT pg_catalog.count(*) FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE `+inside+`),
		(SELECT pg_catalog.array_agg(e.extname::text) FROM pg_catalog.pg_extension e WHERE e.extname <> 'plpgsql')
		FROM pg_catalog.pg_database d, pg_catalog.pg_roles r WHERE d.datname = pg_catalog.current_database() AND r.rolname = current_user`).
		Scan(&mark, &relations, &foreign, &functions, &extensions)
	switch {
	case err != nil:
		return err
	case mark != ownMark && relations > 0:
		return errors.New("it holds tables that dpproxy did not make; name a database that does not exist yet, or an empty one")
	case foreign > 0:
		return errors.New("it holds tables of other roles or servers; a twin holds nothing but what dpproxy makes")
	case functions > 0 || len(extensions) > 0:
		return fmt.Errorf("it holds functions or extensions (%s) that dpproxy did not make", strings.Join(extensions, ", "))
	}
	return nil
}

// checkRights refuses what the role of analysts' queries may do too much. It runs when the twin is in step.
func (t *engine) checkRights(ctx context.Context, tx pgx.Tx) error {
	if err := strong(ctx, tx, t.session); err != nil {
		return err
	}
	var says string
	err := tx.QueryRow(ctx, `SELECT says FROM (
		SELECT 'may create roles or databases' AS says, r.rolcreaterole OR r.rolcreatedb AS holds FROM pg_catalog.pg_roles r WHERE r.rolname = $1::text
		UNION ALL SELECT 'is a member of ' || o.rolname, true FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles r ON r.oid = m.member
			JOIN pg_catalog.pg_roles o ON o.oid = m.roleid WHERE r.rolname = $1::text
		UNION ALL SELECT 'may create temporary tables', pg_catalog.has_database_privilege($1::name, pg_catalog.current_database(), 'TEMP')
		UNION ALL SELECT 'may create schemas', pg_catalog.has_database_privilege($1::name, pg_catalog.current_database(), 'CREATE')
		UNION ALL SELECT 'may create objects in schema ' || n.nspname, pg_catalog.has_schema_privilege($1::name, n.oid, 'CREATE') FROM pg_catalog.pg_namespace n
		UNION ALL SELECT 'may change table ' || c.relname, true FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
			WHERE c.relkind IN ('r', 'v', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
			AND pg_catalog.has_table_privilege($1::name, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')) f WHERE holds LIMIT 1`, t.session).Scan(&says)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("role %s %s; analysts' queries run under it, so it may read the twin's tables and nothing else", t.session, says)
}

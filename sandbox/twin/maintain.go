package twin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Making a twin's database and role, and copying public tables into it, as the role that owns it.

// ownMark is the comment by which a twin database is known. A database that holds tables and lacks it is not touched.
const ownMark = "dpproxy twin: made from the policy, holds no private rows"

const (
	leastVersion    = 150000
	maintainTimeout = time.Minute
)

// maintain makes the twin database of a dataset, or brings it in step, and returns what its catalogs look like. Several
// proxies may do so at once; what two of them make at the same moment, a role or a database, is tried again.
func (t *engine) maintain(ctx context.Context, name string, d *policy.Dataset) (own shapes, numbers pgcatalog.Numbers, err error) {
	ctx, cancel := context.WithTimeout(ctx, maintainTimeout)
	defer cancel()
	for try := 0; ; try++ {
		own, numbers, err = t.maintainOnce(ctx, name, d)
		if err == nil || try == 3 || !lacks(err, "42710") && !lacks(err, "23505") && !lacks(err, "55006") && !lacks(err, "XX000") {
			return own, numbers, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, nil, err
		}
	}
}

func (t *engine) maintainOnce(ctx context.Context, name string, d *policy.Dataset) (own shapes, numbers pgcatalog.Numbers, err error) {
	conn, err := t.owner(ctx, name)
	if lacks(err, "3D000") {
		if err = t.create(ctx, name); err == nil {
			conn, err = t.owner(ctx, name)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// One proxy at a time; the others find all done.
		if _, err := tx.Exec(ctx, "SELECT pg_catalog.pg_advisory_xact_lock(7254201)"); err != nil {
			return err
		}
		if err := t.checkServer(ctx, tx); err != nil {
			return err
		}
		if err := t.ensureRole(ctx, tx); err != nil {
			return err
		}
		if err := checkMark(ctx, tx); err != nil {
			return err
		}
		if err := (&step{tx: tx, session: t.session}).bring(ctx, name, d); err != nil {
			return err
		}
		if err := t.checkRights(ctx, tx); err != nil {
			return err
		}
		if own, err = readCatalog(ctx, tx); err == nil {
			numbers, err = readNumbers(ctx, tx)
		}
		return err
	})
	return own, numbers, err
}

// owner connects the URL's own role, which makes the twin's tables, to a database of the server.
func (t *engine) owner(ctx context.Context, database string) (*pgx.Conn, error) {
	config := t.config.ConnConfig.Copy()
	config.Database = database
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.RuntimeParams["application_name"] = "dpproxy sandbox"
	config.RuntimeParams["client_min_messages"] = "warning"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, told(err)
	}
	_, err = conn.Exec(ctx, `SELECT pg_catalog.set_config('search_path', '', false), pg_catalog.set_config('lock_timeout', '10s', false),
		pg_catalog.set_config('DateStyle', 'ISO, MDY', false), pg_catalog.set_config('TimeZone', 'UTC', false)`)
	return conn, err
}

// told is an error for the operator without the text of a connection string.
func told(err error) error {
	if err == nil {
		return nil
	}
	var theirs *pgconn.PgError
	if errors.As(err, &theirs) {
		return theirs
	}
	return errors.New("the server of the sandbox does not answer")
}

func lacks(err error, state string) bool {
	var theirs *pgconn.PgError
	return errors.As(err, &theirs) && theirs.Code == state
}

// create makes the database, from the one database that every server has.
func (t *engine) create(ctx context.Context, name string) error {
	conn, err := t.owner(ctx, "postgres")
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, letters := range []string{"C.UTF-8", "C"} { // the first, where the server's system has it: upper('ä') is 'Ä', as everywhere here
		_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE '"+letters+"'")
		if !lacks(err, "42809") { // an invalid locale name
			break
		}
	}
	switch {
	case lacks(err, "42P04"), lacks(err, "23505"): // another proxy was faster
		return nil
	case lacks(err, "42501"):
		return fmt.Errorf("it does not exist, and the role may not create it: CREATE DATABASE %s OWNER %s TEMPLATE template0 ENCODING 'UTF8'",
			pgx.Identifier{name}.Sanitize(), pgx.Identifier{t.config.ConnConfig.User}.Sanitize())
	case err != nil:
		return err
	}
	// What is new and empty is ours; what was there before is looked at first.
	_, err = conn.Exec(ctx, "COMMENT ON DATABASE "+pgx.Identifier{name}.Sanitize()+" IS "+literal(ownMark))
	return err
}

// ensureRole makes the role that analysts' queries run under, where it is absent and the URL's role may.
func (t *engine) ensureRole(ctx context.Context, tx pgx.Tx) error {
	role := pgx.Identifier{t.session}.Sanitize()
	var exists, member bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = $1::text),
		COALESCE((SELECT pg_catalog.pg_has_role(r.oid, 'MEMBER') FROM pg_catalog.pg_roles r WHERE r.rolname = $1::text), false)`, t.session).Scan(&exists, &member)
	if err != nil {
		return err
	}
	how := fmt.Errorf("role %s, which analysts' queries run under, is not there or not granted: CREATE ROLE %s NOLOGIN; GRANT %s TO %s",
		t.session, role, role, pgx.Identifier{t.config.ConnConfig.User}.Sanitize())
	var may bool
	if err := tx.QueryRow(ctx, "SELECT r.rolcreaterole FROM pg_catalog.pg_roles r WHERE r.rolname = current_user").Scan(&may); err != nil {
		return err
	}
	if !exists {
		if !may {
			return how
		}
		if _, err := tx.Exec(ctx, "CREATE ROLE "+role+" NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT NOREPLICATION"); err != nil {
			return err
		}
	}
	if !member {
		if !may {
			return how
		}
		_, err = tx.Exec(ctx, "GRANT "+role+" TO CURRENT_USER")
	}
	return err
}

// copyIn replaces the rows of a public table in one transaction, unless they are there already, and returns what marks
// them. Of several proxies one at a time does so: what another one was about to insert would be there beside it, and
// each row twice. Those that have read the same rows leave in place what the first has put there, and their queries
// read it.
func (t *engine) copyIn(ctx context.Context, database string, public sandbox.Table) (mark string, err error) {
	ctx, cancel := context.WithTimeout(ctx, maintainTimeout)
	defer cancel()
	conn, err := t.owner(ctx, database)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, target := public.Rows.Value(), pgx.Identifier{public.Schema, public.Name}.Sanitize()
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error { // what the others have written is seen once they let go of the lock
		if _, err := tx.Exec(ctx, "SELECT pg_catalog.set_config('lock_timeout', '0', true)"); err != nil { // maintainTimeout is the limit
			return told(err)
		}
		if _, err := tx.Exec(ctx, "LOCK TABLE "+target+" IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return told(err)
		}
		for from := 0; from < len(rows.Data); from += loadStep {
			part := sandbox.Rows{Columns: rows.Columns, Data: rows.Data[from:min(from+loadStep, len(rows.Data))]}
			c := &composer{}
			c.table("rows", part)
			result := conn.PgConn().ExecParams(ctx, "WITH "+strings.Join(c.parts, ", ")+" INSERT INTO "+target+columnNames(part)+
				` SELECT * FROM "rows"`, c.args, nil, nil, nil).Read()
			if result.Err != nil {
				return told(result.Err)
			}
		}
		var there bool
		if err := tx.QueryRow(ctx, fmt.Sprintf(thereSQL, target), len(rows.Data)).Scan(&there, &mark); err != nil {
			return told(err)
		}
		if there {
			return errThere
		}
		_, err := tx.Exec(ctx, "DELETE FROM "+target+" t WHERE t.xmin <> pg_catalog.pg_current_xact_id()::pg_catalog.xid")
		return told(err)
	})
	if errors.Is(err, errThere) {
		err = nil
	}
	return mark, err
}

// errThere rolls a copy back whose rows are there already.
var errThere = errors.New("twin: these rows are there")

// thereSQL compares what a transaction has inserted with what was there before, by the number of rows and a hash of
// them that depends on no order, and returns the mark of that which is to stay. A copy is marked by the transaction
// that wrote it, which all its rows name (xmin); one without rows, by no text.
const thereSQL = `SELECT s.there, CASE WHEN s.there THEN s.mark WHEN $1::pg_catalog.int8 = 0 THEN '' ELSE pg_catalog.pg_current_xact_id()::pg_catalog.xid::pg_catalog.text END FROM (
  SELECT pg_catalog.count(*) FILTER (WHERE r.own) = pg_catalog.count(*) FILTER (WHERE NOT r.own) AND pg_catalog.sum(r.hash) FILTER (WHERE r.own) IS NOT DISTINCT FROM pg_catalog.sum(r.hash) FILTER (WHERE NOT r.own)
    AND pg_catalog.count(DISTINCT r.mark) FILTER (WHERE NOT r.own) < 2 AS there, COALESCE(pg_catalog.min(r.mark) FILTER (WHERE NOT r.own), '') AS mark
  FROM (SELECT t.xmin = pg_catalog.pg_current_xact_id()::pg_catalog.xid AS own, t.xmin::pg_catalog.text AS mark, pg_catalog.hashtextextended(t.*::pg_catalog.text, 0) AS hash FROM %s AS t) AS r) AS s`

// theirs asks whether the copies that a transaction reads are others than those of these marks. It follows the query,
// whose locks keep the names meaning what it has read, and has its snapshot.
func theirs(copies []copied) string {
	var list []string
	for _, c := range copies {
		list = append(list, "COALESCE((SELECT t.xmin::pg_catalog.text FROM "+pgx.Identifier{c.Schema, c.Name}.Sanitize()+" AS t LIMIT 1), '') <> "+literal(c.mark))
	}
	return "SELECT " + strings.Join(list, " OR ")
}

// loadStep is how many rows of a public table travel at a time.
const loadStep = 20_000

func columnNames(r sandbox.Rows) string {
	if len(r.Columns) == 0 {
		return ""
	}
	names := make([]string, len(r.Columns))
	for i, c := range r.Columns {
		names[i] = dialect.QuoteName(c.Name)
	}
	return " (" + strings.Join(names, ", ") + ")"
}

func literal(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "'", "''"), `\`, `\\`)
	return "E'" + text + "'"
}

// readNumbers reads the numbers by which the twin knows the columns of all its relations.
func readNumbers(ctx context.Context, tx pgx.Tx) (pgcatalog.Numbers, error) {
	rows, err := tx.Query(ctx, `SELECT n.nspname::text, c.relname::text, a.attname::text, c.oid::int8, a.attnum FROM pg_catalog.pg_attribute a
		JOIN pg_catalog.pg_class c ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'v') AND a.attnum > 0 AND NOT a.attisdropped`)
	if err != nil {
		return nil, err
	}
	all := pgcatalog.Numbers{}
	var of pgcatalog.Origin
	var oid int64
	var n pgcatalog.Number
	_, err = pgx.ForEachRow(rows, []any{&of.Schema, &of.Relation, &of.Column, &oid, &n.Attribute}, func() error {
		n.Table = uint32(oid)
		all[of] = n
		return nil
	})
	return all, err
}

// readCatalog reads the columns of the twin's own catalogs.
func readCatalog(ctx context.Context, tx pgx.Tx) (shapes, error) {
	rows, err := tx.Query(ctx, `SELECT n.nspname::text || '.' || c.relname::text, a.attname::text, CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END::int8,
		pg_catalog.format_type(a.atttypid, NULL)
		FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
		WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') AND a.attnum > 0 AND NOT a.attisdropped
		ORDER BY 1, a.attnum`)
	if err != nil {
		return nil, err
	}
	own := shapes{}
	var relation string
	var col column
	var oid int64
	_, err = pgx.ForEachRow(rows, []any{&relation, &col.name, &oid, &col.text}, func() error {
		col.oid = policy.Type(oid)
		own[relation] = append(own[relation], col)
		return nil
	})
	return own, err
}

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

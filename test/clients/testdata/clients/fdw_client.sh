#!/bin/sh
# postgres_fdw of a PostgreSQL server of its own against a running proxy: foreign tables imported, counts pushed down, parameters of prepared statements.
set -eu
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
dir=$(mktemp -d)
run() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=postgres --regid=postgres --clear-groups env -u PGPORT HOME="$dir" "$@"; else env -u PGPORT "$@"; fi; }
[ "$(id -u)" = 0 ] && chown postgres:postgres "$dir"
end() { run "$bin/pg_ctl" -D "$dir/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$dir"; }
trap end EXIT
if [ "$PGSSLMODE" != disable ]; then
	cp "$PGSSLROOTCERT" "$dir/root.pem"
	chmod a+r "$dir/root.pem"
	more=", sslrootcert '$dir/root.pem'"
fi
run "$bin/initdb" -D "$dir/data" -U owner -A trust >/dev/null
run "$bin/pg_ctl" -D "$dir/data" -w -o "-k $dir -c listen_addresses=" -l "$dir/log" start >/dev/null
ask() { env -u PGSSLMODE -u PGSSLROOTCERT -u PGPORT PGHOST="$dir" PGUSER=owner PGDATABASE=postgres "$bin/psql" -X -q -A -t -v ON_ERROR_STOP=1 "$@"; }
check() { [ "$2" = "$3" ] || { echo "not ok $1: $2, not $3" >&2; exit 1; }; echo "ok $1"; }
echo "version $(ask -c 'SHOW server_version')"
ask <<SQL
CREATE EXTENSION postgres_fdw;
CREATE SERVER proxy FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$PGHOST', port '$PGPORT', dbname '$PGDATABASE', sslmode '$PGSSLMODE'${more:-});
CREATE USER MAPPING FOR owner SERVER proxy OPTIONS (user '$PGUSER', password '$PGPASSWORD');
IMPORT FOREIGN SCHEMA public FROM SERVER proxy INTO public;
SQL
echo "did connects"
check "foreign tables" "$(ask -c "SELECT string_agg(foreign_table_name, ' ' ORDER BY 1) FROM information_schema.foreign_tables")" "bids likes people prices regions visits"
check "columns" "$(ask -c "SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY ordinal_position) FROM information_schema.columns WHERE table_name = 'people' AND column_name IN ('age', 'hired')")" "age integer, hired date"
check "a public table's rows" "$(ask -c 'SELECT count(*) FROM (SELECT * FROM regions ORDER BY name LIMIT 4) t')" 4
echo "did browses"
check "a count" "$(ask -c 'SELECT count(*) > 0 FROM people WHERE age >= 30')" t
check "groups" "$(ask -c 'SELECT count(*) >= 2 FROM (SELECT sex, count(*) FROM people GROUP BY sex) t')" t
joined='SELECT count(*) FROM (SELECT r.name, count(*) FROM people p JOIN regions r ON r.code = p.region GROUP BY 1) t'
ask -c "$joined" >"$dir/rows" 2>&1 && { echo "not ok rows were sent for a join" >&2; exit 1; }
grep -q fdw_tuple_cost "$dir/rows" && echo "ok a join of rows is refused, and by which setting it is sent is said"
ask -c "ALTER SERVER proxy OPTIONS (ADD fdw_tuple_cost '1000')"
check "then the join is sent" "$(ask -c "$joined")" 5
echo "did queries"
check "a parameter" "$(ask -c 'SET plan_cache_mode = force_generic_plan; PREPARE q(int) AS SELECT count(*) > 0 FROM people WHERE age >= $1; EXECUTE q(40)')" t
echo "did parameters"
if ask -c 'SELECT age FROM people WHERE age > 108' >"$dir/rows" 2>&1; then
	echo "not ok rows of private tables were sent" >&2
	exit 1
fi
grep -q "cannot be shown\|private\|aggregate" "$dir/rows" && echo "ok rows are refused"

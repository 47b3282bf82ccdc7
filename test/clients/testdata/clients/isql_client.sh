# isql of unixODBC against a running proxy.
set -e
dsn="Driver=PostgreSQL Unicode;Servername=$PGHOST;Port=$PGPORT;Database=$PGDATABASE;UserName=$PGUSER;Password=$PGPASSWORD;SSLmode=$PGSSLMODE;pqopt={sslrootcert=$PGSSLROOTCERT}"
ask() { printf '%s\n' "$1" | isql -v -b -x0x7c -k "$dsn"; }

echo "version $(isql --version | sed 's/.* //')"
before=$(ask "SELECT spent FROM dp.budget WHERE user_name = current_user")
echo "did connects"
ask "help" | grep -q people && echo "ok tables"
ask "help people" | grep -q hired && echo "ok columns"
test "$before" = "$(ask "SELECT spent FROM dp.budget WHERE user_name = current_user")" && echo "ok browsing is free"
echo "did browses"
ask "SELECT count(*) FROM people WHERE age > 30" | grep -Eqx -- '-?[0-9]+' && echo "ok count"
ask "SELECT sex, count(*) FROM people GROUP BY sex ORDER BY sex" | grep -Eq '^Female\|[0-9]+$' && echo "ok groups"
ask "SELECT user_name FROM dp.budget" | grep -qx analyst && echo "ok budget"
ask "SELECT age FROM people" 2>&1 | grep -q 'rows of private table' && echo "ok refusal"
echo "did queries"
dsn="$dsn;UseDeclareFetch=1;Fetch=10"
ask "SELECT age, count(*) FROM people GROUP BY age ORDER BY age" | grep -Eq '^90\|-?[0-9]+$' && echo "ok declare and fetch"

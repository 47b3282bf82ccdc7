"""DuckDB's postgres scanner against a running proxy: attached, browsed, public tables read by COPY, counts by postgres_query, private rows refused."""
import pathlib

import duckdb
import duckdb_extension_postgres_scanner


def check(what, ok):
    assert ok, what
    print("ok", what)


def refused(db, sql, why):
    try:
        db.execute(sql).fetchall()
    except duckdb.Error as e:
        check("%s: %s" % (sql, why), why in str(e))
    else:
        raise AssertionError(sql)


print("version", duckdb.__version__)
db = duckdb.connect()
extension = next(pathlib.Path(duckdb_extension_postgres_scanner.__file__).parent.rglob("*.duckdb_extension"))
db.execute("LOAD '%s'" % extension)
db.execute("ATTACH '' AS pg (TYPE postgres, READ_ONLY)")  # libpq's variables say where
ask = lambda sql: db.execute(sql).fetchall()
spent = lambda: ask("SELECT spent FROM pg.dp.budget WHERE user_name = 'analyst'")
before = spent()
print("did connects")

tables = {r[0] for r in ask("SELECT table_name FROM duckdb_tables() WHERE database_name = 'pg' AND schema_name = 'public'")}
check("tables %s" % tables, tables == {"people", "visits", "regions", "bids", "likes", "prices"})
columns = {r[0]: r[1] for r in ask("DESCRIBE pg.public.people")}
check("columns %s" % columns, columns["age"] == "INTEGER" and columns["hired"] == "DATE")
check("a public table", ask("SELECT count(*) FROM pg.public.regions") == [(5,)])
check("a condition that is pushed down", ask("SELECT name FROM pg.public.regions WHERE area_km2 > 40000 ORDER BY area_km2") == [("Southern coast",), ("Northern plain",)])
check("browsing is free", spent() == before)
print("did browses")

sexes = ask("SELECT * FROM postgres_query('pg', 'SELECT sex, count(*) AS n FROM people WHERE age >= 30 GROUP BY sex')")
check("groups %s" % sexes, len(sexes) >= 2 and all(n > 0 for _, n in sexes))
joined = ask("""SELECT r.name, p.n FROM pg.public.regions r JOIN postgres_query('pg', 'SELECT region, count(*) AS n FROM people GROUP BY region') p ON p.region = r.code""")
check("joined with a public table", len(joined) == 5)
check("types", ask("SELECT * FROM postgres_query('pg', $$SELECT 1::int2, 2.50::numeric(6,2), DATE '2024-02-03', ARRAY[1,2], true, NULL::text, 1.5::float8$$)")
      [0][3:] == ([1, 2], True, None, 1.5))
# It counts the rows that it reads, and none are sent: the hint says how to ask.
refused(db, "SELECT count(*) FROM pg.public.people", "postgres_query")
refused(db, "SELECT avg(income) FROM pg.public.people WHERE age > 30", "postgres_query")
refused(db, "SELECT age FROM pg.public.people LIMIT 3", "postgres_query")
refused(db, "SELECT p.age FROM pg.public.people p JOIN pg.public.regions r ON r.code = p.region", "postgres_query")
print("did queries")

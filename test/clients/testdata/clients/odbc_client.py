"""psqlODBC through pyodbc against a running proxy, with and without prepares on the server."""
import datetime
import decimal
import os

import pyodbc


def check(what, ok):
    assert ok, what
    print("ok", what)


def connect(user, **more):
    parts = {"Driver": "{PostgreSQL Unicode}", "Servername": os.environ["PGHOST"], "Port": os.environ["PGPORT"], "Database": os.environ["PGDATABASE"],
             "UserName": user, "Password": user, "SSLmode": os.environ["PGSSLMODE"]}
    if os.environ.get("PGSSLROOTCERT"):
        parts["pqopt"] = "{sslrootcert=%s}" % os.environ["PGSSLROOTCERT"]
    parts.update(more)
    return pyodbc.connect(";".join("%s=%s" % p for p in parts.items()), autocommit=True)


def fails(code, run):
    try:
        run()
    except pyodbc.Error as e:
        assert e.args[0] == code, e.args
        print("ok", code, e.args[1][:90].replace("\n", " "))
        return
    raise AssertionError("no error %s" % code)


print("version", pyodbc.version)
for prepare, fetch in (("0", "0"), ("1", "0"), ("1", "1")):
    c = connect(os.environ["PGUSER"], UseServerSidePrepare=prepare, UseDeclareFetch=fetch, Fetch="20")
    cur = c.cursor()
    rows = cur.execute("SELECT age, count(*) FROM people GROUP BY age ORDER BY age").fetchall()
    check("rows %d" % len(rows), [r[0] for r in rows[:110]] == list(range(110)))
    for sql, params in [
        ("SELECT count(*) FROM people WHERE age BETWEEN ? AND ?", (30, 40)),
        ("SELECT count(*) FROM people WHERE sex = ?", ("Female",)),
        ("SELECT count(*) FROM people WHERE hired >= ?", (datetime.date(2020, 1, 1),)),
        ("SELECT count(*) FROM visits WHERE visited_at < ?", (datetime.datetime(2025, 1, 1),)),
        ("SELECT count(*) FROM people WHERE income < ?", (50000.0,)),
    ]:
        got = [cur.execute(sql, params).fetchone()[0] for _ in range(3)]
        check("%s %s" % (sql, got[0]), len(set(got)) == 1)
    row = cur.execute("SELECT 1::smallint, 2::int, 3::bigint, 1.5::float8, 2.50::numeric(6,2), 'x'::text, true, DATE '2024-02-03', "
                      "TIMESTAMP '2024-02-03 04:05:06', NULL::int, '6f1c2d3e-0000-4000-8000-000000000001'::uuid").fetchone()
    check("values %s" % list(row), row[0:5] == (1, 2, 3, 1.5, decimal.Decimal("2.50")) and row[5] == "x" and row[7] == datetime.date(2024, 2, 3)
          and row[8] == datetime.datetime(2024, 2, 3, 4, 5, 6) and row[9] is None)
    rows = cur.execute("SELECT sex, region, count(*) AS n FROM people GROUP BY sex, region ORDER BY n DESC").fetchall()
    check("rows %d" % len(rows), len(rows) >= 10)
    fails("42703", lambda: cur.execute("SELECT count(*) FROM people WHERE wage > ?", (1,)).fetchone())
    fails("42P01", lambda: cur.execute("SELECT count(*) FROM nobody").fetchone())
    fails("42501", lambda: cur.execute("SELECT age FROM people").fetchone())
    fails("DP002", lambda: cur.execute("SELECT corr(DISTINCT age, income) FROM people").fetchone())
    spent = lambda: cur.execute("SELECT spent FROM dp.budget WHERE user_name = current_user").fetchone()[0]
    before = spent()
    tables = {t.table_name for t in cur.tables(schema="public")}
    check("tables %s" % tables, {"people", "visits", "regions"} <= tables)
    columns = {(k.column_name, k.type_name) for k in cur.columns(schema="public", table="people")}
    check("columns %s" % columns, ("age", "int4") in columns and ("hired", "date") in columns)
    check("keys", [k.column_name for k in cur.primaryKeys(schema="public", table="people").fetchall()] == ["person_id"] and cur.statistics("people", schema="public").fetchall() is not None)
    check("types", len(cur.getTypeInfo().fetchall()) > 5)

    check("browsing is free", spent() == before)
    c.autocommit = False
    before = spent()
    cur.execute("SELECT count(*) FROM people WHERE hired > DATE '2005-04-01' + %d" % (10 * int(os.environ.get("CLIENTS_RUN", 0)) + int(prepare + fetch, 2))).fetchone()
    fails("42703", lambda: cur.execute("SELECT nothing FROM people"))
    c.rollback()
    check("a rollback gives nothing back", spent() > before)
    c.commit()
    c.autocommit = True
    c.close()

for aspect in ("connects", "browses", "queries", "parameters"):
    print("did", aspect)
parts = connect(os.environ["PGUSER"], UseDeclareFetch="1", Fetch="20")
cur = parts.cursor()
cur.execute("SELECT age, count(*) FROM people GROUP BY age ORDER BY age")
check("declare and fetch", len(cur.fetchall()) >= 110)
cur.execute("SELECT count(*) FROM people WHERE age > ?", (30,))
check("declare and fetch with a parameter", isinstance(cur.fetchone()[0], int))
parts.close()

poor = connect(os.environ["PGPOOR"]).cursor()
poor.execute("SET dp.epsilon = 1")


def spend():
    for day in range(1, 5):
        poor.execute("SELECT count(*) FROM people WHERE hired <> ?", (datetime.date(2020, 5, day),)).fetchone()


fails("DP001", spend)

"""psycopg2 against a running proxy: PGHOST and its kin name it, PGPOOR a user with little budget."""
import datetime
import decimal
import io
import os
import threading

import psycopg2
import psycopg2.errors
import psycopg2.extensions


def connect(**more):
    return psycopg2.connect("", **more)


def check(what, ok):
    assert ok, what
    print("ok", what)


def fails(code, run, hint=False):
    try:
        run()
    except psycopg2.Error as e:
        assert e.pgcode == code, (code, e.pgcode, str(e))
        assert not hint or e.diag.message_hint, ("no hint", str(e))
        print("ok", code, (e.diag.message_hint or "")[:60])
        return
    raise AssertionError("no error %s" % code)


c = connect()
c.autocommit = True
cur = c.cursor()
check("tls as asked", c.info.ssl_in_use == (os.environ.get("PGSSLMODE") not in ("disable",)))
check("version", c.server_version == 150000 and c.encoding == "UTF8")
print("version", psycopg2.__version__.split()[0])
print("did connects")


def spent():
    cur.execute("SELECT spent FROM dp.budget WHERE user_name = current_user")
    return cur.fetchone()


before = spent()
cur.execute("SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = %s", ("public",))
columns = cur.fetchall()
check("columns %d" % len(columns), ("people", "age", "integer") in columns)
cur.execute("SELECT * FROM people LIMIT 0")
check("no rows of people", [d.name for d in cur.description][:2] == ["age", "sex"] and cur.fetchall() == [])
cur.execute("SELECT DISTINCT region FROM people ORDER BY 1")
check("values of a column %s" % cur.rowcount, cur.rowcount >= 5)
check("browsing is free", spent() == before)
print("did browses")

cur.execute("SELECT count(*) FROM people WHERE age BETWEEN %s AND %s", (30, 40))
first = cur.fetchone()
check("count %s" % first, isinstance(first[0], int))
check("notice", any("cost" in n or "free" in n for n in c.notices))
cur.execute("SELECT count(*) FROM people WHERE age BETWEEN %s AND %s", (30, 40))
check("the same again", cur.fetchone() == first)

for sql, params in [
    ("SELECT count(*) FROM people WHERE sex = %s", ("Female",)),
    ("SELECT count(*) FROM people WHERE hired >= %s", (datetime.date(2020, 1, 1),)),
    ("SELECT count(*) FROM visits WHERE visited_at < %s", (datetime.datetime(2025, 1, 1, tzinfo=datetime.timezone.utc),)),
    ("SELECT count(*) FROM people WHERE region = ANY(%s)", (["north", "south"],)),
    ("SELECT count(*) FROM people WHERE age = ANY(%s)", ([30, 31, 32],)),
    ("SELECT count(*) FROM people WHERE region IN %s", (("north", "south"),)),
    ("SELECT count(*) FROM people WHERE sex LIKE %s", ("F%",)),
]:
    cur.execute(sql, params)
    check(cur.query.decode()[:90], isinstance(cur.fetchone()[0], int))

print("did parameters")
cur.execute("SELECT 1::smallint, 2::int, 3::bigint, 1.5::float8, 2.50::numeric(6,2), 'x'::text, true, DATE '2024-02-03', "
            "TIMESTAMP '2024-02-03 04:05:06', TIMESTAMPTZ '2024-02-03 04:05:06+00', INTERVAL '1 day 2 hours', NULL::int, "
            "'6f1c2d3e-0000-4000-8000-000000000001'::uuid")
row = cur.fetchone()
check("types", row == (1, 2, 3, 1.5, decimal.Decimal("2.50"), "x", True, datetime.date(2024, 2, 3),
                       datetime.datetime(2024, 2, 3, 4, 5, 6), datetime.datetime(2024, 2, 3, 4, 5, 6, tzinfo=datetime.timezone.utc),
                       datetime.timedelta(days=1, hours=2), None, "6f1c2d3e-0000-4000-8000-000000000001"))
check("oids", [d.type_code for d in cur.description] == [21, 23, 20, 701, 1700, 25, 16, 1082, 1114, 1184, 1186, 23, 2950])

fails("42703", lambda: cur.execute("SELECT count(*) FROM people WHERE wage > 1"))
fails("42P01", lambda: cur.execute("SELECT count(*) FROM nobody"))
fails("42601", lambda: cur.execute("SELEC 1"))
fails("42501", lambda: cur.execute("SELECT age FROM people LIMIT 3"), hint=True)
fails("DP002", lambda: cur.execute("SELECT corr(DISTINCT age, income) FROM people"), hint=True)
c.autocommit = False
before = spent()
cur.execute("SELECT count(*) FROM people WHERE hired > DATE '2006-01-04' + 10 * %s" % os.environ.get("CLIENTS_RUN", 0))
cur.execute("SAVEPOINT s")
fails("42703", lambda: cur.execute("SELECT nothing FROM people"))
fails("25P02", lambda: cur.execute("SELECT 1"))
cur.execute("ROLLBACK TO s")
cur.execute("SELECT 1")
c.rollback()
check("a rollback gives nothing back", spent() > before)
c.rollback()
c.set_session(isolation_level="SERIALIZABLE", readonly=True)
cur.execute("SHOW transaction_isolation")
check("isolation", cur.fetchone()[0] == "serializable")
c.rollback()
c.reset()

c.autocommit = False
with c.cursor("rows", scrollable=True) as named:
    named.itersize = 40
    named.execute("SELECT age, count(*) FROM people WHERE sex = %s GROUP BY age ORDER BY age", ("Male",))
    rows = named.fetchmany(3)
    paid = spent()
    named.scroll(-1)
    check("a named cursor scrolls", named.fetchone() == rows[2])
    rows += named.fetchall()
    check("a named cursor %d" % len(rows), [r[0] for r in rows[:110]] == list(range(110)))
check("what is fetched is free", spent() == paid)
c.rollback()
c.autocommit = True
text = io.StringIO()
cur.copy_expert("COPY (SELECT sex, count(*) FROM people GROUP BY sex ORDER BY sex) TO STDOUT WITH CSV HEADER", text)
check("COPY %r" % text.getvalue(), text.getvalue().startswith("sex,count\nFemale,"))
cur.execute("PREPARE older (int) AS SELECT count(*) FROM people WHERE age > $1")
cur.execute("EXECUTE older (%s)", (44,))
check("EXECUTE", isinstance(cur.fetchone()[0], int))
cur.execute("DEALLOCATE older")
print("did queries")

poor = connect(user=os.environ["PGPOOR"], password=os.environ["PGPOOR"])
poor.autocommit = True
p = poor.cursor()


def spend():
    p.execute("SET dp.epsilon = 1")
    for age in range(60, 64):
        p.execute("SELECT count(*) FROM people WHERE hired <> %s", (datetime.date(2020, 1, age - 50),))


fails("DP001", spend, hint=True)
try:
    connect(password="wrong")
    raise AssertionError("a wrong password")
except psycopg2.OperationalError as e:
    check("wrong password", "password authentication failed" in str(e))


AGES = "SELECT age, count(*) FROM people GROUP BY age ORDER BY age"
parts = connect()
for options in ({}, {"scrollable": True}, {"withhold": True}):
    named = parts.cursor("ages", **options)
    named.itersize = 40
    named.execute(AGES)
    rows = list(named)
    check("named cursor %s, %d rows" % (options, len(rows)), len(rows) >= 110)
    if options.get("scrollable"):
        named.scroll(0, mode="absolute")
        check("scrolled", named.fetchone() == rows[0] and named.fetchmany(2) == rows[1:3])
    if options.get("withhold"):
        parts.commit()
        named.scroll(-2)
        check("held", named.fetchall() == rows[-1:])
    named.close()
    parts.commit()
sheet = io.StringIO()
parts.cursor().copy_expert("COPY (%s) TO STDOUT WITH CSV HEADER" % AGES, sheet)
check("copy", sheet.getvalue().startswith("age,count\n") and len(sheet.getvalue().splitlines()) == len(rows) + 1)
parts.close()

t = threading.Timer(0.05, c.cancel)
t.start()
t.join()
c.autocommit = True
cur.execute("SET dp.epsilon = 0.001")
cancelled = 0
for wait in (0.2, 0.5, 0.1, 1, 0.05):  # until one falls into the middle
    t = threading.Timer(wait, c.cancel)
    t.start()
    try:
        cur.execute(" ".join("SELECT count(*) FROM people WHERE hired < DATE '2011-01-01' + %d;" % (i + 1000 * wait) for i in range(400)))
    except psycopg2.errors.QueryCanceled as e:
        cancelled += e.pgcode == "57014"
    t.join()
    if cancelled:
        break
check("cancelled", cancelled)
print("did cancels")
c.cancel()
cur.execute("SELECT 1")
check("a late cancel does no harm", cur.fetchone() == (1,))
cur.execute("SET application_name = 'x'")
cur.execute("DISCARD ALL")
cur.execute("SHOW application_name")
check("discard", cur.fetchone()[0] == "")
c.close()
check("reconnect", connect().cursor() is not None)

"""psycopg 3 against a running proxy: client-side, server-side, binary and prepared parameters, pipelines."""
import datetime
import decimal
import os
import threading
import uuid

import psycopg


def check(what, ok):
    assert ok, what
    print("ok", what)


def fails(code, run, hint=False):
    try:
        run()
    except psycopg.Error as e:
        assert e.sqlstate == code, (code, e.sqlstate, str(e))
        assert not hint or e.diag.message_hint, ("no hint", str(e))
        print("ok", code, (e.diag.message_hint or "")[:60])
        return
    raise AssertionError("no error %s" % code)


VALUES = [
    ("1::smallint", 1), ("2::int", 2), ("3::bigint", 3), ("1.5::float8", 1.5), ("1.5::real", 1.5), ("2.50::numeric(6,2)", decimal.Decimal("2.50")),
    ("'x'::text", "x"), ("'x'::varchar(3)", "x"), ("true", True), ("DATE '2024-02-03'", datetime.date(2024, 2, 3)),
    ("TIMESTAMP '2024-02-03 04:05:06'", datetime.datetime(2024, 2, 3, 4, 5, 6)),
    ("TIMESTAMPTZ '2024-02-03 04:05:06+00'", datetime.datetime(2024, 2, 3, 4, 5, 6, tzinfo=datetime.timezone.utc)),
    ("INTERVAL '1 day 2 hours'", datetime.timedelta(days=1, hours=2)), ("NULL::int", None),
    ("'6f1c2d3e-0000-4000-8000-000000000001'::uuid", uuid.UUID("6f1c2d3e-0000-4000-8000-000000000001")),
    ("ARRAY[1,2]", [1, 2]), ("ARRAY['a','b']", ["a", "b"]), ("26::oid", 26), ("'a'::name", "a"),
]
QUESTIONS = [
    ("SELECT count(*) FROM people WHERE age BETWEEN %s AND %s", (30, 40)),
    ("SELECT count(*) FROM people WHERE sex = %s", ("Female",)),
    ("SELECT count(*) FROM people WHERE hired >= %s", (datetime.date(2020, 1, 1),)),
    ("SELECT count(*) FROM visits WHERE visited_at < %s", (datetime.datetime(2025, 1, 1, tzinfo=datetime.timezone.utc),)),
    ("SELECT count(*) FROM people WHERE region = ANY(%s)", (["north", "south"],)),
    ("SELECT count(*) FROM people WHERE age = ANY(%s)", ([30, 31, 32],)),
    ("SELECT count(*) FROM people WHERE income < %s", (50000,)),
]

told = []
with psycopg.connect("", autocommit=True) as c:
    c.add_notice_handler(lambda d: told.append(d.message_primary))
    check("tls as asked", (c.pgconn.ssl_in_use == 1) == (os.environ.get("PGSSLMODE") != "disable"))
    print("version", psycopg.__version__)
    print("did connects")

    def spent():
        return c.execute("SELECT spent FROM dp.budget WHERE user_name = current_user").fetchone()

    before = spent()
    check("columns", ("age", "integer") in c.execute("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s", ("people",)).fetchall())
    check("no rows of people", [d.name for d in c.execute("SELECT * FROM people LIMIT 0").description][:2] == ["age", "sex"])
    check("values of a column", len(c.execute("SELECT DISTINCT region FROM people").fetchall()) >= 5)
    check("a type by name", psycopg.types.TypeInfo.fetch(c, "int4").oid == 23)
    check("browsing is free", spent() == before)
    print("did browses")
    for binary in (False, True):
        cur = c.cursor(binary=binary)
        for sql, value in VALUES:
            got = cur.execute("SELECT " + sql).fetchone()[0]
            check("%s is %r" % (sql, got), got == value)
        for sql, params in QUESTIONS:
            got = {cur.execute(sql, params, prepare=p).fetchone() for p in (False, True, True)}
            check("%s %s" % (sql, got), len(got) == 1)
        for sql, value in VALUES[:13]:
            if value is not None:
                got = cur.execute("SELECT %b" if binary else "SELECT %t", (value,)).fetchone()[0]
                check("parameter %r" % (got,), got == value)
    print("did parameters")
    check("notice", any("cost" in m or "free" in m for m in told))
    for _ in range(8):  # from the sixth on it is prepared
        older = c.execute("SELECT count(*) FROM people WHERE age > %s", (50,)).fetchone()
    check("prepared by itself", isinstance(older[0], int))

    for what in ("'people'::regclass", "'int4'::regtype", "'pg_catalog'::regnamespace"):
        number = c.execute("SELECT %s::oid" % what).fetchone()[0]
        got = c.cursor(binary=True).execute("SELECT " + what).fetchone()[0]
        check("binary %s is %d" % (what, number), int.from_bytes(got, "big") == number)
    fails("42703", lambda: c.execute("SELECT count(*) FROM people WHERE wage > %s", (1,)))
    fails("42P01", lambda: c.execute("SELECT count(*) FROM nobody"))
    fails("42501", lambda: c.execute("SELECT age FROM people"), hint=True)
    fails("DP002", lambda: c.execute("SELECT corr(DISTINCT age, income) FROM people"), hint=True)

    before = spent()
    with c.transaction(force_rollback=True):
        c.execute("SELECT count(*) FROM people WHERE hired > DATE '2007-01-05' + 10 * %s" % os.environ.get("CLIENTS_RUN", 0))
        try:
            with c.transaction():
                c.execute("SELECT nothing FROM people")
        except psycopg.errors.UndefinedColumn:
            pass
        check("savepoint", c.execute("SELECT 1").fetchone() == (1,))
    check("a rollback gives nothing back", spent() > before)

    with c.pipeline():
        first = c.execute("SELECT count(*) FROM people WHERE age < %s", (20,))
        second = c.execute("SELECT count(*) FROM people WHERE age < %s", (21,))
        check("pipeline", isinstance(first.fetchone()[0], int) and isinstance(second.fetchone()[0], int))
    rows = list(c.cursor().stream("SELECT age, count(*) FROM people GROUP BY age ORDER BY age"))
    check("stream %d" % len(rows), len(rows) >= 110)
    for binary in (False, True):
        with c.transaction(), c.cursor("ages", binary=binary, scrollable=True) as named:
            named.execute("SELECT age, count(*) FROM people WHERE age >= %s GROUP BY age ORDER BY age", (20,))
            told.clear()
            first = named.fetchmany(3)
            named.scroll(0, mode="absolute")
            check("named cursor", named.fetchmany(3) == first and len(named.fetchall()) > 80 and not told)
    for how in ("", " WITH (FORMAT csv, HEADER)", " WITH (FORMAT binary)"):
        with c.cursor().copy("COPY (SELECT sex, count(*) FROM people GROUP BY sex) TO STDOUT" + how) as copy:
            if not how.endswith("HEADER)"):
                copy.set_types(["text", "int8"])
                check("copied rows", len(list(copy.rows())) >= 2)
            else:
                check("copied bytes", bytes(b"".join(copy)).startswith(b"sex,count\n"))
    print("did queries")
    c.execute("SET dp.epsilon = 0.001")
    cancelled = 0
    for wait in (0.2, 0.5, 0.1, 1, 0.05):  # until one falls into the middle
        t = threading.Timer(wait, c.cancel)
        t.start()
        try:
            c.execute(" ".join("SELECT count(*) FROM people WHERE hired < DATE '2012-01-01' + %d;" % (i + 1000 * wait) for i in range(400)))
        except psycopg.errors.QueryCanceled:
            cancelled += 1
        t.join()
        if cancelled:
            break
    check("cancelled", cancelled)
    c.execute("RESET dp.epsilon")
    print("did cancels")
    c.cancel()
    check("after a late cancel", c.execute("SELECT 1").fetchone() == (1,))
    c.execute("DISCARD ALL")
    c.execute("DEALLOCATE ALL")
    check("after a reset", c.execute("SELECT count(*) FROM people WHERE age > %s", (50,), prepare=True).fetchone() == older)

with psycopg.connect("", user=os.environ["PGPOOR"], password=os.environ["PGPOOR"], autocommit=True) as poor:
    def spend():
        poor.execute("SET dp.epsilon = 1")
        for day in range(1, 5):
            poor.execute("SELECT count(*) FROM people WHERE hired <> %s", (datetime.date(2020, 2, day),))

    fails("DP001", spend, hint=True)
try:
    psycopg.connect("", password="wrong")
    raise AssertionError("a wrong password")
except psycopg.OperationalError as e:
    check("wrong password", "password authentication failed" in str(e))

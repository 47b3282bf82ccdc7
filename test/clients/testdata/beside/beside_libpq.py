"""libpq itself, through ctypes: raw values in text and binary, pipelines, rows one by one, COPY, cancels, the fields of errors, ways to connect.

Each line is a name, a tab, and what was seen; the test runs it against PostgreSQL and against dpproxy and compares."""
import ctypes
import os
import time
from ctypes import c_char_p, c_int, c_size_t, c_uint, c_void_p, POINTER, byref

pq = ctypes.CDLL("libpq.so.5")
for name, result, arguments in [
    ("PQconnectdb", c_void_p, [c_char_p]), ("PQstatus", c_int, [c_void_p]), ("PQerrorMessage", c_char_p, [c_void_p]), ("PQfinish", None, [c_void_p]), ("PQreset", None, [c_void_p]),
    ("PQexec", c_void_p, [c_void_p, c_char_p]), ("PQresultStatus", c_int, [c_void_p]), ("PQresStatus", c_char_p, [c_int]), ("PQresultErrorField", c_char_p, [c_void_p, c_int]),
    ("PQntuples", c_int, [c_void_p]), ("PQnfields", c_int, [c_void_p]), ("PQfname", c_char_p, [c_void_p, c_int]), ("PQftype", c_uint, [c_void_p, c_int]), ("PQfmod", c_int, [c_void_p, c_int]),
    ("PQfsize", c_int, [c_void_p, c_int]), ("PQfformat", c_int, [c_void_p, c_int]), ("PQgetvalue", c_void_p, [c_void_p, c_int, c_int]), ("PQgetlength", c_int, [c_void_p, c_int, c_int]),
    ("PQgetisnull", c_int, [c_void_p, c_int, c_int]), ("PQclear", None, [c_void_p]), ("PQcmdStatus", c_char_p, [c_void_p]), ("PQcmdTuples", c_char_p, [c_void_p]), ("PQoidValue", c_uint, [c_void_p]),
    ("PQnparams", c_int, [c_void_p]), ("PQparamtype", c_uint, [c_void_p, c_int]), ("PQtransactionStatus", c_int, [c_void_p]), ("PQserverVersion", c_int, [c_void_p]), ("PQprotocolVersion", c_int, [c_void_p]),
    ("PQexecParams", c_void_p, [c_void_p, c_char_p, c_int, POINTER(c_uint), POINTER(c_char_p), POINTER(c_int), POINTER(c_int), c_int]),
    ("PQprepare", c_void_p, [c_void_p, c_char_p, c_char_p, c_int, POINTER(c_uint)]), ("PQexecPrepared", c_void_p, [c_void_p, c_char_p, c_int, POINTER(c_char_p), POINTER(c_int), POINTER(c_int), c_int]),
    ("PQdescribePrepared", c_void_p, [c_void_p, c_char_p]), ("PQdescribePortal", c_void_p, [c_void_p, c_char_p]), ("PQparameterStatus", c_char_p, [c_void_p, c_char_p]),
    ("PQenterPipelineMode", c_int, [c_void_p]), ("PQexitPipelineMode", c_int, [c_void_p]), ("PQpipelineSync", c_int, [c_void_p]), ("PQsendFlushRequest", c_int, [c_void_p]), ("PQpipelineStatus", c_int, [c_void_p]),
    ("PQsendQueryParams", c_int, [c_void_p, c_char_p, c_int, POINTER(c_uint), POINTER(c_char_p), POINTER(c_int), POINTER(c_int), c_int]), ("PQsendQuery", c_int, [c_void_p, c_char_p]),
    ("PQsendPrepare", c_int, [c_void_p, c_char_p, c_char_p, c_int, POINTER(c_uint)]), ("PQsendQueryPrepared", c_int, [c_void_p, c_char_p, c_int, POINTER(c_char_p), POINTER(c_int), POINTER(c_int), c_int]),
    ("PQsendDescribePrepared", c_int, [c_void_p, c_char_p]), ("PQgetResult", c_void_p, [c_void_p]), ("PQsetSingleRowMode", c_int, [c_void_p]), ("PQflush", c_int, [c_void_p]), ("PQsetnonblocking", c_int, [c_void_p, c_int]),
    ("PQgetCancel", c_void_p, [c_void_p]), ("PQcancel", c_int, [c_void_p, ctypes.c_char_p, c_int]), ("PQfreeCancel", None, [c_void_p]), ("PQgetCopyData", c_int, [c_void_p, POINTER(c_void_p), c_int]), ("PQfreemem", None, [c_void_p]),
    ("PQputCopyData", c_int, [c_void_p, c_char_p, c_int]), ("PQputCopyEnd", c_int, [c_void_p, c_char_p]), ("PQconsumeInput", c_int, [c_void_p]), ("PQnotifies", c_void_p, [c_void_p]), ("PQpingParams", c_int, [c_void_p, c_void_p, c_int]),
    ("PQping", c_int, [c_char_p]), ("PQsetErrorVerbosity", c_int, [c_void_p, c_int]), ("PQsslInUse", c_int, [c_void_p]), ("lo_creat", c_uint, [c_void_p, c_int]), ("PQisBusy", c_int, [c_void_p]),
]:
    f = getattr(pq, name)
    f.restype, f.argtypes = result, arguments

IDLE = {0: "idle", 1: "active", 2: "in a transaction", 3: "in error", 4: "unknown"}
FIELDS = "SVCMDPpqsctdn"  # not W, in which PostgreSQL shows values


def see(name, value):
    print(name + "\t" + str(value).replace("\n", "\\n").replace("\t", "\\t"), flush=True)


@ctypes.CFUNCTYPE(None, c_void_p, c_char_p)
def hush(_, text):
    """Notices, which say what an answer cost."""


pq.PQsetNoticeProcessor.restype, pq.PQsetNoticeProcessor.argtypes = c_void_p, [c_void_p, c_void_p, c_void_p]


def connect(info=""):
    conn = pq.PQconnectdb(info.encode())
    pq.PQsetNoticeProcessor(conn, ctypes.cast(hush, c_void_p), None)
    return conn


def error(result):
    fields = {f: pq.PQresultErrorField(result, ord(f)) for f in FIELDS}
    state = (fields["C"] or b"").decode()
    if state == "42501" or state.startswith("DP"):
        return fields["S"].decode() + " " + state  # what is refused says so in its own words
    if state.startswith("22"):  # dpproxy repeats no value, and shows the operator
        return state + " " + fields["M"].decode().split(': "')[0].split(": 0x")[0].replace('value "40000" is', "value is")
    return " ".join("%s=%s" % (f, v.decode()) for f, v in fields.items() if v)


def raw(result, row, column):
    if pq.PQgetisnull(result, row, column):
        return "NULL"
    data = ctypes.string_at(pq.PQgetvalue(result, row, column), pq.PQgetlength(result, row, column))
    return repr(data)[1:] if pq.PQfformat(result, column) == 0 else data.hex()


def show(result, described=True):
    if not result:
        return "nothing"
    status = pq.PQresStatus(pq.PQresultStatus(result)).decode()[6:]
    out = [status]
    if pq.PQresultErrorField(result, ord("C")):
        out.append(error(result))
    if described:
        out += ["%s %d %d %d %d" % (pq.PQfname(result, i).decode(), pq.PQftype(result, i), pq.PQfmod(result, i), pq.PQfsize(result, i), pq.PQfformat(result, i)) for i in range(pq.PQnfields(result))]
    out += [", ".join(raw(result, r, c) for c in range(pq.PQnfields(result))) for r in range(pq.PQntuples(result))]
    if pq.PQcmdStatus(result):
        out.append("%s %s" % (pq.PQcmdStatus(result).decode(), pq.PQcmdTuples(result).decode()))
    if pq.PQnparams(result):
        out.append("parameters " + " ".join(str(pq.PQparamtype(result, i)) for i in range(pq.PQnparams(result))))
    pq.PQclear(result)
    return " | ".join(out)


def values(given):
    n = len(given)
    texts, lengths, formats = (c_char_p * n)(), (c_int * n)(), (c_int * n)()
    for i, v in enumerate(given):
        if isinstance(v, bytes):
            texts[i], lengths[i], formats[i] = v, len(v), 1
        elif v is not None:
            texts[i], lengths[i] = v.encode(), len(v.encode())
    return n, texts, lengths, formats


def params(conn, text, given=(), binary=0, types=None):
    n, texts, lengths, formats = values(given)
    oids = (c_uint * n)(*types) if types else None
    return show(pq.PQexecParams(conn, text.encode(), n, oids, texts, lengths, formats, binary))


QUESTIONS = [
    "SELECT * FROM samples ORDER BY id", "SELECT tier, count(*), sum(balance), avg(balance), count(score), count(rating), avg(clicks), sum(clicks), stddev(level) FROM customers GROUP BY tier ORDER BY tier",
    "SELECT joined::date AS day, count(*), count(DISTINCT customer_id) FROM customers GROUP BY 1 HAVING count(*) > 0 ORDER BY 1 LIMIT 4", "SELECT date_trunc('month', placed), extract(year FROM placed), status, count(*), sum(total) FROM orders GROUP BY 1, 2, 3 HAVING count(*) > 0 ORDER BY 1, 3 LIMIT 5",
    "SELECT newsletter, gift, count(*) FROM customers c JOIN orders o USING (customer_id) GROUP BY 1, 2 ORDER BY 1, 2", "SELECT count(*) * 1.0 / 3, count(*) / 7, count(*)::float8 / 7, round(avg(balance), 2), avg(balance)::int, count(*)::text || ' people' FROM customers",
    "SELECT p.category, sum(l.quantity * l.price) AS revenue FROM lines l JOIN products p ON p.product_id = l.product_id GROUP BY p.category ORDER BY revenue DESC", "SELECT country, count(*), sum(count(*)) OVER (ORDER BY country), rank() OVER (ORDER BY count(*) DESC) FROM customers GROUP BY country ORDER BY country",
    "SELECT interval '1 day' * 1.5, date '2024-01-31' + interval '1 month', age(timestamp '2024-03-01', timestamp '2023-01-15'), ARRAY[1, 2], ARRAY['x'], row_to_json(r) FROM (SELECT 1 AS a, 'b' AS b) r", "SELECT name, length(name), upper(name), substr(name, 1, 3), price * 2, price / 3, released + 1, released - date '2020-01-01', to_char(released, 'YYYY-MM'), weight / 3 FROM products ORDER BY product_id LIMIT 3",
    "SELECT seen, segment, tier, rating, count(*) FROM customers WHERE level = 1 AND seen < '2024-01-02' GROUP BY 1, 2, 3, 4 HAVING count(*) > 0 ORDER BY 1", "SELECT joined, level, score, count(*) FROM customers WHERE joined < '2024-01-02' GROUP BY 1, 2, 3 HAVING count(*) > 0 ORDER BY 1", "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY balance) FROM customers", "SELECT segment, count(*) FROM customers GROUP BY segment ORDER BY 1",
    "SELECT c.relname, c.relkind, a.attname, a.attnum, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.atthasdef FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relname IN ('products', 'samples') AND attnum > 0 ORDER BY 1, 4",
    "SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 3", "SELECT column_name, ordinal_position, column_default, is_nullable, data_type, character_maximum_length, numeric_precision, numeric_scale, datetime_precision, udt_name FROM information_schema.columns WHERE table_name IN ('products', 'samples') ORDER BY table_name, 2",
    "SELECT rolname, rolsuper, rolcreatedb FROM pg_roles WHERE rolname = current_user", "SELECT datname, datcollate, encoding, datistemplate, datallowconn FROM pg_database WHERE datname = current_database()", "SELECT nspname FROM pg_namespace WHERE nspname = 'public'", "SELECT typname, typlen, typtype, typcategory, typelem, typarray FROM pg_type WHERE typname IN ('int4', '_int4', 'text', 'numeric', 'bool', 'json', 'jsonb') ORDER BY 1",
]


def questions(conn):
    for q in QUESTIONS:
        see("[simple] " + q, show(pq.PQexec(conn, q.encode())))
        see("[text] " + q, params(conn, q))
        see("[binary] " + q, params(conn, q, binary=1))


def parameters(conn):
    for name, text, given, types in [
        ("int2", "SELECT count(*) FROM customers WHERE level = $1", [b"\0\3"], [21]), ("int4", "SELECT count(*) FROM customers WHERE level = $1", [b"\0\0\0\3"], [23]), ("int8", "SELECT count(*) FROM customers WHERE clicks = $1", [b"\0\0\0\0\0\0\0\7"], [20]),
        ("untyped", "SELECT count(*) FROM customers WHERE level = $1", ["3"], None), ("text", "SELECT count(*) FROM customers WHERE tier = $1", ["gold"], [25]), ("varchar", "SELECT count(*) FROM customers WHERE country = $1", ["de"], [1043]), ("bpchar", "SELECT count(*) FROM customers WHERE country = $1", ["de"], [1042]), ("unknown", "SELECT count(*) FROM customers WHERE born = $1", ["1950-03-02"], [705]),
        ("date", "SELECT count(*) FROM customers WHERE born > $1", ["1960-01-01"], [1082]), ("date in binary", "SELECT count(*) FROM customers WHERE born > $1", [(-14610).to_bytes(4, "big", signed=True)], [1082]), ("timestamptz", "SELECT count(*) FROM customers WHERE joined > $1", ["2024-01-15 00:00:00+00"], [1184]), ("timestamp for timestamptz", "SELECT count(*) FROM customers WHERE joined > $1", ["2024-01-15 00:00:00"], [1114]),
        ("numeric", "SELECT count(*) FROM customers WHERE balance > $1", ["10.5"], [1700]), ("float8 for numeric", "SELECT count(*) FROM customers WHERE balance > $1", ["10.5"], [701]), ("uuid", "SELECT count(*) FROM customers WHERE segment = $1", [bytes.fromhex("00000000000040008000000000000001")], [2950]), ("bool", "SELECT count(*) FROM customers WHERE newsletter = $1", [b"\1"], [16]), ("bool in words", "SELECT count(*) FROM customers WHERE newsletter = $1", ["yes"], [16]),
        ("array", "SELECT count(*) FROM customers WHERE level = ANY($1)", ["{1,2}"], None), ("array of texts", "SELECT count(*) FROM customers WHERE tier = ANY($1)", ['{gold,"silver",NULL}'], [1009]), ("NULL", "SELECT count(*) FROM customers WHERE tier = $1", [None], None), ("wrong text", "SELECT count(*) FROM customers WHERE level = $1", ["three"], None), ("too few bytes", "SELECT count(*) FROM customers WHERE level = $1", [b"\0"], [23]), ("not UTF-8", "SELECT $1::text", [b"\xff"], [25]),
        ("zero byte", "SELECT $1::text", [b"a\0b"], [25]), ("a type that is none", "SELECT $1", ["x"], [99999]), ("interval", "SELECT $1 + date '2024-01-01'", ["1 day"], [1186]), ("text that is a number", "SELECT $1 + 1", ["41"], None), ("json", "SELECT $1::json ->> 'a'", ['{"a": 5}'], None), ("several", "SELECT $1 || $2, $3::int", ["a", "b", "3"], None), ("out of range", "SELECT $1::smallint", ["40000"], None), ("empty text", "SELECT $1::int", [""], None), ("money", "SELECT count(*) FROM customers WHERE balance > $1", ["10.5"], [790]),
    ]:
        see("[text] parameter " + name, params(conn, text, given, types=types))
        see("[binary] parameter " + name, params(conn, text, given, 1, types))
    see("too many parameters", params(conn, "SELECT $1::int", ["1", "2"]))
    see("two statements", params(conn, "SELECT 1; SELECT 2"))
    see("empty", params(conn, ""))
    see("comment", params(conn, "-- ping"))


def prepared(conn):
    see("prepare", show(pq.PQprepare(conn, b"one", b"SELECT tier, count(*) FROM customers WHERE level = $1 AND born > $2 GROUP BY tier ORDER BY tier", 0, None)))
    see("describe", show(pq.PQdescribePrepared(conn, b"one")))
    n, texts, lengths, formats = values(["2", "1955-01-01"])
    see("run", show(pq.PQexecPrepared(conn, b"one", n, texts, lengths, formats, 0)))
    see("again", show(pq.PQexecPrepared(conn, b"one", n, texts, lengths, formats, 1)))
    see("prepare the same name", show(pq.PQprepare(conn, b"one", b"SELECT 1", 0, None)))
    see("run nothing", show(pq.PQexecPrepared(conn, b"nothing", 0, None, None, None, 0)))
    see("describe nothing", show(pq.PQdescribePrepared(conn, b"nothing")))
    see("wrong number", show(pq.PQexecPrepared(conn, b"one", 1, texts, lengths, formats, 0)))
    see("deallocate", show(pq.PQexec(conn, b"DEALLOCATE one")))
    see("after deallocating", show(pq.PQexecPrepared(conn, b"one", n, texts, lengths, formats, 0)))
    show(pq.PQexec(conn, b"BEGIN"))
    see("declare", show(pq.PQexec(conn, b"DECLARE c BINARY CURSOR FOR SELECT level, count(*) FROM customers GROUP BY level ORDER BY level")))
    see("describe a cursor", show(pq.PQdescribePortal(conn, b"c")))
    see("fetch", show(pq.PQexec(conn, b"FETCH 2 FROM c")))
    see("describe no cursor", show(pq.PQdescribePortal(conn, b"d")))
    see("status", IDLE[pq.PQtransactionStatus(conn)])
    show(pq.PQexec(conn, b"ROLLBACK"))


def results(conn, until):
    """The results of a pipeline until so many syncs were seen."""
    out, nothing = [], 0
    while until > 0 and nothing < 4:
        result = pq.PQgetResult(conn)
        if not result:
            nothing += 1
            out.append("-")
            continue
        nothing = 0
        until -= pq.PQresultStatus(result) == 10
        out.append(show(result, False))
    return " ; ".join(out)


def pipelines(conn):
    def send(text, given=(), binary=0):
        n, texts, lengths, formats = values(given)
        return pq.PQsendQueryParams(conn, text.encode(), n, None, texts, lengths, formats, binary)

    see("pipeline mode", pq.PQenterPipelineMode(conn))
    for name, texts, syncs in [
        ("answers", ["SELECT 1", "SELECT count(*) FROM customers", "SELECT tier, count(*) FROM customers GROUP BY tier ORDER BY tier", None], 1), ("an error amid", ["SELECT 1", "SELECT 1/0", "SELECT 2", None, "SELECT 3", None], 2),
        ("a refusal amid", ["SELECT count(*) FROM products", "SELECT email FROM customers LIMIT 1", "SELECT count(*) FROM customers", None], 1), ("a transaction", ["BEGIN", "SELECT count(*) FROM orders", "COMMIT", None], 1), ("a failed one", ["BEGIN", "SELECT nope", "ROLLBACK", None, "ROLLBACK", None], 2),
        ("settings", ["SET application_name = 'p'", "SHOW application_name", None], 1), ("a setting that is undone", ["SET application_name = 'q'", "SELECT 1/0", None, "SHOW application_name", None], 2), ("nothing", [None], 1), ("empty texts", ["", "-- x", None], 1), ("savepoints", ["BEGIN", "SAVEPOINT a", "SELECT 1/0", None, "ROLLBACK TO a", "SELECT 2", "COMMIT", None], 2),
        ("a hundred", ["SELECT %d, count(*) FROM customers" % (i % 3) for i in range(100)] + [None], 1), ("COPY", ["COPY products TO STDOUT", None], 1),
    ]:
        for text in texts:
            if text is None:
                pq.PQpipelineSync(conn)
            elif not send(text):
                see("pipeline %s: %s" % (name, text), pq.PQerrorMessage(conn).decode())
        if name == "COPY":
            out = []
            for _ in range(4):
                result = pq.PQgetResult(conn)
                if result:
                    out.append(pq.PQresStatus(pq.PQresultStatus(result)).decode())
                    pq.PQclear(result)
            see("pipeline COPY", " ".join(out[:1]))
            return
        see("pipeline " + name, results(conn, syncs))
        see("pipeline status after " + name, "%d %s" % (pq.PQpipelineStatus(conn), IDLE[pq.PQtransactionStatus(conn)]))


def flushes(conn):
    pq.PQenterPipelineMode(conn)
    n, texts, lengths, formats = values(["7"])
    pq.PQsendPrepare(conn, b"f", b"SELECT $1::int * 6, count(*) FROM customers", 0, None)
    pq.PQsendDescribePrepared(conn, b"f")
    pq.PQsendFlushRequest(conn)
    pq.PQflush(conn)
    see("flush: prepared", " ; ".join(show(pq.PQgetResult(conn)) for _ in range(4)))
    pq.PQsendQueryPrepared(conn, b"f", n, texts, lengths, formats, 0)
    pq.PQsendFlushRequest(conn)
    pq.PQflush(conn)
    see("flush: run", " ; ".join(show(pq.PQgetResult(conn)) for _ in range(2)))
    pq.PQpipelineSync(conn)
    see("flush: sync", results(conn, 1))
    see("flush: out", pq.PQexitPipelineMode(conn))
    pq.PQsendQuery(conn, b"SELECT tier, count(*) FROM customers GROUP BY tier ORDER BY tier; SELECT 1")
    pq.PQsetSingleRowMode(conn)
    out = []
    while True:
        result = pq.PQgetResult(conn)
        if not result:
            break
        out.append(show(result, False))
    see("rows one by one", " ; ".join(out))


def copies(conn):
    for text in ["COPY (SELECT tier, count(*) FROM customers GROUP BY tier ORDER BY tier) TO STDOUT", "COPY samples TO STDOUT", "COPY samples (id, txt) TO STDOUT WITH (FORMAT csv, DELIMITER '|', NULL '?', QUOTE '''', HEADER true, FORCE_QUOTE (txt))", "COPY samples TO STDOUT (FORMAT binary)", "COPY products FROM STDIN", "COPY samples TO STDOUT (FORMAT xml)",
                 "COPY samples (nope) TO STDOUT", "COPY samples TO STDOUT (DELIMITER 'ab')", "COPY (SELECT 1) TO STDOUT ENCODING 'LATIN1'", "COPY (VALUES (1), (2)) TO STDOUT; SELECT 3"]:
        result = pq.PQexec(conn, text.encode())
        if pq.PQresultStatus(result) == 3:
            formats, out = [pq.PQfformat(result, i) for i in range(pq.PQnfields(result))], []
            pq.PQclear(result)
            while True:
                data = c_void_p()
                n = pq.PQgetCopyData(conn, byref(data), 0)
                if n < 0:
                    break
                out.append(ctypes.string_at(data, n).hex() if "binary" in text else ctypes.string_at(data, n).decode("utf-8", "backslashreplace"))
                pq.PQfreemem(data)
            last = []
            while True:
                result = pq.PQgetResult(conn)
                if not result:
                    break
                last.append(show(result))
            see(text, "%s %s %s" % (formats, "".join(out), " ; ".join(last)))
        elif pq.PQresultStatus(result) == 4:
            pq.PQclear(result)
            pq.PQputCopyData(conn, b"1\n", 2)
            pq.PQputCopyEnd(conn, None)
            see(text, show(pq.PQgetResult(conn)))
            show(pq.PQgetResult(conn))
        else:
            see(text, show(result))
    see("after COPY", show(pq.PQexec(conn, b"SELECT 1")))


def cuts(conn):
    pq.PQsendQuery(conn, b"SELECT pg_sleep(60)")
    why = ctypes.create_string_buffer(256)
    for _ in range(100):
        cancel = pq.PQgetCancel(conn)
        pq.PQcancel(cancel, why, 256)
        pq.PQfreeCancel(cancel)
        time.sleep(0.1)
        pq.PQconsumeInput(conn)
        if not pq.PQisBusy(conn):
            break
    see("cancelled", show(pq.PQgetResult(conn)))
    show(pq.PQgetResult(conn))
    see("after the cancel", show(pq.PQexec(conn, b"SELECT 1")))
    pq.PQreset(conn)
    see("reset", "%d %s" % (pq.PQstatus(conn), show(pq.PQexec(conn, b"SELECT count(*) FROM products"))))
    pq.lo_creat(conn, 0x60000)
    see("after the large object", show(pq.PQexec(conn, b"SELECT 1")))
    show(pq.PQexec(conn, b"LISTEN a"))
    see("nothing comes", bool(pq.PQconsumeInput(conn)) and not pq.PQnotifies(conn))
    for text in ["SELECT pg_advisory_lock(1)", "SELECT pg_try_advisory_lock(1)", "SELECT pg_advisory_unlock(1)", "SELECT pg_advisory_unlock_all()", "SELECT pg_is_in_recovery()", "SELECT pg_catalog.pg_is_in_recovery()"]:
        see(text, show(pq.PQexec(conn, text.encode())))


def ways():
    for info in ["target_session_attrs=any", "target_session_attrs=read-write", "target_session_attrs=read-only", "target_session_attrs=primary", "target_session_attrs=standby", "target_session_attrs=prefer-standby", "gssencmode=prefer", "gssencmode=disable", "connect_timeout=5 keepalives=1 keepalives_idle=5",
                 "application_name='it''s' fallback_application_name=b", "options='-c search_path=public -c statement_timeout=5s'", "options='-csearch_path=public'", "options='--statement-timeout=5s'", "options='-c nosuch=1'", "options='-c work_mem'", "client_encoding=auto", "client_encoding=LATIN1", "client_encoding=SQL_ASCII", "replication=database", "replication=true"]:
        conn = connect(info)
        message = pq.PQerrorMessage(conn).decode()
        see("connect " + info, "%d %s" % (pq.PQstatus(conn), message[message.find("failed: ") + 8:].strip() if "failed: " in message else message.strip()))
        if pq.PQstatus(conn) == 0:
            see("connected " + info, show(pq.PQexec(conn, b"SHOW search_path; SHOW statement_timeout; SHOW client_encoding; SELECT current_setting('application_name')")))
        pq.PQfinish(conn)
    see("ping", pq.PQping(b""))


main = connect()
see("connected", "%d %s" % (pq.PQstatus(main), pq.PQerrorMessage(main).decode()))
see("versions", "%d %d" % (pq.PQserverVersion(main) // 10000, pq.PQprotocolVersion(main)))
questions(main)
parameters(main)
prepared(main)
pipelines(main)
pq.PQfinish(main)
main = connect()
flushes(main)
copies(main)
cuts(main)
pq.PQfinish(main)
ways()

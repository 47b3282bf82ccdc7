"""psqlODBC through the driver manager's own functions: catalog functions, descriptions of columns and parameters, parameters of each type, fetches in parts, transactions, diagnostics.

Each line is a name, a tab, and what was seen; the test runs it against PostgreSQL and against dpproxy and compares."""
import ctypes
import os
from ctypes import byref, c_double, c_int, c_long, c_longlong, c_short, c_ulong, c_ushort, c_void_p, create_string_buffer

odbc = ctypes.CDLL("libodbc.so.2")
NTS, ENV, DBC, STMT = -3, 1, 2, 3


def see(name, value):
    print(name + "\t" + str(value).replace("\n", "\\n").replace("\t", "\\t"), flush=True)


def handle(kind, parent):
    h = c_void_p()
    odbc.SQLAllocHandle(c_short(kind), parent, byref(h))
    return h


def diagnostics(kind, h):
    out = []
    for i in range(1, 4):
        state, native, text, length = create_string_buffer(6), c_int(), create_string_buffer(2000), c_short()
        if odbc.SQLGetDiagRec(c_short(kind), h, c_short(i), state, byref(native), text, c_short(2000), byref(length)) not in (0, 1):
            break
        message = text.value.decode("utf-8", "backslashreplace").split(";\nError while")[0]
        refused = state.value == b"42501" or state.value.startswith(b"DP")
        if "syntax for type" in message or "out of range" in message:
            message = message.split(': "')[0]  # dpproxy repeats no value
        out.append(state.value.decode() if refused else "%s %d %s" % (state.value.decode(), native.value, message))
    return " & ".join(out)


env = handle(ENV, None)
odbc.SQLSetEnvAttr(env, c_int(200), c_void_p(3), c_int(0))


def connect(**more):
    parts = {"Driver": "{PostgreSQL Unicode}", "Servername": os.environ["PGHOST"], "Port": os.environ["PGPORT"], "Database": os.environ["PGDATABASE"], "UserName": os.environ["PGUSER"], "Password": os.environ["PGPASSWORD"], "SSLmode": os.environ["PGSSLMODE"]}
    if os.environ.get("PGSSLROOTCERT"):
        parts["pqopt"] = "{sslrootcert=%s}" % os.environ["PGSSLROOTCERT"]
    parts.update(more)
    h = handle(DBC, env)
    text = ";".join("%s=%s" % p for p in parts.items()).encode()
    result = odbc.SQLDriverConnect(h, None, text, c_short(len(text)), None, c_short(0), None, c_ushort(0))
    return h if result in (0, 1) else diagnostics(DBC, h)


def columns(s):
    n, out = c_short(), []
    odbc.SQLNumResultCols(s, byref(n))
    for i in range(1, n.value + 1):
        name, length, kind, size, digits, nullable = create_string_buffer(200), c_short(), c_short(), c_ulong(), c_short(), c_short()
        odbc.SQLDescribeCol(s, c_ushort(i), name, c_short(200), byref(length), byref(kind), byref(size), byref(digits), byref(nullable))
        told = []
        for attribute in (14, 1003, 2, 11, 8, 9, 10, 22, 23, 15, 6):  # type's name, its length and octets, auto, case, currency, searchable, ...
            text, got, number = create_string_buffer(200), c_short(), c_long()
            odbc.SQLColAttribute(s, c_ushort(i), c_ushort(attribute), text, c_short(200), byref(got), byref(number))
            told.append(text.value.decode() or str(number.value))
        out.append("%s %d %d %d %s" % (name.value.decode(), kind.value, size.value, digits.value, " ".join(told)))
    return out


def fetched(s, leave=()):
    n, out = c_short(), []
    odbc.SQLNumResultCols(s, byref(n))
    while True:
        result = odbc.SQLFetch(s)
        if result == 100:
            return out
        if result not in (0, 1):
            return out + [diagnostics(STMT, s)]
        row = []
        for i in range(1, n.value + 1):
            text, got = create_string_buffer(4000), c_long()
            result = odbc.SQLGetData(s, c_ushort(i), c_short(1), text, c_long(4000), byref(got))
            if i not in leave:
                row.append("?" + diagnostics(STMT, s) if result not in (0, 1) else "NULL" if got.value == -1 else text.value.decode("utf-8", "backslashreplace"))
        out.append(",".join(row))


def asked(c, text, describe=True, more=None):
    s = handle(STMT, c)
    if more:
        more(s)
    result = odbc.SQLExecDirect(s, text.encode(), c_int(NTS))
    if result not in (0, 1, 100):
        got = diagnostics(STMT, s)
    else:
        parts = []
        while True:
            count = c_long()
            odbc.SQLRowCount(s, byref(count))
            n = c_short()
            odbc.SQLNumResultCols(s, byref(n))
            parts.append((("%s : " % columns(s)) if describe else "") + ("%s" % fetched(s) if n.value else "count %d" % count.value))
            if odbc.SQLMoreResults(s) not in (0, 1):
                break
        got = " ; ".join(parts)
    odbc.SQLFreeHandle(c_short(STMT), s)
    return got


def catalog(c, name, function, *arguments, leave=()):
    s = handle(STMT, c)
    given = []
    for a in arguments:
        given += [a, c_short(NTS) if isinstance(a, bytes) else c_short(0)] if not isinstance(a, c_ushort) else [a]
    result = function(s, *given)
    see(name, diagnostics(STMT, s) if result not in (0, 1) else sorted(fetched(s, leave)))
    odbc.SQLFreeHandle(c_short(STMT), s)


QUESTIONS = [
    "SELECT * FROM samples ORDER BY id", "SELECT tier, count(*), sum(balance), avg(balance), count(score), count(rating), sum(clicks) FROM customers GROUP BY tier ORDER BY tier", "SELECT seen, segment, newsletter, country, count(*) FROM customers WHERE seen < '2024-01-02' GROUP BY 1, 2, 3, 4 HAVING count(*) > 0 ORDER BY seen", "SELECT * FROM products ORDER BY product_id LIMIT 3",
    "SELECT interval '1 day 2 hours', ARRAY[1, 2], '{\"a\": 1}'::json, NULL, 'x'::char(3), 1.50::numeric(5,2), repeat('x', 300)", "SELECT {fn UCASE('a')}, {d '2024-01-01'}, {ts '2024-01-01 10:00:00'}, {fn CONCAT('a', 'b')}, {fn LENGTH('abc')}, {fn NOW()} IS NULL", "SELECT count(*) FROM customers WHERE born >= {d '1960-01-01'}", "SELECT count(*) FROM {oj customers c LEFT OUTER JOIN orders o ON o.customer_id = c.customer_id}",
    "SELECT 1; SELECT 2; SET application_name = 'x'", "SELECT 1/0", "SELECT nope FROM products", "SELECT * FROM nobody", "selec 1", "SELECT email FROM customers LIMIT 1", "INSERT INTO products (product_id) VALUES (1)", "SELECT date_trunc('month', placed) AS m, count(*) FROM orders GROUP BY 1 HAVING count(*) > 0 ORDER BY 1 LIMIT 4", 
]


def parameters(c, mode):
    for name, text, given in [
        ("integer", "SELECT count(*) FROM customers WHERE level = ?", [(4, 4, c_int(3))]), ("smallint", "SELECT count(*) FROM customers WHERE level = ?", [(5, 5, c_short(3))]), ("bigint", "SELECT count(*) FROM customers WHERE clicks = ?", [(-5, -25, c_longlong(7))]), ("double", "SELECT count(*) FROM customers WHERE score > ?", [(8, 8, c_double(2.5))]), ("double for numeric", "SELECT count(*) FROM customers WHERE balance > ?", [(8, 8, c_double(10.5))]),
        ("text", "SELECT count(*) FROM customers WHERE tier = ?", [(12, 1, "gold")]), ("char", "SELECT count(*) FROM customers WHERE country = ?", [(1, 1, "de")]), ("numeric", "SELECT count(*) FROM customers WHERE balance > ?", [(2, 1, "10.5")]), ("date", "SELECT count(*) FROM customers WHERE born > ?", [(91, 1, "1960-01-01")]), ("timestamp", "SELECT count(*) FROM customers WHERE seen > ?", [(93, 1, "2024-01-15 00:00:00")]), ("timestamp for timestamptz", "SELECT count(*) FROM customers WHERE joined > ?", [(93, 1, "2024-01-15 00:00:00")]),
        ("bit", "SELECT count(*) FROM customers WHERE newsletter = ?", [(-7, 1, "1")]), ("guid", "SELECT count(*) FROM customers WHERE segment = ?", [(-11, 1, "00000000-0000-4000-8000-000000000001")]), ("NULL", "SELECT count(*) FROM customers WHERE tier = ?", [(12, 1, None)]), ("two", "SELECT count(*) FROM customers WHERE level BETWEEN ? AND ?", [(4, 4, c_int(2)), (4, 4, c_int(3))]), ("in the list", "SELECT ?, count(*) FROM products", [(12, 1, "it's")]), ("LIKE", "SELECT count(*) FROM customers WHERE email LIKE ?", [(12, 1, "%.org")]),
        ("arithmetic", "SELECT ? + 1, ? || 'x'", [(4, 4, c_int(41)), (12, 1, "y")]), ("wrong", "SELECT count(*) FROM customers WHERE level = ?", [(12, 1, "x")]), ("limit", "SELECT product_id FROM products ORDER BY 1 LIMIT ?", [(4, 4, c_int(2))]), ("group", "SELECT floor(balance / ?) AS b, count(*) FROM customers GROUP BY 1 HAVING count(*) > 0 ORDER BY 1", [(4, 4, c_int(5))]),
    ]:
        s = handle(STMT, c)
        out, kept = [], []
        result = odbc.SQLPrepare(s, text.encode(), c_int(NTS))
        if result not in (0, 1):
            out.append(diagnostics(STMT, s))
        n = c_short()
        odbc.SQLNumParams(s, byref(n))
        out.append("parameters %d" % n.value)
        for i in range(1, n.value + 1):
            kind, size, digits, nullable = c_short(), c_ulong(), c_short(), c_short()
            result = odbc.SQLDescribeParam(s, c_ushort(i), byref(kind), byref(size), byref(digits), byref(nullable))
            out.append("%d %d %d %d" % (kind.value, size.value, digits.value, nullable.value) if result in (0, 1) else diagnostics(STMT, s))
        out.append("%s" % columns(s))
        for i, (sql, kind, v) in enumerate(given, 1):
            length = c_long(-1 if v is None else NTS if isinstance(v, str) else 0)
            value = create_string_buffer((v or "").encode()) if v is None or isinstance(v, str) else v
            kept.append((length, value))
            odbc.SQLBindParameter(s, c_ushort(i), c_short(1), c_short(kind), c_short(sql), c_ulong(40), c_short(6 if sql == 93 else 2 if sql == 2 else 0), byref(value), c_long(0), byref(length))
        for _ in range(2):
            result = odbc.SQLExecute(s)
            out.append("%s" % fetched(s) if result in (0, 1) else diagnostics(STMT, s))
            odbc.SQLFreeStmt(s, c_ushort(0))
        see("[%s] parameter %s" % (mode, name), " | ".join(out))
        odbc.SQLFreeHandle(c_short(STMT), s)


def transactions(c, mode):
    odbc.SQLSetConnectAttr(c, c_int(102), c_void_p(0), c_int(0))
    see("[" + mode + "] in a transaction", asked(c, "SELECT count(*) FROM customers", False))
    see("[" + mode + "] an error", asked(c, "SELECT 1/0", False))
    see("[" + mode + "] after it", asked(c, "SELECT count(*) FROM orders", False))
    see("[" + mode + "] commit", odbc.SQLEndTran(c_short(DBC), c, c_short(0)))
    see("[" + mode + "] rollback", odbc.SQLEndTran(c_short(DBC), c, c_short(1)))
    odbc.SQLSetConnectAttr(c, c_int(102), c_void_p(1), c_int(0))
    for level in (1, 2, 4, 8):
        result = odbc.SQLSetConnectAttr(c, c_int(108), c_void_p(level), c_int(0))
        see("[%s] isolation %d" % (mode, level), "%s %s" % (result if result in (0, 1) else diagnostics(DBC, c), asked(c, "SHOW transaction_isolation", False)))
    see("[" + mode + "] time-out", asked(c, "SELECT pg_sleep(20)", False, lambda s: odbc.SQLSetStmtAttr(s, c_int(0), c_void_p(1), c_int(0))))
    see("[" + mode + "] after the time-out", asked(c, "SELECT 1", False))
    see("[" + mode + "] most rows", asked(c, "SELECT product_id FROM products ORDER BY 1", False, lambda s: odbc.SQLSetStmtAttr(s, c_int(1), c_void_p(2), c_int(0))))
    see("[" + mode + "] static cursor", asked(c, "SELECT level, count(*) FROM customers GROUP BY level ORDER BY level", False, lambda s: odbc.SQLSetStmtAttr(s, c_int(6), c_void_p(3), c_int(0))))
    see("[" + mode + "] keyset cursor", asked(c, "SELECT product_id, name FROM products ORDER BY 1 LIMIT 2", False, lambda s: (odbc.SQLSetStmtAttr(s, c_int(6), c_void_p(1), c_int(0)), odbc.SQLSetStmtAttr(s, c_int(7), c_void_p(4), c_int(0)))))


for mode, more in [("plain", {}), ("prepared", {"UseServerSidePrepare": "1"}), ("declared", {"UseDeclareFetch": "1", "Fetch": "2"}), ("both", {"UseServerSidePrepare": "1", "UseDeclareFetch": "1", "Fetch": "3"}), ("by statement", {"Protocol": "7.4-2"}), ("by transaction", {"Protocol": "7.4-1"}), ("none", {"Protocol": "7.4-0"}), ("read only", {"ReadOnly": "1"}), ("oids", {"ShowOidColumn": "1", "FakeOidIndex": "1", "RowVersioning": "1", "ShowSystemTables": "1"}), ("parsed", {"Parse": "1", "DisallowPremature": "1"}), ("texts", {"TextAsLongVarchar": "0", "UnknownsAsLongVarchar": "0", "BoolsAsChar": "0", "MaxVarcharSize": "100"}), ("settings", {"ConnSettings": "{set search_path to public}"}), ("updatable", {"UpdatableCursors": "1"})]:
    c = connect(**more)
    if isinstance(c, str):
        see("[" + mode + "] connects", c)
        continue
    for q in QUESTIONS:
        see("[%s] %s" % (mode, q), asked(c, q))
    if mode in ("plain", "prepared", "both"):
        parameters(c, mode)
        transactions(c, mode)
    if mode in ("plain", "oids"):
        for table in (b"customers", b"orders", b"products", b"samples"):
            t = table.decode()
            catalog(c, "[%s] SQLTables %s" % (mode, t), odbc.SQLTables, None, b"public", table, b"TABLE", leave=(5,))
            catalog(c, "[%s] SQLColumns %s" % (mode, t), odbc.SQLColumns, None, b"public", table, None, leave=(11, 12, 18, 22, 23))
            catalog(c, "[%s] SQLPrimaryKeys %s" % (mode, t), odbc.SQLPrimaryKeys, None, b"public", table)
            catalog(c, "[%s] SQLForeignKeys %s" % (mode, t), odbc.SQLForeignKeys, None, b"public", table, None, None, None)
            catalog(c, "[%s] SQLForeignKeys of %s" % (mode, t), odbc.SQLForeignKeys, None, None, None, None, b"public", table)
            catalog(c, "[%s] SQLStatistics %s" % (mode, t), odbc.SQLStatistics, None, b"public", table, c_ushort(1), c_ushort(0))
            catalog(c, "[%s] SQLSpecialColumns %s" % (mode, t), lambda s, *a: odbc.SQLSpecialColumns(s, c_ushort(1), *a), None, b"public", table, c_ushort(0), c_ushort(1))
            catalog(c, "[%s] SQLColumnPrivileges %s" % (mode, t), odbc.SQLColumnPrivileges, None, b"public", table, b"%")
        catalog(c, "[" + mode + "] SQLTables of views", odbc.SQLTables, None, b"public", b"%", b"VIEW")
        catalog(c, "[" + mode + "] SQLTables types", odbc.SQLTables, b"", b"", b"", b"%")
        catalog(c, "[" + mode + "] SQLTables catalogs", odbc.SQLTables, b"%", b"", b"", None)
        catalog(c, "[" + mode + "] SQLProcedures", odbc.SQLProcedures, None, b"public", b"%")
        s = handle(STMT, c)
        odbc.SQLGetTypeInfo(s, c_short(0))
        see("[" + mode + "] SQLGetTypeInfo", fetched(s))
        odbc.SQLFreeHandle(c_short(STMT), s)
        for what in (17, 2, 47, 25, 26, 46, 72, 23, 27, 29, 30, 35, 16, 119, 86, 50, 170):
            text, got = create_string_buffer(200), c_short()
            odbc.SQLGetInfo(c, c_ushort(what), text, c_short(200), byref(got))
            see("[%s] SQLGetInfo %d" % (mode, what), text.raw[:got.value] if got.value < 40 else got.value)
    odbc.SQLDisconnect(c)
    odbc.SQLFreeHandle(c_short(DBC), c)

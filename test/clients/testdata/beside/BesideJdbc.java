// pgjdbc as Java programs and BI tools use it: metadata, parameters of every type, fetch sizes, batches, generated keys, savepoints, timeouts,
// COPY. Each line is a name, a tab, and what was seen; the test runs it against PostgreSQL and against dpproxy and compares.
import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.*;
import java.time.*;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Calendar;
import java.util.List;
import java.util.Properties;
import java.util.TimeZone;
import java.util.UUID;
import org.postgresql.PGConnection;
import org.postgresql.PGStatement;
import org.postgresql.util.PGInterval;
import org.postgresql.util.PGobject;
import org.postgresql.util.PSQLException;

public class BesideJdbc {
    interface Look { Object at() throws Exception; }
    interface Set { void into(PreparedStatement s) throws Exception; }

    static void see(String name, Look look) {
        String value;
        try {
            value = String.valueOf(look.at());
        } catch (SQLException e) {
            value = error(e);
        } catch (Exception e) {
            value = e.toString();
        }
        System.out.println(name + "\t" + value.replace("\n", "\\n").replace("\t", "\\t"));
    }

    static String error(SQLException e) {
        String state = e.getSQLState() + "";
        if (state.equals("42501") || state.startsWith("DP")) return state; // what is refused says so in its own words
        var server = e instanceof PSQLException p ? p.getServerErrorMessage() : null;
        if (state.startsWith("22") && server != null) return state + " " + server.getMessage().split(": \"")[0]; // dpproxy repeats no value, and shows the operator
        String text = server == null ? e.getMessage() : server.getSeverity() + " " + server.getMessage() + " at " + server.getPosition() + " detail " + server.getDetail();
        return state + " " + text + (e.getNextException() == null ? "" : " then " + error(e.getNextException()));
    }

    static Connection open(String... more) throws SQLException {
        Properties p = new Properties();
        p.setProperty("user", System.getenv("PGUSER"));
        p.setProperty("password", System.getenv("PGPASSWORD"));
        p.setProperty("sslmode", System.getenv("PGSSLMODE"));
        if (System.getenv("PGSSLROOTCERT") != null) p.setProperty("sslrootcert", System.getenv("PGSSLROOTCERT"));
        for (int i = 0; i < more.length; i += 2) p.setProperty(more[i], more[i + 1]);
        String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE");
        try {
            return DriverManager.getConnection(url, p);
        } catch (SQLException e) { // on a busy machine a login may take too long
            if (!"08006".equals(e.getSQLState()) && !"08001".equals(e.getSQLState())) throw e;
            return DriverManager.getConnection(url, p);
        }
    }

    static String value(Object o) throws SQLException {
        if (o == null) return "NULL";
        if (o instanceof Array a) return o.getClass().getSimpleName() + " " + a.getBaseTypeName() + " " + Arrays.deepToString((Object[]) a.getArray());
        if (o instanceof byte[] b) return "bytes " + Arrays.toString(b);
        return o.getClass().getSimpleName() + " " + o;
    }

    static String rows(ResultSet r) throws SQLException {
        var m = r.getMetaData();
        List<String> out = new ArrayList<>();
        while (r.next()) {
            List<String> row = new ArrayList<>();
            for (int i = 1; i <= m.getColumnCount(); i++) row.add(value(r.getObject(i)));
            out.add(String.join(", ", row));
        }
        r.close();
        return String.join(" | ", out);
    }

    static String columns(ResultSetMetaData m) throws SQLException {
        List<String> out = new ArrayList<>();
        for (int i = 1; i <= m.getColumnCount(); i++) {
            out.add(String.join(" ", m.getColumnLabel(i), m.getColumnName(i), m.getColumnTypeName(i), "" + m.getColumnType(i), m.getColumnClassName(i), "" + m.getPrecision(i), "" + m.getScale(i),
                "" + m.getColumnDisplaySize(i), "" + m.isAutoIncrement(i), "" + m.isSigned(i), "" + m.isCaseSensitive(i), "" + m.isCurrency(i), "" + m.isSearchable(i), "" + m.isReadOnly(i), m.getTableName(i), m.getSchemaName(i)));
        }
        return String.join(" | ", out);
    }

    // sorted shows metadata without what hangs on the server: remarks and identifiers.
    static String sorted(ResultSet r) throws SQLException {
        var m = r.getMetaData();
        List<String> out = new ArrayList<>();
        while (r.next()) {
            List<String> row = new ArrayList<>();
            for (int i = 1; i <= m.getColumnCount(); i++) {
                if (!m.getColumnLabel(i).equals("REMARKS")) row.add(m.getColumnLabel(i).toLowerCase() + "=" + r.getString(i));
            }
            out.add(String.join(" ", row));
        }
        r.close();
        return String.join(" | ", out);
    }

    // mine are the privileges of the user herself.
    static String mine(ResultSet r) throws SQLException {
        List<String> out = new ArrayList<>();
        while (r.next()) if (System.getenv("PGUSER").equals(r.getString("GRANTEE"))) out.add(r.getString("TABLE_NAME") + " " + r.getString("PRIVILEGE"));
        r.close();
        return String.join(" | ", out);
    }

    static void metadata(Connection c) throws SQLException {
        DatabaseMetaData m = c.getMetaData();
        for (String table : new String[]{"customers", "orders", "lines", "products", "samples", "nobody"}) {
            see("getTables " + table, () -> sorted(m.getTables(null, null, table, null)));
            see("getColumns " + table, () -> sorted(m.getColumns(null, "public", table, "%")));
            see("getPrimaryKeys " + table, () -> sorted(m.getPrimaryKeys(null, "public", table)));
            see("getIndexInfo " + table, () -> sorted(m.getIndexInfo(null, "public", table, false, false)));
            see("getImportedKeys " + table, () -> sorted(m.getImportedKeys(null, "public", table)));
            see("getExportedKeys " + table, () -> sorted(m.getExportedKeys(null, "public", table)));
            see("getBestRowIdentifier " + table, () -> sorted(m.getBestRowIdentifier(null, "public", table, DatabaseMetaData.bestRowSession, true)));
            see("getVersionColumns " + table, () -> sorted(m.getVersionColumns(null, "public", table)));
            see("getTablePrivileges " + table, () -> mine(m.getTablePrivileges(null, "public", table)));
            see("getColumnPrivileges " + table, () -> mine(m.getColumnPrivileges(null, "public", table, "%")));
            see("getPseudoColumns " + table, () -> sorted(m.getPseudoColumns(null, "public", table, "%")));
        }
        see("getTables all", () -> sorted(m.getTables(null, "public", "%", new String[]{"TABLE", "VIEW", "MATERIALIZED VIEW", "PARTITIONED TABLE", "FOREIGN TABLE"})));
        see("getTables of the system", () -> sorted(m.getTables(null, "pg_catalog", "pg_cl%", new String[]{"SYSTEM TABLE"})));
        see("getTables in a pattern", () -> sorted(m.getTables("store", "pub%", "_roducts", new String[]{"TABLE"})));
        see("getCrossReference", () -> sorted(m.getCrossReference(null, "public", "customers", null, "public", "orders")));
        see("getSchemas", () -> sorted(m.getSchemas(null, "public")));
        see("getCatalogs", () -> sorted(m.getCatalogs()).contains("store"));
        see("getTableTypes", () -> sorted(m.getTableTypes()));
        see("getTypeInfo", () -> {
            List<String> out = new ArrayList<>();
            try (ResultSet r = m.getTypeInfo()) {
                while (r.next()) if (List.of("int2", "int4", "int8", "numeric", "float4", "float8", "text", "varchar", "bool", "date", "timestamp", "timestamptz", "uuid", "json", "jsonb", "interval", "bytea").contains(r.getString(1))) {
                    List<String> row = new ArrayList<>();
                    for (int i = 1; i <= 18; i++) row.add(r.getString(i));
                    out.add(row.toString());
                }
            }
            return out;
        });
        see("getUDTs", () -> sorted(m.getUDTs(null, "public", "%", null)));
        see("getFunctions", () -> sorted(m.getFunctions(null, "public", "%")));
        see("getFunctions of the system", () -> {
            int n = 0;
            try (ResultSet r = m.getFunctions(null, "pg_catalog", "abs")) { while (r.next()) n++; }
            return n;
        });
        see("getFunctionColumns", () -> sorted(m.getFunctionColumns(null, "public", "%", "%")));
        see("getProcedures", () -> sorted(m.getProcedures(null, "public", "%")));
        see("getProcedureColumns", () -> sorted(m.getProcedureColumns(null, "public", "%", "%")));
        see("getClientInfoProperties", () -> sorted(m.getClientInfoProperties()));
        see("getSuperTables", () -> sorted(m.getSuperTables(null, "public", "%")));
        see("getAttributes", () -> sorted(m.getAttributes(null, "public", "%", "%")));
        see("product", () -> m.getDatabaseProductName() + " " + m.getDatabaseMajorVersion() + " " + m.getUserName() + " " + m.getMaxColumnNameLength() + " " + m.getMaxConnections() + " " + m.getDefaultTransactionIsolation() + " " + m.isReadOnly());
        see("keywords", () -> m.getSQLKeywords());
        see("functions", () -> m.getNumericFunctions() + m.getStringFunctions() + m.getTimeDateFunctions());
    }

    static final String[] QUESTIONS = {
        "SELECT * FROM samples ORDER BY id", "SELECT tier, count(*) AS n, sum(balance), avg(balance), count(score), count(rating), avg(clicks) FROM customers GROUP BY tier ORDER BY tier", "SELECT seen, segment, newsletter, country, count(*) FROM customers WHERE seen < '2024-01-02' GROUP BY 1, 2, 3, 4 HAVING count(*) > 0 ORDER BY seen",
        "SELECT c.country, count(DISTINCT c.customer_id), count(*), sum(o.total) FROM customers c JOIN orders o ON o.customer_id = c.customer_id WHERE o.placed >= TIMESTAMP '2024-02-01' GROUP BY c.country ORDER BY 1", "SELECT date_trunc('month', placed) AS \"Month\", count(*) AS \"Orders\" FROM orders GROUP BY 1 HAVING count(*) > 0 ORDER BY 1 LIMIT 5",
        "SELECT ARRAY[1, 2], ARRAY['a', NULL], '{\"a\": 1}'::json, interval '1 mon 2 days 03:04:05.6', 1.10::numeric(5, 2), NULL, 'x'::char(3), ARRAY[1.5, 2.5], ARRAY[date '2024-01-01']", "SELECT p.*, p.price * 2 AS double_price FROM products p ORDER BY product_id LIMIT 3",
        "SELECT 1/0", "SELECT nope FROM products", "SELECT * FROM nobody", "SELECT 'x'::int", "selec 1", "SELECT {fn ucase('x')}, {fn now()} IS NULL, {d '2024-01-01'}, {ts '2024-01-01 10:00:00'}, {fn concat('a', 'b')}", "SELECT count(*) FROM customers WHERE born >= {d '1960-01-01'}",
        "SELECT email FROM customers LIMIT 1", "SELECT count(*) FROM customers WHERE level = 'x'", "SELECT count(*) FROM {oj customers c LEFT OUTER JOIN orders o ON o.customer_id = c.customer_id}", "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY balance) FROM customers", "SELECT count(*) FROM customers WHERE email LIKE '%.org' {escape '!'}"};

    static void questions(Connection c, String mode) throws SQLException {
        for (String q : QUESTIONS) {
            see("[" + mode + "] " + q, () -> { try (Statement s = c.createStatement()) { return rows(s.executeQuery(q)); } });
            see("[" + mode + "] columns " + q, () -> { try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(q)) { return columns(r.getMetaData()); } });
            see("[" + mode + "] prepared " + q, () -> {
                try (PreparedStatement s = c.prepareStatement(q)) {
                    String first = rows(s.executeQuery());
                    for (int i = 0; i < 7; i++) { // from the fifth on it is named, with results in binary
                        String next = rows(s.executeQuery());
                        if (!next.equals(first)) return "then " + next + " first " + first;
                    }
                    return first;
                }
            });
            see("[" + mode + "] described " + q, () -> { try (PreparedStatement s = c.prepareStatement(q)) { return s.getMetaData() == null ? "none" : columns(s.getMetaData()); } });
        }
    }

    static void parameters(Connection c, String mode) throws SQLException {
        Calendar tokyo = Calendar.getInstance(TimeZone.getTimeZone("Asia/Tokyo"));
        Object[][] list = {
            {"setInt level", "level = ?", (Set) s -> s.setInt(1, 3)}, {"setShort", "level = ?", (Set) s -> s.setShort(1, (short) 3)}, {"setLong", "clicks = ?", (Set) s -> s.setLong(1, 7)}, {"setByte", "level = ?", (Set) s -> s.setByte(1, (byte) 2)}, {"setString tier", "tier = ?", (Set) s -> s.setString(1, "gold")},
            {"setString country", "country = ?", (Set) s -> s.setString(1, "de")}, {"setNString", "tier = ?", (Set) s -> s.setObject(1, "gold", Types.NVARCHAR)}, {"setString level", "level = ?", (Set) s -> s.setString(1, "3")}, {"setString date", "born = ?", (Set) s -> s.setString(1, "1950-03-02")}, {"setBoolean", "newsletter = ?", (Set) s -> s.setBoolean(1, true)},
            {"setBigDecimal", "balance > ?", (Set) s -> s.setBigDecimal(1, new BigDecimal("10.5"))}, {"setDouble numeric", "balance > ?", (Set) s -> s.setDouble(1, 10.5)}, {"setDouble", "score > ?", (Set) s -> s.setDouble(1, 2.5)}, {"setFloat", "rating > ?", (Set) s -> s.setFloat(1, 1.5f)}, {"setInt numeric", "balance > ?", (Set) s -> s.setInt(1, 10)}, {"setInt score", "score > ?", (Set) s -> s.setInt(1, 5)},
            {"setDate", "born > ?", (Set) s -> s.setDate(1, java.sql.Date.valueOf("1960-01-01"))}, {"setTimestamp timestamptz", "joined > ?", (Set) s -> s.setTimestamp(1, Timestamp.valueOf("2024-01-15 00:00:00"))}, {"setTimestamp timestamp", "seen > ?", (Set) s -> s.setTimestamp(1, Timestamp.valueOf("2024-01-15 00:00:00"))}, {"setTimestamp date", "born > ?", (Set) s -> s.setTimestamp(1, Timestamp.valueOf("1960-01-01 00:00:00"))},
            {"setTimestamp calendar", "joined > ?", (Set) s -> s.setTimestamp(1, Timestamp.valueOf("2024-01-15 00:00:00"), tokyo)}, {"LocalDate", "born > ?", (Set) s -> s.setObject(1, LocalDate.of(1960, 1, 1))}, {"LocalDateTime", "seen > ?", (Set) s -> s.setObject(1, LocalDateTime.of(2024, 1, 15, 0, 0))}, {"OffsetDateTime", "joined > ?", (Set) s -> s.setObject(1, OffsetDateTime.of(2024, 1, 15, 0, 0, 0, 0, ZoneOffset.ofHours(2)))},
            {"LocalDateTime timestamptz", "joined > ?", (Set) s -> s.setObject(1, LocalDateTime.of(2024, 1, 15, 0, 0))}, {"UUID", "segment = ?", (Set) s -> s.setObject(1, UUID.fromString("00000000-0000-4000-8000-000000000001"))}, {"UUID as text", "segment = ?::uuid", (Set) s -> s.setString(1, "00000000-0000-4000-8000-000000000001")}, {"UUID as text, untold", "segment = ?", (Set) s -> s.setObject(1, "00000000-0000-4000-8000-000000000001", Types.OTHER)}, {"UUID as string", "segment = ?", (Set) s -> s.setString(1, "00000000-0000-4000-8000-000000000001")},
            {"setNull", "clicks IS NOT DISTINCT FROM ?", (Set) s -> s.setNull(1, Types.BIGINT)}, {"setNull untold", "tier = ?", (Set) s -> s.setNull(1, Types.NULL)}, {"setNull text", "(?::text IS NULL OR tier = 'gold')", (Set) s -> s.setNull(1, Types.VARCHAR)}, {"setArray text", "tier = ANY(?)", (Set) s -> s.setArray(1, c.createArrayOf("text", new String[]{"gold", "silver"}))}, {"setArray int", "level = ANY(?)", (Set) s -> s.setArray(1, c.createArrayOf("integer", new Integer[]{1, 2}))},
            {"setObject int[]", "level = ANY(?)", (Set) s -> s.setObject(1, new int[]{1, 2})}, {"setArray varchar", "tier = ANY(?)", (Set) s -> s.setArray(1, c.createArrayOf("varchar", new String[]{"gold"}))}, {"setArray uuid", "segment = ANY(?)", (Set) s -> s.setArray(1, c.createArrayOf("uuid", new UUID[]{UUID.fromString("00000000-0000-4000-8000-000000000001")}))}, {"setArray date", "born = ANY(?)", (Set) s -> s.setArray(1, c.createArrayOf("date", new java.sql.Date[]{java.sql.Date.valueOf("1950-03-02")}))}, {"PGInterval", "joined > timestamptz '2024-01-20 00:00Z' - ?", (Set) s -> s.setObject(1, new PGInterval("3 days"))},
            {"LIKE", "email LIKE ?", (Set) s -> s.setString(1, "%.org")}, {"two", "level BETWEEN ? AND ?", (Set) s -> { s.setInt(1, 2); s.setInt(2, 3); }}, {"in", "tier IN (?, ?)", (Set) s -> { s.setString(1, "gold"); s.setString(2, "silver"); }}, {"arithmetic", "level + ? > ?", (Set) s -> { s.setInt(1, 1); s.setInt(2, 3); }}, {"none given", "level = ?", (Set) s -> { }}, {"bad text", "level = ?", (Set) s -> s.setObject(1, "x", Types.OTHER)},
            {"Instant", "joined > ?", (Set) s -> s.setObject(1, Instant.parse("2024-01-15T00:00:00Z"))}, {"setObject Character", "tier = ?", (Set) s -> s.setObject(1, 'g')}, {"BigInteger", "clicks = ?", (Set) s -> s.setObject(1, java.math.BigInteger.valueOf(7))}, {"setObject numeric type", "balance > ?", (Set) s -> s.setObject(1, "10.5", Types.NUMERIC)}, {"setString in a date function", "born > ?::date + 30", (Set) s -> s.setString(1, "1960-01-01")}, {"case", "CASE WHEN ? THEN level > 1 ELSE true END", (Set) s -> s.setBoolean(1, true)}, {"coalesce", "coalesce(clicks, ?) = ?", (Set) s -> { s.setInt(1, 0); s.setInt(2, 0); }},
            {"PGobject", "tier = ?", (Set) s -> { PGobject o = new PGobject(); o.setType("text"); o.setValue("gold"); s.setObject(1, o); }}, {"operator ??", "'{\"a\": 1}'::jsonb ?? ?", (Set) s -> s.setString(1, "a")},
        };
        for (Object[] one : list) {
            see("[" + mode + "] " + one[0], () -> {
                try (PreparedStatement s = c.prepareStatement("SELECT count(*) FROM customers WHERE " + one[1])) {
                    String first = null;
                    for (int i = 0; i < 7; i++) {
                        ((Set) one[2]).into(s);
                        String next = rows(s.executeQuery());
                        if (first != null && !next.equals(first)) return "then " + next + " first " + first;
                        first = next;
                    }
                    return first;
                }
            });
            see("[" + mode + "] types of " + one[0], () -> {
                try (PreparedStatement s = c.prepareStatement("SELECT count(*) FROM customers WHERE " + one[1])) {
                    var m = s.getParameterMetaData();
                    List<String> out = new ArrayList<>();
                    for (int i = 1; i <= m.getParameterCount(); i++) out.add(m.getParameterTypeName(i) + " " + m.getParameterType(i) + " " + m.getParameterClassName(i));
                    return out;
                }
            });
        }
        for (String type : new String[]{"int", "bigint", "numeric", "text", "varchar(5)", "boolean", "date", "timestamp", "timestamptz", "float8", "real", "smallint", "uuid", "json", "jsonb", "int[]", "text[]", "interval", "bytea", "time", "money", "inet", "oid"}) {
            see("[" + mode + "] NULL::" + type, () -> { try (PreparedStatement s = c.prepareStatement("SELECT ?::" + type)) { s.setNull(1, Types.OTHER); return rows(s.executeQuery()); } });
        }
        see("[" + mode + "] getters", () -> {
            try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT count(*), avg(balance), sum(balance), min(date '2024-02-29'), avg(clicks)::float8 FROM customers")) {
                r.next();
                return r.getInt(1) + " " + r.getLong(1) + " " + r.getString(1) + " " + r.getBigDecimal(1) + " " + r.getDouble(2) + " " + r.getBigDecimal(2) + " " + r.getString(2) + " " + r.getBigDecimal(3) + " " + r.getDouble(5) + " " + r.getString(5) + " " + r.getShort(1);
            }
        });
        see("[" + mode + "] times", () -> {
            try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT day, at, zoned, day::text, zoned::text FROM samples ORDER BY id")) {
                List<String> out = new ArrayList<>();
                while (r.next()) out.add(r.getDate(1) + " " + r.getTimestamp(2) + " " + r.getTimestamp(3) + " " + r.getTimestamp(3, tokyo) + " " + r.getObject(1, LocalDate.class) + " " + r.getObject(2, LocalDateTime.class) + " " + r.getObject(3, OffsetDateTime.class) + " " + r.getString(3) + " " + r.getString(4) + " " + r.getString(5) + " " + r.wasNull());
                return out;
            }
        });
    }

    static void statements(Connection c) throws SQLException {
        Statement s = c.createStatement();
        see("several results", () -> {
            List<String> out = new ArrayList<>();
            boolean rows = s.execute("SELECT 1; SET application_name = 'j'; SELECT count(*) FROM customers; SHOW application_name; SELECT 'x' WHERE false");
            while (rows || s.getUpdateCount() >= 0) {
                out.add(rows ? rows(s.getResultSet()) : "count " + s.getUpdateCount());
                rows = s.getMoreResults();
            }
            return out;
        });
        see("executeUpdate of a SELECT", () -> s.executeUpdate("SELECT 1"));
        see("executeQuery of a SET", () -> s.executeQuery("SET application_name = 'k'"));
        for (String text : new String[]{"INSERT INTO products (product_id) VALUES (1)", "UPDATE products SET price = 1", "DELETE FROM products", "CREATE TABLE x (a int)", "CREATE TEMPORARY TABLE x (a int)", "TRUNCATE products", "SELECT * FROM products FOR UPDATE", "CALL x()", "EXPLAIN SELECT 1", "DO $$ BEGIN END $$"}) {
            see(text, () -> { s.execute(text); return text.startsWith("EXPLAIN") ? "answered" : "" + s.getUpdateCount(); });
        }
        see("generated keys", () -> { s.executeUpdate("INSERT INTO products (product_id) VALUES (1)", Statement.RETURN_GENERATED_KEYS); return rows(s.getGeneratedKeys()); });
        see("generated keys of a SELECT", () -> { try (PreparedStatement p = c.prepareStatement("SELECT count(*) FROM products", Statement.RETURN_GENERATED_KEYS)) { p.execute(); return rows(p.getResultSet()); } });
        see("generated keys by name", () -> { try (PreparedStatement p = c.prepareStatement("INSERT INTO products (product_id) VALUES (?)", new String[]{"product_id"})) { p.setInt(1, 1); return p.executeUpdate(); } });
        see("CallableStatement", () -> { try (CallableStatement f = c.prepareCall("{? = call upper(?)}")) { f.registerOutParameter(1, Types.VARCHAR); f.setString(2, "abc"); f.execute(); return f.getString(1); } });
        see("batch", () -> { s.addBatch("SET application_name = 'b1'"); s.addBatch("SET application_name = 'b2'"); return Arrays.toString(s.executeBatch()) + rows(s.executeQuery("SHOW application_name")); });
        see("batch of SELECTs", () -> { s.clearBatch(); s.addBatch("SELECT 1"); return Arrays.toString(s.executeBatch()); });
        see("batch with an error", () -> { s.clearBatch(); s.addBatch("SET application_name = 'b3'"); s.addBatch("SET nosuch = 1"); s.addBatch("SET application_name = 'b4'"); try { return Arrays.toString(s.executeBatch()); } catch (BatchUpdateException e) { return Arrays.toString(e.getUpdateCounts()) + error(e.getNextException()); } });
        see("after it", () -> rows(s.executeQuery("SHOW application_name")));
        see("batch of prepared ones", () -> { try (PreparedStatement p = c.prepareStatement("INSERT INTO products (product_id) VALUES (?)")) { for (int i = 0; i < 3; i++) { p.setInt(1, i); p.addBatch(); } try { return Arrays.toString(p.executeBatch()); } catch (BatchUpdateException e) { return Arrays.toString(e.getUpdateCounts()) + e.getSQLState(); } } });
        see("timeout", () -> { s.setQueryTimeout(1); try { return rows(s.executeQuery("SELECT pg_sleep(30)")); } finally { s.setQueryTimeout(0); } });
        see("after the timeout", () -> rows(s.executeQuery("SELECT count(*) FROM customers")));
        see("cancel", () -> {
            Thread t = new Thread(() -> { try { Thread.sleep(500); s.cancel(); } catch (Exception e) { throw new IllegalStateException(e); } });
            t.start();
            try { return rows(s.executeQuery("SELECT pg_sleep(30)")); } finally { t.join(); }
        });
        see("after the cancel", () -> rows(s.executeQuery("SELECT 1")));
        see("scrollable", () -> {
            try (Statement t = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY); ResultSet r = t.executeQuery("SELECT level, count(*) FROM customers GROUP BY level ORDER BY level")) {
                r.last(); String last = r.getRow() + " " + r.getInt(1); r.first(); r.absolute(2);
                return last + " " + r.getInt(1) + " " + r.previous() + " " + r.getInt(2);
            }
        });
        see("updatable", () -> { try (Statement t = c.createStatement(ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_UPDATABLE); ResultSet r = t.executeQuery("SELECT product_id, name FROM products")) { r.next(); r.updateString(2, "x"); r.updateRow(); return "updated"; } });
        see("max rows", () -> { try (Statement t = c.createStatement()) { t.setMaxRows(2); return rows(t.executeQuery("SELECT level, count(*) FROM customers GROUP BY level ORDER BY level")); } });
        see("field size", () -> { try (Statement t = c.createStatement()) { t.setMaxFieldSize(3); return rows(t.executeQuery("SELECT name FROM products ORDER BY product_id LIMIT 1")); } });
        see("isValid", () -> c.isValid(5));
        see("client info", () -> { c.setClientInfo("ApplicationName", "info"); return c.getClientInfo("ApplicationName") + rows(s.executeQuery("SHOW application_name")); });
        see("schema", () -> { c.setSchema("pg_catalog"); String got = c.getSchema(); c.setSchema("public"); return got + c.getSchema() + c.getCatalog(); });
        see("network timeout", () -> { c.setNetworkTimeout(Runnable::run, 20000); return c.getNetworkTimeout(); });
        see("escape", () -> c.nativeSQL("SELECT {fn curdate()}"));
        see("copyOut", () -> { StringWriter w = new StringWriter(); return ((PGConnection) c).getCopyAPI().copyOut("COPY (SELECT tier, count(*) FROM customers GROUP BY 1 ORDER BY 1) TO STDOUT CSV HEADER", w) + w.toString(); });
        see("copyIn", () -> ((PGConnection) c).getCopyAPI().copyIn("COPY products (product_id) FROM STDIN", new StringReader("1\n")));
        see("after copyIn", () -> rows(s.executeQuery("SELECT 1")));
        see("notifications", () -> { s.execute("LISTEN a"); var n = ((PGConnection) c).getNotifications(100); s.execute("UNLISTEN *"); return n == null ? 0 : n.length; });
        see("large objects", () -> ((PGConnection) c).getLargeObjectAPI() != null);
        see("quoted", () -> ((PGConnection) c).escapeIdentifier("a\"b") + ((PGConnection) c).escapeLiteral("it's"));
        see("warnings", () -> { try (Statement t = c.createStatement()) { t.execute("SET client_min_messages = warning"); t.executeQuery("SELECT count(*) FROM customers").close(); var w = t.getWarnings(); t.execute("RESET client_min_messages"); return w; } });
        s.close();
    }

    static void transactions(Connection c) throws SQLException {
        Statement s = c.createStatement();
        c.setAutoCommit(false);
        see("fetch size", () -> {
            int n = 0;
            try (PreparedStatement p = c.prepareStatement("SELECT born, count(*) FROM customers GROUP BY born HAVING count(*) > 0 ORDER BY born")) {
                p.setFetchSize(40);
                try (ResultSet r = p.executeQuery()) { while (r.next()) { if (n++ == 50) try (Statement other = c.createStatement()) { rows(other.executeQuery("SELECT count(*) FROM products")); } } }
            }
            return n;
        });
        see("two at a time", () -> {
            try (Statement a = c.createStatement(); Statement b = c.createStatement()) {
                a.setFetchSize(2); b.setFetchSize(3);
                ResultSet x = a.executeQuery("SELECT product_id FROM products ORDER BY 1"), y = b.executeQuery("SELECT level, count(*) FROM customers GROUP BY level ORDER BY 1");
                StringBuilder out = new StringBuilder();
                for (int i = 0; i < 20 && x.next(); i++) { out.append(x.getInt(1)).append(' '); if (y.next()) out.append('/').append(y.getInt(1)).append(' '); }
                return out;
            }
        });
        see("no savepoint, an error", () -> rows(s.executeQuery("SELECT 1/0")));
        see("in a failed transaction", () -> rows(s.executeQuery("SELECT 1")));
        see("commit of it", () -> { c.commit(); return "committed"; });
        c.rollback();
        see("savepoint", () -> {
            Savepoint p = c.setSavepoint("it's \"p\"");
            try { rows(s.executeQuery("SELECT nope")); } catch (SQLException e) { c.rollback(p); }
            String got = rows(s.executeQuery("SELECT count(*) FROM customers"));
            c.releaseSavepoint(p);
            Savepoint q = c.setSavepoint();
            c.rollback(q);
            return got + q.getSavepointId();
        });
        see("released twice", () -> { Savepoint p = c.setSavepoint("twice"); c.releaseSavepoint(p); c.releaseSavepoint(p); return "released"; });
        see("by SQL", () -> { s.execute("SAVEPOINT b"); s.execute("RELEASE SAVEPOINT b"); s.execute("ROLLBACK TO SAVEPOINT b"); return "done"; });
        c.rollback();
        see("cursor", () -> { s.execute("DECLARE x SCROLL CURSOR FOR SELECT tier, count(*) FROM customers GROUP BY tier ORDER BY tier"); return rows(s.executeQuery("FETCH 2 FROM x")) + " / " + rows(s.executeQuery("FETCH PRIOR FROM x")) + " / " + rows(s.executeQuery("FETCH ALL FROM x")); });
        c.rollback();
        see("read only", () -> { c.setReadOnly(true); String got = rows(s.executeQuery("SHOW transaction_read_only")); c.rollback(); c.setReadOnly(false); return got + rows(s.executeQuery("SHOW transaction_read_only")); });
        c.rollback();
        for (int level : new int[]{1, 2, 4, 8}) see("isolation " + level, () -> { c.setTransactionIsolation(level); String got = c.getTransactionIsolation() + rows(s.executeQuery("SHOW transaction_isolation")); c.rollback(); return got; });
        see("isolation amid", () -> { rows(s.executeQuery("SELECT 1")); c.setTransactionIsolation(2); return "set"; });
        c.rollback();
        see("hold", () -> { c.setHoldability(ResultSet.HOLD_CURSORS_OVER_COMMIT); try (Statement t = c.createStatement()) { t.setFetchSize(2); ResultSet r = t.executeQuery("SELECT product_id FROM products ORDER BY 1"); int n = 0; while (r.next()) if (n++ == 3) c.commit(); return n; } });
        c.rollback();
        c.setAutoCommit(true);
        see("savepoint without a transaction", () -> c.setSavepoint("p"));
        see("abort", () -> { try (Connection other = open()) { other.abort(Runnable::run); return other.isClosed(); } });
        s.close();
    }

    public static void main(String[] args) throws Exception {
        TimeZone.setDefault(TimeZone.getTimeZone("Europe/Vienna"));
        try (Connection c = open()) {
            metadata(c);
            questions(c, "extended");
            parameters(c, "extended");
            statements(c);
            transactions(c);
        }
        try (Connection c = open("preferQueryMode", "simple")) { questions(c, "simple"); parameters(c, "simple"); }
        try (Connection c = open("preferQueryMode", "extendedCacheEverything", "prepareThreshold", "1")) { questions(c, "cached"); }
        try (Connection c = open("prepareThreshold", "-1", "stringtype", "unspecified")) { questions(c, "binary"); parameters(c, "unspecified"); }
        for (String[] way : new String[][]{{"autosave", "always"}, {"autosave", "conservative"}, {"cleanupSavepoints", "true", "autosave", "always"}}) {
            try (Connection c = open(way); Statement s = c.createStatement()) {
                c.setAutoCommit(false);
                see(String.join(" ", way), () -> { String before = rows(s.executeQuery("SELECT count(*) FROM customers")); try { rows(s.executeQuery("SELECT nope")); } catch (SQLException e) { before += error(e); } return before + rows(s.executeQuery("SELECT count(*) FROM orders")); });
                c.rollback();
            } catch (SQLException e) {
                see(String.join(" ", way) + " fails", () -> error(e));
            }
        }
        for (String[] way : new String[][]{{"targetServerType", "primary"}, {"targetServerType", "secondary"}, {"targetServerType", "preferSecondary"}, {"readOnly", "true", "readOnlyMode", "always"}, {"currentSchema", "public,pg_catalog"}, {"options", "-c statement_timeout=7s"}, {"assumeMinServerVersion", "12"}, {"gssEncMode", "prefer"}, {"defaultRowFetchSize", "3"}, {"loginTimeout", "10"},
            {"socketTimeout", "20"}, {"tcpKeepAlive", "true"}, {"databaseMetadataCacheFields", "0"}, {"hideUnprivilegedObjects", "true"}, {"reWriteBatchedInserts", "true"}, {"logUnclosedConnections", "false"}, {"adaptiveFetch", "true", "defaultRowFetchSize", "5", "maxResultBuffer", "1M"}, {"quoteReturningIdentifiers", "false"}, {"ApplicationName", "named"}, {"escapeSyntaxCallMode", "callIfNoReturn"}, {"groupStartupParameters", "true"}, {"channelBinding", "disable"}}) {
            see("open " + String.join(" ", way), () -> {
                try (Connection c = open(way); Statement s = c.createStatement()) {
                    String got = rows(s.executeQuery("SELECT tier, count(*) FROM customers GROUP BY tier ORDER BY tier")) + " " + rows(s.executeQuery("SHOW search_path")) + " " + rows(s.executeQuery("SHOW statement_timeout")) + " " + rows(s.executeQuery("SHOW application_name")) + c.isReadOnly();
                    if (way[0].equals("hideUnprivilegedObjects")) got += sorted(c.getMetaData().getTables(null, "public", "%", null));
                    return got;
                }
            });
        }
    }
}

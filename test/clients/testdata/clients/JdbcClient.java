// pgjdbc against a running proxy: simple and extended mode, text and binary results, fetch sizes, metadata.
import java.math.BigDecimal;
import java.sql.*;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.UUID;

public class JdbcClient {
    interface Run { void run() throws SQLException; }

    static void check(String what, boolean ok) {
        if (!ok) throw new IllegalStateException(what);
        System.out.println("ok " + what);
    }

    static void fails(String code, Run run) throws SQLException {
        try {
            run.run();
        } catch (SQLException e) {
            if (!code.equals(e.getSQLState())) throw e;
            var more = ((org.postgresql.util.PSQLException) e).getServerErrorMessage();
            System.out.println("ok " + code + " " + (more == null ? "" : more.getHint()));
            return;
        }
        throw new IllegalStateException("no error " + code);
    }

    static Connection open(String user, String... more) throws SQLException {
        Properties p = new Properties();
        p.setProperty("user", user);
        p.setProperty("password", user);
        p.setProperty("sslmode", System.getenv("PGSSLMODE"));
        if (System.getenv("PGSSLROOTCERT") != null) p.setProperty("sslrootcert", System.getenv("PGSSLROOTCERT"));
        for (int i = 0; i < more.length; i += 2) p.setProperty(more[i], more[i + 1]);
        return DriverManager.getConnection("jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/"
            + System.getenv("PGDATABASE"), p);
    }

    static long count(PreparedStatement s) throws SQLException {
        try (ResultSet r = s.executeQuery()) {
            r.next();
            return r.getLong(1);
        }
    }

    static void values(Statement s) throws SQLException {
        try (ResultSet r = s.executeQuery("SELECT 1::smallint, 2::int, 3::bigint, 1.5::float8, 2.50::numeric(6,2), 'x'::text, true, "
            + "DATE '2024-02-03', TIMESTAMP '2024-02-03 04:05:06', TIMESTAMPTZ '2024-02-03 04:05:06+00', NULL::int, "
            + "'6f1c2d3e-0000-4000-8000-000000000001'::uuid, ARRAY[1,2], 1.5::real, INTERVAL '1 day 2 hours'")) {
            r.next();
            check("numbers", r.getShort(1) == 1 && r.getInt(2) == 2 && r.getLong(3) == 3 && r.getDouble(4) == 1.5 && r.getFloat(14) == 1.5f
                && r.getBigDecimal(5).equals(new BigDecimal("2.50")));
            check("texts", r.getString(6).equals("x") && r.getBoolean(7) && r.getObject(12).equals(UUID.fromString("6f1c2d3e-0000-4000-8000-000000000001")));
            check("times", r.getObject(8, LocalDate.class).equals(LocalDate.of(2024, 2, 3))
                && r.getObject(9, LocalDateTime.class).equals(LocalDateTime.of(2024, 2, 3, 4, 5, 6))
                && r.getObject(10, OffsetDateTime.class).isEqual(OffsetDateTime.parse("2024-02-03T04:05:06Z")));
            check("null", r.getObject(11) == null);
            check("array", ((Integer[]) r.getArray(13).getArray())[1] == 2);
            check("interval " + r.getObject(15), r.getObject(15).toString().contains("1 days 2 hours"));
            check("type names", r.getMetaData().getColumnTypeName(5).equals("numeric") && r.getMetaData().getScale(5) == 2);
        }
    }

    static void questions(Connection c) throws SQLException {
        String[] texts = {"SELECT count(*) FROM people WHERE age BETWEEN ? AND ?", "SELECT count(*) FROM people WHERE sex = ?",
            "SELECT count(*) FROM people WHERE hired >= ?", "SELECT count(*) FROM visits WHERE visited_at < ?",
            "SELECT count(*) FROM people WHERE region = ANY(?)", "SELECT count(*) FROM people WHERE age = ANY(?)",
            "SELECT count(*) FROM visits WHERE visited_at < ?"};
        Object[][] params = {{30, 40}, {"Female"}, {Date.valueOf("2020-01-01")}, {OffsetDateTime.parse("2025-01-01T00:00:00Z")},
            {c.createArrayOf("text", new Object[]{"north", "south"})}, {c.createArrayOf("int4", new Object[]{30, 31})},
            {Timestamp.valueOf("2025-01-01 00:00:00")}};
        for (int i = 0; i < texts.length; i++) {
            try (PreparedStatement s = c.prepareStatement(texts[i])) {
                long first = 0;
                for (int k = 0; k < 8; k++) { // from the fifth on it is a named statement with binary results
                    for (int j = 0; j < params[i].length; j++) s.setObject(j + 1, params[i][j]);
                    long n = count(s);
                    if (k == 0) first = n;
                    if (n != first) throw new IllegalStateException(texts[i]);
                }
                System.out.println("ok " + texts[i] + " " + first);
            }
        }
    }

    static void metadata(Connection c) throws SQLException {
        DatabaseMetaData m = c.getMetaData();
        List<String> names = new ArrayList<>();
        try (ResultSet r = m.getTables(null, null, "%", new String[]{"TABLE", "VIEW"})) {
            while (r.next()) names.add(r.getString("TABLE_SCHEM") + "." + r.getString("TABLE_NAME"));
        }
        check("tables " + names, names.contains("public.people"));
        names.clear();
        try (ResultSet r = m.getColumns(null, "public", "people", "%")) {
            while (r.next()) names.add(r.getString("COLUMN_NAME") + " " + r.getString("TYPE_NAME"));
        }
        check("columns " + names, names.contains("age int4") && names.contains("hired date"));
        for (ResultSet r : new ResultSet[]{m.getSchemas(), m.getCatalogs(), m.getTypeInfo(), m.getPrimaryKeys(null, "public", "people"),
            m.getIndexInfo(null, "public", "people", false, true), m.getImportedKeys(null, "public", "visits"), m.getTableTypes(),
            m.getTablePrivileges(null, "public", "people"), m.getFunctions(null, "public", "%")}) {
            while (r.next()) r.getString(1);
        }
        check("metadata " + m.getDatabaseProductVersion(), m.getDatabaseMajorVersion() == 15);
    }

    static void copies(Connection c) throws Exception {
        var to = new java.io.StringWriter();
        long n = ((org.postgresql.PGConnection) c).getCopyAPI().copyOut(
            "COPY (SELECT sex, count(*) FROM people GROUP BY 1 ORDER BY 1) TO STDOUT WITH (FORMAT csv, HEADER)", to);
        check("COPY " + n, to.toString().startsWith("sex,count\nFemale,"));
        try (Statement s = c.createStatement()) {
            s.execute("PREPARE older (int) AS SELECT count(*) FROM people WHERE age > $1");
            s.executeQuery("EXECUTE older (30)").close();
            String cancelled = "", said = "";
            var over = new java.util.concurrent.atomic.AtomicBoolean();
            Thread t = new Thread(() -> { // again and again: a cancel before the driver has sent the statement does nothing
                try { while (!over.get()) { Thread.sleep(50); s.cancel(); } } catch (Exception e) { throw new IllegalStateException(e); }
            });
            t.start();
            try { s.execute("SELECT pg_sleep(60)"); } catch (SQLException e) { cancelled = e.getSQLState(); said = e.getMessage(); }
            over.set(true);
            t.join();
            check("cancelled " + cancelled + " " + said, cancelled.equals("57014"));
        }
        System.out.println("did cancels");
    }

    static int day, asked = 2001 + Integer.parseInt(System.getenv("CLIENTS_RUN")) % 25; // of a question that was not asked yet

    static void transactions(Connection c, boolean simple) throws SQLException {
        c.setAutoCommit(false);
        try (Statement s = c.createStatement()) {
            s.setFetchSize(25);
            int n = 0;
            try (ResultSet r = s.executeQuery("SELECT age, count(*) FROM people GROUP BY age ORDER BY age")) {
                while (r.next()) n++;
            }
            check("fetch size " + n, n >= 110);
            double before = spent(s);
            s.executeQuery("SELECT count(*) FROM people WHERE hired > DATE '" + asked + "-02-0" + (++day) + "'").close();
            Savepoint p = c.setSavepoint("p");
            fails("42703", () -> s.executeQuery("SELECT nothing FROM people"));
            fails("25P02", () -> s.executeQuery("SELECT 1"));
            c.rollback(p);
            s.executeQuery("SELECT 1").close();
            c.rollback();
            check("a rollback gives nothing back", spent(s) > before);
            c.rollback();
            s.setMaxRows(3);
            try (ResultSet r = s.executeQuery("SELECT age, count(*) FROM people GROUP BY age ORDER BY age")) {
                for (n = 0; r.next(); n++) r.getInt(1);
            }
            check("row limit", simple || n == 3); // pgjdbc leaves the limit to the extended protocol
        }
        c.commit();
        c.setReadOnly(true);
        c.setAutoCommit(true);
        c.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
    }

    static double spent(Statement s) throws SQLException {
        try (ResultSet r = s.executeQuery("SELECT spent FROM dp.budget WHERE user_name = current_user")) {
            return r.next() ? r.getDouble(1) : 0;
        }
    }

    public static void main(String[] args) throws Exception {
        String user = System.getenv("PGUSER"), poor = System.getenv("PGPOOR");
        for (String mode : new String[]{"extended", "simple", "extendedForPrepared"}) {
            System.out.println("mode " + mode);
            try (Connection c = open(user, "preferQueryMode", mode); Statement s = c.createStatement()) {
                values(s);
                try (ResultSet r = s.executeQuery("SELECT count(*) FROM people WHERE age > 30")) {
                    SQLWarning w = s.getWarnings();
                    check("notice " + (w == null ? "" : w.getMessage()), w != null && w.getMessage().contains("left") || w.getMessage().contains("free"));
                }
                questions(c);
                fails("42703", () -> s.executeQuery("SELECT count(*) FROM people WHERE wage > 1"));
                fails("42P01", () -> s.executeQuery("SELECT count(*) FROM nobody"));
                fails("42501", () -> s.executeQuery("SELECT age FROM people"));
                fails("DP002", () -> s.executeQuery("SELECT corr(DISTINCT age, income) FROM people"));
                s.execute("DISCARD ALL");
                check("valid", c.isValid(5));
                c.setSchema("public");
                check("schema", "public".equals(c.getSchema()));
                s.cancel();
                transactions(c, !mode.equals("extended"));
            }
        }
        try (Connection c = open(user, "binaryTransfer", "true", "prepareThreshold", "-1"); Statement s = c.createStatement()) {
            System.out.println("version " + c.getMetaData().getDriverVersion() + "\ndid connects");
            double before = spent(s);
            metadata(c);
            check("browsing is free", spent(s) == before);
            System.out.println("did browses");
            values(s);
            questions(c);
            System.out.println("did parameters");
            copies(c);
            System.out.println("did queries");
            metadata(c);
            java.io.StringWriter sheet = new java.io.StringWriter();
            long copied = c.unwrap(org.postgresql.PGConnection.class).getCopyAPI()
                .copyOut("COPY (SELECT sex, count(*) FROM people GROUP BY sex) TO STDOUT WITH CSV HEADER", sheet);
            check("copy", copied >= 2 && sheet.toString().startsWith("sex,count\n"));
        }
        try (Connection c = open(user, "autosave", "always")) {
            c.setAutoCommit(false);
            try (PreparedStatement s = c.prepareStatement("SELECT count(*) FROM people WHERE age > ?")) {
                s.setInt(1, 30);
                count(s);
                fails("42P01", () -> c.createStatement().executeQuery("SELECT count(*) FROM nobody"));
                check("autosave", count(s) != 0);
            }
            c.rollback();
        }
        try (Connection c = open(poor); Statement s = c.createStatement()) {
            s.execute("SET dp.epsilon = 1");
            fails("DP001", () -> {
                for (int i = 1; i < 5; i++) s.executeQuery("SELECT count(*) FROM people WHERE hired <> DATE '2020-03-0" + i + "'");
            });
        }
        fails("28P01", () -> open(user, "password", "wrong"));
    }
}

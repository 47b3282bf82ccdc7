// jOOQ's code generator, and queries written with jOOQ over pgjdbc, against a running proxy.
import static org.jooq.impl.DSL.*;

import java.math.BigDecimal;
import java.nio.file.*;
import java.sql.*;
import java.time.LocalDate;
import java.util.Comparator;
import org.jooq.DSLContext;
import org.jooq.Meta;
import org.jooq.SQLDialect;
import org.jooq.codegen.GenerationTool;
import org.jooq.conf.Settings;
import org.jooq.exception.DataAccessException;
import org.jooq.impl.DSL;
import org.jooq.meta.jaxb.*;

public class JooqClient {
    static void check(String what, boolean ok) {
        if (!ok) throw new IllegalStateException(what);
        System.out.println("ok " + what);
    }

    static void refused(String what, Runnable ask) {
        try {
            ask.run();
        } catch (DataAccessException e) {
            check(what + ": " + e.getCause().getMessage().lines().findFirst().get(), "42501".equals(e.sqlState()) && e.getMessage().contains("Hint: "));
            return;
        }
        throw new IllegalStateException(what + " was answered");
    }

    public static void main(String[] args) throws Exception {
        System.setProperty("org.jooq.no-logo", "true");
        System.setProperty("org.jooq.no-tips", "true");
        String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE")
            + "?sslmode=" + System.getenv("PGSSLMODE") + "&sslrootcert=" + System.getenv("PGSSLROOTCERT");
        System.out.println("version " + org.jooq.Constants.FULL_VERSION);
        try (Connection c = DriverManager.getConnection(url, System.getenv("PGUSER"), System.getenv("PGPASSWORD"))) {
            DSLContext db = DSL.using(c, SQLDialect.POSTGRES);
            var spent = (java.util.function.Supplier<BigDecimal>) () -> db.fetchOne("SELECT coalesce(max(spent), 0) FROM dp.budget WHERE user_name = current_user").get(0, BigDecimal.class);
            BigDecimal before = spent.get();
            System.out.println("did connects");

            Path out = Files.createTempDirectory("jooq");
            try {
                GenerationTool.generate(new Configuration()
                    .withLogging(Logging.WARN)
                    .withOnError(OnError.FAIL)
                    .withJdbc(new Jdbc().withDriver("org.postgresql.Driver").withUrl(url).withUser(System.getenv("PGUSER")).withPassword(System.getenv("PGPASSWORD")))
                    .withGenerator(new Generator()
                        .withDatabase(new Database().withName("org.jooq.meta.postgres.PostgresDatabase").withIncludes(".*").withInputSchema("public"))
                        .withGenerate(new Generate())
                        .withTarget(new Target().withPackageName("demo").withDirectory(out.toString()))));
                String people = Files.readString(out.resolve("demo/tables/People.java"));
                check("generated", Files.exists(out.resolve("demo/tables/Visits.java")) && Files.exists(out.resolve("demo/tables/Regions.java")));
                check("types", people.contains("TableField<PeopleRecord, Integer> AGE") && people.contains("TableField<PeopleRecord, LocalDate> HIRED")
                    && people.contains("SQLDataType.CLOB.nullable(false)"));
                check("comments", people.contains("0 to 109"));
            } finally {
                try (var all = Files.walk(out)) {
                    all.sorted(Comparator.reverseOrder()).forEach(p -> p.toFile().delete());
                }
            }
            Meta meta = db.meta();
            check("meta", meta.filterSchemas(s -> s.getName().equals("public")).getTables().stream().anyMatch(t -> t.getName().equals("people") && t.field("age") != null));
            check("browsing is free", spent.get().equals(before));
            System.out.println("did browses");

            var people = table(name("people"));
            var age = field(name("people", "age"), Integer.class);
            var sex = field(name("people", "sex"), String.class);
            var income = field(name("people", "income"), Integer.class);
            var hired = field(name("people", "hired"), LocalDate.class);
            check("fetchCount", db.fetchCount(selectFrom(people).where(age.ge(30))) != 0);
            var rows = db.select(sex, count().as("n"), avg(income)).from(people).where(age.between(30, 50)).groupBy(sex).orderBy(count().desc()).fetch();
            check("groups " + rows.getValues("n"), rows.size() == 2);
            check("year", db.select(year(hired), count()).from(people).groupBy(year(hired)).orderBy(1).fetch().size() > 3);
            check("filter", db.select(count().filterWhere(sex.eq("Female")), sum(income)).from(people).where(hired.lt(LocalDate.of(2024, 1, 1)).and(sex.in("Female", "Male"))).fetchOne().size() == 2);
            System.out.println("did parameters");
            check("rows of a public table", db.selectFrom(table(name("regions"))).orderBy(field(name("code"))).limit(3).fetch().size() == 3);
            check("inline", DSL.using(c, SQLDialect.POSTGRES, new Settings().withStatementType(org.jooq.conf.StatementType.STATIC_STATEMENT))
                .select(count()).from(people).where(sex.eq("Male")).fetchOne(0, int.class) != 0);
            refused("rows", () -> db.selectFrom(people).limit(10).fetch());
            refused("fetchExists", () -> db.fetchExists(selectOne().from(people).where(age.eq(30))));
            check("the connection stays", db.fetchCount(people) != 0);
            System.out.println("did queries");
        }
    }
}

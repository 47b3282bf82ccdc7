// Hibernate over pgjdbc, against a running proxy: entities checked against the catalog, and questions in its own query language.
import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import java.math.BigDecimal;
import java.sql.*;
import java.time.LocalDate;
import java.util.List;
import java.util.function.Supplier;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

public class HibernateClient {
    // A table without a key of its own is given one of its columns as Hibernate's: it must have one.
    @Entity(name = "People") @Table(name = "people")
    public static class People {
        @Id Integer age;
        @Column(columnDefinition = "text") String sex;
        @Column(columnDefinition = "text") String region;
        Integer income;
        LocalDate hired;
    }

    @Entity(name = "Region") @Table(name = "regions")
    public static class Region {
        @Id @Column(columnDefinition = "text") String code;
        @Column(columnDefinition = "text") String name;
    }

    @Entity(name = "Wrong") @Table(name = "people")
    public static class Wrong {
        @Id Integer age;
        LocalDate wedding;
    }

    static void check(String what, boolean ok) {
        if (!ok) throw new IllegalStateException(what);
        System.out.println("ok " + what);
    }

    static String url() {
        return "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE")
            + "?sslmode=" + System.getenv("PGSSLMODE") + "&sslrootcert=" + System.getenv("PGSSLROOTCERT");
    }

    static BigDecimal spent() throws SQLException {
        try (Connection c = DriverManager.getConnection(url(), System.getenv("PGUSER"), System.getenv("PGPASSWORD"));
                ResultSet r = c.createStatement().executeQuery("SELECT coalesce(max(spent), 0) FROM dp.budget WHERE user_name = current_user")) {
            r.next();
            return r.getBigDecimal(1);
        }
    }

    static SessionFactory factory(Class<?>... entities) {
        Configuration c = new Configuration();
        for (Class<?> e : entities) c.addAnnotatedClass(e);
        return c.setProperty("hibernate.connection.url", url())
            .setProperty("hibernate.connection.username", System.getenv("PGUSER")).setProperty("hibernate.connection.password", System.getenv("PGPASSWORD"))
            .setProperty("hibernate.hbm2ddl.auto", "validate").buildSessionFactory();
    }

    static void refused(String what, Supplier<Object> ask) {
        try {
            ask.get();
        } catch (RuntimeException e) {
            var cause = (SQLException) e.getCause();
            check(what + ": " + cause.getMessage().lines().findFirst().get(), "42501".equals(cause.getSQLState()) && cause.getMessage().contains("Hint: "));
            return;
        }
        throw new IllegalStateException(what + " was answered");
    }

    public static void main(String[] args) throws Exception {
        java.util.logging.LogManager.getLogManager().reset();
        System.out.println("version " + org.hibernate.Version.getVersionString());
        BigDecimal before = spent();
        try (SessionFactory f = factory(People.class, Region.class)) {
            System.out.println("did connects");
            try (SessionFactory g = factory(Wrong.class)) {
                throw new IllegalStateException("a column that is not there passed");
            } catch (org.hibernate.tool.schema.spi.SchemaManagementException e) {
                check("validated: " + e.getMessage(), e.getMessage().contains("missing column [wedding]"));
            }
            check("browsing is free", spent().equals(before));
            System.out.println("did browses");
            try (var s = f.openSession()) {
                s.beginTransaction();
                check("count", s.createQuery("select count(*) from People", Long.class).getSingleResult() != 0);
                List<Object[]> rows = s.createQuery("select p.sex, count(*), avg(p.income) from People p where p.age >= :age and p.region in (:regions) group by p.sex order by count(*) desc", Object[].class)
                    .setParameter("age", 30).setParameterList("regions", List.of("north", "south")).getResultList();
                check("groups", rows.size() == 2 && (Long) rows.get(0)[1] >= (Long) rows.get(1)[1] && rows.get(0)[2] instanceof Double);
                check("years", s.createQuery("select year(p.hired), count(*) from People p group by year(p.hired) order by 1", Object[].class).getResultList().size() > 3);
                check("case", s.createQuery("select case when p.age < 30 then 'young' else 'old' end as band, count(*) from People p where p.hired < :day group by band", Object[].class)
                    .setParameter("day", LocalDate.of(2024, 1, 1)).getResultList().size() == 2);
                check("sum and filter", s.createQuery("select sum(p.income), count(*) filter (where p.sex = 'Female') from People p", Object[].class).getSingleResult().length == 2);
                System.out.println("did parameters");
                check("criteria", s.createQuery(criteria(f)).getSingleResult() != 0);
                check("rows of a public table", s.createQuery("from Region order by code", Region.class).setMaxResults(3).getResultList().size() == 3);
                check("find", s.find(Region.class, s.createQuery("select min(code) from Region", String.class).getSingleResult()) != null);
                s.getTransaction().commit();
            }
            try (var s = f.openSession()) {
                refused("rows", () -> s.createQuery("from People", People.class).setMaxResults(10).getResultList());
                refused("find", () -> s.find(People.class, 30));
                check("the connection stays", s.createQuery("select count(*) from People", Long.class).getSingleResult() != 0);
            }
            System.out.println("did queries");
        }
    }

    static jakarta.persistence.criteria.CriteriaQuery<Long> criteria(SessionFactory f) {
        var b = f.getCriteriaBuilder();
        var q = b.createQuery(Long.class);
        var p = q.from(People.class);
        return q.select(b.count(p)).where(b.between(p.get("age"), 30, 40), b.equal(p.get("sex"), "Male"));
    }
}

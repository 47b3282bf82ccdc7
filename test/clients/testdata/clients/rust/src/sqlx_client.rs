use crate::{check, version, SPENT};
use futures_util::TryStreamExt;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgRow};
use sqlx::{Column, Connection, Executor, FromRow, PgPool, Row, Statement, TypeInfo};

#[derive(FromRow)]
struct Group {
    sex: Option<String>,
    n: i64,
    income: Option<rust_decimal::Decimal>,
}

async fn spent(pool: &PgPool) -> Result<String, sqlx::Error> {
    sqlx::query_scalar(SPENT).fetch_one(pool).await
}

fn fails<T>(code: &str, result: Result<T, sqlx::Error>) {
    let error = result.err().expect("an error");
    let db = error.as_database_error().expect("an error of the server");
    check(format!("{code} {}", db.message()), db.code().as_deref() == Some(code));
}

pub async fn run() -> Result<(), Box<dyn std::error::Error>> {
    version("sqlx");
    // Its settings come from the environment, as libpq's do.
    let pool = PgPoolOptions::new().max_connections(3).connect_with(PgConnectOptions::new()).await?;
    pool.acquire().await?.ping().await?;
    println!("did connects");

    let before = spent(&pool).await?;
    let columns: Vec<(String, String)> = sqlx::query_as("SELECT column_name::text, data_type::text FROM information_schema.columns WHERE table_name = $1").bind("people").fetch_all(&pool).await?;
    check(format!("{} columns", columns.len()), columns.contains(&("age".into(), "integer".into())));
    // What the query! macros ask while a program is compiled.
    for text in ["SELECT sex, count(*) AS n FROM people WHERE age > $1 GROUP BY sex", "SELECT * FROM people LIMIT 0", "SELECT ARRAY[region], 'a'::name FROM people GROUP BY region",
                 "SELECT p.sex, r.name, count(*) FROM people p JOIN regions r ON r.code = p.region GROUP BY 1, 2"] {
        let described = (&pool).describe(text).await?;
        check(format!("{:?}", described.columns().iter().map(|c| format!("{} {}", c.name(), c.type_info().name())).collect::<Vec<_>>()), !described.columns().is_empty());
    }
    let mut connection = pool.acquire().await?;
    let statement = connection.prepare("SELECT * FROM people LIMIT 0").await?;
    check("prepared", statement.columns()[0].name() == "age");
    drop(statement);
    drop(connection);
    let regions: Vec<Option<String>> = sqlx::query_scalar("SELECT DISTINCT region FROM people").fetch_all(&pool).await?;
    check(format!("{} values of a column", regions.len()), regions.len() >= 5);
    check("browsing is free", spent(&pool).await? == before);
    println!("did browses");

    let ask = || sqlx::query_scalar::<_, i64>("SELECT count(*) FROM people WHERE age BETWEEN $1 AND $2").bind(30).bind(40).fetch_one(&pool);
    check("the same again", ask().await? == ask().await?);
    let day = chrono::NaiveDate::from_ymd_opt(2020, 1, 1).unwrap();
    let _: i64 = sqlx::query_scalar("SELECT count(*) FROM people WHERE hired >= $1").bind(day).fetch_one(&pool).await?;
    let _: i64 = sqlx::query_scalar("SELECT count(*) FROM people WHERE region = ANY($1) AND sex = $2").bind(vec!["north", "south"]).bind("Female").fetch_one(&pool).await?;
    let _: i64 = sqlx::query_scalar("SELECT count(*) FROM people WHERE income > $1").bind(rust_decimal::Decimal::new(20000, 0)).fetch_one(&pool).await?;
    println!("did parameters");
    let groups: Vec<Group> = sqlx::query_as("SELECT sex, count(*) AS n, avg(income)::numeric AS income FROM people GROUP BY sex ORDER BY sex").fetch_all(&pool).await?;
    check(format!("{} groups", groups.len()), groups.iter().any(|g| g.sex.is_some() && g.n > 0 && g.income.is_some()));
    let mut many = sqlx::query("SELECT region, count(*) FROM people GROUP BY region").fetch(&pool);
    let mut rows: Vec<PgRow> = vec![];
    while let Some(row) = many.try_next().await? {
        rows.push(row);
    }
    drop(many);
    check(format!("{} rows one by one", rows.len()), rows.len() >= 5 && rows[0].columns()[1].type_info().name() == "INT8");
    fails("42501", sqlx::query("SELECT age FROM people LIMIT 3").fetch_all(&pool).await);
    fails("42703", sqlx::query("SELECT count(*) FROM people WHERE wage > $1").bind(1).fetch_all(&pool).await);
    fails("42501", sqlx::raw_sql("CREATE TABLE t (a int)").execute(&pool).await);
    let mut transaction = pool.begin().await?;
    sqlx::query("SET LOCAL dp.confidence = 0.9").execute(&mut *transaction).await?;
    let mut inner = transaction.begin().await?;
    let _: i64 = sqlx::query_scalar("SELECT count(*) FROM people").fetch_one(&mut *inner).await?;
    inner.rollback().await?;
    transaction.commit().await?;
    println!("did queries");
    pool.close().await;
    Ok(())
}

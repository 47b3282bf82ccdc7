use crate::{check, setting, version, SPENT};
use futures_util::TryStreamExt;
use native_tls::{Certificate, TlsConnector};
use postgres_native_tls::MakeTlsConnector;
use tokio_postgres::{error::SqlState, types::Type, AsyncMessage, Client, Config, Error, NoTls, SimpleQueryMessage};

async fn spent(client: &Client) -> Result<String, Error> {
    Ok(client.query_one(SPENT, &[]).await?.get(0))
}

fn fails<T>(code: SqlState, hint: bool, result: Result<T, Error>) {
    let error = result.err().expect("an error");
    let db = error.as_db_error().expect("an error of the server");
    check(format!("{} {}", code.code(), db.message()), *db.code() == code && (!hint || db.hint().is_some()));
}

pub async fn run() -> Result<(), Box<dyn std::error::Error>> {
    version("tokio-postgres");
    let mut config = Config::new();
    config.host(setting("PGHOST")).port(setting("PGPORT").parse()?).user(setting("PGUSER")).password(setting("PGPASSWORD")).dbname(setting("PGDATABASE"));
    let (mut client, notices, told) = {
        let root = Certificate::from_pem(&std::fs::read(setting("PGSSLROOTCERT"))?)?;
        let tls = MakeTlsConnector::new(TlsConnector::builder().add_root_certificate(root).build()?);
        config.ssl_mode(tokio_postgres::config::SslMode::Require).channel_binding(tokio_postgres::config::ChannelBinding::Require);
        let (client, mut connection) = config.connect(tls.clone()).await?;
        let (send, notices) = std::sync::mpsc::channel();
        let told = tokio::spawn(async move {
            let mut messages = Box::pin(futures_util::stream::poll_fn(move |c| connection.poll_message(c)));
            while let Ok(Some(message)) = messages.try_next().await {
                if let AsyncMessage::Notice(n) = message {
                    let _ = send.send(n.message().to_owned());
                }
            }
        });
        (client, notices, told)
    };
    println!("did connects");

    let before = spent(&client).await?;
    let columns = client.query("SELECT column_name::text, data_type::text FROM information_schema.columns WHERE table_name = $1", &[&"people"]).await?;
    check(format!("{} columns", columns.len()), columns.iter().any(|r| r.get::<_, String>(0) == "age" && r.get::<_, String>(1) == "integer"));
    let described = client.prepare("SELECT * FROM people LIMIT 0").await?;
    check("described", described.columns()[0].name() == "age" && *described.columns()[0].type_() == Type::INT4 && described.columns()[0].table_oid().is_some());
    let range = if setting("CLIENTS_SIDE") == "demo" { "1" } else { "'[1,3)'::int4range" }; // the embedded sandbox has none
    let named = client.prepare(&format!("SELECT '{{1,2}}'::int4[], {range}, 'people'::regclass, 'x'::information_schema.sql_identifier")).await?;
    check(format!("types looked up {:?}", named.columns().iter().map(|c| c.type_().name().to_owned()).collect::<Vec<_>>()), named.columns().len() == 4);
    let regions = client.query("SELECT DISTINCT region FROM people", &[]).await?;
    check(format!("{} values of a column", regions.len()), regions.len() >= 5);
    check("browsing is free", spent(&client).await? == before);
    println!("did browses");

    let between = client.prepare("SELECT count(*) FROM people WHERE age BETWEEN $1 AND $2").await?;
    check("parameters' types", between.params() == [Type::INT4, Type::INT4]);
    let first: i64 = client.query_one(&between, &[&30i32, &40i32]).await?.get(0);
    let again: i64 = client.query_one(&between, &[&30i32, &40i32]).await?.get(0);
    check(format!("{first} again"), first == again);
    let day = chrono::NaiveDate::from_ymd_opt(2020, 1, 1).unwrap();
    let moment = chrono::DateTime::<chrono::Utc>::from_timestamp(1735689600, 0).unwrap();
    let _: i64 = client.query_one("SELECT count(*) FROM people WHERE hired >= $1", &[&day]).await?.get(0);
    let _: i64 = client.query_one("SELECT count(*) FROM visits WHERE visited_at < $1", &[&moment]).await?.get(0);
    let _: i64 = client.query_one("SELECT count(*) FROM people WHERE region = ANY($1) AND sex = $2", &[&vec!["north", "south"], &"Female"]).await?.get(0);
    let rows = client.query("SELECT sex, avg(income)::float8, dp.low(count(*)), count(*) FROM people GROUP BY sex ORDER BY sex", &[]).await?;
    check(format!("{} groups", rows.len()), rows.iter().any(|r| r.try_get::<_, Option<f64>>(1).is_ok() && r.get::<_, i64>(2) < r.get::<_, i64>(3)));
    println!("did parameters");
    let simple = client.simple_query("SELECT sex, count(*) FROM people GROUP BY sex; SELECT 1").await?;
    check(format!("{} simple messages", simple.len()), simple.iter().filter(|m| matches!(m, SimpleQueryMessage::Row(_))).count() >= 3);
    check("a notice", notices.try_iter().any(|n| n.contains("cost") || n.contains("free")));
    fails(SqlState::INSUFFICIENT_PRIVILEGE, true, client.query("SELECT age FROM people LIMIT 3", &[]).await);
    fails(SqlState::UNDEFINED_COLUMN, false, client.prepare("SELECT count(*) FROM people WHERE wage > $1").await);
    fails(SqlState::INSUFFICIENT_PRIVILEGE, false, client.batch_execute("CREATE TEMP TABLE t (a int)").await);
    let copied: Vec<_> = client.copy_out("COPY (SELECT sex, count(*) FROM people GROUP BY sex) TO STDOUT").await?.try_collect().await?;
    check(format!("{} lines copied", copied.len()), copied.len() >= 2);
    let transaction = client.transaction().await?;
    let portal = transaction.bind("SELECT region, count(*) FROM people GROUP BY region", &[]).await?;
    let some = transaction.query_portal(&portal, 2).await?;
    let rest = transaction.query_portal(&portal, 0).await?;
    check(format!("{} and {} rows of a portal", some.len(), rest.len()), some.len() == 2 && rest.len() >= 3);
    transaction.rollback().await?;
    println!("did queries");

    let cancel = client.cancel_token();
    let root = Certificate::from_pem(&std::fs::read(setting("PGSSLROOTCERT"))?)?;
    let tls = MakeTlsConnector::new(TlsConnector::builder().add_root_certificate(root).build()?);
    let stop = tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        cancel.cancel_query(tls).await
    });
    fails(SqlState::QUERY_CANCELED, false, client.batch_execute("SELECT pg_sleep(60)").await);
    stop.await??;
    check("after a cancel", client.query_one("SELECT 1", &[]).await?.get::<_, i32>(0) == 1);
    println!("did cancels");
    let refused = Config::new().host(setting("PGHOST")).port(setting("PGPORT").parse()?).user("analyst").password("wrong").dbname(setting("PGDATABASE")).connect(NoTls).await;
    check("a wrong password", refused.is_err());
    drop(client);
    told.await?;
    Ok(())
}

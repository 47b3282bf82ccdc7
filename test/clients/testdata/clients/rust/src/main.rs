//! tokio-postgres, or with the argument sqlx that one, against a running proxy: PGHOST and its kin name it.
mod sqlx_client;
mod tokio_client;

pub fn check(what: impl std::fmt::Display, ok: bool) {
    if !ok {
        println!("not ok {what}");
        std::process::exit(1);
    }
    println!("ok {what}");
}

pub fn setting(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

pub const SPENT: &str = "SELECT coalesce(sum(spent), 0)::text FROM dp.budget WHERE user_name = current_user";

/// version is what Cargo.lock has.
pub fn version(package: &str) {
    let lock = include_str!("../Cargo.lock");
    let from = lock.find(&format!("name = \"{package}\"")).map(|at| &lock[at..]).unwrap_or("");
    let version = from.split('"').nth(3).unwrap_or("?");
    println!("version {version}");
}

#[tokio::main]
async fn main() {
    if std::env::args().nth(1).as_deref() == Some("sqlx") {
        sqlx_client::run().await.expect("sqlx");
    } else {
        tokio_client::run().await.expect("tokio-postgres");
    }
}

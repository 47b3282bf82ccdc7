# R's RPostgreSQL against a running proxy: PGHOST and its kin name it.
suppressPackageStartupMessages(library(RPostgreSQL))

check <- function(what, ok) {
  if (!isTRUE(ok)) stop("not ok ", what)
  cat("ok", what, "\n")
}

db <- dbConnect(PostgreSQL(), host = Sys.getenv("PGHOST"), port = as.integer(Sys.getenv("PGPORT")), user = Sys.getenv("PGUSER"),
                password = Sys.getenv("PGPASSWORD"), dbname = Sys.getenv("PGDATABASE"))
cat("version", as.character(packageVersion("RPostgreSQL")), "\n")
check("the server's version", dbGetInfo(db)$serverVersion >= "15")
cat("did connects\n")

spent <- function() dbGetQuery(db, "SELECT coalesce(sum(spent), 0)::text AS spent FROM dp.budget WHERE user_name = current_user")$spent
before <- spent()
tables <- dbListTables(db)
check(paste("tables", paste(tables, collapse = " ")), all(c("people", "visits", "regions") %in% tables))
check("a table that is there, and one that is not", dbExistsTable(db, "people") && !dbExistsTable(db, "nobody"))
check("fields", identical(dbListFields(db, "people")[1:2], c("age", "sex")))
check("values of a column", nrow(dbGetQuery(db, "SELECT DISTINCT region FROM people")) >= 5)
check("browsing is free", identical(spent(), before))
cat("did browses\n")

between <- "SELECT count(*) AS n FROM people WHERE age BETWEEN $1 AND $2"
first <- dbGetQuery(db, between, c(30, 40))$n
check(paste("the same again", first), identical(dbGetQuery(db, between, c(30, 40))$n, first))
check("a text", is.numeric(dbGetQuery(db, "SELECT count(*) AS n FROM people WHERE sex = $1 AND hired >= $2", c("Female", "2020-01-01"))$n))
check("quoted", identical(dbGetQuery(db, paste0("SELECT ", postgresqlQuoteId("O'Hara"), " FROM (SELECT 1 AS \"O'Hara\") t"))[[1]], 1L))
cat("did parameters\n")
groups <- dbGetQuery(db, "SELECT sex, count(*) AS n, avg(income) AS income, dp.low(count(*)), dp.high(count(*)) FROM people GROUP BY sex ORDER BY sex")
check("groups", nrow(groups) >= 2 && all(groups$low < groups$n & groups$n < groups$high))
asked <- dbSendQuery(db, "SELECT region, count(*) AS n FROM people GROUP BY region")
some <- fetch(asked, n = 2)
rest <- fetch(asked, n = -1)
check("rows by parts, and their types", nrow(some) == 2 && nrow(rest) >= 3 && "region" %in% dbColumnInfo(asked)$name)
dbClearResult(asked)
refused <- tryCatch({ dbGetQuery(db, "SELECT age FROM people LIMIT 3"); "" }, error = conditionMessage, warning = conditionMessage)
check(paste("refused:", substr(refused, 1, 80)), nchar(refused) > 0)
check("after a refusal", dbGetQuery(db, "SELECT 1 AS one")$one == 1)
dbBegin(db)
dbGetQuery(db, "SELECT count(*) FROM people")
check("a transaction", dbRollback(db))
cat("did queries\n")
invisible(dbDisconnect(db))

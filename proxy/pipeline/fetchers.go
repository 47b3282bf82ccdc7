package pipeline

import (
	"regexp"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// Clients that fetch a table's rows to aggregate them by themselves are refused. Those that can be brought to send the
// aggregate instead read in the refusal by which setting.

// fetcher is such a client: how its statements are known, and what a refusal of rows says to it.
type fetcher struct {
	application string         // its application_name; empty means any
	statement   *regexp.Regexp // what a SELECT of it looks like; nil means any
	handedOn    bool           // the SELECT is within COPY
	words       string
}

var fetchers = []fetcher{
	{application: "postgres_fdw", words: "postgres_fdw sends joins and aggregates as they are where rows are dear " +
		"to it: ALTER SERVER … OPTIONS (ADD fdw_tuple_cost '1000'), without use_remote_estimate, which asks about " +
		"rows first."},
	{statement: regexp.MustCompile(`^SELECT (NULL|"[^"]+"(, "[^"]+")*) FROM "[^"]+"\."[^"]+"`), handedOn: true,
		words: "DuckDB aggregates rows by itself: give it the whole statement, SELECT * FROM postgres_query('pg', " +
			"'SELECT count(*) FROM …')."},
	{application: "PostgreSQL JDBC Driver", statement: regexp.MustCompile(`^SELECT +(1|"[^"]+"(,"[^"]+")*) +FROM `),
		words: "Spark sends aggregates to tables of a JDBCTableCatalog whose pushDownAggregate is true, or the " +
			"SELECT of the option query as it is."},
	{statement: regexp.MustCompile(`^SELECT [^\n]+ \nFROM `),
		words: "From SQLAlchemy: select(func.count()).group_by(…). From pandas: read_sql of such a SELECT, since " +
			"read_sql_table reads rows."},
}

// toFetcher is a refusal of a statement, which says to a client that fetches rows how it would not.
func toFetcher(application string, stmt parse.Statement, refusal *refuse.Refusal) *refuse.Refusal {
	if refusal == nil || refusal.ID != "raw-rows" {
		return refusal
	}
	for _, f := range fetchers {
		if (f.application == "" || f.application == application) &&
			(f.statement == nil || f.statement.MatchString(stmt.Text)) && (!f.handedOn || stmt.HandedOn) {
			refusal.Hint += " " + f.words
			break
		}
	}
	return refusal
}

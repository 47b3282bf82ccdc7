package parse

import "github.com/dpproxy/dpproxy/planner/refuse"

// Reasons of MySQL's dialect. Their examples are sent with SET dp.dialect = mysql.
var (
	mysqlSyntax    = refuse.New("mysql-syntax", "42601", "%s", "This is not MySQL as it is read here (docs/mysql.md). RESET dp.dialect reads PostgreSQL again.", `SET dp.dialect = mysql; SELECT count(*) FROM people WHERE age = = 3`)
	mysqlConstruct = refuse.New("mysql-construct", "DP002", "%s is not read in MySQL's dialect", "Write it otherwise, or write the statement for PostgreSQL: RESET dp.dialect.", `SET dp.dialect = mysql; SELECT GROUP_CONCAT(sex) FROM people`)
	mysqlCollation = refuse.New("mysql-collation", "DP002", "%s depends on MySQL's collation, which does not tell upper from lower case", "Compare by bytes: BINARY column = 'value'.", `SET dp.dialect = mysql; SELECT count(*) FROM people WHERE sex < 'm'`)
	mysqlUntyped   = refuse.New("mysql-untyped", "DP002", "what %s means in MySQL depends on a type that is not known here", "CAST it, or write the statement for PostgreSQL: RESET dp.dialect.", `SET dp.dialect = mysql; SELECT x.a / 2 FROM dp.budget x`)
	mysqlTemporal  = refuse.New("mysql-temporal", "DP002", "%s is not read in MySQL's dialect", "Write dates as '2024-12-31', and add INTERVALs to dates and times.", `SET dp.dialect = mysql; SELECT count(*) FROM people WHERE hired = '0000-00-00'`)
	mysqlAmbiguous = refuse.New("mysql-ambiguous", "42702", "%s is ambiguous", "Give the alias another name.", `SET dp.dialect = mysql; SELECT age + 1 AS sex, count(*) FROM people GROUP BY sex`)
	mysqlDeep      = refuse.New("mysql-too-deep", "54001", "%s is not translated", "Write it with fewer parentheses, sub-queries or operators in a row.", "")
)

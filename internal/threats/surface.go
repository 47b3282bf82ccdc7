package threats

// surface: SQL.
var surface = []Row{
	{"T41", "text that two parsers read differently", "0 bytes of clients' text but listed names in the database's log", []string{"test/attacks.TestT41ParserDifferential", "test/attacks.TestT41Corpus"}, ""},
	{"T42", "names and operators put in the way", "20 hijacks: 0 calls; a replaced table: refused before the next charge", []string{"backend/postgres.TestNamesOfTheDatabaseAreNotUsed", "backend/engines.TestDriftIsFoundBeforeACharge"}, ""},
	{"T43", "functions that run SQL or read files", "every function of both catalogs: refused, or on the list", []string{"test/attacks.TestEveryFunctionOfTheCatalogs"}, ""},
	{"T44", "rows, and aggregates that are rows", "120 forms: refused, 0 charged", []string{"test/attacks.TestRowsAreRefused"}, ""},
	{"T45", "one person made many", "10,000 queries × 20 neighbours: 0 differences above the declared sensitivity", []string{"test/audits.TestT45Recorded", "rewrite.TestAuditNeighbours", "rewrite.TestBoundsNeighbours"}, "at full length 2,500 statements under each of four policies, × 20 neighbours; choices and found keys are held equal in SQL, charge and flow, and audited by their answers"},
	{"T46", "rows picked by their place", "all refused", []string{"test/attacks.TestRowPickersAreRefused"}, ""},
	{"T47", "statements that write", "80 forms: 0 statements at the database, its tables unchanged", []string{"test/attacks.TestWritingIsRefused"}, "several statements in a message are allowed: the first that is refused ends it"},
	{"T48", "settings of the session", "0 SET at the database; values equal on neighbours", []string{"test/attacks.TestSettingsStayInTheProxy"}, ""},
	{"T49", "deep or huge text", "16 shapes up to 16 MiB: refused, the process lives", []string{"test/attacks.TestT49DeepSQL"}, ""},
	{"T50", "engines that differ", "300 expressions: equal on both engines, or refused", []string{"planner/scalar.TestAgainstServer", "rewrite.TestEnginesAgreeWithTheTwin"}, "clients' expressions are evaluated in Go on the cells; the engines count cells"},
	{"T51", "a database role that may too much", "12 roles: 12 refusals", []string{"backend/engines.TestRolesThatAreTooStrong"}, "TEMPORARY, which PUBLIC has, and pg_read_all_data are warned of"},
}

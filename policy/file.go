package policy

import (
	"encoding/json"

	"github.com/invopop/jsonschema"
)

// The types below are the policy file as it is written. yaml.v3 decodes into them, the JSON Schema is generated from
// them, and the strictness check walks that schema, so that a key is known in one place only. Scalars stay text until
// they are checked, because 0.1 and 2026-12-31 mean what is written and not what a float or a time makes of it.

type (
	decimal string // a number as written
	integer string // a whole number as written
	scalar  string // text, a number, a date or a boolean as written
	later   string // a key that a later version brings; giving it is refused
)

type fileT struct {
	Version  integer    `yaml:"version" jsonschema:"required" jsonschema_description:"Version of this format: 1."`
	Server   serverT    `yaml:"server" jsonschema_description:"Where the proxy listens."`
	Backend  backendT   `yaml:"backend" jsonschema:"required" jsonschema_description:"Where the private rows are."`
	Sandbox  sandboxT   `yaml:"sandbox" jsonschema_description:"The engine for everything above the privacy boundary. It never sees a private row."`
	Ledger   ledgerT    `yaml:"ledger" jsonschema_description:"Where budgets, charges and bought releases are kept."`
	Users    []userT    `yaml:"users" jsonschema_description:"Who may log in."`
	Groups   []groupT   `yaml:"groups" jsonschema_description:"Users who are one team: they hold one account in each dataset, and what one of them buys all of them have."`
	Owners   []string   `yaml:"owners" jsonschema_description:"Users who see in the console what everybody spends, asks for and holds, and may revoke releases there. What others choose to ask tells them of the data too."`
	Datasets []datasetT `yaml:"datasets" jsonschema:"required" jsonschema_description:"Each dataset is a database to clients and the holder of budgets."`
	Limits   later      `yaml:"limits"`
}

type serverT struct {
	Listen string `yaml:"listen" jsonschema:"default=127.0.0.1:6432" jsonschema_description:"host:port. Any other than a loopback address needs tls."`
	Admin  string `yaml:"admin" jsonschema_description:"host:port of /metrics, /livez, /readyz and /healthz. Without it there are none."`
	TLS    *tlsT  `yaml:"tls" jsonschema_description:"The certificate that clients see."`

	Console string `yaml:"console" jsonschema_description:"host:port of the console, pages for a browser that users log in to as they do elsewhere. Any other than a loopback address needs tls. Without it there is none."`

	MCP *mcpT `yaml:"mcp" jsonschema_description:"Assistants are served at the console's address, as /mcp/dataset."`

	Login  loginT  `yaml:"login" jsonschema_description:"Who says that users are who they say, beside the verifiers of their passwords below."`
	Timing timingT `yaml:"timing" jsonschema_description:"The grid on which everything leaves that a question brings. Without it nothing is held."`

	Sampling string `yaml:"sampling" jsonschema:"enum=fast,enum=fixed-work,default=fast" jsonschema_description:"How noise is drawn, always from the same distribution: by tables, which is fastest, or in fixed work, so that the time of a draw does not tell how large the noise is."`

	Spans bool `yaml:"spans" jsonschema_description:"Spans of the stages of each statement go to a collector of OpenTelemetry's, which OTEL_EXPORTER_OTLP_ENDPOINT names. How long they are hangs on rows."`

	Limits limitsT `yaml:"limits" jsonschema_description:"What clients may take. Beyond it they wait, or are refused with 53300 or 53400, and nothing is charged."`
}

type mcpT struct {
	MaxCost decimal `yaml:"max_cost" jsonschema_description:"What one session may spend; without it what its user may."`
}

type timingT struct {
	Grid  string `yaml:"grid" jsonschema:"required" jsonschema_description:"Answers, refusals and errors leave at multiples of this since the question came, such as 20ms."`
	Fresh string `yaml:"fresh" jsonschema_description:"The result of each query on private rows is taken at a multiple of this since it was asked, such as 3m. Above backend.deadline, time tells nothing of the rows. Without it as grid."`
}

type limitsT struct {
	Connections         integer `yaml:"connections" jsonschema:"default=1000" jsonschema_description:"Sessions in all."`
	UserConnections     integer `yaml:"user_connections" jsonschema:"default=200" jsonschema_description:"Sessions of one user."`
	UserStatements      integer `yaml:"user_statements" jsonschema:"default=64" jsonschema_description:"Statements of one user that run at a time; more wait."`
	UserPurchases       integer `yaml:"user_purchases" jsonschema:"default=8" jsonschema_description:"Statements of one user that are charged and counted at a time; more wait."`
	StatementsPerSecond integer `yaml:"statements_per_second" jsonschema_description:"Statements of one user a second; without it any number."`
	PurchasesPerSecond  integer `yaml:"purchases_per_second" jsonschema:"default=200" jsonschema_description:"Statements of one user a second that would be charged, over ten seconds."`
	StatementCPU        string  `yaml:"statement_cpu" jsonschema:"default=5s" jsonschema_description:"Processor time that one statement's planning may take, and as much for what follows the charge; then it is ended with 57014, what was paid for stays free."`
	StatementMemory     string  `yaml:"statement_memory" jsonschema:"default=512MiB" jsonschema_description:"Memory of one statement's post-processing; its released tables and its result may take half as much each. Beyond it the statement ends with 54000."`
	UserMemory          string  `yaml:"user_memory" jsonschema:"default=1GiB" jsonschema_description:"Memory that one user's statements may take at a time: so many times statement_memory are worked on, more wait. What her cursors and prepared statements keep may take as much; more are refused with 53200."`
	Memory              string  `yaml:"memory" jsonschema_description:"Memory of the process and its children together, such as 4GiB. Without it three quarters of what the machine, or the process's control group, has."`
}

type tlsT struct {
	Cert string `yaml:"cert" jsonschema:"required" jsonschema_description:"Certificate file (PEM), relative to the policy."`
	Key  string `yaml:"key" jsonschema:"required" jsonschema_description:"Private key file (PEM), relative to the policy."`

	Clients string `yaml:"clients" jsonschema_description:"Certificates (PEM) of those who sign the certificates of users with login: certificate, relative to the policy."`
}

type loginT struct {
	LDAP *ldapT `yaml:"ldap" jsonschema_description:"A directory that users with login: ldap are bound to."`
	OIDC *oidcT `yaml:"oidc" jsonschema_description:"An OpenID provider whose tokens users with login: oidc bring."`
}

type ldapT struct {
	URL  string `yaml:"url" jsonschema:"required" jsonschema_description:"ldaps://host[:port]; ldap:// only to a loopback address."`
	Bind string `yaml:"bind" jsonschema:"required" jsonschema_description:"The distinguished name to bind as, with {user} for the user's identity, such as uid={user},ou=people,dc=example,dc=org."`
	CA   string `yaml:"ca" jsonschema_description:"Certificates (PEM) that the directory's is signed by, relative to the policy. Without it those of the system."`
}

type oidcT struct {
	Issuer   string `yaml:"issuer" jsonschema:"required" jsonschema_description:"https:// address of the provider, as its tokens name it; http:// only on a loopback address."`
	Audience string `yaml:"audience" jsonschema:"required" jsonschema_description:"What tokens must be made out to: the client id of dpproxy at the provider."`
	Claim    string `yaml:"claim" jsonschema:"default=sub" jsonschema_description:"The claim that holds a user's identity, such as sub or email. Choose one that the provider alone sets and never gives to somebody else."`
	Scope    string `yaml:"scope" jsonschema:"default=openid" jsonschema_description:"What clients ask the provider for."`
	CA       string `yaml:"ca" jsonschema_description:"Certificates (PEM) that the provider's is signed by, relative to the policy. Without it those of the system."`
}

type backendT struct {
	URL      string            `yaml:"url" jsonschema:"required" jsonschema_description:"postgres://…, mysql://… (MySQL or MariaDB, with snapshot), spark://… (its Thrift server), duckdb: (in memory) or duckdb:file.duckdb. ${NAME} is taken from the environment."`
	Files    map[string]string `yaml:"files" jsonschema_description:"duckdb only: table name to CSV or Parquet file, relative to the policy."`
	Deadline string            `yaml:"deadline" jsonschema:"default=2m" jsonschema_description:"How long one query on the private database may take, such as 2m."`
	Snapshot *snapshotT        `yaml:"snapshot" jsonschema_description:"The private tables are copied at public times, and every query reads the copy. Without it they are read live."`
}

type snapshotT struct {
	Dir    string `yaml:"dir" jsonschema:"required" jsonschema_description:"Directory of the copies, relative to the policy. It holds private rows."`
	Every  string `yaml:"every" jsonschema:"required" jsonschema_description:"How often a copy is made, such as 6h: a part of a day without a rest, or whole days."`
	At     string `yaml:"at" jsonschema:"default=00:00" jsonschema_description:"Hour and minute, in UTC, from which every is counted."`
	Within string `yaml:"within" jsonschema_description:"How long after its time a copy comes into force, whatever its rows. One that is not made by then is given up, and the last one stays. By default a quarter of every, at most 1h."`
	Key    string `yaml:"key" jsonschema_description:"File with the key that copies are encrypted with, relative to the policy: 32 characters or more, readable by its owner alone."`

	Connections integer `yaml:"connections" jsonschema:"default=2" jsonschema_description:"How many connections read the tables of a PostgreSQL server at a time, 1 to 16. Each keeps one of its processors busy."`
}

type sandboxT struct {
	URL string `yaml:"url" jsonschema_description:"postgres://…/database: an empty database that dpproxy makes on a server of the owner's. Without it dpproxy starts a PostgreSQL of its own."`
	Bin string `yaml:"bin" jsonschema_description:"The folder of initdb and postgres, for a PostgreSQL of dpproxy's own; without it they are found in PATH and the usual places."`
}

type ledgerT struct {
	URL        string `yaml:"url" jsonschema:"default=sqlite:dpproxy.ledger" jsonschema_description:"sqlite:file, relative to the policy, or postgres://… when several proxies share it."`
	Statements string `yaml:"statements" jsonschema_description:"A file, relative to the policy, in which the text of each statement that was charged is kept, with the constants in it, for the owners to read in the console. Without it no statement is kept."`

	Witness string `yaml:"witness" jsonschema_description:"A file, relative to the policy, that knows how far the ledger has come: an older copy of it is refused. By default beside the ledger's file, or dpproxy.ledger-witness beside the policy of a PostgreSQL ledger."`
}

type userT struct {
	Name     string    `yaml:"name" jsonschema:"required" jsonschema_description:"The name to log in with."`
	Password string    `yaml:"password" jsonschema:"pattern=^SCRAM-SHA-256\\$" jsonschema_description:"A SCRAM-SHA-256 verifier, written by dpproxy user add. Never a plain password. Required where login is password."`
	Login    string    `yaml:"login" jsonschema:"enum=password,enum=certificate,enum=ldap,enum=oidc,default=password" jsonschema_description:"How she proves who she is: by the verifier above, a client certificate (server.tls.clients), or server.login's directory or provider."`
	Identity string    `yaml:"identity" jsonschema_description:"Her name there: the certificate's common name, what stands for {user}, or the claim's value. Without it her name here."`
	Disabled bool      `yaml:"disabled" jsonschema_description:"She may not log in, and her sessions end with their next statement. What she holds and has spent stays hers."`
	Admin    bool      `yaml:"admin" jsonschema_description:"Sees every budget. May not see more of the data."`
	Settings settingsT `yaml:"settings" jsonschema_description:"Session settings that this user starts with."`
	Scope    string    `yaml:"settings_scope" jsonschema:"enum=session,enum=transaction,default=session" jsonschema_description:"How long SET dp.… holds: until the session ends, or only until the transaction does, for users behind a pooler that hands one connection to many clients."`
}

type groupT struct {
	Name     string    `yaml:"name" jsonschema:"required" jsonschema_description:"The name by which budgets speak of the group. It is nobody's login."`
	Members  []string  `yaml:"members" jsonschema:"required" jsonschema_description:"Users. One is in one group at most; her budget is the group's."`
	Settings settingsT `yaml:"settings" jsonschema_description:"Session settings that each member starts with; her own come first."`
}

type settingsT struct {
	Epsilon      decimal `yaml:"epsilon" jsonschema_description:"dp.epsilon: the most that a statement may cost."`
	Delta        decimal `yaml:"delta" jsonschema_description:"dp.delta: the most delta that a statement may use to find keys. By default a sixteenth of the budget's."`
	Confidence   decimal `yaml:"confidence" jsonschema_description:"dp.confidence: of error bars, in (0, 1)."`
	ErrorColumns *bool   `yaml:"error_columns" jsonschema_description:"dp.error_columns: each aggregate x gains x_low and x_high."`
	Release      *bool   `yaml:"release" jsonschema_description:"dp.release: releases are bought and read before counts that are more exact, the policy's and, for ranges, her own."`
	Dialect      string  `yaml:"dialect" jsonschema:"enum=postgres,enum=mysql" jsonschema_description:"dp.dialect: the SQL that SELECTs are written in."`
	Probes       string  `yaml:"probes" jsonschema:"enum=off,enum=empty,enum=made_up,default=off" jsonschema_description:"dp.probes: what a SELECT that looks at private rows is answered with. off: a refusal. empty: no rows. made_up: the made-up rows that she has paid for, where it is SELECT columns FROM table LIMIT n. For tools that look at a table's rows before anything else."`
	Hints        string  `yaml:"hints" jsonschema:"enum=separate,enum=message,default=separate" jsonschema_description:"dp.hints: where an error's detail and hint are. separate: in their own fields alone. message: behind its message too, for clients that show nothing else, as most servers for assistants do."`
	Digits       string  `yaml:"digits" jsonschema:"enum=exact,enum=significant,default=exact" jsonschema_description:"dp.digits: all, or those that errors leave."`
	Alarms       integer `yaml:"alarms" jsonschema_description:"dp.alarms: count(*) > n buys a run of such questions that ends at so many yes answers. 0: off."`
	MaxError     decimal `yaml:"max_error" jsonschema_description:"dp.max_error: the most that a count or sum may be off at the confidence; the least cost for it is found."`
	Contribution decimal `yaml:"contribution" jsonschema_description:"dp.contribution: policy, rows, ladder or a number."`
	Freshness    later   `yaml:"freshness"`
}

type datasetT struct {
	ID          string             `yaml:"id" jsonschema:"required" jsonschema_description:"The dataset's name, and the database that clients connect to. Budgets hang on it: never use one twice."`
	RenamedFrom string             `yaml:"renamed_from" jsonschema_description:"The id that this dataset had before. Its spending is kept."`
	Unit        unitT              `yaml:"unit" jsonschema:"required" jsonschema_description:"Whom the budget protects: a key, or row in a dataset of one private table."`
	Neighbors   string             `yaml:"neighbors" jsonschema:"enum=add-remove,enum=replace-one,default=add-remove" jsonschema_description:"What protecting a unit means: its rows may be absent, or different. replace-one makes the number of units public."`
	Units       integer            `yaml:"units" jsonschema_description:"replace-one only: the public number of units."`
	Accountant  string             `yaml:"accountant" jsonschema:"required,enum=pure,enum=zcdp,enum=either" jsonschema_description:"How costs add up: pure adds epsilon; zcdp adds rho, converted once from (epsilon, delta); either: what is spent must be within one of the two, whichever."`
	Sharing     string             `yaml:"sharing" jsonschema:"enum=declared,default=declared" jsonschema_extras:"x-later=all" jsonschema_description:"Who may reuse bought releases: declared shares those declared below."`
	Cap         *allowanceT        `yaml:"cap" jsonschema:"required" jsonschema_description:"What everybody together may spend, for life."`
	Budgets     map[string]budgetT `yaml:"budgets" jsonschema:"required" jsonschema_description:"What each user or group may spend, by name. * is each other one, separately. A user without a budget does not see the dataset."`
	Levels      map[string]decimal `yaml:"levels" jsonschema_description:"Levels of trust, by name: the share of a declared release's epsilon at which those of the level have it, below 1. One draw serves all levels, and the cap pays it once."`
	Defaults    defaultsT          `yaml:"defaults" jsonschema_description:"What sessions start with, and their ceiling."`
	Buying      buyingT            `yaml:"buying" jsonschema_description:"What the planner buys beside what is asked, so that later questions are free."`
	Tables      []tableT           `yaml:"tables" jsonschema:"required" jsonschema_description:"What analysts see. Nothing else exists for them."`
	Population  later              `yaml:"population"`
	NullUnit    string             `yaml:"null_unit" jsonschema:"enum=exclude,enum=each,default=exclude" jsonschema_description:"Rows whose unit is NULL: left out, or each a unit of its own (assumed). A table may say otherwise."`
	Large       string             `yaml:"large_products" jsonschema:"enum=refuse,enum=threshold,default=refuse" jsonschema_description:"GROUP BY of plain columns with more than 2^20 combinations: refused, or those combinations are found and shown that enough units have, which needs a delta."`
	Limits      later              `yaml:"limits"`

	MinFrequency frequencyT `yaml:"min_frequency" jsonschema_description:"Groups of fewer units are not shown."`
}

// unitT is `row` or a mapping; see its schema.
type unitT struct {
	Row  bool `yaml:"-"`
	keyT `yaml:",inline"`
}

type keyT struct {
	Name string `yaml:"name" jsonschema:"required" jsonschema_description:"What one unit is called, such as person."`
	Key  string `yaml:"key" jsonschema:"required" jsonschema_description:"table.column of the private database's column that names a unit."`
	Type string `yaml:"type" jsonschema_description:"The type of its values. Units that are whole numbers (smallint, integer, bigint) are put in order faster where it is given."`
}

type allowanceT struct {
	Epsilon decimal `yaml:"epsilon" jsonschema:"required" jsonschema_description:"At most six decimal places."`
	Delta   decimal `yaml:"delta" jsonschema_description:"Probability, such as 1e-7. Under zcdp it must be greater than 0."`
}

type budgetT struct {
	allowanceT `yaml:",inline"`
	Refresh    string      `yaml:"refresh" jsonschema_description:"The budget is granted anew at the start of each such window, such as 30d. Requires lifetime."`
	Level      string      `yaml:"level" jsonschema_description:"Her level of trust, one of levels. Without it she has declared releases as they are."`
	Lifetime   *allowanceT `yaml:"lifetime" jsonschema_description:"The most that all windows together may spend; this is what the privacy statement names."`
}

type defaultsT struct {
	Epsilon    decimal `yaml:"epsilon" jsonschema:"default=0.1" jsonschema_description:"Cost of a statement that sets nothing. Under zcdp an epsilon e buys rho = e²/2."`
	MaxEpsilon decimal `yaml:"max_epsilon" jsonschema_description:"The most that a session may set (1 or epsilon, if that is more)."`
	Rho        decimal `yaml:"rho" jsonschema_description:"zcdp only, instead of epsilon."`
	MaxRho     decimal `yaml:"max_rho" jsonschema_description:"zcdp only, instead of max_epsilon."`
	Confidence decimal `yaml:"confidence" jsonschema:"default=0.95" jsonschema_description:"Of error bars, in (0, 1)."`
	Freshness  string  `yaml:"freshness" jsonschema:"default=24h" jsonschema_description:"How often public tables are copied anew, and how old an answer may be before it is marked with its date."`
}

type buyingT struct {
	Cells integer `yaml:"cells" jsonschema:"default=1024" jsonschema_description:"Most cells of a count that is widened: the rows outside its condition are counted beside it, at the same cost and error. 0: off."`
	After decimal `yaml:"after" jsonschema:"default=0" jsonschema_description:"Under dp.max_error: a release is bought when what was paid for counts that it would have answered comes to so many times its price, so that a statement may cost more than its counts need. 1 is the best that is known without knowing what will be asked. 0: never."`
}

type tableT struct {
	Name             string     `yaml:"name" jsonschema:"required" jsonschema_description:"What analysts see: table or schema.table."`
	Source           string     `yaml:"source" jsonschema_description:"The table in the private database: schema.table. Without it the same name. Or a SELECT over other tables of this dataset, which is analysed as an analyst's is."`
	Unit             string     `yaml:"unit" jsonschema_description:"How a row names its unit: visits.person_id = people.person_id."`
	Public           bool       `yaml:"public" jsonschema_description:"No privacy: its rows are copied into the sandbox, exact and free."`
	Static           bool       `yaml:"static" jsonschema_description:"Its rows never change, so that releases drawn at different times may be added up and subtracted. Assumed, not checked."`
	ExpectedRows     integer    `yaml:"expected_rows" jsonschema_description:"A public guess at the number of rows. The true number is never read."`
	MaxRowsPerUnit   integer    `yaml:"max_rows_per_unit" jsonschema_description:"Most rows that one unit has; more are left out."`
	MaxTotalPerUnit  decimal    `yaml:"max_total_per_unit" jsonschema_description:"Most that one unit adds to a count."`
	RowRank          string     `yaml:"row_rank" jsonschema_description:"The column that numbers each unit's rows 1, 2, 3 and so on: those up to max_rows_per_unit are read, and no query numbers rows. It is a whole number; a unique constraint on it and the unit's column is required, and checked in each query's own moment. dpproxy prepare prints the SQL that makes one."`
	MaxGroupsPerUnit integer    `yaml:"max_groups_per_unit" jsonschema_description:"Instead of max_rows_per_unit, with max_rows_per_group: most groups of one answer that one unit is counted in."`
	MaxRowsPerGroup  integer    `yaml:"max_rows_per_group" jsonschema_description:"Instead of max_rows_per_unit, with max_groups_per_unit: most rows of one unit that are counted in one group."`
	MaxRows          integer    `yaml:"max_rows" jsonschema_description:"Public tables: most rows that are copied (100000)."`
	Columns          []columnT  `yaml:"columns" jsonschema:"required" jsonschema_description:"The columns that analysts see."`
	Releases         []releaseT `yaml:"releases" jsonschema_description:"Releases that each user pays for once, then uses freely."`
	RowsPerUnitTotal integer    `yaml:"rows_per_unit_total" jsonschema_description:"With appends, instead of max_rows_per_unit: most rows that one unit is counted with over the table's life, its first by date."`
	Trusted          bool       `yaml:"trusted" jsonschema_description:"source is a SELECT in the database's own SQL that is sent as it is written: that each of its rows depends on one unit's rows alone, and that it cannot fail, is assumed."`
	NullUnit         string     `yaml:"null_unit" jsonschema:"enum=exclude,enum=each" jsonschema_description:"Rows of this table whose unit is NULL: left out, or each a unit of its own (assumed). Without it what the dataset says."`
	Unique           []uniqueT  `yaml:"unique" jsonschema_description:"Keys of which no two rows of a unit have the same value: a column, or a list of columns. A join that equates one meets at most one row. A constraint proves it, or of rows that share a key one is taken in joins."`
	Appends          appendsT   `yaml:"appends" jsonschema_description:"The date column by which rows are only ever added. Range releases over it grow as days close, at no further cost."`
	Extremes         extremesT  `yaml:"extremes" jsonschema_description:"min and max of the table's columns are answered: true, as extreme quantiles, which tell where the outermost rows lie; declared, by the ends of the domain, which cost nothing and tell nothing of the rows. With true, so are those of the numbers of a unit's rows."`
	Limits           later      `yaml:"limits"`
	MinFrequency     frequencyT `yaml:"min_frequency" jsonschema_description:"Groups of fewer units are not shown."`
}

// frequencyT is a number of units or a mapping; see its schema.
type frequencyT struct {
	Units integer `yaml:"units" jsonschema:"required" jsonschema_description:"The fewest of a group that is shown."`
	Beta  decimal `yaml:"beta" jsonschema:"default=0.05" jsonschema_description:"How likely one of fewer may be shown."`
}

// uniqueT is a column's name or a list of names; see its schema.
type uniqueT []string

// extremesT is true, false or declared; see its schema.
type extremesT string

// appendsT is a column's name or a mapping; see its schema.
type appendsT struct {
	Column   string `yaml:"column" jsonschema:"required" jsonschema_description:"A date column of this table."`
	Closes   string `yaml:"closes" jsonschema:"default=24h" jsonschema_description:"How long after its end (UTC) a day closes: then its rows are all there. Later ones are not counted by the release."`
	Unclosed string `yaml:"unclosed" jsonschema:"enum=omit,enum=count,default=omit" jsonschema_description:"What becomes of days that are not closed in a question that the release answers: left out, with a notice, or the whole question is counted afresh."`
}

type columnT struct {
	Name     string    `yaml:"name" jsonschema:"required" jsonschema_description:"What analysts see."`
	Source   string    `yaml:"source" jsonschema_description:"The column in the private database. Without it the same name."`
	Type     string    `yaml:"type" jsonschema:"required" jsonschema_description:"boolean, smallint, integer, bigint, numeric(p,s), real, double precision, text, varchar(n), char(n), enum, date, timestamp, timestamptz or uuid."`
	Domain   domainT   `yaml:"domain" jsonschema_description:"The public values: min, max, step of an ordered column, or values. private: there are none yet, and no question is answered over the column; dpproxy bounds finds the ends at a price. any: any text; statements may ask what is so of it (LIKE, left(…) IN (…)), and its values are never shown."`
	Outside  string    `yaml:"outside" jsonschema:"enum=clamp,enum=other,enum=exclude,default=other" jsonschema_description:"What a value outside the domain becomes: the nearest end, the text other (NULL in columns that are not text), or a row left out."`
	Nulls    string    `yaml:"nulls" jsonschema:"enum=cell,enum=exclude,default=cell" jsonschema_description:"What NULL becomes: a cell of its own, or a row left out."`
	Offgrid  string    `yaml:"offgrid" jsonschema:"enum=exact,enum=snap,default=exact" jsonschema_description:"What a constant between two steps does in a query: each row is compared with it, or it is moved to the step."`
	Comment  string    `yaml:"comment" jsonschema_description:"A description for the catalog."`
	Keys     string    `yaml:"keys" jsonschema:"enum=join,enum=discover" jsonschema_description:"join: rows may be joined by this column; without a domain it is never shown. discover: a text column without a domain, of whose values those are found that enough units have."`
	Extremes extremesT `yaml:"extremes" jsonschema_description:"min and max of this column are answered: true, as extreme quantiles; declared, by the ends of its domain. Without it what the table says."`
	MaxTotal decimal   `yaml:"max_total_per_unit" jsonschema_description:"Most that a unit's values add up to."`

	MinFrequency frequencyT `yaml:"min_frequency" jsonschema_description:"Groups of fewer units are not shown."`

	Other string `yaml:"other" jsonschema:"enum=show,enum=hide,default=show" jsonschema_description:"What GROUP BY does with the group of values outside the domain: a row of the answer, or none. They are counted wherever nothing is grouped by the column."`
}

// domainT is a mapping, or the word private or any; see its schema.
type domainT struct {
	private bool
	any     bool
	Values  []scalar `yaml:"values" jsonschema_description:"Every value, for columns of text, whole numbers and uuids."`
	Min     scalar   `yaml:"min" jsonschema_description:"The least value."`
	Max     scalar   `yaml:"max" jsonschema_description:"The largest value, inclusive."`
	Below   scalar   `yaml:"below" jsonschema_description:"Instead of max: the least value beyond the domain, such as 2026-07-01 for times up to the end of June."`
	KeysOf  string   `yaml:"keys_of" jsonschema_description:"Instead of values: whose keys they are, public table.column."`
	Where   string   `yaml:"where" jsonschema_description:"Beside keys_of: SQL of which rows' keys they are."`
	Step    scalar   `yaml:"step" jsonschema_description:"Width of a cell: a number, or 1 day, 15 minutes, 1 second. 1 for integers and 1 day for dates if left out."`
}

type releaseT struct {
	Kind      string           `yaml:"kind" jsonschema:"required,enum=range,enum=histogram,enum=online,enum=synthetic" jsonschema_description:"range: every range of one ordered column. histogram: every combination of the columns' values. online: counting queries, one after the other. synthetic: made-up rows."`
	Name      string           `yaml:"name" jsonschema_description:"Without it table_column_column."`
	Columns   []releaseColumnT `yaml:"columns" jsonschema:"required" jsonschema_description:"Names of columns of this table."`
	Epsilon   decimal          `yaml:"epsilon" jsonschema_description:"What each user pays once. Under zcdp it buys rho = epsilon²/2."`
	Rho       decimal          `yaml:"rho" jsonschema_description:"zcdp only, instead of epsilon."`
	Refresh   string           `yaml:"refresh" jsonschema_description:"After this time the release may be bought anew, such as 7d."`
	Mechanism string           `yaml:"mechanism" jsonschema:"enum=multiplicative-weights,enum=median,enum=median-basic,enum=mwem,enum=small-database,enum=dawa" jsonschema_description:"online: multiplicative-weights, median or median-basic. synthetic: mwem, small-database, or dawa for one ordered column."`
	Updates   integer          `yaml:"updates" jsonschema_description:"online only: how many answers may come from the rows instead of the hypothesis. After the last one the release has stopped."`
	Insist    bool             `yaml:"insist" jsonschema_description:"It is used for whatever it answers, bought within dp.epsilon and free after that, also where a count for the same cost would be more exact. Not of synthetic releases."`
	Rows      integer          `yaml:"rows" jsonschema_description:"online and synthetic: how many made-up rows are shown (10000)."`
	Queries   integer          `yaml:"queries" jsonschema_description:"median-basic only: how many questions it answers."`
	Delta     decimal          `yaml:"delta" jsonschema_description:"median-basic only: the delta that each user pays beside epsilon."`
	Charge    later            `yaml:"charge"`
	Workload  later            `yaml:"workload"`
}

// releaseColumnT is a column's name, or a mapping with a step that makes its cells wider.
type releaseColumnT struct {
	Column string `yaml:"column" jsonschema:"required" jsonschema_description:"A column of this table."`
	Step   scalar `yaml:"step" jsonschema:"required" jsonschema_description:"Width of its cells in this release: a multiple of the column's step."`
}

// Marks in the schema that only the strictness check reads.
const (
	markLater = "x-not-available-yet" // on a key: giving it is refused
	markEnum  = "x-later"             // values that an enumeration will have
)

// Schema is the JSON Schema of the policy file, for editors.
func Schema() []byte {
	text, err := json.MarshalIndent(schema(), "", "  ")
	if err != nil {
		panic("policy: schema: " + err.Error()) // it is made of constants
	}
	return append(text, '\n')
}

func schema() *jsonschema.Schema {
	s := reflected(&fileT{})
	s.Version = jsonschema.Version
	s.Title = "dpproxy policy"
	return s
}

func reflected(v any) *jsonschema.Schema {
	r := jsonschema.Reflector{
		Anonymous: true, DoNotReference: true, ExpandedStruct: true, FieldNameTag: "yaml", RequiredFromJSONSchemaTags: true,
	}
	s := r.Reflect(v)
	s.Version = ""
	return s
}

// JSONSchema says that a decimal is a number.
func (decimal) JSONSchema() *jsonschema.Schema { return &jsonschema.Schema{Type: "number"} }

// JSONSchema says that an integer is a whole number.
func (integer) JSONSchema() *jsonschema.Schema { return &jsonschema.Schema{Type: "integer"} }

// JSONSchema says that a scalar is anything that fits on a line.
func (scalar) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}
}

// JSONSchema says that the key is refused for now.
func (later) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Not:    &jsonschema.Schema{},
		Title:  "not available yet",
		Extras: map[string]any{markLater: true},
	}
}

// JSONSchema says that a unit is `row` or a mapping.
func (unitT) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string", Enum: []any{"row"}}, reflected(&keyT{})}}
}

// JSONSchema says that a unique key is a column's name or a list of names.
func (uniqueT) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "array", Items: &jsonschema.Schema{Type: "string"}}}}
}

// JSONSchema says that extremes are a boolean or the word declared.
func (extremesT) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "boolean"}, {Type: "string", Enum: []any{"declared"}}}}
}

// JSONSchema says that appends is a column's name or a mapping.
func (appendsT) JSONSchema() *jsonschema.Schema {
	type mapping appendsT
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, reflected((*mapping)(nil))}}
}

// JSONSchema says that min_frequency is a number or a mapping.
func (frequencyT) JSONSchema() *jsonschema.Schema {
	type mapping frequencyT
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "integer"}, reflected((*mapping)(nil))}}
}

// JSONSchema says that a domain is a mapping or the word private or any.
func (domainT) JSONSchema() *jsonschema.Schema {
	type mapping domainT
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{reflected(&mapping{}), {Type: "string", Enum: []any{"private", "any"}}}}
}

// JSONSchema says that a release's column is a name or a mapping with a wider step.
func (releaseColumnT) JSONSchema() *jsonschema.Schema {
	type mapping releaseColumnT // without this method
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, reflected(&mapping{})}}
}

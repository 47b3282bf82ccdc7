package refuse

// What is refused once there is a plan, by whoever writes or binds the SQL.
var (
	sandboxUnsupported = New("sandbox-unsupported", "DP002", "%s cannot be run by the sandbox", "The sandbox is a PostgreSQL, and what would tell of its own server is not asked of it: compute this part where the answer arrives.", "")
	sandboxQuery       = New("sandbox-query", "DP002", "%s", "The sandbox is a PostgreSQL, and what would tell of its own server is not asked of it: compute this part where the answer arrives.", "")
	invalidOuter       = New("invalid-query", "", "%s", "", "")
	tooLong            = New("long-sql", "54000", "what the private database would be asked takes more than 64 KiB of SQL", "Group a person's rows by fewer or coarser keys, compare columns by +, - and constants, and ask for fewer counts and conditions in one statement.", "")
	longMeaning        = New("long-meaning", "54000",
		"what the ledger would keep of this question is longer than it may be",
		"Ask for fewer conditions, coarser keys, or fewer columns of different names in one statement.", "")
	unrendered = New("no-database-form", "DP002", "this question has no form that the private database can run", "Ask for fewer keys or filters in one statement.", "")
)

// AfterPlanning are these reasons, in the order of the catalogue.
var AfterPlanning = []*Reason{sandboxUnsupported, sandboxQuery, invalidOuter, tooLong, longMeaning, unrendered}

// Unsupported refuses a part of an outer query that the sandbox does not run; what names it.
func Unsupported(what string) *Refusal { return sandboxUnsupported.At(-1, what) }

// Sandbox refuses an outer query that cannot be written for the sandbox.
func Sandbox(message string) *Refusal { return sandboxQuery.At(-1, message) }

// Invalid refuses an outer query that PostgreSQL, too, would refuse, with its own SQLSTATE and words.
func Invalid(sqlState, message, hint string) *Refusal {
	r := invalidOuter.At(-1, message)
	r.SQLState, r.Hint = sqlState, hint
	return r
}

// TooLong refuses a measure whose SQL would be longer than what is sent (docs/adr/0195).
func TooLong() *Refusal { return tooLong.At(-1) }

// LongMeaning refuses a measure whose description would be longer than what the ledger keeps.
func LongMeaning() *Refusal { return longMeaning.At(-1) }

// Unrendered refuses a measure whose SQL cannot be written.
func Unrendered() *Refusal { return unrendered.At(-1) }

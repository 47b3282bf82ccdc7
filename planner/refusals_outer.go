package planner

// Reasons that are found after planning, by whoever writes or binds the SQL: the catalogue has them too.
var (
	openColumn         = &reason{"open-column", "DP002", `the values of column "%s" are not declared: rows can be grouped by it, and it can be compared with constants by =, <> and IN`, "Write column = 'value' or column IN (…), or GROUP BY it and put the condition into HAVING or an outer SELECT.", ""}
	noDelta            = &reason{"no-delta", "DP002", `the keys of column "%s" have to be found, which takes δ, and your budget has none`, "Name the values: WHERE column IN (…) without GROUP BY, or count(*) FILTER (WHERE column = 'value') for each.", ""}
	sandboxUnsupported = &reason{"sandbox-unsupported", "DP002", "%s cannot be run by the sandbox", "The sandbox runs only what it runs exactly as PostgreSQL does: compute this part where the answer arrives. With PostgreSQL as the sandbox (sandbox.url in the policy) more of it runs.", ""}
	sandboxQuery       = &reason{"sandbox-query", "DP002", "%s", "The sandbox runs only what it runs exactly as PostgreSQL does: compute this part where the answer arrives. With PostgreSQL as the sandbox (sandbox.url in the policy) more of it runs.", ""}
	invalidOuter       = &reason{"invalid-query", "", "%s", "", ""}
	unrendered         = &reason{"no-database-form", "DP002", "this question has no form that the private database can run", "Ask for fewer keys or filters in one statement.", ""}
)

// RefuseUnsupported refuses a part of an outer query that the sandbox does not run; what names it.
func RefuseUnsupported(what string) *Refusal { return sandboxUnsupported.at(-1, what) }

// RefuseSandbox refuses an outer query that cannot be written for the sandbox.
func RefuseSandbox(message string) *Refusal { return sandboxQuery.at(-1, message) }

// RefuseInvalid refuses an outer query that PostgreSQL, too, would refuse, with its own SQLSTATE and words.
func RefuseInvalid(sqlState, message, hint string) *Refusal {
	r := invalidOuter.at(-1, message)
	r.SQLState, r.Hint = sqlState, hint
	return r
}

// RefuseUnrendered refuses a measure whose SQL cannot be written.
func RefuseUnrendered() *Refusal { return unrendered.at(-1) }

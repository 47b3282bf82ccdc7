package planner

// What is refused once there is a plan, by whoever writes or binds the SQL.
var (
	sandboxUnsupported = newReason("sandbox-unsupported", "DP002", "%s cannot be run by the sandbox", "The sandbox runs only what it runs exactly as PostgreSQL does: compute this part where the answer arrives. With PostgreSQL as the sandbox (sandbox.url in the policy) more of it runs.", "")
	sandboxQuery       = newReason("sandbox-query", "DP002", "%s", "The sandbox runs only what it runs exactly as PostgreSQL does: compute this part where the answer arrives. With PostgreSQL as the sandbox (sandbox.url in the policy) more of it runs.", "")
	invalidOuter       = newReason("invalid-query", "", "%s", "", "")
	unrendered         = newReason("no-database-form", "DP002", "this question has no form that the private database can run", "Ask for fewer keys or filters in one statement.", "")
)

// AfterPlanning are these reasons, in the order of the catalogue.
var AfterPlanning = []*reason{sandboxUnsupported, sandboxQuery, invalidOuter, unrendered}

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

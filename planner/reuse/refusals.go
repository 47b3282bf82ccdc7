package reuse

import "github.com/dpproxy/dpproxy/planner/refuse"

// Limits on planning itself.
var (
	planningSteps  = refuse.New("planning-limit", "54000", "planning this statement takes more than the %d steps that a statement may", "Ask for fewer keys and filters at once, compare columns with constants, or group by coarser keys such as date_trunc('month', …).", "")
	planningMemory = refuse.New("planning-memory", "54000", "planning this statement takes more than the %d MiB that a statement may", "Ask for fewer keys and filters at once, compare columns with constants, or group by coarser keys such as date_trunc('month', …).", "")
	planningEnded  = refuse.New("planning-ended", "57014", "planning was ended: %s", "Nothing was charged. Ask again.", "")
)

// Refusals are all of this package, in the order of the documentation.
var Refusals = []*refuse.Reason{planningSteps, planningMemory, planningEnded}

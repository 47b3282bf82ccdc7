package plans

import (
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Refinement says that a measure is a level of a ladder: the first, with which the finest is drawn, or one that refines
// what is held.
type Refinement struct {
	Level privacy.Epsilon // what is paid for it in all
	Top   privacy.Epsilon // the finest level
	From  int64           // the ledger's id of the release that it refines; 0 means it is drawn of the data
	Paid  privacy.Epsilon // From: what was paid for that in all
	Spec  mechanisms.Spec // From: of that release; else of the finest level
}

// Refines tells a measure that is made of what is held, without the data.
func (m *Measure) Refines() bool { return m.Refinement != nil && m.Refinement.From != 0 }

// RefinableLevels are the levels of a holding that can be refined; zero where it cannot.
type RefinableLevels struct{ Level, Top privacy.Epsilon }

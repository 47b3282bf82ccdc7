package ledger

import "crypto/sha256"

// The kinds of rows. Numbers are on disk: never change one.
const (
	rowGenesis int64 = 1 + iota // a ledger begins: its random name
	rowPolicy                   // a policy is in force
	rowTerms                    // the terms of one dataset: grants, caps, unit, neighbours, accountant
	rowRename                   // a dataset goes on under another id
	rowBind                     // base relations belong to a dataset from now on
	rowCharge                   // one item was paid for
	rowSave                     // one release was drawn and stored
	rowRevoke                   // one release is withdrawn
	rowForfeit                  // budget given up for an accepted rollback
	rowVouch                    // the operator vouches that nothing is missing, though the witness was lost
	rowGrow                     // a release that grows was drawn for further cells: their observations
	rowStep                     // a release that goes on has done so
)

// row is one link of the chain.
type row struct {
	seq, kind, at, ds int64
	holder            string
	body              []byte
	hash              Digest
}

// link computes the row's hash from its predecessor's. Every field has a fixed place or a length before it, so no two
// different rows have the same bytes.
func (r *row) link(previous Digest) Digest {
	e := encoder{b: make([]byte, 0, 128+len(r.holder)+len(r.body))}
	e.b = append(e.b, previous[:]...)
	e.i64(r.seq)
	e.i64(r.kind)
	e.i64(r.at)
	e.i64(r.ds)
	e.str(r.holder)
	e.bytes(r.body)
	return sha256.Sum256(e.b)
}

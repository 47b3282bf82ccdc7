package chain

import "crypto/sha256"

// Kind is what a row is about. Numbers are on disk: never change one.
type Kind int64

const (
	RowGenesis Kind = 1 + iota // a ledger begins: its random name
	RowPolicy                  // a policy is in force
	RowTerms                   // the terms of one dataset: grants, caps, unit, neighbours, accountant
	RowRename                  // a dataset goes on under another id
	RowBind                    // base relations belong to a dataset from now on
	RowCharge                  // one item was paid for
	RowSave                    // one release was drawn and stored
	RowRevoke                  // one release is withdrawn
	RowForfeit                 // budget given up for an accepted rollback
	RowVouch                   // the operator vouches that nothing is missing, though the witness was lost
	RowGrow                    // a release that grows was drawn for further cells: their observations
	RowStep                    // a release that goes on has done so
	RowChains                  // from here on each dataset has a chain of its own
)

// Row is one link of the chain.
type Row struct {
	Seq    int64 // its number; the first one's is 1
	Kind   Kind
	At     int64 // the ledger's time, in nanoseconds
	DS     int64 // the dataset's number; 0 means none
	Holder string
	Body   []byte
	Hash   [32]byte

	Chain int64 // of which it is a link: Links says so, and stores keep it beside the row; it is no part of the hash
}

// Link computes the row's hash from its predecessor's. Every field has a fixed place or a length before it, so no two
// different rows have the same bytes.
func (r *Row) Link(previous [32]byte) [32]byte {
	e := Encoder{b: make([]byte, 0, 128+len(r.Holder)+len(r.Body))}
	e.Digest(previous)
	e.Int(r.Seq)
	e.Int(int64(r.Kind))
	e.Int(r.At)
	e.Int(r.DS)
	e.Text(r.Holder)
	e.Blob(r.Body)
	return sha256.Sum256(e.b)
}

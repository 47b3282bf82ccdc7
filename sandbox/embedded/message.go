package embedded

import (
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/catalog"
)

// What parent and child say to each other: a request to hold a dataset's tables, or to run or bind one query with its own
// tables; a reply with rows or an error.

// kind says what the child is asked to do.
type kind byte

const (
	askOpen     kind = 1 + iota // make the engine of a dataset anew, with its tables
	askQuery                    // run an outer query
	askDescribe                 // only bind it
)

// table is a table on its way to the child; its name is schema.name, or the name of a leaf.
type table struct {
	name string
	rows sandbox.Rows
}

// wired makes tables of the catalogs ready for the way.
func wired(from []catalog.Table) []table {
	tables := make([]table, len(from))
	for i, t := range from {
		tables[i] = table{name: t.Name, rows: t.Rows}
	}
	return tables
}

// request is one message to the child.
type request struct {
	kind    kind
	dataset string
	sql     string
	zone    string
	form    scalar.Form
	now     int64            // microseconds since 1970
	memory  int64            // askOpen: bytes that each query may take from now on
	args    []string         // of $1, $2, … in sql
	columns []sandbox.Column // of the answer
	tables  []table          // askOpen: those of the dataset; else those of this query alone
}

// reply is the child's answer to a request.
type reply struct {
	rows  sandbox.Rows
	fault *scalar.Error
	worn  bool   // the child should be replaced before the next query
	log   string // for the operator: what the engine said of a query that it should have run
}

func (r *request) encode() []byte {
	e := &encoder{b: []byte{byte(r.kind)}}
	e.text(r.dataset)
	e.text(r.sql)
	e.text(r.zone)
	e.text(r.form.Dates)
	e.text(r.form.Intervals)
	e.int(int64(r.form.Digits))
	e.int(r.now)
	e.int(r.memory)
	e.int(int64(len(r.args)))
	for _, a := range r.args {
		e.text(a)
	}
	e.columns(r.columns)
	e.int(int64(len(r.tables)))
	for _, t := range r.tables {
		e.text(t.name)
		e.rows(t.rows)
	}
	return e.b
}

func decodeRequest(b []byte) (*request, error) {
	d := &decoder{b: b}
	r := &request{}
	if head := d.take(1); head != nil {
		r.kind = kind(head[0])
	}
	r.dataset, r.sql, r.zone = d.text(), d.text(), d.text()
	r.form = scalar.Form{Dates: d.text(), Intervals: d.text(), Digits: uint8(d.int())}
	r.now, r.memory = d.int(), d.int()
	r.args = make([]string, d.count())
	for i := range r.args {
		r.args[i] = d.text()
	}
	r.columns = d.columns()
	r.tables = make([]table, d.count())
	for i := range r.tables {
		r.tables[i] = table{name: d.text(), rows: d.rows()}
	}
	return r, d.err
}

func (r *reply) encode() []byte {
	e := &encoder{}
	e.value(r.worn)
	if r.fault != nil {
		e.int(1)
		e.text(r.fault.SQLState)
		e.text(r.fault.Message)
		e.text(r.log)
		return e.b
	}
	e.int(0)
	e.rows(r.rows)
	return e.b
}

func decodeReply(b []byte) (*reply, error) {
	d := &decoder{b: b}
	r := &reply{}
	r.worn = d.value() == true
	if d.int() != 0 {
		r.fault = &scalar.Error{SQLState: d.text(), Message: d.text()}
		r.log = d.text()
		return r, d.err
	}
	r.rows = d.rows()
	return r, d.err
}

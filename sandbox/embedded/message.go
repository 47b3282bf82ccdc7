package embedded

import (
	"time"

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
	texts   scalar.Literals  // how texts are read and written, and what the time is
	read    scalar.Literals  // how the query's literals are read
	memory  int64            // askOpen: bytes that each query may take from now on
	args    []string         // of $1, $2, … in sql
	columns []sandbox.Column // of the answer
	tables  []table          // askOpen: those of the dataset; else those of this query alone
}

// reading writes how texts are read. A zone that has no name, as SET TIME ZONE 5 makes one, goes by its distance from UTC.
func (e *encoder) reading(l *scalar.Literals) {
	zone := l.Zone
	if zone == nil {
		zone = time.UTC
	}
	_, seconds := l.Now.In(zone).Zone()
	e.text(zone.String())
	e.int(int64(seconds))
	e.text(l.Form.Dates)
	e.text(l.Form.Intervals)
	e.int(int64(l.Form.Digits))
	e.int(l.Now.UnixMicro())
}

func (d *decoder) reading() scalar.Literals {
	name, seconds := d.text(), int(d.int())
	zone, err := time.LoadLocation(name)
	if err != nil {
		zone = time.FixedZone(name, seconds)
	}
	form := scalar.Form{Dates: d.text(), Intervals: d.text(), Digits: uint8(d.int())}
	return scalar.Literals{Now: time.UnixMicro(d.int()), Zone: zone, Form: form}
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
	e.reading(&r.texts)
	e.reading(&r.read)
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
	r.dataset, r.sql = d.text(), d.text()
	r.texts, r.read = d.reading(), d.reading()
	r.memory = d.int()
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

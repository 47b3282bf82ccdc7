package ranges

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// MaxPIdentity is the largest number of cells that has a p-identity strategy, made of the data for half as many.
const MaxPIdentity = 1 << 14

// leastPIdentity is the smallest: below it the best is, or is as good as, each cell once.
const leastPIdentity = 9

// shippedCells are the numbers of cells with optimised data, for each workload. TestRegenerateStrategies makes them.
// What has been released stays as it is, and so does this list: a Description names its matrix for ever. Better data go
// under further versions.
var shippedCells = []int{8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192}

// strategies holds for each of them the rows of T, made by TestRegenerateStrategies: compressed, see decodeRows.
//
//go:embed strategies
var strategies embed.FS

func strategyFile(cells int, workload Workload) string {
	name := "ranges"
	if workload == AllPrefixes {
		name = "prefixes"
	}
	return fmt.Sprintf("strategies/%s-%04d", name, cells)
}

// PIdentityVersion returns the Description.Version of the shipped p-identity strategies for a workload.
func PIdentityVersion(workload Workload) int { return int(workload) }

// pIdentityOf returns the strategy of a Description: for shipped numbers of cells as optimised; else the nearest of
// them with its rows stretched, in integers, so that it is the same on every machine.
func pIdentityOf(cells, version int) (*pIdentity, error) {
	if version != PIdentityVersion(AllRanges) && version != PIdentityVersion(AllPrefixes) {
		return nil, fmt.Errorf("version of strategy %s is %d, must be 1 (all ranges) or 2 (prefixes)", KindPIdentity, version)
	}
	if cells < leastPIdentity || cells > MaxPIdentity {
		return nil, fmt.Errorf("cells of strategy %s is %d, must be from %d to %d", KindPIdentity, cells, leastPIdentity, MaxPIdentity)
	}
	return pIdentities.get(pIdentityKey{cells, Workload(version)})
}

var pIdentities openedPIdentities

type pIdentityKey struct {
	cells    int
	workload Workload
}

type openedPIdentities struct {
	mu    sync.Mutex
	known map[pIdentityKey]*pIdentity
	cells int
}

// maxOpened bounds the cells of remembered strategies, each of which takes some 300 bytes; beyond it they are
// forgotten, all at once.
const maxOpened = 1 << 17

func (o *openedPIdentities) get(key pIdentityKey) (*pIdentity, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s, ok := o.known[key]; ok {
		return s, nil
	}
	from := nearestShipped(key.cells)
	data, err := strategies.ReadFile(strategyFile(from, key.workload))
	if err != nil {
		return nil, err
	}
	rows, err := decodeRows(data, from)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		rows[i] = rows[i].stretched(from, key.cells)
	}
	s, err := newPIdentity(key.cells, rows)
	if err != nil {
		return nil, err
	}
	if o.cells += key.cells; o.known == nil || o.cells > maxOpened {
		o.known, o.cells = map[pIdentityKey]*pIdentity{}, key.cells
		prefixesKept.Store(0)
	}
	o.known[key] = s
	return s, nil
}

// nearestShipped returns the shipped number of cells by the ratio.
func nearestShipped(cells int) int {
	for i, n := range shippedCells[1:] {
		if before := shippedCells[i]; cells*cells <= before*n {
			return before
		}
	}
	return shippedCells[len(shippedCells)-1]
}

// stretched returns the row over to cells instead of from: at the middle of each new cell, what the straight line
// between the middles of the nearest old cells says, rounded down. Weights of a column so add up to no more than they
// did.
func (r band) stretched(from, to int) band {
	if from == to {
		return r
	}
	at := func(i int) int64 {
		if i = min(max(i, 0), from-1) - r.from; i < 0 || i >= len(r.weights) {
			return 0
		}
		return r.weights[i]
	}
	row := make([]int64, to)
	for j := range row {
		place, unit := (2*j+1)*from-to, 2*to // the middle of cell j, less half an old cell, in old cells times unit
		i := (place+unit)/unit - 1           // rounded down; place is above −unit
		part := int64(place - i*unit)
		row[j] = (at(i)*(int64(unit)-part) + at(i+1)*part) / int64(unit)
	}
	return bandOf(row)
}

// bandOf cuts the zeros off.
func bandOf(row []int64) band {
	positive := func(w int64) bool { return w != 0 }
	from := slices.IndexFunc(row, positive)
	if from < 0 {
		return band{}
	}
	to := len(row)
	for row[to-1] == 0 {
		to--
	}
	return band{from: from, weights: row[from:to]}
}

// decodeRows reads rows that were written as compressed varints: their number, and for each its place, its length, and
// the differences of the differences of its weights, since rows are smooth. Symmetric rows are written without their
// mirror images. The weights are checked by newPIdentity.
func decodeRows(data []byte, cells int) ([]band, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	in := bytes.NewReader(plain)
	var failed error
	next := func(most int) int {
		n, err := binary.ReadUvarint(in)
		if err != nil || n > uint64(most) {
			failed = errors.Join(failed, fmt.Errorf("data of the strategy for %d cells is damaged", cells))
			return 0
		}
		return int(n)
	}
	rows := make([]band, 0, 256)
	count, mirrored := next(maxPIdentityRows), next(1)
	for range count {
		r := band{from: next(cells)}
		r.weights = make([]int64, next(cells-r.from))
		last, difference := int64(0), int64(0)
		for i := range r.weights {
			d, err := binary.ReadVarint(in)
			failed = errors.Join(failed, err)
			difference += d
			last += difference
			r.weights[i] = last
		}
		if failed != nil {
			return nil, failed
		}
		if rows = append(rows, r); mirrored == 1 {
			back := slices.Clone(r.weights)
			slices.Reverse(back)
			rows = append(rows, band{from: cells - r.from - len(back), weights: back})
		}
	}
	return rows, nil
}

package duckdb

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/duckdb/duckdb-go/v2"
)

// EngineVersion is the version of the DB that is built in, such as v1.5.5.
var EngineVersion = sync.OnceValues(func() (version string, err error) {
	connector, err := duckdb.NewConnector("", nil)
	if err != nil {
		return "", err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	return version, db.QueryRowContext(context.Background(), "SELECT version()").Scan(&version)
})

// writtenBy is what the head of a DB file says of who wrote it: the version of its format, and that of the DB.
type writtenBy struct {
	format  uint64
	library string
}

// The head of a DB file: a checksum of eight bytes, the letters DUCK, the number of the format, four words of flags,
// and the version of the library in 32 bytes. Every version of DB reads that much of every other's, to refuse it.
const (
	duckMagic   = "DUCK"
	magicAt     = 8
	formatAt    = magicAt + len(duckMagic)
	libraryAt   = formatAt + 8 + 4*8
	libraryLong = 32
)

// writerOf reads the head of a file; ok is false where it is not DB's.
func writerOf(file string) (w writtenBy, ok bool) {
	f, err := os.Open(file)
	if err != nil {
		return w, false
	}
	defer f.Close()
	head := make([]byte, libraryAt+libraryLong)
	if _, err := io.ReadFull(f, head); err != nil || string(head[magicAt:formatAt]) != duckMagic {
		return w, false
	}
	name, _, _ := bytes.Cut(head[libraryAt:], []byte{0})
	w = writtenBy{format: binary.LittleEndian.Uint64(head[formatAt:]), library: "an unnamed version"}
	for _, c := range name { // the file's own word: it goes to the operator, and nothing but a version is one
		if c != '.' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return w, true
		}
	}
	if len(name) > 0 {
		w.library = string(name)
	}
	return w, true
}

// otherVersion says of a file that is DB's and that nobody holds, but cannot be attached, which versions do not agree;
// "" where that is not why.
func otherVersion(file string) string {
	w, ok := writerOf(file)
	own, err := EngineVersion()
	if !ok || err != nil || w.library == own {
		return ""
	}
	return fmt.Sprintf("%s was written by DuckDB %s (storage format %d), and this dpproxy has DuckDB %s, which does not read that: "+
		"copy it with the newer DuckDB into a file that is attached with (STORAGE_VERSION '%s')", file, w.library, w.format, own, own)
}

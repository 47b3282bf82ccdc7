package service

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"

	"github.com/dpproxy/dpproxy/ledger"
)

// Texts of statements that were charged are kept beside the ledger where the policy names a file for them
// (ledger.statements), a line each: {"statement": digest, "text": …}. The ledger's rows name a statement by its digest,
// and stay without a word of it. What is in the file is for the owners; losing it loses no charge.

// statementLine is one line of the file.
type statementLine struct {
	Statement string `json:"statement"`
	Text      string `json:"text"`
}

// maxLine bounds a line: the wire takes statements of a megabyte.
const maxLine = 8 << 20

// statements are the texts of a file. In memory is where each lies.
type statements struct {
	mu   sync.Mutex
	file *os.File
	at   map[ledger.Digest]int64
	end  int64
	log  *slog.Logger
}

// openStatements opens the file, or makes it; with no name there is none.
func openStatements(path string, log *slog.Logger) (*statements, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil { // two would write over each other's lines
		return nil, errors.Join(fmt.Errorf("%s is used by another proxy: each keeps the texts of its own statements", path), file.Close())
	}
	s := &statements{file: file, at: map[ledger.Digest]int64{}, log: log}
	for lines := bufio.NewReader(file); ; {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break // half a line, if any, is written over
		}
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		var line statementLine
		if json.Unmarshal(text, &line) == nil {
			if digest, ok := digestOf(line.Statement); ok {
				s.at[digest] = s.end
			}
		}
		s.end += int64(len(text))
	}
	if err := file.Truncate(s.end); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return s, nil
}

func digestOf(text string) (d ledger.Digest, ok bool) {
	b, err := hex.DecodeString(text)
	return d, err == nil && copy(d[:], b) == len(d)
}

// Keep keeps the text of a statement, once.
func (s *statements) Keep(statement ledger.Digest, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.at[statement]; known {
		return
	}
	line, err := json.Marshal(statementLine{hex.EncodeToString(statement[:]), text})
	if err == nil {
		_, err = s.file.WriteAt(append(line, '\n'), s.end)
	}
	if err != nil {
		s.log.Error("the text of a charged statement was not kept", "error", err)
		return
	}
	s.at[statement] = s.end
	s.end += int64(len(line)) + 1
}

// text is what was kept of a statement, or nothing.
func (s *statements) text(statement ledger.Digest) string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, known := s.at[statement]
	if !known {
		return ""
	}
	var line statementLine
	if json.NewDecoder(io.NewSectionReader(s.file, at, maxLine)).Decode(&line) != nil {
		return ""
	}
	return line.Text
}

func (s *statements) close() {
	if s != nil {
		_ = s.file.Close() // every line is written
	}
}

package ledger

import (
	"errors"
	"os"
)

// probeBytes is what must fit on the disk before a re-opening is worth its work.
const probeBytes = 256 << 10

// tryDisk tells whether the ledger's disk takes a write and a flush again.
func (f *file) tryDisk() error {
	if f.opts.probe != nil {
		return f.opts.probe()
	}
	path := f.path + "-probe"
	p, err := f.disk.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = p.WriteAt(make([]byte, probeBytes), 0)
	return errors.Join(err, p.Sync(), p.Close(), f.disk.Remove(path))
}

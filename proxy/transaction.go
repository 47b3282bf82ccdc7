package proxy

import (
	"fmt"

	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/settings"
)

// transaction is the state of a transaction block, as far as it means something over noisy answers: settings are
// restored by ROLLBACK, errors end the block, portals die with it but for cursors WITH HOLD. Budget never comes back.
type transaction struct {
	block      bool // BEGIN was given
	failed     bool // the block, after an error
	implicit   bool // statements ran since the last ReadyForQuery, outside a block
	piped      bool // of these one by an Execute that no Sync followed yet
	start      settings.State
	savepoints []savepoint
}

type savepoint struct {
	name   string
	state  settings.State
	opened uint64 // portals opened before it
	kept   int64  // bytes that it counts for
}

func (t *transaction) status() byte {
	switch {
	case !t.block:
		return 'I'
	case t.failed:
		return 'E'
	}
	return 'T'
}

// enter marks the start of a statement.
func (t *transaction) enter(s *settings.Settings) {
	if !t.block && !t.implicit {
		t.implicit, t.start = true, s.State()
	}
}

// begin opens a block, in the modes that BEGIN names.
func (t *transaction) begin(s *settings.Settings, modes [][2]string) error {
	t.block = true
	for _, pair := range modes {
		if f := s.Set(pair[0], pair[1], true); f != nil {
			return f
		}
	}
	return nil
}

// end ends the block or implicit transaction.
func (t *transaction) end(s *settings.Settings, commit bool) {
	if commit {
		s.EndTransaction()
	} else {
		s.Restore(t.start)
	}
	*t = transaction{}
}

// chained opens the next transaction of AND CHAIN, in the modes of the last.
func (t *transaction) chained(s *settings.Settings, modes [][2]string) error {
	t.enter(s)
	return t.begin(s, modes)
}

// find is the index of a savepoint.
func (t *transaction) find(name, command string) (int, error) {
	if !t.block {
		return 0, outsideBlock(command)
	}
	for i := len(t.savepoints) - 1; i >= 0; i-- {
		if t.savepoints[i].name == name {
			return i, nil
		}
	}
	return 0, pgerror.New("3B001", fmt.Sprintf("savepoint %q does not exist", name))
}

func outsideBlock(command string) error {
	return pgerror.New("25P01", command+" can only be used in transaction blocks")
}

// enter marks the start of a statement.
func (c *replies) enter() { c.tx.enter(c.settings) }

// abort is what an error does to the transaction.
func (c *objects) abort() {
	switch {
	case c.tx.block && c.tx.failed:
	case c.tx.block:
		c.tx.failed = true
		state := c.tx.start
		if n := len(c.tx.savepoints); n > 0 {
			state = c.tx.savepoints[n-1].state
		}
		c.settings.Restore(state)
	case c.tx.implicit:
		c.settings.Restore(c.tx.start)
		c.endPortals(false)
	}
}

// endPortals closes what ends with a transaction: all portals but the cursors WITH HOLD, and of these the ones that it
// opened, unless it commits.
func (c *objects) endPortals(commit bool) {
	for name, p := range c.portals {
		if !p.hold || p.fresh && !commit {
			c.closePortal(name)
		} else {
			p.fresh = false
		}
	}
}

// endImplicit commits what ran outside a block.
func (c *objects) endImplicit() {
	if c.tx.block {
		return
	}
	c.tx.implicit, c.tx.piped = false, false
	c.settings.EndTransaction()
	c.endPortals(true)
}

// finish ends the block or implicit transaction.
func (c *objects) finish(commit bool) {
	c.dropSavepoints(0)
	c.tx.end(c.settings, commit)
	c.endPortals(commit)
}

func (c *replies) begin(characteristics [][2]string) error {
	if c.tx.block {
		c.notify(warning("25001", "there is already a transaction in progress"))
	}
	return c.tx.begin(c.settings, characteristics)
}

// commit returns the tag of COMMIT: in a failed block it is a ROLLBACK.
func (c *objects) commit() string {
	if !c.tx.block {
		c.notify(warning("25P01", "there is no transaction in progress"))
	}
	failed := c.tx.failed
	c.finish(!failed)
	if failed {
		return "ROLLBACK"
	}
	return "COMMIT"
}

func (c *objects) rollback() {
	if !c.tx.block {
		c.notify(warning("25P01", "there is no transaction in progress"))
	}
	c.finish(false)
}

func (c *objects) savepoint(name string) error {
	if !c.tx.block {
		return outsideBlock("SAVEPOINT")
	}
	if len(c.tx.savepoints) >= maxSavepoints {
		return pgerror.New("54000", "too many savepoints")
	}
	before := c.tx.start
	if n := len(c.tx.savepoints); n > 0 {
		before = c.tx.savepoints[n-1].state
	}
	state := c.settings.State()
	kept := savepointSize + int64(len(name)) + state.Beside(before)
	if err := c.keep(kept); err != nil {
		return err
	}
	c.tx.savepoints = append(c.tx.savepoints, savepoint{name, state, c.opened, kept})
	return nil
}

const (
	maxSavepoints = 10_000
	savepointSize = 128 // bytes of one, roughly and at most, with what the list grows by
)

// dropSavepoints forgets those from an index on.
func (c *objects) dropSavepoints(from int) {
	for _, s := range c.tx.savepoints[from:] {
		c.forget(s.kept)
	}
	clear(c.tx.savepoints[from:])
	c.tx.savepoints = c.tx.savepoints[:from]
}

func (c *objects) releaseSavepoint(name string) error {
	at, err := c.tx.find(name, "RELEASE SAVEPOINT")
	if err != nil {
		return err
	}
	c.dropSavepoints(at)
	return nil
}

// rollbackTo goes back to a savepoint, which stays. A charge made since stays as well.
func (c *objects) rollbackTo(name string) error {
	at, err := c.tx.find(name, "ROLLBACK TO SAVEPOINT")
	if err != nil {
		return err
	}
	back := c.tx.savepoints[at]
	c.dropSavepoints(at + 1)
	c.tx.failed = false
	c.settings.Restore(back.state)
	for portalName, p := range c.portals {
		if p.number > back.opened {
			c.closePortal(portalName)
		}
	}
	return nil
}

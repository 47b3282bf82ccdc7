package stattest

import (
	"fmt"
	"os"
	"sync"
)

var spent struct {
	sync.Mutex
	judgements int
	total      Alarm
}

// Spend adds the alarm of one judgement to the process's total. The judgements of this package call it themselves; a
// test that judges in its own way calls it too. By the union bound the total is at least the probability that tests of
// right code fail: judgements of planted faults, where a rejection is wanted, are counted as well, which errs to the
// safe side.
//
// Where DPPROXY_ALARMS names a file, each judgement appends a line to it, "<directory of the package> <alarm>", so that
// the alarms of many packages can be added up.
func Spend(a Alarm) {
	spent.Lock()
	defer spent.Unlock()
	spent.judgements++
	spent.total += a
	name := os.Getenv("DPPROXY_ALARMS")
	if name == "" {
		return
	}
	if err := note(name, a); err != nil {
		panic(fmt.Sprintf("stattest: the alarms' file: %v", err))
	}
}

func note(name string, a Alarm) error {
	directory, err := os.Getwd()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(file, "%s %g\n", directory, float64(a)); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

// Spent returns how many judgements this process has made, and the sum of their alarms.
func Spent() (judgements int, total Alarm) {
	spent.Lock()
	defer spent.Unlock()
	return spent.judgements, spent.total
}

package console

import "net/http"

func (c *Console) ownersPages(*http.ServeMux) {}

// Books is what owners' pages read of the ledger.
type Books interface{}

// Alarm is a warning of the log.
type Alarm struct{}

package ledger

const childEnv = "DPPROXY_LEDGER_CHILD"

func child() {}

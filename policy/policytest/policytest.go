// Package policytest has what the policies of tests begin with, so that each shows only what it is about.
package policytest

import "strconv"

// Over is a policy up to its datasets: alice may ask, with a password that nobody has, and the private database is at
// url.
func Over(url string) string {
	return `version: 1
server: {listen: "127.0.0.1:0"}
backend: {url: ` + strconv.Quote(url) + `}
ledger: {url: "sqlite:ledger.db"}
users: [{name: alice, password: "SCRAM-SHA-256$4096:AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}]
datasets:`
}

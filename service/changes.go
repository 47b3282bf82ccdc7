package service

import "github.com/dpproxy/dpproxy/policy"

// changes says in a log line's words what another policy changes for whom (policy.Changes): each kind, and a list of
// those it concerns.
func changes(old, now *policy.Policy) (words []any) {
	var list []string
	told := policy.Changes(old, now)
	for i, c := range told {
		if list = append(list, c.What); i+1 == len(told) || told[i+1].Kind != c.Kind {
			words = append(words, c.Kind, list)
			list = nil
		}
	}
	return words
}

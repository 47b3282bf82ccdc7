package service

import (
	"fmt"
	"slices"

	"github.com/dpproxy/dpproxy/policy"
)

// changes says, for the log, what another policy changes for whom: names and limits, which the policy has in plain, never a verifier.
func changes(old, now *policy.Policy) (words []any) {
	lists := map[string][]string{}
	note := func(what, who string) { lists[what] = append(lists[what], who) }
	for i := range now.Users {
		u, was := &now.Users[i], old.User(now.Users[i].Name)
		switch {
		case was == nil:
			note("users_added", u.Name)
			continue
		case was.Disabled != u.Disabled && u.Disabled:
			note("users_disabled", u.Name)
		case was.Disabled != u.Disabled:
			note("users_enabled", u.Name)
		}
		if was.Login != u.Login || was.Identity != u.Identity {
			note("logins_changed", u.Name)
		}
		if was.Verifier != u.Verifier {
			note("passwords_changed", u.Name)
		}
		if was.Admin != u.Admin {
			note("admins_changed", u.Name)
		}
	}
	for _, u := range old.Users {
		if now.User(u.Name) == nil {
			note("users_removed", u.Name)
		}
	}
	for _, d := range now.Datasets {
		was := old.Dataset(d.ID)
		if was == nil {
			note("datasets_added", d.ID)
			continue
		}
		if was.Cap.Cost != d.Cap.Cost {
			note("caps_changed", fmt.Sprintf("%s: %v to %v", d.ID, was.Cap.Cost, d.Cap.Cost))
		}
		for name, b := range d.Budgets {
			if before, ok := was.Budgets[name]; !ok {
				note("budgets_added", fmt.Sprintf("%s of %s: %v", name, d.ID, b.Cost))
			} else if before.Cost != b.Cost {
				note("budgets_changed", fmt.Sprintf("%s of %s: %v to %v", name, d.ID, before.Cost, b.Cost))
			}
		}
		for name := range was.Budgets {
			if _, ok := d.Budgets[name]; !ok {
				note("budgets_removed", name+" of "+d.ID)
			}
		}
	}
	for _, d := range old.Datasets {
		if now.Dataset(d.ID) == nil {
			note("datasets_removed", d.ID)
		}
	}
	for _, what := range []string{"users_added", "users_removed", "users_disabled", "users_enabled", "logins_changed", "passwords_changed", "admins_changed",
		"datasets_added", "datasets_removed", "caps_changed", "budgets_added", "budgets_removed", "budgets_changed"} {
		if list := lists[what]; list != nil {
			slices.Sort(list)
			words = append(words, what, list)
		}
	}
	return words
}

package policy

import (
	"maps"
	"strings"
)

// groups reads the users who hold one account, after the users. One is in one group at most, and so has one account in
// each dataset (privacy rule 8).
func (c *checker) groups(groups []groupT, at place) {
	seen, in := map[string]bool{}, map[string]string{}
	for i := range groups {
		g, here := &groups[i], at.item(i).within("group", groups[i].Name)
		checkName(g.Name, here.key("name"), "name")
		switch {
		case g.Name == "*":
			here.key("name").problem("name is *, which stands for each other user and group in budgets")
		case c.policy.User(g.Name) != nil:
			here.key("name").problem("name is that of a user")
		case seen[g.Name]:
			here.key("name").problem("name is given twice")
		}
		seen[g.Name] = true
		if len(g.Members) == 0 {
			here.key("members").problem("members is empty, must have at least one")
		}
		set := settings(&g.Settings, here.key("settings"))
		for n, name := range g.Members {
			member, user := here.key("members").item(n), c.policy.User(name)
			switch {
			case user == nil:
				member.problem("no such user: %.63q; users are named under users", name)
				continue
			case in[name] == g.Name:
				member.problem("user %.63q is given twice", name)
			case in[name] != "":
				member.problem("user %.63q is in group %.63q already: one account is whose she is", name, in[name])
			}
			in[name] = g.Name
			own := user.Settings
			user.Settings = maps.Clone(set)
			maps.Copy(user.Settings, own)
		}
		c.policy.Groups = append(c.policy.Groups, Group{Name: g.Name, Members: g.Members})
	}
}

// membership is the group of each member.
func (p *Policy) membership() map[string]string {
	of := map[string]string{}
	for _, g := range p.Groups {
		for _, user := range g.Members {
			of[user] = g.Name
		}
	}
	return of
}

// groupNotes says what it means that users are one group.
func (p *Policy) groupNotes() (notes []string) {
	for _, g := range p.Groups {
		notes = append(notes, "group "+g.Name+": "+strings.Join(g.Members, ", ")+" hold one account: each sees what the others asked and bought, and the privacy statement speaks of them as one analyst; who joins brings what she was shown and who leaves takes all of the group's with her, each charged to the account that then knows it, so joining is refused where that is above the group's lifetime")
	}
	return notes
}

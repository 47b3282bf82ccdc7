package draft

import (
	"slices"
	"strings"
)

// kind is what a column holds, as far as its name and type say. What an analyst may be shown depends on it.
type kind int

const (
	unsure   kind = iota
	secret        // a password, a token, a key
	identity      // tells who a person is, or where
	naming        // names a row, a document or a device
	free          // text that people write
	category      // one of a few values that many rows share
	label         // what a row of a list is called
	total         // adds up other rows
	measure       // a number
	moment        // a date or a time
	flag          // yes or no
)

const valuesHint = "domain: {values: [first, second]}"

// why says why a column of a kind is not listed among private rows; "" means that it is.
var why = map[kind]string{
	secret:   "a secret, or a number that names its owner",
	identity: "it tells who a person is",
	naming:   "it names a row, a document or a device, and no foreign key says of which table",
	unsure:   "nothing says that it has a few values that many rows share; with their list: " + valuesHint,
	label:    "it may name one row alone; with a list: " + valuesHint,
}

// kindOf decides by the words of a column's name, of which the last one that means something decides most, and by its
// type.
//
// Where a name is bare, as that of coupons.code, the table's words are its, if they hide it: of surgeons.name its last.
func kindOf(c *Column) kind {
	list := words(c.Name)
	if of := c.of; len(of) > 0 && !slices.ContainsFunc(list, func(w string) bool { return !bareWords[w] }) {
		if last(list) == "name" {
			of = of[len(of)-1:]
		}
		k := kindOfWords(c, slices.Concat(of, list))
		if k == secret || k == identity || k == naming && !idWords[last(list)] {
			return k
		}
	}
	return kindOfWords(c, list)
}

// kindOfWords is kindOf, by a name's words.
func kindOfWords(c *Column, list []string) kind {
	switch {
	case c.Type == "boolean":
		return flag
	case dated(c):
		return moment
	case numbers(c):
		return kindOfNumber(c, subject(list))
	case len(c.Labels) > 0, textual(c), c.Type == "uuid":
		return kindOfText(c, list, subject(list))
	case secretWords.any(list):
		return secret
	case identityWords.any(list), c.Type == "inet", c.Type == "cidr", strings.HasPrefix(c.Type, "macaddr"):
		return identity
	}
	return unsure
}

// subject is what a name is about: "date_of_birth" is a date, "reason_for_visit" a reason.
func subject(list []string) []string {
	for i, w := range list {
		if i > 0 && (w == "of" || w == "for") {
			return list[:i]
		}
	}
	return list
}

// last is the last of some words.
func last(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

// trimmed leaves out the words at the end that say little, down to one of a vocabulary: gender_source_value is gender.
// found is false where there is none.
func trimmed(list []string, v vocabulary) (rest []string, found bool) {
	for n := len(list); n > 0; n-- {
		if v[list[n-1]] {
			return list[:n], true
		}
		if !genericWords[list[n-1]] {
			break
		}
	}
	return nil, false
}

// held is what a text holds, without the words at the end of its name that say how: mrn_text, private_key_data.
func held(list []string) []string {
	for len(list) > 1 && carrierWords[last(list)] {
		list = list[:len(list)-1]
	}
	return list
}

// passes reports whether a name is that of a code or a phrase that lets its owner in.
func passes(list []string) bool {
	head := last(subject(list))
	return (head == "code" || head == "phrase") && passCodeWords.any(list)
}

func kindOfNumber(c *Column, list []string) kind {
	head := last(list)
	_, secretly := trimmed(list, secretWords)
	_, personally := trimmed(list, identityWords)
	switch {
	case secretly, passes(list):
		return secret
	case personally:
		return identity
	case numberedWords[head]:
		return naming
	case birthWords.in(c.Name), len(list) > 1 && ordinalWords[list[len(list)-2]] && idWords[head]:
		return measure
	case idWords[head], head == "by":
		return naming
	case totalWords.any(list):
		return total
	}
	return measure
}

func kindOfText(c *Column, list, about []string) kind {
	head, carried := last(about), last(held(about))
	_, categorical := trimmed(about, categoryWords)
	switch {
	case secretWords.any(list), carried == "key", passes(list):
		return secret
	case nameOfPerson(list), birthWords.any(list):
		return identity
	case idWords[head], head == "by", numberedWords[head], numberedWords[carried], c.Type == "uuid", fixed(c, head):
		return naming
	case carried != head && identityWords[carried]:
		return identity
	case freeWords[head]:
		return free
	case categorical, len(c.Labels) > 0:
		return category
	case identityWords.any(list), head != "name" && (peopleWords[head] || peopleWords[last(list)]):
		return identity
	case numberedWords.any(list):
		return naming
	case labelWords[head] && !peopleWords.any(list):
		return label
	}
	return unsure
}

// fixed reports whether a type has so many characters as hashes and tokens have, and is no name's.
func fixed(c *Column, head string) bool {
	hashed := strings.HasPrefix(c.Type, "character(") && longest(c) >= 16
	return hashed && head != "name" && len(c.Labels) == 0
}

// nameOfPerson reports whether a name's words are those of a person's: first_name, last_name, contact_name.
func nameOfPerson(list []string) bool {
	if len(list) < 2 || last(list) != "name" {
		return false
	}
	return slices.ContainsFunc(list, func(w string) bool { return peopleWords[w] || nameWords[w] })
}

// textual reports whether a column holds text of any kind.
func textual(c *Column) bool {
	base, _, _ := strings.Cut(c.Type, "(")
	types := []string{"text", "character varying", "character", "citext", "bytea", "json", "jsonb", "xml"}
	return len(c.Labels) == 0 && slices.Contains(types, base)
}

// numbers reports whether a column holds numbers.
func numbers(c *Column) bool { return whole(c) || fractional(c) }

func whole(c *Column) bool {
	return slices.Contains([]string{"smallint", "integer", "bigint"}, c.Type)
}

func fractional(c *Column) bool {
	base, _, _ := strings.Cut(c.Type, "(")
	return slices.Contains([]string{"numeric", "real", "double precision"}, base)
}

// dated reports whether a column holds dates or times of day.
func dated(c *Column) bool {
	return c.Type == "date" || strings.HasPrefix(c.Type, "timestamp")
}

// personal says why a column would tell who a row is about; "" means it would not.
func personal(c *Column) string {
	if k := kindOf(c); k == secret || k == identity {
		return why[k]
	}
	return ""
}

// named reports whether a column names people by a key: customer_id, PatientNo.
func named(c *Column) bool {
	list := words(c.Name)
	return len(list) > 0 && protectedWords.any(list) && keyWords[last(list)]
}

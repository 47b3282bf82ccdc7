package draft

import (
	"slices"
	"strings"
	"unicode"
)

// What a name says in English. A word decides nothing that matters alone: who is the unit is shown and may be
// overruled, what looks personal or secret is left out, and a table is public only where nothing in it looks like it is
// about people.

// words splits a name: "customerId", "customer_id" and "CUSTOMER_ID" are customer, id. Plurals lose their s.
func words(name string) []string {
	var list []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			list = append(list, singular(strings.ToLower(string(word))))
			word = word[:0]
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			continue
		case unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || unicode.IsDigit(runes[i-1])):
			flush()
		}
		word = append(word, r)
	}
	flush()
	return list
}

func singular(w string) string {
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "ss"), strings.HasSuffix(w, "us"), strings.HasSuffix(w, "is"), len(w) < 4:
		return w
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "xes"):
		return w[:len(w)-2]
	default:
		return strings.TrimSuffix(w, "s")
	}
}

// vocabulary is a set of words.
type vocabulary map[string]bool

func vocabularyOf(text string) vocabulary {
	v := vocabulary{}
	for _, w := range strings.Fields(text) {
		v[w] = true
	}
	return v
}

// in reports whether any word of a name is in the vocabulary.
func (v vocabulary) in(name string) bool {
	return slices.ContainsFunc(words(name), func(w string) bool { return v[w] })
}

// names reports whether the last word of a name is in the vocabulary: "home_address" is an address, "address_type" is a
// type.
func (v vocabulary) names(name string) bool {
	list := words(name)
	return len(list) > 0 && v[list[len(list)-1]]
}

var (
	protectedWords = vocabularyOf("customer client person people patient user member subscriber student pupil account donor voter guest passenger household resident citizen participant respondent tenant borrower insured beneficiary individual player child applicant candidate client consumer buyer shopper traveller traveler learner")
	workingWords   = vocabularyOf("employee staff worker teacher doctor physician nurse driver seller agent contact author instructor manager clerk actor operator merchant supplier vendor courier technician personnel lecturer professor trainer")

	secretWords   = vocabularyOf("password passwd pwd passphrase secret token salt hash apikey otp pin credential signature cvv cvc iban bic card ssn sin nino passport licence license biometric")
	identityWords = vocabularyOf("email mail phone telephone mobile cell fax firstname lastname fullname surname forename givenname username login nickname street address address2 postcode zip zipcode plate url website ip mac imei latitude longitude lat lon lng avatar photo picture")
	freeWords     = vocabularyOf("note comment description text body message remark content bio summary subject title detail instruction reason feedback review")
	eventWords    = vocabularyOf("event log visit session message payment invoice ticket cart basket transaction booking reservation appointment claim loan purchase order review comment complaint call search click login audit history response answer enrollment admission diagnosis prescription")
	ownedWords    = vocabularyOf("profile family home dwelling apartment contract subscription mandate case vehicle car device record wallet preference")
	keyWords      = vocabularyOf("id no nr num number key code ref reference uuid guid")
	upkeepWords   = vocabularyOf("update updated created modified inserted changed load loaded")
	birthWords    = vocabularyOf("birth born dob birthday birthdate")
)

// personal says why a column would tell who a row is about; "" means it would not.
func personal(c *Column) string {
	list := words(c.Name)
	joined := strings.Join(list, "")
	switch {
	case secretWords.in(c.Name) && textual(c), secretWords.names(c.Name):
		return "a secret, or a number that names its owner"
	case identityWords.in(c.Name) && !numbers(c) || identityWords[joined], strings.HasSuffix(joined, "name") && nameOfPerson(list):
		return "it tells who a person is"
	}
	return ""
}

// named reports whether a column names people by a key: customer_id, PatientNo.
func named(c *Column) bool { return protectedWords.in(c.Name) && keyWords.names(c.Name) }

// nameOfPerson reports whether a name's words are those of a person's: first_name, last_name, contact_name.
func nameOfPerson(list []string) bool {
	return len(list) > 1 && slices.ContainsFunc(list, func(w string) bool {
		return protectedWords[w] || workingWords[w] || slices.Contains([]string{"first", "last", "middle", "full", "given", "family", "maiden", "display", "user"}, w)
	})
}

// textual reports whether a column holds text of any kind.
func textual(c *Column) bool {
	base, _, _ := strings.Cut(c.Type, "(")
	return len(c.Labels) == 0 && slices.Contains([]string{"text", "character varying", "character", "citext", "bytea", "json", "jsonb", "xml"}, base)
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

package draft

import (
	"slices"
	"strings"
	"unicode"
)

// What a name says in English. A word decides nothing that matters alone: who is the unit is shown and may be
// overruled, what looks personal or secret is left out, and a table is public only where it looks like a list of codes.

// words splits a name: "customerId", "customer_id", "CUSTOMER_ID" and "customerid" are customer, id. Plurals lose their
// s, and words and names the digits at their end.
func words(name string) []string {
	var list []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			list = append(list, parts(strings.ToLower(string(word)))...)
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
	for len(list) > 1 && strings.Trim(last(list), "0123456789") == "" { // fact_id_1
		list = list[:len(list)-1]
	}
	return list
}

// longestRun is how many letters without a separator are taken apart.
const longestRun = 64

// parts takes apart what has no separators, into the fewest words that are known: "dateofbirth" is date, of, birth.
// What is not made of known words alone is one word.
func parts(run string) []string {
	if letters := strings.TrimRightFunc(run, unicode.IsDigit); letters != "" {
		run = letters
	}
	if w := singular(run); known[w] || len(run) > longestRun {
		return []string{w}
	}
	best := make([][]string, len(run)+1) // of what is before each place
	best[0] = []string{}
	for end := 2; end <= len(run); end++ {
		for at := range end - 1 {
			w := singular(run[at:end])
			if best[at] != nil && known[w] && (best[end] == nil || len(best[at])+1 < len(best[end])) {
				best[end] = append(slices.Clone(best[at]), w)
			}
		}
	}
	if whole := best[len(run)]; whole != nil {
		return whole
	}
	if rest, ok := strings.CutSuffix(run, "id"); ok && len(rest) > 2 { // accountableid
		return []string{singular(rest), "id"}
	}
	return []string{singular(run)}
}

func singular(w string) string {
	switch {
	case known[w]:
		return w
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

func vocabularyOf(text ...string) vocabulary {
	v := vocabulary{}
	for _, w := range strings.Fields(strings.Join(text, " ")) {
		v[w] = true
	}
	return v
}

// any reports whether one of some words is in the vocabulary.
func (v vocabulary) any(list []string) bool {
	return slices.ContainsFunc(list, func(w string) bool { return v[w] })
}

// in reports whether any word of a name is in the vocabulary.
func (v vocabulary) in(name string) bool { return v.any(words(name)) }

// names reports whether the last word of a name is in the vocabulary: "home_address" is an address, "address_type" is a
// type.
func (v vocabulary) names(name string) bool {
	list := words(name)
	return len(list) > 0 && v[list[len(list)-1]]
}

const (
	protected = `
		rider customer client person people patient user member subscriber student pupil account donor voter guest
		passenger household resident citizen participant respondent tenant borrower insured beneficiary individual
		player child applicant candidate consumer buyer shopper traveller traveler learner`
	working = `
		employee staff worker teacher doctor physician nurse driver seller agent contact author instructor manager
		clerk actor operator merchant supplier vendor courier technician personnel lecturer professor trainer
		salesperson rep`
	further = `
		owner sender recipient receiver creator editor reviewer approver assignee moderator parent mother father
		spouse kin guardian caregiver sibling cashier signer payer payee holder cardholder partner party counterparty
		victim suspect witness officer judge lawyer attorney defendant plaintiff surgeon prescriber requester submitter
		reporter cust emp coach tutor principal dean advisor adviser counselor counsellor therapist psychologist dentist
		pharmacist midwife paramedic pilot chef landlord mentor trustee`

	secrets = `
		password passwd pwd passphrase passcode secret token salt hash hashed apikey otp totp hotp mfa tfa pin
		credential signature cvv cvc iban bic swift ssn sin nino passport licence license biometric jwt oauth bearer
		cookie digest seed crypt encrypted cipher nonce ssh rsa pgp gpg pem certificate cert privatekey keystore
		recovery mnemonic fingerprint retina iris challenge captcha webhook session csrf xsrf checksum signing
		keyring hmac sha sha1 sha256 md5 bcrypt`
	identities = `
		email mail phone telephone mobile cell fax msisdn firstname lastname fullname surname forename givenname
		username login nickname screenname realname street address addr postcode postal zip zipcode plate url uri
		website homepage ip ipv mac imei imsi iccid latitude longitude lat lon lng geo geohash geom geometry gps
		coordinate geolocation avatar photo picture image selfie portrait handle alias whatsapp telegram skype
		twitter facebook instagram linkedin github signal discord slack tiktok wechat birthplace maiden hostname
		host fcm apns upn dn xmpp sip pseudonym signatory letterhead fname lname`
	documents = `
		card mrn nhs vin ein tin npi dea euid eid imei device useragent ehr emr chi medicare medicaid aadhaar pesel
		cpf cnpj curp`
	wares  = "udi upc ean sku gtin isbn issn barcode qrcode urn ark doi lei duns tracking shipment"
	ids    = "id no nr num number nbr ref reference uuid guid uid gid oid sid pid identifier serial key"
	freely = `
		note comment description text body message remark content bio biography summary subject title detail
		detailed instruction reason feedback review narrative memo caption phrase headline abstract excerpt raw
		cooked html markdown json xml payload blob data metadata meta extra config setting option preference query
		log trace stack error exception history interest hobby signup quote about introduction complaint`
	events = `
		event log visit session message payment invoice ticket cart basket transaction booking reservation
		appointment claim loan purchase order review comment complaint call search click login audit history
		response answer enrollment enrolment admission diagnosis diagnose prescription questionnaire survey
		assessment interview examination measurement screening genotype genome sample specimen result stay encounter
		trip ride delivery donation vote post topic score reading observation application consent note remark memo
		narrative feedback thread conversation chat discussion file upload attachment document letter coupon voucher
		invite invitation incident accident arrest conviction task todo bug refund dispute
		transfer withdrawal deposit notification alert reminder recording resume`
	owned = `
		profile family home dwelling apartment contract subscription mandate case vehicle car device record wallet
		preference card override personality medical health body gene dna allergy disability`
	upkeeps = `
		update updated created create modified modify inserted changed change load loaded deleted archived added
		edited touched refreshed synced rowversion revision`
	members = "member membership participant attendee invitee"
	births  = "birth born dob birthday birthdate"
	totals  = `
		count counter total sum avg average mean balance sold sale ytd qty quantity stock popularity usage uses used
		use view hit like vote follower download subscriber_count revenue turnover earning spent last latest recent
		running cumulative far remaining outstanding score rank ranking backlog`

	// What an owner expects to be categories; of those of things a public table may show some, of people none.
	things = `
		type kind category subcategory class subclass genre group unit uom color colour size format rating currency
		country region continent language locale brand model edition material season weekday department division
		industry sector channel method mode route form medium nation province county city town tier`
	statuses = `
		status stage phase level grade severity priority role flag outcome disposition frequency shift ward careunit
		service specialty speciality reason marital insurance interpretation purpose product plan package drug
		medication antibiotic organism fluid specimen state icd cpt drg hcpcs ndc loinc snomed atc naics admission
		discharge`
	intimate = `
		gender sex race ethnicity religion nationality citizenship education occupation profession employment income
		blood handedness orientation caste residence`

	labels = `
		name title label code description desc descr abbreviation abbr abbrev symbol term caption short long iso
		alpha`
	generic = "value source code cd name text label val string desc location"
	glue    = "of for by at on to in is has and or per the not from until since as with"
	common  = `
		first last middle full given family maiden display real screen nick user next file api private public access
		account bank credit debit national tax health social security insurance policy medical chart record serial
		line row item page version step order invoice agent date time day month year week quarter hour start end
		begin begun finish due old new home work company business contact emergency personal primary secondary
		alternate default main other reset restore verification confirmation activation invite invitation referral promo
		coupon backup auth approval pass back front digit browser client server remote factor two one pub priv rec
		net gross unit list price cost amount rate percent age point position sort width height weight length area
		volume temperature dose hourly vaccine head parent sub super org organization organisation customer payment
		shipping billing delivery number driver driving voter student employee routing sort swift trust store shop
		product department patient person people modified row standard large thumbnail web purchasing service state
		province territory address2 line1 line2 line3 entity approved creditcard discharge admission death era
		occurrence concept drug condition procedure visit provider care site gender hash mother father middle suffix
		prefix initial action reply shopping document report sale paid unpaid prepaid valid invalid grid void solid
		bid acid lipid covid sell discontinued effective expiry expire launch release publish available rapid hybrid
		android thyroid steroid humid`
)

var (
	protectedWords, workingWords = vocabularyOf(protected), vocabularyOf(working)
	peopleWords                  = vocabularyOf(protected, working, further)
	secretWords, identityWords   = vocabularyOf(secrets), vocabularyOf(identities)
	documentWords, keyWords      = vocabularyOf(documents), vocabularyOf(ids, "code")
	idWords, freeWords           = vocabularyOf(ids), vocabularyOf(freely)
	numberedWords                = vocabularyOf(documents, wares)
	eventWords, ownedWords       = vocabularyOf(events), vocabularyOf(owned)
	upkeepWords, birthWords      = vocabularyOf(upkeeps), vocabularyOf(births)
	totalWords, thingWords       = vocabularyOf(totals), vocabularyOf(things)
	categoryWords                = vocabularyOf(things, statuses, intimate)
	intimateWords                = vocabularyOf(intimate)
	labelWords, genericWords     = vocabularyOf(labels), vocabularyOf(generic)
	titleWords                   = vocabularyOf(`
		name title label code abbreviation abbr abbrev symbol term caption short long iso alpha`)
	nameWords = vocabularyOf(`
		first last middle full given family maiden display user screen nick real birth legal preferred f l`)
	carrierWords = vocabularyOf("text string raw data json xml blob payload content material")
	ordinalWords = vocabularyOf(`
		line row item page version step episode floor level week day month year quarter semester visit installment
		seq sequence round attempt position as`)
	passCodeWords = vocabularyOf(`
		recovery backup verification access reset invite invitation auth authorization approval security
		confirmation activation challenge pass promo coupon referral login door gate
		locker unlock voucher gift alarm one time`)
	listedWords = vocabularyOf(`
		last latest recent next valid sell discontinued effective expiry expire launch release publish available`)  // moments that a list may have
	coordinateWords = vocabularyOf("latitude longitude lat lon lng")
	memberWords     = vocabularyOf(members)
	bareWords       = vocabularyOf("code value number key text string name")
	stockWords      = vocabularyOf("inventory store shop branch warehouse")

	known = vocabularyOf(protected, working, further, secrets, identities, documents, wares, ids, freely, events, owned,
		members, upkeeps, births, totals, things, statuses, intimate, labels, generic, glue, common,
		"inventory branch warehouse")
)

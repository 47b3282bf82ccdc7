package truth

import "testing"

// histories are statements of one account, each of which was answered by what those before it had bought, otherwise
// than on a fresh account (privacy rule 27). In weight and return_date some rows are NULL, and 72.6, 80.1 and 10:30:15
// lie between two of their steps.
var histories = []struct {
	schema string
	roles  string // of their columns
	asked  []string
}{
	{"hospital", "c", []string{
		`SELECT count(*) FROM patient`,
		`SELECT count(*) FROM patient WHERE weight < 80.1 OR weight > 72.6`,
		`SELECT count(*) FROM patient WHERE weight < 72.6 OR NOT weight < 72.6`,
		`SELECT count(*) FROM patient WHERE NOT (weight < 72.6 AND weight >= 72.6)`,
		`SELECT count(*) FROM patient WHERE weight <> 72.6 OR weight = 72.6`,
		`SELECT count(*) FROM patient WHERE weight < 80.1 OR weight > 72.6 OR weight IS NULL`,
		`SELECT count(*) FROM patient WHERE weight < 80.1 AND NOT weight < 80.1`,
	}},
	{"hospital", "kc", []string{
		`SELECT smoker, count(*) FROM patient GROUP BY smoker`,
		`SELECT smoker, count(*) FROM patient WHERE weight < 80.1 OR weight > 72.6 GROUP BY smoker`,
		`SELECT smoker, count(*) FILTER (WHERE weight < 80.1 OR weight > 72.6) FROM patient GROUP BY smoker`,
	}},
	{"hospital", "c", []string{
		`SELECT count(*) FROM patient p JOIN vital v ON v.patient_id = p.patient_id`,
		`SELECT count(*) FROM patient p JOIN vital v ON v.patient_id = p.patient_id WHERE p.weight < 80.1 OR p.weight > 72.6`,
		`SELECT count(*) FROM patient p WHERE EXISTS (SELECT 1 FROM vital v WHERE v.patient_id = p.patient_id)`,
		`SELECT count(*) FROM patient p WHERE EXISTS (SELECT 1 FROM vital v WHERE v.patient_id = p.patient_id) AND (p.weight < 80.1 OR NOT p.weight < 80.1)`,
	}},
	{"rental", "c", []string{
		`SELECT count(*) FROM rental`,
		`SELECT count(*) FROM rental WHERE return_date < '2005-07-01 10:30:15' OR return_date > '2005-06-15 03:20'`,
		`SELECT count(*) FROM rental WHERE NOT (return_date < '2005-07-01 10:30:15' AND NOT return_date < '2005-07-01 10:30:15')`,
	}},
}

// remembered asks them, each history of a fresh account.
func (p *pair) remembered(t *testing.T, tl *tally) {
	for _, h := range histories {
		if h.schema != p.schema.name {
			continue
		}
		p.fresh()
		for _, sql := range h.asked {
			tl.asked++
			v, _, _ := p.try(p.schema.raw(sql, h.roles))
			p.settle(t, tl, v, sql)
		}
	}
}

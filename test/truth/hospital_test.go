package truth

import "strconv"

// quarters is a measurement of whole quarters, which a double precision holds exactly.
func quarters(n int) string { return strconv.FormatFloat(float64(n)/4, 'f', -1, 64) }

// hospital has patients, of whom few have much; stays of nobody known; diagnoses of a stay; vitals that are mostly
// NULL.
func hospital(seed uint64) *schema {
	d := newDice(seed, 3)
	patient := &table{name: "patient", named: "patient_id", bound: 1, keys: []string{"PRIMARY KEY (patient_id)"}, columns: []column{
		{name: "patient_id", stored: "bigint", declared: "bigint", rules: "keys: join", kind: keyKind},
		{name: "sex", stored: "char(1)", declared: "text", rules: "domain: {values: [f, m, x]}", kind: textKind, values: []string{"'f'", "'m'", "'x'"}},
		{name: "born", stored: "date", declared: "date", rules: "domain: {min: 1990-01-01, max: 2024-12-31, step: 1 day}, outside: clamp", truth: "greatest(least(born, '2024-12-31'), '1990-01-01')", kind: dateKind, values: []string{"'1990-01-01'", "'2010-06-15'", "'2024-12-31'"}},
		{name: "smoker", stored: "boolean", declared: "boolean", kind: boolKind},
		{name: "region", stored: "smallint", declared: "smallint", rules: "domain: {min: 1, max: 9}, outside: exclude", kind: wholeKind, values: []string{"1", "4", "9"}},
		{name: "weight", stored: "double precision", declared: "double precision", rules: "domain: {min: 0, max: 200, step: 0.25}", kind: realKind, values: []string{"50", "72.5", "72.6", "80.1", "99.75", "200"}},
	}, kept: "t.region BETWEEN 1 AND 9 OR t.region IS NULL"}
	stay := &table{name: "stay", named: "patient_id", unit: "stay.patient_id = patient.patient_id", bound: 10, kept: "t.patient_id IS NOT NULL", keys: []string{"PRIMARY KEY (stay_id)"}, columns: []column{
		{name: "stay_id", stored: "bigint", declared: "bigint", rules: "keys: join", kind: keyKind},
		{name: "patient_id", stored: "bigint", declared: "bigint", rules: "keys: join", kind: keyKind},
		{name: "ward", stored: "text", declared: "text", rules: "domain: {values: [ICU, maternity, medicine, surgery, unused]}", kind: textKind, values: []string{"'ICU'", "'surgery'", "'unused'", "'nowhere'"}},
		{name: "admitted", stored: "date", declared: "date", rules: "domain: {min: 2023-01-01, max: 2024-12-31}", kind: dateKind, values: []string{"'2023-01-01'", "'2023-12-31'", "'2024-02-29'"}},
		{name: "discharged", stored: "date", declared: "date", rules: "domain: {min: 2023-01-01, max: 2025-03-31}", kind: dateKind, values: []string{"'2023-06-30'", "'2024-02-29'"}},
		{name: "cost", stored: "numeric(10,2)", declared: "numeric(10,2)", rules: "domain: {min: 0, max: 2000, step: 0.01}, nulls: exclude", kind: moneyKind, values: []string{"0", "199.99", "1000", "2000"}},
		{name: "emergency", stored: "boolean", declared: "boolean", kind: boolKind},
		{name: "severity", stored: "smallint", declared: "smallint", rules: "domain: {min: 0, max: 5}", truth: "CASE WHEN severity BETWEEN 0 AND 5 THEN severity END", kind: wholeKind, values: []string{"0", "2", "5"}},
		noteColumn("remark"),
	}}
	stay.kept += " AND t.cost IS NOT NULL"
	diagnosis := &table{name: "diagnosis", named: "patient_id", unit: "diagnosis.patient_id = patient.patient_id", bound: 20, kept: "t.patient_id IS NOT NULL", columns: []column{
		{name: "patient_id", stored: "bigint", declared: "bigint", rules: "keys: join", kind: keyKind},
		{name: "stay_id", stored: "bigint", declared: "bigint", rules: "keys: join", kind: keyKind},
		{name: "code", stored: "varchar(4)", declared: "varchar(4)", rules: "domain: {values: [A01, B20, C50, J45, Z99]}", kind: textKind, values: []string{"'A01'", "'J45'", "'Z99'"}},
		{name: "principal", stored: "boolean", declared: "boolean", kind: boolKind},
		placeColumn("clinic"),
	}}
	vital := &table{name: "vital", named: "patient_id", unit: "vital.patient_id = patient.patient_id", bound: 25, kept: "t.patient_id IS NOT NULL", columns: []column{
		{name: "patient_id", stored: "bigint", declared: "bigint", rules: "keys: join", kind: keyKind},
		{name: "taken", stored: "timestamp", declared: "timestamp", rules: "domain: {min: 2024-01-01, max: 2024-03-31 23:45, step: 15 minutes}", kind: timeKind, step: "floor(extract(epoch FROM %s) / 900)", values: []string{"'2024-01-01 00:00:00'", "'2024-02-29 12:30:00'", "'2024-03-01'"}},
		{name: "kind", stored: "text", declared: "text", rules: "domain: {values: [pulse, systolic, temperature]}, nulls: exclude", kind: textKind, values: []string{"'pulse'", "'systolic'", "'temperature'"}},
		{name: "reading", stored: "double precision", declared: "double precision", rules: "domain: {min: 0, max: 250, step: 0.25}", kind: realKind, values: []string{"36.5", "72", "72.1", "120.25"}},
		{name: "grade", stored: "integer", declared: "integer", rules: "domain: {min: -5, max: 5}", kind: wholeKind, values: []string{"-5", "-1", "0", "3"}},
	}}
	vital.kept += " AND t.kind IS NOT NULL"
	ward := &table{name: "ward", public: true, keys: []string{"PRIMARY KEY (ward)"}, columns: []column{
		{name: "ward", stored: "text", declared: "text", kind: textKind, values: []string{"'ICU'", "'surgery'"}},
		{name: "floor", stored: "integer", declared: "integer", kind: wholeKind, values: []string{"1", "2"}},
		{name: "head", stored: "text", declared: "text", kind: textKind, values: []string{"'Dr A'", "'Dr B'"}},
	}, rows: [][]string{{"ICU", "1", "Dr A"}, {"medicine", "2", "Dr B"}, {"surgery", "1", null}, {"closed", "3", "Dr A"}}}
	stays := 0
	for id := 1; id <= 280; id++ {
		born, region := day("1990-01-01", d.IntN(12700)), strconv.Itoa(1+d.few(0, 8))
		if d.chance(40) {
			born, region = "1901-05-05", d.one("0", "77", null)
		}
		weight := null
		if !d.chance(4) {
			weight = quarters(160 + d.IntN(400))
		}
		patient.rows = append(patient.rows, []string{strconv.Itoa(id), d.one("f", "f", "m", "m", null), born, d.one("t", "f", "f", null, null), region, weight})
		who := strconv.Itoa(id)
		if d.chance(30) {
			who = null
		}
		for range d.few(0, 10) {
			stays++
			in := d.IntN(720)
			out, cost := null, cents(d.few(0, 200000))
			if !d.chance(5) {
				out = day("2023-01-01", in+d.few(0, 60))
			}
			if d.chance(25) {
				cost = null
			}
			stay.rows = append(stay.rows, []string{strconv.Itoa(stays), who, d.one("medicine", "medicine", "medicine", "surgery", "ICU", null), day("2023-01-01", in), out, cost, d.one("t", "f", "f", null), d.one("0", "1", "2", "3", "9", null), d.note()})
			for range d.few(0, 2) {
				diagnosis.rows = append(diagnosis.rows, []string{who, strconv.Itoa(stays), d.one("A01", "A01", "J45", "C50", null), d.one("t", "f", null), d.place(id)})
			}
		}
		for range d.few(0, 25) {
			reading, grade := null, null
			if d.chance(3) {
				reading = quarters(d.IntN(1000))
			}
			if d.chance(3) {
				grade = strconv.Itoa(d.IntN(11) - 5)
			}
			vital.rows = append(vital.rows, []string{who, moment("2024-01-01 00:00:00", d.IntN(90*86400)), d.one("pulse", "pulse", "systolic", null), reading, grade})
		}
	}
	return &schema{name: "hospital", unit: "patient.patient_id", tables: []*table{patient, stay, diagnosis, vital, ward}, csv: true,
		edges: []edge{
			{"stay", "patient", [][2]string{{"patient_id", "patient_id"}}, true},
			{"diagnosis", "patient", [][2]string{{"patient_id", "patient_id"}}, true},
			{"diagnosis", "stay", [][2]string{{"stay_id", "stay_id"}}, false},
			{"diagnosis", "stay", [][2]string{{"patient_id", "patient_id"}, {"stay_id", "stay_id"}}, true},
			{"vital", "patient", [][2]string{{"patient_id", "patient_id"}}, true},
			{"stay", "ward", [][2]string{{"ward", "ward"}}, true},
		}}
}

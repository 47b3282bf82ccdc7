package truth

import "strconv"

// telemetry has accounts with devices, and readings of a device by the second in a domain by the minute.
func telemetry(seed uint64) *schema {
	d := newDice(seed, 4)
	account := &table{name: "account", named: "account_id", bound: 1, keys: []string{"PRIMARY KEY (account_id)"}, columns: []column{
		{name: "account_id", stored: "bigint", declared: "bigint", rules: "keys: join", kind: keyKind},
		{name: "plan", stored: "text", declared: "text", rules: "domain: {values: [free, pro, team]}", kind: textKind, values: []string{"'free'", "'pro'"}},
		{name: "seats", stored: "integer", declared: "integer", rules: "domain: {min: 1, max: 50}, outside: clamp", truth: "greatest(1, least(50, seats))", kind: wholeKind, values: []string{"1", "10", "50"}},
	}}
	device := &table{name: "device", named: "account_id", unit: "device.account_id = account.account_id", bound: 6, keys: []string{"PRIMARY KEY (device_id)"}, kept: "t.account_id IS NOT NULL", columns: []column{
		{name: "device_id", stored: "integer", declared: "integer", rules: "keys: join", kind: keyKind},
		{name: "account_id", stored: "bigint REFERENCES public.account", declared: "bigint", rules: "keys: join", kind: keyKind},
		{name: "model", stored: "varchar(10)", declared: "varchar(10)", rules: "domain: {values: [mk1, mk2, mk3]}, outside: exclude", kind: textKind, values: []string{"'mk1'", "'mk3'"}},
		{name: "installed", stored: "timestamptz", declared: "timestamptz", rules: "domain: {min: 2024-01-01, max: 2024-12-31 23:00, step: 1 hour}", kind: zonedKind, step: "date_trunc('hour', %s)", values: []string{"'2024-03-01 00:00:00+00'", "'2024-06-01T12:00:00Z'"}},
		{name: "online", stored: "boolean NOT NULL", declared: "boolean", kind: boolKind},
		placeColumn("site"),
	}}
	device.kept += " AND (t.model IN ('mk1', 'mk2', 'mk3') OR t.model IS NULL)"
	of := "t.device_id IN (SELECT device_id FROM public.device WHERE account_id IS NOT NULL)"
	reading := &table{name: "reading", named: "device_id", unit: "reading.device_id = device.device_id", bound: 60, kept: of, columns: []column{
		{name: "device_id", stored: "integer", declared: "integer", rules: "keys: join", kind: keyKind},
		{name: "seen_at", stored: "timestamptz", declared: "timestamptz", rules: "domain: {min: 2024-05-01, max: 2024-05-04 23:59, step: 1 minute}", kind: zonedKind, step: "date_trunc('minute', %s)", values: []string{"'2024-05-01 00:00:00+00'", "'2024-05-02T12:30:00Z'", "'2024-05-03 06:15:00+00'", "'2024-05-02 10:00:30+00'"}},
		{name: "state", stored: "text", declared: "text", rules: "domain: {values: [idle, ok, overheated, unknown]}", kind: textKind, values: []string{"'ok'", "'idle'", "'overheated'"}},
		{name: "temperature", stored: "real", declared: "real", rules: "domain: {min: -20, max: 120, step: 0.25}", kind: realKind, values: []string{"-20", "0", "21.5", "90.25"}},
		{name: "volts", stored: "double precision", declared: "double precision", rules: "domain: {min: 0, max: 24, step: 0.25}", kind: realKind, values: []string{"0", "3.25", "12", "24"}},
		{name: "packets", stored: "bigint", declared: "bigint", rules: "domain: {min: 0, max: 1000}", kind: wholeKind, values: []string{"0", "10", "1000"}},
	}}
	outage := &table{name: "outage", named: "device_id", unit: "outage.device_id = device.device_id", bound: 30, kept: of, columns: []column{
		{name: "device_id", stored: "integer", declared: "integer", rules: "keys: join", kind: keyKind},
		{name: "began", stored: "timestamp", declared: "timestamp", rules: "domain: {min: 2024-05-01, max: 2024-05-31 23:00, step: 1 hour}", kind: timeKind, step: "date_trunc('hour', %s)", values: []string{"'2024-05-01'", "'2024-05-10 12:00:00'", "'2024-05-20 00:00:01'"}},
		{name: "seconds", stored: "integer", declared: "integer", rules: "domain: {min: 0, max: 900}", kind: wholeKind, values: []string{"0", "30", "900"}},
		{name: "cause", stored: "text", declared: "text", rules: "domain: {values: [network, power, upgrade]}", truth: "CASE WHEN cause NOT IN ('network', 'power', 'upgrade') THEN 'other' ELSE cause END", kind: textKind, values: []string{"'network'", "'power'", "'other'"}},
		noteColumn("report"),
	}}
	model := &table{name: "model", public: true, columns: []column{
		{name: "model", stored: "text", declared: "text", kind: textKind, values: []string{"'mk1'", "'mk2'"}},
		{name: "maker", stored: "text", declared: "text", kind: textKind, values: []string{"'Acme'", "'Zeta'"}},
		{name: "price", stored: "numeric(8,2)", declared: "numeric(8,2)", kind: moneyKind, values: []string{"99.9", "150"}},
	}, rows: [][]string{{"mk1", "Acme", "99.90"}, {"mk2", "Zeta", "149.00"}, {"mk2", "Zeta (used)", "49.50"}, {"mk9", "Acme", "999.00"}}}
	devices := 0
	for id := 1; id <= 180; id++ {
		account.rows = append(account.rows, []string{strconv.Itoa(id), d.one("free", "free", "free", "pro", null), strconv.Itoa(d.few(1, 80))})
		for range d.few(0, 6) {
			devices++
			who := strconv.Itoa(id)
			if d.chance(25) {
				who = null
			}
			device.rows = append(device.rows, []string{strconv.Itoa(devices), who, d.one("mk1", "mk1", "mk2", "mk7", null), moment("2024-01-01 00:00:00", d.IntN(360*86400)) + "+00", d.one("t", "t", "f"), d.place(id)})
			for range d.few(0, 10) {
				volts, state := null, d.one("ok", "ok", "ok", "idle", "overheated", null)
				if !d.chance(4) {
					volts = quarters(d.IntN(97))
				}
				reading.rows = append(reading.rows, []string{strconv.Itoa(devices), moment("2024-05-01 00:00:00", d.IntN(4*86400-60)) + "+00", state, quarters(d.IntN(560) - 80), volts, strconv.Itoa(d.few(0, 1000))})
			}
			for range d.few(0, 5) {
				outage.rows = append(outage.rows, []string{strconv.Itoa(devices), moment("2024-05-01 00:00:00", d.IntN(30*86400)), strconv.Itoa(d.few(0, 900)), d.one("network", "power", "power", "mice", null), d.note()})
			}
		}
	}
	return &schema{name: "telemetry", unit: "account.account_id", tables: []*table{account, device, reading, outage, model},
		edges: []edge{
			{"device", "account", [][2]string{{"account_id", "account_id"}}, true},
			{"reading", "device", [][2]string{{"device_id", "device_id"}}, true},
			{"outage", "device", [][2]string{{"device_id", "device_id"}}, true},
			{"device", "model", [][2]string{{"model", "model"}}, true},
		}}
}

package truth

import (
	"fmt"
	"strconv"
)

// trade is a wholesale trade's books, as an accountant has them: clients of a skewed number of orders, orders of lines,
// lines of returns, each found through the one before it; credits and corrections that are negative, in cents; an enum,
// codes in char(n), moments of orders about both changes of the clock and in a domain of hours, NULL in every column
// that may be; and two public tables. Its neighbours replace a client's rows, where the other schemas' leave them out.
func trade(seed uint64) *schema {
	d := newDice(seed, 7)
	client := &table{name: "client", named: "client_id", bound: 1, keys: []string{"PRIMARY KEY (client_id)"}, columns: []column{
		{name: "client_id", stored: "bigint", declared: "bigint", rules: "keys: join", kind: keyKind},
		{name: "kind", stored: "size", declared: "enum", rules: "domain: {values: [large, private, small]}", truth: "kind::text", kind: textKind, values: []string{"'large'", "'private'", "'small'"}},
		{name: "code", stored: "char(4)", declared: "char(4)", rules: "domain: {values: [A, AB, B 1, x_1, 'Z%']}", kind: textKind, values: []string{"'A'", "'AB  '", "'B 1'", "'x_1'", "'q'"}},
		{name: "since", stored: "date", declared: "date", rules: "domain: {min: 1999-12-27, max: 2001-01-07}", kind: dateKind, values: []string{"'1999-12-31'", "'2000-02-29'", "'2000-12-31'"}},
		{name: "credit", stored: "numeric(12,2)", declared: "numeric(12,2)", rules: "domain: {min: -5000, max: 5000, step: 0.01}, outside: clamp", truth: "CASE WHEN credit IS NOT NULL THEN greatest(-5000, least(5000, credit)) END", kind: moneyKind, values: []string{"-5000", "-0.01", "0", "1234.56", "5000"}},
		{name: "grade", stored: "smallint", declared: "smallint", rules: "domain: {min: -3, max: 3}", kind: wholeKind, values: []string{"-3", "-1", "0", "2"}},
		{name: "agreed", stored: "boolean", declared: "boolean", kind: boolKind},
		noteColumn("remark"),
	}}
	orders := &table{name: "orders", named: "client_id", unit: "orders.client_id = client.client_id", bound: 30, kept: "t.client_id IS NOT NULL", keys: []string{"PRIMARY KEY (order_id)"}, columns: []column{
		{name: "order_id", stored: "bigint", declared: "bigint", rules: "keys: join", kind: keyKind},
		{name: "client_id", stored: "bigint REFERENCES public.client", declared: "bigint", rules: "keys: join", kind: keyKind},
		{name: "placed", stored: "timestamptz", declared: "timestamptz", rules: "domain: {min: 2024-03-29, max: 2024-04-02 23:00, step: 1 hour}", kind: zonedKind, values: []string{"'2024-03-31 00:00:00+00'", "'2024-03-31T01:00Z'", "'2024-04-01 00:00:00+00'"}},
		{name: "due", stored: "date", declared: "date", rules: "domain: {min: 2024-03-25, max: 2024-04-20}", kind: dateKind, values: []string{"'2024-03-31'", "'2024-04-01'", "'2024-04-20'"}},
		{name: "paid_on", stored: "date", declared: "date", rules: "domain: {min: 2024-03-25, max: 2024-05-31}", kind: dateKind, values: []string{"'2024-03-31'", "'2024-04-15'"}},
		{name: "state", stored: "text", declared: "text", rules: "domain: {values: ['', new, 'on hold', sent]}", kind: textKind, values: []string{"''", "'new'", "'on hold'", "'sent'"}},
		{name: "amount", stored: "numeric(12,2)", declared: "numeric(12,2)", rules: "domain: {min: -200, max: 1500, step: 0.05}", kind: moneyKind, values: []string{"-200", "0", "99.95", "1500"}},
		{name: "rush", stored: "boolean", declared: "boolean", kind: boolKind},
	}}
	of := "t.order_id IN (SELECT order_id FROM public.orders WHERE client_id IS NOT NULL)"
	line := &table{name: "line", named: "order_id", unit: "line.order_id = orders.order_id", bound: 60, kept: of, keys: []string{"PRIMARY KEY (line_id)"}, columns: []column{
		{name: "line_id", stored: "bigint", declared: "bigint", rules: "keys: join", kind: keyKind},
		{name: "order_id", stored: "bigint REFERENCES public.orders", declared: "bigint", rules: "keys: join", kind: keyKind},
		{name: "sku", stored: "varchar(8)", declared: "varchar(8)", rules: "domain: {values: [a-1, a-2, B-1, c_3]}", kind: textKind, values: []string{"'a-1'", "'B-1'", "'c_3'"}},
		{name: "pieces", stored: "integer", declared: "integer", rules: "domain: {min: -5, max: 20}", kind: wholeKind, values: []string{"-5", "0", "1", "20"}},
		{name: "price", stored: "numeric(10,2)", declared: "numeric(10,2)", rules: "domain: {min: 0, max: 20, step: 0.25}", kind: moneyKind, values: []string{"0", "0.25", "9.75", "20"}},
		{name: "weight", stored: "double precision", declared: "double precision", rules: "domain: {min: -1, max: 30, step: 0.5}", kind: realKind, values: []string{"-1", "0", "2.5", "30"}},
		{name: "packed", stored: "timestamp", declared: "timestamp", rules: "domain: {min: 2024-03-30 00:00, max: 2024-04-03 18:00, step: 6 hours}", kind: timeKind, values: []string{"'2024-03-31'", "'2024-03-31 06:00:00'", "'2024-04-01 12:00'"}},
	}}
	back := &table{name: "back", named: "line_id", unit: "back.line_id = line.line_id", bound: 30, kept: "t.line_id IN (SELECT l.line_id FROM public.line l JOIN public.orders o USING (order_id) WHERE o.client_id IS NOT NULL)", keys: []string{"PRIMARY KEY (back_id)"}, columns: []column{
		{name: "back_id", stored: "bigint", declared: "bigint", rules: "keys: join", kind: keyKind},
		{name: "line_id", stored: "bigint REFERENCES public.line", declared: "bigint", rules: "keys: join", kind: keyKind},
		{name: "why", stored: "char(3)", declared: "char(3)", rules: "domain: {values: [bad, no, ok]}", kind: textKind, values: []string{"'bad'", "'no'", "'ok '"}},
		{name: "pieces", stored: "smallint", declared: "smallint", rules: "domain: {min: 0, max: 9}", kind: wholeKind, values: []string{"0", "1", "9"}},
		{name: "refund", stored: "numeric(10,2)", declared: "numeric(10,2)", rules: "domain: {min: -10, max: 50, step: 0.5}", kind: moneyKind, values: []string{"-10", "0", "12.5"}},
	}}
	article := &table{name: "article", public: true, columns: []column{
		{name: "sku", stored: "varchar(8)", declared: "varchar(8)", kind: textKind, values: []string{"'a-1'", "'B-1'"}},
		{name: "family", stored: "text", declared: "text", kind: textKind, values: []string{"'paper'", "'ink'"}},
		{name: "cost", stored: "numeric(8,2)", declared: "numeric(8,2)", kind: moneyKind, values: []string{"0.5", "10"}},
	}, rows: [][]string{{"a-1", "paper", "0.50"}, {"a-2", "paper", "2.25"}, {"B-1", "ink", null}, {"d-4", "glue", "1.10"}, {"c_3", null, "9.99"}}}
	holiday := &table{name: "holiday", public: true, columns: []column{
		{name: "day", stored: "date", declared: "date", kind: dateKind, values: []string{"'2024-03-29'", "'2024-04-01'"}},
		{name: "name", stored: "text", declared: "text", kind: textKind, values: []string{"'Easter'", "'Good Friday'"}},
	}, rows: [][]string{{"2024-03-29", "Good Friday"}, {"2024-03-31", "Easter"}, {"2024-04-01", "Easter Monday"}, {"2024-05-01", null}}}
	or := func(text string) string {
		if d.chance(8) {
			return null
		}
		return text
	}
	made, lines, returned := 0, 0, 0
	for id := 0; id <= 170; id++ {
		n, who := d.few(0, 7), strconv.Itoa(id)
		switch {
		case id == 0:
			n, who = 12, null // of nobody
		case d.chance(40):
			n = 20 + d.IntN(11) // few have much
		}
		if id > 0 {
			credit := cents(d.IntN(1000001) - 500000)
			if d.chance(15) {
				credit = d.one("7500.01", "-99999.99", "0.00", "-0.01")
			}
			client.rows = append(client.rows, []string{who, or(d.one("private", "private", "small", "large")), or(d.one("A", "A", "AB", "B 1", "x_1", "Z%")), or(day("1999-12-27", d.IntN(378))), or(credit), or(strconv.Itoa(d.IntN(7) - 3)), or(d.one("t", "f")), d.note()})
		}
		for range n {
			made++
			hour := d.IntN(120)
			orders.rows = append(orders.rows, []string{strconv.Itoa(made), who, or(moment("2024-03-29 00:00:00", hour*3600) + "+00"), or(day("2024-03-25", hour/24+4+d.IntN(14))), or(day("2024-03-25", hour/24+d.few(0, 60))),
				or(d.one("new", "sent", "sent", "on hold", "")), or(cents(5 * (d.IntN(34001) - 4000))), or(d.one("t", "f", "f"))})
			for range d.few(0, 2) {
				lines++
				lineOf := strconv.Itoa(lines)
				line.rows = append(line.rows, []string{lineOf, strconv.Itoa(made), or(d.one("a-1", "a-1", "a-2", "B-1", "c_3")), or(strconv.Itoa(d.few(0, 25) - 5)), or(quarters(d.IntN(81))), or(halves(d.IntN(63) - 2)), or(moment("2024-03-30 00:00:00", 21600*d.IntN(20)))})
				for range d.few(0, 2) / 2 * d.few(0, 2) {
					returned++
					back.rows = append(back.rows, []string{fmt.Sprint(returned), lineOf, or(d.one("bad", "no", "ok")), or(strconv.Itoa(d.few(0, 9))), or(halves(d.IntN(121) - 20))})
				}
				if d.chance(6) {
					returned++
					back.rows = append(back.rows, []string{fmt.Sprint(returned), lineOf, or(d.one("bad", "bad", "no", "ok")), or(strconv.Itoa(d.few(0, 9))), or(halves(d.IntN(121) - 20))})
				}
			}
		}
	}
	return &schema{name: "trade", unit: "client.client_id", tables: []*table{client, orders, line, back, article, holiday}, before: []string{"CREATE TYPE size AS ENUM ('small', 'private', 'large')"}, replace: true,
		edges: []edge{
			{"orders", "client", [][2]string{{"client_id", "client_id"}}, true},
			{"line", "orders", [][2]string{{"order_id", "order_id"}}, true},
			{"back", "line", [][2]string{{"line_id", "line_id"}}, true},
			{"line", "article", [][2]string{{"sku", "sku"}}, true},
			{"orders", "holiday", [][2]string{{"due", "day"}}, false},
		}}
}

package truth

import (
	"fmt"
	"strconv"
	"time"
)

// day is a date some days after another, as SQL writes it.
func day(from string, days int) string {
	d, err := time.Parse("2006-01-02", from)
	if err != nil {
		panic(err)
	}
	return d.AddDate(0, 0, days).Format("2006-01-02")
}

// halves is a price of whole halves.
func halves(n int) string { return strconv.FormatFloat(float64(n)/2, 'f', 2, 64) }

// shop is an order shop: customers whom others referred, orders of some of them and of guests, lines with a composite
// key, returns of lines, and a public catalogue.
func shop(seed uint64) *schema {
	d := newDice(seed, 1)
	customer := &table{name: "customer", named: "customer_id", bound: 1, keys: []string{"PRIMARY KEY (customer_id)"}, columns: []column{
		{name: "customer_id", stored: "integer", declared: "integer", rules: "keys: join", kind: keyKind},
		{name: "tier", stored: "char(6)", declared: "char(6)", rules: "domain: {values: [bronze, gold, silver]}", kind: textKind, values: []string{"'gold'", "'bronze'", "'none'"}},
		{name: "country", stored: "varchar(2)", declared: "varchar(2)", rules: "domain: {values: [at, ch, de, fr, xx]}", kind: textKind, values: []string{"'at'", "'de'", "'xx'", "'zz'"}},
		{name: "referred_by", stored: "integer REFERENCES public.customer", declared: "integer", rules: "domain: {min: 1, max: 150}", kind: wholeKind, values: []string{"1", "75", "150"}},
		{name: "joined", stored: "date", declared: "date", rules: "domain: {min: 2020-01-01, max: 2023-12-31}", kind: dateKind, values: []string{"'2020-01-01'", "'2021-06-15'", "'2023-12-31'"}},
		{name: "balance", stored: "numeric(15,2)", declared: "numeric(15,2)", rules: "domain: {min: -100, max: 500, step: 0.5}, outside: clamp", truth: "greatest(-100, least(500, balance))", kind: moneyKind, values: []string{"-100", "0", "120.25", "500"}},
		{name: "newsletter", stored: "boolean", declared: "boolean", kind: boolKind},
		placeColumn("city"),
	}}
	for id := 1; id <= 150; id++ {
		referred, tier, letter := null, d.one("bronze", "bronze", "bronze", "silver", "silver", "gold"), d.one("t", "f", null)
		if id > 5 && !d.chance(3) {
			referred = strconv.Itoa(1 + d.IntN(id-1))
		}
		if d.chance(20) {
			tier = null
		}
		balance := halves(d.IntN(1200) - 200)
		if d.chance(25) {
			balance = d.one("9000.00", "-700.50")
		}
		customer.rows = append(customer.rows, []string{strconv.Itoa(id), tier, d.one("at", "ch", "de", "de", "de", "fr"), referred, day("2020-01-01", d.IntN(1461)), balance, letter, d.place(id)})
	}
	orders := &table{name: "orders", named: "customer_id", unit: "orders.customer_id = customer.customer_id", bound: 8, kept: "t.customer_id IS NOT NULL",
		keys: []string{"PRIMARY KEY (order_id)"}, columns: []column{
			{name: "order_id", stored: "integer", declared: "integer", rules: "keys: join", kind: keyKind},
			{name: "customer_id", stored: "integer REFERENCES public.customer", declared: "integer", rules: "keys: join", kind: keyKind},
			{name: "status", stored: "char(1)", declared: "text", rules: "domain: {values: [F, O, P]}", truth: "CASE WHEN status NOT IN ('F', 'O', 'P') THEN 'other' ELSE status::text END", kind: textKind, values: []string{"'F'", "'O'", "'P'", "'other'"}},
			{name: "channel", stored: "text", declared: "text", rules: "domain: {values: [phone, shop, web, partner]}", kind: textKind, values: []string{"'web'", "'shop'", "'phone'", "'partner'"}},
			{name: "total", stored: "numeric(15,2)", declared: "numeric(15,2)", rules: "domain: {min: 0, max: 800, step: 0.5}", kind: moneyKind, values: []string{"0", "99.5", "250", "799.5", "801"}},
			{name: "placed", stored: "date", declared: "date", rules: "domain: {min: 2023-01-01, max: 2023-06-30}", kind: dateKind, values: []string{"'2023-01-01'", "'2023-02-14'", "'2023-03-31'", "'2023-06-30'", "'2024-01-01'"}},
			{name: "shipped", stored: "date", declared: "date", rules: "domain: {min: 2023-01-01, max: 2023-09-30}", kind: dateKind, values: []string{"'2023-02-28'", "'2023-06-30'"}},
			{name: "priority", stored: "smallint", declared: "smallint", rules: "domain: {min: 1, max: 5}", kind: wholeKind, values: []string{"1", "3", "5", "6"}},
			{name: "paid", stored: "boolean", declared: "boolean", kind: boolKind},
			noteColumn("note"),
			placeColumn("campaign"),
		}}
	lineitem := &table{name: "lineitem", named: "order_id", unit: "lineitem.order_id = orders.order_id", bound: 32, kept: "t.order_id IN (SELECT order_id FROM public.orders WHERE customer_id IS NOT NULL)",
		keys: []string{"PRIMARY KEY (order_id, line_no)"}, columns: []column{
			{name: "order_id", stored: "integer REFERENCES public.orders", declared: "integer", rules: "keys: join", kind: keyKind},
			{name: "line_no", stored: "integer", declared: "integer", rules: "domain: {min: 1, max: 4}", kind: wholeKind, values: []string{"1", "2", "4"}},
			{name: "product_id", stored: "integer REFERENCES public.product", declared: "integer", rules: "domain: {min: 1, max: 30}", kind: wholeKind, values: []string{"1", "15", "30"}},
			{name: "quantity", stored: "integer", declared: "integer", rules: "domain: {min: 1, max: 20}", kind: wholeKind, values: []string{"1", "5", "20"}},
			{name: "price", stored: "numeric(15,2)", declared: "numeric(15,2)", rules: "domain: {min: 0, max: 100, step: 0.5}", kind: moneyKind, values: []string{"0.5", "20", "45.5", "100"}},
			{name: "discount", stored: "numeric(4,2)", declared: "numeric(4,2)", rules: "domain: {min: 0, max: 0.1, step: 0.05}", kind: moneyKind, values: []string{"0", "0.05", "0.1"}},
			{name: "flag", stored: "char(1)", declared: "text", rules: "domain: {values: [A, N, R]}", kind: textKind, values: []string{"'A'", "'N'", "'R'"}},
			{name: "due", stored: "date", declared: "date", rules: "domain: {min: 2023-01-01, max: 2023-09-30}", kind: dateKind, values: []string{"'2023-03-01'", "'2023-06-01'"}},
			{name: "received", stored: "date", declared: "date", rules: "domain: {min: 2023-01-01, max: 2023-10-31}", kind: dateKind, values: []string{"'2023-03-01'", "'2023-06-01'"}},
		}}
	returns := &table{name: "returned", named: "order_id", unit: "returned.order_id = orders.order_id", bound: 16, kept: "t.order_id IN (SELECT order_id FROM public.orders WHERE customer_id IS NOT NULL)",
		keys: []string{"PRIMARY KEY (return_id)", "FOREIGN KEY (order_id, line_no) REFERENCES public.lineitem"}, columns: []column{
			{name: "return_id", stored: "integer", declared: "integer", rules: "keys: join", kind: keyKind},
			{name: "order_id", stored: "integer", declared: "integer", rules: "keys: join", kind: keyKind},
			{name: "line_no", stored: "integer", declared: "integer", rules: "domain: {min: 1, max: 4}", kind: wholeKind, values: []string{"1", "3"}},
			{name: "reason", stored: "text", declared: "text", rules: "domain: {values: [broken, late, other, 'wrong item']}", kind: textKind, values: []string{"'broken'", "'late'", "'wrong item'"}},
			{name: "refund", stored: "numeric(15,2)", declared: "numeric(15,2)", rules: "domain: {min: 0, max: 200, step: 0.5}", kind: moneyKind, values: []string{"0", "33.5", "200"}},
		}}
	product := &table{name: "product", public: true, keys: []string{"PRIMARY KEY (product_id)"}, columns: []column{
		{name: "product_id", stored: "integer", declared: "integer", kind: wholeKind, values: []string{"1", "15"}},
		{name: "category", stored: "text", declared: "text", kind: textKind, values: []string{"'toys'", "'books'"}},
		{name: "list_price", stored: "numeric(15,2)", declared: "numeric(15,2)", kind: moneyKind, values: []string{"10", "50"}},
	}}
	for id := 1; id <= 30; id++ {
		product.rows = append(product.rows, []string{strconv.Itoa(id), []string{"toys", "books", "garden", "food"}[id%4], halves(id * 7)})
	}
	order, back := 0, 0
	for id := 0; id <= 150; id++ {
		n := d.few(0, 8)
		if id == 0 {
			n = 30 // guests
		}
		for range n {
			order++
			who, placed, shipped, status := strconv.Itoa(id), d.IntN(181), null, d.one("F", "F", "O", "P")
			if id == 0 {
				who = null
			}
			if status != "O" {
				shipped = day("2023-01-01", placed+d.few(0, 40))
			}
			if d.chance(30) {
				status = "X"
			}
			orders.rows = append(orders.rows, []string{strconv.Itoa(order), who, status, d.one("web", "web", "web", "shop", "phone"), halves(d.few(0, 1600)),
				day("2023-01-01", placed), shipped, strconv.Itoa(1 + d.IntN(5)), d.one("t", "t", "f", null), d.note(), d.place(id)})
			for line := 1; line <= 1+d.few(0, 3); line++ {
				received := null
				if shipped != null && !d.chance(6) {
					received = day(shipped, d.few(0, 30))
				}
				lineitem.rows = append(lineitem.rows, []string{strconv.Itoa(order), strconv.Itoa(line), strconv.Itoa(1 + d.few(0, 29)), strconv.Itoa(1 + d.few(0, 19)), halves(1 + d.IntN(200)),
					d.one("0", "0", "0.05", "0.10"), d.one("A", "N", "N", "R"), day("2023-01-01", placed+14), received})
				if d.chance(8) {
					back++
					returns.rows = append(returns.rows, []string{fmt.Sprint(back), strconv.Itoa(order), strconv.Itoa(line), d.one("broken", "late", "wrong item", "other", null), halves(d.IntN(400))})
				}
			}
		}
	}
	return &schema{name: "shop", unit: "customer.customer_id",
		tables: []*table{product, customer, orders, lineitem, returns},
		edges: []edge{
			{"orders", "customer", [][2]string{{"customer_id", "customer_id"}}, true},
			{"lineitem", "orders", [][2]string{{"order_id", "order_id"}}, true},
			{"returned", "orders", [][2]string{{"order_id", "order_id"}}, true},
			{"returned", "lineitem", [][2]string{{"order_id", "order_id"}, {"line_no", "line_no"}}, true},
			{"lineitem", "product", [][2]string{{"product_id", "product_id"}}, true},
		}}
}

package truth

import (
	"strconv"
	"time"
)

// moment is a timestamp some seconds after another, as SQL writes it.
func moment(from string, seconds int) string {
	at, err := time.Parse("2006-01-02 15:04:05", from)
	if err != nil {
		panic(err)
	}
	return at.Add(time.Duration(seconds) * time.Second).Format("2006-01-02 15:04:05")
}

// cents is a price.
func cents(n int) string { return strconv.FormatFloat(float64(n)/100, 'f', 2, 64) }

// rental is a film rental: rentals and payments each name the customer, a payment its rental by that one's primary key;
// the films, their copies and categories are public; sales is a view over all of it.
func rental(seed uint64) *schema {
	d := newDice(seed, 2)
	customer := &table{name: "customer", named: "customer_id", bound: 1, keys: []string{"PRIMARY KEY (customer_id)"}, columns: []column{
		{name: "customer_id", stored: "integer", declared: "integer", rules: "keys: join", kind: keyKind},
		{name: "store_id", stored: "smallint", declared: "smallint", rules: "domain: {min: 1, max: 3}", kind: wholeKind, values: []string{"1", "2", "3"}},
		{name: "active", stored: "boolean NOT NULL", declared: "boolean", rules: "nulls: exclude", kind: boolKind},
		{name: "create_date", stored: "date NOT NULL", declared: "date", rules: "domain: {min: 2005-01-01, max: 2006-12-31}", kind: dateKind, values: []string{"'2005-01-01'", "'2005-09-30'", "'2006-02-14'"}},
		{name: "city", stored: "varchar(50)", declared: "varchar(50)", rules: "domain: {values: [Bern, Lethbridge, 'Sao Paulo', Woodridge]}", truth: "CASE WHEN city NOT IN ('Bern', 'Lethbridge', 'Sao Paulo', 'Woodridge') THEN 'other' ELSE city END::varchar(50)",
			kind: textKind, values: []string{"'Bern'", "'Sao Paulo'", "'Woodridge'", "'other'"}},
	}}
	rentals := &table{name: "rental", named: "customer_id", unit: "rental.customer_id = customer.customer_id", bound: 12, keys: []string{"PRIMARY KEY (rental_id)"}, columns: []column{
		{name: "rental_id", stored: "integer", declared: "integer", rules: "keys: join", kind: keyKind},
		{name: "customer_id", stored: "integer NOT NULL REFERENCES public.customer", declared: "integer", rules: "keys: join", kind: keyKind},
		{name: "inventory_id", stored: "integer", declared: "integer", rules: "domain: {min: 1, max: 60}", kind: wholeKind, values: []string{"1", "30", "60"}},
		{name: "rental_date", stored: "timestamp", declared: "timestamp", rules: "domain: {min: 2005-05-01, max: 2005-08-31 23:00, step: 1 hour}", kind: timeKind, step: "date_trunc('hour', %s)", values: []string{"'2005-05-01'", "'2005-06-15 12:00:00'", "'2005-07-01 00:00:00'", "'2005-08-01 10:30:15'"}},
		{name: "return_date", stored: "timestamp", declared: "timestamp", rules: "domain: {min: 2005-05-01, max: 2005-09-30 23:00, step: 1 hour}", kind: timeKind, step: "date_trunc('hour', %s)", values: []string{"'2005-06-01'", "'2005-07-15 18:00:00'"}},
		{name: "staff_id", stored: "smallint", declared: "smallint", rules: "domain: {min: 1, max: 2}", kind: wholeKind, values: []string{"1", "2"}},
	}}
	payment := &table{name: "payment", named: "customer_id", unit: "payment.customer_id = customer.customer_id", bound: 14, keys: []string{"PRIMARY KEY (payment_id)"}, columns: []column{
		{name: "payment_id", stored: "integer", declared: "integer", rules: "keys: join", kind: keyKind},
		{name: "customer_id", stored: "integer NOT NULL REFERENCES public.customer", declared: "integer", rules: "keys: join", kind: keyKind},
		{name: "rental_id", stored: "integer REFERENCES public.rental", declared: "integer", rules: "keys: join", kind: keyKind},
		{name: "amount", stored: "numeric(5,2)", declared: "numeric(5,2)", rules: "domain: {min: 0, max: 12, step: 0.01}", kind: moneyKind, values: []string{"0", "0.99", "4.99", "11.99", "5"}},
		{name: "payment_date", stored: "timestamp", declared: "timestamp", rules: "domain: {min: 2005-05-01, max: 2005-09-30 23:00, step: 1 hour}", kind: timeKind, step: "date_trunc('hour', %s)", values: []string{"'2005-06-01'", "'2005-07-15 18:00:00'"}},
	}}
	visit := &table{name: "visit", named: "customer_id", unit: "visit.customer_id = customer.customer_id", bound: 5, rank: "nth", kept: "t.nth <= 5",
		keys: []string{"UNIQUE (customer_id, nth)", "CHECK (nth >= 1)", "CHECK (nth IS NULL OR customer_id IS NOT NULL)"}, index: "(nth) WHERE nth > 5 OR nth IS NULL", columns: []column{
			{name: "customer_id", stored: "integer", declared: "integer", rules: "keys: join", kind: keyKind},
			{name: "nth", stored: "bigint", unlisted: true},
			{name: "store_id", stored: "smallint", declared: "smallint", rules: "domain: {min: 1, max: 3}", kind: wholeKind, values: []string{"1", "2", "3"}},
			{name: "minutes", stored: "integer", declared: "integer", rules: "domain: {min: 0, max: 120}, outside: clamp", truth: "CASE WHEN minutes IS NOT NULL THEN greatest(0, least(120, minutes)) END", kind: wholeKind, values: []string{"0", "10", "60", "120"}},
			{name: "came", stored: "date", declared: "date", rules: "domain: {min: 2005-05-01, max: 2005-08-31}", kind: dateKind, values: []string{"'2005-05-01'", "'2005-07-15'"}},
			{name: "happy", stored: "boolean", declared: "boolean", kind: boolKind},
			placeColumn("voucher"),
			noteColumn("said"),
		}}
	film := &table{name: "film", public: true, keys: []string{"PRIMARY KEY (film_id)"}, columns: []column{
		{name: "film_id", stored: "integer", declared: "integer", kind: wholeKind, values: []string{"1", "10"}},
		{name: "rating", stored: "text", declared: "text", kind: textKind, values: []string{"'PG'", "'R'"}},
		{name: "length", stored: "smallint", declared: "smallint", kind: wholeKind, values: []string{"60", "120"}},
		{name: "rental_rate", stored: "numeric(4,2)", declared: "numeric(4,2)", kind: moneyKind, values: []string{"0.99", "2.99"}},
	}}
	inventory := &table{name: "inventory", public: true, keys: []string{"PRIMARY KEY (inventory_id)"}, columns: []column{
		{name: "inventory_id", stored: "integer", declared: "integer", kind: wholeKind, values: []string{"1", "30"}},
		{name: "film_id", stored: "integer", declared: "integer", kind: wholeKind, values: []string{"1", "10"}},
	}}
	category := &table{name: "film_category", public: true, columns: []column{
		{name: "film_id", stored: "integer", declared: "integer", kind: wholeKind, values: []string{"1", "10"}},
		{name: "category", stored: "text", declared: "text", kind: textKind, values: []string{"'Action'", "'Drama'"}},
	}}
	for id := 1; id <= 20; id++ {
		film.rows = append(film.rows, []string{strconv.Itoa(id), []string{"G", "PG", "R", null}[id%4], strconv.Itoa(50 + id*5), []string{"0.99", "2.99", "4.99"}[id%3]})
		category.rows = append(category.rows, []string{strconv.Itoa(id), []string{"Action", "Drama", "Comedy"}[id%3]})
		if id%5 == 0 { // some films are in two categories
			category.rows = append(category.rows, []string{strconv.Itoa(id), "Family"})
		}
	}
	for id := 1; id <= 60; id++ {
		inventory.rows = append(inventory.rows, []string{strconv.Itoa(id), strconv.Itoa(1 + id%20)})
	}
	rented, paid := 0, 0
	for id := 1; id <= 250; id++ {
		customer.rows = append(customer.rows, []string{strconv.Itoa(id), strconv.Itoa(1 + d.few(0, 2)), d.one("t", "t", "t", "f"), day("2005-01-01", d.IntN(700)), d.one("Bern", "Lethbridge", "Lethbridge", "Sao Paulo", "Aarhus", null)})
		for nth := range d.IntN(9) {
			visit.rows = append(visit.rows, []string{strconv.Itoa(id), strconv.Itoa(nth + 1), d.one("1", "1", "2", "3", null), d.one("0", "10", "60", "90", "121", "-3", null), day("2005-05-01", d.IntN(120)), d.one("t", "f", null), d.place(id), d.note()})
		}
		if d.chance(9) { // nobody has numbered it yet, or nobody knows who came
			visit.rows = append(visit.rows, []string{d.one(strconv.Itoa(id), null), null, "1", "10", "2005-06-01", "t", "Bern", "so late"})
		}
		for range d.few(0, 12) {
			rented++
			out := d.IntN(100 * 86400)
			back := null
			if !d.chance(8) {
				back = moment("2005-05-01 00:00:00", out+d.IntN(10*86400))
			}
			rentals.rows = append(rentals.rows, []string{strconv.Itoa(rented), strconv.Itoa(id), strconv.Itoa(1 + d.IntN(60)), moment("2005-05-01 00:00:00", out), back, d.one("1", "2", "2")})
			if !d.chance(10) {
				paid++
				payment.rows = append(payment.rows, []string{strconv.Itoa(paid), strconv.Itoa(id), strconv.Itoa(rented), d.one("0.99", "2.99", "2.99", "4.99", "11.99", cents(d.IntN(1200))), moment("2005-05-01 00:00:00", out+d.IntN(86400))})
			}
		}
		if d.chance(6) { // a fee that belongs to no rental
			paid++
			payment.rows = append(payment.rows, []string{strconv.Itoa(paid), strconv.Itoa(id), null, "5.00", moment("2005-05-01 00:00:00", d.IntN(100*86400))})
		}
	}
	sales := &table{name: "sales", source: "SELECT p.amount, p.payment_date, r.staff_id, r.inventory_id, c.store_id, c.active FROM payment p JOIN rental r ON r.rental_id = p.rental_id AND r.customer_id = p.customer_id JOIN customer c ON c.customer_id = p.customer_id",
		columns: []column{payment.columns[3], payment.columns[4], rentals.columns[5], rentals.columns[2], customer.columns[1], customer.columns[2]}}
	return &schema{name: "rental", unit: "customer.customer_id", tables: []*table{customer, rentals, payment, visit, film, inventory, category, sales},
		edges: []edge{
			{"rental", "customer", [][2]string{{"customer_id", "customer_id"}}, true},
			{"payment", "customer", [][2]string{{"customer_id", "customer_id"}}, true},
			{"visit", "customer", [][2]string{{"customer_id", "customer_id"}}, true},
			{"payment", "rental", [][2]string{{"rental_id", "rental_id"}}, false},
			{"payment", "rental", [][2]string{{"rental_id", "rental_id"}, {"customer_id", "customer_id"}}, true},
			{"rental", "inventory", [][2]string{{"inventory_id", "inventory_id"}}, true},
			{"inventory", "film", [][2]string{{"film_id", "film_id"}}, true},
			{"film", "film_category", [][2]string{{"film_id", "film_id"}}, true},
			{"sales", "inventory", [][2]string{{"inventory_id", "inventory_id"}}, true},
		}}
}

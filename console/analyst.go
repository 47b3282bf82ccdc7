package console

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// The analyst's pages. What they show is what a session of hers is answered, in the words of the wire.

// home leads to where she has something to do.
func (r *request) home() {
	switch open := r.datasets(); {
	case len(open) > 0:
		http.Redirect(r.out, r.Request, "/data/"+escaped(open[0])+"/tables", http.StatusSeeOther)
	case r.owner():
		http.Redirect(r.out, r.Request, "/owner", http.StatusSeeOther)
	default:
		r.fail(http.StatusForbidden, "No dataset is open to this user.")
	}
}

// talk opens a session of hers in the page's dataset. Where there is none it answers, and returns nil.
func (r *request) talk(settings map[string]string) *talk {
	t, err := converse(r.ctx, r.session.who.Dial(), r.user(), r.PathValue("dataset"), settings)
	if err != nil {
		r.refused(err)
		return nil
	}
	return t
}

// refused shows what a session was answered in the place of rows.
func (r *request) refused(err error) {
	status, told := http.StatusForbidden, &message{}
	if !errors.As(err, &told) {
		r.console.Log.Debug("console: session", "error", err)
		status, told = http.StatusServiceUnavailable, &message{Severity: "ERROR", Message: "the proxy does not answer"}
	}
	if told.Code == "3D000" {
		status = http.StatusNotFound
	}
	r.show(status, "message", "Not possible", "", *told)
}

// tablesView is the page of a dataset's tables.
type tablesView struct{ Tables []tableView }

type tableView struct {
	Name, Example       string
	Public              bool
	Unit, Rows, PerUnit string
	Columns             []columnView
}

type columnView struct{ Name, Type, Domain, Nulls, Outside string }

func (r *request) tables() {
	t := r.talk(nil)
	if t == nil {
		return
	}
	defer t.close()
	tables, err := t.ask("SELECT table_schema, table_name, public, unit, expected_rows, max_rows_per_unit FROM dp.tables ORDER BY 1, 2")
	if err != nil {
		r.refused(err)
		return
	}
	columns, err := t.ask("SELECT table_schema, table_name, column_name, data_type, domain, nulls, outside FROM dp.columns")
	if err != nil {
		r.refused(err)
		return
	}
	var v tablesView
	at := map[string]int{}
	for _, row := range tables.Rows {
		name := identifier(row[1].Text)
		if row[0].Text != "public" {
			name = identifier(row[0].Text) + "." + name
		}
		at[row[0].Text+"\x00"+row[1].Text] = len(v.Tables)
		v.Tables = append(v.Tables, tableView{Name: name, Example: "SELECT count(*) FROM " + name, Public: row[2].Text == "t", Unit: row[3].Text, Rows: row[4].Text, PerUnit: row[5].Text})
	}
	for _, row := range columns.Rows {
		if i, ok := at[row[0].Text+"\x00"+row[1].Text]; ok {
			v.Tables[i].Columns = append(v.Tables[i].Columns, columnView{identifier(row[2].Text), row[3].Text, row[4].Text, row[5].Text, row[6].Text})
		}
	}
	r.show(http.StatusOK, "tables", "Tables", "tables", v)
}

// identifier quotes a name where SQL needs that.
func identifier(name string) string {
	plain := name != "" && (name[0] < '0' || name[0] > '9')
	for _, c := range name {
		plain = plain && (c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9')
	}
	if plain {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// question is what she has written into the statement box.
type question struct {
	SQL                           string
	Epsilon, MaxError, Confidence string
	NoBounds                      bool
}

// maxStatement is the longest statement that the box takes; the wire takes longer ones.
const maxStatement = 64 << 10

func (r *request) question() (q question, ok bool) {
	q = question{SQL: strings.TrimSpace(strings.ReplaceAll(r.PostFormValue("sql"), "\r\n", "\n")), Epsilon: strings.TrimSpace(r.PostFormValue("epsilon")),
		MaxError: strings.TrimSpace(r.PostFormValue("max_error")), Confidence: strings.TrimSpace(r.PostFormValue("confidence")), NoBounds: r.PostFormValue("bounds") == ""}
	if wrong := badText(q); wrong != "" {
		r.show(http.StatusBadRequest, "ask", "Ask", "ask", askView{Question: q, Wrong: &message{Severity: "ERROR", Message: wrong}})
		return q, false
	}
	return q, true
}

func badText(q question) string {
	for _, text := range []string{q.SQL, q.Epsilon, q.MaxError, q.Confidence} {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return "What was sent is no text."
		}
	}
	switch {
	case q.SQL == "":
		return "There is no statement yet."
	case len(q.SQL) > maxStatement:
		return "The statement has more than 64 KiB: psql takes longer ones."
	}
	return ""
}

// settings are what a session of hers starts with for a question.
func (q question) settings() map[string]string {
	s := map[string]string{"dp.digits": "significant"}
	for name, value := range map[string]string{"dp.epsilon": q.Epsilon, "dp.max_error": q.MaxError, "dp.confidence": q.Confidence} {
		if value != "" {
			s[name] = value
		}
	}
	if !q.NoBounds {
		s["dp.error_columns"] = "on"
	}
	return s
}

// askView is the statement box, and what came of it: a price to be confirmed, an answer, or what is wrong.
type askView struct {
	Question question
	Price    *price
	Changed  string // the price that she was shown before this one
	Answer   *answerView
	Wrong    *message
}

func (r *request) askPage() {
	r.show(http.StatusOK, "ask", "Ask", "ask", askView{})
}

// ask shows the price.
func (r *request) ask() {
	q, ok := r.question()
	if !ok {
		return
	}
	t, p, ok := r.priced(q, q.settings())
	if !ok {
		return
	}
	defer t.close()
	r.show(http.StatusOK, "ask", "Ask", "ask", askView{Question: q, Price: &p})
}

// priced opens a session and asks it what a statement would cost; false means it was refused, and the page shows why.
func (r *request) priced(q question, settings map[string]string) (*talk, price, bool) {
	t, err := converse(r.ctx, r.session.who.Dial(), r.user(), r.PathValue("dataset"), settings)
	if err != nil {
		r.wrong(q, err)
		return nil, price{}, false
	}
	p, err := priceOf(t, q.SQL)
	if err != nil {
		t.close()
		r.wrong(q, err)
		return nil, price{}, false
	}
	return t, p, true
}

// wrong shows the box again, with what a session was answered.
func (r *request) wrong(q question, err error) {
	var told *message
	if !errors.As(err, &told) || told.Code == "3D000" {
		r.refused(err)
		return
	}
	r.show(http.StatusOK, "ask", "Ask", "ask", askView{Question: q, Wrong: told})
}

// buy has a statement answered whose price she has seen. Where it has changed since, the new one is shown in the place
// of an answer: the price is asked for again, and the session then refuses what costs more, if it changes between the
// two.
func (r *request) buy() {
	q, ok := r.question()
	if !ok {
		return
	}
	seen, amount := r.PostFormValue("cost"), r.PostFormValue("amount")
	if badText(question{SQL: "x", Epsilon: seen, MaxError: amount}) != "" || seen == "" || amount == "" {
		r.show(http.StatusBadRequest, "ask", "Ask", "ask", askView{Question: q, Wrong: &message{Severity: "ERROR", Message: "No price was confirmed."}})
		return
	}
	settings := q.settings()
	settings["dp.max_cost"] = amount
	t, p, ok := r.priced(q, settings)
	if !ok {
		return
	}
	defer t.close()
	if p.Cost != seen && !p.Free {
		r.show(http.StatusConflict, "ask", "Ask", "ask", askView{Question: q, Price: &p, Changed: seen})
		return
	}
	a, err := t.ask(q.SQL)
	var told *message
	if errors.As(err, &told) && told.Code == "53400" && strings.Contains(told.Message, "dp.max_cost") && strings.HasSuffix(told.Message, "; nothing was charged") {
		if p, err = priceOf(t, q.SQL); err == nil {
			r.show(http.StatusConflict, "ask", "Ask", "ask", askView{Question: q, Price: &p, Changed: seen})
			return
		}
	}
	if err != nil {
		r.wrong(q, err)
		return
	}
	shown := viewOf(a)
	r.show(http.StatusOK, "ask", "Ask", "ask", askView{Question: q, Answer: &shown})
}

// balanceView is her account.
type balanceView struct {
	Budget, Charges, Releases answerView
	Left                      []share
}

// share is how much of a budget is spent, for a bar.
type share struct {
	Name, Left, Of string
	Spent          string // in hundredths of the bar's width
}

func (r *request) balance() {
	t := r.talk(nil)
	if t == nil {
		return
	}
	defer t.close()
	var parts [3]answer
	for i, sql := range []string{
		"SELECT * FROM dp.budget ORDER BY 1, 3",
		"SELECT * FROM dp.charges ORDER BY 1 DESC LIMIT 200",
		"SELECT * FROM dp.releases ORDER BY paid DESC, 1 LIMIT 500",
	} {
		a, err := t.ask(sql)
		if err != nil {
			r.refused(err)
			return
		}
		parts[i] = a
	}
	if u := r.policy.User(r.user()); u != nil && u.Admin { // to whom dp.budget and dp.charges show everybody's
		own := r.user()
		if d := r.policy.Dataset(r.PathValue("dataset")); d != nil {
			own = d.Holder(own)
		}
		parts[0].keep(0, own)
		parts[1].keep(2, r.user())
	}
	r.show(http.StatusOK, "balance", "Balance", "balance", balanceView{Budget: viewOf(parts[0]), Charges: viewOf(parts[1]), Releases: viewOf(parts[2]), Left: shares(parts[0])})
}

// keep leaves the rows that have a value in a column.
func (a *answer) keep(at int, value string) {
	a.Rows = slices.DeleteFunc(a.Rows, func(row []cell) bool { return row[at].Text != value })
}

// shares are the bars of dp.budget's rows: what is left of each account.
func shares(budget answer) (bars []share) {
	for _, row := range budget.Rows {
		if len(row) < 6 {
			return nil
		}
		spent, okSpent := numberOf(row[3])
		whole, okWhole := numberOf(row[4])
		if !okSpent || !okWhole || whole <= 0 {
			continue
		}
		unit := "ε"
		if strings.HasSuffix(row[2].Text, "zcdp") || strings.HasSuffix(row[2].Text, "ρ") {
			unit = "ρ"
		}
		bars = append(bars, share{Name: row[0].Text, Left: unit + " " + row[5].Text, Of: row[4].Text, Spent: percentOf(spent / whole)})
	}
	return bars
}

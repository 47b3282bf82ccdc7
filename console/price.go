package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// price is what EXPLAIN (ALTERNATIVES, FORMAT JSON) says of a statement, as a page shows it.
type price struct {
	Cost         string // as it is charged: "ε 0.1"
	Amount       string // as dp.max_cost takes it
	Free         bool
	Balance      string // after it
	AsOf, ReadAs string
	Confidence   float64
	Leaves       []pricedLeaf
	Columns      []pricedColumn
	Alternatives []pricedWay
	Notes        []string
}

type pricedLeaf struct {
	Table     string
	Kind      string
	Source    string `json:"Answered From"`
	Mechanism string
	Why       string
	Cost      string
	Errors    []string `json:"Expected Error"`
	Query     string
}

type pricedColumn struct {
	Name, Type string
	Error      string `json:"Expected Error"`
}

type pricedWay struct {
	Leaf, Kind string
	Name       string `json:"Measure"`
	Cost       string
	Error      string `json:"Expected Error"`
	Taken      bool
	Why        string
}

// explaining stands before a statement of which the price is asked.
const explaining = "EXPLAIN (ALTERNATIVES, FORMAT JSON) "

// priceOf asks for the price of a statement. Nothing is charged by it, whatever the statement is.
func priceOf(t *talk, statement string) (price, error) {
	a, err := t.ask(explaining + statement)
	var told *message
	if errors.As(err, &told) && told.Position > len(explaining) {
		moved := *told
		moved.Position -= len(explaining)
		return price{}, &moved
	}
	if err != nil {
		return price{}, err
	}
	var text strings.Builder
	for _, row := range a.Rows {
		text.WriteString(row[0].Text)
	}
	var plans []struct {
		Plan struct {
			Cost         string
			Total        json.Number    `json:"Total Cost"`
			Balance      string         `json:"Balance After"`
			AsOf         string         `json:"Rows As Of"`
			ReadAs       string         `json:"Read As"`
			Plans        []pricedLeaf   `json:"Plans"`
			Columns      []pricedColumn `json:"Columns"`
			Alternatives []pricedWay    `json:"Alternatives"`
			Confidence   float64
			Notes        []string
		}
	}
	if err := json.Unmarshal([]byte(text.String()), &plans); err != nil || len(plans) != 1 {
		return price{}, fmt.Errorf("console: EXPLAIN cannot be read: %w", err)
	}
	p := plans[0].Plan
	return price{Cost: p.Cost, Amount: p.Total.String(), Free: p.Cost == "nothing", Balance: p.Balance, AsOf: p.AsOf, ReadAs: p.ReadAs,
		Confidence: p.Confidence, Leaves: p.Plans, Columns: p.Columns, Alternatives: p.Alternatives, Notes: p.Notes}, nil
}

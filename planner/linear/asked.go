package linear

// Asked is what is asked of a query's cells: Counted, *Chosen or *ThresholdColumn, and nothing else. Of
//
//	SELECT count(*), percentile_disc(0.5) WITHIN GROUP (ORDER BY age), bool_or(age > 100) FROM people
//
// the first column is counted, the second is chosen, and the third, where dp.alarms is on, compared with a threshold:
// three queries, whose answers one leaf shows. A package tells the kinds apart in one type switch, which names all of
// them.
type Asked interface {
	// ShownBy is the index of the leaf that shows the answer, of a query that was made for leaf own.
	ShownBy(own int) int
	asked()
}

// Counted asks for the rows and sums in the cells. Where only an order of them is shown, they need not be counted.
type Counted struct {
	First int   // above 0: the numbers of so many cells with the most rows will do
	TopK  *TopK // set: the names of the first candidates will do
}

// Ranked reports whether an order will do.
func (c Counted) Ranked() bool { return c.First > 0 || c.TopK != nil }

// ShownBy is the leaf that the query was made for.
func (Counted) ShownBy(own int) int { return own }

// ShownBy is the leaf of the question whose aggregate chooses.
func (c *Chosen) ShownBy(int) int { return c.Leaf }

// ShownBy is the leaf of the question whose comparison it is.
func (c *ThresholdColumn) ShownBy(int) int { return c.Leaf }

func (Counted) asked()          {}
func (*Chosen) asked()          {}
func (*ThresholdColumn) asked() {}

// Counted is what a query asks that counts; Chosen and Threshold are the like. Only who has told kinds apart may ask.
func (s *Query) Counted() Counted { return s.Asked.(Counted) }

// Chosen is what a query asks that chooses.
func (s *Query) Chosen() *Chosen { return s.Asked.(*Chosen) }

// Threshold is what a query asks that compares.
func (s *Query) Threshold() *ThresholdColumn { return s.Asked.(*ThresholdColumn) }

// Chooses and Compares are for what concerns one kind alone.
func (s *Query) Chooses() bool { _, ok := s.Asked.(*Chosen); return ok }

// Compares tells a query that compares with a threshold.
func (s *Query) Compares() bool { _, ok := s.Asked.(*ThresholdColumn); return ok }

package policy

// Size is the number of cells.
func (d *Domain) Size() int { panic("to be written") }

// Ordered tells whether the declared cells are steps of an ordered type.
func (d *Domain) Ordered() bool { return d.Min != nil }

// Single tells whether each cell holds a single value, so that any expression over the column is a function of the cell.
func (d *Domain) Single() bool { panic("to be written") }

// Cell returns the cell of a normalised value (nil: NULL), and false for a value that the rules never produce.
func (d *Domain) Cell(v Value) (int, bool) { panic("to be written") }

// Low returns the least value of a cell: the value itself where cells are single, nil for the NULL cell.
func (d *Domain) Low(cell int) Value { panic("to be written") }

// High returns the largest value of a cell (for continuous types: the supremum within Max, see HighOpen).
func (d *Domain) High(cell int) Value { panic("to be written") }

// HighOpen tells whether High(cell) is the first value after the cell rather than its last one.
func (d *Domain) HighOpen(cell int) bool { panic("to be written") }

package policy

import (
	"fmt"
	"strings"
)

// char(n). PostgreSQL stores its values filled up with blanks, which do not count where they are compared with a constant, and
// leaves them off wherever a value becomes text. A column that is declared so is text, whose values are without them; the
// planner leaves them off constants that it is compared with (Column.Blanks).

// An enumerated type of the database (CREATE TYPE status AS ENUM ('new', 'paid')) is declared as enum, whose values are texts: its
// labels. Engines read it by a function of enumerated types alone, so that a column that became another type is not read at all.

// maxChar is PostgreSQL's own bound of n.
const maxChar = 10485760

// parseType reads the type of a column into it: those of ParseType, char(n), or enum.
func (c *Column) parseType(text string) error {
	name, modifiers, err := splitType(strings.ToLower(text))
	switch {
	case err == nil && name == "enum":
		if len(modifiers) > 0 {
			return fmt.Errorf("type is %q, enum takes no such modifier", text)
		}
		c.Type, c.Typmod, c.Enum = Text, -1, true
	case err == nil && (name == "char" || name == "character"):
		n := int32(1)
		if len(modifiers) > 0 {
			n = modifiers[0]
		}
		if len(modifiers) > 1 || n < 1 || n > maxChar {
			return fmt.Errorf("type is %q, char takes a length from 1 to %d", text, maxChar)
		}
		c.Type, c.Typmod, c.Blanks = Text, -1, int(n)
	default:
		c.Type, c.Typmod, err = ParseType(text)
		return err
	}
	return nil
}

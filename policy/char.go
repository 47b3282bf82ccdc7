package policy

import (
	"fmt"
	"strings"
)

// char(n). PostgreSQL stores its values filled up with blanks, which do not count where they are compared with a constant, and
// leaves them off wherever a value becomes text. A column that is declared so is text, whose values are without them; the
// planner leaves them off constants that it is compared with (Column.Blanks).

// mostChar is PostgreSQL's own bound of n.
const mostChar = 10485760

// parseColumnType reads the type of a column: those of ParseType, or char(n), of which blanks is n.
func parseColumnType(text string) (typ Type, typmod int32, blanks int, err error) {
	name, modifiers, err := splitType(strings.ToLower(text))
	if err == nil && (name == "char" || name == "character") {
		n := int32(1)
		if len(modifiers) > 0 {
			n = modifiers[0]
		}
		if len(modifiers) > 1 || n < 1 || n > mostChar {
			return 0, -1, 0, fmt.Errorf("type is %q, char takes a length from 1 to %d", text, mostChar)
		}
		return Text, -1, int(n), nil
	}
	typ, typmod, err = ParseType(text)
	return typ, typmod, 0, err
}

package policy

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// char(n). PostgreSQL stores its values filled up with blanks, which do not count where they are compared with a
// constant, and leaves them off wherever a value becomes text. A column that is declared so is text, whose values are
// without them; the planner leaves them off constants that it is compared with (Column.Blanks). So are the values of
// what is released of it, until an engine is given them or a client is sent them, which have them filled up: there they
// are chars (Filled, Trimmed).

// An enumerated type of the database (CREATE TYPE status AS ENUM ('new', 'paid')) is declared as enum, whose values are
// texts: its labels. Engines read it by a function of enumerated types alone, so that a column that became another type
// is not read at all.

// maxChar is PostgreSQL's own bound of n.
const maxChar = 10485760

// CharTypmod is the modifier of char(n), and CharLength the n of a modifier, 0 where it has none.
func CharTypmod(n int) int32 { return int32(n) + 4 }

// CharLength: see CharTypmod.
func CharLength(typmod int32) int { return int(max(typmod-4, 0)) }

// Become makes c a column of a type that something is shown with, which may be a char; its values are without their
// blanks then (Trimmed).
func (c *Column) Become(t Type, typmod int32) {
	if c.Type, c.Typmod = t, typmod; t != Bpchar {
		return
	}
	if c.Type, c.Typmod, c.Blanks = Text, -1, CharLength(typmod); c.Blanks == 0 {
		c.Blanks, c.Ragged = maxChar, true
	}
}

// Held is the type that values of t have in columns and domains: of a char text.
func (t Type) Held() Type {
	if t == Bpchar {
		return Text
	}
	return t
}

// Filled is a value of a type and modifier as an engine or a client has it: a char(n) with its blanks. (What `outside:
// other` makes of a value may be longer, and is not cut.)
func Filled(t Type, typmod int32, v Value) Value {
	s, ok := v.(string)
	if t != Bpchar || !ok {
		return v
	}
	if n := CharLength(typmod) - utf8.RuneCountInString(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}

// Trimmed is such a value as the planner has it.
func Trimmed(t Type, v Value) Value {
	if s, ok := v.(string); ok && t == Bpchar {
		return strings.TrimRight(s, " ")
	}
	return v
}

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

package postgres

import (
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// TestCharFindings: check says where a column is a char of the database and none of the policy, or the other way round.
func TestCharFindings(t *testing.T) {
	for _, at := range []struct {
		public         bool
		blanks         int
		database, says string
	}{
		{false, 0, "text", ""}, {false, 6, "character", ""}, {false, 0, "character", "trailing blanks of constants do not count"}, {false, 6, "text", "where trailing blanks count"},
		{false, 6, "integer", "the policy says char(6)"}, {true, 0, "text", ""}, {true, 0, "character", "texts without the blanks at their end"}, {true, 0, "integer", ""},
	} {
		c := &policy.Column{Table: &policy.Table{Name: "sales", Public: at.public}, Name: "store", Type: policy.Text, Typmod: -1, Blanks: at.blanks}
		list := inspect.CompareColumn(c, inspect.ColumnShape{KindOf: at.database, Base: at.database}, dialect.PostgreSQL)
		if len(list) != min(len(at.says), 1) || len(list) > 0 && !strings.Contains(list[0].Text, at.says) {
			t.Errorf("%d blanks, %s: %+v", at.blanks, at.database, list)
		}
	}
}

package mysql

import "testing"

// TestGrantedOn: which databases a line of SHOW GRANTS takes in.
func TestGrantedOn(t *testing.T) {
	for _, c := range []struct {
		on, database string
		want         bool
	}{
		{"*.*", "shop", true}, {"`shop`.*", "shop", true}, {"`shop`.*", "Shop", true}, {"`shop`.*", "shops", false},
		{"`test%`.*", "test", true}, {"`test%`.*", "test_shop", true}, {"`test%`.*", "attest", false},
		{"`test\\_%`.*", "test_shop", true}, {"`test\\_%`.*", "testing", false}, {"`s_op`.*", "stop", true},
		{"`shop`.`orders`", "shop", true}, {"`a``b`.*", "a`b", true}, {"`a+`.*", "aa", false}, {"`grün`.*", "grün", true},
	} {
		if got := grantedOn(c.on, c.database); got != c.want {
			t.Errorf("%s takes in %s: %v", c.on, c.database, got)
		}
	}
}

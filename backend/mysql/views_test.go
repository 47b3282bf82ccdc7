package mysql

import (
	"fmt"
	"testing"
)

// TestViewReads: which relations a view reads, by texts that MariaDB 10.11 and MySQL 8 keep of views.
func TestViewReads(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"select `shop`.`people`.`id` AS `id` from `shop`.`people`":                                                              "[shop.people] true",
		"select `p`.`id` AS `id` from `shop`.`people` `p` join `shop`.`visits` `v` where `v`.`id` = `p`.`id`":                   "[shop.people shop.visits] true",
		"select `p`.`id` AS `id` from (`shop`.`people` `p` join `shop`.`visits` `v`) where (`v`.`id` = `p`.`id`)":               "[shop.people shop.visits] true",
		"select `p`.`id` AS `id` from ((`shop`.`a` `p` join `shop`.`b` `v` on(1)) left join `Shop`.`C` on(1))":                  "[shop.a shop.b shop.c] true",
		"select `d`.`id` AS `id` from (select `s`.`p`.`id` AS `id` from `s`.`p` union select 1 AS `id` from `s`.`v`) `d`":       "[s.p s.v] true",
		"with a as (select `s`.`p`.`id` AS `id` from `s`.`p`)select `a`.`id` AS `id` from `a` join `s`.`v` `x`":                 "[s.p s.v] true",
		"select 'a from `b`.`c`' AS `s from`,`s`.`p`.`id` AS `x``y` from `s`.`p` where `s`.`p`.`id` in (select 1 from `s`.`v`)": "[s.p s.v] true",
		"select 'it''s from `b`.`c`' AS `x`,'\\' from `b`.`c`' AS `y` from `s`.`p`":                                             "[s.p] true",
		"select `t`.`a` AS `a` from JSON_TABLE('[1]', '$[*]' COLUMNS (`a` int(11) PATH '$')) `t` join `s`.`p`":                  "[s.p] true",
		"select 1 AS `a`":                                                  "[] true",
		"select `s`.`f`() AS `a`":                                          "[] false",
		"select `s`.`f`(`p`.`id`) AS `a` from `s`.`p`":                     "[s.p] false",
		"select `t`.`a` AS `a` from `t`":                                   "[] false",
		"select 1 AS `a` from something":                                   "[] false",
		"select extract(day from current_timestamp()) AS `d` from `s`.`p`": "[s.p] true",
		"": "[] false",
	} {
		relations, whole := ViewReads(text)
		if got := fmt.Sprint(relations, whole); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

package proxy

import "testing"

// TestDeclaredOnce: a cursor's answer is drawn once, however its rows are fetched, and so is that of COPY.
func TestDeclaredOnce(t *testing.T) {
	b := start(t)
	r := b.raw(t)
	r.play("cursor", []step{
		one(query("begin; declare c cursor with hold for select n from ten"), "C(BEGIN) C(DECLARE CURSOR) Z(T)"),
		one(query("fetch 2 c; move absolute 1 c; fetch all c; fetch first c; fetch first c"),
			"T1 D D C(FETCH 2) C(MOVE 1) T1 D D D D D D D D D C(FETCH 9) T1 D C(FETCH 1) T1 D C(FETCH 1) Z(T)"),
		one(query("declare c cursor for select n from ten"), "E(42P03) Z(E)"),
		one(query("declare d cursor for select n from ten"), "E(25P02) Z(E)"),
		one(query("rollback; declare e cursor for select n from ten"), "C(ROLLBACK) C(DECLARE CURSOR) Z(I)"),
	})
	if n := b.pipeline.answers.Load(); n != 2 {
		t.Errorf("%d answers, not 2", n)
	}
	r.play("copy", []step{
		one(query("copy (select n from ten) to stdout (format csv, force_quote (nope))"), "E(42703) Z(I)"),
		one(query("copy (select n from ten) to stdout (format xml)"), "E(22023) Z(I)"),
	})
	if n := b.pipeline.answers.Load(); n != 2 {
		t.Errorf("%d answers, not 2: a refused COPY was answered", n)
	}
	r.play("copy", []step{one(query("copy (select n from ten) to stdout csv"), "H d d d d d d d d d d c C(COPY 10) Z(I)")})
	if n := b.pipeline.answers.Load(); n != 3 {
		t.Errorf("%d answers, not 3", n)
	}
}

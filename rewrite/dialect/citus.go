package dialect

// Citus is an extension of PostgreSQL by which the rows of a table lie on several machines, by a hash of one of its
// columns. The machine that is asked plans a statement as one for each group of shards, adds up what they answer, and
// reads its SQL as PostgreSQL does. Its words are those of PostgreSQL, but for what is not planned there, or for which
// rows of all machines would be gathered on the one that is asked (docs/adr/0150):
//
//	CASE WHEN a.u = ANY (SELECT b.u FROM …) THEN 1 ELSE 0 END        a join with the units of the others instead
//	WITH scan AS (… row_number() OVER (PARTITION BY b.u …) …)        each measure numbers the rows it reads
//
// What a machine reads it reads in a moment of its own. So what counts on two readings of one table being the same is
// enforced: the rows of a FULL JOIN are bounded once more.
var citus = func() Words {
	w := postgres
	w.Name, w.MarksByJoin, w.ExactKeys, w.KeepsNoRows, w.ManyMoments = "Citus", true, true, true, true
	w.SortsGroups = false // each machine groups its own units, beside the others
	return w
}()

// Package admission decides when a statement may take what all share: processors, memory, slots of the sandbox and of
// the private database. Whoever has too much waits behind herself, all users share the rest fairly, and what cannot be
// had is refused before anything is charged.
//
// The words, here and in package pipeline:
//   - A slot is leave to do one thing of which so many are done at a time: to plan, to draw, to have the private database run queries. It is
//     held until the thing is done. A user holds at most so many (server.limits.user_statements), and never all that there are.
//   - A queue holds one user's statements that wait for a slot, the oldest first.
//   - A token is leave to begin once: a user has so many a second (server.limits.purchases_per_second), and without one she is refused at once.
//   - A reservation is memory that is set aside for results of the private database.
//   - The timetable is how the private database runs queries on a grid (server.timing): each has a turn, a public moment at which it
//     begins, and more statements are admitted than it runs at a time (package backend).
//
// An example: SELECT count(*) FROM people takes a token and is planned in one of its user's slots (Run), waits for one
// of the database's (Query), has memory for the result reserved (Reserve), draws its noise behind her own draws alone
// (Draw) and is encoded in a slot for short work (Briefly).
package admission

package dialect

// A snapshot is read by DuckDB. Its keys have the types that joins compare, and its texts are texts (package rewrite,
// snapshot.go).
var snapshot = func() Words {
	w := duckdb
	w.Name, w.Ready = "snapshot", true
	w.Key, w.TextKey, w.ReadText = "%1", "%1", "%1"
	return w
}()

// Package truth holds the truth suite: generated statements over schemas as people have them, at an ε where noise
// vanishes, each answered as PostgreSQL answers it or otherwise only as is said. It is tests only; `make truth` runs it
// at full length.
package truth

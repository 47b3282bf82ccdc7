// Package sealed holds the two wrappers that make the privacy boundary a matter of types: Sensitive, for what is
// true of private rows, and Released, for what may be shown. Only packages below mechanisms can import it, so only
// they can open a Sensitive or make a Released from one. Package privacy re-exports what the others may use.
package sealed

// Sensitive holds a value computed from private rows. The value sits behind a closure, so printing, encoding,
// comparing and reflecting on a Sensitive shows a function, never the value. The zero value is invalid.
type Sensitive[T any] struct{ reveal func() T }

// Seal wraps v.
func Seal[T any](v T) Sensitive[T] { return Sensitive[T]{reveal: func() T { return v }} }

// Valid reports whether s was made by Seal.
func (s Sensitive[T]) Valid() bool { return s.reveal != nil }

// Open returns the sealed value. It panics on the zero value: nothing was ever sealed in it.
func Open[T any](s Sensitive[T]) T {
	if s.reveal == nil {
		panic("sealed: open of a Sensitive that was never sealed")
	}
	return s.reveal()
}

// Map returns f of the sealed value, sealed; f runs when it is opened. It panics on the zero value.
func Map[T, U any](s Sensitive[T], f func(T) U) Sensitive[U] {
	if s.reveal == nil {
		panic("sealed: map of a Sensitive that was never sealed")
	}
	return Sensitive[U]{reveal: func() U { return f(s.reveal()) }}
}

// Released holds a value that may be shown: drawn by a mechanism, computed from such values alone, or never
// private. The zero value is invalid.
type Released[T any] struct {
	value T
	made  bool
}

// Release wraps v. Calling it asserts that v is the output of a mechanism, a function of such outputs, or public.
func Release[T any](v T) Released[T] { return Released[T]{value: v, made: true} }

// Valid reports whether r was made by Release.
func (r Released[T]) Valid() bool { return r.made }

// Value returns what was released. It panics on the zero value.
func (r Released[T]) Value() T {
	if !r.made {
		panic("sealed: value of a Released that was never released")
	}
	return r.value
}

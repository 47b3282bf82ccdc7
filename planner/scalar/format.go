package scalar

func (r registry) formats() {}

// specialised builds some calls better than the general way does when an argument is constant.
var specialised = map[string]func(*Env, *candidate, []Expr) (Expr, error){}

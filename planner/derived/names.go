package derived

import (
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// CompareNames orders columns by name: a policy may list them in any order.
func CompareNames(a, b *policy.Column) int { return strings.Compare(a.Name, b.Name) }

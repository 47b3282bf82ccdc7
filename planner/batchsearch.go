package planner

import (
	"fmt"
	"slices"
	"strings"
)

// mostTried bounds the clusters that one search looks at, so that planning a report takes seconds.
const mostTried = 3000

// search goes downhill from a partition: it joins two clusters, or moves one ask to another cluster or out of its own, as
// long as that lowers the error. The best step is taken. At last all ways to measure each cluster are looked at.
func (w *workload) search(clusters []*cluster) []*cluster {
	clusters = slices.Clone(clusters)
	for tried := 0; tried < mostTried; {
		best, least := []*cluster(nil), w.total(clusters)*(1-1e-9)
		for _, step := range []func([]*cluster, func([]*cluster)){w.joins, w.moves} {
			step(clusters, func(next []*cluster) {
				tried++
				if e := w.total(next); e < least {
					best, least = next, e
				}
			})
			if best != nil {
				break
			}
		}
		if best == nil {
			break
		}
		clusters = best
	}
	for i, k := range clusters {
		if full := w.of(k.asks, true); full != nil && full.error() < k.error() {
			clusters[i] = full
		}
	}
	return clusters
}

// besides are the clusters but those at some places, and others.
func besides(clusters []*cluster, i, j int, others ...*cluster) []*cluster {
	var out []*cluster
	for at, k := range clusters {
		if at != i && at != j {
			out = append(out, k)
		}
	}
	return append(out, others...)
}

// joins yields the partitions in which two clusters are one.
func (w *workload) joins(clusters []*cluster, yield func([]*cluster)) {
	for i := range clusters {
		for j := range i {
			if clusters[i].asks[0].table != clusters[j].asks[0].table {
				continue
			}
			if k := w.of(slices.Concat(clusters[j].asks, clusters[i].asks), false); k != nil {
				yield(besides(clusters, i, j, k))
			}
		}
	}
}

// moves yields the partitions in which one ask is in another cluster, or in one of its own.
func (w *workload) moves(clusters []*cluster, yield func([]*cluster)) {
	for i, from := range clusters {
		if len(from.asks) < 2 {
			continue
		}
		for n, a := range from.asks {
			rest := w.of(slices.Delete(slices.Clone(from.asks), n, n+1), false)
			if rest == nil {
				continue
			}
			if own := w.of([]*workAsk{a}, false); own != nil {
				yield(besides(clusters, i, -1, rest, own))
			}
			for j, to := range clusters {
				if j == i || to.asks[0].table != a.table {
					continue
				}
				if k := w.of(append(slices.Clone(to.asks), a), false); k != nil {
					yield(besides(clusters, i, j, rest, k))
				}
			}
		}
	}
}

// keyOfAsks names a set of asks.
func keyOfAsks(asks []*workAsk) string {
	ids := make([]string, len(asks))
	for i, a := range asks {
		ids[i] = fmt.Sprintf("%05d", a.id)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

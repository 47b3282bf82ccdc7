package workload

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// maxTried bounds the steps that one search looks at: with n requests over one table a round has up to n²/2 of them,
// each of which takes time in n, so that 1,000 ranges of a report would take hours without it. Where a round ends
// early, the best step that was seen is the last one: the partitions by columns and by tables have been looked at
// whatever the number.
const maxTried = 3000

// maxMoved bounds the requests of a cluster from which one is moved: one of very many changes little, and what is left
// of them takes long to look at.
const maxMoved = 100

// search goes downhill from a partition: it joins two clusters, or moves one request to another cluster or out of its
// own, as long as that lowers the error. The best step is taken. At last all ways to measure each cluster are looked
// at. It looks at up to twice maxTried steps: O(maxTried · n) in time, besides the maxBatchWork cells of all clusters.
func (w *batch) search(clusters []*cluster) []*cluster {
	clusters = slices.Clone(clusters)
	for tried := 0; tried < maxTried; {
		best, least := []*cluster(nil), w.total(clusters)*(1-1e-9)
		for _, steps := range []func([]*cluster) iter.Seq[func() []*cluster]{w.joins, w.moves} {
			for step := range steps(clusters) {
				if tried++; tried >= 2*maxTried {
					break
				}
				next := step()
				if next == nil {
					continue
				}
				if e := w.total(next); e < least {
					best, least = next, e
				}
			}
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

// joins yields the steps that make two clusters one; a step that cannot be taken is nil.
func (w *batch) joins(clusters []*cluster) iter.Seq[func() []*cluster] {
	return func(yield func(func() []*cluster) bool) {
		for i := range clusters {
			for j := range i {
				if clusters[i].asks[0].Table != clusters[j].asks[0].Table {
					continue
				}
				if !yield(func() []*cluster {
					k := w.of(slices.Concat(clusters[j].asks, clusters[i].asks), false)
					if k == nil {
						return nil
					}
					return besides(clusters, i, j, k)
				}) {
					return
				}
			}
		}
	}
}

// moves yields the steps that put one request into another cluster, or into one of its own.
func (w *batch) moves(clusters []*cluster) iter.Seq[func() []*cluster] {
	return func(yield func(func() []*cluster) bool) {
		for i, from := range clusters {
			if len(from.asks) < 2 || len(from.asks) > maxMoved {
				continue
			}
			for n, a := range from.asks {
				rest := w.of(slices.Delete(slices.Clone(from.asks), n, n+1), false)
				if !yield(func() []*cluster { return w.moved(clusters, i, -1, rest, []*workRequest{a}) }) {
					return
				}
				for j, to := range clusters {
					if rest == nil || j == i || to.asks[0].Table != a.Table {
						continue
					}
					if !yield(func() []*cluster { return w.moved(clusters, i, j, rest, append(slices.Clone(to.asks), a)) }) {
						return
					}
				}
			}
		}
	}
}

// moved is a partition with the rest of a cluster and another one, of the requests, in place of two.
func (w *batch) moved(clusters []*cluster, i, j int, rest *cluster, asks []*workRequest) []*cluster {
	if rest == nil {
		return nil
	}
	k := w.of(asks, false)
	if k == nil {
		return nil
	}
	return besides(clusters, i, j, rest, k)
}

// keyOfRequests names a set of requests.
func keyOfRequests(asks []*workRequest) string {
	ids := make([]string, len(asks))
	for i, a := range asks {
		ids[i] = fmt.Sprintf("%05d", a.id)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

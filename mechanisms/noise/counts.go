package noise

// The ends of what a noisy count can say. They are far enough apart and inside of the int64 range that clipping the
// noise there, as the samplers do, never shows: a true count is in ±MaxCount, so noise clipped at ±2^63 ends at
// ±MaxNoisy either way, and what is released is a function of the exact true count plus exact noise.
const (
	MaxCount = 1 << 61
	MaxNoisy = 1 << 62
)

// Add returns count+noise, cut at ±MaxNoisy, for a count in ±MaxCount: with noise of 2^62+2^61 and more to either side
// the outcome is that end, and with less the sum does not overflow.
func Add(count, noise int64) int64 {
	const far = MaxNoisy + MaxCount
	switch {
	case noise >= far:
		return MaxNoisy
	case noise <= -far:
		return -MaxNoisy
	}
	return min(max(count+noise, -MaxNoisy), MaxNoisy)
}

// OneSided draws from a Laplace given that it is not negative: P(k) = (1−q)·q^k, which is geometric. How often it draws
// depends on the noise alone.
func (d Distribution) OneSided(r *Reader) int64 {
	for r.Err() == nil {
		if k := d.Sample(r); k >= 0 {
			return k
		}
	}
	return 0
}

package policy

import "time"

// The bounds of a snapshot's times.
const (
	leastEvery = time.Minute
	maxWithin  = time.Hour // by default
)

// snapshot checks when copies of the private tables are made, and where to.
func (c *checker) snapshot(s *snapshotT, at place) {
	if s == nil {
		return
	}
	to := &Snapshot{Every: duration(s.Every, 0, at.key("every"), "every"), Dir: c.resolve(c.elsewhere(s.Dir, at.key("dir"), "dir"))}
	c.policy.Backend.Snapshot = to
	if s.Dir == "" {
		at.key("dir").problem("snapshot needs dir, the directory of the copies")
	}
	const day = 24 * time.Hour
	switch {
	case s.Every == "":
		at.key("every").problem("snapshot needs every, such as 6h")
	case to.Every > 0 && (to.Every < leastEvery || to.Every < day && day%to.Every != 0 || to.Every > day && to.Every%day != 0):
		at.key("every").problem("every is %.40q, must be a part of a day without a rest, from 1m on, or whole days, such as 6h or 1d", s.Every)
	}
	if s.At != "" {
		clock, err := time.Parse("15:04", s.At)
		if err != nil {
			at.key("at").problem("at is %.40q, must be hour and minute in UTC, such as 02:00", s.At)
		}
		to.At = clock.Sub(clock.Truncate(day))
	}
	to.Within = min(to.Every/4, maxWithin)
	if s.Within != "" {
		if to.Within = duration(s.Within, to.Within, at.key("within"), "within"); to.Within > to.Every {
			at.key("within").problem("within is %.40q, must be at most every", s.Within)
		}
	}
	to.Connections = 2
	if s.Connections != "" {
		to.Connections = int(whole64(s.Connections, 1, 16, at.key("connections"), "connections"))
	}
	if s.Key != "" {
		to.Key = c.resolve(c.elsewhere(s.Key, at.key("key"), "key"))
	}
}

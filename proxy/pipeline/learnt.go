package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
)

// alarmTold says what a question of a run of alarms learnt.
func alarmTold(m *plans.Measure, answer mechanisms.SessionAnswer) string {
	positives, left := m.Spec.Kind.(*mechanisms.Alarm).Positives, answer.Left
	switch yes := answer.Value != 0; {
	case answer.Guessed:
		return m.Name + ": not asked, since the run ended before: the answer is NULL"
	case yes && left == 0:
		return fmt.Sprintf("%s: yes, the last of the run's %d: it has ended, and the next such question buys a new one", m.Name, positives)
	case yes:
		return fmt.Sprintf("%s: yes; %d of the run's %d are left", m.Name, left, positives)
	}
	return fmt.Sprintf("%s: no, which is free; %d of the run's %d yes answers are left", m.Name, left, positives)
}

// onlineParts says what a statement learnt of its online releases: all of it are released values.
func (r *releases) onlineParts(ctx context.Context, s *Session, plan *plans.Plan, ids []int64, answers runAnswers) []string {
	var parts []string
	for i, m := range plan.Measures {
		o, ok := m.Spec.Kind.(*mechanisms.Online)
		if !ok {
			continue
		}
		hard, guessed, asked := 0, 0, false
		for run := range runs(plan) {
			if run.Measure != i {
				continue
			}
			asked = true
			for _, one := range answers[run] {
				if one.Guessed {
					guessed++
				} else if one.Hard {
					hard++
				}
			}
		}
		if !asked {
			continue // its hypothesis alone is read
		}
		left := r.left(ctx, s)(ids[i])
		text := fmt.Sprintf("online release %s: %d from the rows, the others from its hypothesis; %d of %d updates left", m.Name, hard, left, o.Updates)
		if guessed > 0 {
			text += fmt.Sprintf("; it stopped on the way: %d values are its hypothesis's own, and their error is not known", guessed)
		} else if left == 0 {
			text += ": it has stopped"
		}
		parts = append(parts, text)
	}
	return parts
}

// withDetail adds to the detail of the answer's notice.
func withDetail(notices []Notice, told []string) []Notice {
	if len(told) == 0 || len(notices) == 0 {
		return notices
	}
	out := slices.Clone(notices)
	if out[0].Detail != "" {
		told = append(told, out[0].Detail)
	}
	out[0].Detail = strings.Join(told, "\n")
	return out
}

// refinements tell what was refined.
func refinements(plan *plans.Plan, bought purchase) (lines []string) {
	if bought.charged.IsZero() {
		return nil
	}
	for _, m := range plan.Measures {
		if m.Refines() {
			lines = append(lines, m.Name+" refines what you had: ε "+m.Refinement.Paid.String()+" was paid for it, ε "+m.Refinement.Level.String()+
				" now in all; it tells of the data as they were then")
		}
	}
	return lines
}

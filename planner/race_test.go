//go:build race

package planner

// underRace: the race detector makes pools forget.
const underRace = true

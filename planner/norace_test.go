//go:build !race

package planner

const underRace = false

// Package planner turns SQL into saved queries and plans: whether an answer
// may be cached, why not, and what parts of which tables it depends on. It
// knows no sockets; what it must ask the upstream goes through a Querier.
package planner

import (
	"context"
	"sync/atomic"

	"freshet/cache"
	"freshet/planner/query"
)

// Dialect is the SQL that a server speaks.
type Dialect uint8

const (
	MySQL Dialect = iota + 1
	MariaDB
	Postgres
)

// Querier runs one catalog query upstream and returns its rows as text;
// a nil cell is NULL.
type Querier interface {
	Query(ctx context.Context, sql string) ([][]*string, error)
}

// Scope is what besides its text decides what a statement's names mean.
type Scope struct {
	Database   string // MySQL: the default database ("" for none); PostgreSQL: the database
	SearchPath string // PostgreSQL: the raw search_path setting; "" is the server's default
	User       string
	// SQLMode is MySQL's sql_mode as the session has it ("" is the server's
	// default): ANSI_QUOTES and NO_BACKSLASH_ESCAPES change how text is read.
	// For PostgreSQL it is "off" when standard_conforming_strings is off.
	SQLMode string
	// Charset is client_encoding, or character_set_client if
	// character_set_connection is the same; "" when it is not known, or the two
	// differ (then only ASCII strings are followed by key).
	Charset string
	// Zone is MySQL's time_zone; "" when it is a fixed distance from UTC.
	Zone string
}

// Class is what a statement does, as far as its session must know; see package
// query for what each says.
type Class = query.Class

const (
	ClassOther       = query.ClassOther
	ClassRead        = query.ClassRead
	ClassWrite       = query.ClassWrite
	ClassSchema      = query.ClassSchema
	ClassTransaction = query.ClassTransaction
	ClassSession     = query.ClassSession
)

// Tracking says how exactly an answer's tables are followed: the one that is
// followed least exactly decides.
type Tracking uint8

// They are in order: each loses fewer answers needlessly than the one before.
const (
	TrackNone Tracking = iota
	TrackTable
	TrackRange
	TrackKey
)

// String names the tracking as EXPLAIN CREATE CACHE shows it.
func (t Tracking) String() string {
	switch t {
	case TrackTable:
		return "table"
	case TrackRange:
		return "range"
	case TrackKey:
		return "key"
	}
	return "none"
}

// Param is one parameter as it came over the wire, in place; it is only read
// during the call it is given to.
type Param struct {
	Null   bool
	Binary bool   // PostgreSQL: binary format; MySQL: always true in COM_STMT_EXECUTE
	Type   uint32 // MySQL: field type code, 0x8000 set when unsigned; PostgreSQL: type OID, 0 if not declared
	Data   []byte
}

// Plan is what the planner knows of a statement in one scope. It is immutable.
type Plan struct {
	Class     Class
	Cacheable bool
	Reason    string // why not cacheable; "" when it is
	QueryID   uint64 // hash of Query; shown as q_%016x
	Query     string // normalised text: literals and parameters made "?" (MySQL) or "$n" (PostgreSQL)
	Tables    []string
	Tracking  Tracking
	// Explain lists the dependencies in words, for EXPLAIN CREATE CACHE: "key
	// shop.item (id)", "range shop.item (id)", "table shop.item (reads name,
	// price)", "table shop.item".
	Explain []string
	// Params is how many parameters the statement takes.
	Params int
	// Hints from a /*+ freshet: … */ comment.
	NoCache   bool
	TTLMillis int64
	// Keyword is the first word of the statement in capitals, "" if it begins
	// with none.
	Keyword string
	// CreatesTemp tells that the statement makes a temporary table.
	CreatesTemp bool
	// ReadsSession tells that the answer speaks of what the session did before
	// (LAST_INSERT_ID(), FOUND_ROWS(), currval(), @x, SHOW WARNINGS …): it has
	// to run where those statements ran.
	ReadsSession bool

	deps depMaker
	// basis is what the plan was made from; nil when nothing can outdate it.
	basis *basis
}

// depMaker is what the dialect-independent part keeps to compute dependencies.
type depMaker interface {
	deps(dst []cache.Dep, params []Param) ([]cache.Dep, cache.Position, bool)
	refuses(params []Param) string
}

// Deps appends the dependencies of one run of the statement and returns the
// lowest Position a fill's filledAt may have (the feed did not hash earlier
// changes for these shapes). ok is false while some table is still being
// taken up by the feed, or may no longer be followed, or if Refuses says why:
// forward, keep nothing.
// It never blocks and is safe from many goroutines.
func (p *Plan) Deps(dst []cache.Dep, params []Param) (deps []cache.Dep, since cache.Position, ok bool) {
	if p.deps == nil {
		return dst, 0, false
	}
	return p.deps.deps(dst, params)
}

// Refuses says why the answer to a run with these parameters must not be kept,
// "" if nothing of their values forbids it.
func (p *Plan) Refuses(params []Param) string {
	if p.deps == nil {
		return ""
	}
	return p.deps.refuses(params)
}

// Statement is one distinct text in one scope. Its ID is never reused.
type Statement struct {
	ID    uint64
	Text  string
	Scope Scope

	scope    ScopeID
	declared []uint32
	plan     atomic.Pointer[Plan]
}

// Plan returns the current plan, or nil when the statement was not planned
// yet or its plan was outdated by a change of a table's definition.
func (s *Statement) Plan() *Plan {
	p := s.plan.Load()
	if p == nil || p.basis.outdated() {
		return nil
	}
	return p
}

// ScopeID is an interned Scope.
type ScopeID uint32

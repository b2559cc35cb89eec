// Package planner turns SQL into saved queries and plans: whether an answer
// may be cached, why not, and what parts of which tables it depends on. It
// knows no sockets; what it must ask the upstream goes through a Querier.
package planner

import (
	"context"
	"sync/atomic"

	"freshet/cache"
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
	// Charset is character_set_client / client_encoding.
	Charset string
}

// Class is what a statement does, as far as its session must know.
type Class uint8

const (
	// ClassOther: anything not proven harmless; its effect on the session's
	// state is unknown.
	ClassOther Class = iota
	// ClassRead: a SELECT that changes neither data nor session state.
	ClassRead
	// ClassWrite: INSERT, UPDATE, DELETE, REPLACE, MERGE, COPY, LOAD DATA …:
	// changes data, leaves no session state.
	ClassWrite
	// ClassSchema: DDL, TRUNCATE, GRANT and the like on lasting objects.
	ClassSchema
	// ClassTransaction: BEGIN, COMMIT, ROLLBACK, SAVEPOINT and their kin.
	ClassTransaction
	// ClassSession: SET, RESET, USE, DISCARD, PREPARE, DECLARE, LISTEN, LOCK,
	// temporary tables, user variables: changes what the session is.
	ClassSession
)

// Tracking says how exactly an answer's tables are followed.
type Tracking uint8

const (
	TrackNone Tracking = iota
	TrackTable
	TrackKey
)

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
	// Explain lists the dependencies in words, for EXPLAIN CREATE CACHE.
	Explain []string
	// Params is how many parameters the statement takes.
	Params int
	// Hints from a /*+ freshet: … */ comment.
	NoCache   bool
	TTLMillis int64

	deps depMaker
}

// depMaker is what the dialect-independent part keeps to compute dependencies.
type depMaker interface {
	deps(dst []cache.Dep, params []Param) ([]cache.Dep, cache.Position, bool)
}

// Deps appends the dependencies of one run of the statement and returns the
// lowest Position a fill's filledAt may have (the feed did not hash earlier
// changes for these shapes). ok is false while some table is still being
// taken up by the feed, or may no longer be followed: forward, keep nothing.
// It never blocks and is safe from many goroutines.
func (p *Plan) Deps(dst []cache.Dep, params []Param) (deps []cache.Dep, since cache.Position, ok bool) {
	if p.deps == nil {
		return dst, 0, false
	}
	return p.deps.deps(dst, params)
}

// Statement is one distinct text in one scope. Its ID is never reused.
type Statement struct {
	ID    uint64
	Text  string
	Scope Scope
	plan  atomic.Pointer[Plan]
}

// Plan returns the current plan, or nil when the statement was not planned
// yet or its plan was dropped by a change of a table's definition.
func (s *Statement) Plan() *Plan { return s.plan.Load() }

// ScopeID is an interned Scope.
type ScopeID uint32

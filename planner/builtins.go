package planner

import (
	"context"
	"strings"

	"freshet/planner/postgres"
	"freshet/planner/query"
)

// builtins are PostgreSQL's own functions and types, which do not change while
// the server runs.
type builtins struct {
	// volatility is the worst provolatile ('i', 's', 'v') of the functions of
	// a name.
	volatility map[string]byte
	types      map[string]bool
}

// extras are what users and extensions added.
type extras struct {
	functions, operators map[string]added
	// types tells of each name whether only enums go by it, whose input runs
	// nothing that a user wrote.
	types map[string]bool
	// casts tells of an implicit cast between built-in types, casts to added ones
	// of one from a built-in type to another.
	casts, castsIn bool
}

// added tells of all that users added under one name which operands they may
// have. A type is confined if no value of a built-in type comes to it but by a
// cast that is asked for: base types, enums and ranges, while there is no
// implicit cast (extras.castsIn). Domains, arrays and records are not.
type added struct {
	// plain: some take no confined type.
	plain bool
	// openLeft and openRight: some take one that is not confined on that side;
	// for functions, among their arguments (both are alike).
	openLeft, openRight bool
}

func (k *catalog) builtIn(ctx context.Context) (*once[builtins], error) {
	return load(ctx, k, func() *once[builtins] { return k.builtins }, func(o *once[builtins]) { k.builtins = o },
		func(ctx context.Context) (b builtins, err error) {
			rows, err := k.query(ctx, 3, `SELECT 'f', p.proname, max(CASE p.provolatile WHEN 'v' THEN 'v' WHEN 's' THEN 's' ELSE 'i' END)
				FROM pg_catalog.pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.oid < 16384 GROUP BY p.proname
				UNION ALL SELECT 't', t.typname, '' FROM pg_catalog.pg_type t
				WHERE t.typnamespace = 'pg_catalog'::regnamespace AND t.oid < 16384`)
			if err != nil {
				return b, err
			}
			b = builtins{volatility: make(map[string]byte), types: make(map[string]bool)}
			for _, r := range rows {
				if text(r[0]) == "t" {
					b.types[text(r[1])] = true
				} else if v := text(r[2]); v != "" {
					b.volatility[text(r[1])] = v[0]
				}
			}
			return b, nil
		})
}

func (k *catalog) added(ctx context.Context) (*once[extras], error) {
	return load(ctx, k, func() *once[extras] { return k.extras }, func(o *once[extras]) { k.extras = o },
		func(ctx context.Context) (e extras, err error) {
			rows, err := k.query(ctx, 5, addedSQL)
			if err != nil {
				return e, err
			}
			e = extras{functions: make(map[string]added), operators: make(map[string]added), types: make(map[string]bool)}
			for _, r := range rows {
				is := func(i int) bool { return strings.HasPrefix(text(r[i]), "t") }
				name, of := text(r[1]), added{plain: is(2), openLeft: is(3), openRight: is(4)}
				switch text(r[0]) {
				case "f":
					e.functions[name] = of
				case "o":
					e.operators[name] = of
				case "t":
					e.types[name] = is(2)
				case "c":
					e.casts = true
				case "i":
					e.castsIn = true
				}
			}
			return e, nil
		})
}

// addedSQL lists what extras has. confined are the types that are (see added).
const addedSQL = `WITH confined (oid) AS (SELECT t.oid FROM pg_catalog.pg_type t
		WHERE t.oid >= 16384 AND t.typtype IN ('b', 'e', 'r', 'm') AND t.typcategory <> 'A'),
	takes (name, bound, open) AS (SELECT p.proname,
		EXISTS (SELECT FROM pg_catalog.unnest(p.proargtypes) a (t) WHERE a.t IN (SELECT c.oid FROM confined c)),
		EXISTS (SELECT FROM pg_catalog.unnest(p.proargtypes) a (t) WHERE a.t NOT IN (SELECT c.oid FROM confined c))
		FROM pg_catalog.pg_proc p WHERE p.oid >= 16384)
	SELECT 'f', t.name::text, bool_or(NOT t.bound), bool_or(t.open), bool_or(t.open) FROM takes t GROUP BY t.name
	UNION ALL SELECT 'o', o.oprname::text, bool_or(l.oid IS NULL AND r.oid IS NULL), bool_or(l.oid IS NULL), bool_or(r.oid IS NULL)
		FROM pg_catalog.pg_operator o LEFT JOIN confined l ON l.oid = o.oprleft LEFT JOIN confined r ON r.oid = o.oprright
		WHERE o.oid >= 16384 GROUP BY o.oprname
	UNION ALL SELECT 't', t.typname::text, bool_and(t.typtype = 'e'), false, false FROM pg_catalog.pg_type t WHERE t.oid >= 16384 GROUP BY t.typname
	UNION ALL SELECT CASE WHEN c.casttarget < 16384 THEN 'c' ELSE 'i' END, 'cast', true, false, false FROM pg_catalog.pg_cast c
		WHERE c.oid >= 16384 AND c.castcontext <> 'e' AND c.castsource < 16384 AND (c.casttarget < 16384 OR c.castcontext = 'i')`

// vouching is what a statement's functions, types and operators are held to.
type vouching struct {
	builtins *builtins
	extras   *extras
	// foreign tells that values of added types are about.
	foreign bool
	// builtIn tells whether a column is of a built-in type, whichever of the
	// statement's tables it is of.
	builtIn func(query.Column) bool
}

// typed tells whether an operand is of a built-in type.
func (v *vouching) typed(o *query.Operand) bool {
	if o.Kind != query.Typed {
		return false
	}
	for _, c := range o.Columns {
		if !v.builtIn(c) {
			return false
		}
	}
	return true
}

// mayBe tells whether a call may mean something that was added under its name.
// What takes a confined type where a value of a built-in type stands is no
// candidate: the server looks for an implicit conversion and finds none
// (manual, 10.2 and 10.3).
func (v *vouching) mayBe(of added, left, right *query.Operand) bool {
	switch {
	case of.plain || v.extras.castsIn:
		return true
	case !v.foreign:
		return false
	}
	return !(!of.openLeft && v.typed(left) || !of.openRight && v.typed(right))
}

// vouch checks the functions, types and operators of a statement against the
// catalog: it classifies the statement and says why it is not cacheable.
func (v *vouching) vouch(a *query.Analysis) {
	for i := range a.Functions {
		v.function(a, &a.Functions[i])
	}
	for _, t := range a.Types {
		isEnum, isAdded := v.extras.types[t.Name]
		if (t.Schema == "" || t.Schema == "pg_catalog") && v.builtins.types[t.Name] && !(t.Schema == "" && isAdded) {
			continue
		}
		if !isEnum {
			a.Class = a.Class.Worse(query.ClassOther)
		}
		a.Refuse("the type " + t.String() + " is not built in")
	}
	for i := range a.Operators {
		o := &a.Operators[i]
		if of, ok := v.extras.operators[o.Name]; ok && v.mayBe(of, &o.Left, &o.Right) {
			a.Class = a.Class.Worse(query.ClassOther)
			a.Refuse("the operator " + o.Name + " may be one that is not built in")
		}
	}
	if v.extras.casts {
		a.Refuse("an implicit cast between built-in types was added to the database")
	}
}

func (v *vouching) function(a *query.Analysis, f *query.Function) {
	volatility, known := v.builtins.volatility[f.Name.Name]
	of, isAdded := v.extras.functions[f.Name.Name]
	if f.Schema != "" && f.Schema != "pg_catalog" || !known || f.Schema == "" && isAdded && v.mayBe(of, &f.Typed, &f.Typed) {
		a.Class = a.Class.Worse(query.ClassOther)
		a.Refuse("the function " + f.Name.String() + " is not built in")
		return
	}
	what := postgres.Special(f.Name.Name, f.Args)
	if !what.Known {
		if volatility == 'v' {
			what.Class, what.Reason = query.ClassOther, "the function "+f.Name.Name+" is volatile"
		} else {
			what.Class = query.ClassRead
		}
	}
	a.Class = a.Class.Worse(what.Class)
	a.ReadsSession = a.ReadsSession || what.Session
	if what.Reason != "" {
		a.Refuse(what.Reason)
	}
}

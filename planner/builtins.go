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

// extras are what users and extensions added. The value tells whether one of
// them takes built-in types alone, so that a call on built-in types may mean it.
type extras struct {
	functions, operators map[string]bool
	// types tells of each name whether only enums go by it, whose input runs
	// nothing that a user wrote.
	types map[string]bool
	// casts tells of an implicit cast between built-in types.
	casts bool
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
			rows, err := k.query(ctx, 3, `SELECT 'f', p.proname, bool_or(NOT EXISTS (SELECT FROM unnest(p.proargtypes) a (t) WHERE a.t >= 16384))
				FROM pg_catalog.pg_proc p WHERE p.oid >= 16384 GROUP BY p.proname
				UNION ALL SELECT 'o', o.oprname, bool_or(o.oprleft < 16384 AND o.oprright < 16384)
				FROM pg_catalog.pg_operator o WHERE o.oid >= 16384 GROUP BY o.oprname
				UNION ALL SELECT 't', t.typname, bool_and(t.typtype = 'e') FROM pg_catalog.pg_type t WHERE t.oid >= 16384 GROUP BY t.typname
				UNION ALL SELECT 'c', 'cast', true FROM pg_catalog.pg_cast c WHERE c.oid >= 16384 AND c.castcontext <> 'e'
				AND c.castsource < 16384 AND c.casttarget < 16384`)
			if err != nil {
				return e, err
			}
			e = extras{functions: make(map[string]bool), operators: make(map[string]bool), types: make(map[string]bool)}
			for _, r := range rows {
				name, plain := text(r[1]), strings.HasPrefix(text(r[2]), "t")
				switch text(r[0]) {
				case "f":
					e.functions[name] = plain
				case "o":
					e.operators[name] = plain
				case "t":
					e.types[name] = plain
				case "c":
					e.casts = true
				}
			}
			return e, nil
		})
}

// shadows tells whether a call by this name may mean something that is not
// built in. foreign tells that values of added types are about.
func shadows(added map[string]bool, name string, foreign bool) bool {
	plain, ok := added[name]
	return ok && (plain || foreign)
}

// vouch checks the functions, types and operators of a statement against the
// catalog: it classifies the statement and says why it is not cacheable.
func vouch(a *query.Analysis, b *builtins, e *extras, foreign bool) {
	for _, f := range a.Functions {
		vouchFunction(a, f, b, e, foreign)
	}
	for _, t := range a.Types {
		isEnum, isAdded := e.types[t.Name]
		if (t.Schema == "" || t.Schema == "pg_catalog") && b.types[t.Name] && !(t.Schema == "" && isAdded) {
			continue
		}
		if !isEnum {
			a.Class = a.Class.Worse(query.ClassOther)
		}
		a.Refuse("the type " + t.String() + " is not built in")
	}
	for _, o := range a.Operators {
		if shadows(e.operators, o, foreign) {
			a.Class = a.Class.Worse(query.ClassOther)
			a.Refuse("the operator " + o + " may be one that is not built in")
		}
	}
	if e.casts {
		a.Refuse("an implicit cast between built-in types was added to the database")
	}
}

func vouchFunction(a *query.Analysis, f query.Function, b *builtins, e *extras, foreign bool) {
	volatility, known := b.volatility[f.Name.Name]
	if f.Schema != "" && f.Schema != "pg_catalog" || !known || f.Schema == "" && shadows(e.functions, f.Name.Name, foreign) {
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

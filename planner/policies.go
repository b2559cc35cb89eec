package planner

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"freshet/cache/feed"
	"freshet/planner/postgres"
	"freshet/planner/query"
	"freshet/planner/scan"
)

// maxPolicies bounds the policies of one table that are judged.
const maxPolicies = 64

// postgresPolicies reads the conditions by which row-level security shows rows,
// written out like a view's definition (see postgresView), with the fingerprint
// that says which they are.
func (k *catalog) postgresPolicies(ctx context.Context, r *relation) error {
	if r.spec.Policies == "" || r.reason != "" {
		return nil
	}
	rows, err := k.query(ctx, 3, `SELECT pg_catalog.set_config('search_path', 'pg_catalog', true), `+feed.PoliciesSQL+`,
		(SELECT pg_catalog.json_agg(pg_catalog.pg_get_expr(p.polqual, p.polrelid)) FROM pg_catalog.pg_policy p
			WHERE p.polrelid = c.oid AND p.polcmd IN ('r', '*') AND p.polqual IS NOT NULL)
		FROM pg_catalog.pg_class c WHERE c.oid = `+strconv.FormatUint(uint64(r.spec.OID), 10))
	if err != nil {
		return err
	}
	if len(rows) != 1 {
		r.reason = "it is not there any more"
		return nil
	}
	r.spec.Policies = text(rows[0][1])
	r.shielded = r.spec.Policies != ""
	if rows[0][2] == nil {
		return nil // nobody is shown anything, but for those above policies
	}
	return json.Unmarshal([]byte(*rows[0][2]), &r.policies)
}

// police judges the policies of a table. Which of them hold for a session hangs
// on its role, which is in the key, and on what roles there are, which the feed
// watches; so all are taken to hold. What passes them is a part of the rows that
// the statement reads, so what narrows the statement narrows still, and the
// columns that they read are read besides.
func (r *resolver) police(ctx context.Context, rel *relation) error {
	if _, met := r.policed[rel]; met {
		return nil
	}
	if r.policed == nil {
		r.policed = make(map[*relation][]int)
	}
	r.policed[rel] = []int{}
	if len(rel.policies) > maxPolicies {
		r.analysis.Refuse(rel.String() + ": it has more than " + strconv.Itoa(maxPolicies) + " row-level security policies")
	}
	for _, condition := range rel.policies {
		columns, reason, err := r.policy(ctx, rel, condition)
		if err != nil {
			return err
		}
		if reason != "" {
			// What it calls may do anything; like what a trigger does, that is
			// judged over all code of the database (see Hidden).
			r.analysis.Refuse(rel.String() + ": a row-level security policy: " + reason)
			return nil
		}
		r.policed[rel] = append(r.policed[rel], columns...)
	}
	return nil
}

// policy judges one condition as the WHERE of a SELECT from its table. reason
// says why the answer may hang on more than the key and the table's rows.
func (r *resolver) policy(ctx context.Context, rel *relation, condition string) (columns []int, reason string, err error) {
	a, err := analysePolicy(rel, condition)
	if err != nil {
		return nil, err.Error(), nil
	}
	if len(a.Tables) != 1 || a.Tables[0].Uses != 1 {
		return nil, "it reads tables", nil
	}
	k := r.planner.catalog
	b, err := k.builtIn(ctx)
	if err != nil {
		return nil, "", err
	}
	e, err := k.added(ctx)
	if err != nil {
		return nil, "", err
	}
	r.rely(&e.fact)
	v := &resolver{planner: r.planner, template: r.template, scope: r.scope, analysis: a, tables: [][]*relation{{rel}}, foreign: rel.foreign}
	v.vouching(&b.value, &e.value).vouch(a)
	v.attributes()
	v.times()
	if a.Class != ClassRead {
		a.Refuse("it may have effects")
	}
	for _, name := range a.Columns {
		i, ok := rel.byName[name]
		if !ok {
			a.Refuse("it names " + name + ", which is no column")
			break
		}
		columns = append(columns, i)
	}
	return columns, a.Reason, nil
}

func analysePolicy(rel *relation, condition string) (*query.Analysis, error) {
	quoted := func(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
	sql := "SELECT FROM ONLY " + quoted(rel.schema) + "." + quoted(rel.name) + " WHERE " + condition
	d := scan.Take(sql, scan.Options{Postgres: true, AnsiQuotes: true, NoBackslash: true})
	if d.Exec || d.Broken || len(sql) > maxTextBytes {
		return nil, errors.New("it is too long, or cannot be read")
	}
	a, err := postgres.AnalysePolicy(d.Plain, d.Depth, d.Chain)
	if err != nil {
		return nil, errors.New("it could not be parsed")
	}
	a.ForgetValues()
	return a, nil
}

package oracle

import (
	"encoding/hex"
	"strconv"
	"strings"

	"freshet/bench/upstream"
)

// trait is what values of a type are good for.
type trait uint8

const (
	exact   trait = 1 << iota // equal values print alike: may stand for a group, be a MIN
	ranked                    // has an order: <, BETWEEN, ORDER BY
	number                    // has sums that do not depend on the order of rows
	textual                   // has LIKE and LOWER
	indexed                   // may stand in an index
	keyable                   // may be part of a key that other tables refer to
	unequal                   // has no =
)

// kind is a column type with values to store and to compare with. Values are
// literals, chosen for what has fooled caches: other spellings of one value,
// the ends of ranges, what only a collation holds equal.
type kind struct {
	name   string // as reports call it
	ddl    string
	values []string // may be stored
	probes []string // are only compared with
	traits trait
	rare   bool // hampers caching of all that stands beside it: in few tables
}

func (k *kind) is(t trait) bool { return k.traits&t == t }

// dialect is what the generator must know of a server.
type dialect struct {
	mysql   bool
	maria   bool
	version int // major
	kinds   []*kind
	serials []*kind // for keys that other tables refer to
}

func dialectOf(k upstream.Kind) *dialect {
	d := &dialect{}
	switch k {
	case upstream.MariaDB, upstream.MariaDB11:
		d.mysql, d.maria, d.version = true, true, 10
		if k == upstream.MariaDB11 {
			d.version = 11
		}
		d.kinds = mysqlKinds(true)
	case upstream.MySQL:
		d.mysql, d.version = true, 9
		d.kinds = mysqlKinds(false)
	case upstream.Postgres18:
		d.version, d.kinds = 18, postgresKinds(18)
	default:
		d.version, d.kinds = 15, postgresKinds(15)
	}
	for _, k := range d.kinds {
		if k.is(keyable) {
			d.serials = append(d.serials, k)
		}
	}
	return d
}

// argument is a literal as the value of a parameter; ok is false for literals
// that only stand in text.
func (d *dialect) argument(literal string) (any, bool) {
	if n, err := strconv.ParseInt(literal, 10, 64); err == nil {
		return n, true
	}
	if n, err := strconv.ParseUint(literal, 10, 64); err == nil && d.mysql {
		return n, true
	}
	if body, ok := strings.CutPrefix(literal, "x'"); ok && d.mysql {
		b, err := hex.DecodeString(strings.TrimSuffix(body, "'"))
		return b, err == nil
	}
	if len(literal) < 2 || literal[0] != '\'' || strings.HasSuffix(literal, "''") || literal[len(literal)-1] != '\'' {
		return "", literal == "''"
	}
	s := strings.ReplaceAll(literal[1:len(literal)-1], "''", "'")
	if d.mysql {
		s = strings.ReplaceAll(s, `\\`, `\`)
	}
	return s, true
}

// words are texts that collations hold equal or apart in different ways.
var words = []string{"''", "'a'", "'A'", "'á'", "'a '", "'A  '", "'ab'", "'aB'", "'AB '", "'ä'", "'ß'", "'ss'", "'SS'", "'æ'", "'ae'", "'é'", "'e'",
	"'ñ'", "'n'", "'z'", "'1'", "'01'", "'1.0'", "' '", "'  '", "'a-b'", "'a_b'", "'o''k'", "'%'"}

// wide are words outside latin1.
var wide = []string{"'日本'", "'😀'", "'a\u0301'", "'ﬀ'", "'ff'", "'İ'", "'i'", "'ı'", "'I'", "'Ω'", "'ω'", "'ς'", "'σ'", "'Σ'", "'Ⅳ'", "'IV'", "'a\u200b'"}

func with(a []string, more ...string) []string { return append(append([]string(nil), a...), more...) }

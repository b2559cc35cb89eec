package scan

import (
	"strconv"
	"strings"
)

// Normalise writes a statement so that two which differ only in literals,
// parameters, the lengths of IN lists, white space, comments, or the case of
// keywords come out the same. Literals and parameters are "?" in MySQL's
// dialect and "$n", numbered as they come, in PostgreSQL's. Positions in ORDER
// BY and GROUP BY keep their numbers: they are columns.
func Normalise(text string, opt Options) string {
	n := normaliser{text: text, opt: opt}
	for s := New(text, opt); ; {
		t := s.Next()
		if t.Kind == End {
			break
		}
		n.add(t)
	}
	for len(n.pieces) > 0 && n.pieces[len(n.pieces)-1].text == ";" {
		n.pieces = n.pieces[:len(n.pieces)-1]
	}
	n.collapse()
	return n.write()
}

// piece is one token as it will be written.
type piece struct {
	text    string
	kind    Kind
	keyword bool
	// str is set for the placeholder of a string: one that follows belongs to it.
	str bool
}

type normaliser struct {
	text   string
	opt    Options
	pieces []piece
	// by is the bracket depth plus one of an open ORDER BY or GROUP BY list.
	by, depth int
}

var placeholder = piece{text: "?", kind: Param}

func (n *normaliser) add(t Token) {
	s := n.text[t.Start:t.End]
	switch t.Kind {
	case Hint, Exec:
	case Word:
		n.word(s)
	case Integer:
		if n.ordinal() {
			n.pieces = append(n.pieces, piece{text: s, kind: Integer})
			return
		}
		n.constant(t.Kind)
	case String, Bits, Decimal, Float, Param:
		n.constant(t.Kind)
	case Op:
		n.op(s)
	default:
		n.pieces = append(n.pieces, piece{text: s, kind: t.Kind})
	}
}

// word writes keywords in capitals and, where names are folded, others in
// small letters.
func (n *normaliser) word(s string) {
	p := piece{text: s, kind: Word}
	if upper := strings.ToUpper(s); keywords[upper] && n.prev().text != "." {
		p.text, p.keyword = upper, true
		if upper == "BY" {
			n.by = n.depth + 1
		} else if n.by == n.depth+1 && upper != "ASC" && upper != "DESC" && upper != "NULLS" {
			n.by = 0
		}
	} else if n.opt.Postgres {
		p.text = strings.ToLower(s)
	}
	n.pieces = append(n.pieces, p)
}

func (n *normaliser) op(s string) {
	switch s {
	case "(", "[":
		n.depth++
	case ")", "]":
		n.depth--
		if n.by > n.depth+1 {
			n.by = 0
		}
	case ";":
		n.by = 0
	case "!=":
		s = "<>"
	}
	n.pieces = append(n.pieces, piece{text: s, kind: Op})
}

// constant writes a placeholder; a sign before it belongs to it, and strings
// in a row are one.
func (n *normaliser) constant(k Kind) {
	last := n.prev()
	if k == String && last.kind == Param && last.str {
		return
	}
	if last.kind == Op && (last.text == "-" || last.text == "+") && n.signBelongs() {
		n.pieces = n.pieces[:len(n.pieces)-1]
	}
	p := placeholder
	p.str = k == String
	n.pieces = append(n.pieces, p)
}

// signBelongs tells whether the sign that was written last is unary.
func (n *normaliser) signBelongs() bool {
	if len(n.pieces) < 2 {
		return true
	}
	p := n.pieces[len(n.pieces)-2]
	return p.kind == Op && p.text != ")" && p.text != "]" || p.kind == Word && p.keyword
}

// ordinal tells whether an integer here is a position in an ORDER BY or GROUP
// BY list.
func (n *normaliser) ordinal() bool {
	last := n.prev().text
	return n.by == n.depth+1 && (last == "BY" || last == ",")
}

func (n *normaliser) prev() piece {
	if len(n.pieces) == 0 {
		return piece{}
	}
	return n.pieces[len(n.pieces)-1]
}

// collapse shortens `IN (?, ?, …)` to one member and `VALUES (…), (…)` to one
// row when all are alike.
func (n *normaliser) collapse() {
	out := n.pieces[:0:0]
	for i := 0; i < len(n.pieces); {
		p := n.pieces[i]
		out = append(out, p)
		i++
		if p.kind != Word || !p.keyword {
			continue
		}
		switch {
		case p.text == "IN" && i < len(n.pieces) && n.pieces[i].text == "(":
			first, end := n.alike(i + 1)
			if end > 0 && end < len(n.pieces) && n.pieces[end].text == ")" {
				out = append(append(out, n.pieces[i]), n.pieces[i+1:first]...)
				i = end
			}
		case p.text == "VALUES":
			if first, end := n.alike(i); end > 0 {
				out = append(out, n.pieces[i:first]...)
				i = end
			}
		}
	}
	n.pieces = out
}

// alike reads a comma-separated list of constant items at i, all of one form,
// and returns the ends of the first and of the last; 0 when there is none.
func (n *normaliser) alike(i int) (first, end int) {
	first = n.item(i)
	if first == 0 {
		return 0, 0
	}
	end = first
	for end < len(n.pieces) && n.pieces[end].text == "," {
		next := n.item(end + 1)
		if next == 0 || next-end-1 != first-i {
			return 0, 0
		}
		end = next
	}
	return first, end
}

// item returns the end of a placeholder, or of a bracket of placeholders, at
// i; 0 when something else stands there.
func (n *normaliser) item(i int) int {
	isConstant := func(i int) bool { return i < len(n.pieces) && n.pieces[i].kind == Param }
	if isConstant(i) {
		return i + 1
	}
	if i >= len(n.pieces) || n.pieces[i].text != "(" {
		return 0
	}
	for i++; isConstant(i) && i+1 < len(n.pieces); i += 2 {
		switch n.pieces[i+1].text {
		case ")":
			return i + 2
		case ",":
		default:
			return 0
		}
	}
	return 0
}

func (n *normaliser) write() string {
	var b strings.Builder
	number := 0
	for i, p := range n.pieces {
		if i > 0 && spaced(n.pieces[i-1], p) {
			b.WriteByte(' ')
		}
		if p.kind == Param && n.opt.Postgres {
			number++
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(number))
			continue
		}
		b.WriteString(p.text)
	}
	return b.String()
}

// spaced tells whether a space stands between two pieces.
func spaced(a, b piece) bool {
	switch b.text {
	case ",", ")", ".", ";", "]", "::", "[":
		return false
	case "(":
		return a.keyword && !callable[a.text] || a.kind == Op && a.text != "("
	}
	switch a.text {
	case "(", ".", "::", "[":
		return false
	}
	return true
}

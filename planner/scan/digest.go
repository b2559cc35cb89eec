package scan

import (
	"strconv"
	"strings"
	"sync"
)

// Literal is a literal that a skeleton has a parameter for.
type Literal struct {
	Kind     Kind // String, Integer, Decimal or Float
	Negative bool
	// Value is a string's value, or a number's digits without its sign.
	Value string
	// Unread is set when the value was not worked out (Unicode escapes, several strings in a row).
	Unread bool
}

// Slot is what stands behind one parameter of a skeleton: the client's own
// parameter, from 0, or Literals[^slot] when it is negative.
type Slot int32

// Digest is a text taken apart: its skeleton, in which every literal whose
// place is one where a parameter could stand has become a parameter, and what
// the parameters stand for. Two texts with one skeleton differ only in
// literals, so they share a parse.
type Digest struct {
	// Skeleton has comments and hints taken out.
	Skeleton string
	// Plain is the text without comments and hints, its literals in place.
	Plain    string
	Slots    []Slot
	Literals []Literal
	// Params is how many parameters the text itself has.
	Params int
	// Hints are the insides of /*+ … */, in order.
	Hints []string
	// Exec tells that the text has executable comments: what it means depends
	// on the server's version.
	Exec bool
	// Broken tells that the text has no end (a string, a comment) or a byte
	// that begins no token.
	Broken bool
	// Depth is how deep brackets nest, Chain how many operators and
	// keywords stand in the text: bounds for a recursive parser.
	Depth, Chain int
	// Leading are the first words of the statements in the text, in capitals,
	// "" for one that begins otherwise.
	Leading []string
}

var tokenPool = sync.Pool{New: func() any { return new([]Token) }}

// Take digests a text.
func Take(text string, opt Options) Digest {
	buffer := tokenPool.Get().(*[]Token)
	tokens := (*buffer)[:0]
	d := Digest{}
	maxParam := 0
	for s := New(text, opt); ; {
		t := s.Next()
		if t.Kind == End {
			break
		}
		d.note(text, t)
		if t.Kind == Param {
			d.Params++
			maxParam = max(maxParam, t.Number)
		}
		tokens = append(tokens, t)
	}
	if opt.Postgres {
		d.Params = maxParam
	}
	if !d.Broken && !d.Exec {
		b := builder{digest: &d, text: text, tokens: tokens, opt: opt}
		b.run()
	}
	*buffer = tokens
	tokenPool.Put(buffer)
	return d
}

// note gathers what single tokens tell.
func (d *Digest) note(text string, t Token) {
	switch t.Kind {
	case Broken:
		d.Broken = true
	case Exec:
		d.Exec = true
	case Hint:
		d.Hints = append(d.Hints, text[t.Start+3:t.End-2])
	case Op, Word:
		d.Chain++
	}
}

// builder writes a digest's skeleton. Its state says whether a literal at the
// next token is in a place where a parameter may stand.
type builder struct {
	digest *Digest
	text   string
	tokens []Token
	opt    Options

	skeleton, plain strings.Builder
	depth           int
	// lists are the depths of the open brackets that follow IN or VALUES.
	lists   []int
	values  int // depth of an open VALUES clause plus one, 0 when none is open
	between bool
	limit   bool
	first   bool // the next word leads a statement
	last    int  // end of the last token that was written
}

func (b *builder) run() {
	b.skeleton.Grow(len(b.text))
	b.first = true
	if b.opt.Postgres {
		b.digest.Slots = make([]Slot, b.digest.Params, b.digest.Params+4)
		for i := range b.digest.Slots {
			b.digest.Slots[i] = Slot(i)
		}
	}
	for i := 0; i < len(b.tokens); {
		if n := b.literal(i); n > 0 {
			i += n
			b.first = false
			continue
		}
		b.token(i)
		i++
	}
	b.blank(Token{Start: len(b.text), End: len(b.text)})
	b.digest.Skeleton, b.digest.Plain = b.skeleton.String(), b.plain.String()
}

// blank writes one space where the text has blanks or comments, or one line
// end if they have one: PostgreSQL joins strings on different lines.
func (b *builder) blank(t Token) {
	if t.Start > b.last && b.last > 0 {
		space := byte(' ')
		if strings.IndexByte(b.text[b.last:t.Start], '\n') >= 0 {
			space = '\n'
		}
		b.skeleton.WriteByte(space)
		b.plain.WriteByte(space)
	}
	b.last = t.End
}

// token writes a token as it stands and moves the state on.
func (b *builder) token(i int) {
	t := b.tokens[i]
	b.blank(t)
	if t.Kind == Hint {
		return
	}
	s := b.text[t.Start:t.End]
	if s[0] == '-' && strings.HasSuffix(b.plain.String(), "-") {
		// Two signs must not become a comment where one was taken out after them.
		b.skeleton.WriteByte(' ')
		b.plain.WriteByte(' ')
	}
	b.skeleton.WriteString(s)
	b.plain.WriteString(s)
	if t.Kind == Param && !b.opt.Postgres {
		b.digest.Slots = append(b.digest.Slots, Slot(b.params()))
	}
	b.lead(t, s)
	switch {
	case t.Kind == Word:
		b.word(s)
	case t.Kind == Op:
		b.op(i, s)
	}
}

// params counts the text's own parameters written so far.
func (b *builder) params() int { return len(b.digest.Slots) - len(b.digest.Literals) }

func (b *builder) lead(t Token, s string) {
	switch {
	case t.Kind == Op && s == ";" && b.depth == 0:
		b.first = true
	case b.first && t.Kind == Op && s == "(":
	case b.first:
		word := ""
		if t.Kind == Word {
			word = strings.ToUpper(s)
		}
		b.digest.Leading = append(b.digest.Leading, word)
		b.first = false
	}
}

func (b *builder) word(s string) {
	switch len(s) {
	case 5:
		if strings.EqualFold(s, "LIMIT") {
			b.limit = true
			return
		}
	case 7:
		if strings.EqualFold(s, "BETWEEN") {
			b.between = true
			return
		}
	case 6:
		if strings.EqualFold(s, "VALUES") {
			b.values = b.depth + 1
			return
		}
	}
	b.limit = false
	if b.values == b.depth+1 {
		b.values = 0
	}
}

func (b *builder) op(i int, s string) {
	switch s {
	case "(", "[", "{":
		b.depth++
		b.digest.Depth = max(b.digest.Depth, b.depth)
		if s == "(" && (b.values == b.depth || b.afterWord(i, "IN") || b.row(i)) {
			b.lists = append(b.lists, b.depth)
		}
	case ")", "]", "}":
		if n := len(b.lists); n > 0 && b.lists[n-1] == b.depth {
			b.lists = b.lists[:n-1]
		}
		b.depth = max(0, b.depth-1)
	case ";":
		b.limit, b.between, b.values = false, false, 0
	}
	if s != "," {
		b.limit = false
	}
}

// afterWord tells whether the token before i is the given keyword.
func (b *builder) afterWord(i int, word string) bool {
	if i == 0 || b.tokens[i-1].Kind != Word {
		return false
	}
	t := b.tokens[i-1]
	return strings.EqualFold(b.text[t.Start:t.End], word)
}

// literal replaces the literal that begins at token i, if one does and its
// place allows, and returns how many tokens it took.
func (b *builder) literal(i int) int {
	t, n, negative := b.tokens[i], 1, false
	if t.Kind == Op && t.End-t.Start == 1 && i+1 < len(b.tokens) && b.text[t.Start] == '-' {
		negative, n = true, 2
		t = b.tokens[i+1]
		if t.Kind != Integer && t.Kind != Decimal && t.Kind != Float {
			return 0
		}
	}
	if t.Kind < String || t.Kind > Float || t.Kind == Bits || !b.replaceable(i) {
		return 0
	}
	raw := b.text[t.Start:t.End]
	l := Literal{Kind: t.Kind, Negative: negative, Value: raw}
	if t.Kind == String {
		l.Value, l.Unread = decode(raw, b.opt)
		for i+n < len(b.tokens) && b.tokens[i+n].Kind == String {
			l.Unread = true
			n++
		}
	}
	end := b.tokens[i+n-1].End
	b.blank(Token{Start: b.tokens[i].Start, End: end})
	b.plain.WriteString(b.text[b.tokens[i].Start:end])
	b.digest.Slots = append(b.digest.Slots, Slot(^len(b.digest.Literals)))
	b.digest.Literals = append(b.digest.Literals, l)
	if b.opt.Postgres {
		b.skeleton.WriteByte('$')
		b.skeleton.WriteString(strconv.Itoa(len(b.digest.Slots)))
	} else {
		b.skeleton.WriteByte('?')
	}
	if end < len(b.text) && (isNameByte(b.text[end]) || b.text[end] == '\'' || b.text[end] == '.') {
		b.skeleton.WriteByte(' ') // "x=1and" must not become "x=$1and"
	}
	b.between = b.between && !b.afterWord(i, "AND")
	return n
}

// replaceable tells whether a literal at token i stands where a parameter
// could: after a comparison, in an IN or VALUES list, in LIMIT, BETWEEN, LIKE.
func (b *builder) replaceable(i int) bool {
	if i == 0 {
		return false
	}
	t := b.tokens[i-1]
	s := b.text[t.Start:t.End]
	switch t.Kind {
	case Op:
		switch s {
		case "=", "<", ">", "<=", ">=", "<>", "!=":
			return true
		case "(":
			return b.inList()
		case ",":
			return b.inList() || b.limit
		}
	case Word:
		switch {
		case strings.EqualFold(s, "LIMIT"), strings.EqualFold(s, "OFFSET"), strings.EqualFold(s, "LIKE"),
			strings.EqualFold(s, "BETWEEN"):
			return true
		case strings.EqualFold(s, "AND"):
			return b.between
		}
	}
	return false
}

// row tells whether the bracket at token i, which is open already, begins a row
// that is compared, or one in an IN or VALUES list.
func (b *builder) row(i int) bool {
	if i == 0 || b.tokens[i-1].Kind != Op {
		return false
	}
	switch b.text[b.tokens[i-1].Start:b.tokens[i-1].End] {
	case "=":
		return true
	case "(", ",":
		n := len(b.lists)
		return n > 0 && b.lists[n-1] == b.depth-1
	}
	return false
}

// inList tells whether the innermost open bracket is an IN or VALUES list.
func (b *builder) inList() bool {
	n := len(b.lists)
	return n > 0 && b.lists[n-1] == b.depth
}

package proxy

import (
	"errors"
	"strings"
	"time"
)

// parseCommand reads one of Freshet's commands. It returns nil, nil for a text
// that does not begin like one: that is the upstream's. One that begins like
// ours and goes on wrongly is a syntax error.
func parseCommand(text string) (command, error) {
	p := &commandParser{lexer: lexer{text: text}}
	p.next()
	for _, form := range forms {
		if p.starts(form.words...) {
			cmd, err := form.parse(p)
			if errors.Is(err, errNotOurs) {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			return cmd, nil
		}
	}
	return nil, nil
}

// errNotOurs says that a text that began like a command is the upstream's.
var errNotOurs = errors.New("not a command of Freshet's")

// forms are the commands by their first words.
var forms = []struct {
	words []string
	parse func(*commandParser) (command, error)
}{
	{[]string{"CREATE", "CACHE"}, (*commandParser).createCache},
	{[]string{"ALTER", "CACHE"}, (*commandParser).alterCache},
	{[]string{"DROP", "CACHE"}, (*commandParser).dropCache},
	{[]string{"DROP", "ALL", "CACHES"}, func(p *commandParser) (command, error) { return dropAll{}, p.end() }},
	{[]string{"FLUSH", "CACHE"}, (*commandParser).flushCache},
	{[]string{"FLUSH", "ALL", "CACHES"}, func(p *commandParser) (command, error) { return flushAll{}, p.end() }},
	{[]string{"SHOW", "CACHES"}, (*commandParser).showCaches},
	{[]string{"SHOW", "PROXIED", "QUERIES"}, (*commandParser).showProxied},
	{[]string{"SHOW", "FRESHET"}, (*commandParser).showFreshet},
	{[]string{"EXPLAIN", "CREATE", "CACHE"}, (*commandParser).explainCreate},
	{[]string{"EXPLAIN", "LAST", "STATEMENT"}, func(p *commandParser) (command, error) { return explainLast{}, p.end() }},
	{[]string{"SET", "FRESHET", "."}, (*commandParser).setOption},
	{[]string{"SET", "SESSION", "FRESHET", "."}, (*commandParser).setOption},
	{[]string{"SET", "LOCAL", "FRESHET", "."}, (*commandParser).setLocalOption},
	{[]string{"RESET", "FRESHET", "."}, (*commandParser).resetOption},
	{[]string{"SET"}, (*commandParser).setVariable},
	{[]string{"SELECT", "@", "@"}, (*commandParser).selectVariables},
}

type commandParser struct {
	lexer
	tok token
}

func (p *commandParser) next() { p.tok = p.scan() }

// starts consumes the words if the text begins with them.
func (p *commandParser) starts(words ...string) bool {
	saved := *p
	for _, w := range words {
		if !p.tok.is(w) {
			*p = saved
			return false
		}
		p.next()
	}
	return true
}

func (p *commandParser) accept(word string) bool {
	if p.tok.is(word) {
		p.next()
		return true
	}
	return false
}

func (p *commandParser) want(word string) error {
	if !p.accept(word) {
		return p.expected(word)
	}
	return nil
}

func (p *commandParser) expected(what string) error {
	if p.tok.kind == tokEnd {
		return syntaxError(p.tok.pos, "syntax error at the end: expected %s", what)
	}
	return syntaxError(p.tok.pos, "syntax error at or near %q (position %d): expected %s", p.tok.text, p.tok.pos+1, what)
}

// end wants the text to be over, but for one semicolon.
func (p *commandParser) end() error {
	p.accept(";")
	if p.tok.kind != tokEnd {
		return p.expected("the end of the command")
	}
	return nil
}

// name reads a word, a quoted name or a string.
func (p *commandParser) name(what string) (string, error) {
	if p.tok.kind != tokWord && p.tok.kind != tokName && p.tok.kind != tokString {
		return "", p.expected(what)
	}
	n := p.tok.text
	p.next()
	return n, nil
}

func (p *commandParser) number(what string) (int, error) {
	if p.tok.kind != tokNumber {
		return 0, p.expected(what)
	}
	n := 0
	for _, c := range p.tok.text {
		if c < '0' || c > '9' || n > 1<<30 {
			return 0, p.expected(what)
		}
		n = n*10 + int(c-'0')
	}
	p.next()
	return n, nil
}

func (p *commandParser) createCache() (command, error) {
	c := createCache{}
	if p.accept("IF") {
		if err := p.want("NOT"); err != nil {
			return nil, err
		}
		if err := p.want("EXISTS"); err != nil {
			return nil, err
		}
		c.ifNotExists = true
	}
	if !p.tok.is("WITH") && !p.tok.is("FROM") {
		var err error
		if c.name, err = p.name("a name, WITH or FROM"); err != nil {
			return nil, err
		}
	}
	if p.accept("WITH") {
		if err := p.options(&c.policy); err != nil {
			return nil, err
		}
	}
	return c, p.source(&c.from)
}

// source reads FROM and then takes the rest of the text as it is.
func (p *commandParser) source(into *string) error {
	if !p.tok.is("FROM") {
		return p.expected("FROM")
	}
	rest := strings.TrimSpace(p.text[p.tok.pos+len("FROM"):])
	rest = strings.TrimSpace(strings.TrimSuffix(rest, ";"))
	if rest == "" {
		p.next()
		return p.expected("a SELECT or a query_id")
	}
	*into = rest
	return nil
}

func (p *commandParser) alterCache() (command, error) {
	c := alterCache{}
	var err error
	if c.name, err = p.name("the cache's name"); err != nil {
		return nil, err
	}
	if err := p.want("SET"); err != nil {
		return nil, err
	}
	if err := p.options(&c.policy); err != nil {
		return nil, err
	}
	return c, p.end()
}

// options reads ( option [, option] … ).
func (p *commandParser) options(into *Policy) error {
	if err := p.want("("); err != nil {
		return err
	}
	for {
		if err := p.option(into); err != nil {
			return err
		}
		if p.accept(",") {
			continue
		}
		return p.want(")")
	}
}

func (p *commandParser) option(into *Policy) (err error) {
	pos := p.tok
	switch {
	case p.accept("TTL"):
		into.TTL, err = p.duration()
	case p.accept("CONSISTENCY"):
		level, ok := ParseLevel(strings.ToLower(p.tok.text))
		if !ok {
			return p.expected(wantLevel)
		}
		p.accept(strings.ToUpper(p.tok.text))
		into.Consistency = level.String()
	case p.accept("MAX"):
		switch {
		case p.accept("STALENESS"):
			into.MaxStaleness, err = p.duration()
		case p.tok.is("ENTRY"):
			return unavailable(pos, "MAX ENTRY")
		default:
			return p.expected("STALENESS")
		}
	case p.tok.is("ALWAYS"), p.tok.is("TIMEOUT"):
		return unavailable(pos, strings.ToUpper(pos.text))
	default:
		return p.expected("TTL, CONSISTENCY or MAX STALENESS")
	}
	return err
}

func unavailable(at token, option string) error {
	return &ConsoleError{Code: ErrUnsupported, Position: at.pos + 1,
		Message: "the option " + option + " is not available yet: TTL, CONSISTENCY and MAX STALENESS are"}
}

func (p *commandParser) duration() (time.Duration, error) {
	at := p.tok
	n, err := p.number("a number")
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, syntaxError(at.pos, "expected a number above 0 at position %d", at.pos+1)
	}
	switch {
	case p.accept("SECONDS"), p.accept("SECOND"):
		return time.Duration(n) * time.Second, nil
	case p.accept("MILLISECONDS"), p.accept("MILLISECOND"):
		return time.Duration(n) * time.Millisecond, nil
	}
	return 0, p.expected("SECONDS or MILLISECONDS")
}

func (p *commandParser) dropCache() (command, error) {
	c := dropCache{}
	if p.accept("IF") {
		if err := p.want("EXISTS"); err != nil {
			return nil, err
		}
		c.ifExists = true
	}
	var err error
	if c.name, err = p.name("the cache's name"); err != nil {
		return nil, err
	}
	return c, p.end()
}

func (p *commandParser) flushCache() (command, error) {
	n, err := p.name("the cache's name")
	if err != nil {
		return nil, err
	}
	return flushCache{n}, p.end()
}

func (p *commandParser) showCaches() (command, error) {
	c := showCaches{}
	var err error
	switch {
	case p.accept("LIKE"):
		c.like, err = p.name("a pattern")
	case p.accept("WHERE"):
		if err := p.want("QUERY_ID"); err != nil {
			return nil, err
		}
		if err := p.want("="); err != nil {
			return nil, err
		}
		c.queryID, err = p.name("a query_id")
	}
	if err != nil {
		return nil, err
	}
	return c, p.end()
}

func (p *commandParser) showProxied() (command, error) {
	c := showProxied{limit: -1}
	if p.accept("LIMIT") {
		var err error
		if c.limit, err = p.number("a number of rows"); err != nil {
			return nil, err
		}
	}
	return c, p.end()
}

func (p *commandParser) showFreshet() (command, error) {
	switch {
	case p.accept("STATUS"):
		return showStatus{}, p.end()
	case p.accept("VERSION"):
		return showVersion{}, p.end()
	case p.accept("TABLES"):
		return showTables{}, p.end()
	case p.accept("LINKS"):
		return showLinks{}, p.end()
	case p.accept("CONNECTIONS"):
		return showConnections{}, p.end()
	case p.starts(".", "CACHE"):
		return showOptions{[]string{"cache"}, []string{"freshet.cache"}}, p.end()
	case p.starts(".", "CONSISTENCY"):
		return showOptions{[]string{"consistency"}, []string{"freshet.consistency"}}, p.end()
	}
	return nil, p.expected("CONNECTIONS, LINKS, STATUS, TABLES or VERSION")
}

func (p *commandParser) explainCreate() (command, error) {
	if !p.tok.is("FROM") { // EXPLAIN CREATE CACHE name FROM …: the name does not matter
		if _, err := p.name("FROM"); err != nil {
			return nil, err
		}
	}
	c := explainCreate{}
	return c, p.source(&c.from)
}

// setOption reads what follows SET freshet.
func (p *commandParser) setOption() (command, error) {
	option, err := p.sessionOption()
	if err != nil {
		return nil, err
	}
	return p.setValue(option)
}

// sessionOption reads the name of one of a session's options.
func (p *commandParser) sessionOption() (string, error) {
	for _, option := range sessionOptions {
		if p.accept(option) {
			return option, nil
		}
	}
	return "", p.expected("cache or consistency")
}

// sessionOptions are what SET freshet.… can name.
var sessionOptions = []string{"cache", "consistency"}

// setLocalOption reads what follows SET LOCAL freshet.
func (p *commandParser) setLocalOption() (command, error) {
	c, err := p.setOption()
	if o, ok := c.(setOption); ok {
		o.local = true
		c = o
	}
	return c, err
}

// resetOption reads what follows RESET freshet.
func (p *commandParser) resetOption() (command, error) {
	option, err := p.sessionOption()
	if err != nil {
		return nil, err
	}
	c := setOption{tag: "RESET"}
	c.parse(option, "default")
	return c, p.end()
}

// setVariable reads MySQL's spelling, SET [SESSION] freshet_cache or
// SET @@[session.]freshet_cache. Other variables are the upstream's.
func (p *commandParser) setVariable() (command, error) {
	option := ""
	if p.starts("@", "@") {
		option = p.variable()
	} else {
		if !p.accept("SESSION") {
			p.accept("LOCAL")
		}
		option = p.freshetVariable()
	}
	if option == "" {
		return nil, errNotOurs
	}
	return p.setValue(option)
}

// variable reads what follows @@: the option of a variable of Freshet's, else "".
func (p *commandParser) variable() string {
	if !p.starts("SESSION", ".") {
		p.starts("LOCAL", ".")
	}
	return p.freshetVariable()
}

// freshetVariable reads freshet_cache or freshet_consistency; else "".
func (p *commandParser) freshetVariable() string {
	for _, option := range sessionOptions {
		if p.accept("freshet_" + option) {
			return option
		}
	}
	return ""
}

// selectVariables reads what follows SELECT @@, as far as all the variables are
// Freshet's: a list that names others, too, is the upstream's.
func (p *commandParser) selectVariables() (command, error) {
	c := showOptions{}
	from := strings.IndexByte(p.text, '@')
	for {
		option := p.variable()
		if option == "" {
			return nil, errNotOurs
		}
		column := strings.TrimSpace(p.text[from:p.tok.pos])
		if p.accept("AS") {
			var err error
			if column, err = p.name("a name"); err != nil {
				return nil, err
			}
		}
		c.names, c.columns = append(c.names, option), append(c.columns, column)
		if !p.accept(",") {
			break
		}
		if from = p.tok.pos; !p.starts("@", "@") {
			return nil, errNotOurs
		}
	}
	if p.end() != nil {
		return nil, errNotOurs
	}
	return c, nil
}

func (p *commandParser) setValue(option string) (command, error) {
	if !p.accept("=") && !p.accept("TO") && !p.starts(":", "=") {
		return nil, p.expected("=")
	}
	at := p.tok
	c := setOption{}
	if p.tok.kind == tokNumber && (p.tok.text == "0" || p.tok.text == "1") {
		p.tok.kind = tokWord
	}
	v, err := p.name("a value")
	if err != nil {
		return nil, err
	}
	if msg := c.parse(option, strings.ToLower(v)); msg != "" {
		return nil, syntaxError(at.pos, "%q (position %d): expected %s", v, at.pos+1, msg)
	}
	return c, p.end()
}

package planner

import (
	"encoding/binary"
	"slices"
	"sync"
)

const (
	// maxStatements and maxStatementBytes bound the interned statements, so
	// that a flood of distinct texts pushes others out instead of filling memory.
	maxStatements     = 32 << 10
	maxStatementBytes = 16 << 20
	// maxTextBytes is the longest text that is interned and parsed.
	maxTextBytes = 16 << 10
	// maxScopes bounds the scopes; a client that makes up more goes unplanned.
	maxScopes = 1 << 16
)

// scopes interns Scope values. IDs begin at 1; 0 stands for one too many.
type scopes struct {
	mu   sync.RWMutex
	ids  map[Scope]ScopeID
	list []Scope
}

// Scope interns a scope. It returns 0, whose statements are never planned as
// cacheable, when there are too many distinct ones.
func (p *Planner) Scope(s Scope) ScopeID {
	p.scopes.mu.RLock()
	id, ok := p.scopes.ids[s]
	p.scopes.mu.RUnlock()
	if ok {
		return id
	}
	p.scopes.mu.Lock()
	defer p.scopes.mu.Unlock()
	if id, ok := p.scopes.ids[s]; ok {
		return id
	}
	if len(p.scopes.list) >= maxScopes {
		return 0
	}
	p.scopes.list = append(p.scopes.list, s)
	id = ScopeID(len(p.scopes.list))
	p.scopes.ids[s] = id
	return id
}

// scope returns the scope with an id.
func (p *Planner) scope(id ScopeID) (Scope, bool) {
	p.scopes.mu.RLock()
	defer p.scopes.mu.RUnlock()
	if id == 0 || int(id) > len(p.scopes.list) {
		return Scope{}, false
	}
	return p.scopes.list[id-1], true
}

var keyBuffers = sync.Pool{New: func() any { return new([]byte) }}

// statementKey writes scope, declared types and text; what is of variable
// length comes last or has its length before it.
func statementKey[T string | []byte](dst []byte, scope ScopeID, declared []uint32, text T) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(scope))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(declared)))
	for _, oid := range declared {
		dst = binary.LittleEndian.AppendUint32(dst, oid)
	}
	return append(dst, text...)
}

// Statement interns a text in a scope. declared are the parameter types of
// PostgreSQL's Parse (nil in a text query and in MySQL). It never blocks on
// I/O; text is copied. A text that differs from a planned one only in literals
// has its plan at once.
func (p *Planner) Statement(scope ScopeID, text []byte, declared []uint32) *Statement {
	sc, known := p.scope(scope)
	if !known || len(text) > maxTextBytes || len(declared) > maxParams {
		return &Statement{ID: p.nextID.Add(1), Text: string(text), Scope: sc, declared: slices.Clone(declared)}
	}
	buffer := keyBuffers.Get().(*[]byte)
	key := statementKey((*buffer)[:0], scope, declared, text)
	st, added := p.statements.getOrAdd(key, func(key string) *Statement {
		return &Statement{ID: p.nextID.Add(1), Text: key[len(key)-len(text):], Scope: sc, scope: scope, declared: slices.Clone(declared)}
	})
	*buffer = key
	keyBuffers.Put(buffer)
	if added {
		p.bindKnown(st)
	}
	return st
}

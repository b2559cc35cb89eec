package feed

import (
	"fmt"
	"slices"

	"freshet/cache/canon"
	"freshet/cache/feed/pgoutput"
	"freshet/cache/feed/row"
)

// pgReader applies one run of logical replication. It belongs to the stream's
// goroutine.
type pgReader struct {
	source    *pgSource
	line      *pgLine
	txn       *txn
	open      bool // between Begin and Commit
	xid       uint32
	relations map[uint32]*pgRelation
	images    row.Images
}

// pgRelation is a table as the stream describes it.
type pgRelation struct {
	*pgoutput.Relation
	layout layout
	of     *Table // the definition the layout was made for
}

func newPgReader(s *pgSource, line *pgLine) *pgReader {
	return &pgReader{source: s, line: line, txn: newTxn(s.feed.applier), relations: make(map[uint32]*pgRelation)}
}

// keepalive says how far the server has read: whatever was committed before,
// it has sent. While a transaction is being sent it says nothing of it.
func (r *pgReader) keepalive(data []byte) error {
	k, err := pgoutput.ParseKeepalive(data)
	if err != nil {
		return err
	}
	if !r.open {
		r.source.feed.applier.advance(k.End)
		r.line.applied.Store(max(r.line.applied.Load(), k.End))
	}
	if k.Reply {
		return r.line.status(false)
	}
	return nil
}

func (r *pgReader) logical(id byte, data []byte) error {
	switch id {
	case 'B':
		b, err := pgoutput.ParseBegin(data)
		if err != nil {
			return err
		}
		r.open, r.xid = true, b.XID
		r.txn.begin()
		return nil
	case 'C':
		return r.commit(data)
	case 'R':
		rel, err := pgoutput.ParseRelation(data)
		if err != nil {
			return err
		}
		r.relations[rel.OID] = &pgRelation{Relation: rel}
		return nil
	case 'I', 'U', 'D':
		return r.change(id, data)
	case 'T':
		return r.truncate(data)
	case 'O', 'Y', 'M': // origin, type, message
		return nil
	}
	return fmt.Errorf("feed: logical message of unknown kind %q", id)
}

func (r *pgReader) commit(data []byte) error {
	end, err := pgoutput.ParseCommit(data)
	if err != nil {
		return err
	}
	if !r.open {
		return fmt.Errorf("feed: commit without begin")
	}
	r.open = false
	err = r.txn.end(commit{raw: end, xid: r.xid})
	r.line.applied.Store(max(r.line.applied.Load(), end))
	return err
}

func (r *pgReader) change(id byte, data []byte) error {
	ch, err := pgoutput.ParseChange(id, data)
	if err != nil {
		return err
	}
	f := r.txn.view.byOID[ch.OID]
	if !r.open {
		return fmt.Errorf("feed: change outside a transaction")
	}
	if f == nil || !r.txn.wantsRows(f, ch.Kind) {
		return nil
	}
	rel := r.relations[ch.OID]
	if rel == nil || f.table.Spec.OID != ch.OID {
		r.txn.wholeTable(f)
		return nil
	}
	if err := ch.Read(rel.Relation, &r.images); err != nil {
		return err
	}
	if rel.of != f.table {
		rel.of, rel.layout = f.table, pgLayout(rel.Relation, &f.table.Spec)
	}
	r.txn.row(f, ch.Kind, &rel.layout, &r.images)
	return nil
}

// truncate marks the tables whole. That their files changed shows in the
// catalog too, so the next probe makes their definitions gone.
func (r *pgReader) truncate(data []byte) error {
	oids, err := pgoutput.ParseTruncate(data)
	if err != nil {
		return err
	}
	if !r.open {
		return fmt.Errorf("feed: truncate outside a transaction")
	}
	for _, oid := range oids {
		r.txn.wholeTable(r.txn.view.byOID[oid])
	}
	return nil
}

// pgLayout finds the table's columns in the stream's rows, by name: generated
// columns are not sent.
func pgLayout(rel *pgoutput.Relation, spec *TableSpec) layout {
	l := layout{at: make([]int, len(spec.Columns))}
	for i := range spec.Columns {
		l.at[i] = slices.IndexFunc(rel.Columns, func(c pgoutput.Column) bool { return c.Name == spec.Columns[i].Name })
	}
	l.canonical = func(dst []byte, i int, raw []byte) ([]byte, bool) {
		return canon.AppendText(spec.Columns[i].Kind, dst, raw)
	}
	return l
}

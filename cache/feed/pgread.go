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
	// layouts are one for each definition that the table's rows are read by:
	// its own, and those of the tables whose heir it is.
	layouts []*pgTableLayout
}

type pgTableLayout struct {
	of *Table
	layout
}

// maxLayouts is how many are kept, for definitions that are gone are not
// taken out one by one.
const maxLayouts = 16

func (r *pgRelation) layout(tb *Table) *layout {
	for _, l := range r.layouts {
		if l.of == tb {
			return &l.layout
		}
	}
	if len(r.layouts) >= maxLayouts {
		r.layouts = nil
	}
	l := &pgTableLayout{of: tb, layout: pgLayout(r.Relation, &tb.Spec)}
	r.layouts = append(r.layouts, l)
	return &l.layout
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
	if !r.open {
		return fmt.Errorf("feed: change outside a transaction")
	}
	read := false
	if f := r.txn.view.byOID[ch.OID]; f != nil {
		if err := r.changed(f, &ch, &read); err != nil {
			return err
		}
	}
	for _, f := range r.txn.view.heads[ch.OID] {
		if err := r.changed(f, &ch, &read); err != nil {
			return err
		}
	}
	return nil
}

// changed applies a change to one table that the row belongs to; read tells
// that its images have been read.
func (r *pgReader) changed(f *followed, ch *pgoutput.Change, read *bool) error {
	if !r.txn.wantsRows(f, ch.Kind) {
		return nil
	}
	rel := r.relations[ch.OID]
	if rel == nil || !f.table.Spec.stores(ch.OID) {
		r.txn.wholeTable(f)
		return nil
	}
	if !*read {
		if err := ch.Read(rel.Relation, &r.images); err != nil {
			return err
		}
		*read = true
	}
	r.txn.row(f, ch.Kind, rel.layout(f.table), &r.images)
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
		for _, f := range r.txn.view.heads[oid] {
			r.txn.wholeTable(f)
		}
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

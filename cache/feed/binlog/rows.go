package binlog

import (
	"fmt"
	"math/bits"

	"freshet/cache/feed/cursor"
	"freshet/cache/feed/row"
)

// Rows is a row event whose rows are still packed.
type Rows struct {
	Kind    row.Kind
	TableID uint64
	LastOf  bool // ends its statement: table numbers are given anew after it
	count   int
	first   []byte // columns in the first image
	second  []byte // columns in the second image of an update
	partial bool
	data    []byte
}

const flagStatementEnd = 1

// IsRows tells whether events of type t carry rows.
func IsRows(t Type) bool { return kindOf(t) != 0 }

func kindOf(t Type) row.Kind {
	switch t {
	case WriteRowsV1, WriteRowsV2, MariaWriteCompressedV1, MariaWriteCompressedV2:
		return row.Insert
	case UpdateRowsV1, UpdateRowsV2, PartialUpdateRowsEvent, MariaUpdateCompressedV1, MariaUpdateCompressedV2:
		return row.Update
	case DeleteRowsV1, DeleteRowsV2, MariaDeleteCompressedV1, MariaDeleteCompressedV2:
		return row.Delete
	}
	return 0
}

func compressed(t Type) bool { return t >= MariaWriteCompressedV1 && t <= MariaDeleteCompressedV2 }

func hasExtra(t Type) bool {
	switch t {
	case WriteRowsV2, UpdateRowsV2, DeleteRowsV2, PartialUpdateRowsEvent,
		MariaWriteCompressedV2, MariaUpdateCompressedV2, MariaDeleteCompressedV2:
		return true
	}
	return false
}

// RowsTable reads a row event's kind, table number and whether it ends its
// statement, and nothing else.
func RowsTable(f *Format, t Type, body []byte) (Rows, error) {
	c := cursor.Cursor{Data: body}
	r := Rows{Kind: kindOf(t), TableID: c.Little(tableIDSize(f, t))}
	r.LastOf = c.Little16()&flagStatementEnd != 0
	return r, c.Err
}

// ParseRows decodes a row event up to its rows. Compressed rows are
// decompressed, up to limitBytes.
func ParseRows(f *Format, t Type, body []byte, limitBytes int) (Rows, error) {
	r := Rows{Kind: kindOf(t), partial: t == PartialUpdateRowsEvent}
	if r.Kind == 0 {
		return Rows{}, fmt.Errorf("binlog: events of type %d carry no rows", t)
	}
	c := cursor.Cursor{Data: body}
	r.TableID = c.Little(tableIDSize(f, t))
	r.LastOf = c.Little16()&flagStatementEnd != 0
	if hasExtra(t) {
		c.Take(int(c.Little16()) - 2) // its length counts itself
	}
	count := packed(&c)
	if c.Err != nil || count > maxColumns {
		return Rows{}, cursor.ErrShort
	}
	r.count = int(count)
	r.first = c.Take((r.count + 7) / 8)
	if r.Kind == row.Update {
		r.second = c.Take((r.count + 7) / 8)
	}
	r.data = c.Rest()
	if c.Err != nil {
		return Rows{}, c.Err
	}
	if compressed(t) {
		plain, err := inflateMaria(r.data, limitBytes)
		if err != nil {
			return Rows{}, err
		}
		r.data = plain
	}
	return r, nil
}

// ErrLayout says that a row event does not have its table map's columns.
var ErrLayout = fmt.Errorf("binlog: rows do not fit their table map")

// Each calls do for each row. The images live until do returns.
func (r *Rows) Each(m *TableMap, images *row.Images, do func() error) error {
	if r.count != len(m.Columns) {
		return ErrLayout
	}
	images.Size(r.count)
	c := cursor.Cursor{Data: r.data}
	for len(c.Data) > 0 {
		before := len(c.Data)
		if err := r.read(&c, m, images); err != nil {
			return err
		}
		// Rows of no columns take no bytes; without progress there is no end.
		if len(c.Data) == before {
			return cursor.ErrShort
		}
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Rows) read(c *cursor.Cursor, m *TableMap, images *row.Images) error {
	switch r.Kind {
	case row.Insert:
		return readImage(c, m, r.first, images.New, nil)
	case row.Delete:
		return readImage(c, m, r.first, images.Old, nil)
	}
	if err := readImage(c, m, r.first, images.Old, nil); err != nil {
		return err
	}
	var partial []byte
	if r.partial {
		if options := packed(c); options&1 != 0 {
			partial = c.Take((m.json + 7) / 8)
		}
		if c.Err != nil {
			return c.Err
		}
	}
	return readImage(c, m, r.second, images.New, partial)
}

// readImage walks one image. partial has a bit for every JSON column of the
// table, whether the image has it or not; nil when no value is partial.
func readImage(c *cursor.Cursor, m *TableMap, columns []byte, out []row.Value, partial []byte) error {
	present := 0
	for i, b := range columns {
		if i == len(columns)-1 && len(out)%8 != 0 {
			b &= 1<<(len(out)%8) - 1
		}
		present += bits.OnesCount8(b)
	}
	nulls := c.Take((present + 7) / 8)
	if c.Err != nil {
		return c.Err
	}
	bit, json := 0, 0
	for i, col := range m.Columns {
		isPartial := false
		if partial != nil && col.Type == TypeJSON {
			isPartial = partial[json/8]>>(json%8)&1 != 0
			json++
		}
		if columns[i/8]>>(i%8)&1 == 0 {
			out[i] = row.Value{}
			continue
		}
		null := nulls[bit/8]>>(bit%8)&1 != 0
		bit++
		if null {
			out[i] = row.Value{State: row.Null}
			continue
		}
		prefix, size, err := col.measure(c.Data)
		if err != nil {
			return err
		}
		c.Take(prefix)
		raw := c.Take(size)
		if c.Err != nil {
			return c.Err
		}
		out[i] = row.Value{State: row.Present, Raw: raw}
		if isPartial {
			out[i].State = row.Altered
		}
	}
	return nil
}

// NoTable tells whether a table number is the one of an event without rows
// that only ends its statement.
func NoTable(id uint64) bool { return id == 1<<24-1 || id == 1<<48-1 }

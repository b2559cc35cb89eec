package binlog

import "freshet/cache/feed/cursor"

// maxColumns is the servers' own limit of columns in a table (4096), with room.
const maxColumns = 1 << 13

// TableMap says which table a number in row events stands for, and how its
// rows are laid out.
type TableMap struct {
	ID            uint64
	Schema, Table string
	Columns       []Column
	json          int // how many columns are JSON
}

// ParseTableMap decodes a table map event. Optional metadata is left alone.
func ParseTableMap(f *Format, body []byte) (*TableMap, error) {
	c := cursor.Cursor{Data: body}
	m := &TableMap{ID: c.Little(tableIDSize(f, TableMapEvent))}
	c.Take(2) // flags
	m.Schema = string(c.Take(int(c.U8())))
	c.Take(1)
	m.Table = string(c.Take(int(c.U8())))
	c.Take(1)
	count := packed(&c)
	if c.Err != nil || count > maxColumns {
		return nil, cursor.ErrShort
	}
	types := c.Take(int(count))
	meta := cursor.Cursor{Data: c.Long(packed(&c))}
	c.Take((int(count) + 7) / 8) // which columns may be NULL
	if c.Err != nil {
		return nil, c.Err
	}
	m.Columns = make([]Column, count)
	for i, t := range types {
		col, err := readMeta(&meta, ColumnType(t))
		if err != nil {
			return nil, err
		}
		m.Columns[i] = col
		if col.Type == TypeJSON {
			m.json++
		}
	}
	return m, meta.Err
}

// TableName reads a table map event's number and names only: what is needed to
// know whether anybody follows the table.
func TableName(f *Format, body []byte) (id uint64, schema, table []byte, err error) {
	c := cursor.Cursor{Data: body}
	id = c.Little(tableIDSize(f, TableMapEvent))
	c.Take(2)
	schema = c.Take(int(c.U8()))
	c.Take(1)
	table = c.Take(int(c.U8()))
	return id, schema, table, c.Err
}

// tableIDSize is 4 bytes in logs of servers older than MySQL 5.1.4.
func tableIDSize(f *Format, t Type) int {
	if f.postHeader(t) == 6 {
		return 4
	}
	return 6
}

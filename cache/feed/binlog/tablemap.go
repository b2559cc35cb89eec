package binlog

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
	c := cursor{data: body}
	m := &TableMap{ID: c.little(tableIDSize(f, TableMapEvent))}
	c.take(2) // flags
	m.Schema = string(c.take(int(c.u8())))
	c.take(1)
	m.Table = string(c.take(int(c.u8())))
	c.take(1)
	count := c.packed()
	if c.err != nil || count > maxColumns {
		return nil, ErrShort
	}
	types := c.take(int(count))
	meta := cursor{data: c.take(int(min(c.packed(), uint64(len(c.data)+1))))}
	c.take((int(count) + 7) / 8) // which columns may be NULL
	if c.err != nil {
		return nil, c.err
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
	return m, meta.err
}

// TableName reads a table map event's number and names only: what is needed to
// know whether anybody follows the table.
func TableName(f *Format, body []byte) (id uint64, schema, table []byte, err error) {
	c := cursor{data: body}
	id = c.little(tableIDSize(f, TableMapEvent))
	c.take(2)
	schema = c.take(int(c.u8()))
	c.take(1)
	table = c.take(int(c.u8()))
	return id, schema, table, c.err
}

// tableIDSize is 4 bytes in logs of servers older than MySQL 5.1.4.
func tableIDSize(f *Format, t Type) int {
	if f.postHeader(t) == 6 {
		return 4
	}
	return 6
}

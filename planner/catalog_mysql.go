package planner

import (
	"context"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"freshet/cache/canon"
	"freshet/cache/feed"
	"freshet/planner/mysql"
)

// settings are what MySQL's server says once.
type settings struct {
	sqlMode string // @@global.sql_mode
	// foldTables tells that table names ignore case (lower_case_table_names 1, 2).
	foldTables bool
}

func (k *catalog) mysqlSettings(ctx context.Context) (*once[settings], error) {
	return load(ctx, k, func() *once[settings] { return k.settings }, func(o *once[settings]) { k.settings = o },
		func(ctx context.Context) (s settings, err error) {
			rows, err := k.query(ctx, 2, "SELECT @@global.sql_mode, @@global.lower_case_table_names")
			if err != nil || len(rows) == 0 {
				return s, err
			}
			return settings{sqlMode: text(rows[0][0]), foldTables: text(rows[0][1]) != "0"}, nil
		})
}

// knownSettings returns the settings without asking anybody.
func (k *catalog) knownSettings() (settings, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o := k.settings; o != nil && loaded(o) {
		return o.value, true
	}
	return settings{}, false
}

// systemSchemas are MySQL's and MariaDB's own.
var systemSchemas = []string{"information_schema", "mysql", "performance_schema", "sys"}

// mysqlTable looks up a table by its exact name.
func (k *catalog) mysqlTable(ctx context.Context, fold bool, schema, name string) (*listing, error) {
	if fold {
		schema, name = strings.ToLower(schema), strings.ToLower(name)
	}
	return k.lookup(ctx, schema+"\x00"+name, func(ctx context.Context) ([]*relation, error) {
		return k.fetchMySQL(ctx, fold, schema, name)
	})
}

// mysqlString writes a string literal that means the same under every sql_mode.
func mysqlString(s string) string { return "_utf8mb4 X'" + hex.EncodeToString([]byte(s)) + "'" }

func (k *catalog) fetchMySQL(ctx context.Context, fold bool, schema, name string) ([]*relation, error) {
	s, n := mysqlString(schema), mysqlString(name)
	rows, err := k.query(ctx, 11, `SELECT t.TABLE_SCHEMA, t.TABLE_NAME, t.TABLE_TYPE, t.ENGINE,
		c.COLUMN_NAME, c.DATA_TYPE, c.COLUMN_TYPE, c.CHARACTER_SET_NAME, c.COLLATION_NAME, c.EXTRA, COALESCE(c.NUMERIC_PRECISION, c.DATETIME_PRECISION)
		FROM information_schema.TABLES t LEFT JOIN information_schema.COLUMNS c
		ON c.TABLE_SCHEMA = `+s+` AND c.TABLE_NAME = `+n+`
		WHERE t.TABLE_SCHEMA = `+s+` AND t.TABLE_NAME = `+n+` ORDER BY c.ORDINAL_POSITION`)
	if err != nil {
		return nil, err
	}
	same := func(a, b string) bool { return a == b || fold && strings.EqualFold(a, b) }
	r := &relation{schema: schema, name: name}
	found := false
	for _, row := range rows {
		if !same(text(row[0]), schema) || !same(text(row[1]), name) {
			continue // the comparison in information_schema ignores case
		}
		if !found {
			r.schema, r.name = text(row[0]), text(row[1])
			r.reason = mysqlReason(text(row[2]), row[3])
			found = true
		}
		if row[4] != nil {
			r.addMySQLColumn(row[4:])
		}
	}
	if !found {
		return nil, nil
	}
	if len(r.columns) == 0 && r.reason == "" {
		r.reason = "its columns cannot be seen"
	}
	r.index(true)
	if text(rows[0][2]) == "VIEW" {
		return []*relation{r}, k.mysqlView(ctx, r)
	}
	if k.config.Dialect == MariaDB && slices.ContainsFunc(r.columns, func(c column) bool { return c.generated }) {
		if err := k.mariadbGenerated(ctx, r); err != nil {
			return nil, err
		}
	}
	r.spec.Schema, r.spec.Name = r.schema, r.name
	return []*relation{r}, nil
}

// mariadbGenerated refuses a table with a column whose expression moves by
// itself, which MariaDB allows for virtual columns: no row changes when it does.
func (k *catalog) mariadbGenerated(ctx context.Context, r *relation) error {
	rows, err := k.query(ctx, 4, `SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, GENERATION_EXPRESSION FROM information_schema.COLUMNS
		WHERE TABLE_SCHEMA = `+mysqlString(r.schema)+` AND TABLE_NAME = `+mysqlString(r.name)+` AND GENERATION_EXPRESSION IS NOT NULL`)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if text(row[0]) != r.schema || text(row[1]) != r.name || r.reason != "" {
			continue
		}
		a, err := mysql.Analyse("SELECT "+text(row[3]), mysql.Mode{})
		switch {
		case err != nil:
			r.reason = "the expression of the generated column " + text(row[2]) + " could not be parsed"
		case a.Reason != "":
			r.reason = "the generated column " + text(row[2]) + ": " + a.Reason
		}
	}
	return nil
}

// mysqlView reads a view's definition, which the server shows to those who have
// SHOW VIEW. It is written with every name in full and under no sql_mode that
// would change how it is read.
func (k *catalog) mysqlView(ctx context.Context, r *relation) error {
	rows, err := k.query(ctx, 3, `SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS
		WHERE TABLE_SCHEMA = `+mysqlString(r.schema)+` AND TABLE_NAME = `+mysqlString(r.name))
	if err != nil {
		return err
	}
	for _, row := range rows {
		if text(row[0]) == r.schema && text(row[1]) == r.name {
			r.definition = text(row[2])
		}
	}
	if r.definition == "" && r.reason == "" {
		r.reason = "a view whose definition cannot be read"
	}
	return nil
}

// rowEngines keep their rows in tables of their own whose changes the binlog has.
var rowEngines = []string{"InnoDB", "MyISAM", "Aria", "ROCKSDB", "MEMORY"}

func mysqlReason(tableType string, engine *string) string {
	switch tableType {
	case "BASE TABLE":
	case "VIEW":
		return ""
	case "SYSTEM VIEW":
		return "a system table"
	default:
		return "a " + strings.ToLower(tableType) + ", which is not followed"
	}
	for _, e := range rowEngines {
		if strings.EqualFold(text(engine), e) {
			return ""
		}
	}
	return "its storage engine " + text(engine) + " is not known to log every change"
}

// addMySQLColumn takes COLUMN_NAME, DATA_TYPE, COLUMN_TYPE,
// CHARACTER_SET_NAME, COLLATION_NAME, EXTRA, and NUMERIC_PRECISION or
// DATETIME_PRECISION.
func (r *relation) addMySQLColumn(row []*string) {
	charset, collation := strings.ToLower(text(row[3])), strings.ToLower(text(row[4]))
	dataType, columnType := strings.ToLower(text(row[1])), strings.ToLower(text(row[2]))
	c := column{
		name:      text(row[0]),
		charset:   charset,
		collation: collation,
		generated: strings.Contains(strings.ToUpper(text(row[5])), "GENERATED") && !strings.Contains(strings.ToUpper(text(row[5])), "DEFAULT_GENERATED"),
	}
	if !c.generated {
		c.compare.Kind = mysqlKind(dataType, charset, collation)
	}
	switch dataType {
	case "time":
		c.clock = clockOfDay
	case "date", "datetime", "timestamp":
		c.clock = clockDate
	}
	if digits, err := strconv.Atoi(text(row[6])); err == nil {
		c.compare.Digits = digits
	}
	c.held = mysqlHeld(dataType, columnType, c.compare.Digits)
	r.columns = append(r.columns, c)
	r.spec.Columns = append(r.spec.Columns, feed.Column{
		Name: c.name, Kind: c.compare.Kind, Unsigned: strings.Contains(columnType, "unsigned"), Type: text(row[2]), Charset: text(row[3]),
	})
}

// mysqlKind returns how a column's equality is proven. YEAR, BIT, ENUM, SET,
// JSON, floats, TIME and TIMESTAMP are compared by rules of their own: not at all.
func mysqlKind(dataType, charset, collation string) canon.Kind {
	switch dataType {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		return canon.Int
	case "decimal":
		return canon.Decimal
	case "date":
		return canon.Date
	case "datetime":
		return canon.DateTime
	case "binary":
		return canon.BytesTrim
	case "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		return canon.Bytes
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext":
		return canon.MySQLTextKind(charset, collation)
	}
	return canon.None
}

// sameCharset tells whether a client's bytes are a column's as they stand.
func sameCharset(client, column string) bool {
	utf8 := func(s string) bool { return s == "utf8" || s == "utf8mb3" || s == "utf8mb4" }
	if client == "" {
		return false
	}
	return column == "" || client == column || utf8(client) && utf8(column)
}

package oracle

// postgresKinds are the column types of PostgreSQL.
func postgresKinds(version int) []*kind {
	out := append(postgresNumbers(), postgresTexts(version)...)
	out = append(out, postgresTimes()...)
	return append(out, postgresOthers()...)
}

func postgresNumbers() []*kind {
	whole := exact | ranked | number | indexed | keyable
	spelt := []string{"'1'", "1.0", "'01'", "' 1 '", "-0", "1.50", "'+1'", "1::smallint", "1::bigint", "1.0::numeric", "1::float8"}
	integer := func(ddl string, ends ...string) *kind {
		return &kind{name: ddl, ddl: ddl, traits: whole, values: with([]string{"0", "1", "2", "7", "10", "42"}, ends...), probes: spelt}
	}
	money := []string{"0", "1", "1.1", "1.10", "1.100", "-1.1", "1.19", "100", "-0.01", "7", "0.00"}
	moneyProbes := []string{"1.190", "'1.10'", "'1.1'", "1.1::float8", "'1e0'", "-0.0", "1::int"}
	return []*kind{
		integer("smallint", "-1", "32767", "'-32768'"), integer("integer", "-1", "2147483647", "'-2147483648'", "2147483646"),
		integer("bigint", "-1", "9223372036854775807", "'-9223372036854775808'", "9007199254740993", "9007199254740992"),
		{name: "numeric(10,2)", ddl: "numeric(10,2)", traits: exact | ranked | number | indexed | keyable, values: with(money, "99999999.99"), probes: moneyProbes},
		{name: "numeric", ddl: "numeric", traits: ranked | indexed, values: with(money, "1e30", "0.000000000000000000001", "'NaN'", "'Infinity'", "'-Infinity'"), probes: moneyProbes},
		{name: "real", ddl: "real", traits: ranked | indexed, values: []string{"0", "'-0'", "0.1", "1.5", "-2.25", "1e10", "'NaN'", "'Infinity'", "1", "16777217"},
			probes: []string{"0.1::real", "'1.5'", "1.50", "'-0.0'", "16777216"}},
		{name: "double precision", ddl: "double precision", traits: ranked | indexed, values: []string{"0", "'-0'", "0.1", "1.5", "-2.25", "1e300", "'NaN'", "'-Infinity'", "1", "9007199254740993"},
			probes: []string{"0.1::float8", "'1.5'", "1.50", "'-0.0'", "9007199254740992"}},
		{name: "oid", ddl: "oid", traits: exact | ranked | indexed, values: []string{"0", "1", "2", "4294967295", "2147483648"}, probes: []string{"'1'"}},
		{name: "money", ddl: "money", traits: exact | ranked | indexed, values: []string{"'1.10'", "'0'", "'-1'", "'100'"}, probes: []string{"'$1.10'", "'1.1'"}},
	}
}

func postgresTexts(version int) []*kind {
	plain := exact | ranked | textual | indexed | keyable
	values := with(words, wide...)
	insensitive := ranked | indexed
	if version >= 18 {
		insensitive |= textual
	}
	return []*kind{
		{name: "text", ddl: "text", traits: plain, values: values, probes: with(values, "'a'::varchar", "'a '::char(4)")},
		{name: "varchar(20)", ddl: "varchar(20)", traits: plain, values: values, probes: with(values, "'a'::text", "'A'::name")},
		{name: "char(8)", ddl: "char(8)", traits: exact | ranked | indexed | keyable, values: values, probes: with(values, "'a       '", "'a'::text", "'a '::text")},
		{name: "text C", ddl: `text COLLATE "C"`, traits: plain, values: values, probes: values},
		{name: "text ci", ddl: `text COLLATE insensitive`, traits: insensitive, values: values, probes: with(values, "'AE'", "'Á'")},
		{name: "name", ddl: "name", traits: exact | ranked | indexed, values: values, probes: with(values, "'a'::text")},
		{name: `"char"`, ddl: `"char"`, traits: exact | ranked | indexed, values: []string{"'a'", "'A'", "''", "'z'"}, probes: []string{"'a'"}},
		{name: "citext", ddl: "citext", traits: ranked | indexed, values: values, probes: with(values, "'AE'", "'Á'"), rare: true},
		{name: "bytea", ddl: "bytea", traits: exact | ranked | indexed | keyable, values: []string{`'\x'`, `'\x00'`, `'\x61'`, `'\x6100'`, `'\xff'`, `'a'`, `'\x41'`},
			probes: []string{`'a'`, `'\x61'::bytea`, `'\x4100'`}},
		{name: "long text", ddl: "text", traits: exact | ranked | textual,
			values: []string{"repeat('x', 9000)", "(SELECT string_agg(md5(i::text), '') FROM generate_series(1, 200) i)", "'short'", "''"}, probes: []string{"'short'"}},
	}
}

func postgresTimes() []*kind {
	moments := []string{"'2024-01-01 00:00:00'", "'2024-01-01 00:00:00.5'", "'2024-01-01 00:00:00.500001'", "'2024-02-29 23:59:59.999999'",
		"'1999-12-31 23:59:59'", "'2024-03-31 02:30:00'", "'infinity'", "'-infinity'", "'0044-03-15 12:00:00 BC'"}
	zoned := with(moments, "'2024-01-01 02:00:00+02'", "'2024-01-01 00:00:00+00'")
	probes := []string{"'2024-01-01'", "'2024-01-01 00:00:00.000000'", "DATE '2024-01-01'", "TIMESTAMP '2024-01-01 00:00:00.5'", "TIMESTAMPTZ '2024-01-01 01:00:00+01'", "'Jan 1 2024'"}
	var out []*kind
	add := func(ddl string, traits trait, values, probes []string) {
		out = append(out, &kind{name: ddl, ddl: ddl, traits: traits | ranked | indexed, values: values, probes: probes})
	}
	add("date", exact|keyable, []string{"'2024-01-01'", "'2024-02-29'", "'1970-01-01'", "'infinity'", "'-infinity'", "'0044-03-15 BC'", "'2026-11-30'"}, probes)
	for _, n := range []string{"(0)", "(3)", ""} {
		add("timestamp"+n, exact, moments, probes)
		add("timestamptz"+n, exact, zoned, probes)
		add("time"+n, exact, []string{"'00:00:00'", "'10:11:12'", "'10:11:12.5'", "'24:00:00'"}, []string{"'10:11:12.500'", "TIME '10:11:12'", "'10:11'"})
	}
	add("timetz", 0, []string{"'00:00:00+00'", "'10:11:12+00'", "'12:11:12+02'"}, []string{"'11:11:12+01'"})
	add("interval", 0, []string{"'1 day'", "'24 hours'", "'1 month'", "'30 days'", "'0'", "'-1 day'"}, []string{"'1440 minutes'", "INTERVAL '720 hours'"})
	return out
}

func postgresOthers() []*kind {
	return []*kind{
		{name: "boolean", ddl: "boolean", traits: exact | ranked | indexed, values: []string{"true", "false"}, probes: []string{"'t'", "'yes'", "'0'"}},
		{name: "uuid", ddl: "uuid", traits: exact | ranked | indexed | keyable,
			values: []string{"'00000000-0000-0000-0000-000000000000'", "'123e4567-e89b-12d3-a456-426655440000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"},
			probes: []string{"'123E4567-E89B-12D3-A456-426655440000'", "'{123e4567e89b12d3a456426655440000}'"}},
		{name: "json", ddl: "json", traits: unequal, values: []string{`'{"a":1}'`, `'{"a": 1.0}'`, `'[1,2]'`, `'null'`}},
		{name: "jsonb", ddl: "jsonb", traits: ranked | indexed, values: []string{`'{"a":1}'`, `'{"a": 1.0}'`, `'[1,2]'`, `'1'`, `'1.0'`, `'{"b":null,"a":2}'`, `'null'`},
			probes: []string{`'{"a": 1.00}'`, `'{"a":2,"b":null}'`}},
		{name: "text[]", ddl: "text[]", traits: exact | ranked | indexed, values: []string{"'{}'", "'{a}'", "'{A}'", "'{a,b}'", "'{NULL}'", `'{"a b","00"}'`, "'{{a},{b}}'", "'[2:3]={a,b}'"},
			probes: []string{"ARRAY['a','b']", `'{"a"}'`, "'{ a , b }'"}},
		{name: "integer[]", ddl: "integer[]", traits: exact | ranked | indexed, values: []string{"'{}'", "'{1}'", "'{1,2}'", "'{NULL}'", "'{2,1}'"}, probes: []string{"ARRAY[1,2]", "'{01}'"}},
		{name: "numeric[]", ddl: "numeric[]", traits: ranked | indexed, values: []string{"'{1.0}'", "'{1}'", "'{1.00,2}'", "'{}'"}, probes: []string{"'{1.000}'"}},
		{name: "inet", ddl: "inet", traits: exact | ranked | indexed, values: []string{"'10.0.0.1'", "'10.0.0.1/8'", "'::1'", "'10.0.0.0/8'"}, probes: []string{"'10.0.0.1/32'", "'0:0::1'"}},
		{name: "bit(3)", ddl: "bit(3)", traits: exact | ranked | indexed, values: []string{"'000'", "'101'", "'111'"}, probes: []string{"B'101'"}},
		{name: "varbit", ddl: "varbit", traits: exact | ranked | indexed, values: []string{"''", "'1'", "'10'", "'100'"}, probes: []string{"B'10'"}},
		{name: "enum", ddl: "mood", traits: exact | ranked | indexed | keyable, values: []string{"'sad'", "'ok'", "'Happy'"}, probes: []string{"'ok'::mood"}},
		{name: "domain", ddl: "positive", traits: exact | ranked | indexed, values: []string{"1", "2", "7", "42"}, probes: []string{"'1'", "1.0"}, rare: true},
		{name: "int4range", ddl: "int4range", traits: exact | ranked | indexed, values: []string{"'[1,3)'", "'[1,2]'", "'empty'", "'(,)'"}, probes: []string{"'(0,2]'"}},
	}
}

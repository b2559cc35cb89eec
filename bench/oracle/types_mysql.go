package oracle

// mysqlKinds are the column types of MySQL or MariaDB.
func mysqlKinds(maria bool) []*kind {
	out := append(mysqlNumbers(), mysqlTexts(maria)...)
	out = append(out, mysqlTimes()...)
	return append(out, mysqlOthers(maria)...)
}

func mysqlNumbers() []*kind {
	whole := exact | ranked | number | indexed | keyable
	// No fractions: MariaDB rounds them to look in an index, and does not to look without.
	spelt := []string{"'1'", "1.0", "'1.0'", "1e0", "' 1'", "'01'", "-0", "'-1'", "TRUE"}
	integer := func(ddl string, ends ...string) *kind {
		return &kind{name: ddl, ddl: ddl, traits: whole, values: with([]string{"0", "1", "2", "7", "10", "42"}, ends...), probes: spelt}
	}
	money := []string{"0", "1", "1.1", "1.10", "-1.1", "1.19", "100", "-0.01", "7", "0.00"}
	moneyProbes := []string{"1.190", "'1.10'", "1.100", "'1.1'", "1", "'1.19'", "1.1e0", "-0"}
	return []*kind{
		integer("TINYINT", "-1", "127", "-128", "126"), integer("TINYINT UNSIGNED", "255", "254", "128"),
		integer("SMALLINT", "-1", "32767", "-32768"), integer("SMALLINT UNSIGNED", "65535", "32768"),
		integer("MEDIUMINT", "-1", "8388607", "-8388608"), integer("MEDIUMINT UNSIGNED", "16777215", "8388608"),
		integer("INT", "-1", "2147483647", "-2147483648", "2147483646"), integer("INT UNSIGNED", "4294967295", "2147483648"),
		integer("BIGINT", "-1", "9223372036854775807", "-9223372036854775808", "9007199254740993", "9007199254740992"),
		integer("BIGINT UNSIGNED", "18446744073709551615", "9223372036854775808", "9223372036854775807", "18446744073709551614"),
		{name: "DECIMAL(10,2)", ddl: "DECIMAL(10,2)", traits: exact | ranked | number | indexed, values: with(money, "99999999.99"), probes: moneyProbes},
		{name: "DECIMAL(38,12)", ddl: "DECIMAL(38,12)", traits: exact | ranked | number | indexed, probes: moneyProbes,
			values: with(money, "12345678901234567890.123456789012", "0.000000000001")},
		{name: "DECIMAL(5,0) UNSIGNED", ddl: "DECIMAL(5,0) UNSIGNED", traits: exact | ranked | number | indexed, values: []string{"0", "1", "2", "99999", "7"}, probes: spelt},
		{name: "FLOAT", ddl: "FLOAT", traits: ranked | indexed, values: []string{"0", "-0e0", "0.1", "1.5", "-2.25", "1e10", "3.4e38", "1", "16777217"},
			probes: []string{"0.1e0", "'1.5'", "1.50", "-0.0", "16777216"}},
		{name: "DOUBLE", ddl: "DOUBLE", traits: ranked | indexed, values: []string{"0", "-0e0", "0.1", "1.5", "-2.25", "1e10", "1.7e308", "1", "9007199254740993"},
			probes: []string{"0.1e0", "'1.5'", "1.50", "-0.0", "9007199254740992"}},
		// Whether a grouped or greatest BIT comes as a number or as bytes hangs on the plan: not exact.
		{name: "BIT(1)", ddl: "BIT(1)", traits: ranked | indexed, values: []string{"b'0'", "b'1'"}, probes: []string{"1", "0", "'1'", "TRUE"}},
		{name: "BIT(9)", ddl: "BIT(9)", traits: ranked | indexed, values: []string{"b'0'", "b'1'", "b'100000000'", "b'111111111'", "b'110001'"},
			probes: []string{"1", "256", "'1'", "49", "x'31'"}},
		{name: "BIT(64)", ddl: "BIT(64)", traits: ranked | indexed, values: []string{"b'0'", "b'1'", "18446744073709551615", "9223372036854775808"}, probes: []string{"1", "255"}},
		{name: "YEAR", ddl: "YEAR", traits: exact | ranked | indexed, values: []string{"0", "1901", "2024", "2155", "2000", "1970"}, probes: []string{"24", "'24'", "'2024'", "2024.0", "'0'"}},
	}
}

func mysqlTexts(maria bool) []*kind {
	loose := ranked | textual | indexed | keyable
	collations := []string{"utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_bin", "latin1_swedish_ci", "ascii_general_ci", "latin1_bin"}
	if maria {
		collations = append(collations, "utf8mb4_uca1400_ai_ci", "utf8mb4_nopad_bin", "utf8mb4_general_nopad_ci", "utf8mb4_uca1400_as_cs")
	} else {
		collations = append(collations, "utf8mb4_0900_ai_ci", "utf8mb4_0900_bin", "utf8mb4_0900_as_cs", "utf8mb4_0900_as_ci")
	}
	var out []*kind
	for _, c := range collations {
		values := words
		if c[:4] == "utf8" {
			values = with(words, wide...)
		}
		if c[:5] == "ascii" {
			values = []string{"''", "'a'", "'A'", "'a '", "'A  '", "'ab'", "'aB'", "'AB '", "'z'", "'1'", "'01'", "' '"}
		}
		probes := with(values, "'a    '", "'AE'", "1", "0")
		out = append(out,
			&kind{name: "VARCHAR " + c, ddl: "VARCHAR(20) COLLATE " + c, traits: loose, values: values, probes: probes},
			&kind{name: "CHAR " + c, ddl: "CHAR(8) COLLATE " + c, traits: loose, values: values, probes: probes})
		if c == "utf8mb4_general_ci" || c == "utf8mb4_bin" {
			out = append(out, &kind{name: "TEXT " + c, ddl: "TEXT COLLATE " + c, traits: ranked | textual,
				values: with(values, "REPEAT('long ', 700)", "REPEAT('LONG ', 700)"), probes: probes})
		}
	}
	raw := []string{"x''", "x'00'", "x'61'", "x'6100'", "x'61000000'", "x'ff'", "x'41'", "x'6120'", "'a'", "'a '", "''"}
	return append(out,
		&kind{name: "BINARY(4)", ddl: "BINARY(4)", traits: exact | ranked | indexed | keyable, values: raw, probes: with(raw, "x'61000001'", "0")},
		&kind{name: "VARBINARY(8)", ddl: "VARBINARY(8)", traits: exact | ranked | indexed | keyable, values: raw, probes: raw},
		&kind{name: "BLOB", ddl: "BLOB", traits: exact | ranked, values: with(raw, "REPEAT(x'00', 3000)"), probes: raw})
}

func mysqlTimes() []*kind {
	days := []string{"'2024-01-01'", "'2024-02-29'", "'1970-01-01'", "'9999-12-31'", "'1000-01-01'", "'0000-00-00'", "'2026-11-30'", "'2024-00-00'"}
	moments := []string{"'2024-01-01 00:00:00'", "'2024-01-01 00:00:00.5'", "'2024-01-01 00:00:00.500001'", "'2024-02-29 23:59:59.999999'",
		"'1999-12-31 23:59:59'", "'2024-03-31 02:30:00'", "'2024-01-01'"}
	stamps := with(moments, "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'0000-00-00 00:00:00'")
	clocks := []string{"'00:00:00'", "'10:11:12'", "'10:11:12.5'", "'-838:59:59'", "'838:59:59'", "'-00:00:01'", "'24:00:00'"}
	probes := []string{"20240101", "'20240101'", "'2024-1-1'", "'24-01-01'", "'2024-01-01 00:00:00.000000'", "20240101000000", "DATE '2024-01-01'",
		"TIMESTAMP '2024-01-01 00:00:00.5'", "'2024-01-01T00:00:00'"}
	var out []*kind
	add := func(ddl string, values, probes []string) {
		out = append(out, &kind{name: ddl, ddl: ddl, traits: exact | ranked | indexed, values: values, probes: probes})
	}
	add("DATE", days, probes)
	for _, n := range []string{"", "(3)", "(6)"} {
		add("DATETIME"+n, with(moments, "'0000-00-00 00:00:00'", "'9999-12-31 23:59:59'"), probes)
		add("TIMESTAMP"+n+" NULL", stamps, probes)
		add("TIME"+n, clocks, []string{"101112", "'101112'", "'10:11:12.500'", "TIME '10:11:12'", "0", "'24:00'"})
	}
	return out
}

func mysqlOthers(maria bool) []*kind {
	out := []*kind{
		{name: "ENUM", ddl: "ENUM('b','A','c d','é','10','2') COLLATE utf8mb4_general_ci", traits: exact | ranked | indexed,
			values: []string{"'b'", "'A'", "'c d'", "'é'", "'10'", "'2'"}, probes: []string{"'a'", "'B'", "'e'", "1", "2", "'b '", "'1'", "0"}},
		{name: "ENUM bin", ddl: "ENUM('b','B','a') COLLATE utf8mb4_bin", traits: exact | ranked | indexed,
			values: []string{"'b'", "'B'", "'a'"}, probes: []string{"'A'", "1", "3", "'b '"}},
		{name: "SET", ddl: "SET('x','Y','z','é') COLLATE utf8mb4_general_ci", traits: exact | ranked | indexed,
			values: []string{"''", "'x'", "'Y'", "'x,Y'", "'Y,z'", "'x,Y,z,é'"}, probes: []string{"'y'", "'X,Y'", "1", "3", "'Y,x'", "0"}},
		{name: "JSON", ddl: "JSON", values: []string{`'{"a":1}'`, `'{"a": 1.0}'`, `'[1,2]'`, `'1'`, `'"x"'`, `'{"b":null,"a":2}'`, `'null'`},
			probes: []string{`'{"a": 1}'`, "1", "'x'"}},
	}
	if maria {
		out = append(out,
			&kind{name: "UUID", ddl: "UUID", traits: exact | ranked | indexed | keyable,
				values: []string{"'00000000-0000-0000-0000-000000000000'", "'123e4567-e89b-12d3-a456-426655440000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"},
				probes: []string{"'123E4567-E89B-12D3-A456-426655440000'", "'123e4567e89b12d3a456426655440000'"}},
			&kind{name: "INET6", ddl: "INET6", traits: exact | ranked | indexed,
				values: []string{"'::'", "'::1'", "'2001:db8::ff'", "'::ffff:1.2.3.4'"}, probes: []string{"'0:0::1'", "'2001:DB8:0::00ff'"}})
	}
	return out
}

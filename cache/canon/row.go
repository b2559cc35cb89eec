package canon

// AppendRow appends the canonical form of a value of a MySQL row image as go-mysql's
// decoder gives it: int8 to int64 and uint8 to uint64, string, []byte, nil. NULL equals
// nothing and has no canonical form: the caller looks for it first, a nil here
// is refused. unsigned and width (the column's size in bytes: 1, 2, 3, 4, 8)
// are the column's, because row images carry no sign.
func AppendRow(kind Kind, unsigned bool, width int, dst []byte, v any) (canonical []byte, ok bool) {
	switch v := v.(type) {
	case string:
		return rowText(kind, dst, v)
	case []byte:
		return rowText(kind, dst, v)
	case int:
		return rowInt(kind, unsigned, width, dst, int64(v))
	case int8:
		return rowInt(kind, unsigned, width, dst, int64(v))
	case int16:
		return rowInt(kind, unsigned, width, dst, int64(v))
	case int32:
		return rowInt(kind, unsigned, width, dst, int64(v))
	case int64:
		return rowInt(kind, unsigned, width, dst, v)
	case uint8:
		return rowUint(kind, dst, uint64(v))
	case uint16:
		return rowUint(kind, dst, uint64(v))
	case uint32:
		return rowUint(kind, dst, uint64(v))
	case uint64:
		return rowUint(kind, dst, v)
	}
	return dst, false
}

func rowInt(kind Kind, unsigned bool, width int, dst []byte, v int64) ([]byte, bool) {
	if kind != Int {
		return dst, false
	}
	if !unsigned || v >= 0 {
		return AppendInt(dst, v), true
	}
	if width < 1 || width > 8 {
		return dst, false
	}
	return AppendUint(dst, uint64(v)<<(64-8*width)>>(64-8*width)), true
}

func rowUint(kind Kind, dst []byte, v uint64) ([]byte, bool) {
	if kind != Int {
		return dst, false
	}
	return AppendUint(dst, v), true
}

// rowText takes the kinds whose image is a string; an integer never is one.
func rowText[T string | []byte](kind Kind, dst []byte, v T) ([]byte, bool) {
	switch kind {
	case Decimal, Bytes, BytesTrim, FoldASCII, Date:
		return AppendText(kind, dst, []byte(v))
	}
	return dst, false
}

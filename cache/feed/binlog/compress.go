package binlog

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"freshet/cache/feed/cursor"
)

// ErrTooLarge says that an event decompresses to more than the caller allows.
var ErrTooLarge = errors.New("binlog: event decompresses to more than the limit")

// inflateMaria undoes MariaDB's log_bin_compress: one byte with the algorithm
// (always 0, zlib) in bits 4-6 and the length of the length in bits 0-2, the
// length of the contents, big-endian, then the zlib stream.
func inflateMaria(data []byte, limitBytes int) ([]byte, error) {
	c := cursor.Cursor{Data: data}
	head := c.U8()
	if head&0x70 != 0 {
		return nil, fmt.Errorf("binlog: compression algorithm %d is not known", head>>4&7)
	}
	var size uint64
	for _, b := range c.Take(int(head & 7)) {
		size = size<<8 | uint64(b)
	}
	stream := c.Rest()
	if c.Err != nil {
		return nil, c.Err
	}
	if size > uint64(limitBytes) {
		return nil, ErrTooLarge
	}
	r, err := zlib.NewReader(bytes.NewReader(stream))
	if err != nil {
		return nil, fmt.Errorf("binlog: %w", err)
	}
	// Grown as the contents come, not as a peer's length promises.
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(r, int64(size)+1))
	if err != nil {
		return nil, fmt.Errorf("binlog: %w", err)
	}
	if uint64(n) != size {
		return nil, cursor.ErrShort
	}
	return out.Bytes(), r.Close()
}

// Fields of a transaction payload event's header, and its compression types.
const (
	payloadEnd        = 0
	payloadSize       = 1
	payloadAlgorithm  = 2
	payloadPlainBytes = 3

	payloadZstd  = 0
	payloadPlain = 255
)

// A PayloadReader unpacks MySQL's compressed transactions
// (binlog_transaction_compression). It keeps a decoder; one goroutine uses it.
type PayloadReader struct {
	zstd  *zstd.Decoder
	limit int
}

// NewPayloadReader makes a reader that refuses transactions which decompress
// to more than limitBytes.
func NewPayloadReader(limitBytes int) (*PayloadReader, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limitBytes)))
	if err != nil {
		return nil, err
	}
	return &PayloadReader{zstd: d, limit: limitBytes}, nil
}

// Close frees the decoder.
func (p *PayloadReader) Close() { p.zstd.Close() }

// Each calls do for every event inside a transaction payload event. The inner
// events carry no checksum, and their End means nothing.
func (p *PayloadReader) Each(body []byte, do func(Event) error) error {
	plain, err := p.open(body)
	if err != nil {
		return err
	}
	for len(plain) > 0 {
		c := cursor.Cursor{Data: plain}
		c.Take(9)
		size := c.Little32()
		if c.Err != nil || size < HeaderSize || uint64(size) > uint64(len(plain)) {
			return cursor.ErrShort
		}
		e, err := Parse(plain[:size], false)
		if err != nil {
			return err
		}
		if err := do(e); err != nil {
			return err
		}
		plain = plain[size:]
	}
	return nil
}

func (p *PayloadReader) open(body []byte) ([]byte, error) {
	c := cursor.Cursor{Data: body}
	algorithm := uint64(payloadZstd)
	for c.Err == nil {
		field := packed(&c)
		if field == payloadEnd {
			break
		}
		value := cursor.Cursor{Data: c.Long(packed(&c))}
		switch field {
		case payloadAlgorithm:
			algorithm = packed(&value)
		case payloadPlainBytes:
			if packed(&value) > uint64(p.limit) {
				return nil, ErrTooLarge
			}
		}
		if value.Err != nil {
			return nil, value.Err
		}
	}
	contents := c.Rest()
	if c.Err != nil {
		return nil, c.Err
	}
	switch algorithm {
	case payloadPlain:
		return contents, nil
	case payloadZstd:
		plain, err := p.zstd.DecodeAll(contents, nil)
		if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
			return nil, ErrTooLarge
		}
		if err != nil {
			return nil, fmt.Errorf("binlog: %w", err)
		}
		return plain, nil
	}
	return nil, fmt.Errorf("binlog: compression algorithm %d is not known", algorithm)
}

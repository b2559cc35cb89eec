package mysql

import (
	"bytes"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// A compressed connection's bytes are packets as ever, cut into frames wherever
// it suits the sender. A frame has a head of seven bytes, all little-endian: the
// length of what follows (3), its own sequence number (1), and the length before
// compression (3), 0 for contents that are as they were (MySQL source
// documentation, "Compression"; MariaDB knowledge base, "0-packet").
const (
	frameHead = 7
	// maxFrame bounds the frames that are made. Those that come may have the
	// longest length there is.
	maxFrame = 256 << 10
	// leastPacked is the shortest content that the servers compress.
	leastPacked = 50
)

// Compression is the algorithm of a connection.
type Compression uint8

const (
	Zlib Compression = iota // RFC 1950
	Zstd                    // RFC 8878
)

// CompressionOf is the algorithm of a client with these capabilities. Of two
// the servers take zlib, the first in their protocol_compression_algorithms.
func CompressionOf(c Capability) (algorithm Compression, ok bool) {
	switch {
	case c.Has(ClientCompress):
		return Zlib, true
	case c.Has(ClientZstdCompression):
		return Zstd, true
	}
	return 0, false
}

// Compressor packs one side's bytes into frames and unpacks the other's. It
// keeps no more than the next frame's number; it is not for several goroutines.
type Compressor struct {
	algorithm Compression
	level     int
	sequence  uint8
}

// NewCompressor returns a server's side. level is zstd's, from 1 to 22; 0 and
// what is beyond stand for 3, the servers' default. zlib has its own, 6.
func NewCompressor(algorithm Compression, level uint8) *Compressor {
	if level == 0 || level > 22 {
		level = 3
	}
	return &Compressor{algorithm: algorithm, level: int(level)}
}

// Pack appends the frames of plain to dst.
func (c *Compressor) Pack(dst, plain []byte) []byte {
	for len(plain) > 0 {
		n := min(len(plain), maxFrame)
		dst = c.frame(dst, plain[:n])
		plain = plain[n:]
	}
	return dst
}

func (c *Compressor) frame(dst, plain []byte) []byte {
	head := len(dst)
	dst = append(dst, make([]byte, frameHead)...)
	original := 0
	if len(plain) >= leastPacked {
		dst = c.deflate(dst, plain)
		original = len(plain)
	}
	if packed := len(dst) - head - frameHead; original == 0 || packed >= len(plain) {
		dst, original = append(dst[:head+frameHead], plain...), 0
	}
	b := dst[head:]
	putUint24(b, len(b)-frameHead)
	b[3] = c.sequence
	putUint24(b[4:], original)
	c.sequence++
	return dst
}

// Unpack appends to dst the contents of the frame that in begins with. used is
// the frame's length, 0 if it has not come whole. What follows, the other side
// answers: frames of the next Pack go on with its number. Errors: ErrMalformed for
// contents that are not what the head says.
func (c *Compressor) Unpack(dst, in []byte) (plain []byte, used int, err error) {
	if len(in) < frameHead {
		return dst, 0, nil
	}
	used = frameHead + uint24(in)
	if len(in) < used {
		return dst, 0, nil
	}
	c.sequence = in[3] + 1
	content := in[frameHead:used]
	if original := uint24(in[4:]); original > 0 {
		if dst, err = c.inflate(dst, content, original); err != nil {
			return dst, used, malformed("compressed packet")
		}
		return dst, used, nil
	}
	return append(dst, content...), used, nil
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

func putUint24(b []byte, n int) { b[0], b[1], b[2] = byte(n), byte(n>>8), byte(n>>16) }

// deflate appends the compressed contents.
func (c *Compressor) deflate(dst, plain []byte) []byte {
	if c.algorithm == Zstd {
		return zstdEncoder(c.level).EncodeAll(plain, dst)
	}
	w := zlibWriters.Get().(*zlib.Writer)
	defer zlibWriters.Put(w)
	b := bytes.NewBuffer(dst)
	w.Reset(b)
	// Neither fails: a Buffer takes everything.
	if _, err := w.Write(plain); err != nil || w.Close() != nil {
		return append(dst, plain...) // not shorter, so it goes as it is
	}
	return b.Bytes()
}

// inflate appends contents, which must be as long as they are said to be.
func (c *Compressor) inflate(dst, content []byte, original int) ([]byte, error) {
	start := len(dst)
	if c.algorithm == Zstd {
		out, err := zstdDecoder().DecodeAll(content, dst)
		if err == nil && len(out)-start != original {
			err = io.ErrUnexpectedEOF
		}
		return out, err
	}
	r, err := zlibReader(content)
	if err != nil {
		return dst, err
	}
	defer zlibReaders.Put(r)
	b := bytes.NewBuffer(dst)
	if _, err := io.CopyN(b, r, int64(original)); err != nil {
		return dst, err
	}
	// The checksum comes with the end, and there must be one.
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return dst, io.ErrUnexpectedEOF
	}
	return b.Bytes(), nil
}

// What (de)compresses has large tables and is shared by all connections; nothing
// of one frame stays for the next.
var (
	zlibWriters = sync.Pool{New: func() any { return zlib.NewWriter(io.Discard) }}
	zlibReaders sync.Pool
)

func zlibReader(content []byte) (io.Reader, error) {
	if r, ok := zlibReaders.Get().(io.Reader); ok {
		return r, r.(zlib.Resetter).Reset(bytes.NewReader(content), nil)
	}
	return zlib.NewReader(bytes.NewReader(content))
}

// zstdDecoder decodes no more than a frame can say that it holds.
var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(1<<24))
	if err != nil {
		panic(err) // the options are constant
	}
	return d
})

var zstdEncoders [5]struct {
	once sync.Once
	*zstd.Encoder
}

func zstdEncoder(level int) *zstd.Encoder {
	l := zstd.EncoderLevelFromZstd(level)
	e := &zstdEncoders[l]
	e.once.Do(func() {
		var err error
		if e.Encoder, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(l), zstd.WithEncoderConcurrency(2)); err != nil {
			panic(err) // the options are constant
		}
	})
	return e.Encoder
}

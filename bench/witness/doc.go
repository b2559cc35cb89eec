// Package witness runs load generators that others wrote, sysbench, pgbench and
// go-tpc's TPC-C, through Freshet and against a twin server direct, and shows
// that none of them sees an error, that both servers end with the same rows,
// and that every row and every answer that was cached before the load reads
// the same through Freshet as direct.
//
// The tests need bin/freshet (FRESHET_BIN, else it is built); with
// FRESHET_WITNESS=full they run at the sizes of `make witness`, on all servers,
// and with FRESHET_WITNESS=direct they leave Freshet out, to test the witness
// itself.
package witness

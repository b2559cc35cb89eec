// Package upstream starts real database servers for tests, the demo and
// benchmarks: each on a free loopback port with a temporary data folder, with
// the change stream on (binlog in row format, wal_level=logical), and takes
// them down without trace.
//
// MariaDB 10.11 and PostgreSQL 15 are the machine's own (Debian 12 packages);
// MySQL 9.7, PostgreSQL 18 and MariaDB 11.8 live in a folder made by sid.sh and
// run with that folder as their root. A freshly initialised data folder of each
// version is kept in the cache folder (FRESHET_CACHE, else ~/.cache/freshet)
// and copied for every start, so a start takes about a second.
//
// Nothing outlives the process that started a server, however that process
// ends: see reaper.
package upstream

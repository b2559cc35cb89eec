// Package mysql turns bytes of the MySQL client/server protocol into messages
// and back, for both sides of a proxy: what a server reads and writes, and
// what a client reads and writes. It holds no socket, no clock and no
// goroutine. MariaDB's dialect of the protocol is covered where the two differ.
//
// Three layers:
//
//   - packet.go frames: header, sequence number, payloads that continue over
//     several packets.
//   - one file for each kind of packet, with its decoder and its encoder side
//     by side. Decoders check every length and alias their input; what they
//     return is valid as long as the bytes given to them.
//   - Tracker follows the packets of one reply and says what each is and when
//     the reply is over, from a packet's header and first byte wherever that is
//     enough, so that rows of any size stream through.
//
// Sources: "MySQL Source Code Documentation", chapter "Client/Server
// Protocol", and the MariaDB knowledge base, "Client/Server Protocol".
package mysql

package mysql

// hold is what keeps a session's link from being given back.
type hold uint32

const (
	// holdDiagnostics: the last statement left an error or warnings, which the
	// next may ask for. It ends with the next statement.
	holdDiagnostics hold = 1 << iota
	// holdCount: the last statement was no read, and the next may ask for
	// ROW_COUNT(). It ends with the next statement, or soon by itself.
	holdCount
	holdVariables // user variables
	holdTemporary // temporary tables
	holdPrepare   // PREPARE in text
	holdLocks     // LOCK TABLES, FLUSH TABLES … WITH READ LOCK
	holdNamedLock // GET_LOCK
	holdHandler   // HANDLER … OPEN
	holdXA        // XA transactions
	holdRole      // SET ROLE
	holdNextTrans // SET TRANSACTION, START TRANSACTION READ ONLY: holds for one transaction only
	holdSetting   // a setting that Dial cannot bring about
	holdCursor    // an open cursor
	holdLongData  // COM_STMT_SEND_LONG_DATA before its execution
	holdTracking  // the client changed session tracking: no longer known what changes
	holdUnknown   // the server told of a change that nothing explains
	// holdHidden: a procedure, a block, EXECUTE or a stored function ran. What
	// it left, such as a temporary table or on MariaDB a setting, the server
	// does not tell, so nothing is shared with others for the session's life.
	holdHidden
	// holdConnection: the client knows the link's connection id, and may KILL by
	// it, or the server is about to close it.
	holdConnection
)

// opaque are those under which an answer from the store might not be what this
// session would be told: temporary tables hide others, roles change rights.
const opaque = holdTemporary | holdLocks | holdXA | holdRole | holdNextTrans | holdTracking | holdUnknown | holdHidden

// soft are those that are given up when others wait for a link.
const soft = holdDiagnostics | holdCount

// lasting are those whose loss the client must not miss: if the link is lost,
// so is the session.
const lasting = ^soft

var holdNames = []string{"diagnostics of the last statement", "ROW_COUNT() of the last statement", "user variables", "temporary tables", "PREPARE", "table locks",
	"named locks", "HANDLER", "XA", "SET ROLE", "SET TRANSACTION", "a setting", "a cursor", "long data",
	"session tracking changed by the client", "an unknown change of state", "run what may have changed it unseen", "CONNECTION_ID()"}

// String names the first reason.
func (x hold) String() string {
	for i, name := range holdNames {
		if x&(1<<i) != 0 {
			return name
		}
	}
	return ""
}

// owed is what has to be asked on the link before it is given back, or before
// the session's state is known.
type owed struct {
	status    bool // an error came: what became of the transaction?
	ping      bool // and what changed before it came?
	collation bool // collation_connection
	lastID    bool // LAST_INSERT_ID()
	found     bool // FOUND_ROWS() of a read with an offset
	settings  bool // the session's settings: they may have changed unseen
	changes   bool // the server marked a change and did not say which
	unknown   bool // and it may be one that it never names
}

// unsure says whether the session's state is not known until it is asked.
func (o owed) unsure() bool { return o.status || o.collation || o.changes || o.settings }

// mayLookup says whether an answer from the store is this session's answer.
func (h *handler) mayLookup() bool {
	return h.hold&opaque == 0 && (!h.inTransaction() || h.readsAlone()) && !h.owed.unsure() && !h.dirtyReads
}

package proxy

import (
	"context"
	"sync"
	"sync/atomic"
)

// unseen knows whether the upstream has triggers or stored functions that
// change session settings without its session tracking telling. MariaDB does
// not tell of SET @@name = … without a scope (seen on 10.11); whatever
// statement runs such code then looks like a plain write.
type unseen struct {
	may    atomic.Bool // there is such code, or it is not known that there is none
	mu     sync.Mutex
	epoch  uint64 // moves when definitions change
	looked uint64 // the epoch in which it was looked for, plus one
}

// unseenCode tells (1) that there may be such code: its text names a system
// variable, or is not shown to us.
const unseenCode = `SELECT EXISTS (SELECT 1 FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA NOT IN ('mysql', 'sys')
		AND (ROUTINE_DEFINITION IS NULL OR ROUTINE_DEFINITION LIKE '%@@%'))
	OR EXISTS (SELECT 1 FROM information_schema.TRIGGERS WHERE ACTION_STATEMENT IS NULL OR ACTION_STATEMENT LIKE '%@@%')
	OR NOT EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'TRIGGER' AND GRANTEE = ` + grantee + `)
	AND NOT EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES WHERE PRIVILEGE_TYPE = 'TRIGGER' AND TABLE_SCHEMA = DATABASE() AND GRANTEE = ` + grantee + `)`

const grantee = `CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')`

// SettingsChangeUnseen tells whether a statement that is not proven to be a
// plain read may change the session's settings without the server telling.
func (u *Upstream) SettingsChangeUnseen() bool { return u.unseen.may.Load() }

// schemaChanged is told by the feed.
func (u *Upstream) schemaChanged(schema, table string) {
	if table == "" {
		u.unseen.mu.Lock()
		u.unseen.epoch++
		u.unseen.may.Store(u.Server.Kind == "mariadb")
		u.unseen.mu.Unlock()
		u.rightsChanged()
	}
	u.Planner.SchemaChanged(schema, table)
}

// rightsChanged: a statement was logged that may have changed what users may do,
// and a connection of before may not notice: MariaDB's keeps the rights of a role
// that was revoked and of a user that was dropped, MySQL's has none of a role that
// became a default. So new sessions have new links; and what an old one has brought
// since the feed dropped everything is dropped, too, in this order. PostgreSQL's
// sessions notice.
func (u *Upstream) rightsChanged() {
	if u.Target.Dialect != "mysql" {
		return
	}
	u.DefaultsSet()
	if u.Store != nil {
		u.Store.Flush()
	}
}

// lookForUnseen looks again if definitions have changed. What was seen counts
// only if none has changed meanwhile. Without a feed nobody tells of changes,
// so that it stays unknown.
func (u *Upstream) lookForUnseen(ctx context.Context) {
	n := &u.unseen
	n.mu.Lock()
	epoch, looked := n.epoch, n.looked
	n.mu.Unlock()
	if u.Server.Kind != "mariadb" || u.Feed == nil || looked == epoch+1 {
		return
	}
	rows, err := sideQuerier{u.db}.Query(ctx, unseenCode)
	if err != nil || len(rows) != 1 || rows[0][0] == nil {
		u.log.Debug("stored code not looked at", "cause", err)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.epoch == epoch {
		n.looked = epoch + 1
		n.may.Store(*rows[0][0] != "0")
	}
}

package feed

import (
	"context"
	"fmt"
	"strings"
)

// Finding is one thing that Check looked at.
type Finding struct {
	OK   bool
	Note bool   // nothing to mend, but to be known; OK too
	What string // what was found
	Mend string // the statement that mends it; "" when OK
}

// Check says what an upstream has and lacks for its tables to be followed,
// table by table. An error to connect is a finding too. It changes nothing.
func Check(ctx context.Context, dsn string) []Finding { return CheckFrom(ctx, dsn, "") }

// CheckFrom is Check for a change stream that is taken from a replica of the
// upstream; "" takes it from the upstream.
func CheckFrom(ctx context.Context, dsn, from string) []Finding {
	switch scheme, _, _ := strings.Cut(dsn, "://"); scheme {
	case "mysql", "mariadb":
		return checkMySQL(ctx, dsn, from)
	case "postgres", "postgresql":
		return checkPostgres(ctx, dsn, from)
	default:
		return []Finding{{What: fmt.Sprintf("%q is not a kind of server that can be followed", scheme),
			Mend: "write the DSN as mysql://user:password@host:3306/database or postgres://user:password@host:5432/database"}}
	}
}

// findings gathers what is found.
type findings []Finding

func (f *findings) good(format string, args ...any) {
	*f = append(*f, Finding{OK: true, What: fmt.Sprintf(format, args...)})
}

func (f *findings) bad(mend, format string, args ...any) {
	*f = append(*f, Finding{What: fmt.Sprintf(format, args...), Mend: mend})
}

// needs adds what must be so, and whether it is.
func (f *findings) needs(list []need) {
	for _, n := range list {
		if n.ok {
			f.good("%s", n.what)
		} else {
			f.bad(n.mend, "%s", n.what)
		}
	}
}

// What a server is refused with, see refuse.
const (
	unfollowable = "the server cannot be followed"
	noReplica    = "the upstream's changes cannot be taken from it"
)

// refuse is an error that says the first need that is not met, behind a
// complaint; nil if all are.
func refuse(needs []need, complaint string) error {
	for _, n := range needs {
		if !n.ok {
			return fmt.Errorf("%s: %s; mend: %s", complaint, n.what, n.mend)
		}
	}
	return nil
}

// failed adds an error; true says that there was one.
func (f *findings) failed(err error, mend string) bool {
	if err != nil {
		f.bad(mend, "%v", err)
	}
	return err != nil
}

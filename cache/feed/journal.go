package feed

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

// journal logs what goes wrong, and that it is over, in few lines: a server
// that is away fails every retry, and not always in the same words.
//
// A line is logged when a cause is new, and then ever less often while it
// stays. Of a stream that comes and goes as many returns are logged as ends, so
// whoever reads the log's last word on it is not told of an outage that is over.
type journal struct {
	log *slog.Logger

	mu       sync.Mutex
	troubles map[string]*trouble
	// away says that the stream's end was logged and its return was not.
	away   bool
	last   error
	lastAt time.Time
}

// trouble is a cause of failures that was logged.
type trouble struct {
	seen time.Time     // when it last came
	next time.Time     // when it may be logged again
	wait time.Duration // from one line to the next
	held int           // times it came since its last line
}

const (
	troubleFirst = 10 * time.Second
	troubleMost  = 10 * time.Minute
	// troubleOver is how long a cause that is short-lived must stay away to be
	// news again; it is longer than any retry takes.
	troubleOver = time.Minute
	// maxTroubles bounds the causes kept apart. Beyond it one kind of failure
	// is one cause, whatever it says.
	maxTroubles = 64
)

// failed remembers an error and logs it if it is news. what is the kind of
// failure, one of few.
func (j *journal) failed(what string, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.note(what, err)
}

// ended is failed of the stream.
func (j *journal) ended(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.note("the change stream ended", err) {
		j.away = true
	}
}

// following logs that the stream runs, if the last that was logged of it is
// that it ended. resumed says that it goes on where it ended, so nothing that
// was kept is lost.
func (j *journal) following(position string, resumed bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.away {
		j.away = false
		j.log.Info("feed following again", "position", position, "resumed", resumed)
	}
}

// latest returns when the last error came, and it; nil when there was none.
func (j *journal) latest() (time.Time, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lastAt, j.last
}

// note tells whether it logged the error; mu is held.
func (j *journal) note(what string, err error) (told bool) {
	now := time.Now()
	j.last, j.lastAt = err, now
	t := j.trouble(what, err.Error(), now)
	t.seen = now
	if now.Before(t.next) {
		t.held++
		return false
	}
	// Error() alone: with more, some libraries add where they were called.
	args := []any{"error", err.Error()}
	if t.held > 0 {
		args = append(args, "times", t.held+1)
	}
	j.log.Warn("feed: "+what, args...)
	t.next, t.held = now.Add(t.wait), 0
	t.wait = min(2*t.wait, troubleMost)
	return true
}

// trouble finds the cause, or makes it.
func (j *journal) trouble(what, text string, now time.Time) *trouble {
	for key, t := range j.troubles {
		if now.Sub(t.seen) > max(t.wait, troubleOver) {
			delete(j.troubles, key)
		}
	}
	key := what + ": " + causeOf(text)
	t := j.troubles[key]
	if t == nil && len(j.troubles) >= maxTroubles {
		key = what
		t = j.troubles[key]
	}
	if t == nil {
		t = &trouble{wait: troubleFirst}
		if j.troubles == nil {
			j.troubles = make(map[string]*trouble)
		}
		j.troubles[key] = t
	}
	return t
}

// causeOf is an error's text without what differs from one time to the next:
// numbers, which are positions, ports and transactions.
func causeOf(text string) string {
	const enough = 300 // bytes that tell causes apart
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text[:min(len(text), enough)])
}

package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
)

// replicaNeeds lists what a replica must be besides a server with a log.
func replicaNeeds(conn *client.Conn, up, facts mysqlFacts) ([]need, error) {
	if facts.identity == up.identity {
		return []need{{false, "it is the upstream itself", "leave --feed-from away"}}, nil
	}
	if facts.maria != up.maria {
		return []need{{false, "one is MariaDB and the other MySQL", "give a replica of the same kind"}}, nil
	}
	channels, err := readChannels(conn, facts.maria)
	if err != nil {
		return nil, err
	}
	out := []need{
		{len(channels) > 0, either(len(channels) > 0, "it replicates", "it replicates nothing: it is no replica, or was promoted"),
			"give a replica of the upstream, or leave --feed-from away"},
		{on(facts.either("log_replica_updates", "log_slave_updates")), "log_replica_updates (log_slave_updates) is " +
			facts.either("log_replica_updates", "log_slave_updates"), "set it in the replica's configuration and restart it"},
		{facts.lowerNames == up.lowerNames, fmt.Sprintf("lower_case_table_names is %d, upstream %d", facts.lowerNames, up.lowerNames),
			"make the replica anew with the upstream's"},
	}
	filters := filtersOf(channels)
	out = append(out, need{len(filters) == 0, either(len(filters) == 0, "it leaves nothing out", "it leaves changes out: "+strings.Join(filters, ", ")),
		"take replication filters out of the replica, and make it anew: it lacks what they left out"})
	for _, strict := range []struct{ new, old, want string }{
		{"replica_skip_errors", "slave_skip_errors", "OFF"}, {"replica_exec_mode", "slave_exec_mode", "STRICT"},
		{"replicate_events_marked_for_skip", "", "REPLICATE"}, {"slave_run_triggers_for_rbr", "", "NO"},
	} {
		if is := facts.either(strict.new, strict.old); is != "" && !strings.EqualFold(is, strict.want) {
			out = append(out, need{false, strict.new + " is " + is + ": it may differ from the upstream",
				"set it to " + strict.want + " in the replica's configuration and restart it"})
		}
	}
	return out, nil
}

// either is the variable under its new or its old name.
func (f mysqlFacts) either(name, old string) string {
	if value, ok := f.vars[name]; ok {
		return value
	}
	return f.vars[old]
}

// readChannels reads what the server replicates from where, by column.
func readChannels(c *client.Conn, maria bool) ([]map[string]string, error) {
	sql := "SHOW REPLICA STATUS"
	if maria {
		sql = "SHOW ALL SLAVES STATUS"
	}
	r, err := c.Execute(sql)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	rows, err := mysqlTexts(r)
	if err != nil {
		return nil, err
	}
	out := make([]map[string]string, len(rows))
	for i, row := range rows {
		out[i] = make(map[string]string, len(row))
		for j, field := range r.Fields {
			out[i][string(field.Name)] = row[j]
		}
	}
	return out, nil
}

// filtersOf lists the filters of the channels: all columns of that name, of
// which every version has some more.
func filtersOf(channels []map[string]string) (filters []string) {
	for _, channel := range channels {
		for name, value := range channel {
			lower := strings.ToLower(name)
			if strings.HasPrefix(lower, "replicate_") && value != "" || lower == "skip_counter" && value != "0" && value != "" {
				filters = append(filters, name+"="+value)
			}
		}
	}
	slices.Sort(filters)
	return slices.Compact(filters)
}

// watchEvery is how often a replica is asked whether it is what it was.
const watchEvery = time.Second

// watchReplica gives the stream up when the replica leaves changes out, or is
// none any more.
func (s *mysqlSource) watchReplica(ctx context.Context) {
	if time.Since(s.copy.watched) < watchEvery {
		return
	}
	s.copy.watched = time.Now()
	ctx, cancel := context.WithTimeout(ctx, sideTimeout)
	defer cancel()
	var needs []need
	err := s.replicas.Use(ctx, func(_ context.Context, c *client.Conn) error {
		facts, err := readMySQLFacts(c)
		if err != nil {
			return err
		}
		needs, err = replicaNeeds(c, s.fact(), facts)
		return err
	})
	if err != nil && ctx.Err() == nil {
		s.feed.journal.failed("the replica could not be looked at", err)
	}
	for _, n := range needs {
		if !n.ok {
			s.feed.lose(s.ofReplica(errors.New(n.what)))
			return
		}
	}
}

package mysql

import (
	"freshet/proxy"
)

// New makes the protocol; one serves any number of upstreams.
func New() proxy.Protocol { return protocol{} }

type protocol struct{}

// NewHandler implements proxy.Protocol.
func (protocol) NewHandler(s *proxy.Session) proxy.Handler {
	return &handler{s: s, up: sharedOf(s.Upstream), status: initialStatus}
}

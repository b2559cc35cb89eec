package proxy

// Reload reads certificates and users again: they count for clients that come from
// now on, and who is in stays in. After an error all is as it was.
func (s *Server) Reload() error {
	certs, err := s.config.TLS.load()
	if err != nil {
		return err
	}
	all, err := loadUsers(s.config.Users)
	if err != nil {
		return err
	}
	if err := all.of(s.upstreams); err != nil {
		return err
	}
	s.certificates.Store(certs)
	s.users.Store(&all)
	if certs != nil {
		s.log.Info("certificates reloaded", "file", s.config.TLS.Cert, "expires", certs.expires)
	}
	if s.config.Users != "" {
		s.log.Info("users reloaded", "file", s.config.Users, "users", len(all))
	}
	return nil
}

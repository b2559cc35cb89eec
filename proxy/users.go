package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"gopkg.in/yaml.v3"
)

// User is one that clients may log in as. Their sessions read and write upstream
// as the same user, with the same password.
type User struct {
	Name, Password string
	Admin          bool // may use Freshet's own commands
}

// users are those of --users by name, beside the DSN's. Immutable.
type users map[string]*User

// userItem is one in the file.
type userItem struct {
	Name        string  `yaml:"name"`
	Password    *string `yaml:"password"`
	PasswordEnv string  `yaml:"password-env"` // the environment variable that holds it
	Admin       bool    `yaml:"admin"`
}

// loadUsers reads the YAML file of --users; "" is none.
func loadUsers(path string) (users, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--users: %w", err)
	}
	var file struct {
		Users []*userItem `yaml:"users"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("--users %s: %w", path, err)
	}
	all := users{}
	for i, item := range file.Users {
		u, err := item.user()
		if err == nil && all[u.Name] != nil {
			err = errors.New(u.Name + " is there already")
		}
		if err != nil {
			return nil, fmt.Errorf("--users %s: item %d: %w", path, i+1, err)
		}
		all[u.Name] = u
	}
	return all, nil
}

// user checks an item. The password is never a part of an error.
func (i *userItem) user() (*User, error) {
	switch {
	case i == nil || i.Name == "":
		return nil, errors.New("it has no name")
	case (i.Password == nil) == (i.PasswordEnv == ""):
		return nil, fmt.Errorf("user %s: want one of password and password-env", i.Name)
	}
	u := &User{Name: i.Name, Admin: i.Admin}
	if i.Password != nil {
		u.Password = *i.Password
	} else {
		u.Password = os.Getenv(i.PasswordEnv)
	}
	if u.Password == "" {
		return nil, fmt.Errorf("user %s: the password is empty", i.Name)
	}
	return u, nil
}

// of refuses a file that gives a DSN's user another password: clients would not
// know which of the two is theirs.
func (all users) of(upstreams []*Upstream) error {
	for _, u := range upstreams {
		if same := all[u.Target.User]; same != nil && same.Password != u.Target.Password {
			return fmt.Errorf("--users: user %s is the DSN's, whose password is the DSN's: take it out", same.Name)
		}
	}
	return nil
}

// User is the one of that name, nil if clients may not log in as it. The DSN's
// user always may, by the DSN's password.
func (u *Upstream) User(name string) *User {
	if name == u.Target.User {
		return &User{Name: name, Password: u.Target.Password, Admin: true}
	}
	if u.users == nil {
		return nil
	}
	if all := u.users.Load(); all != nil {
		return (*all)[name]
	}
	return nil
}

// Login is the user of that name as it logs in upstream. An error says that there
// is none of that name any more.
func (u *Upstream) Login(name string) (User, error) {
	user := u.User(name)
	if user == nil {
		return User{}, fmt.Errorf("user %s is not in --users any more", name)
	}
	return *user, nil
}

// OtherUser is the session's user, "" if it is the DSN's. Whether
// there is one of that name makes no difference: who turns out to be nobody gets no
// link.
func (s *Session) OtherUser() string {
	if s.User == s.Upstream.Target.User {
		return ""
	}
	return s.User
}

// Host is the client's address without its port, as errors show it.
func (s *Session) Host() string {
	host, _, err := net.SplitHostPort(s.Remote.String())
	if err != nil {
		return s.Remote.String()
	}
	return host
}

// SetUser notes whose session it is, or means to be until the login succeeds.
func (s *Session) SetUser(name string) {
	s.User = name
	s.owner.Store(&name)
}

// Owner is the User; it may be asked from any goroutine.
func (s *Session) Owner() string {
	if name := s.owner.Load(); name != nil {
		return *name
	}
	return ""
}

// IsAdmin tells whether the session's user may use Freshet's own commands and
// end the sessions of others.
func (s *Session) IsAdmin() bool {
	u := s.Upstream.User(s.User)
	return u != nil && u.Admin
}

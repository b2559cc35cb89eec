package feed
import ("context";"errors";"time")
func newPostgres(f *Feed, dsn string) (source, error) { return nil, errors.New("x") }
var _ = time.Second
var _ context.Context

package precision

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"freshet/bench/versus"
)

// blog is what an object mapper makes of a blog: pages joined together from
// five tables. Few posts are read much, and most changes count views.
type blog struct {
	rng                  *rand.Rand
	posts, users, tags   int
	nextPost, nextRemark int
	hot                  *rand.Zipf
}

var blogTables = []string{"blog_users", "blog_posts", "blog_tags", "blog_post_tags", "blog_comments"}

func newBlog(rng *rand.Rand, rows int) *workload {
	posts := max(100, rows/10)
	b := &blog{rng: rng, posts: posts, users: max(20, posts/5), tags: 30, nextPost: posts + 1,
		hot: rand.NewZipf(rng, 1.2, 10, uint64(posts-1))}
	return &workload{name: "blog", tables: blogTables, setUp: b.setUp, reads: b.reads, writes: b.writes}
}

func (b *blog) setUp(ctx context.Context, s *stage) error {
	script := []string{
		"CREATE TABLE blog_users (id INT PRIMARY KEY, name VARCHAR(60) NOT NULL, karma INT NOT NULL)",
		"CREATE TABLE blog_posts (id INT PRIMARY KEY, user_id INT NOT NULL, title VARCHAR(120) NOT NULL, body VARCHAR(500) NOT NULL, " +
			"status INT NOT NULL, views INT NOT NULL, published_on DATE NOT NULL)",
		"CREATE INDEX blog_posts_user ON blog_posts (user_id)",
		"CREATE TABLE blog_tags (id INT PRIMARY KEY, name VARCHAR(40) NOT NULL)",
		"CREATE TABLE blog_post_tags (post_id INT NOT NULL, tag_id INT NOT NULL, PRIMARY KEY (post_id, tag_id))",
		"CREATE INDEX blog_post_tags_tag ON blog_post_tags (tag_id)",
		"CREATE TABLE blog_comments (id INT PRIMARY KEY, post_id INT NOT NULL, user_id INT NOT NULL, body VARCHAR(300) NOT NULL)",
		"CREATE INDEX blog_comments_post ON blog_comments (post_id)",
	}
	for id := 1; id <= b.users; id++ {
		script = append(script, fmt.Sprintf("INSERT INTO blog_users VALUES (%d, 'user %d', 0)", id, id))
	}
	for id := 1; id <= b.tags; id++ {
		script = append(script, fmt.Sprintf("INSERT INTO blog_tags VALUES (%d, 'tag%d')", id, id))
	}
	var posts, marks, remarks []string
	for id := 1; id <= b.posts; id++ {
		posts = append(posts, b.post(id, 1))
		marks = append(marks, b.marks(id)...)
		for range b.rng.IntN(8) {
			remarks = append(remarks, b.remark(id))
		}
	}
	script = append(script, "INSERT INTO blog_posts VALUES "+strings.Join(posts, ","),
		"INSERT INTO blog_post_tags VALUES "+strings.Join(marks, ","), "INSERT INTO blog_comments VALUES "+strings.Join(remarks, ","))
	return versus.Exec(ctx, s.directDSN, script...)
}

func (b *blog) post(id, status int) string {
	return fmt.Sprintf("(%d, %d, 'title %d', '%s', %d, 0, '%s')", id, b.user(), id, strings.Repeat("text ", 20), status, b.day(id))
}

// day is a post's: five a day.
func (b *blog) day(id int) string {
	n := id / 5
	return fmt.Sprintf("20%02d-%02d-%02d", 10+n/336, 1+n/28%12, 1+n%28)
}

// marks are a post's two or three different tags.
func (b *blog) marks(post int) []string {
	var out []string
	first := b.rng.IntN(b.tags)
	for i := range 2 + b.rng.IntN(2) {
		out = append(out, fmt.Sprintf("(%d, %d)", post, 1+(first+i*7)%b.tags))
	}
	return out
}

func (b *blog) remark(post int) string {
	b.nextRemark++
	return fmt.Sprintf("(%d, %d, %d, 'remark %d')", b.nextRemark, post, b.user(), b.nextRemark)
}

func (b *blog) user() int { return 1 + b.rng.IntN(b.users) }

// popular draws a post: the newest ones are read most.
func (b *blog) popular() int { return max(1, b.nextPost-1-int(b.hot.Uint64())) }

func (b *blog) reads() []read {
	post, user, tag := b.popular(), b.user(), 1+b.rng.IntN(b.tags)
	day := b.popular()
	return []read{
		{"post with author", fmt.Sprintf("SELECT p.title, p.body, p.published_on, u.name FROM blog_posts p JOIN blog_users u ON u.id = p.user_id WHERE p.id = %d", post)},
		{"comments with authors", fmt.Sprintf("SELECT c.id, c.body, u.name FROM blog_comments c JOIN blog_users u ON u.id = c.user_id WHERE c.post_id = %d ORDER BY c.id", post)},
		{"count of comments", fmt.Sprintf("SELECT count(*) FROM blog_comments WHERE post_id = %d", post)},
		{"tags of a post", fmt.Sprintf("SELECT t.name FROM blog_tags t JOIN blog_post_tags pt ON pt.tag_id = t.id WHERE pt.post_id = %d ORDER BY t.name", post)},
		{"posts of a tag", fmt.Sprintf("SELECT p.id, p.title FROM blog_posts p JOIN blog_post_tags pt ON pt.post_id = p.id JOIN blog_tags t ON t.id = pt.tag_id "+
			"WHERE t.name = 'tag%d' AND p.status = 1 ORDER BY p.id DESC LIMIT 10", tag)},
		{"posts of a user", fmt.Sprintf("SELECT id, title, views FROM blog_posts WHERE user_id = %d AND status = 1 ORDER BY id DESC LIMIT 10", user)},
		{"a user", fmt.Sprintf("SELECT name, karma FROM blog_users WHERE id = %d", user)},
		{"posts of a week", fmt.Sprintf("SELECT id, title FROM blog_posts WHERE published_on BETWEEN '%s' AND '%s' AND status = 1 ORDER BY id", b.day(max(1, day-30)), b.day(day))},
	}
}

func (b *blog) writes(_ context.Context, s *stage) error {
	post := b.popular()
	switch n := b.rng.IntN(100); {
	case n < 50:
		return write(s.direct, fmt.Sprintf("UPDATE blog_posts SET views = views + 1 WHERE id = %d", post))
	case n < 75:
		return write(s.direct, "INSERT INTO blog_comments VALUES "+b.remark(post), fmt.Sprintf("UPDATE blog_users SET karma = karma + 1 WHERE id = %d", b.user()))
	case n < 83:
		return write(s.direct, fmt.Sprintf("UPDATE blog_comments SET body = 'edited %d' WHERE id = %d", b.rng.IntN(1e6), 1+b.rng.IntN(b.nextRemark)))
	case n < 88:
		return write(s.direct, fmt.Sprintf("DELETE FROM blog_comments WHERE id = %d", 1+b.rng.IntN(b.nextRemark)))
	case n < 93: // a draft, published by the next write of its kind
		id := b.nextPost
		b.nextPost++
		return write(s.direct, fmt.Sprintf("UPDATE blog_posts SET status = 1 WHERE id = %d", id-1), "INSERT INTO blog_posts VALUES "+b.post(id, 0),
			"INSERT INTO blog_post_tags VALUES "+strings.Join(b.marks(id), ","))
	case n < 98:
		return write(s.direct, fmt.Sprintf("UPDATE blog_posts SET body = 'edited %d' WHERE id = %d", b.rng.IntN(1e6), post))
	}
	return write(s.direct, fmt.Sprintf("UPDATE blog_users SET name = 'renamed %d' WHERE id = %d", b.rng.IntN(1e6), b.user()))
}

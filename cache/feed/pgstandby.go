package feed

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// standbyRule is what synchronous_standby_names says (manual, "Replication",
// synchronous_standby_names): wait for the first, or for any, so many of those
// named.
type standbyRule struct {
	any    bool
	needed int
	names  []string // in order; "*" is everybody
}

var errStandbyNames = errors.New("feed: synchronous_standby_names is not understood")

// parseStandbyRule reads the setting; an empty one gives a rule without names.
//
//	[FIRST] number (name [, …]) | ANY number (name [, …]) | name [, …]
func parseStandbyRule(text string) (standbyRule, error) {
	words, err := standbyWords(text)
	if err != nil || len(words) == 0 {
		return standbyRule{}, err
	}
	rule := standbyRule{needed: 1}
	open := slices.IndexFunc(words, func(w standbyWord) bool { return w.is("(") })
	if open >= 0 {
		head := words[:open]
		if len(head) == 2 && (head[0].is("first") || head[0].is("any")) {
			rule.any = head[0].is("any")
			head = head[1:]
		}
		if len(head) != 1 || !words[len(words)-1].is(")") {
			return standbyRule{}, errStandbyNames
		}
		if rule.needed, err = strconv.Atoi(head[0].text); err != nil || rule.needed < 1 {
			return standbyRule{}, errStandbyNames
		}
		words = words[open+1 : len(words)-1]
	}
	for i, w := range words {
		switch {
		case i%2 == 1 && !w.is(","), i%2 == 0 && w.mark:
			return standbyRule{}, errStandbyNames
		case i%2 == 0:
			rule.names = append(rule.names, w.text)
		}
	}
	if len(words)%2 == 0 {
		return standbyRule{}, errStandbyNames
	}
	return rule, nil
}

// standbyWord is a name or number, or one of ( ) and the comma.
type standbyWord struct {
	text         string
	quoted, mark bool
}

func (w standbyWord) is(text string) bool { return !w.quoted && strings.EqualFold(w.text, text) }

func standbyWords(text string) (words []standbyWord, err error) {
	for {
		text = strings.TrimLeft(text, " \t\r\n\f\v")
		switch {
		case text == "":
			return words, nil
		case strings.IndexByte("(),", text[0]) >= 0:
			words = append(words, standbyWord{text: text[:1], mark: true})
			text = text[1:]
		case text[0] == '"':
			var name strings.Builder
			rest := text[1:]
			for {
				quote := strings.IndexByte(rest, '"')
				if quote < 0 {
					return nil, errStandbyNames
				}
				name.WriteString(rest[:quote])
				if rest = rest[quote+1:]; !strings.HasPrefix(rest, `"`) {
					break
				}
				name.WriteByte('"')
				rest = rest[1:]
			}
			words = append(words, standbyWord{text: name.String(), quoted: true})
			text = rest
		default:
			end := strings.IndexAny(text, " \t\r\n\f\v(),\"")
			if end < 0 {
				end = len(text)
			}
			words = append(words, standbyWord{text: text[:end]})
			text = text[end:]
		}
	}
}

// lists tells whether a standby of that name is waited for at all.
func (r standbyRule) lists(name string) bool {
	return slices.ContainsFunc(r.names, func(n string) bool { return n == "*" || strings.EqualFold(n, name) })
}

// refuse says why commits may be let go without the standby of that name,
// whoever else connects; "" when every commit waits for it.
func (r standbyRule) refuse(name string) string {
	place := slices.IndexFunc(r.names, func(n string) bool { return strings.EqualFold(n, name) })
	star := slices.Index(r.names, "*")
	switch {
	case len(r.names) == 0:
		return "synchronous_standby_names is empty: commits wait for nobody"
	case place < 0 && star >= 0:
		return fmt.Sprintf("synchronous_standby_names takes anybody (*): it must name %s", name)
	case place < 0:
		return fmt.Sprintf("synchronous_standby_names does not name %s", name)
	case r.any && (star >= 0 || r.needed < len(r.names)):
		return fmt.Sprintf("synchronous_standby_names waits for any %d of %d: for all, or FIRST, it would always wait for %s", r.needed, len(r.names), name)
	case !r.any && (place >= r.needed || star >= 0 && star < place):
		return fmt.Sprintf("synchronous_standby_names prefers others to %s: it must be among the first %d", name, r.needed)
	}
	return ""
}

// with returns the setting that waits for the standby of that name, which the
// rule does not always do, as well as for those for whom it does.
func (r standbyRule) with(name string) string {
	needed := r.needed
	kept := slices.DeleteFunc(slices.Clone(r.names), func(n string) bool { return strings.EqualFold(n, name) })
	if r.any {
		// One rule cannot ask for this one and for any of the others.
		needed = len(kept)
	}
	names := []string{quoteIdent(name)}
	for _, n := range kept {
		if n != "*" {
			n = quoteIdent(n)
		}
		names = append(names, n)
	}
	return fmt.Sprintf("FIRST %d (%s)", needed+1, strings.Join(names, ", "))
}

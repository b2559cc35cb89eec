package postgres

import (
	"bytes"

	pg "freshet/protocol/postgres"
)

// found is a unit of messages at the head of the input that may be answered
// without the link. Two shapes are: a run of one statement,
//
//	[Parse] Bind [Describe portal] Execute Sync
//
// and a look at one,
//
//	Parse [Describe statement] (Sync | Flush), or Describe statement (Sync | Flush).
//
// All slices point into the input.
type found struct {
	size     int
	parse    pg.Parse
	bind     pg.Bind // only if run
	bound    []byte  // the Bind's body
	name     []byte  // of the statement
	hasParse bool
	run      bool
	describe bool
	flush    bool // ends with Flush
	open     bool // a run that no Sync ends
}

// shape is what looking for a unit came to.
type shape uint8

const (
	shapeNone shape = iota // nothing that starts here is a unit
	shapeMore              // what is there could become one
	shapeRun
	shapeOther // a run of some rows only, or one with something behind it that is no Sync
	shapeLook
)

// maxUnit is how much is waited for; a longer unit is forwarded as it comes.
const maxUnit = 256 << 10

// match looks for a unit at the head of in. It judges only the messages'
// layout: names, formats and the rest are for the caller.
func (u *found) match(in []byte) shape {
	u.size, u.hasParse, u.run, u.describe, u.flush, u.open = 0, false, false, false, false, false
	kind, body, step := u.step(in)
	if step == shapeNone && kind == pg.TypeParse {
		if u.parse.Decode(body) != nil {
			return shapeNone
		}
		u.hasParse, u.name = true, u.parse.Name
		kind, body, step = u.step(in)
	}
	switch {
	case step == shapeMore:
		return shapeMore
	case kind == pg.TypeBind:
		return u.matchRun(in, body)
	case kind == pg.TypeDescribe, u.hasParse && kind == pg.TypeSync, u.hasParse && kind == pg.TypeFlush:
		return u.matchLook(in, kind, body)
	}
	return shapeNone
}

// step frames the next message of the unit; shapeNone means there is one.
func (u *found) step(in []byte) (kind byte, body []byte, _ shape) {
	kind, body, size, err := pg.Next(in[u.size:], maxUnit)
	if err != nil {
		return 0, nil, shapeNone
	}
	if size == 0 {
		if len(in) > maxUnit {
			return 0, nil, shapeNone
		}
		return 0, nil, shapeMore
	}
	u.size += size
	return kind, body, shapeNone
}

func (u *found) matchRun(in, body []byte) shape {
	if u.bind.Decode(body) != nil {
		return shapeNone
	}
	if u.hasParse && !bytes.Equal(u.bind.Statement, u.parse.Name) {
		return shapeNone
	}
	u.run, u.name, u.bound = true, u.bind.Statement, body
	kind, body, step := u.step(in)
	if step == shapeNone && kind == pg.TypeDescribe {
		var d pg.Describe
		if d.Decode(body) != nil || d.Target != pg.TargetPortal || !bytes.Equal(d.Name, u.bind.Portal) {
			return shapeNone
		}
		u.describe = true
		kind, body, step = u.step(in)
	}
	if step == shapeMore {
		return shapeMore
	}
	var e pg.Execute
	if kind != pg.TypeExecute || e.Decode(body) != nil || !bytes.Equal(e.Portal, u.bind.Portal) {
		return shapeNone
	}
	size := u.size
	kind, _, step = u.step(in)
	switch {
	case step == shapeMore:
		return shapeMore
	case kind == pg.TypeSync && e.Unlimited():
		return shapeRun
	case kind == pg.TypeSync:
		return shapeOther
	}
	u.size, u.open = size, true
	return shapeOther
}

func (u *found) matchLook(in []byte, kind byte, body []byte) shape {
	step := shapeNone
	if kind == pg.TypeDescribe {
		var d pg.Describe
		if d.Decode(body) != nil || d.Target != pg.TargetStatement || u.hasParse && !bytes.Equal(d.Name, u.parse.Name) {
			return shapeNone
		}
		u.describe, u.name = true, d.Name
		kind, _, step = u.step(in)
	}
	switch {
	case step == shapeMore:
		return shapeMore
	case kind == pg.TypeSync:
		return shapeLook
	case kind == pg.TypeFlush:
		u.flush = true
		return shapeLook
	}
	return shapeNone
}

package planner

import (
	"slices"
	"sync"
	"sync/atomic"

	"freshet/cache"
	"freshet/cache/feed"
)

const (
	// maxDeps bounds the dependencies of one answer, maxKeys the keys of one
	// reference (the product of its lists, its range's blocks included).
	maxDeps = 64
	maxKeys = maxDeps - 1
	// maxReferences is up to where each reference can have two dependencies; a
	// statement with more depends on its tables whole.
	maxReferences = maxDeps / 2
	// maxColumns bounds the compared columns of one reference.
	maxColumns = 16
)

// reference is one place where a statement reads a table. It is immutable but
// for variants.
type reference struct {
	relation *relation
	table    int       // index into template.tables, -1 while the feed is off
	shapes   *shapeSet // the table's, nil while the feed is off
	// whole tells that nothing narrows it.
	whole bool
	// equal are the compared columns, in the order of the table.
	equal  []keyColumn
	ranged *keyRange // nil without a range
	reads  []int     // nil: all columns

	// variants are the shapes that runs have needed so far. A run whose values
	// are not all proven has another shape than one whose are, and each width
	// of a range has its own. mu is held to add one.
	variants atomic.Pointer[[]*variant]
	mu       sync.Mutex
}

// keyColumn is one compared column.
type keyColumn struct {
	ordinal int
	// of is the column that the text compares with the sources: this one or one
	// that equals it and is compared alike.
	of      column
	sources []source
}

// keyRange is a column with a lower and an upper bound.
type keyRange struct {
	ordinal int
	between bool
	// low and high are the columns that the text compares with the bounds.
	low, high column
	sources   [2]source
}

// source is where a compared value comes from: a parameter of the skeleton.
type source struct {
	slot int
	cast uint32 // PostgreSQL: OID of the type it is cast to, 0 if it is not
	// array tells that the parameter is an array whose elements are compared
	// (PostgreSQL); cast is then the type of the elements.
	array bool
	// shared tells that the parameter stands elsewhere too, which may have
	// settled its type if it was not declared.
	shared bool
}

// narrowing is what of a reference's conditions one run can use.
type narrowing struct {
	mask   uint32 // of reference.equal
	ranged bool
	level  uint8
}

// variant is a shape of a reference.
type variant struct {
	narrowing
	shape *feed.Shape // nil: the table has too many shapes
	all   cache.Dep   // the shape's own
}

// variant returns the shape for what a run can use. The first run that needs it
// registers it, which takes a lock; the feed takes it up a little later.
func (ref *reference) variant(f Follower, n narrowing) *variant {
	if known := ref.variants.Load(); known != nil {
		for _, v := range *known {
			if v.narrowing == n {
				return v
			}
		}
	}
	ref.mu.Lock()
	defer ref.mu.Unlock()
	var list []*variant
	if known := ref.variants.Load(); known != nil {
		list = *known
		for _, v := range list {
			if v.narrowing == n {
				return v
			}
		}
	}
	spec := feed.ShapeSpec{Range: -1, Reads: ref.reads}
	for i := range ref.equal {
		if n.mask&(1<<i) != 0 {
			spec.Equal = append(spec.Equal, ref.equal[i].ordinal)
		}
	}
	if n.ranged {
		spec.Range, spec.Level = ref.ranged.ordinal, n.level
	}
	v := &variant{narrowing: n, shape: ref.shapes.get(f, spec)}
	if v.shape != nil {
		v.all = cache.DepOfShape(v.shape.ID)
	}
	list = append(slices.Clone(list), v)
	ref.variants.Store(&list)
	return v
}

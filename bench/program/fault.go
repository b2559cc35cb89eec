package program

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// Fault is a mistake put into Freshet's source on purpose, in a copy that
// only one build sees (go build -overlay): the product has no switch for it.
type Fault struct {
	Name string
	In   string // the package's folder below the module's
	Fn   string // the function, as "(*T).name" or "name"
	// The first Old in the function's body becomes New; with no Old, New stands
	// before the body's first statement.
	Old, New string
}

// overlay writes the changed copy of the file that has the fault's function,
// and the description that go build takes. It fails when the source has
// changed so much that the fault has no place any more.
func (f Fault) overlay(module, folder string) (path string, err error) {
	files, err := filepath.Glob(filepath.Join(module, f.In, "*.go"))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		changed, found, err := f.change(string(source))
		if err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		if !found {
			continue
		}
		copied := filepath.Join(folder, "fault.go")
		if err := os.WriteFile(copied, []byte(changed), 0o600); err != nil {
			return "", err
		}
		list, err := json.Marshal(map[string]map[string]string{"Replace": {file: copied}})
		if err != nil {
			return "", err
		}
		path = filepath.Join(folder, "overlay.json")
		return path, os.WriteFile(path, list, 0o600)
	}
	return "", fmt.Errorf("%s has no function %s any more: give the fault %q another place", f.In, f.Fn, f.Name)
}

// change puts the fault into source if it has the function.
func (f Fault) change(source string) (changed string, found bool, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", source, parser.SkipObjectResolution)
	if err != nil {
		return "", false, err
	}
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || nameOf(fn) != f.Fn {
			continue
		}
		from, to := set.Position(fn.Body.Lbrace).Offset+1, set.Position(fn.Body.Rbrace).Offset
		body := source[from:to]
		if !strings.Contains(body, f.Old) {
			return "", true, fmt.Errorf("%s has no %q any more: give the fault %q another place", f.Fn, f.Old, f.Name)
		}
		if f.Old == "" {
			body = "\n" + f.New + body
		} else {
			body = strings.Replace(body, f.Old, f.New, 1)
		}
		return source[:from] + body + source[to:], true, nil
	}
	return "", false, nil
}

// nameOf is a function's name with its receiver's type.
func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) != 1 {
		return fn.Name.Name
	}
	star := ""
	t := fn.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		star, t = "*", p.X
	}
	name, ok := t.(*ast.Ident)
	if !ok {
		return ""
	}
	return "(" + star + name.Name + ")." + fn.Name.Name
}

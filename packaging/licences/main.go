// Command licences writes what must go along with a built program: the texts of the licences of all that is linked into
// it, and a bill of materials (SBOM) in CycloneDX's JSON. It asks the program itself what it was linked from, and each
// module, where it lies in the module cache, for its licences: a module without one ends it.
//
//	go run ./packaging/licences PROGRAM DIRECTORY
package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: licences PROGRAM DIRECTORY")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

// component is one of the bill's.
type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref,omitempty"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Package    string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Licences   []licence  `json:"licenses,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type licence struct {
	Licence struct {
		ID   string `json:"id,omitempty"`
		Name string `json:"name,omitempty"`
	} `json:"license"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func write(program, directory string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	texts, err := os.Create(filepath.Join(directory, "licences.txt"))
	if err != nil {
		return err
	}
	defer texts.Close()
	runtime, err := os.ReadFile(filepath.Join(goroot(), "LICENSE"))
	if err != nil {
		return fmt.Errorf("the licence of Go itself: %w", err)
	}
	fmt.Fprintf(texts, "What %s is linked from, and its licences.\n", filepath.Base(program))
	section(texts, "the Go runtime and standard library, "+info.GoVersion, "LICENSE", runtime)
	golang := component{Type: "library", Ref: "std", Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"), Package: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}
	golang.Licences = named([][]byte{runtime})
	components := []component{golang}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		found, err := licencesOf(m)
		if err != nil {
			return err
		}
		var all [][]byte
		for _, f := range found {
			section(texts, m.Path+" "+m.Version, f.name, f.text)
			all = append(all, f.text)
		}
		components = append(components, describe(m, all))
	}
	return bill(filepath.Join(directory, "sbom.cdx.json"), info, components)
}

func goroot() string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func section(out *os.File, of, name string, text []byte) {
	fmt.Fprintf(out, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 100), of, name, bytes.TrimSpace(text))
}

// file is a licence's.
type file struct {
	name string
	text []byte
}

var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice)s?([.-].*)?$`)

// licencesOf finds the files that say under what a module may be had, those of C code below it too.
func licencesOf(m *debug.Module) (found []file, err error) {
	out, err := exec.Command("go", "mod", "download", "-json", m.Path+"@"+m.Version).Output()
	var where struct{ Dir, Error string }
	if bad := json.Unmarshal(out, &where); err != nil || bad != nil {
		return nil, fmt.Errorf("%s %s: %w", m.Path, m.Version, errors.Join(err, bad, errors.New(where.Error)))
	}
	err = filepath.WalkDir(where.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if err == nil && entry.Name() == "testdata" {
				return fs.SkipDir
			}
			return err
		}
		if !licenceName.MatchString(entry.Name()) || slices.Contains([]string{".go", ".c", ".h"}, filepath.Ext(path)) {
			return nil
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(where.Dir, path)
		found = append(found, file{name, text})
		return err
	})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s %s has no licence", m.Path, m.Version)
	}
	return found, err
}

// marks tell licences apart by words that no other has.
var marks = []struct{ id, words string }{
	{"Apache-2.0", "Apache License"},
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"BSD-3-Clause", "Neither the name of"},
	{"BSD-2-Clause", "Redistributions in binary form must reproduce"},
	{"MIT", "The above copyright notice and this permission notice shall be included"},
	{"MIT-0", "Permission is hereby granted, free of charge"},
	{"PostgreSQL", "IN NO EVENT SHALL THE UNIVERSITY OF CALIFORNIA BE LIABLE"},
}

// named gives texts their identifiers.
func named(texts [][]byte) (list []licence) {
	for _, text := range texts {
		words, id := strings.Join(strings.Fields(string(text)), " "), ""
		for _, m := range marks {
			if strings.Contains(words, m.words) {
				id = m.id
				break
			}
		}
		var l licence
		if l.Licence.ID = id; id == "" {
			l.Licence.Name = "see licences.txt"
		}
		if !slices.Contains(list, l) {
			list = append(list, l)
		}
	}
	if len(list) > 1 { // a note beside a licence is none of its own
		list = slices.DeleteFunc(list, func(l licence) bool { return l.Licence.ID == "" })
	}
	return list
}

func describe(m *debug.Module, texts [][]byte) component {
	reference := "pkg:golang/" + strings.ReplaceAll(url.PathEscape(m.Path), "%2F", "/") + "@" + url.QueryEscape(m.Version)
	c := component{Type: "library", Ref: reference, Name: m.Path, Version: m.Version, Package: reference, Licences: named(texts)}
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) == 32 { // of the module's tree, as go.sum has it
		c.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum)}}
	}
	return c
}

func bill(path string, info *buildinfo.BuildInfo, components []component) error {
	at := time.Now()
	if seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		at = time.Unix(seconds, 0)
	}
	of := component{Type: "application", Ref: "dpproxy", Name: info.Main.Path, Version: os.Getenv("VERSION")}
	if commit := os.Getenv("COMMIT"); commit != "" {
		of.Properties = []property{{"commit", commit}}
	}
	refs := make([]string, len(components))
	for i, c := range components {
		refs[i] = c.Ref
	}
	text, err := json.MarshalIndent(map[string]any{
		"$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata":   map[string]any{"timestamp": at.UTC().Format(time.RFC3339), "component": of},
		"components": components, "dependencies": []map[string]any{{"ref": "dpproxy", "dependsOn": refs}},
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

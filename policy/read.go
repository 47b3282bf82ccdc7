package policy

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds a policy file: a million declared values of a kilobyte would not fit, a million of sixty bytes do.
const maxFile = 64 << 20

// Read loads and checks a policy file. Its error is Problems where the file could be read.
func Read(path string) (*Policy, error) {
	data, err := load(path)
	if err != nil {
		return nil, err
	}
	return Parse(data, path)
}

// ReadForLedger reads and checks a file for who looks after its ledger and nothing else: environment variables that are
// not set (a password of the database, a service's credentials) may stay so, but for those that name the ledger. Where
// they are used is then not what serve would use.
func ReadForLedger(path string) (*Policy, error) {
	data, err := load(path)
	if err != nil {
		return nil, err
	}
	return parse(data, path, true, nil)
}

// load reads a file to one byte more than Parse takes. Where somebody wrote meanwhile that is an error: the first half
// of a policy may be one that passes, and lacks the rest.
func load(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return loadFrom(f)
}

func loadFrom(f *os.File) ([]byte, error) {
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	after, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if before.Mode().IsRegular() && (!after.ModTime().Equal(before.ModTime()) || after.Size() != before.Size() || int64(len(data)) != min(after.Size(), maxFile+1)) {
		return nil, fmt.Errorf("%s was written to while it was read", f.Name())
	}
	return data, nil
}

// Parse checks the text of a policy file. Relative paths in it are relative to path's directory; ${NAME} comes from the
// environment. Nothing but the environment is read.
func Parse(data []byte, path string) (*Policy, error) { return parse(data, path, false, nil) }

func parse(data []byte, path string, ledgerAlone bool, lists map[string][]string) (*Policy, error) {
	found := &findings{path: path}
	if len(data) > maxFile {
		found.add(nil, fmt.Sprintf("file has more than %d bytes", maxFile))
		return nil, found.err()
	}
	root := tree(data, found)
	if root == nil {
		return nil, found.err()
	}
	strict{found}.check(root, schema(), "")
	if err := found.err(); err != nil {
		return nil, err
	}
	var file fileT
	if err := root.Decode(&file); err != nil {
		found.add(root, "not a policy: "+err.Error())
		return nil, found.err()
	}
	directory, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	read := func(of map[string]string) *Policy {
		p := &Policy{Path: path, Digest: sha256.Sum256(data), text: data, lists: lists}
		c := &checker{directory: directory, policy: p, lists: lists, relations: map[string]*Table{}, levels: of}
		c.ledgerAlone = ledgerAlone
		c.file(&file, place{node: root, found: found})
		return c.policy
	}
	p := read(nil)
	if found.err() == nil {
		p.seen(read)
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	return p, nil
}

// yamlLine finds the line in yaml.v3's message of a syntax error.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// tree parses the text to its one document's root mapping, or reports why it cannot.
func tree(data []byte, found *findings) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) || err == nil && len(document.Content) == 0 {
		found.add(nil, "file is empty")
		return nil
	}
	if err == nil {
		if again := decoder.Decode(&second); again == nil {
			found.add(&second, "a policy is one YAML document; here a second one begins")
			return nil
		} else if !errors.Is(again, io.EOF) {
			err = again
		}
	}
	if err != nil {
		match := yamlLine.FindStringSubmatch(strings.SplitN(err.Error(), "\n", 2)[0])
		if match == nil {
			found.add(nil, "not YAML")
			return nil
		}
		line, _ := strconv.Atoi(match[1])
		found.add(&yaml.Node{Line: max(line, 1), Column: 1}, "not YAML: "+match[2])
		return nil
	}
	return document.Content[0]
}

// UnmarshalYAML takes `row` or a mapping.
func (u *unitT) UnmarshalYAML(n *yaml.Node) error {
	return wordOr(n, func(word string) { u.Row = word == "row" }, &u.keyT)
}

// wordOr takes one word, or what is decoded into another value.
func wordOr(n *yaml.Node, take func(word string), into any) error {
	if n.Kind == yaml.ScalarNode {
		take(n.Value)
		return nil
	}
	return n.Decode(into)
}

// UnmarshalYAML takes a column's name or a list of names.
func (u *uniqueT) UnmarshalYAML(n *yaml.Node) error {
	return wordOr(n, func(word string) { *u = uniqueT{word} }, (*[]string)(u))
}

// UnmarshalYAML takes a column's name or a mapping.
func (a *appendsT) UnmarshalYAML(n *yaml.Node) error {
	type mapping appendsT
	return wordOr(n, func(word string) { a.Column = word }, (*mapping)(a))
}

// UnmarshalYAML takes a number of units or a mapping.
func (f *frequencyT) UnmarshalYAML(n *yaml.Node) error {
	type mapping frequencyT
	return wordOr(n, func(word string) { f.Units = integer(word) }, (*mapping)(f))
}

// UnmarshalYAML takes `private`, `any` or a mapping.
func (d *domainT) UnmarshalYAML(n *yaml.Node) error {
	type mapping domainT
	return wordOr(n, func(word string) { d.private, d.any = word == "private", word == "any" }, (*mapping)(d))
}

// UnmarshalYAML takes a name or a mapping.
func (c *releaseColumnT) UnmarshalYAML(n *yaml.Node) error {
	type mapping releaseColumnT
	return wordOr(n, func(word string) { c.Column = word }, (*mapping)(c))
}

// checker turns the decoded file into a Policy.
type checker struct {
	directory string
	policy    *Policy
	relations map[string]*Table   // by base relation, the first table over it
	twice     []twiceListed       // each further table over a relation of its dataset
	lists     map[string][]string // the values of lists that were read; see Policy.WithLists
	levels    map[string]string   // by dataset, the level of those for whom the policy is read; none means the whole

	ledgerAlone bool // the database and the sandbox will not be opened: see ReadForLedger
}

func (c *checker) file(f *fileT, at place) {
	if f.Version != "1" {
		at.key("version").problem("version is %s, must be 1", f.Version)
	}
	c.server(&f.Server, at.key("server"))
	c.backend(&f.Backend, at.key("backend"))
	c.stores(f, at)
	c.users(f.Users, at.key("users"))
	c.groups(f.Groups, at.key("groups"))
	c.owners(f.Owners, at.key("owners"))
	if len(f.Datasets) == 0 {
		at.key("datasets").problem("datasets is empty, must have at least one")
	}
	for i := range f.Datasets {
		c.dataset(&f.Datasets[i], at.key("datasets").item(i))
	}
	c.renames(at.key("datasets"))
}

// variable is a use of an environment variable in a URL or a file name.
var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// elsewhere is expand where what is named is not the ledger's: for who looks after that alone, a variable that is not
// set is anything.
func (c *checker) elsewhere(text string, at place, what string) string {
	if c.ledgerAlone {
		text = variable.ReplaceAllStringFunc(text, func(use string) string {
			if _, ok := os.LookupEnv(use[2 : len(use)-1]); ok {
				return use
			}
			if use == text {
				return "postgres://unset@127.0.0.1/unset"
			}
			return "unset"
		})
	}
	return expand(text, at, what)
}

// expand replaces ${NAME} by the environment's value.
func expand(text string, at place, what string) string {
	return variable.ReplaceAllStringFunc(text, func(use string) string {
		name := use[2 : len(use)-1]
		if !variableName.MatchString(name) {
			at.problem("%s: %.40q is not the name of an environment variable", what, name)
			return ""
		}
		value, ok := os.LookupEnv(name)
		if !ok {
			at.problem("%s: environment variable %s is not set", what, name)
		}
		return value
	})
}

// resolve makes a path absolute, relative to the policy's directory.
func (c *checker) resolve(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(c.directory, path)
}

var durationForm = regexp.MustCompile(`^([0-9]{1,9})\s*(s|m|h|d|w)$`)

var durationUnits = map[string]time.Duration{
	"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
}

// maxDuration is a hundred years; longer means a typing error.
const maxDuration = 36525 * 24 * time.Hour

// duration reads "30d"; empty gives otherwise.
func duration(text string, otherwise time.Duration, at place, what string) time.Duration {
	if text == "" {
		return otherwise
	}
	match := durationForm.FindStringSubmatch(text)
	if match == nil {
		at.problem("%s is %.40q, must be a whole number of s, m, h, d or w such as 30d", what, text)
		return otherwise
	}
	n, _ := strconv.ParseInt(match[1], 10, 64)
	unit := durationUnits[match[2]]
	if n == 0 || n > int64(maxDuration/unit) {
		at.problem("%s is %.40q, must be more than nothing and at most a hundred years", what, text)
		return otherwise
	}
	return time.Duration(n) * unit
}

var briefForm = regexp.MustCompile(`^([0-9]{1,6})\s*(ms|s|m)$`)

// brief reads a short duration, of milliseconds too.
func brief(text string) (time.Duration, bool) {
	match := briefForm.FindStringSubmatch(text)
	if match == nil {
		return 0, false
	}
	n, _ := strconv.ParseInt(match[1], 10, 64)
	return time.Duration(n) * map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "m": time.Minute}[match[2]], true
}

// Problem is one thing that is wrong with a policy file.
type Problem struct {
	Path         string
	Line, Column int // from 1; 0 means the file as a whole
	Text         string
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.Path + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.Path, p.Line, p.Column, p.Text)
}

// Problems is all that is wrong with a policy file, in the order of its lines. It is an error.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].String()
	}
	return strings.Join(lines, "\n")
}

// findings collects problems while a file is checked.
type findings struct {
	path     string
	problems Problems
}

func (f *findings) add(node *yaml.Node, text string) {
	p := Problem{Path: f.path, Text: text}
	if node != nil {
		p.Line, p.Column = node.Line, node.Column
	}
	if !slices.Contains(f.problems, p) {
		f.problems = append(f.problems, p)
	}
}

// err returns the problems sorted, or nil.
func (f *findings) err() error {
	if len(f.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(f.problems, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return f.problems
}

// place is a position in the file, with the words that say where: "table people, column age".
type place struct {
	node  *yaml.Node
	words string
	found *findings
}

// key is the value of a key, or p's own position where the key is absent.
func (p place) key(name string) place {
	if p.node != nil && p.node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(p.node.Content); i += 2 {
			if p.node.Content[i].Value == name {
				return place{p.node.Content[i+1], p.words, p.found}
			}
		}
	}
	return p
}

// name is the key itself rather than its value.
func (p place) name(name string) place {
	if p.node != nil && p.node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(p.node.Content); i += 2 {
			if p.node.Content[i].Value == name {
				return place{p.node.Content[i], p.words, p.found}
			}
		}
	}
	return p
}

// item is the i-th item of a list.
func (p place) item(i int) place {
	if p.node != nil && p.node.Kind == yaml.SequenceNode && i < len(p.node.Content) {
		return place{p.node.Content[i], p.words, p.found}
	}
	return p
}

// within adds to the words that say where.
func (p place) within(kind, name string) place {
	if p.words != "" {
		p.words += ", "
	}
	p.words += kind
	if name != "" {
		p.words += " " + name
	}
	return p
}

// unwanted reports the keys that are given here and may not be, each named in the words.
func (p place) unwanted(words string, given map[string]bool) {
	for key, is := range given {
		if is {
			p.name(key).problem(words, key)
		}
	}
}

// problem reports what is wrong here.
func (p place) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if p.words != "" {
		text = p.words + ": " + text
	}
	p.found.add(p.node, text)
}

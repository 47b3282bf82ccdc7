// Package packages holds what is handed out against a clean system: the .deb is installed, started, upgraded and
// removed in a Debian root of its own (docs/adr/0123).
package packages

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/test/kit"
)

const root = "../.."

func TestMain(m *testing.M) { os.Exit(kit.Main(m, nil)) }

// needs skips a test where a tool of the system's is not there.
func needs(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not there", tool)
		}
	}
}

func command(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// made runs scripts/dist on the program that the tests run.
func made(t *testing.T, version, kinds string) (dir string) {
	t.Helper()
	if os.Getenv("DPPROXY_PACKAGES") == "" {
		t.Skip("make packages runs it: it takes minutes")
	}
	program, err := kit.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(filepath.Join(root, "scripts/dist"))
	if err != nil {
		t.Fatal(err)
	}
	nfpm := regexp.MustCompile(`(?m)^nfpm=(\S+)`).FindSubmatch(script)
	if out, err := exec.CommandContext(t.Context(), "go", "run", string(nfpm[1]), "--version").CombinedOutput(); err != nil {
		t.Skipf("nfpm cannot be had from here: %v\n%.400s", err, out)
	}
	dir = t.TempDir()
	command(t, []string{"PROGRAM=" + program, "VERSION=" + version, "TO=" + dir, "KINDS=" + kinds}, "./scripts/dist")
	return dir
}

// machine is a Debian root directory.
type machine struct {
	t    *testing.T
	root string
}

func (m machine) run(line string) string {
	m.t.Helper()
	return command(m.t, []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "DPPROXY_PASSWORD=wonderland"}, "chroot", m.root, "/bin/sh", "-c", line)
}

func (m machine) path(name string) string { return filepath.Join(m.root, name) }

func (m machine) has(name string) bool {
	_, err := os.Lstat(m.path(name))
	return err == nil
}

// debian makes a machine with nothing on it but what Debian calls essential, and apt.
func debian(t *testing.T) machine {
	t.Helper()
	needs(t, "debootstrap", "chroot", "objdump")
	if os.Getuid() != 0 {
		t.Skip("a root directory of its own wants root")
	}
	m := machine{t, filepath.Join(t.TempDir(), "root")}
	if ready := os.Getenv("DPPROXY_TEST_DEBIAN"); ready != "" { // a root that is there already, to spare the minutes of making one
		command(t, nil, "cp", "-a", ready, m.root)
	} else if out, err := exec.CommandContext(t.Context(), "debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", m.root).CombinedOutput(); err != nil {
		t.Skipf("Debian cannot be had from here: %v\n%.400s", err, out)
	}
	m.mountProcesses()
	return m
}

func (m machine) mountProcesses() {
	m.t.Helper()
	if err := syscall.Mount("proc", m.path("proc"), "proc", 0, ""); err != nil {
		m.t.Skipf("nothing may be mounted here: %v", err)
	}
	m.t.Cleanup(func() {
		if err := syscall.Unmount(m.path("proc"), 0); err != nil {
			m.t.Error(err)
		}
	})
}

func (m machine) install(dir string) string {
	m.t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.deb"))
	if len(files) != 1 {
		m.t.Fatalf("%s has %v", dir, files)
	}
	text, err := os.ReadFile(files[0])
	if err == nil {
		err = os.WriteFile(m.path("dpproxy.deb"), text, 0o644)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return m.run("apt-get install -y --no-install-recommends ./dpproxy.deb")
}

// unit reads what a line of the installed unit says.
func (m machine) unit(key string) string {
	m.t.Helper()
	text, err := os.ReadFile(m.path("lib/systemd/system/dpproxy.service"))
	if err != nil {
		m.t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindSubmatch(text)
	if found == nil {
		m.t.Fatalf("the unit has no %s", key)
	}
	return string(found[1])
}

// start does what systemd would do by the unit, as far as that goes without it: user, directory, umask, command, the
// message that it is ready. It returns how to end the service.
func (m machine) start() (stop func()) {
	m.t.Helper()
	inside := strings.TrimPrefix(m.unit("WorkingDirectory"), "/") + "/notify"
	ready, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.path(inside), Net: "unixgram"})
	if err == nil {
		err = os.Chmod(m.path(inside), 0o666)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	defer ready.Close()
	defer os.Remove(m.path(inside))
	cmd := exec.Command("chroot", "--userspec="+m.unit("User")+":"+m.unit("Group"), m.root, "/bin/sh", "-c",
		"cd "+m.unit("WorkingDirectory")+" && umask "+m.unit("UMask")+" && exec "+m.unit("ExecStart"))
	cmd.Env = []string{"PATH=/usr/bin:/bin", "NOTIFY_SOCKET=/" + inside}
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended); ready.Close() }() // how it ended is in its state
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may be gone
		<-ended
	}
	m.t.Cleanup(stop)
	if err := ready.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		m.t.Fatal(err)
	}
	said := make([]byte, 64)
	n, err := ready.Read(said)
	if err != nil || string(said[:n]) != "READY=1" {
		stop()
		m.t.Fatalf("the service said %q: %v\n%s", said[:n], err, log.String())
	}
	return stop
}

func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestDebianPackage: on a clean Debian two commands lead to a running service; a user is added beside it and asks; an
// upgrade keeps policy and ledger, so do removing and purging the ledger. There is no systemd in such a root: the test
// starts what the unit says.
func TestDebianPackage(t *testing.T) {
	m := debian(t)
	first, second := made(t, "0.1.0", "deb"), made(t, "0.2.0", "deb")
	m.install(first)
	for _, name := range []string{"usr/bin/dpproxy", "usr/share/man/man1/dpproxy-serve.1.gz", "usr/share/bash-completion/completions/dpproxy",
		"usr/share/doc/dpproxy/licences.txt", "usr/share/doc/dpproxy/sbom.cdx.json", "usr/share/dpproxy/prometheus/dpproxy.rules.yml", "usr/share/dpproxy/grafana/dpproxy.json"} {
		if !m.has(name) {
			t.Errorf("%s is not installed", name)
		}
	}
	if modes := m.run("stat -c '%n %U:%G %a' /etc/dpproxy /etc/dpproxy/policy.yaml /etc/dpproxy/credentials /var/lib/dpproxy"); modes !=
		"/etc/dpproxy root:dpproxy 750\n/etc/dpproxy/policy.yaml root:dpproxy 640\n/etc/dpproxy/credentials root:root 700\n/var/lib/dpproxy dpproxy:dpproxy 750\n" {
		t.Errorf("who may read what:\n%s", modes)
	}
	wire, pages := free(t), free(t)
	m.run("sed -i 's/127.0.0.1:6432/" + wire + "/; s/127.0.0.1:6433/" + pages + "/' /etc/dpproxy/policy.yaml") // others may have the ports
	stop := m.start()
	if r, err := http.Get("http://" + pages + "/readyz"); err != nil || r.StatusCode != http.StatusOK {
		t.Errorf("readyz: %v, %v", r, err)
	}
	m.run("dpproxy user add alice --policy /etc/dpproxy/policy.yaml")
	if owner := m.run("stat -c '%U:%G %a' /etc/dpproxy/policy.yaml"); owner != "root:dpproxy 640\n" {
		t.Errorf("the policy is %s: the service cannot read it", owner)
	}
	host, port, _ := net.SplitHostPort(wire)
	ask := fmt.Sprintf("dpproxy query --url 'postgres://alice:wonderland@%s:%s/example' 'SELECT count(*) FROM people' 2>/dev/null", host, port)
	for wait := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) { // the service takes the new policy in
		out, err := exec.Command("chroot", m.root, "/bin/sh", "-c", ask).CombinedOutput()
		if err == nil {
			break
		}
		if time.Now().After(wait) {
			t.Fatalf("%s\n%s", err, out)
		}
	}
	answer := m.run(ask)
	budget := m.run("dpproxy budget --policy /etc/dpproxy/policy.yaml")
	if !regexp.MustCompile(`example +alice +ε 0\.1 `).MatchString(budget) {
		t.Errorf("alice has spent:\n%s", budget)
	}
	policy := m.run("cat /etc/dpproxy/policy.yaml")
	stop()

	m.install(second)
	if status := m.run("dpkg -s dpproxy"); !strings.Contains(status, "Version: 0.2.0") {
		t.Errorf("after the upgrade:\n%s", status)
	}
	same := func(when string) {
		t.Helper()
		if now := m.run("cat /etc/dpproxy/policy.yaml"); now != policy {
			t.Errorf("%s the policy is another:\n%s", when, now)
		}
		stop := m.start()
		defer stop()
		if again := m.run(ask); again != answer {
			t.Errorf("%s the same question has the answer\n%s, not\n%s", when, again, answer)
		}
		if now := m.run("dpproxy budget --policy /etc/dpproxy/policy.yaml"); now != budget {
			t.Errorf("%s the budgets are\n%s, not\n%s", when, now, budget)
		}
	}
	same("after the upgrade")
	m.run("apt-get remove -y dpproxy")
	if m.has("usr/bin/dpproxy") || !m.has("etc/dpproxy/policy.yaml") || !m.has("var/lib/dpproxy/dpproxy.ledger") {
		t.Error("removed: the program stays, or the policy or the ledger has gone")
	}
	m.install(second)
	same("removed and installed again")
	if said := m.run("apt-get purge -y dpproxy"); !strings.Contains(said, "/var/lib/dpproxy is left in place") {
		t.Errorf("purging says nothing of the ledger:\n%s", said)
	}
	if m.has("etc/dpproxy/policy.yaml") || !m.has("var/lib/dpproxy/dpproxy.ledger") {
		t.Error("purged: the policy stays, or the ledger has gone")
	}
}

// TestImage: what scripts/image makes is an image of OCI's layout whose blobs are what they are called; unpacked,
// without a daemon, its program starts as its configuration says, and answers what only the sandbox's PostgreSQL can
// compute.
func TestImage(t *testing.T) {
	needs(t, "apt-get", "dpkg-deb", "objdump", "chroot")
	if os.Getuid() != 0 {
		t.Skip("a root directory of its own wants root")
	}
	dir := made(t, "0.2.0", "deb")
	command(t, []string{"TO=" + dir}, "./scripts/image")
	images, _ := filepath.Glob(filepath.Join(dir, "*.oci.tar"))
	if len(images) != 1 {
		t.Fatalf("%s has %v", dir, images)
	}
	layout, m := t.TempDir(), machine{t, t.TempDir()}
	command(t, nil, "tar", "-xf", images[0], "-C", layout)
	blob := func(digest string) string {
		file := filepath.Join(layout, "blobs", strings.Replace(digest, ":", "/", 1))
		if sum := strings.Fields(command(t, nil, "sha256sum", file))[0]; "sha256:"+sum != digest {
			t.Fatalf("the blob %s is %s", digest, sum)
		}
		return file
	}
	read := func(file string, into any) {
		t.Helper()
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	type descriptor struct{ Digest string }
	var index struct{ Manifests []descriptor }
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	var image struct {
		Config struct {
			User, WorkingDir     string
			Entrypoint, Cmd, Env []string
		}
	}
	read(filepath.Join(layout, "index.json"), &index)
	read(blob(index.Manifests[0].Digest), &manifest)
	read(blob(manifest.Config.Digest), &image)
	if err := os.Chmod(m.root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, layer := range manifest.Layers {
		command(t, nil, "tar", "--numeric-owner", "--keep-directory-symlink", "-xpzf", blob(layer.Digest), "-C", m.root)
	}
	// What an engine of containers provides.
	command(t, nil, "mknod", "-m", "666", m.path("dev/null"), "c", "1", "3")
	command(t, nil, "mknod", "-m", "666", m.path("dev/urandom"), "c", "1", "9")
	m.mountProcesses()
	wire := free(t)
	policy, err := os.ReadFile(m.path("etc/dpproxy/policy.yaml"))
	if err == nil {
		err = os.WriteFile(m.path("etc/dpproxy/policy.yaml"), []byte(strings.NewReplacer("127.0.0.1:6432", wire, "127.0.0.1:6433", free(t)).Replace(string(policy))), 0o640)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := image.Config
	inside := func(args ...string) *exec.Cmd {
		cmd := exec.Command("chroot", append([]string{"--userspec=" + c.User, m.root, "/bin/sh", "-c", "cd " + c.WorkingDir + ` && exec "$@"`, "sh"}, args...)...)
		cmd.Env = append(c.Env, "DPPROXY_PASSWORD=wonderland")
		return cmd
	}
	if out, err := inside("/usr/bin/dpproxy", "user", "add", "alice", "--policy", "/etc/dpproxy/policy.yaml").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	service := inside(append(c.Entrypoint, c.Cmd...)...)
	var log strings.Builder
	service.Stderr = &log
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = service.Process.Signal(syscall.SIGTERM) // it may be gone
		_ = service.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	}()
	ask := "SELECT upper(reverse(count(*)::text || ' people')) FROM people"
	for wait := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) { // the service starts
		out, err := inside("/usr/bin/dpproxy", "query", "--url", "postgres://alice:wonderland@"+wire+"/example", ask).CombinedOutput()
		if err == nil && strings.Contains(string(out), "ELPOEP") {
			return
		}
		if time.Now().After(wait) {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

// TestDist: the archive and the .rpm hold the program with all that must go along; the bill of materials names each
// module that is linked.
func TestDist(t *testing.T) {
	needs(t, "objdump")
	dir := made(t, "0.2.0", "rpm archive")
	command(t, nil, "sh", "-c", "cd "+dir+" && sha256sum -c --quiet SHA256SUMS")
	archives, _ := filepath.Glob(filepath.Join(dir, "*.tar.gz"))
	if len(archives) != 1 {
		t.Fatalf("archives: %v", archives)
	}
	list := command(t, nil, "tar", "-tzf", archives[0])
	for _, name := range []string{"/dpproxy\n", "/LICENSE\n", "/licences.txt\n", "/sbom.cdx.json\n", "/man/dpproxy-user-add.1.gz\n", "/completions/_dpproxy\n", "/policy.yaml\n", "/dpproxy.service\n"} {
		if !strings.Contains(list, name) {
			t.Errorf("the archive has no %s:\n%s", strings.TrimSpace(name), list)
		}
	}
	bills, _ := filepath.Glob(filepath.Join(dir, "*.cdx.json"))
	text, err := os.ReadFile(bills[0])
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		BomFormat  string
		Components []struct {
			Name, Version, Purl string
			Licenses            []any
		}
	}
	if err := json.Unmarshal(text, &bill); err != nil || bill.BomFormat != "CycloneDX" {
		t.Fatal(err, bill.BomFormat)
	}
	have := map[string]bool{}
	for _, c := range bill.Components {
		have[c.Name+" "+c.Version] = c.Purl != "" && len(c.Licenses) > 0
	}
	program, _ := kit.Executable()
	for _, line := range strings.Split(command(t, nil, "go", "version", "-m", program), "\n") {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "dep" && !have[f[1]+" "+f[2]] {
			t.Errorf("the bill of materials has no %s %s, or no licence of it", f[1], f[2])
		}
	}
	rpms, _ := filepath.Glob(filepath.Join(dir, "*.rpm"))
	if len(rpms) != 1 {
		t.Fatalf("rpms: %v", rpms)
	}
	if _, err := exec.LookPath("rpm"); err != nil {
		t.Log("rpm is not there: the .rpm was made, and not looked into")
		return
	}
	files := command(t, nil, "rpm", "-qp", "--nosignature", "--qf", "[%{FILENAMES} %{FILEFLAGS:fflags}\n]", rpms[0])
	for _, name := range []string{"/usr/bin/dpproxy ", "/usr/lib/systemd/system/dpproxy.service ", "/etc/dpproxy/policy.yaml cn"} {
		if !strings.Contains(files, name) {
			t.Errorf("the .rpm has no %s:\n%s", name, files)
		}
	}
}

// TestUnit: systemd finds no fault in the unit, and calls what it may do little. It is not run here: nothing in the
// tests' machine is started by systemd.
func TestUnit(t *testing.T) {
	needs(t, "systemd-analyze")
	text, err := os.ReadFile(filepath.Join(root, "packaging/dpproxy.service"))
	if err != nil {
		t.Fatal(err)
	}
	dir := memory.Dir(t)
	unit := filepath.Join(dir, "dpproxy.service")
	there := strings.NewReplacer("/usr/bin/dpproxy", "/bin/true", "man:dpproxy(1) ", "").Replace(string(text)) // what is not installed here
	if err := os.WriteFile(unit, []byte(there), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := command(t, nil, "systemd-analyze", "verify", "--man=no", unit); strings.Contains(out, "dpproxy.service") {
		t.Error(out)
	}
	out := command(t, nil, "systemd-analyze", "security", "--offline=true", "--threshold=20", unit) // 2.0 of 10
	if exposure := regexp.MustCompile(`exposure level for dpproxy.service: (\S+)`).FindStringSubmatch(out); exposure == nil {
		t.Errorf("systemd says nothing of the exposure:\n%s", out)
	}
}

// TestAlerts: Prometheus reads the rules and each of them fires where it must; board and rules ask for metrics that
// dpproxy has.
func TestAlerts(t *testing.T) {
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	text, err := os.ReadFile(filepath.Join(root, "packaging/grafana/dpproxy.json"))
	if err == nil {
		err = json.Unmarshal(text, &board)
	}
	if err != nil || len(board.Panels) == 0 {
		t.Fatal(err)
	}
	rules, err := os.ReadFile(filepath.Join(root, "packaging/prometheus/dpproxy.rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	asked := string(rules)
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			asked += "\n" + target.Expr
		}
	}
	source, err := os.ReadFile(filepath.Join(root, "proxy/admin.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`dpproxy_([a-z_]+)`).FindAllStringSubmatch(asked, -1) {
		if !strings.Contains(string(source), `"`+m[1]+`"`) {
			t.Errorf("%s is asked for, and dpproxy has none", m[0])
		}
	}
	cases, err := os.ReadFile(filepath.Join(root, "packaging/prometheus/dpproxy.rules.test.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1) {
		silent := regexp.MustCompile(`alertname: ` + a[1] + `, exp_alerts: \[\]`).Match(cases)
		fires := regexp.MustCompile(`alertname: ` + a[1] + `\n +exp_alerts:\n +- exp_labels`).Match(cases)
		if !silent || !fires {
			t.Errorf("%s has no case in which it fires, or none in which it does not", a[1])
		}
	}
	needs(t, "promtool")
	command(t, nil, "promtool", "check", "rules", "packaging/prometheus/dpproxy.rules.yml")
	command(t, nil, "promtool", "test", "rules", "packaging/prometheus/dpproxy.rules.test.yml")
}

package mysql

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/internal/link"
	"github.com/dpproxy/dpproxy/backend/mariadbtest"
)

// TestEverySettingHasItsPlace (rule 24): what a session of this server could set is set by dpproxy, looked at, or known
// to decide nothing.
func TestEverySettingHasItsPlace(t *testing.T) {
	t.Parallel()
	places := map[string]int{"max_statement_time": 1}
	for _, g := range slices.Concat(givens, mariaGivens) {
		name, _, _ := strings.Cut(g, " ")
		places[name]++
	}
	for _, names := range mariaIdle {
		for _, name := range strings.Fields(names) {
			places[name]++
		}
	}
	rows, err := mariadbtest.Shared(t).DB().Query("SELECT lower(VARIABLE_NAME) FROM information_schema.SYSTEM_VARIABLES WHERE VARIABLE_SCOPE LIKE 'SESSION%'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if n++; places[name] == 0 {
			t.Errorf("%s has no place", name)
		}
	}
	if n < 150 {
		t.Errorf("%d settings", n)
	}
	for name, n := range places {
		if n != 1 {
			t.Errorf("%s has %d places", name, n)
		}
	}
}

// TestLinks: what a URL says of the way to the server.
func TestLinks(t *testing.T) {
	for url, want := range map[string]string{
		"mysql://u:p@127.0.0.1/d": "", "mysql://u@localhost:3307/d?socket=/run/mysqld.sock": "", "mysql://u@[::1]:3306/d": "",
		"mysql://u@db.example.org/d":                                    link.ErrLink.Error(),
		"mysql://u@db.example.org/d?ssl-mode=DISABLED":                  "",
		"mysql://u@db.example.org/d?ssl-mode=verify_identity":           "",
		"mysql://u@db.example.org/d?ssl-mode=verify_ca&ssl-ca=/nowhere": "the file of ssl-ca cannot be read",
		"mysql://u@db.example.org/d?ssl-mode=PREFERRED":                 "ssl-mode must be",
		"mysql://u@127.0.0.1/d?allowAllFiles=true":                      ErrURL.Error(),
		"mysql://u@127.0.0.1/d?ssl-cert=/a&ssl-key=/b":                  "not a certificate and its key",
		"mysql://u@127.0.0.1/d?ssl-mode=DISABLED&ssl-mode=REQUIRED":     ErrURL.Error(),
		"mysql://u:secret@127.0.0.1":                                    ErrURL.Error(),
		"mysql://u:secret@127.0.0.1:port/d":                             ErrURL.Error(),
	} {
		config, _, err := ParseURL(url)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v", url, err)
		}
		if err == nil && (config.AllowAllFiles || config.AllowCleartextPasswords || config.AllowOldPasswords || config.AllowFallbackToPlaintext || config.MultiStatements || config.InterpolateParams) {
			t.Errorf("%s: %+v", url, config)
		}
		if err == nil && strings.Contains(url, "verify_identity") && (config.TLS.ServerName != "db.example.org" || config.TLS.InsecureSkipVerify) {
			t.Errorf("%s: %+v", url, config.TLS)
		}
	}
}

// TestFlavors: which engines are known to keep what is believed of them.
func TestFlavors(t *testing.T) {
	for version, known := range map[string]bool{
		"10.11.19-MariaDB-0+deb12u1": true, "5.5.5-10.6.18-MariaDB": true, "11.4.2-MariaDB": true, "10.4.1-MariaDB": false, "8.0.36": true, "8.4.0-commercial": true, "5.7.44-log": false,
		"8.0.11-TiDB-v7.5.0": false, "8.0.30-Vitess": false, "8.0.33 (Dolt)": false, "": false, "PostgreSQL 15": false,
	} {
		if _, err := flavorOf(version, ""); (err == nil) != known {
			t.Errorf("%q: %v", version, err)
		}
	}
}

// TestImpostor: what is no server of MySQL's, whatever it sends, is an error.
func TestImpostor(t *testing.T) {
	t.Parallel()
	greeting := "\x4a\x00\x00\x00\x0a10.11.6-MariaDB\x00\x01\x00\x00\x00abcdefgh\x00\xff\xf7\x2d\x02\x00\xff\x81\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00abcdefghijkl\x00mysql_native_password\x00"
	greeting = string(rune(len(greeting)-4)) + greeting[1:]
	ok := "\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00"
	for name, sent := range map[string]string{
		"nothing": "", "noise": strings.Repeat("\xff", 4096), "zeros": strings.Repeat("\x00", 4096), "no end": "\xff\xff\xff\x00" + strings.Repeat("a", 1<<16),
		"a greeting": greeting, "a greeting, cut off": greeting[:40], "in, and noise": greeting + ok + strings.Repeat("\xfb", 4096), "in, and columns": greeting + ok + "\x01\x00\x00\x01\xfe\x05\x00\x00\x02\xfd\xff\xff\xff\x03",
		"a prepared statement": greeting + ok + "\x0c\x00\x00\x01\x00\x01\x00\x00\x00\xff\xff\x00\x00\x00\x00\x00" + strings.Repeat("\x02\x00\x00\x02\x03a", 100),
		"a wish for a file":    greeting + ok + "\x0c\x00\x00\x01\xfb/etc/passwd",
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = c.Write([]byte(sent))
					time.Sleep(200 * time.Millisecond)
					c.Close()
				}
			}()
			config, _, err := ParseURL("mysql://u:p@" + l.Addr().String() + "/d")
			if err != nil {
				t.Fatal(err)
			}
			if c, err := Connect(t.Context(), config, time.Second); err == nil {
				c.Close()
				t.Error("taken for a server")
			}
		})
	}
}

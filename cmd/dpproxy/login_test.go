package main

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestDeviceFlow: login prints where to type which code, waits as the provider says, and writes the token alone to
// standard output; what a provider refuses is named by its word, and nothing it sends reaches the terminal as it is.
func TestDeviceFlow(t *testing.T) {
	var asked atomic.Int32
	outcome := atomic.Pointer[string]{}
	var provider *httptest.Server
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":"x","authorization_endpoint":"x","token_endpoint":%q,"device_authorization_endpoint":%q,"id_token_signing_alg_values_supported":["ES256"]}`, provider.URL, provider.URL+"/token", provider.URL+"/device")
	})
	mux.HandleFunc("POST /device", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("client_id") != "dpproxy" {
			http.Error(w, "{}", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"device_code":"secretcode","user_code":"WDJB-MJHT\u001b[2J","verification_uri":"https://id.example.org/device","expires_in":600,"interval":1}`)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.FormValue("device_code") != "secretcode" || asked.Add(1) == 1 {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"authorization_pending"}`)
			return
		}
		if text := *outcome.Load(); strings.Contains(text, "error") {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, text)
		} else {
			fmt.Fprint(w, text)
		}
	})
	provider = httptest.NewTLSServer(mux)
	defer provider.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: provider.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	login := func(answer string, more ...string) kit.Ran {
		asked.Store(0)
		outcome.Store(&answer)
		return kit.Run(t, "", append([]string{"login", "--issuer", provider.URL, "--client-id", "dpproxy", "--ca", ca}, more...)...)
	}
	good := `{"access_token":"eyJaccess","id_token":"eyJidentity","token_type":"Bearer"}`
	if out := login(good); out.Code != 0 || out.Stdout != "eyJaccess\n" || out.Stderr != "Open https://id.example.org/device and type WDJB-MJHT[2J\n" || asked.Load() != 2 {
		t.Errorf("exit %d after %d questions: %q %q", out.Code, asked.Load(), out.Stdout, out.Stderr)
	}
	if out := login(good, "--id-token"); out.Code != 0 || out.Stdout != "eyJidentity\n" {
		t.Errorf("the identity token: exit %d: %q %q", out.Code, out.Stdout, out.Stderr)
	}
	for answer, want := range map[string]string{`{"error":"access_denied"}`: "access_denied", `{"error":"expired_token"}`: "expired_token", `{"token_type":"Bearer"}`: "token"} {
		if out := login(answer); out.Code != 1 || out.Stdout != "" || !strings.Contains(out.Stderr, want) || strings.Contains(out.Stderr, "secretcode") {
			t.Errorf("%s: exit %d: %q %q", answer, out.Code, out.Stdout, out.Stderr)
		}
	}
	if out := kit.Run(t, "", "login", "--issuer", provider.URL, "--client-id", "dpproxy"); out.Code != 1 || !strings.Contains(out.Stderr, "certificate") {
		t.Errorf("a provider whose certificate nobody signed: exit %d: %s", out.Code, out.Stderr)
	}
	if out := kit.Run(t, "", "login"); out.Code != 2 {
		t.Errorf("without an issuer: exit %d", out.Code)
	}
}

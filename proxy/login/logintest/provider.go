// Package logintest has an OpenID provider for tests.
package logintest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Provider is an OpenID provider: it says where its keys are, and which they are.
type Provider struct {
	*httptest.Server
	CA   string      // file of the certificate that its server has
	Down atomic.Bool // it answers nothing

	keys atomic.Pointer[jose.JSONWebKeySet]
}

// NewProvider starts a provider, until the test ends.
func NewProvider(t *testing.T) *Provider {
	t.Helper()
	p := &Provider{CA: filepath.Join(t.TempDir(), "provider.pem")}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"authorization_endpoint":"x","token_endpoint":"x",`+
			`"id_token_signing_alg_values_supported":["ES256"]}`, p.URL, p.URL+"/keys")
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		text, _ := p.keys.Load().Keys[0].MarshalJSON() // of a key that was made here
		fmt.Fprintf(w, `{"keys":[%s]}`, text)
	})
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.Down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})
	if err := os.WriteFile(p.CA, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// Roll makes a key, which is what the provider says its key is from then on, where show. What it returns mints tokens
// of frank's for the audience dpproxy, with other claims as they are given.
func (p *Provider) Roll(t *testing.T, id string, show bool) (mint func(claims map[string]any) string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if show {
		public := jose.JSONWebKey{Key: &key.PublicKey, KeyID: id, Algorithm: "ES256", Use: "sig"}
		p.keys.Store(&jose.JSONWebKeySet{Keys: []jose.JSONWebKey{public}})
	}
	private := jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: id}}
	signer, err := jose.NewSigner(private, nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(claims map[string]any) string {
		all := map[string]any{"iss": p.URL, "aud": "dpproxy", "sub": "frank", "exp": time.Now().Add(time.Hour).Unix(),
			"iat": time.Now().Unix()}
		for k, v := range claims {
			all[k] = v
		}
		text, err := jwt.Signed(signer).Claims(all).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
}

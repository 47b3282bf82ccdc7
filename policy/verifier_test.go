package policy

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
)

// TestVerifierRFC7677 checks the verifier against the exchange printed in RFC 7677 §3: it must accept the client's
// proof and give the server's signature.
func TestVerifierRFC7677(t *testing.T) {
	decode := func(s string) []byte {
		raw, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	verifier, err := Verifier("pencil", bytes.NewReader(decode("W22ZaJ0SNY7soEsUEjb6gQ==")))
	if err != nil {
		t.Fatal(err)
	}
	front, keys, _ := strings.Cut(strings.TrimPrefix(verifier, "SCRAM-SHA-256$"), "$")
	if front != "4096:W22ZaJ0SNY7soEsUEjb6gQ==" {
		t.Errorf("iterations and salt: %s", front)
	}
	stored, server, _ := strings.Cut(keys, ":")
	auth := []byte("n=user,r=rOprNGfwEbeRWgbNEkqO," +
		"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096," +
		"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
	mac := func(key []byte) []byte {
		h := hmac.New(sha256.New, key)
		h.Write(auth)
		return h.Sum(nil)
	}
	if got := base64.StdEncoding.EncodeToString(mac(decode(server))); got != "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=" {
		t.Errorf("server signature is %s", got)
	}
	key := decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
	for i, b := range mac(decode(stored)) {
		key[i] ^= b
	}
	if sum := sha256.Sum256(key); !bytes.Equal(sum[:], decode(stored)) {
		t.Error("the client's proof does not pass")
	}
	if err := checkVerifier(verifier); err != nil {
		t.Error(err)
	}
}

func TestVerifierFailures(t *testing.T) {
	if _, err := Verifier("", rand.Reader); err == nil {
		t.Error("an empty password passes")
	}
	if _, err := Verifier("x", strings.NewReader("short")); err == nil {
		t.Error("a source of randomness that ends passes")
	}
	if a, b := mustVerifier(t, "x"), mustVerifier(t, "x"); a == b {
		t.Error("two verifiers share a salt")
	}
	mustVerifier(t, "p\u00e4ssw\u00f6rd \x07") // SASLprep refuses control characters: the bytes are taken
	for _, text := range []string{"", "secret", "md5abc", "SCRAM-SHA-1$4096:c2FsdA==$a:b", "SCRAM-SHA-256$4096$a:b", "SCRAM-SHA-256$x:c2FsdA==$YQ==:YQ=="} {
		err := checkVerifier(text)
		if err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func mustVerifier(t *testing.T, password string) string {
	t.Helper()
	v, err := Verifier(password, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkVerifier(v); err != nil {
		t.Fatal(err)
	}
	return v
}

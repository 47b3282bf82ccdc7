package policy

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/xdg-go/stringprep"
)

const (
	scramPrefix     = "SCRAM-SHA-256$"
	scramIterations = 4096 // the least of RFC 7677 §4, and what PostgreSQL writes
	scramMost       = 10_000_000
	scramSalt       = 16
	maxPassword     = 1024
)

// Verifier makes what a policy stores of a password: a SCRAM-SHA-256 verifier (RFC 5802 §3, RFC 7677) in PostgreSQL's
// form. A password that SASLprep does not accept is used as it is, as PostgreSQL does.
func Verifier(password string, random io.Reader) (string, error) {
	if password == "" || len(password) > maxPassword {
		return "", fmt.Errorf("password must have 1 to %d bytes", maxPassword)
	}
	password = Prepared(password)
	salt := make([]byte, scramSalt)
	if _, err := io.ReadFull(random, salt); err != nil {
		return "", fmt.Errorf("salt: %w", err)
	}
	salted, err := pbkdf2.Key(sha256.New, password, salt, scramIterations, sha256.Size)
	if err != nil {
		return "", err
	}
	stored := sha256.Sum256(sign(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return scramPrefix + strconv.Itoa(scramIterations) + ":" + encode(salt) + "$" + encode(stored[:]) + ":" + encode(sign(salted, "Server Key")), nil
}

// Prepared is a password as both sides of an exchange take it: by SASLprep, or as it is where that does not accept it.
func Prepared(password string) string {
	if prepared, err := stringprep.SASLprep.Prepare(password); err == nil && prepared != "" {
		return prepared
	}
	return password
}

func sign(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// checkVerifier never repeats the text: it may be a plain password put there by mistake.
func checkVerifier(text string) error {
	rest, ok := strings.CutPrefix(text, scramPrefix)
	if !ok {
		return errors.New("password must be a SCRAM-SHA-256$ verifier, which dpproxy user add writes; a plain password is never stored")
	}
	bad := errors.New("password is not a whole verifier: SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey")
	front, keys, ok := strings.Cut(rest, "$")
	iterations, salt, ok2 := strings.Cut(front, ":")
	stored, server, ok3 := strings.Cut(keys, ":")
	if !ok || !ok2 || !ok3 {
		return bad
	}
	n, err := strconv.Atoi(iterations)
	if err != nil || n < scramIterations || n > scramMost {
		return fmt.Errorf("password: iterations of the verifier must be between %d and %d", scramIterations, scramMost)
	}
	if raw, err := base64.StdEncoding.DecodeString(salt); err != nil || len(raw) == 0 {
		return bad
	}
	for _, key := range []string{stored, server} {
		if raw, err := base64.StdEncoding.DecodeString(key); err != nil || len(raw) != sha256.Size {
			return bad
		}
	}
	return nil
}

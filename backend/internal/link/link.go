// Package link is how the way to a database is protected, by the options of MySQL's clients, which Spark's URLs have
// too.
package link

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"os"
	"slices"
	"strings"
)

// IsLoopback reports whether a host is an address of this machine.
func IsLoopback(host string) bool {
	return host == "localhost" || strings.HasPrefix(host, "127.") || host == "::1"
}

// ErrLink says that the owner has not said how the way to the database is protected.
var ErrLink = errors.New("the database is on another machine and the url does not say how the way there is protected: " +
	"add ssl-mode=VERIFY_IDENTITY, or another ssl-mode if the network is trusted")

// Options are those of a URL, each once, of the known ones and those of TLS; false means there are others.
func Options(u *url.URL, known ...string) (map[string]string, bool) {
	options := map[string]string{}
	for name, values := range u.Query() {
		name = strings.ToLower(name)
		if options[name] != "" || len(values) != 1 || !slices.Contains(append(known, "ssl-mode", "ssl-ca", "ssl-cert", "ssl-key"), name) {
			return nil, false
		}
		options[name] = values[0]
	}
	return options, true
}

// TLS returns how a way is encrypted, or nil if it is not, and whether it may be unencrypted, or to an impostor.
func TLS(host string, local bool, options map[string]string) (config *tls.Config, weak bool, err error) {
	mode := strings.ToUpper(options["ssl-mode"])
	if mode == "" && !local {
		return nil, false, ErrLink
	}
	config, err = encrypted(mode, host, options)
	return config, !local && (mode == "DISABLED" || mode == "REQUIRED"), err
}

func encrypted(mode, host string, options map[string]string) (*tls.Config, error) {
	config := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if file := options["ssl-ca"]; file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, errors.New("the file of ssl-ca cannot be read")
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, errors.New("the file of ssl-ca holds no certificate")
		}
	}
	if options["ssl-cert"] != "" || options["ssl-key"] != "" {
		own, err := tls.LoadX509KeyPair(options["ssl-cert"], options["ssl-key"])
		if err != nil {
			return nil, errors.New("the files of ssl-cert and ssl-key are not a certificate and its key")
		}
		config.Certificates = []tls.Certificate{own}
	}
	switch mode {
	case "", "DISABLED":
		if config.RootCAs != nil || config.Certificates != nil {
			return nil, errors.New("ssl-ca, ssl-cert and ssl-key need ssl-mode=REQUIRED, VERIFY_CA or VERIFY_IDENTITY")
		}
		return nil, nil
	case "REQUIRED":
		config.InsecureSkipVerify = true
	case "VERIFY_CA":
		config.InsecureSkipVerify = true // but for what follows, which leaves the name out
		config.VerifyConnection = func(s tls.ConnectionState) error {
			between := x509.NewCertPool()
			for _, c := range s.PeerCertificates[1:] {
				between.AddCert(c)
			}
			_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: config.RootCAs, Intermediates: between})
			return err
		}
	case "VERIFY_IDENTITY":
	default:
		return nil, errors.New("ssl-mode must be DISABLED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY")
	}
	return config, nil
}

// Package link is how the way to a database is protected, by the options of MySQL's clients, which Spark's URLs have
// too.
package link

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"
)

// IsLoopback reports whether a host is an address of this machine.
func IsLoopback(host string) bool {
	return host == "localhost" || strings.HasPrefix(host, "127.") || host == "::1"
}

// TLS returns how a way is encrypted, or nil if it is not.
func TLS(mode, host string, options map[string]string) (*tls.Config, error) {
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

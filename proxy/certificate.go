package proxy

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/dpproxy/dpproxy/internal/deadline"
	"github.com/dpproxy/dpproxy/proxy/login"
)

// Renew reads the files of the server's certificate, also again: connections from then on are shown what is in them.
// Those that are open keep theirs, which their logins are bound to. What cannot be used leaves the earlier one in
// force.
func (s *Server) Renew() error {
	config, err := s.certificate()
	if config == nil || err != nil {
		return err
	}
	config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	config.NextProtos = []string{login.ALPN}
	s.tls.Store(config)
	if leaf := config.Certificates; len(leaf) > 0 && leaf[0].Leaf != nil {
		s.metrics.certificate.Set(seconds(leaf[0].Leaf.NotAfter))
	}
	return nil
}

// certificate is what TLS begins with: as configured, or from the policy's files; nil without TLS.
func (s *Server) certificate() (*tls.Config, error) {
	if s.config.TLS != nil {
		return s.config.TLS.Clone(), nil
	}
	files := s.config.Policy().Server.TLS
	if files == nil {
		return nil, nil
	}
	cert, err := deadline.ReadFile(files.Cert)
	if err != nil {
		return nil, fmt.Errorf("server certificate: %w", err)
	}
	key, err := deadline.ReadFile(files.Key)
	if err != nil {
		return nil, fmt.Errorf("server certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("server certificate: %w", err)
	}
	if time.Now().After(pair.Leaf.NotAfter) {
		s.config.Log.Warn("the server's certificate has expired; clients that verify it do not connect", "file", files.Cert, "expired", pair.Leaf.NotAfter)
	}
	if old := s.tls.Load(); old != nil && !bytes.Equal(old.Certificates[0].Certificate[0], pair.Certificate[0]) {
		s.config.Log.Info("new connections are shown another certificate", "file", files.Cert, "until", pair.Leaf.NotAfter)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	if files.Clients != "" { // a client that has a certificate must have a good one; one that has none may log in by something else
		if config.ClientCAs, err = login.Certificates(files.Clients); err != nil {
			return nil, fmt.Errorf("certificates of clients: %w", err)
		}
		config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return config, nil
}

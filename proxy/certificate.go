package proxy

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"time"
)

// Renew reads the files of the server's certificate, also again: connections from then on are shown what is in them. Those that
// are open keep theirs. What cannot be used leaves the earlier one in force.
func (s *Server) Renew() error {
	config, files := s.config.TLS, s.config.Policy().Server.TLS
	if config == nil && files != nil {
		pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		if err != nil {
			return fmt.Errorf("server certificate: %w", err)
		}
		if now := time.Now(); now.After(pair.Leaf.NotAfter) {
			s.config.Log.Warn("the server's certificate has expired; clients that verify it refuse to connect", "file", files.Cert, "expired", pair.Leaf.NotAfter)
		}
		config = &tls.Config{Certificates: []tls.Certificate{pair}}
	}
	if config == nil {
		return nil
	}
	config = config.Clone()
	config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	config.NextProtos = []string{alpnProtocol}
	if old := s.tls.Swap(config); old != nil && files != nil && !bytes.Equal(old.Certificates[0].Certificate[0], config.Certificates[0].Certificate[0]) {
		s.config.Log.Info("new connections are shown another certificate", "file", files.Cert, "until", config.Certificates[0].Leaf.NotAfter)
	}
	return nil
}

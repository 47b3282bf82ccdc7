package spans

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// What is sent, and where, is OTLP over HTTP in its JSON form (OpenTelemetry protocol 1.x, "OTLP/HTTP": each 64-bit
// number a text, each id in hexadecimal). The library's own exporter brings gRPC, its gateway and their generated code
// into the program, for a POST.

// New is a recorder as OpenTelemetry's environment variables say: OTEL_EXPORTER_OTLP_ENDPOINT (or …_TRACES_ENDPOINT),
// _HEADERS, _TIMEOUT, _CERTIFICATE and _PROTOCOL, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and
// OTEL_BSP_…. nil means OTEL_SDK_DISABLED or OTEL_TRACES_EXPORTER=none.
func New(ctx context.Context, log *slog.Logger) (*Recorder, error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil
	}
	e, err := newExporter(log)
	if err != nil {
		return nil, err
	}
	of, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "dpproxy")), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, errors.New("OTEL_RESOURCE_ATTRIBUTES is not a list of key=value")
	}
	log.Info("spans of statements' stages are sent; their durations hang on rows", "to", e.to.Host)
	return newRecorder(sdk.WithBatcher(e), sdk.WithResource(of)), nil
}

// variable is the one of traces alone, else the one of all signals.
func variable(name string) string {
	if own := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_" + name); own != "" {
		return own
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_" + name)
}

// exporter posts spans.
type exporter struct {
	to      *url.URL
	headers http.Header
	client  *http.Client
	log     *slog.Logger
	failing atomic.Bool // the last batch was not taken
}

const sentWithin = 10 * time.Second // as OpenTelemetry's default

func newExporter(log *slog.Logger) (*exporter, error) {
	if p := variable("PROTOCOL"); p != "" && p != "http/json" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %.40q: dpproxy sends http/json, which a collector takes where it takes http/protobuf", p)
	}
	text := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if text == "" {
		if text = os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); text == "" {
			text = "http://localhost:4318"
		}
		text = strings.TrimSuffix(text, "/") + "/v1/traces"
	}
	to, err := url.Parse(text)
	if err != nil || to.Host == "" || to.Scheme != "https" && !(to.Scheme == "http" && loopback(to.Hostname())) {
		return nil, errors.New("OTEL_EXPORTER_OTLP_ENDPOINT must begin with https://; http:// is for a loopback address: spans hang on rows, and nobody may listen")
	}
	e := &exporter{to: to, headers: http.Header{"Content-Type": {"application/json"}}, log: log}
	for _, pair := range strings.Split(variable("HEADERS"), ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if plain, err := url.PathUnescape(value); ok && err == nil {
			e.headers.Set(strings.TrimSpace(key), strings.TrimSpace(plain))
		} else if pair != "" {
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS is not a list of key=value")
		}
	}
	within := sentWithin
	if text := variable("TIMEOUT"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, errors.New("OTEL_EXPORTER_OTLP_TIMEOUT is not a number of milliseconds")
		}
		within = time.Duration(n) * time.Millisecond
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := variable("CERTIFICATE"); file != "" {
		signers, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(signers) {
			return nil, errors.New("OTEL_EXPORTER_OTLP_CERTIFICATE holds no certificate")
		}
	}
	e.client = &http.Client{Timeout: within, Transport: &http.Transport{TLSClientConfig: config, Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }} // spans go where the owner said
	return e, nil
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// ExportSpans: see sdk.SpanExporter. A collector that is away is reported once, until it is back: nothing waits for it.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	text, err := json.Marshal(written(spans))
	if err == nil {
		err = e.post(ctx, text)
	}
	switch {
	case err != nil && !e.failing.Swap(true):
		e.log.Warn("spans are not taken by the collector, and are lost", "cause", err)
	case err == nil && e.failing.Swap(false):
		e.log.Info("spans are taken again")
	}
	return nil
}

// Shutdown: see sdk.SpanExporter.
func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}

func (e *exporter) post(ctx context.Context, text []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.to.String(), bytes.NewReader(text))
	if err != nil {
		return errors.New("no request can be made")
	}
	r.Header = e.headers.Clone()
	response, err := e.client.Do(r)
	if err != nil {
		return errors.New("no answer") // the library's text has the address, with what is in it
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 1<<16) // so that the connection is used again
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("HTTP status %d", response.StatusCode)
	}
	return nil
}

// The messages of OTLP, as far as they are sent.
type (
	message struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource struct {
			Attributes []keyValue `json:"attributes"`
		} `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	scopeSpans struct {
		Scope struct {
			Name string `json:"name"`
		} `json:"scope"`
		Spans []span `json:"spans"`
	}
	span struct {
		TraceID    string     `json:"traceId"`
		SpanID     string     `json:"spanId"`
		ParentID   string     `json:"parentSpanId,omitempty"`
		Flags      byte       `json:"flags"`
		Name       string     `json:"name"`
		Kind       int        `json:"kind"`
		Begun      string     `json:"startTimeUnixNano"`
		Ended      string     `json:"endTimeUnixNano"`
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	keyValue struct {
		Key   string `json:"key"`
		Value struct {
			Text string `json:"stringValue"`
		} `json:"value"`
	}
)

func written(spans []sdk.ReadOnlySpan) (m message) {
	if len(spans) == 0 {
		return m
	}
	of, in := resourceSpans{}, scopeSpans{}
	of.Resource.Attributes, in.Scope.Name = keyValues(spans[0].Resource().Attributes()), scope
	for _, s := range spans {
		c := s.SpanContext()
		one := span{TraceID: c.TraceID().String(), SpanID: c.SpanID().String(), Flags: byte(c.TraceFlags()), Name: s.Name(), Kind: int(s.SpanKind()),
			Begun: strconv.FormatInt(s.StartTime().UnixNano(), 10), Ended: strconv.FormatInt(s.EndTime().UnixNano(), 10), Attributes: keyValues(s.Attributes())}
		if s.Parent().SpanID().IsValid() {
			one.ParentID = s.Parent().SpanID().String()
		}
		in.Spans = append(in.Spans, one)
	}
	of.ScopeSpans = []scopeSpans{in}
	m.ResourceSpans = []resourceSpans{of}
	return m
}

func keyValues(list []attribute.KeyValue) (all []keyValue) {
	for _, a := range list {
		k := keyValue{Key: string(a.Key)}
		k.Value.Text = a.Value.Emit()
		all = append(all, k)
	}
	return all
}

// Command collector runs an OpenTelemetry Collector for the local stack's tests: its own OTLP receiver and pipeline, with an
// exporter that keeps what arrives for a test to read.
//
// It is a module of its own, outside go.work, because a collector requires more than a hundred modules, whose versions would
// otherwise be chosen for the functions too.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

func main() {
	address := flag.String("address", "127.0.0.1:4318", "where to listen; port 0 takes a free one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, *address); err != nil {
		fmt.Fprintln(os.Stderr, "collector:", err)
		os.Exit(1)
	}
}

// run serves until it is told to end: /v1/traces is the collector's OTLP receiver, /control/spans tells what it has received.
func run(told context.Context, address string) error {
	ctx, end := context.WithCancelCause(told)
	defer end(nil)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	receiverAddress, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	kept := &spans{}
	collector, err := newCollector(receiverAddress, kept)
	if err != nil {
		return err
	}
	go func() { end(collector.Run(ctx)) }()
	mux := http.NewServeMux()
	mux.Handle("/v1/traces", httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: receiverAddress}))
	mux.Handle("GET /control/spans", kept)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { end(server.Serve(listener)) }()
	fmt.Printf("collector listening on http://%s\n", listener.Addr())
	<-ctx.Done()
	collector.Shutdown()
	_ = server.Close()
	if told.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

// freeAddress is one that the receiver can listen at.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func newCollector(receiverAddress string, kept *spans) (*otelcol.Collector, error) {
	config := fmt.Sprintf(`yaml:{receivers: {otlp: {protocols: {http: {endpoint: %q}}}}, exporters: {kept: {}}, `+
		`service: {telemetry: {metrics: {level: none}}, pipelines: {traces: {receivers: [otlp], exporters: [kept]}}}}`, receiverAddress)
	return otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo:               component.BuildInfo{Command: "collector", Description: "for tests", Version: "0"},
		DisableGracefulShutdown: true,
		Factories: func() (all otelcol.Factories, err error) {
			if all.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory()); err != nil {
				return all, err
			}
			all.Telemetry = otelconftelemetry.NewFactory()
			all.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](newFactory(kept))
			return all, err
		},
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs: []string{config}, ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
		}},
	})
}

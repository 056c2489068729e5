module operators/prometheus-operator

go 1.26.0

tool github.com/prometheus-operator/prometheus-operator/cmd/operator

require (
	github.com/prometheus-operator/prometheus-operator v0.85.0
	github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring v0.85.0
	github.com/prometheus-operator/prometheus-operator/pkg/client v0.85.0
)

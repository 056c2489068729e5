module operators/render

go 1.26.0

require (
	helm.sh/helm/v3 v3.22.0
	sigs.k8s.io/kustomize/api v0.21.1
	sigs.k8s.io/kustomize/kyaml v0.21.1
)

module operators/shared

go 1.26.4

tool (
	github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller
	github.com/rabbitmq/cluster-operator/v2
)

require (
	github.com/kubernetes-csi/external-snapshotter/client/v8 v8.7.0
	github.com/kubernetes-csi/external-snapshotter/v8 v8.7.0
	github.com/rabbitmq/cluster-operator/v2 v2.16.0
	k8s.io/cloud-provider v0.36.3
	sigs.k8s.io/controller-runtime v0.24.1
)

// One version of the libraries for all of them: what takes minutes to build is built once.
replace (
	k8s.io/api => k8s.io/api v0.36.3
	k8s.io/apiextensions-apiserver => k8s.io/apiextensions-apiserver v0.36.3
	k8s.io/apimachinery => k8s.io/apimachinery v0.36.3
	k8s.io/apiserver => k8s.io/apiserver v0.36.3
	k8s.io/client-go => k8s.io/client-go v0.36.3
	k8s.io/component-base => k8s.io/component-base v0.36.3
	k8s.io/component-helpers => k8s.io/component-helpers v0.36.3
)

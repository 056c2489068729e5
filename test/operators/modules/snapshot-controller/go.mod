module operators/snapshot-controller

go 1.26.0

tool github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller

require (
	github.com/kubernetes-csi/external-snapshotter/client/v8 v8.7.0
	github.com/kubernetes-csi/external-snapshotter/v8 v8.7.0
)

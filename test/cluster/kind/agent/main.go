// The agents of a node that the tests on kind take away: a CSI driver, a DRA driver and the DaemonSet of a network plugin.
//
//	agent csi|dra NAME   serves the driver NAME to the node's kubelet until it is asked to end
//	agent cni FILE       FILE is there as long as it runs: the network plugin that the tests put into the node looks for it
package main

import (
	"context"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const kubelet = "/var/lib/kubelet"

func main() {
	kind, name := os.Args[1], os.Args[2]
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT)
	if kind == "cni" {
		must(os.MkdirAll(filepath.Dir(name), 0o755))
		must(os.WriteFile(name, nil, 0o644))
		<-asked
		must(os.Remove(name))
		return
	}
	server := grpc.NewServer()
	endpoint := filepath.Join(kubelet, "plugins", name, "agent.sock")
	info := &registration.PluginInfo{Name: name, Endpoint: endpoint}
	if kind == "csi" {
		info.Type, info.SupportedVersions = registration.CSIPlugin, []string{"1.0.0"}
		csi.RegisterIdentityServer(server, &csi.UnimplementedIdentityServer{})
		csi.RegisterNodeServer(server, &volumes{})
	} else {
		info.Type, info.SupportedVersions = registration.DRAPlugin, []string{dra.DRAPluginService}
		dra.RegisterDRAPluginServer(server, &devices{})
	}
	go serve(server, endpoint)
	registrar := grpc.NewServer()
	registration.RegisterRegistrationServer(registrar, &registered{info: info})
	go serve(registrar, filepath.Join(kubelet, "plugins_registry", name+"-reg.sock"))
	<-asked
	// With the sockets: so the kubelet knows that the driver is gone.
	registrar.Stop()
	server.Stop()
}

func serve(server *grpc.Server, path string) {
	must(os.MkdirAll(filepath.Dir(path), 0o755))
	_ = os.Remove(path)
	listener, err := net.Listen("unix", path)
	must(err)
	must(server.Serve(listener))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

type registered struct {
	registration.UnsafeRegistrationServer
	info *registration.PluginInfo
}

func (r *registered) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return r.info, nil
}

func (*registered) NotifyRegistrationStatus(context.Context, *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	return &registration.RegistrationStatusResponse{}, nil
}

type volumes struct{ csi.UnimplementedNodeServer }

func (*volumes) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	name, err := os.Hostname()
	return &csi.NodeGetInfoResponse{NodeId: name}, err
}

func (*volumes) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (*volumes) NodePublishVolume(_ context.Context, asked *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	return &csi.NodePublishVolumeResponse{}, os.MkdirAll(asked.TargetPath, 0o755)
}

func (*volumes) NodeUnpublishVolume(_ context.Context, asked *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	return &csi.NodeUnpublishVolumeResponse{}, os.RemoveAll(asked.TargetPath)
}

type devices struct {
	dra.UnimplementedDRAPluginServer
}

func (*devices) NodePrepareResources(_ context.Context, asked *dra.NodePrepareResourcesRequest) (*dra.NodePrepareResourcesResponse, error) {
	claims := map[string]*dra.NodePrepareResourceResponse{}
	for _, claim := range asked.Claims {
		claims[claim.Uid] = &dra.NodePrepareResourceResponse{}
	}
	return &dra.NodePrepareResourcesResponse{Claims: claims}, nil
}

func (*devices) NodeUnprepareResources(_ context.Context, asked *dra.NodeUnprepareResourcesRequest) (*dra.NodeUnprepareResourcesResponse, error) {
	claims := map[string]*dra.NodeUnprepareResourceResponse{}
	for _, claim := range asked.Claims {
		claims[claim.Uid] = &dra.NodeUnprepareResourceResponse{}
	}
	return &dra.NodeUnprepareResourcesResponse{Claims: claims}, nil
}

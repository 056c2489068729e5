// Command csi-plugin is what a storage driver has in its pod: the csi-snapshotter, beside it here, and a driver
// that keeps nothing.
package main

import (
	"context"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
}

func main() {
	address := ""
	for _, arg := range os.Args[1:] {
		if path, given := strings.CutPrefix(arg, "--csi-address="); given {
			address = path
		}
	}
	_ = os.Remove(address) // of the run before a crash
	listener, err := net.Listen("unix", address)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, driver{})
	csi.RegisterControllerServer(server, driver{})
	go func() { log.Fatal(server.Serve(listener)) }()
	// It ends when it loses the driver.
	sidecar := exec.Command(filepath.Join(filepath.Dir(os.Args[0]), "csi-snapshotter"), os.Args[1:]...)
	sidecar.Stdout, sidecar.Stderr = os.Stdout, os.Stderr
	log.Fatal("csi-snapshotter has ended: ", sidecar.Run())
}

func (driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: "csi.example.com", VendorVersion: "1"}, nil
}

func (driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (driver) GetPluginCapabilities(
	context.Context, *csi.GetPluginCapabilitiesRequest,
) (*csi.GetPluginCapabilitiesResponse, error) {
	service := &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		{Type: &csi.PluginCapability_Service_{Service: service}},
	}}, nil
}

func (driver) ControllerGetCapabilities(
	context.Context, *csi.ControllerGetCapabilitiesRequest,
) (*csi.ControllerGetCapabilitiesResponse, error) {
	snapshots := &csi.ControllerServiceCapability_RPC{
		Type: csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
	}
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{
		{Type: &csi.ControllerServiceCapability_Rpc{Rpc: snapshots}},
	}}, nil
}

func (driver) CreateSnapshot(
	_ context.Context, request *csi.CreateSnapshotRequest,
) (*csi.CreateSnapshotResponse, error) {
	return &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{
		SnapshotId:     request.GetName(),
		SourceVolumeId: request.GetSourceVolumeId(),
		CreationTime:   timestamppb.Now(),
		SizeBytes:      1 << 20,
		ReadyToUse:     true,
	}}, nil
}

func (driver) DeleteSnapshot(context.Context, *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	return &csi.DeleteSnapshotResponse{}, nil
}

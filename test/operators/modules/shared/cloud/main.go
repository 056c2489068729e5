// Command cloud is a cloud controller manager as its providers make theirs, with the service controller alone, and
// a cloud that is made up.
package main

import (
	"context"
	"errors"
	"io"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/fake"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"
)

type cloud struct{ *fake.Cloud }

func (c cloud) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return c, true }

func (c cloud) EnsureLoadBalancerDeleted(ctx context.Context, clusterName string, service *v1.Service) error {
	if service.Annotations["cloud.example.com/locked"] != "" {
		return errors.New("the load balancer is locked against deletion")
	}
	return c.Cloud.EnsureLoadBalancerDeleted(ctx, clusterName, service)
}

func main() {
	cloudprovider.RegisterCloudProvider("acme", func(io.Reader) (cloudprovider.Interface, error) {
		return cloud{&fake.Cloud{Provider: "acme", Exists: true, ExternalIP: []byte{192, 0, 2, 7}}}, nil
	})
	settings, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		klog.Fatal(err)
	}
	// The others delete nodes that the cloud does not know.
	controllers := map[string]app.ControllerInitFuncConstructor{
		names.ServiceLBController: app.DefaultInitFuncConstructors[names.ServiceLBController],
	}
	start := func(completed *config.CompletedConfig) cloudprovider.Interface {
		provider, err := cloudprovider.InitCloudProvider(completed.ComponentConfig.KubeCloudShared.CloudProvider.Name, "")
		if err != nil {
			klog.Fatal(err)
		}
		return provider
	}
	os.Exit(cli.Run(app.NewCloudControllerManagerCommand(
		settings, start, controllers, names.CCMControllerAliases(), flag.NamedFlagSets{}, wait.NeverStop,
	)))
}

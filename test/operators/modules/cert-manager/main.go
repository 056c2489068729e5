// Command cert-manager is the controller, the webhook and the CA injector of cert-manager, chosen by the first
// argument. Its own commands are modules that are not published; the packages that they start are. The module has
// a name below cert-manager's because some of these are internal to it.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/cert-manager/cert-manager/internal/apis/config/shared"
	webhookconfig "github.com/cert-manager/cert-manager/internal/apis/config/webhook"
	"github.com/cert-manager/cert-manager/internal/webhook"
	"github.com/cert-manager/cert-manager/pkg/api"
	"github.com/cert-manager/cert-manager/pkg/controller"
	_ "github.com/cert-manager/cert-manager/pkg/controller/acmechallenges"
	_ "github.com/cert-manager/cert-manager/pkg/controller/acmeorders"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/acme"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/util"
)

const workers = 5

var (
	flags      = pflag.NewFlagSet("cert-manager", pflag.ContinueOnError)
	kubeconfig = flags.String("kubeconfig", os.Getenv("KUBECONFIG"), "")
	leaderIn   = flags.String("leader-election-namespace", "kube-system", "")

	clusterNamespace = flags.String("cluster-resource-namespace", "", "")
	solverImage      = flags.String("acme-http01-solver-image", "", "")
	atOnce           = flags.Int("max-concurrent-challenges", 60, "")

	securePort  = flags.Int32("secure-port", 10250, "")
	healthzPort = flags.Int32("healthz-port", 6080, "")
	caNamespace = flags.String("dynamic-serving-ca-secret-namespace", "", "")
	caName      = flags.String("dynamic-serving-ca-secret-name", "", "")
	dnsNames    = flags.StringSlice("dynamic-serving-dns-names", nil, "")
)

func main() {
	commands := map[string]func(context.Context) error{
		"controller": runController, "webhook": runWebhook, "cainjector": runInjector,
	}
	flags.ParseErrorsAllowlist.UnknownFlags = true
	if err := flags.Parse(os.Args[1:]); err != nil {
		klog.Fatal(err)
	}
	command, known := commands[flags.Arg(0)]
	if !known {
		klog.Fatal("usage: cert-manager controller|webhook|cainjector [FLAG…]")
	}
	ctrl.SetLogger(klog.Background())
	if err := command(klog.NewContext(ctrl.SetupSignalHandler(), klog.Background())); err != nil {
		klog.Fatal(err)
	}
}

// As cmd/controller does: the controllers that are enabled unless flags say otherwise, when it leads.
func runController(ctx context.Context) error {
	one, memory := resource.MustParse("10m"), resource.MustParse("64Mi")
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:         *kubeconfig,
		KubernetesAPIQPS:   20,
		KubernetesAPIBurst: 50,
		IssuerOptions: controller.IssuerOptions{
			ClusterResourceNamespace: *clusterNamespace, ClusterIssuerAmbientCredentials: true,
		},
		ACMEOptions: controller.ACMEOptions{
			HTTP01SolverImage:                 *solverImage,
			HTTP01SolverResourceRequestCPU:    one,
			HTTP01SolverResourceRequestMemory: memory,
			HTTP01SolverResourceLimitsCPU:     one,
			HTTP01SolverResourceLimitsMemory:  memory,
			ACMEHTTP01SolverRunAsNonRoot:      true,
			DNS01CheckAuthoritative:           true,
			DNS01Nameservers:                  []string{"127.0.0.1:53"},
			DNS01CheckRetryPeriod:             10 * time.Second,
		},
		CertificateOptions: controller.CertificateOptions{
			CopiedAnnotationPrefixes:                 []string{"*"},
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
		SchedulerOptions: controller.SchedulerOptions{MaxConcurrentChallenges: *atOnce},
	})
	if err != nil {
		return err
	}
	own, err := factory.Build("leader-election")
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, *leaderIn, "cert-manager-controller",
		own.Client.CoreV1(), own.Client.CoordinationV1(), resourcelock.ResourceLockConfig{
			Identity: host + "-external-cert-manager-controller", EventRecorder: own.Recorder,
		})
	if err != nil {
		return err
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   60 * time.Second,
		RenewDeadline:   40 * time.Second,
		RetryPeriod:     15 * time.Second,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				if err := runControllers(ctx, factory); err != nil {
					klog.Fatal(err)
				}
			},
			OnStoppedLeading: func() {},
		},
	})
	return nil
}

func runControllers(ctx context.Context, factory *controller.ContextFactory) error {
	for name, construct := range controller.Known() {
		one, err := construct(factory)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		go func() {
			if err := one.Run(workers, ctx); err != nil {
				klog.Errorf("%s: %v", name, err)
			}
		}()
	}
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	shared.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	<-ctx.Done()
	return nil
}

func runWebhook(ctx context.Context) error {
	server, err := webhook.NewCertManagerWebhookServer(klog.Background(), webhookconfig.WebhookConfiguration{
		KubeConfig:           *kubeconfig,
		SecurePort:           *securePort,
		HealthzPort:          *healthzPort,
		MetricsListenAddress: "0",
		TLSConfig: shared.TLSConfig{Dynamic: shared.DynamicServingConfig{
			SecretNamespace: *caNamespace, SecretName: *caName, DNSNames: *dnsNames, LeafDuration: 7 * 24 * time.Hour,
		}},
	})
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

func runInjector(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, api.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme,
	} {
		if err := add(known); err != nil {
			return err
		}
	}
	manager, err := ctrl.NewManager(util.RestConfigWithUserAgent(config, "cainjector"), ctrl.Options{
		Scheme:                        known,
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "cert-manager-cainjector-leader-election",
		LeaderElectionNamespace:       *leaderIn,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	enabled := map[string]bool{
		cainjector.MutatingWebhookConfigurationName:   true,
		cainjector.ValidatingWebhookConfigurationName: true,
		cainjector.APIServiceName:                     true,
		cainjector.CustomResourceDefinitionName:       true,
	}
	options := cainjector.SetupOptions{EnableCertificatesDataSource: true, EnabledReconcilersFor: enabled}
	if err := cainjector.RegisterAllInjectors(ctx, manager, options); err != nil {
		return err
	}
	return manager.Start(ctx)
}

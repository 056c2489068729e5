// Command argocd-application-controller is Argo CD's application controller, without the rest of its program, which
// takes long to build, and with the cache that it needs.
package main

import (
	"log"
	"os"

	"github.com/alicebob/miniredis/v2"
	controller "github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
)

func main() {
	redis, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	// Outside of a pod, its own cluster is that of its kubeconfig.
	_ = os.Setenv("ARGOCD_FAKE_IN_CLUSTER", "true")
	command := controller.NewCommand()
	// The first argument is the program, as the image's own entry point is given it.
	command.SetArgs(append(os.Args[2:], "--redis="+redis.Addr()))
	if err := command.Execute(); err != nil {
		log.Fatal(err)
	}
}

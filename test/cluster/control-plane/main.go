// Command control-plane is etcd, kube-apiserver and kube-controller-manager in one binary, chosen by
// the first argument, so that the tests run on a real Kubernetes without any image or registry of
// images. The versions are those of the go.mod file it is built with (see build.ts).
package main

import (
	"fmt"
	"io"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	name := ""
	if len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = append([]string{name}, os.Args[2:]...)
	}
	// The tests hold the other end of standard input. However hard they die, it closes, and no
	// server outlives them.
	if os.Getenv("CONTROL_PLANE_LEASH") == "stdin" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
	}
	switch name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	default:
		fmt.Fprintln(os.Stderr, "usage: control-plane etcd|kube-apiserver|kube-controller-manager [FLAG…]")
		os.Exit(2)
	}
}

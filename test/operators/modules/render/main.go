// Command render writes the objects of a product as its users install them: "render kustomize FOLDER", or
// "render chart FOLDER RELEASE NAMESPACE [VALUE=JSON…]".
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "kustomize":
		return kustomize(args[1])
	case len(args) >= 4 && args[0] == "chart":
		return chart(args[1], args[2], args[3], args[4:])
	}
	return fmt.Errorf("usage: render kustomize FOLDER | render chart FOLDER RELEASE NAMESPACE [VALUE=JSON…]")
}

func kustomize(folder string) error {
	options := krusty.MakeDefaultOptions()
	// The bases are in the module cache, not below the folder.
	options.LoadRestrictions = types.LoadRestrictionsNone
	objects, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return err
	}
	text, err := objects.AsYaml()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

func chart(folder, release, namespace string, settings []string) error {
	loaded, err := loader.Load(folder)
	if err != nil {
		return err
	}
	values := map[string]any{}
	for _, setting := range settings {
		if err := strvals.ParseJSON(setting, values); err != nil {
			return err
		}
	}
	options := chartutil.ReleaseOptions{Name: release, Namespace: namespace, IsInstall: true}
	all, err := chartutil.ToRenderValues(loaded, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	files, err := engine.Render(loaded, all)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(files))
	for name := range files {
		if strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		origin, _ := json.Marshal(name)
		fmt.Printf("---\n# Source: %s\n%s\n", origin, files[name])
	}
	return nil
}

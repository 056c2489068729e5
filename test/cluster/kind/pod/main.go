// What runs in the pods of the tests on kind. It ends when it is asked to, unless its argument is "stubborn".
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT)
	for range asked {
		if len(os.Args) < 2 || os.Args[1] != "stubborn" {
			return
		}
	}
}

package scaffold_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"

	"github.com/idem-go/idem-aws/idem/scaffold"
)

// A program writes a new service into an empty folder.
func ExampleService_Write() {
	folder, err := os.MkdirTemp("", "shop")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)

	service := scaffold.Service{Module: "example.com/shop", Release: "v1.2.3"}
	files, err := service.Write(filepath.Join(folder, service.Name()))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(service.Name())
	fmt.Println(slices.Contains(files, "go.mod"), slices.Contains(files, "cdk/main.go"))
	// Output:
	// shop
	// true true
}

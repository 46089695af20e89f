// Command warehouse serves the stand-in of the warehouse at the address LISTEN, until it is interrupted.
package main

import (
	"cmp"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"example.com/shop/warehouse"
)

func main() {
	listener, err := net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8099"))
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("the warehouse ships on http://%s", listener.Addr())
	server := http.Server{Handler: warehouse.New(), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.Serve(listener))
}

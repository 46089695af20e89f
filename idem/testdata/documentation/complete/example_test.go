package complete_test

import "fmt"

func Example() {
	fmt.Println("shown")
	// Output: shown
}

package sandbox_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestScratch(t *testing.T) {
	text, _ := os.ReadFile("/tmp/ddb/s.sql")
	for line := range strings.Lines(string(text)) {
		rows, err := ask(t, engine(t), line)
		fmt.Println(strings.TrimSpace(line), "\n  ", err)
		for i, r := range rows.Data {
			if i < 5 {
				fmt.Println("   ", r)
			}
		}
	}
}

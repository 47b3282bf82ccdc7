package memory

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDirIsRemoved: a directory is there while its test runs, and no longer.
func TestDirIsRemoved(t *testing.T) {
	var dir string
	t.Run("one", func(t *testing.T) {
		dir = Dir(t)
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
}

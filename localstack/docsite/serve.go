package docsite

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// policy lets a page load nothing from elsewhere, and says so in the browser's console where one tries.
const policy = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"

// Server shows the built site, and builds it again before it shows a page that is older than what it is made of.
type Server struct {
	// Root is the checkout, Out the folder of the site.
	Root, Out string
	// Told is told the result of each build: nil, or what is wrong.
	Told func(error)

	mu    sync.Mutex
	built time.Time // when the newest source of the last build was changed
}

// Serve serves on listener until ctx ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // the pages are files: nothing is lost
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ServeHTTP answers with a file of the site. A page of a build that failed is shown as it is.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if extension := filepath.Ext(r.URL.Path); extension == ".html" || extension == "" {
		if err := s.refresh(r.Context()); err != nil {
			s.Told(err)
		}
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Cache-Control", "no-cache")
	http.FileServer(http.Dir(s.Out)).ServeHTTP(w, r)
}

func (s *Server) refresh(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed, err := newest(filepath.Join(s.Root, "docs"), filepath.Join(s.Root, "localstack", "docsite"), filepath.Join(s.Root, "mkdocs.yml"))
	if err != nil || !changed.After(s.built) {
		return err
	}
	s.built = changed
	s.Told(Build(ctx, s.Root, s.Out))
	return nil
}

// newest is when the last of the files was changed.
func newest(paths ...string) (time.Time, error) {
	var last time.Time
	for _, path := range paths {
		err := filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err == nil && info.ModTime().After(last) {
				last = info.ModTime()
			}
			if errors.Is(err, os.ErrNotExist) {
				return nil // deleted meanwhile
			}
			return err
		})
		if err != nil {
			return time.Time{}, err
		}
	}
	return last, nil
}

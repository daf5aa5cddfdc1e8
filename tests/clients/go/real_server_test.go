package tests

// A real server for one test, as a process. Its data folder is temporary. DETENT_BINARY names the
// program. The first start takes a free port, and later starts use it again.

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
)

var ready = regexp.MustCompile(`ready at (https?)://(127\.0\.0\.1:\d+)`)

type realServer struct {
	t       *testing.T
	data    string
	scheme  string
	address string
	flags   []string
	process *exec.Cmd
}

func newServer(t *testing.T, flags ...string) *realServer {
	t.Helper()
	server := &realServer{t: t, data: filepath.Join(t.TempDir(), "data"), address: "127.0.0.1:0",
		flags: flags}
	server.start()
	t.Cleanup(server.kill)
	return server
}

func (s *realServer) url() string { return s.scheme + "://" + s.address }

func (s *realServer) start() {
	s.t.Helper()
	arguments := append([]string{"serve", "--data", s.data, "--http", s.address, "--beanstalk", "off",
		"--log-level", "error"}, s.flags...)
	s.process = exec.Command(os.Getenv("DETENT_BINARY"), arguments...)
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.process.Stderr = os.Stderr
	output, err := s.process.StdoutPipe()
	must(s.t, err)
	must(s.t, s.process.Start())
	said := ""
	for lines := bufio.NewScanner(output); lines.Scan(); {
		said += lines.Text() + "\n"
		if found := ready.FindStringSubmatch(lines.Text()); found != nil {
			s.scheme, s.address = found[1], found[2]
			return
		}
	}
	s.t.Fatal("the server has gone: " + said)
}

// kill is kill -9.
func (s *realServer) kill() {
	_ = s.process.Process.Kill() // it may be dead
	_ = s.process.Wait()         // its status says that it was killed
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T any](t *testing.T, got, wanted T) {
	t.Helper()
	if g, w := fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", wanted); g != w {
		t.Fatalf("got %s, wanted %s", g, w)
	}
}

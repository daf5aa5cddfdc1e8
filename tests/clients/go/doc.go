// Package tests tests the Go client and worker with the real server.
//
//	DETENT_BINARY=build/release/detent go test -count=1
//
// Some tests kill or stop the server. The tests check which events happened and how often, but never
// when. The tests with a scripted server are in clients/go.
package tests

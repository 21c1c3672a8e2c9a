// The worker of the Go libraries, with the line protocol of verify/interop/README.md.
//
//	interop LIBRARY PORT
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// library is one lock library, with at most one held lock.
type library interface {
	// acquire returns errNotGranted if the wait ended first.
	acquire(key string, ttl, wait time.Duration) (validity, error)
	// release returns false if the library reports that the lock was no longer held.
	release() (bool, error)
	// extend returns errLost if the library reports that the lock was no longer held.
	extend(ttl time.Duration) (validity, error)
}

// validity is the end of the validity that a library reports, or nil if it reports none.
type validity *time.Time

var (
	errNotGranted  = errors.New("the wait ended")
	errLost        = errors.New("the lock was lost")
	errUnsupported = errors.New("this library has no extension")
)

func main() {
	lib := open(os.Args[1], "127.0.0.1:"+os.Args[2])
	requests := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for requests.Scan() {
		words := strings.Fields(requests.Text())
		if words[0] == "quit" {
			break
		}
		fmt.Println(reply(lib, words))
	}
}

func open(name, address string) library {
	switch name {
	case "redsync":
		return openRedsync(address)
	case "redislock":
		return openRedislock(address)
	case "rueidislock":
		return &rueidisLibrary{address: address}
	}
	panic("unknown library: " + name)
}

func reply(lib library, words []string) string {
	sent := now()
	var valid validity
	var wasHeld bool
	var err error
	switch words[0] {
	case "acquire":
		valid, err = lib.acquire(words[1], milliseconds(words[2]), milliseconds(words[3]))
	case "extend":
		valid, err = lib.extend(milliseconds(words[1]))
	case "release":
		wasHeld, err = lib.release()
	default:
		err = errors.New("unknown request: " + words[0])
	}
	times := fmt.Sprintf("%.3f %.3f", sent, now())
	switch {
	case errors.Is(err, errUnsupported):
		return "unsupported"
	case errors.Is(err, errNotGranted), errors.Is(err, errLost):
		return "refused " + times
	case err != nil:
		return "error " + times + " " + strings.Join(strings.Fields(err.Error()), " ")
	case words[0] == "release":
		return fmt.Sprintf("released %s %t", times, wasHeld)
	case words[0] == "extend":
		return fmt.Sprintf("extended %s %s", times, end(valid))
	}
	return fmt.Sprintf("granted %s %s -", times, end(valid))
}

func milliseconds(text string) time.Duration {
	count, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return time.Duration(count) * time.Millisecond
}

func end(valid validity) string {
	if valid == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", now()+time.Until(*valid).Seconds()*1000)
}

// now returns milliseconds of the monotonic clock that all processes of the machine share.
func now() float64 {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &at); err != nil {
		panic(err)
	}
	return float64(at.Nano()) / 1e6
}

package main

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// redsyncLibrary is redsync with one server and its default delays, 50 to 250 ms.
type redsyncLibrary struct {
	redsync *redsync.Redsync
	held    *redsync.Mutex
}

func openRedsync(address string) *redsyncLibrary {
	client := redis.NewClient(&redis.Options{Addr: address})
	return &redsyncLibrary{redsync: redsync.New(goredis.NewPool(client))}
}

func (lib *redsyncLibrary) acquire(key string, ttl, wait time.Duration) (validity, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	mutex := lib.redsync.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(math.MaxInt32))
	if err := mutex.LockContext(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, errNotGranted
		}
		return nil, err
	}
	lib.held = mutex
	until := mutex.Until()
	return &until, nil
}

func (lib *redsyncLibrary) release() (bool, error) {
	wasHeld, err := lib.held.Unlock()
	if isLost(err) {
		return false, nil
	}
	return wasHeld, err
}

// The TTL of redsync is fixed at the creation of the mutex.
func (lib *redsyncLibrary) extend(time.Duration) (validity, error) {
	isExtended, err := lib.held.Extend()
	if isLost(err) || (err == nil && !isExtended) {
		return nil, errLost
	}
	until := lib.held.Until()
	return &until, err
}

func isLost(err error) bool {
	var taken *redsync.ErrTaken
	return errors.Is(err, redsync.ErrLockAlreadyExpired) ||
		errors.Is(err, redsync.ErrExtendFailed) ||
		errors.As(err, &taken)
}

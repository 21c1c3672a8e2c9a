package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

const redislockRetry = 100 * time.Millisecond

// redislockLibrary is bsm/redislock, whose user chooses the retry strategy: here a linear one of 100 ms, as in its documentation.
type redislockLibrary struct {
	client *redislock.Client
	held   *redislock.Lock
}

func openRedislock(address string) *redislockLibrary {
	return &redislockLibrary{client: redislock.New(redis.NewClient(&redis.Options{Addr: address}))}
}

func (lib *redislockLibrary) acquire(key string, ttl, wait time.Duration) (validity, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(redislockRetry)}
	lock, err := lib.client.Obtain(ctx, key, ttl, options)
	if errors.Is(err, redislock.ErrNotObtained) || (err != nil && ctx.Err() != nil) {
		return nil, errNotGranted
	}
	if err == nil {
		lib.held = lock
	}
	return nil, err
}

func (lib *redislockLibrary) release() (bool, error) {
	err := lib.held.Release(context.Background())
	if errors.Is(err, redislock.ErrLockNotHeld) {
		return false, nil
	}
	return err == nil, err
}

func (lib *redislockLibrary) extend(ttl time.Duration) (validity, error) {
	err := lib.held.Refresh(context.Background(), ttl, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return nil, errLost
	}
	return nil, err
}

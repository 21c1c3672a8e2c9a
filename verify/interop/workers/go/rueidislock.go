package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidisLibrary is rueidislock with 2 of 3 keys. It extends a lock itself, and cancels the context of a lost lock.
type rueidisLibrary struct {
	address string
	locker  rueidislock.Locker
	held    context.Context
	unlock  context.CancelFunc
}

// The locker has one validity for all locks, so the first request creates the locker.
func (lib *rueidisLibrary) acquire(key string, ttl, wait time.Duration) (validity, error) {
	if lib.locker == nil {
		locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption: rueidis.ClientOption{InitAddress: []string{lib.address}},
			KeyValidity:  ttl,
		})
		if err != nil {
			return nil, err
		}
		lib.locker = locker
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	held, unlock, err := lib.locker.WithContext(ctx, key)
	if err != nil {
		cancel()
		if ctx.Err() != nil {
			return nil, errNotGranted
		}
		return nil, err
	}
	lib.held, lib.unlock = held, func() { unlock(); cancel() }
	return nil, nil
}

func (lib *rueidisLibrary) release() (bool, error) {
	wasHeld := lib.held.Err() == nil
	lib.unlock()
	return wasHeld, nil
}

func (lib *rueidisLibrary) extend(time.Duration) (validity, error) {
	return nil, errUnsupported
}

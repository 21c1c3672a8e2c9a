// Checks the history of a chaos run with Porcupine, a checker of linearizability that others wrote.
// Usage: go run . FILE, with the operations that check.js has written.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const limitOfKey = 5 * time.Minute

type operation struct {
	Key       string `json:"key"`
	Grant     int    `json:"grant"`
	Op        string `json:"op"`
	Token     uint64 `json:"token,string"`
	Exclusive bool   `json:"exclusive"`
	Weight    int    `json:"weight"`
	Capacity  int    `json:"capacity"`
	Call      int64  `json:"call"`
	Return    int64  `json:"return"`
}

// A lock: the numbers of the grants in force, sorted; their weight; the largest token of all, and of holders that exclude others.
type lock struct {
	grants            string
	used              int
	newest, exclusive uint64
}

// The specification. A request is granted only if its weight is free. A holder that excludes others has a larger token than all before.
// Any other has no smaller token than those that excluded others: a writer that becomes a reader keeps its token. Only a grant in
// force can end.
var specification = porcupine.Model{
	Init: func() any { return lock{} },
	Step: func(state, input, _ any) (bool, any) {
		now, one := state.(lock), input.(operation)
		if one.Op == "end" {
			grants, found := without(now.grants, one.Grant)
			return found, lock{grants, now.used - one.Weight, now.newest, now.exclusive}
		}
		isNewer := one.Token >= now.exclusive
		if one.Exclusive {
			isNewer = one.Token > now.newest
		}
		if now.used+one.Weight > one.Capacity || !isNewer {
			return false, now
		}
		next := lock{with(now.grants, one.Grant), now.used + one.Weight, max(now.newest, one.Token), now.exclusive}
		if one.Exclusive {
			next.exclusive = one.Token
		}
		return true, next
	},
}

func with(grants string, grant int) string {
	all := append(strings.Fields(grants), strconv.Itoa(grant))
	sort.Strings(all)
	return strings.Join(all, " ")
}

func without(grants string, grant int) (string, bool) {
	all := strings.Fields(grants)
	at := slices.Index(all, strconv.Itoa(grant))
	if at < 0 {
		return grants, false
	}
	return strings.Join(slices.Delete(all, at, at+1), " "), true
}

func main() {
	if len(os.Args) != 2 {
		fail(2, "Usage: go run . FILE")
	}
	byKey, count := read(os.Args[1])
	keys := []string{}
	for key := range byKey {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		result, info := porcupine.CheckOperationsVerbose(specification, byKey[key], limitOfKey)
		if result != porcupine.Ok {
			fail(1, fmt.Sprintf("%s: %s, %d operations; %s", key, result, len(byKey[key]), longest(info, byKey[key])))
		}
	}
	fmt.Printf("%d operations of %d keys are linearizable\n", count, len(keys))
}

// The operation at which each order of the history ends.
func longest(info porcupine.LinearizationInfo, all []porcupine.Operation) string {
	most := 0
	for _, partial := range info.PartialLinearizations() {
		for _, order := range partial {
			most = max(most, len(order))
		}
	}
	return fmt.Sprintf("no order has more than %d of them", most)
}

func read(path string) (map[string][]porcupine.Operation, int) {
	file, err := os.Open(path)
	if err != nil {
		fail(2, err.Error())
	}
	byKey, count := map[string][]porcupine.Operation{}, 0
	for lines := bufio.NewScanner(file); lines.Scan(); count++ {
		var one operation
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			fail(2, fmt.Sprintf("%s: line %d: %s", path, count+1, err))
		}
		byKey[one.Key] = append(byKey[one.Key], porcupine.Operation{ClientId: one.Grant, Input: one, Call: one.Call, Return: one.Return})
	}
	if count == 0 {
		fail(2, path+" has no operations")
	}
	return byKey, count
}

func fail(code int, message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(code)
}

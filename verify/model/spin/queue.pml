/*
 * A second opinion: queues, inquiries and yields once more, written apart from the model in TypeScript, for Spin.
 *
 * NODES nodes of 3 answer, 2 clients ask once each; A has the earlier ticket. Requests and messages arrive in any order; up to
 * LOSSES of them are lost, up to DOUBLES requests are executed twice. When nothing else can happen (timeout), all who wait ask again.
 *
 * Checked: no two hold the lock (assertion); nobody is left waiting (invalid end states); nobody asks again for ever (non-progress
 * cycles, with pan -l).
 *
 * -DNO_YIELD       mutant: inquiries are ignored
 * -DLATE_VOTES     mutant: a vote that was given back counts when its reply comes late
 * -DNO_NUMBER      mutant: a yield gives back whatever vote there is
 */
#ifndef NODES
#define NODES 3
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef DOUBLES
#define DOUBLES 1
#endif
#define MAJORITY 2
#define LINKS 6
#define L(a, n) ((a) * 3 + (n))
#define BIT(k) (1 << (k))

#define IDLE 0
#define WAITING 1
#define HOLDING 2
#define ENDED 3

/* Nodes: attempt + 1, number of the newest grant, who waits. */
byte holder[3], number[3];
bit queued[LINKS];
/* Under way to a node; with a yield its number. */
bit acquires[LINKS], releases[LINKS], yields[LINKS];
byte yieldOf[LINKS];
/* Under way to a client: bit k for the number k. */
short grants[LINKS], inquiries[LINKS];
/* What clients know. */
byte phase[2], vote[LINKS], yielded[LINKS], inquired[LINKS];
byte losses = LOSSES, doubles = DOUBLES;

#define VOTES(a) ((vote[L(a, 0)] > 0) + (vote[L(a, 1)] > 0) + (vote[L(a, 2)] > 0))

inline give(who, n) {
  number[n]++;
  assert(number[n] < 14); /* else the masks are too narrow for these bounds */
  holder[n] = who + 1;
  queued[L(who, n)] = 0;
  grants[L(who, n)] = grants[L(who, n)] | BIT(number[n])
}

inline grantNext(n) {
  if
  :: queued[L(0, n)] -> give(0, n)
  :: else ->
    if
    :: queued[L(1, n)] -> give(1, n)
    :: else -> holder[n] = 0
    fi
  fi
}

inline executeAcquire(a, n) {
  if
  :: holder[n] == 0 -> queued[L(a, n)] = 1; grantNext(n)
  :: holder[n] == a + 1 -> queued[L(a, n)] = 0; grants[L(a, n)] = grants[L(a, n)] | BIT(number[n])
  :: else ->
    queued[L(a, n)] = 1;
    if
    :: a == 0 -> inquiries[L(1, n)] = inquiries[L(1, n)] | BIT(number[n])
    :: else
    fi
  fi
}

#ifdef NO_NUMBER
#define IS_YIELDED(a, n) (holder[n] == (a) + 1)
#else
#define IS_YIELDED(a, n) (holder[n] == (a) + 1 && number[n] == yieldOf[L(a, n)])
#endif

inline executeYield(a, n) {
  if
  :: IS_YIELDED(a, n) -> queued[L(a, n)] = 1; grantNext(n)
  :: else -> executeAcquire(a, n)
  fi
}

inline executeRelease(a, n) {
  queued[L(a, n)] = 0;
  if
  :: holder[n] == a + 1 || holder[n] == 0 -> grantNext(n)
  :: else
  fi
}

inline ask(a, n) {
  if
  :: yielded[L(a, n)] > 0 -> yields[L(a, n)] = 1; yieldOf[L(a, n)] = yielded[L(a, n)]
  :: else -> acquires[L(a, n)] = 1
  fi
}

inline yieldIfAsked(a, n) {
#ifndef NO_YIELD
  if
  :: vote[L(a, n)] > 0 && inquired[L(a, n)] >= vote[L(a, n)] && VOTES(a) < MAJORITY ->
    if
    :: yields[L(a, n)] -> acquires[L(a, n)] = 1
    :: else
    fi;
    yielded[L(a, n)] = inquired[L(a, n)];
    yieldOf[L(a, n)] = yielded[L(a, n)];
    yields[L(a, n)] = 1;
    vote[L(a, n)] = 0
  :: else
  fi
#else
  skip
#endif
}

#ifdef LATE_VOTES
#define IS_NEWS(i, k) (k >= vote[i])
#else
#define IS_NEWS(i, k) (k > yielded[i] && k >= vote[i])
#endif

inline hearGrant(a, n, k) {
  grants[L(a, n)] = grants[L(a, n)] & (32767 - BIT(k));
  if
  :: phase[a] == WAITING ->
    if
    :: IS_NEWS(L(a, n), k) -> vote[L(a, n)] = k
    :: else
    fi;
    if
    :: VOTES(a) >= MAJORITY -> phase[a] = HOLDING; assert(phase[1 - a] != HOLDING)
    :: else -> yieldIfAsked(a, 0); yieldIfAsked(a, 1); yieldIfAsked(a, 2)
    fi
  :: phase[a] == ENDED -> releases[L(a, n)] = 1
  :: else
  fi
}

inline hearInquiry(a, n, k) {
  inquiries[L(a, n)] = inquiries[L(a, n)] & (32767 - BIT(k));
  if
  :: phase[a] == WAITING && k > yielded[L(a, n)] ->
    if
    :: k > inquired[L(a, n)] -> inquired[L(a, n)] = k
    :: else
    fi;
    yieldIfAsked(a, n)
  :: else
  fi
}

/* Any of those under way: they are late as they like. */
inline pick(k, mask) {
  if
  :: (mask & BIT(1)) != 0 -> k = 1
  :: (mask & BIT(2)) != 0 -> k = 2
  :: (mask & BIT(3)) != 0 -> k = 3
  :: (mask & BIT(4)) != 0 -> k = 4
  :: (mask & BIT(5)) != 0 -> k = 5
  :: (mask & BIT(6)) != 0 -> k = 6
  :: (mask & BIT(7)) != 0 -> k = 7
  :: (mask & BIT(8)) != 0 -> k = 8
  :: (mask & BIT(9)) != 0 -> k = 9
  :: (mask & BIT(10)) != 0 -> k = 10
  :: (mask & BIT(11)) != 0 -> k = 11
  :: (mask & BIT(12)) != 0 -> k = 12
  :: (mask & BIT(13)) != 0 -> k = 13
  fi
}

proctype Client(byte a) {
  atomic { phase[a] = WAITING; acquires[L(a, 0)] = 1; acquires[L(a, 1)] = 1;
#if NODES > 2
    acquires[L(a, 2)] = 1
#else
    skip
#endif
  };
  (phase[a] == HOLDING);
progress:
  atomic {
    phase[a] = ENDED;
    releases[L(a, 0)] = 1; releases[L(a, 1)] = 1;
#if NODES > 2
    releases[L(a, 2)] = 1;
#endif
    vote[L(a, 0)] = 0; vote[L(a, 1)] = 0; vote[L(a, 2)] = 0
  }
}

/* What is between one client and one node. */
proctype Link(byte a; byte n) {
  byte k;
end:
  do
  :: atomic { acquires[L(a, n)] ->
      if
      :: acquires[L(a, n)] = 0
      :: doubles > 0 -> doubles--
      fi;
      executeAcquire(a, n) }
  :: atomic { yields[L(a, n)] ->
      if
      :: yields[L(a, n)] = 0
      :: doubles > 0 -> doubles--
      fi;
      executeYield(a, n) }
  :: atomic { releases[L(a, n)] -> releases[L(a, n)] = 0; executeRelease(a, n) }
  :: atomic { grants[L(a, n)] > 0 ->
      pick(k, grants[L(a, n)]);
      hearGrant(a, n, k);
      k = 0 }
  :: atomic { inquiries[L(a, n)] > 0 ->
      pick(k, inquiries[L(a, n)]);
      hearInquiry(a, n, k);
      k = 0 }
  :: atomic { losses > 0 && acquires[L(a, n)] -> acquires[L(a, n)] = 0; losses-- }
  :: atomic { losses > 0 && yields[L(a, n)] -> yields[L(a, n)] = 0; losses-- }
  :: atomic { losses > 0 && phase[a] == WAITING && grants[L(a, n)] > 0 -> grants[L(a, n)] = 0; losses-- }
  :: atomic { losses > 0 && inquiries[L(a, n)] > 0 -> inquiries[L(a, n)] = 0; losses-- }
  od
}

proctype Polls() {
end:
  do
  :: atomic { timeout && (phase[0] == WAITING || phase[1] == WAITING) ->
      if
      :: phase[0] == WAITING -> ask(0, 0); ask(0, 1);
#if NODES > 2
        ask(0, 2)
#else
        skip
#endif
      :: else
      fi;
      if
      :: phase[1] == WAITING -> ask(1, 0); ask(1, 1);
#if NODES > 2
        ask(1, 2)
#else
        skip
#endif
      :: else
      fi }
  od
}

init {
  atomic {
    run Client(0); run Client(1);
    run Link(0, 0); run Link(0, 1); run Link(1, 0); run Link(1, 1);
#if NODES > 2
    run Link(0, 2); run Link(1, 2);
#endif
    run Polls()
  }
}

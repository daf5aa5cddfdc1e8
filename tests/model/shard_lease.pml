/* The lease of a shard: who may write its tasks, and why nobody else's write counts.
 *
 * A shard is a row of the database: its epoch, and until when its lease lasts by the database's
 * clock. A node takes the shard when the lease has run out: it raises the epoch, and then reads
 * the tasks. Every write is a transaction that first takes the shard's row FOR SHARE if the epoch
 * still is its own; taking the shard updates the row, so it waits for these transactions.
 *
 * Any process may stand still between any two of its steps for as long as it takes others to do
 * whatever they do: that is a node under SIGSTOP, a slow network, a long collection of garbage. It
 * may crash, too, and the database may give a transaction up. Two of the processes are the same
 * node, started again while the first still stands somewhere.
 *
 * What must hold is asserted where it could break:
 *   - no write of a node takes effect once another has taken the shard;
 *   - a task that was acknowledged is in the store, waiting or completed;
 *   - whoever holds the shard knows exactly the tasks that wait.
 *
 * `spin -DVARIANT` leaves out one thing that the protocol rests on, and must be found out:
 *   UNFENCED          writes do not look at the epoch
 *   CHECK_THEN_WRITE  they look, but without the lock on the row
 *   LOAD_FIRST        tasks are read before the shard is taken
 *   OWNER_NOT_EPOCH   the row has the owner's name for an epoch
 *   UNFENCED_CLEANUP  only the removal of a range does not look
 *   EARLY_ACK         the client is answered before the commit
 *
 * After the fencing tokens of M. Kleppmann, "How to do distributed locking" (2016), and the shard
 * epochs ("range id") of Cadence and Temporal.
 */
#define TASKS 2
#define EPOCHS 4

mtype = { none, waiting, completed };

byte epoch = 0;         /* the shard's row */
byte owner = 255;
bool has_run_out = true;
byte sharers = 0;       /* transactions that hold the row FOR SHARE */
mtype row[TASKS] = none;
bool is_given[TASKS];   /* ids are never given out twice */
bool is_acked[TASKS];   /* the client was told that the task is safe */

#ifdef OWNER_NOT_EPOCH
#define IS_MINE (owner == name)
#else
#define IS_MINE (epoch == my_epoch)
#endif

/* Begins a transaction that writes: goes on at `denied` when the shard is another's. */
#if defined(UNFENCED)
#define BEGIN(denied) skip
#define END skip
#elif defined(CHECK_THEN_WRITE)
#define BEGIN(denied) if :: IS_MINE :: else -> goto denied fi
#define END skip
#else
#define BEGIN(denied) atomic { if :: IS_MINE -> sharers++ :: else -> goto denied fi }
#define END sharers--
#endif

#ifdef UNFENCED_CLEANUP
#define BEGIN_CLEANUP(denied) skip
#define END_CLEANUP skip
#else
#define BEGIN_CLEANUP(denied) BEGIN(denied)
#define END_CLEANUP END
#endif

/* When a write takes effect. */
#define STILL_MINE assert(epoch == my_epoch)

/* Every node that still holds the shard knows what is in it; the others do not matter. */
#define KNOWS_ITS_TASKS \
  assert(epoch != my_epoch || ((has_task[0] == (row[0] == waiting)) && \
                               (has_task[1] == (row[1] == waiting))))

inline load() {
  atomic {
    has_task[0] = (row[0] == waiting);
    has_task[1] = (row[1] == waiting)
  }
}

proctype Node(byte name) {
  byte my_epoch = 0;
  byte task = 0;
  bool has_task[TASKS];

looking:
  my_epoch = 0;
#ifdef LOAD_FIRST
  load();
#endif
  atomic {
    has_run_out && sharers == 0 && epoch < EPOCHS ->
    has_run_out = false;
    owner = name;
    epoch++;
    my_epoch = epoch
  }
#ifndef LOAD_FIRST
  load();
#endif

holding:
  KNOWS_ITS_TASKS;
  if
  :: true -> /* renews the lease */
     atomic {
       if
       :: IS_MINE -> has_run_out = false
       :: else -> goto looking
       fi
     }
  :: atomic { /* accepts a task */
       !is_given[0] || !is_given[1] ->
       task = (is_given[0] -> 1 : 0);
       is_given[task] = true
     }
     BEGIN(looking);
#ifdef EARLY_ACK
     is_acked[task] = true;
#endif
     if
     :: atomic { true -> STILL_MINE; row[task] = waiting; has_task[task] = true; END }
     :: atomic { true -> END; goto crashed }
     fi;
     is_acked[task] = true
  :: atomic { has_task[0] -> task = 0 } /* a worker has completed a task */
     goto completing
  :: atomic { has_task[1] -> task = 1 }
     goto completing
  :: !has_task[0] && !has_task[1] -> /* removes a range in which it knows of no task: all of it */
     BEGIN_CLEANUP(looking);
     if
     :: atomic {
          true -> STILL_MINE;
          row[0] = (row[0] == waiting -> none : row[0]);
          row[1] = (row[1] == waiting -> none : row[1]);
          END_CLEANUP
        }
     :: atomic { true -> END_CLEANUP; goto crashed }
     fi
  :: true -> goto crashed
  fi;
  goto holding;

completing:
  BEGIN(looking);
  if
  :: atomic { true -> STILL_MINE; row[task] = completed; has_task[task] = false; END }
  :: atomic { true -> END; goto crashed }
  fi;
  goto holding;

crashed:
  atomic { has_task[0] = false; has_task[1] = false };
  goto looking
}

/* The database's clock: a lease that is not renewed runs out. */
proctype Time() {
end:
  do
  :: atomic { !has_run_out -> has_run_out = true }
  od
}

/* What was acknowledged is there, at every moment. */
proctype Client() {
end:
  do
  :: atomic { is_acked[0] && row[0] == none -> assert(false) }
  :: atomic { is_acked[1] && row[1] == none -> assert(false) }
  od
}

init {
  atomic {
    run Node(0);
    run Node(1);
    run Node(0); /* started again, while the first may still be there */
    run Time();
    run Client()
  }
}
